"""How far off a forecast may be, learned row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from .. import engine as engines
from ..checks import is_number
from ..state.schema import Array, Schema

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)  # coverages that are followed
STEPS = np.array([0.002, 0.01, 0.05])  # of the trackers, in units of the usual error


class IntervalTracker:
    r"""Intervals around forecasts that hold the target in a given share of the rows, however the stream changes.

    .. math:: \hat y_t \pm c_t \hat q_t u_t, \qquad c_{t+1} = c_t + \gamma ([\text{missed}] - \alpha)

    u is the running size of the errors, q an average of quantiles followed with three step sizes (adaptive conformal
    inference, averaged by pinball loss), and c the factor that keeps the coverage: over n rows the share of misses
    differs from :math:`\alpha` by the change of c divided by :math:`\gamma n`, with :math:`\gamma = 0.005`. No
    assumption about the rows is made (``kernelstream.passes.trust.python`` has the formulas and the references).

    Parameters
    ----------
    coverage : float, default=0.9
        Share of the rows that the intervals of :meth:`learn` should hold, 0.5 to 0.99.
    engine : {"auto", "native", "python"}
    state : dict of arrays, optional
        What another tracker has learned, to continue from.

    Attributes
    ----------
    state : dict of arrays
        Everything learned.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.trust import IntervalTracker
    >>> y = np.random.default_rng(0).normal(size=20000)
    >>> low, high = IntervalTracker().learn(np.zeros(20000), y)
    >>> print(f"{np.mean((low <= y) & (y <= high)):.2f}")
    0.90
    """

    def __init__(self, coverage: float = 0.9, engine: str = "auto", state: dict[str, np.ndarray] | None = None):
        self.coverage, self.engine = check_coverage(coverage), engine
        self.levels = np.array(sorted({*LEVELS, self.coverage}))  # coverages that are followed
        self.state = self._start() if state is None else state

    def _start(self) -> dict[str, np.ndarray]:
        quantiles = special.ndtri(0.5 + 0.5 * self.levels) * np.sqrt(np.pi / 2)  # of normal errors, by their mean
        shape = (len(self.levels), len(STEPS))
        return {
            "size": np.zeros(2),
            "quantiles": np.tile(quantiles[:, None], (1, shape[1])),
            "weights": np.full(shape, 1.0 / shape[1]),
            "factors": np.ones(shape[0]),
        }

    def schema(self) -> Schema:
        """What the entries of the state may be."""
        shape = (len(self.levels), len(STEPS))
        return {
            "size": Array((2,), low=0.0),
            "quantiles": Array(shape, low=0.0),
            "weights": Array(shape, low=0.0, high=1.0),
            "factors": Array(shape[:1]),
        }

    def learn(
        self, forecast: Any, y: Any, weight: Any = None, spread: Any = None, coverage: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn from forecasts and targets in order; returns the intervals held before each row.

        Parameters
        ----------
        forecast : (n,) array
            Made before y was known.
        y : (n,) array
        weight : (n,) array, optional
            A row of weight 0 is answered and skipped; others count alike.
        spread : (n,) array of numbers > 0, optional
            How uncertain the model thinks each forecast is (for example the deviation of a Gaussian process): widths
            are in proportion to it. Give it for all rows or for none.
        coverage : float, optional
            Coverage of the intervals that are returned, see :meth:`interval`.

        Returns
        -------
        low, high : (n,) arrays
            Infinite as long as there was no row to learn from.
        """
        forecast, y = numbers("forecast", forecast), numbers("y", y)
        if y.shape != forecast.shape:
            raise ValueError(f"got {len(forecast)} forecasts, but {len(y)} targets")
        spread = _spreads(spread, len(y))
        errors = np.abs(y - forecast) / spread
        counted = np.ones(len(y), bool) if weight is None else np.asarray(weight) > 0
        coverage = self.coverage if coverage is None else check_coverage(coverage)
        if counted.all():
            half = between(self.levels, coverage, self._pass(errors))
        else:  # a row that is skipped has the interval of the next one that is not
            of_counted = np.append(between(self.levels, coverage, self._pass(errors[counted])), self._half(coverage))
            half = of_counted[np.cumsum(counted) - counted]
        return forecast - half * spread, forecast + half * spread

    def start_from(self, errors: np.ndarray) -> None:
        r"""Begin with errors (n,) whose order means nothing: of a coverage c the :math:`\lceil (n + 1) c \rceil`-th.

        That is split conformal prediction (Papadopoulos et al. 2002).
        """
        self.state.update(self._start())
        if n := len(errors):
            usual = float(errors.mean())
            places = np.minimum(np.ceil((n + 1) * self.levels - 1e-9).astype(int), n) - 1
            self.state["size"][:] = n, usual
            self.state["quantiles"][:] = np.sort(errors)[places, None] / (usual or 1.0)

    def interval(self, forecast: Any, coverage: float | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Intervals around forecasts.

        Parameters
        ----------
        forecast : (n,) array
        coverage : float, optional
            0.5 to 0.99, by default that of the tracker. One that is not among ``levels`` has a width between those of
            its neighbours, in proportion to log(1 - coverage).

        Returns
        -------
        low, high : (n,) arrays
        """
        forecast = numbers("forecast", forecast)
        half = self._half(self.coverage if coverage is None else check_coverage(coverage))
        return forecast - half, forecast + half

    def _half(self, coverage: float) -> float:
        state = self.state
        if state["size"][0] == 0:
            return float("inf")
        halves = np.maximum(state["factors"], 0.0) * (state["weights"] * state["quantiles"]).sum(axis=1)
        return float(between(self.levels, coverage, halves) * state["size"][1])

    def _pass(self, errors: np.ndarray) -> np.ndarray:
        half = np.empty((len(errors), len(self.levels)))
        engines.get(self.engine).track(self.state, np.ascontiguousarray(errors), self.levels, STEPS, half)
        return half


def between(levels: Any, coverage: float, halves: np.ndarray) -> np.ndarray:
    """Half-widths (...) of a coverage from those (..., L) of all levels, rising."""
    i = int(np.searchsorted(levels, coverage))
    if levels[i] == coverage:
        return halves[..., i]
    low, mid, high = -np.log1p(-np.array([levels[i - 1], coverage, levels[i]]))
    part = (mid - low) / (high - low)
    return (1 - part) * halves[..., i - 1] + part * halves[..., i]


def check_coverage(coverage: Any) -> float:
    """The number itself; ValueError unless it is one from 0.5 to 0.99."""
    if not is_number(coverage) or not LEVELS[0] <= coverage <= LEVELS[-1]:
        raise ValueError(f"coverage must be a number from {LEVELS[0]} to {LEVELS[-1]}, got {coverage!r}")
    return float(coverage)


def numbers(name: str, values: Any) -> np.ndarray:
    """The values as an array (n,); ValueError unless they are finite numbers."""
    values = np.ascontiguousarray(values, np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite numbers of shape (n,), got shape {values.shape}")
    return values


def _spreads(spread: Any, n: int) -> Any:
    if spread is None:
        return 1.0
    spread = numbers("spread", spread)
    if spread.shape != (n,) or (spread <= 0).any():
        raise ValueError("spread must have one number > 0 for each row")
    return spread
