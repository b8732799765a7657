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
        What each row contributes; ``p`` is the probability that was given to the true class, or :func:`crps` of the
        quantiles of a number (None if not asked for). A number counts for every row of the block.
    task : {"classification", "regression", "novelty"} or None
        None: all.
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
        squares = (predicted - y) ** 2.0
        return squares if squares.ndim == 1 else squares.mean(axis=1)
    return np.asarray(predicted != y, np.float64)


def of_true_class(table: np.ndarray, classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Probabilities (n,) that a table (n, classes) gives to the labels that are true; 0 to unknown ones."""
    at = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return np.where(classes[at] == y, table[np.arange(len(y)), at], 0.0)


def log_losses(p: np.ndarray) -> np.ndarray:
    """``-log p`` of the probabilities of the true classes, (n,)."""
    return -np.log(np.maximum(p, _LEAST_PROBABILITY))


CRPS_LEVELS = (np.arange(100) + 0.5) / 100  # quantiles that stand for a distribution


def crps(y: np.ndarray, quantiles: np.ndarray, levels: np.ndarray = CRPS_LEVELS) -> np.ndarray:
    r"""Continuous ranked probability scores (n,) of distributions given by their quantiles Q (n, k).

    .. math:: \int (F(x) - [y \le x])^2 dx = 2 \int_0^1 (\tau - [y < Q_\tau]) (y - Q_\tau)\, d\tau

    by the midpoint rule: each quantile stands for the levels nearer to its own than to the others'. The unit is that of
    y, and a distribution at one point has its absolute error [1]_.

    .. [1] Gneiting, Raftery: Strictly proper scoring rules, prediction, and estimation, JASA 102 (2007).
    """
    above = np.asarray(y, np.float64)[:, None] - quantiles
    share = np.diff(np.concatenate([[0.0], (levels[1:] + levels[:-1]) / 2, [1.0]]))
    return 2 * (np.where(above < 0, levels - 1, levels) * above) @ share


def crps_or_error(y: np.ndarray, forecast: np.ndarray, quantiles: np.ndarray) -> np.ndarray:
    """The same; the absolute error of a forecast whose quantiles are not known yet."""
    known = np.isfinite(quantiles).all(axis=1)
    return crps(y, np.where(known[:, None], quantiles, np.asarray(forecast, np.float64)[:, None]))


def _cost(task: str) -> Callable[[Any, Any, Any], Any]:
    return lambda y, predicted, p: errors(task, y, predicted)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("mistake_rate", _cost("classification"), "classification"),
        Metric("accuracy", lambda y, predicted, p: predicted == y, "classification"),
        Metric("log_loss", lambda y, predicted, p: log_losses(p), "classification", needs_probability=True),
        Metric("mse", _cost("regression"), "regression"),
        Metric("rmse", _cost("regression"), "regression", math.sqrt),
        Metric("mae", lambda y, predicted, p: np.abs(predicted - y), "regression"),
        Metric("crps", lambda y, predicted, p: p, "regression", needs_probability=True),
        Metric("novelty_rate", _cost("novelty"), "novelty"),
    )
}

# always measured; the first is the curve when nothing else is asked for
BASIC = {"classification": ("mistake_rate",), "regression": ("mse", "mae"), "novelty": ("novelty_rate",)}


def choose(wanted: Any, task: str) -> list[Metric]:
    """Metrics asked for (a name, a callable, a Metric, or several), then the basic ones of the task."""
    if wanted is None:
        wanted = ()
    elif isinstance(wanted, (str, Metric)) or callable(wanted):
        wanted = (wanted,)
    elif not isinstance(wanted, Iterable):
        raise ValueError(f"metrics must be names or callables, got {wanted!r}")
    chosen: dict[str, Metric] = {}
    for item in wanted:
        metric = _one(item)
        if metric.task not in (None, task):
            raise ValueError(f"metric {metric.name!r} is for {metric.task}, but the task is {task}")
        chosen[metric.name] = metric
    for name in BASIC[task]:
        chosen.setdefault(name, METRICS[name])
    return list(chosen.values())


def _one(item: Any) -> Metric:
    if isinstance(item, Metric):
        return item
    if callable(item):
        return Metric(getattr(item, "__name__", type(item).__name__), lambda y, predicted, p: item(y, predicted))
    if item in METRICS:
        return METRICS[item]
    raise unknown("metric", item, METRICS)
