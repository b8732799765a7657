"""Counts and times of answers, and how the models do, as text for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import Any

from .store import Store

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)  # seconds, of the times of answers


class Times:
    """How long answers took: a histogram in Prometheus' form."""

    def __init__(self) -> None:
        self.counts, self.sum, self.n = [0] * len(BOUNDS), 0.0, 0

    def add(self, seconds: float) -> None:
        """Count one answer."""
        self.sum += seconds
        self.n += 1
        place = bisect_left(BOUNDS, seconds)
        if place < len(BOUNDS):
            self.counts[place] += 1

    def lines(self, name: str) -> list[str]:
        """The histogram as lines of text."""
        found = [f'{name}_bucket{{le="{bound}"}} {n}' for bound, n in zip(BOUNDS, accumulate(self.counts))]
        return [f"# TYPE {name} histogram", *found, f'{name}_bucket{{le="+Inf"}} {self.n}', f"{name}_sum {self.sum!r}",
                f"{name}_count {self.n}"]  # fmt: skip


def metrics_text(store: Store, counts: dict[Any, int], times: dict[str, Times]) -> str:
    """Everything that Prometheus reads: responses by route and status, their times, and the models that are awake."""
    lines = ["# TYPE kernelstream_requests_total counter"]
    for (path, status), count in sorted(counts.items()):
        lines.append(f'kernelstream_requests_total{{path="{path}",status="{status}"}} {count}')
    for name, taken in times.items():
        lines += taken.lines(f"kernelstream_{name}_seconds")
    kinds = {"rows_learned_total": "counter", "version": "gauge", "healthy": "gauge", "waiting_calls": "gauge"}
    kinds |= {"error_whole": "gauge", "error_recent": "gauge", "log_loss_recent": "gauge", "changes": "gauge"}
    kinds |= {"lost_calls": "gauge"}
    found: dict[str, list[str]] = {kind: [] for kind in kinds}
    for name in store.awake():
        with store.use(name) as learner:
            health, about = learner.health(), learner.champion.scores.summary()
            values = {
                "rows_learned_total": learner.total, "version": learner.version,
                "healthy": int(health["status"] == "ok"), "waiting_calls": health["waiting"],
                "lost_calls": health["lost"],
                "error_whole": about["whole"], "error_recent": about["recent"],
                "log_loss_recent": about.get("log_loss_recent"), "changes": len(learner.champion.scores.marks),
            }  # fmt: skip
        for kind, value in values.items():
            if value is not None:
                found[kind].append(f'kernelstream_{kind}{{model="{name}"}} {value!r}')
    for kind, values_of in found.items():
        lines += [f"# TYPE kernelstream_{kind} {kinds[kind]}", *values_of]
    return "\n".join(lines) + "\n"
