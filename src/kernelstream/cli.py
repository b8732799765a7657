"""The command ``kernelstream``.

A subcommand is one function under ``@command``: it adds its arguments to a parser and returns what runs them. Heavy
modules are imported inside, so that ``--help`` and ``--version`` are quick.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from . import __version__

Run = Callable[[argparse.Namespace], Any]
Setup = Callable[[argparse.ArgumentParser], Run]

_COMMANDS: dict[str, tuple[str, Setup]] = {}


def command(name: str, help: str) -> Callable[[Setup], Setup]:
    """Decorator: enter a subcommand."""

    def enter(setup: Setup) -> Setup:
        _COMMANDS[name] = (help, setup)
        return setup

    return enter


@command("demo", "run a few learners over a real data set and a drifting stream")
def _demo(parser: argparse.ArgumentParser) -> Run:
    parser.add_argument("--out", default="kernelstream-demo.png", metavar="FILE", help="picture to write (%(default)s)")
    parser.add_argument("--rows", type=_positive, help="rows of the drifting stream (200,000)")

    def run(args: argparse.Namespace) -> None:
        from . import demo

        demo.run(args.out, args.rows)

    return run


@command("list", "list algorithms, kernels and losses")
def _list(parser: argparse.ArgumentParser) -> Run:
    sections = ("algorithms", "kernels", "losses")
    parser.add_argument("what", nargs="*", metavar="what", help=f"any of {', '.join(sections)}; all by default")

    def run(args: argparse.Namespace) -> None:
        from . import kernels, losses, zoo

        listings = {
            "algorithms": lambda: [(name, zoo.get(name).summary) for name in zoo.names()],
            "kernels": lambda: [(name, _summary(kernels.get(name))) for name in kernels.names()],
            "losses": lambda: [(name, _summary(losses.get(name))) for name in losses.names()],
        }
        for what in args.what:
            if what not in listings:
                raise ValueError(f"there is no list of {what!r}: choose from {', '.join(sections)}")
        for what in args.what or sections:
            _print_table(what, ("name", ""), listings[what]())

    return run


@command("datasets", "list the data sets that can be loaded now")
def _datasets(parser: argparse.ArgumentParser) -> Run:
    def run(args: argparse.Namespace) -> None:
        from . import datasets

        rows = []
        for name in datasets.names():
            found = datasets.info(name)
            storage = "sparse" if found["sparse"] else "dense"
            rows.append((name, found["task"], f"{found['rows']:,}", f"{found['columns']:,}", storage))
        _print_table("data sets", ("name", "task", "rows", "columns", "storage"), rows)
        if datasets.folder() is None:
            print("Set KERNELSTREAM_DATA to a folder of NAME.npz files to add your own.")

    return run


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code (2 for errors of the user)."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        args.run(args)
        sys.stdout.flush()
    except (ValueError, OSError, ImportError) as error:
        if isinstance(error, BrokenPipeError):  # the reader, such as `head`, has had enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        if args.debug:
            raise
        print(f"kernelstream: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("kernelstream: interrupted", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernelstream", description="Online kernel learning on streams of rows.")
    parser.add_argument("--version", action="version", version=f"kernelstream {__version__}")
    parser.add_argument("--debug", action="store_true", help="show where an error comes from")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (help, setup) in _COMMANDS.items():
        sub = subparsers.add_parser(name, help=help, description=help[0].upper() + help[1:] + ".")
        sub.set_defaults(run=setup(sub))
    return parser


def _positive(text: str) -> int:
    value = int(text.replace("_", "").replace(",", ""))
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def _summary(component: Any) -> str:
    """First sentence of a class's documentation, without markup."""
    lines = (type(component).__doc__ or "").strip().split("\n\n")[0]
    return " ".join(lines.split()).replace("``", "").replace("\\", "")


def _print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns on a terminal as wide as it is; elsewhere one plain line per row, for `grep` and the like."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        print(f"# {title}")
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_header=any(headings[1:]), pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if heading in ("rows", "columns") else "left", no_wrap=number == 0)
    for row in rows:
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
