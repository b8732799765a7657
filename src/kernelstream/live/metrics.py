"""What Prometheus reads: how many requests came and how long they took, and how well the models perform."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._extra import needs
from .consume import Consumed
from .describe import wrong_cells
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


class Models(Collector):
    """How well models perform.

    Parameters
    ----------
    learners : callable
        Gives names and learners: those that are in memory.
    """

    def __init__(self, learners: Callable[[], Iterable[tuple[str, DurableLearner]]]):
        self.learners = learners

    def collect(self) -> Iterator[Any]:
        """One family of numbers after another, as the registry wants them."""
        families: dict[str, Any] = {}
        for name, learner in self.learners():
            for kind, fact, text, *values in _facts(learner):
                family = families.setdefault(fact, kind(f"kernelstream_{fact}", text, labels=["model"]))
                if values[0] is not None:
                    family.add_metric([name], *values)
        yield from families.values()


def _facts(learner: DurableLearner) -> list[tuple[Any, ...]]:
    """Kind, name, description and value of what is known of a learner; None where it is not known."""
    health, scores, rival, log = learner.health(), learner.champion.scores.summary(), learner.challenger, learner.log
    counter, gauge = CounterMetricFamily, GaugeMetricFamily
    wrong, changes = wrong_cells(learner.view.model) or {}, learner.champion.scores.marks
    against = None if rival is None else rival.scores.summary()["recent"]
    age = time.time() - learner.snapshot_time
    return [
        (counter, "rows_learned", "Rows learned", learner.total),
        (
            counter,
            "wrong_cells",
            "Cells of learned rows that did not fit and count as missing",
            sum(wrong.values()),
        ),
        (counter, "rollbacks", "How often a former champion was restored automatically", learner.rollbacks),
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
        (gauge, "rows_since_snapshot", "Rows that a restart would have to learn again", learner.rows_since_snapshot),
        (gauge, "log_bytes", "Bytes of the log on the disk", log.size()),
        (SummaryMetricFamily, "fsync_seconds", "Times to force the log to the disk", log.syncs, log.sync_seconds),
    ]


class Messages(Collector):
    """What a reader has done with its messages."""

    def __init__(self, done: Consumed):
        self.done = done

    def collect(self) -> Iterator[Any]:
        """One counter after another."""
        done = self.done
        yield CounterMetricFamily("kernelstream_messages", "Messages read", done.messages)
        yield CounterMetricFamily("kernelstream_messages_left_out", "Messages that could not be used", done.skipped)
        yield CounterMetricFamily(
            "kernelstream_outages", "How often the reader waited for the broker or the disk", done.outages
        )


@contextlib.contextmanager
def serve_reader(
    port: int, learners: Callable[[], Iterable[tuple[str, DurableLearner]]], done: Consumed
) -> Iterator[int]:
    """Context in which a port of this machine (0 for any) serves the metrics of a reader of messages to Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Models(learners))
    registry.register(Messages(done))
    ProcessCollector(registry=registry)
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
        As in :class:`Models`.
    waiting_rows : callable
        Gives the number of rows that wait for a prediction.
    """

    def __init__(
        self, learners: Callable[[], Iterable[tuple[str, DurableLearner]]], waiting_rows: Callable[[], int]
    ) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(Models(learners))
        waiting = Gauge("kernelstream_waiting_rows", "Rows that wait for a prediction", registry=self.registry)
        waiting.set_function(waiting_rows)
        ProcessCollector(registry=self.registry)
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
