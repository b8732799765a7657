"""Quantiles of targets around their forecasts, learned row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from .. import engine as engines
from ..checks import is_number
from ..passes.quantiles import python as spec
from ..state.schema import Array, Schema
from ..state.turns import in_turn
from .intervals import LEVELS, check_coverage, numbers

NORMAL = np.sqrt(np.pi / 2)  # deviation of normal errors whose mean size is one
FOLDS = 5  # folds of the rows of `start_from`, each judged by the others


class QuantileTracker:
    r"""Quantiles and intervals of targets around forecasts, which depend on the row and follow the stream.

    .. math:: Q_\tau(x) = f + s(x)\, q_\tau(f), \quad
              q_\tau(f) \leftarrow q_\tau(f) + \gamma (\tau - [y \le Q_\tau(x)])

    The spread s is learned from the errors, as a function of the forecast f and of each column, and the quantiles of
    the scaled errors follow the rows as in adaptive conformal inference, with a number for each of eleven knots of the
    forecast. Over n rows the share of targets below :math:`Q_\tau` differs from :math:`\tau` by the change of these
    numbers, in sum, divided by 0.27 n: no assumption about the rows is made
    (``kernelstream.passes.quantiles.python`` has the formulas and the references).

    Parameters
    ----------
    columns : int, default=0
        Number of columns of the rows.
    coverage : float, default=0.9
        Default coverage of intervals, 0.5 to 0.99.
    engine : {"auto", "native", "python"}, default="auto"
        The compiled loops, or their readable specification.
    state : dict of arrays, optional
        What another tracker has learned, to continue from.

    Attributes
    ----------
    levels : (L,) array
        The quantiles that are followed, rising.
    state : dict of arrays
        Everything learned.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.trust import QuantileTracker
    >>> x = np.random.default_rng(0).normal(size=(20000, 1))
    >>> y = np.exp(x[:, 0]) * np.random.default_rng(1).normal(size=20000)
    >>> tracker = QuantileTracker(columns=1)
    >>> held = tracker.learn(np.zeros(20000), y, x)
    >>> low, high = tracker.quantiles(np.zeros(2), [0.05, 0.95], [[-1.0], [1.0]]).T
    >>> deviations = (high - low) / 2 / np.exp([-1.0, 1.0])
    >>> bool(np.abs(deviations - 1.64).max() < 0.2)  # 1.64 of a normal distribution
    True
    """

    def __init__(
        self,
        columns: int = 0,
        coverage: float = 0.9,
        engine: str = "auto",
        state: dict[str, np.ndarray] | None = None,
    ):
        self.coverage, self.engine = check_coverage(coverage), engine
        self.levels = np.array(sorted({0.5, *(end for share in (*LEVELS, self.coverage) for end in ends(share))}))
        self.state = spec.start(special.ndtri(self.levels) * NORMAL, columns) if state is None else state

    def schema(self) -> Schema:
        """What the entries of the state may be."""
        found: Schema = {name: Array(value.shape) for name, value in self.state.items()}
        return found | {"size": Array((2,), low=0.0)}

    def learn(self, forecast: Any, y: Any, X: Any = None, weight: Any = None) -> np.ndarray:
        """Learn from forecasts and targets in order; returns the quantiles (n, L) held before each row.

        Parameters
        ----------
        forecast : (n,) array
            Made before y was known.
        y : (n,) array
        X : (n, d) array, optional
            The rows, whose columns should have about unit deviation.
        weight : (n,) array, optional
            A row of weight 0 is answered and skipped; others count alike.

        Returns
        -------
        (n, L) array
            In the order of ``levels``; see :meth:`at` for others. Infinite as long as there was no row to learn from.
        """
        y = numbers("y", y)
        counted = None if weight is None else np.ascontiguousarray(np.asarray(weight) > 0, np.float64)
        return self._pass(self.state, forecast, X, y, counted)

    def quantiles(self, forecast: Any, quantiles: Any, X: Any = None, following: bool = False) -> np.ndarray:
        """Quantiles of the targets of rows, (n, k).

        Parameters
        ----------
        forecast : (n,) array
        quantiles : (k,) array of numbers from 0.005 to 0.995
        X : (n, d) array, optional
        following : bool, default=False
            Whether the row is the one that follows in the stream. Otherwise the quantiles of scaled errors are those of
            the last 4,096 rows, and do not move with each of them.

        Returns
        -------
        (n, k) array
        """
        state = self.state
        if not following:
            state = state | {"quantiles": np.ascontiguousarray(spec.settled(state, self.levels))}
        return self.at(self._pass(state, forecast, X, None, None), quantiles)

    def at(self, values: np.ndarray, quantiles: Any) -> np.ndarray:
        """Quantiles (n, k) from those (n, L) of the levels: between two of these, linear in the normal quantile."""
        asked = check_quantiles(quantiles)
        i = np.searchsorted(self.levels, asked)
        known = self.levels[i] == asked
        low, mid, high = special.ndtri(self.levels[i - ~known]), special.ndtri(asked), special.ndtri(self.levels[i])
        with np.errstate(invalid="ignore"):
            part = np.where(known, 1.0, (mid - low) / np.where(known, 1.0, high - low))
            between = (1 - part) * values[:, i - ~known] + part * values[:, i]
        return np.where(known, values[:, i], between)

    def start_from(self, forecast: Any, y: Any, X: Any = None, weight: Any = None) -> None:
        """Learn forecasts and targets whose order means nothing; parameters as in :meth:`learn`.

        There are two passes for the spread. The quantiles are those of errors over the spread that was learned from
        four fifths of the rows without their own: a spread fits the rows that it has learned too well.
        """
        for _ in range(2):
            self.learn(forecast, y, X, weight)
        counted = slice(None) if weight is None else np.asarray(weight) > 0
        f, target = numbers("forecast", forecast)[counted], numbers("y", y)[counted]
        rows = None if X is None else np.asarray(X)[counted]
        state, errors = self.state, np.empty(len(f))
        state["size"][0] = len(f)
        folds = FOLDS if len(f) >= 2 * FOLDS else 1  # very few rows are judged by all of them
        for k in range(folds):
            own = np.arange(len(f)) % folds == k
            others = ~own if folds > 1 else own
            found = QuantileTracker(len(state["columns"]), self.coverage, self.engine)
            for _ in range(2):
                found.learn(f[others], target[others], None if rows is None else rows[others])
            part = found.state | {"quantiles": np.ones_like(state["quantiles"])}
            unit = found._pass(part, f[own], None if rows is None else rows[own], None, None)[:, 0] - f[own]
            if not (unit > 0).all():
                return
            errors[own] = (target[own] - f[own]) / unit
        if len(f):
            kept = np.stack([f, np.clip(errors, -spec.LARGEST, spec.LARGEST)])[:, -spec.RECENT :]
            state["recent"][:, : kept.shape[1]] = kept
            state["quantiles"][:] = spec.settled(state, self.levels)

    def _pass(self, state: dict[str, np.ndarray], forecast: Any, X: Any, y: Any, counted: Any) -> np.ndarray:
        forecast = numbers("forecast", forecast)
        d = len(self.state["columns"])
        rows = None
        if d or X is not None:
            rows = np.ascontiguousarray(X, np.float64)
            if rows.shape != (len(forecast), d):
                raise ValueError(f"X must have {len(forecast)} rows of {d} columns, got shape {rows.shape}")
        for name, values in (("y", y), ("weight", counted)):
            if values is not None and values.shape != forecast.shape:
                raise ValueError(f"{name} must have one number for each of {len(forecast)} forecasts")
        out = np.empty((len(forecast), len(self.levels)))
        engines.get(self.engine).quantiles(state, forecast, rows, y, counted, self.levels, out)
        return out


def ends(coverage: float) -> tuple[float, float]:
    """The quantiles that an interval lies between."""
    return round(0.5 - coverage / 2, 12), round(0.5 + coverage / 2, 12)  # 0.05, not what is left of 0.5 - 0.45


def ends_for(est: Any, coverage: float | None) -> tuple[float, float]:
    """The quantiles that intervals of a regressor lie between; its own ``coverage``, else 0.9, where none is given."""
    return ends(check_coverage(getattr(est, "coverage", 0.9) if coverage is None else coverage))


def check_quantiles(quantiles: Any) -> np.ndarray:
    """The numbers, (k,); ValueError unless they are from 0.005 to 0.995."""
    low, high = ends(LEVELS[-1])
    asked: list[Any] = [quantiles] if is_number(quantiles) else list(quantiles) if np.ndim(quantiles) == 1 else [None]
    if not all(is_number(q) and low <= q <= high for q in asked):
        raise ValueError(f"quantiles must be numbers from {low} to {high}, got {quantiles!r}")
    return np.array(asked, np.float64)


# -------------------------------------------------------------------- what regressors with quantiles have in common
@in_turn
def predict_interval(self: Any, X: Any, coverage: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Intervals that hold the target in a given share of the rows, by adaptive conformal inference.

    Those from the quantile (1 - coverage)/2 to (1 + coverage)/2; see ``predict_quantiles``.

    Parameters
    ----------
    X : (n, d) array or CSR
    coverage : float, optional
        0.5 to 0.99; by default that of the model, or 0.9.

    Returns
    -------
    low, high : arrays like those of ``predict``
    """
    low, high = self._predict_with_interval(X, coverage)[1]
    return low, high


@in_turn
def forecast_interval(self: Any, X: Any, coverage: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Intervals for rows each of which is the next one of the stream.

    Those from the quantile (1 - coverage)/2 to (1 + coverage)/2 of ``forecast_quantiles``; parameters and what is
    returned as in ``predict_interval``.
    """
    low, high = self._predict_with_interval(X, coverage, following=True)[1]
    return low, high


@in_turn
def learn_interval(
    self: Any, X: Any, y: Any, sample_weight: Any = None, coverage: float | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Learn the rows in order; returns predictions and their intervals, as they were before each row.

    Parameters
    ----------
    X : (n, d) array or CSR
    y : (n,) array of numbers, or (n, k) where there may be several targets
    sample_weight : (n,) array, optional
    coverage : float, optional
        Coverage of the intervals, 0.5 to 0.99; by default that of the model, or 0.9.

    Returns
    -------
    forecast, low, high : arrays like y
        ``low`` and ``high`` are infinite before there was a row to learn from.
    """
    forecast, held = self.learn_quantiles(X, y, sample_weight, ends_for(self, coverage))
    return forecast, held[..., 0], held[..., 1]
