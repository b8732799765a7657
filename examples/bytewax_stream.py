"""A durable learner as an operator of the stream engine Bytewax: one model per key, each message learned exactly once.

Bytewax reads, routes by key and recovers. The learner keeps its own log, snapshots, and the position up to which it has
learned. After a crash Bytewax repeats some messages (its recovery is at least once), and the learner skips those that
it has learned.

    pip install kernelstream bytewax
    python -m bytewax.run examples/bytewax_stream.py

For Kafka, replace ``TestingSource`` by ``KafkaSource`` of ``bytewax.connectors.kafka``, with offsets as positions.
"""

from __future__ import annotations

import random
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import bytewax.operators as op
from bytewax.connectors.stdio import StdOutSink
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulBatchLogic
from bytewax.testing import TestingSource

from kernelstream import KernelRegressor
from kernelstream_service import DurableLearner


class Message(NamedTuple):
    """A message: its key, its position in the source, the row, and the target."""

    key: str
    position: int
    row: dict[str, Any]
    y: float


class Forecast(NamedTuple):
    """The forecast for a message, made before it was learned."""

    position: int
    y: float


class Learning(StatefulBatchLogic):
    """The operator for one key. Bytewax stores the position; everything else is in the learner's folder."""

    def __init__(self, folder: Path, model: Any):
        self.folder, self.model = folder, model
        self.learner: DurableLearner | None = None

    def on_batch(self, values: list[Message]) -> tuple[list[Forecast], bool]:
        key = values[0].key
        if self.learner is None:
            self.learner = DurableLearner(self.folder / key, self.model, flush="request")
        begin = int(self.learner.positions.get(key, 0))
        new = [message for message in values if message.position >= begin]
        if not new:
            return [], self.RETAIN
        rows = [message.row for message in new]
        expected = self.learner.predict(rows).tolist() if self.learner.total else [float("nan")] * len(new)
        self.learner.learn(rows, [message.y for message in new], positions={key: new[-1].position + 1})
        return [Forecast(message.position, y) for message, y in zip(new, expected, strict=True)], self.RETAIN

    def on_notify(self) -> tuple[list[Forecast], bool]:
        return [], self.RETAIN

    def on_eof(self) -> tuple[list[Forecast], bool]:
        if self.learner is not None:
            self.learner.close()
            self.learner = None
        return [], self.RETAIN

    def notify_at(self) -> datetime | None:
        return None

    def snapshot(self) -> int:
        if self.learner is None:
            return 0
        self.learner.flush()  # Bytewax will not repeat what came before
        return max(map(int, self.learner.positions.values()), default=0)


def make_flow(source: Any, sink: Any, folder: Path, model: Any) -> Dataflow:
    """Messages in; keys and forecasts out, each made before its row was learned."""
    made = Dataflow("learning")
    keyed = op.key_on("by_key", op.input("messages", made, source), lambda message: message.key)
    op.output("forecasts", op.stateful_batch("learn", keyed, lambda state: Learning(folder, model)), sink)
    return made


def sales(n: int = 1_200, shops: int = 3) -> list[Message]:
    """Sales of some shops by weekday and weather, generated."""
    rng, found = random.Random(0), []
    for i in range(n):
        shop, day, rain = i % shops, i // shops % 7, rng.random() < 0.3
        y = 20.0 + 5 * shop + (8 if day >= 5 else 0) - 4 * rain + rng.gauss(0, 1)
        found.append(Message(f"shop-{shop}", i, {"weekday": day, "weather": "rain" if rain else "sun"}, y))
    return found


flow = make_flow(
    TestingSource(sales(), batch_size=30),
    StdOutSink(),
    Path(tempfile.mkdtemp(prefix="bytewax-stream-")),
    KernelRegressor(size="small", random_state=0),
)
