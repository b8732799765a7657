"""A regressor with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..state.nested import State, part
from ..state.schema import Inside, Schema
from ..state.turns import in_turn
from ._wrapper import Wrapper
from .intervals import IntervalTracker, check_coverage


class WithIntervals(Wrapper):
    """A regressor that says how far off it may be: intervals that hold a given share of the targets.

    The intervals follow the errors that the model made before it learned each row
    (:class:`~kernelstream.trust.IntervalTracker`): no rows have to be held back, and they stay right when the stream
    changes.

    Parameters
    ----------
    model : regressor of this library, or any with ``learn``
        It is cloned before it learns.
    coverage : float, default=0.9
        Share of the targets that the intervals should hold, 0.5 to 0.99.
    engine : {"auto", "native", "python"}
        Of the intervals.

    Attributes
    ----------
    model_ : the regressor, fitted
    tracker_ : IntervalTracker
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

    def __init__(self, model: Any, coverage: float = 0.9, engine: str = "auto"):
        self.model = model
        self.coverage = coverage
        self.engine = engine

    def learn(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Learn the rows in order and return the predictions made before each update, (n,)."""
        return self.learn_interval(X, y, sample_weight)[0]

    @in_turn
    def learn_interval(
        self, X: Any, y: Any, sample_weight: Any = None, coverage: float | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Learn the rows in order; returns predictions, and their intervals, as they were before each row.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : (n,) array of numbers
        sample_weight : (n,) array, optional
        coverage : float, optional
            0.5 to 0.99; by default that of the model.

        Returns
        -------
        forecast, low, high : (n,) arrays
            ``low`` and ``high`` are infinite before the first row has been learned.
        """
        if coverage is not None:
            check_coverage(coverage)
        model, fresh = self._inside()
        with self._kept(model):
            forecast = model.learn(X, y, sample_weight=sample_weight)
            if self._is_untrained(model):
                return forecast, np.full_like(forecast, -np.inf), np.full_like(forecast, np.inf)
            self._adopt(model, fresh)
            weight = None if sample_weight is None else np.broadcast_to(sample_weight, forecast.shape)
            target = np.asarray(y, np.float64).reshape(-1)
            return forecast, *self.tracker_.learn(forecast, target, weight, coverage=coverage)

    @in_turn
    def predict_interval(self, X: Any, coverage: float | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Intervals around the predictions.

        Parameters
        ----------
        X : (n, d) array or CSR
        coverage : float, optional
            0.5 to 0.99; by default that of the model.

        Returns
        -------
        low, high : (n,) arrays
        """
        return self._predict_with_interval(X, coverage)[1]

    @in_turn
    def _predict_with_interval(
        self, X: Any, coverage: float | None = None, alone: bool = False
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """The answers of ``predict`` and ``predict_interval``, of one prediction; or of one for each row."""
        if coverage is not None:
            check_coverage(coverage)
        model = self._fitted()
        said = np.concatenate([model.predict(X[i : i + 1]) for i in range(len(X))]) if alone else model.predict(X)
        return said, self.tracker_.interval(said, coverage)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def _begin(self, model: Any) -> None:
        self.tracker_ = IntervalTracker(self.coverage, self.engine)

    def _own(self) -> State:
        return {"intervals": self.tracker_.state}

    def _set_own(self, entries: State) -> None:
        self.tracker_.state = part(entries, "intervals")

    def _schema(self) -> Schema:
        return {"intervals": Inside(IntervalTracker(self.coverage).schema())}

    def _check_parameters(self) -> None:
        check_coverage(self.coverage)
        if hasattr(self.model, "decision_function"):
            raise ValueError(f"intervals are for regressors: for a classifier there is Calibrated({self.model!r})")
