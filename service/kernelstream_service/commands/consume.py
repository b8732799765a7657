"""``consume``: a model that learns from a broker."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kernelstream.cli.base import Run, UsageError, command, positive, print_json
from kernelstream.cli.values import pair

from .serve import add_durability, durability, name_of, read_model

EXAMPLES = """examples:
  kernelstream consume kafka://localhost:9092/flats --model prices.ks --target price
  kernelstream consume redis://localhost:6379/flats --model prices.ks --target price --answers forecasts
"""


@command("consume", "learn from a topic of Kafka or a stream of Redis, each message exactly once", examples=EXAMPLES)
def _consume(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.add_argument("source", metavar="URL", help="kafka://HOST:PORT/TOPIC or redis://HOST:PORT/STREAM")
    parser.add_argument("--model", "-m", metavar="FILE", required=True, help="model to start with")
    parser.add_argument("--store", metavar="DIR", help="where the journal and snapshots go (MODEL.live)")
    parser.add_argument("--target", metavar="COLUMN", help='column to learn; else messages are {"row": ..., "y": ...}')
    parser.add_argument("--answers", metavar="TOPIC", help="where to send predictions, made before each row is learned")
    parser.add_argument("--once", action="store_true", help="end when there are no more messages")
    parser.add_argument("--batch", type=positive, default=500, metavar="N", help="messages learned together (500)")
    parser.add_argument(
        "--option", type=pair, action="append", default=[], metavar="KEY=VALUE", help="setting of librdkafka"
    )
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")
    parser.add_argument(
        "--metrics", type=positive, metavar="PORT", help="serve metrics for Prometheus at http://127.0.0.1:PORT/metrics"
    )
    add_durability(parser)
    return _run


def _run(args: argparse.Namespace) -> None:
    from ..consume import Consumed, consume
    from ..learner import DurableLearner
    from ..sources import open_source, split

    try:
        kind = split(args.source)[0]
    except ValueError as error:
        raise UsageError(str(error)) from None
    options = dict(args.option)
    if kind != "kafka" and options:
        raise UsageError("--option is for Kafka")
    if args.batch > 100_000:
        raise UsageError(f"--batch is at most 100,000, got {args.batch:,}")
    model, columns = read_model(args.model)
    folder = Path(args.store or Path(args.model).with_suffix(".live"))
    name, done = name_of(args.model), Consumed()
    how = {"target": args.target, "answers": args.answers is not None, "batch": args.batch, "once": args.once}

    with _asked_to_stop() as stop, contextlib.ExitStack() as open_ones:
        learner = open_ones.enter_context(DurableLearner(folder / name, model, columns=columns, **durability(args)))
        if args.metrics is not None:
            from ..metrics import serve_reader

            open_ones.enter_context(serve_reader(args.metrics, lambda: [(name, learner)], done))
        consume(learner, open_source(args.source, args.answers, options), stop=stop, done=done, **how)
    if args.json:
        print_json(vars(done))
        return
    summary = f"{done.messages:,} messages, {done.learned:,} rows learned, {done.skipped:,} left out"
    print(f"{summary}, {done.messages / max(done.seconds, 1e-9):,.0f} messages/s, kept in {folder}")
    for reason, count in done.reasons.items():
        print(f"kernelstream: {count:,} left out: {reason}", file=sys.stderr)
    if done.skipped:
        print(f"kernelstream: these messages are kept: kernelstream store dead {folder}", file=sys.stderr)


@contextlib.contextmanager
def _asked_to_stop() -> Iterator[Any]:
    """A function that says whether control-C or SIGTERM has come; a second control-C ends at once."""
    asked: list[int] = []

    def ask(number: int, _: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    try:
        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread
        before = {}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
