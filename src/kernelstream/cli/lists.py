"""``demo``, ``list``, ``datasets`` and ``reproduce``: a first run, what is available, and the papers' experiments."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from ..extras import PAPERS
from ..registry.names import did_you_mean
from .base import Run, UsageError, command, positive, print_json, print_table


@command("demo", "compare the default learner with common tools on a real and a drifting stream")
def _demo(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.add_argument("--out", default="kernelstream-demo.png", metavar="FILE", help="picture to write (%(default)s)")
    parser.add_argument("--rows", type=positive, help="rows of each stream (20,000)")

    def run(args: argparse.Namespace) -> None:
        from .. import demo

        demo.run(args.out, args.rows)

    return run


@command("list", "list algorithms, and the parts they are made of")
def _list(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    sections = ("estimators", "algorithms", "kernels", "features", "losses", "updates", "budgets")
    parser.add_argument("what", nargs="*", metavar="what", help=f"any of {', '.join(sections)}; all by default")
    parser.add_argument("--json", action="store_true", help="print JSON")

    def run(args: argparse.Namespace) -> None:
        import kernelstream

        from .. import zoo

        def components(module: str) -> list[tuple[str, str]]:
            registry = getattr(kernelstream, module)
            return [(name, _summary(type(registry.get(name)))) for name in registry.names()]

        def estimators() -> list[tuple[str, str]]:
            return [(name, _summary(getattr(kernelstream, name))) for name in kernelstream._NAMES if name[0].isupper()]

        listings: dict[str, Any] = {what: partial(components, what) for what in sections[2:]}
        listings |= {"estimators": estimators}
        listings |= {"algorithms": lambda: [(name, zoo.get(name).summary) for name in zoo.names()]}
        for what in args.what:
            if what not in listings:
                raise UsageError(
                    f"there is no list of {what!r}: {did_you_mean(what, sections)}choose from {', '.join(sections)}"
                )
        if args.json:
            print_json({what: dict(listings[what]()) for what in args.what or sections})
            return
        for what in args.what or sections:
            print_table(what, ("name", ""), listings[what]())
            absent = set(zoo.RIVALS).difference(zoo.names()) if what == "algorithms" else ()
            if absent:
                print(f"{', '.join(sorted(absent))} come with the papers' experiments: {PAPERS}.")

    return run


@command("datasets", "list the data sets that can be loaded, or where each comes from")
def _datasets(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.add_argument("fetch", nargs="?", choices=("fetch",), help="show where each benchmark set comes from")
    parser.add_argument("--json", action="store_true", help="print JSON")

    def run(args: argparse.Namespace) -> None:
        from .. import datasets

        if args.fetch:
            _sources(args.json)
            return
        found = {name: datasets.info(name) for name in datasets.names()}
        if args.json:
            print_json(found)
            return
        rows = []
        for name, about in found.items():
            storage = "sparse" if about["sparse"] else "dense"
            rows.append((name, about["task"], f"{about['rows']:,}", f"{about['columns']:,}", storage))
        print_table("data sets", ("name", "task", "rows", "columns", "storage"), rows, right=("rows", "columns"))
        if datasets.folder() is None:
            print("Set KERNELSTREAM_DATA to a folder of NAME.npz files to add your own.")

    return run


def _sources(as_json: bool) -> None:
    """Where the benchmark sets come from, and which of them are here."""
    from .. import datasets

    here = set(datasets.names())
    if as_json:
        print_json({name: {"here": name in here, **one._asdict()} for name, one in datasets.SOURCES.items()})
        return
    rows = [
        (name, "yes" if name in here else "", one.home, one.copy, one.note) for name, one in datasets.SOURCES.items()
    ]
    print_table("where the benchmark sets come from", ("name", "here", "home", "copy that was read", ""), rows)
    print("Files are not downloaded: the terms of their homes apply. To use a set, save its arrays X and y")
    print("as NAME.npz in a folder and set KERNELSTREAM_DATA to it. A name in this list must be the very file that the")
    print("results were computed with; datasets.load(NAME, check=False) takes any.")


def _summary(cls: type) -> str:
    """First paragraph of a class's documentation, without markup."""
    lines = " ".join((cls.__doc__ or "").strip().split("\n\n")[0].split())
    return re.sub(r":\w+:`([^`]*)`", r"\1", lines).replace("``", "").replace("\\", "")
