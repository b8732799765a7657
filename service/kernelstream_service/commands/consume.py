"""``consume``: a model that learns from a broker."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kernelstream.cli.base import Run, UsageError, command, positive, print_json
from kernelstream.cli.values import pair

from .serve import add_durability, durability, name_of, read_model

EXAMPLES = """examples:
  kernelstream consume kafka://localhost:9092/flats --model prices.ks --target price
  kernelstream consume redis://localhost:6379/flats --model prices.ks --target price --answers forecasts
  kernelstream consume kafka://localhost:9092/flats --model prices.ks --target price --group sellers --store /shared
"""


@command("consume", "learn from a topic of Kafka or a stream of Redis, each message exactly once", examples=EXAMPLES)
def _consume(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Run:
    parser.add_argument("source", metavar="URL", help="kafka://HOST:PORT/TOPIC or redis://HOST:PORT/STREAM")
    parser.add_argument("--model", "-m", metavar="FILE", required=True, help="model to start with")
    parser.add_argument("--store", metavar="DIR", help="where log, snapshots and positions go (MODEL.live)")
    parser.add_argument("--target", metavar="COLUMN", help='column to learn; else messages are {"row": ..., "y": ...}')
    parser.add_argument("--answers", metavar="TOPIC", help="where to send predictions, made before each row is learned")
    shared = parser.add_mutually_exclusive_group()
    shared.add_argument(
        "--group", metavar="NAME", help="share the partitions with other processes: one model per partition"
    )
    shared.add_argument("--by", metavar="COLUMN", help="one small model per value of a column")
    parser.add_argument("--once", action="store_true", help="end when there are no more messages")
    parser.add_argument("--batch", type=positive, default=500, metavar="N", help="messages learned together (500)")
    parser.add_argument("--awake", type=positive, default=256, help="models in memory at a time, with --by (256)")
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
    from ..consume import Consumed, Shared, consume, consume_by, consume_group
    from ..learner import DurableLearner
    from ..sources import open_source, split
    from ..store import Store

    try:
        kind, address, topic = split(args.source)
    except ValueError as error:
        raise UsageError(str(error)) from None
    options = dict(args.option)
    if kind != "kafka" and (args.group or options):
        raise UsageError("--group and --option are for Kafka")
    if args.batch > 100_000:
        raise UsageError(f"--batch is at most 100,000, got {args.batch:,}")
    model, columns = read_model(args.model)
    folder = Path(args.store or Path(args.model).with_suffix(".live"))
    kept = durability(args)
    name, done = name_of(args.model), Consumed()
    how = {"target": args.target, "answers": args.answers is not None, "batch": args.batch, "once": args.once}

    def measured(learners: Callable[[], list[tuple[str, Any]]]) -> Any:
        """Context in which metrics are served, if that was asked for."""
        if args.metrics is None:
            return contextlib.nullcontext()
        from ..metrics import serve_reader

        return serve_reader(args.metrics, learners, done)

    with _asked_to_stop() as stop:
        how |= {"stop": stop, "done": done}
        if args.group is not None:
            from ..kafka import Kafka

            shared = Shared(folder, name, model, columns=columns, **kept)
            with measured(lambda: list(shared.learners.items())):
                source = Kafka(address, topic, args.answers, options, args.group, shared.gained, shared.lost)
                consume_group(shared, source, **how)
        elif args.by is not None:
            with Store(folder, awake=args.awake, **kept) as store, measured(store.learners):
                consume_by(store, model, open_source(args.source, args.answers, options), args.by, **how)
        else:
            learner = DurableLearner(folder / name, model, columns=columns, **kept)
            with learner, measured(lambda: [(name, learner)]):
                consume(learner, open_source(args.source, args.answers, options), **how)
    if args.json:
        print_json(vars(done))
        return
    summary = f"{done.messages:,} messages, {done.learned:,} rows learned, {done.skipped:,} left out"
    print(f"{summary}, {done.messages / max(done.seconds, 1e-9):,.0f} messages/s, kept in {folder}")
    for reason, count in done.reasons.items():
        print(f"kernelstream: {count:,} left out: {reason}", file=sys.stderr)
    if done.skipped:
        print(f"kernelstream: these messages are kept in dead.jsonl under {folder}", file=sys.stderr)


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
