"""A regressor with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..next_row import for_next_row
from ..state.nested import State
from ..state.schema import Inside, Schema
from ..state.turns import in_turn
from ..state.undo import all_or_nothing
from ._wrapper import Wrapper
from .intervals import check_coverage
from .quantiles import (
    QuantileTracker,
    check_quantiles,
    ends_for,
    forecast_interval,
    learn_interval,
    predict_interval,
)


@dataclass(eq=False, repr=False)
class WithIntervals(Wrapper):
    """A regressor that says how far off it may be: intervals that hold a given share of the targets, and quantiles.

    They follow the errors that the model made before it learned each row, by the size of its forecast
    (:class:`~kernelstream.trust.QuantileTracker`): no rows have to be held back, and they stay right when the stream
    changes.

    Parameters
    ----------
    model : regressor of this library, or any with ``learn``
        It is cloned before it learns.
    coverage : float, default=0.9
        Share of the targets that the intervals should hold, 0.5 to 0.99.
    engine : {"auto", "native", "python"}
        Engine of the intervals.

    Attributes
    ----------
    model_ : the regressor, fitted
    tracker_ : QuantileTracker
    state_ : dict

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import OnlineRidge
    >>> from kernelstream.trust import WithIntervals
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (6000, 1))
    >>> y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=6000)
    >>> model = WithIntervals(OnlineRidge(random_state=0)).fit(X[:5000], y[:5000])
    >>> low, high = model.predict_interval(X[5000:], coverage=0.9)
    >>> bool(0.87 < np.mean((low <= y[5000:]) & (y[5000:] <= high)) < 0.93)
    True
    """

    predict_interval, forecast_interval, learn_interval = predict_interval, forecast_interval, learn_interval

    model: Any
    coverage: float = 0.9
    engine: str = "auto"

    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Learn the rows in order and return the predictions made before each update, (n,)."""
        return self._learn(X, y, sample_weight)[0]

    @in_turn
    def learn_quantiles(
        self, X: Any, y: Any, sample_weight: Any = None, quantiles: Any = (0.1, 0.5, 0.9)
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn the rows in order; returns predictions and quantiles of the targets, as they were before each row.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : (n,) array of numbers
        sample_weight : (n,) array, optional
        quantiles : array (k,) of numbers from 0.005 to 0.995, or one, default=(0.1, 0.5, 0.9)

        Returns
        -------
        forecast : (n,) array
        quantiles : (n, k) array
            Infinite before the first row has been learned.
        """
        asked = check_quantiles(quantiles)
        forecast, held = self._learn(X, y, sample_weight)
        return forecast, self._tracker().at(held, asked)

    @in_turn
    def _learn(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray]:
        """Predictions, and the quantiles of all levels."""
        model = self._inside()
        with all_or_nothing(self, model):
            forecast = model.learn(X, y, sample_weight=sample_weight)
            tracker = self.tracker_ if self._has_learned(model) else self._tracker()  # of no rows, or of weight 0
            weight = None if sample_weight is None else np.broadcast_to(sample_weight, forecast.shape)
            return forecast, tracker.learn(forecast, np.asarray(y, np.float64).reshape(-1), weight=weight)

    @in_turn
    def predict_quantiles(self, X: Any, quantiles: Any = (0.1, 0.5, 0.9)) -> np.ndarray:
        """Quantiles of the targets.

        Parameters
        ----------
        X : (n, d) array or CSR
        quantiles : array (k,) of numbers from 0.005 to 0.995, or one, default=(0.1, 0.5, 0.9)

        Returns
        -------
        (n, k) array
            It rises with the quantile.
        """
        return self._predicted_and_quantiles(X, check_quantiles(quantiles), following=False)[1]

    @in_turn
    def forecast_quantiles(self, X: Any, quantiles: Any = (0.1, 0.5, 0.9)) -> np.ndarray:
        """Quantiles of the targets of rows each of which is the next one of the stream, see ``predict_quantiles``."""
        return self._predicted_and_quantiles(X, check_quantiles(quantiles), following=True)[1]

    @in_turn
    def _predict_with_interval(
        self, X: Any, coverage: float | None = None, following: bool = False
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """The answers of ``predict`` and ``predict_interval``, or the forecasts."""
        predicted, bounds = self._predicted_and_quantiles(X, ends_for(self, coverage), following)
        return predicted, (bounds[:, 0], bounds[:, 1])

    def _predicted_and_quantiles(self, X: Any, asked: Any, following: bool) -> tuple[np.ndarray, np.ndarray]:
        model = self._fitted()
        predicted = (for_next_row(model, "predict") if following else model.predict)(X)
        return predicted, self.tracker_.quantiles(predicted, asked, following=following)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    @property
    def tracker_(self) -> QuantileTracker:
        """What follows the errors."""
        return self._tracker(self._beside["intervals"])

    def _tracker(self, state: State | None = None) -> QuantileTracker:
        return QuantileTracker(0, self.coverage, self.engine, state)

    def _start(self, model: Any) -> State:
        return {"intervals": self._tracker().state}

    def _schema(self) -> Schema:
        return {"intervals": Inside(self._tracker().schema())}

    def _check_parameters(self) -> None:
        check_coverage(self.coverage)
        if hasattr(self.model, "decision_function"):
            raise ValueError(f"WithIntervals needs a regressor; for a classifier use Calibrated({self.model!r})")
