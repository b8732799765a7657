"""Metrics that are means over rows, so that a stream needs one sum for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..registry.names import unknown

_LEAST_PROBABILITY = np.finfo(np.float64).eps  # a probability of 0 costs 36, as in scikit-learn


@dataclass(frozen=True)
class Metric:
    """A mean over rows.

    Attributes
    ----------
    name : str
    rows : callable (y, predicted, p) -> (n,) or a number
        What each row contributes; ``p`` is the probability that was given to the true class (None if not asked for).
        A number counts for every row of the block.
    task : {"classification", "regression"} or None
        None: both.
    finish : callable float -> float
        Applied to the mean.
    """

    name: str
    rows: Callable[[Any, Any, Any], Any]
    task: str | None = None
    finish: Callable[[float], float] = float
    needs_probability: bool = False


def errors(task: str, y: Any, predicted: np.ndarray) -> np.ndarray:
    """What each forecast cost, (n,) float64: a mistake 1, a number the square of its error, a novelty 1."""
    if task == "novelty":
        return (predicted < 0).astype(np.float64)
    if task == "regression":
        return ((predicted - y) ** 2.0).reshape(len(predicted), -1).mean(axis=1)
    return np.asarray(predicted != y, np.float64)


def of_true_class(table: np.ndarray, classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Probabilities (n,) that a table (n, classes) gives to the labels that are true; 0 to unknown ones."""
    at = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return np.where(classes[at] == y, table[np.arange(len(y)), at], 0.0)


def log_losses(p: np.ndarray) -> np.ndarray:
    """``-log p`` of the probabilities of the true classes, (n,)."""
    return -np.log(np.maximum(p, _LEAST_PROBABILITY))


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("mistake_rate", lambda y, predicted, p: predicted != y, "classification"),
        Metric("accuracy", lambda y, predicted, p: predicted == y, "classification"),
        Metric("log_loss", lambda y, predicted, p: log_losses(p), "classification", needs_probability=True),
        Metric("mse", lambda y, predicted, p: (predicted - y) ** 2, "regression"),
        Metric("rmse", lambda y, predicted, p: (predicted - y) ** 2, "regression", math.sqrt),
        Metric("mae", lambda y, predicted, p: np.abs(predicted - y), "regression"),
    )
}

# always measured; the first is the curve when nothing else is asked for
BASIC = {"classification": ("mistake_rate",), "regression": ("mse", "mae")}


def choose(wanted: Any, task: str) -> list[Metric]:
    """Metrics asked for (a name, a callable, a Metric, or several), then the basic ones of the task."""
    if wanted is None:
        wanted = ()
    elif isinstance(wanted, (str, Metric)) or callable(wanted):
        wanted = (wanted,)
    chosen: dict[str, Metric] = {}
    for item in _each(wanted):
        metric = _one(item)
        if metric.task not in (None, task):
            raise ValueError(f"metric {metric.name!r} is for {metric.task}, and this is {task}")
        chosen[metric.name] = metric
    for name in BASIC[task]:
        chosen.setdefault(name, METRICS[name])
    return list(chosen.values())


def _each(wanted: Any) -> Iterable[Any]:
    if not isinstance(wanted, Iterable):
        raise ValueError(f"metrics must be names or callables, got {wanted!r}")
    return wanted


def _one(item: Any) -> Metric:
    if isinstance(item, Metric):
        return item
    if callable(item):
        return Metric(getattr(item, "__name__", type(item).__name__), lambda y, predicted, p: item(y, predicted))
    if item in METRICS:
        return METRICS[item]
    raise unknown("metric", item, METRICS)
