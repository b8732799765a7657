"""Means, deviations, the best line of each data set, and the cells that fall behind the paper."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from typing import Any

from ._experiment import Algorithm, Data, Experiment, Printed
from ._records import Records
from ._runner import repeat_key, tuned

ERRORS = 3.0  #: a larger difference from the paper counts, in standard errors of the difference
DIGITS = {"mistakes": 2, "accuracy": 2, "score": 2, "regret": 2, "seconds": 2, "relative": 3}  #: that papers print


@dataclass(frozen=True)
class Cell:
    """One algorithm on one data set.

    Attributes
    ----------
    data, algorithm : str
    point : dict
        Values of the sweep; empty in a table.
    values, seconds : list of float
        One per repetition. Seconds of the processor where the runs have them, otherwise of the clock.
    size, peak_mb : float or None
    settings : dict
        With the best of the grid.
    printed : Printed or None
    error : str or None
        Why there is no value.
    curve : (rows, values) or None
    rows : int or None
    figures : dict
        Further measures, as means over the repetitions.
    orders : int
        Repetitions that are declared, as many as the paper has; there may be fewer values.
    """

    data: str
    algorithm: str
    point: dict[str, Any]
    values: list[float]
    seconds: list[float]
    size: float | None
    peak_mb: float | None
    settings: dict[str, Any]
    printed: Printed | None
    error: str | None = None
    curve: tuple[list[float], list[float]] | None = None
    rows: int | None = None
    figures: dict[str, float] = field(default_factory=dict)
    orders: int = 1

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def std(self) -> float:
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

    @property
    def time(self) -> float:
        return statistics.fmean(self.seconds)

    def shown(self, measure: str) -> str:
        """The mean, the deviation where it ran more than once, and how many orders where some lack; a dash without."""
        if not self.values:
            return "—"
        text = with_deviation(self.mean, self.std if len(self.values) > 1 else None, measure)
        return text if self.complete else f"{text} [{len(self.values)}/{self.orders}]"

    @property
    def complete(self) -> bool:
        """Whether all declared orders ran."""
        return len(self.values) >= self.orders

    def behind(self, higher_is_better: bool) -> float | None:
        """By how much the paper is better, in standard errors of the difference of both means; None without one.

        The paper's mean is one of all declared orders. A deviation that lacks, or ours of few orders, is the other's.
        """
        if self.printed is None or not self.values:
            return None
        gap = self.printed.value - self.mean if higher_is_better else self.mean - self.printed.value
        theirs = self.printed.std or self.std
        ours = self.std if self.complete and len(self.values) > 1 else max(self.std, theirs)
        error = math.sqrt(theirs**2 / self.orders + ours**2 / len(self.values))
        return gap / max(error, 1e-12)


def table(experiment: Experiment, records: Records) -> list[Cell]:
    """All cells of an experiment that have been run, in the order of its file."""
    found = (
        _cell(experiment, data, algorithm, point, records)
        for data, algorithm in experiment.lines()
        for point in algorithm.points()
    )
    return [cell for cell in found if cell is not None]


def _cell(
    experiment: Experiment, data: Data, algorithm: Algorithm, point: dict[str, Any], records: Records
) -> Cell | None:
    settings = tuned(experiment, data, algorithm, point, records)
    if settings is None:
        return None
    runs = [
        records.get(repeat_key(experiment, data, algorithm, settings, order)) for order in range(experiment.repeats)
    ]
    there = [run for run in runs if run is not None]
    if not there:
        return None
    good = [run for run in there if run.get("value") is not None]
    sizes = [run["size"] for run in good if run.get("size") is not None]
    peaks = [run["peak_mb"] for run in good if run.get("peak_mb") is not None]
    return Cell(
        data=data.name,
        algorithm=algorithm.label,
        point=point,
        values=[run["value"] for run in good],
        seconds=[run.get("cpu_seconds", run["seconds"]) for run in good],
        size=statistics.fmean(sizes) if sizes else None,
        peak_mb=statistics.fmean(peaks) if peaks else None,
        settings=settings,
        printed=None if point else experiment.printed.get(data.name, {}).get(algorithm.label),
        error=None if good else there[0].get("error"),
        curve=_mean_curve([run["curve"] for run in good if run.get("curve")]),
        rows=good[0].get("rows") if good else None,
        figures=_mean_figures([run["figures"] for run in good if run.get("figures")]),
        orders=experiment.repeats,
    )


def _mean_figures(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.fmean(run[name] for run in runs) for name in (runs[0] if runs else ())}


def _mean_curve(curves: list[list[list[float]]]) -> tuple[list[float], list[float]] | None:
    """Mean over repetitions of curves on the same rows."""
    if not curves:
        return None
    rows = curves[0][0]
    same = [values for at, values in curves if at == rows]
    return rows, [statistics.fmean(column) for column in zip(*same, strict=True)]


def figure(value: float) -> str:
    """Four digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def number(value: float, measure: str, scale: float | None = None) -> str:
    """As many digits as the papers print; ``scale`` is the number that a deviation belongs to."""
    if measure in DIGITS:
        return f"{value:.{DIGITS[measure]}f}"
    if measure == "arena":
        return figure(value)
    return f"{value:.1e}" if 0 < abs(scale or value) < 1e-4 else f"{value:.5f}"


def with_deviation(mean: float, deviation: float | None, measure: str) -> str:
    """A mean and its deviation, if there is one."""
    return number(mean, measure) + ("" if deviation is None else f" ± {number(deviation, measure, mean)}")


def worse(experiment: Experiment, cells: list[Cell]) -> list[Cell]:
    """Cells that fall behind the paper."""
    if experiment.kind == "arena":  # the printed figures are those of peers on another machine
        return []
    return [cell for cell in cells if verdict(experiment, cell) == "behind"]


def verdict(experiment: Experiment, cell: Cell) -> str | None:
    """Ahead of the paper or behind it, by more than three standard errors; level otherwise, or in all printed digits.

    None where there is nothing to compare with.
    """
    gap = cell.behind(experiment.more_is_better)
    if gap is None or cell.printed is None:
        return None
    digits = DIGITS.get(experiment.measure, 5)
    if abs(gap) <= ERRORS or round(cell.mean, digits) == round(cell.printed.value, digits):
        return "level"
    return "behind" if gap > 0 else "ahead"


def best(experiment: Experiment, cells: list[Cell]) -> dict[str, float]:
    """The best mean of each data set."""
    pick = max if experiment.more_is_better else min
    sets = {cell.data for cell in cells}
    return {
        d: pick(c.mean for c in cells if c.data == d and c.values)
        for d in sets
        if any(c.values for c in cells if c.data == d)
    }
