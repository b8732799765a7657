"""A durable learner as an operator of Bytewax, a stream engine: one model for each key, each message learned once.

Bytewax reads, routes by key and recovers; the learner keeps its own log, its snapshots, and the position up to which it
has learned. After a crash Bytewax gives some messages again (its recovery is at least once), and the learner leaves out
those it has: learning is exactly once, whatever the engine repeats.

    pip install kernelstream bytewax
    python -m bytewax.run examples/bytewax_stream.py

For Kafka put ``KafkaSource`` of ``bytewax.connectors.kafka`` in the place of ``TestingSource``: the offset of a message
is its position.
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
from kernelstream.live import DurableLearner


class Told(NamedTuple):
    """A message: its key, where it is in its source, the row, and what came true."""

    key: str
    position: int
    row: dict[str, Any]
    y: float


class Forecast(NamedTuple):
    """What was expected of a message before it was learned."""

    position: int
    y: float


class Learning(StatefulBatchLogic):
    """The operator for one key. What Bytewax keeps is the position; everything else is in the learner's folder."""

    def __init__(self, folder: Path, model: Any):
        self.folder, self.model = folder, model
        self.learner: DurableLearner | None = None

    def on_batch(self, values: list[Told]) -> tuple[list[Forecast], bool]:
        key = values[0].key
        if self.learner is None:
            self.learner = DurableLearner(self.folder / key, self.model, flush="request")
        begin = int(self.learner.positions.get(key, 0))
        new = [told for told in values if told.position >= begin]
        if not new:
            return [], self.RETAIN
        rows = [told.row for told in new]
        expected = self.learner.predict(rows).tolist() if self.learner.total else [float("nan")] * len(new)
        self.learner.learn(rows, [told.y for told in new], positions={key: new[-1].position + 1})
        return [Forecast(told.position, y) for told, y in zip(new, expected, strict=True)], self.RETAIN

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
        self.learner.flush()  # Bytewax will not give again what came before
        return max(map(int, self.learner.positions.values()), default=0)


def make_flow(source: Any, sink: Any, folder: Path, model: Any) -> Dataflow:
    """Messages in; keys and forecasts out, each made before its row was learned."""
    made = Dataflow("learning")
    keyed = op.key_on("by_key", op.input("messages", made, source), lambda told: told.key)
    op.output("forecasts", op.stateful_batch("learn", keyed, lambda state: Learning(folder, model)), sink)
    return made


def sales(n: int = 1_200, shops: int = 3) -> list[Told]:
    """Sales of some shops by weekday and weather, generated."""
    rng, found = random.Random(0), []
    for i in range(n):
        shop, day, rain = i % shops, i // shops % 7, rng.random() < 0.3
        y = 20.0 + 5 * shop + (8 if day >= 5 else 0) - 4 * rain + rng.gauss(0, 1)
        found.append(Told(f"shop-{shop}", i, {"weekday": day, "weather": "rain" if rain else "sun"}, y))
    return found


flow = make_flow(
    TestingSource(sales(), batch_size=30),
    StdOutSink(),
    Path(tempfile.mkdtemp(prefix="bytewax-stream-")),
    KernelRegressor(size="small", random_state=0),
)
