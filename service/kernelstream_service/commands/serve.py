"""``serve``: models behind HTTP that go on learning."""

from __future__ import annotations

import argparse
import functools
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelstream.checks import few
from kernelstream.cli.base import Run, UsageError, command, positive
from kernelstream.cli.values import value

EXAMPLES = """examples:
  kernelstream serve prices.ks
  curl -H 'Content-Type: application/json' -d '{"rows": [[80, 3]]}' localhost:8000/models/prices/predict
  kernelstream serve prices.ks clicks.ks --store models --host 0.0.0.0 --token-file token.txt
"""


@command("serve", "serve models over HTTP: they predict, learn, and lose no acknowledged row", examples=EXAMPLES)
def _serve(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.add_argument("models", nargs="*", metavar="MODEL", help="model files; a model is named after its file")
    parser.add_argument("--store", metavar="DIR", help="where models are kept (MODEL.live beside the first file)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="port, 0 for any (%(default)s)")
    parser.add_argument(
        "--token-file", metavar="FILE",
        help="file of lines TOKEN [RIGHTS [MODELS]]; requests must send one of them; it may be edited at any time",
    )  # fmt: skip
    parser.add_argument(
        "--challenger", metavar="FILE", help="model that learns beside the first one and is compared with it"
    )
    add_durability(parser)
    parser.add_argument("--awake", type=positive, default=128, help="models in memory at a time (%(default)s)")
    parser.add_argument("--body-mb", type=positive, default=2, metavar="N", help="largest request (%(default)s MB)")
    parser.add_argument("--rows", type=positive, default=50_000, metavar="N", help="rows of a request (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=30.0, metavar="N", help="time limit of a prediction (%(default)g)"
    )
    parser.add_argument(
        "--columns", choices=("fixed", "open"), default="fixed",
        help="what to do with columns that the model does not know: refuse them, or learn up to a thousand",
    )  # fmt: skip
    parser.add_argument(
        "--log", choices=("info", "warning", "error"), default="warning",
        help="least level of the JSON lines on standard error; info has every request (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--keep-alive", type=positive, default=75, metavar="N",
        help="seconds that a connection without a request stays open (%(default)s)",
    )  # fmt: skip
    demo = parser.add_argument_group("demo", "a server that learns from a drifting stream, with a page to watch it")
    demo.add_argument("--demo", action="store_true", help="start it at any free port, and open the page in a browser")
    demo.add_argument("--stop-after", type=float, metavar="N", help="stop after this many seconds (at control-C)")
    demo.add_argument("--no-open", action="store_true", help="print the address of the page without opening it")
    return _run


def add_durability(parser: argparse.ArgumentParser) -> None:
    """Options of a durable learner."""
    parser.add_argument(
        "--flush", default="each", metavar="WHEN",
        help="force the journal to the disk before each answer (each), every N milliseconds (a number), or only with "
        "snapshots (request)",
    )  # fmt: skip
    parser.add_argument(
        "--snapshot-rows", type=positive, default=50_000, metavar="N", help="rows between snapshots (50,000)"
    )


def durability(args: argparse.Namespace) -> dict[str, Any]:
    """These options as parameters of a durable learner."""
    from ..journal import flush_policy

    flush = value(args.flush)
    try:
        flush_policy(flush)
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    return {"flush": flush, "snapshot_rows": args.snapshot_rows}


def name_of(path: str) -> str:
    """Name of a model: that of its file, with what a name cannot hold replaced."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(path).stem).strip("-_")
    return name[:64] or "model"


def read_model(path: str) -> tuple[Any, list[str] | None]:
    """A model that can learn row by row, and the names of its columns if its file has them."""
    from ..learner import read_model as read

    try:
        return read(path)
    except TypeError as error:
        raise UsageError(f"{path}: {error}") from None


def _run(args: argparse.Namespace) -> None:
    from .. import Store, logs
    from ..serve import Server

    if args.demo:
        from .. import demo

        demo.run(seconds=args.stop_after, show=not args.no_open, say=functools.partial(print, flush=True))
        return
    if not args.models and args.store is None:
        raise UsageError("serve needs a model file, --store of an earlier run, or --demo: kernelstream serve MODEL.ks")
    if not args.seconds > 0:
        raise UsageError(f"--seconds must be above 0, got {args.seconds:g}")
    if not 0 <= args.port <= 65535:
        raise UsageError(f"--port must be from 0 to 65535, got {args.port}")
    logs.start(args.log)
    folder = args.store or str(Path(args.models[0]).with_suffix(".live"))
    store = Store(folder, awake=args.awake, **durability(args))
    try:
        for path in args.models:
            _enter(store, path)
        if not store.names():
            raise UsageError(f"{folder} holds no models: name a model file to start with")
        if args.challenger is not None:
            first = name_of(args.models[0]) if args.models else store.names()[0]
            with store.use(first) as learner:
                learner.challenge(read_model(args.challenger)[0])
        try:
            limits = {"body": args.body_mb << 20, "rows": args.rows, "seconds": args.seconds}
            limits |= {"keep_alive": args.keep_alive, "opened": args.columns == "open"}
            server = Server(store, args.host, args.port, args.token_file, **limits)
        except ValueError as error:
            raise UsageError(str(error)) from None
    except BaseException:
        store.close()
        raise
    message = f"kernelstream: {few(store.names())} at {server.url}, kept in {folder} (control-C ends it)"
    server.run(lambda: print(message, file=sys.stderr, flush=True))


def _enter(store: Any, path: str) -> None:
    name = name_of(path)
    if name in store:
        with store.use(name) as learner:
            print(f"kernelstream: {name} resumes after {learner.total:,} rows", file=sys.stderr)
            for problem in learner.health()["problems"].values():
                print(f"kernelstream: warning: {name}: {problem}", file=sys.stderr)
        return
    model, columns = read_model(path)
    store.create(name, model, columns)
