"""What Prometheus reads: how many requests came and how long they took, and how the models do."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._extra import needs
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

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)  # seconds, of the times of answers

MODEL_COUNTERS = {
    "rows_learned": "Rows learned",
    "wrong_cells": "Cells of learned rows taken as missing, because they did not fit their column",
    "rollbacks": "Times that the former champion came back by itself",
}
MODEL_GAUGES = {
    "version": "Version of the champion",
    "healthy": "1 if the model has no problem, else 0",
    "waiting_calls": "Calls that wait to be learned",
    "lost_calls": "Calls that were answered, cannot be read any more, and nobody has acknowledged",
    "error_whole": "Mean error of all rows, each before it was learned",
    "error_recent": "Mean error of the last 1,000 rows",
    "log_loss_recent": "Mean log-loss of the last 1,000 rows",
    "challenger_error_recent": "Mean error of the challenger on the last 1,000 rows",
    "changes": "Changes of the loss that were marked",
    "snapshot_age_seconds": "Seconds since the latest snapshot was written",
    "rows_since_snapshot": "Rows that a restart would have to learn again",
    "log_bytes": "Bytes of the log on the disk",
}


class Models(Collector):
    """How models do.

    Parameters
    ----------
    learners : callable
        Gives names and learners: those that are in memory.
    """

    def __init__(self, learners: Callable[[], Iterable[tuple[str, DurableLearner]]]):
        self.learners = learners

    def collect(self) -> Iterator[Any]:
        """One family of numbers after another, as the registry wants them."""
        label = ["model"]
        counters = {name: CounterMetricFamily(f"kernelstream_{name}", text, labels=label)
                    for name, text in MODEL_COUNTERS.items()}  # fmt: skip
        gauges = {name: GaugeMetricFamily(f"kernelstream_{name}", text, labels=label)
                  for name, text in MODEL_GAUGES.items()}  # fmt: skip
        fsync = SummaryMetricFamily("kernelstream_fsync_seconds", "Times to force the log to the disk", labels=label)
        for name, learner in self.learners():
            for fact, value in _facts(learner).items():
                if value is not None:
                    (counters.get(fact) or gauges[fact]).add_metric([name], value)
            fsync.add_metric([name], learner.log.syncs, learner.log.sync_seconds)
        yield from (*counters.values(), *gauges.values(), fsync)


def _facts(learner: DurableLearner) -> dict[str, float | None]:
    health, scores, rival = learner.health(), learner.champion.scores.summary(), learner.challenger
    return {
        "rows_learned": learner.total,
        "wrong_cells": sum((wrong_cells(learner.view.model) or {}).values()),
        "rollbacks": learner.rollbacks,
        "version": learner.version,
        "healthy": health["status"] == "ok",
        "waiting_calls": health["waiting"],
        "lost_calls": health["lost"],
        "error_whole": scores["whole"],
        "error_recent": scores["recent"],
        "log_loss_recent": scores.get("log_loss_recent"),
        "challenger_error_recent": None if rival is None else rival.scores.summary()["recent"],
        "changes": len(learner.champion.scores.marks),
        "snapshot_age_seconds": time.time() - learner.snapshot_time,
        "rows_since_snapshot": learner.rows_since_snapshot,
        "log_bytes": learner.log.size(),
    }


class Messages(Collector):
    """What a reader has done with its messages.

    Parameters
    ----------
    done : callable
        Gives a :class:`.consume.Consumed`.
    """

    def __init__(self, done: Callable[[], Any]):
        self.done = done

    def collect(self) -> Iterator[Any]:
        """One counter after another."""
        done = self.done()
        yield CounterMetricFamily("kernelstream_messages", "Messages read", done.messages)
        yield CounterMetricFamily("kernelstream_messages_left_out", "Messages that could not be used", done.skipped)
        yield CounterMetricFamily(
            "kernelstream_outages", "Times that the broker or the disk was waited for", done.outages
        )


def serve_reader(
    port: int, learners: Callable[[], Iterable[tuple[str, DurableLearner]]], done: Callable[[], Any]
) -> Callable[[], None]:
    """Answer Prometheus on a port of this machine, for a reader of messages; the function returned ends it."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Models(learners))
    registry.register(Messages(done))
    ProcessCollector(registry=registry)
    server, thread = start_http_server(port, "127.0.0.1", registry)

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return end


class Metrics:
    """All of a server.

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
            name: Histogram(f"kernelstream_{name}_seconds", f"Times to {name}", buckets=BOUNDS, registry=self.registry)
            for name in ("predict", "learn")
        }

    def text(self) -> bytes:
        """Prometheus' text."""
        found: bytes = generate_latest(self.registry)
        return found
