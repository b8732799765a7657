"""What Prometheus reads: how many requests came and how long they took, and how well the models perform."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .consume import Consumed
from .describe import wrong_cells
from .extras import needs
from .learner import DurableLearner

with needs("serve"):
    from prometheus_client import (
        CollectorRegistry,
        Counter,
        Gauge,
        Histogram,
        ProcessCollector,
        generate_latest,
        start_http_server,
    )
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
    from prometheus_client.registry import Collector

TIME_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)  # seconds, of the times of answers


Learners = Callable[[], Iterable[tuple[str, DurableLearner]]]  # gives names and learners: those that are in memory


class _Families(Collector):
    """Families of numbers that a function makes whenever Prometheus asks for them."""

    def __init__(self, make: Callable[[], Iterable[Any]]):
        self.make = make

    def collect(self) -> Iterable[Any]:
        return self.make()


def _registry(*makes: Callable[[], Iterable[Any]]) -> CollectorRegistry:
    """A registry of what some functions make, and of the process."""
    registry = CollectorRegistry(auto_describe=False)
    for make in makes:
        registry.register(_Families(make))
    ProcessCollector(registry=registry)
    return registry


def _models(learners: Learners) -> Iterable[Any]:
    """How well models perform."""
    families: dict[str, Any] = {}
    for name, learner in learners():
        for kind, fact, text, *values in _facts(learner):
            family = families.setdefault(fact, kind(f"kernelstream_{fact}", text, labels=["model"]))
            if values[0] is not None:
                family.add_metric([name], *values)
    return families.values()


def _facts(learner: DurableLearner) -> list[tuple[Any, ...]]:
    """Kind, name, description and value of what is known of a learner; None where it is not known."""
    health, scores, rival = learner.health(), learner.champion.scores.summary(), learner.champions.challenger
    journal, snapshots = learner.keeper.journal, learner.keeper.snapshots
    counter, gauge = CounterMetricFamily, GaugeMetricFamily
    wrong, changes = wrong_cells(learner.view.model) or {}, learner.champion.scores.marks
    against = None if rival is None else rival.scores.summary()["recent"]
    age = time.monotonic() - snapshots.written
    return [
        (counter, "rows_learned", "Rows learned", learner.total),
        (counter, "wrong_cells", "Cells of learned rows taken as missing, as they did not fit", sum(wrong.values())),
        (gauge, "version", "Version of the champion", learner.version),
        (gauge, "healthy", "1 if the model has no problem, else 0", health["status"] == "ok"),
        (gauge, "waiting_calls", "Calls that wait to be learned", health["waiting"]),
        (gauge, "lost_calls", "Lost calls that had been answered and are not acknowledged", health["lost"]),
        (gauge, "error_whole", "Mean error of all rows, each before it was learned", scores["whole"]),
        (gauge, "error_recent", "Mean error of the last 1,000 rows", scores["recent"]),
        (gauge, "log_loss_recent", "Mean log-loss of the last 1,000 rows", scores.get("log_loss_recent")),
        (gauge, "challenger_error_recent", "Mean error of the challenger on the last 1,000 rows", against),
        (gauge, "changes", "Changes of the loss that were detected", len(changes)),
        (gauge, "snapshot_age_seconds", "Seconds since the latest snapshot was written", age),
        (gauge, "rows_since_snapshot", "Rows a restart would learn again", learner.keeper.rows_since_snapshot),
        (gauge, "log_bytes", "Bytes of the journal on the disk", journal.size()),
        (SummaryMetricFamily, "fsync_seconds", "Times of writing calls", journal.commits, journal.commit_seconds),
    ]


def _messages(done: Consumed) -> list[Any]:
    """What a reader has done with its messages."""
    facts = [
        ("messages", "Messages read", done.messages),
        ("messages_left_out", "Messages that could not be used", done.skipped),
        ("outages", "How often the reader waited for the broker or the disk", done.outages),
    ]
    return [CounterMetricFamily(f"kernelstream_{fact}", text, value) for fact, text, value in facts]


@contextlib.contextmanager
def serve_reader(port: int, learners: Learners, done: Consumed) -> Iterator[int]:
    """Context in which a port of this machine (0 for any) serves the metrics of a reader of messages to Prometheus."""
    registry = _registry(lambda: _models(learners), lambda: _messages(done))
    server, thread = start_http_server(port, "127.0.0.1", registry)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Metrics:
    """The metrics of a server.

    Parameters
    ----------
    learners : callable
        Gives names and learners: those that are in memory.
    waiting_rows : callable
        Gives the number of rows that wait for a prediction.
    """

    def __init__(self, learners: Learners, waiting_rows: Callable[[], int]) -> None:
        self.registry = _registry(lambda: _models(learners))
        waiting = Gauge("kernelstream_waiting_rows", "Rows that wait for a prediction", registry=self.registry)
        waiting.set_function(waiting_rows)
        counter = Counter(
            "kernelstream_requests", "Responses by path and status", ["path", "status"], registry=self.registry
        )
        self.responses = functools.cache(counter.labels)  # to find the counter of a path and status takes long
        self.seconds = {
            name: Histogram(
                f"kernelstream_{name}_seconds", f"Times to {name}", buckets=TIME_BOUNDS, registry=self.registry
            )
            for name in ("predict", "learn")
        }

    def text(self) -> bytes:
        """Prometheus' text."""
        found: bytes = generate_latest(self.registry)
        return found
