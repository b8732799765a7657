"""The contract every streaming estimator keeps: validation, warm-up, standardisation, weights, learn and predict.

A family of learners supplies a few pure functions of its parameters and a state (:mod:`._hooks`); labels are added by
:mod:`._classifier`, targets by :mod:`._regressor`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, validate_data

from .. import engine as engines
from .._overflow import SCORING
from ..random import seed_from
from ..rows import MODERATE, Rows, concat, drop, host, is_tensor, pack, unpack
from ._callbacks import CallbackSupportMixin, cuts, learn_in_parts, listens, with_callbacks
from ._first_rows import odd_cells
from ._hooks import Hooks, State
from ._state import COLUMNS, check_state, check_tensor, scaled_rows, widen_rows
from ._units import check_moderate

WARM_UP = 100  # rows from which a bandwidth is estimated


class StreamEstimator(CallbackSupportMixin, Hooks, BaseEstimator):
    """Base of all estimators that learn row by row.

    Everything mutable is in ``state_``, a flat dict; the attributes named ``_cache`` and ``_hot`` only hold what can be
    derived from it.
    """

    # ---------------------------------------------------------------- public
    @property
    def state_(self) -> State:
        """Everything the model has learned: a flat dict of arrays, numbers and strings."""
        state = self.__dict__.get("_state")
        if state is None:
            raise AttributeError(f"{type(self).__name__} has no state_ before it has learned a row")
        self._sync()
        return state

    @state_.setter
    def state_(self, state: State) -> None:
        self._state = state
        self.n_features_in_ = int(state["n_features"])
        self._forget()

    def _learn_any(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> np.ndarray:
        """What ``learn`` does for every task: the short path for plain calls, else all checks first."""
        if classes is None and sample_weight is None:
            hot = self._hot_call(X, y)
            if hot is not None:
                scores = self._learn(self._state, X, hot, self._set_aside(hot, None))
                return scores[:, 0] if scores.shape[1] == 1 else scores
        return self._learn_checked(X, y, classes, sample_weight, fresh=False)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> StreamEstimator:
        """Forget everything, then learn the rows: in order and in one pass, if not all at once.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : (n,) array
        sample_weight : (n,) array, optional

        Returns
        -------
        self
        """
        if listens(self):
            n = X.shape[0] if hasattr(X, "shape") else len(X)
            parts = [slice(0, n)] if self._at_once else cuts(n)
            context = self._init_callback_context(max_subtasks=len(parts))
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)
            with self._all_or_nothing():
                learn_in_parts(self, context, parts, *self._admit(X, y, None, sample_weight, fresh=True))
        else:
            self._learn_checked(X, y, None, sample_weight, fresh=True)
        self._end_warm_up()
        self._warm_caches()
        if listens(self):
            context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def widen(self, n_features: int) -> StreamEstimator:
        """Take rows with more columns from now on, as if the new columns had been zero in every row so far.

        Parameters
        ----------
        n_features : int
            Width of the rows to come, at least ``n_features_in_``.

        Returns
        -------
        self
        """
        before = self.state_
        d = before["n_features"]
        if isinstance(n_features, bool) or not isinstance(n_features, (int, np.integer)) or n_features < d:
            raise ValueError(f"n_features must be an integer >= {d}, the width so far, got {n_features!r}")
        if n_features > d:
            if hasattr(self, "feature_names_in_"):
                raise ValueError(f"{type(self).__name__} knows its {d} columns by name: it cannot take others")
            self._check_parameters()
            state = dict(before)
            self._widen(state, int(n_features))
            widen_rows(state, int(n_features))
            self.state_ = state
        return self

    # ---------------------------------------------------------------- learning
    def _learn_checked(self, X: Any, y: Any, classes: Any, sample_weight: Any, fresh: bool) -> np.ndarray:
        with self._all_or_nothing():
            scores = self._run(*self._admit(X, y, classes, sample_weight, fresh))
        self._warm_caches()
        return scores

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """An error inside leaves the attributes as they were."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _admit(self, X: Any, y: Any, classes: Any, sample_weight: Any, fresh: bool) -> tuple[Rows, Any, Any]:
        """Checked rows, target and weights of a call; starts a state if there is none or ``fresh``."""
        fresh = fresh or self.__dict__.get("_state") is None
        if fresh:
            self._check_engine()
            self._check_parameters()
        X, y, sample_weight = self._check_X(X, reset=fresh), host(y), host(sample_weight)
        check_consistent_length(X, y, sample_weight)
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            weight = np.ascontiguousarray(weight)
            check_moderate(weight, str(X.dtype).rpartition(".")[2], "sample_weight")
        y, declared = self._check_target(y, classes, X.shape[0], weight, fresh)
        if fresh:
            self._start(X, declared)
        elif declared is not None:
            self._declare(self._state, declared)
        return X, y, weight

    def _check_engine(self) -> None:
        """Raise ValueError for an engine that there is not, here or for this family."""
        if engines.is_torch(self.engine) and not self.on_device:
            raise ValueError(f"{type(self).__name__} has no torch engine; engine='auto' uses the processor")
        engines.get(self.engine)

    def _check_X(self, X: Any, reset: bool) -> Rows:
        if is_tensor(X) and engines.is_torch(self.engine):
            check_tensor(self, X, reset)
            self._check_rows(X)
            return X
        dtype = [np.float64, np.float32] if reset else np.dtype(self._state["dtype"])
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=dtype, order="C")
        if sp.issparse(X):
            X.sum_duplicates()
        check_moderate(X.data if sp.issparse(X) else X, X.dtype.name, "X")
        self._check_rows(X)
        if self.standardize and sp.issparse(X):
            raise ValueError(
                "standardize=True centres every column and would make sparse rows dense; "
                "scale them beforehand (for example with MaxAbsScaler) or pass X.toarray()"
            )
        return X

    def _start(self, X: Rows, declared: Any) -> None:
        """A fresh state for rows of the width and type of X."""
        state: State = {
            "n_features": int(X.shape[1]),
            "dtype": str(X.dtype).rpartition(".")[2],  # of an array or a tensor
            "seed": seed_from(self._seed_source()),
            "t": 0,
            "n_outputs": 1,
            "warm_rows": 0 if self._at_once else self._warm_up_rows(),
            "warm_count": 0,
        }
        if self.standardize:
            state |= {"x_count": 0.0} | {name: np.zeros(X.shape[1]) for name in COLUMNS}
        self._forget()
        if not self._at_once:
            self._begin(state)
        self._declare(state, declared)
        self._state = state
        if not (self._at_once or state["warm_rows"]):
            self._reset(state)

    def _seed_source(self) -> Any:
        return self.random_state

    def _advance(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Learn rows whose labels are all known, stopping at the warm-up points to renew the estimates."""
        state = self._state
        if not state["warm_rows"]:
            return self._step(X, y, self._set_aside(y, weight))
        parts = []
        start, n = 0, X.shape[0]
        while start < n:
            if not state["warm_rows"]:
                ws = self._set_aside(y[start:], None if weight is None else weight[start:])
                parts.append(self._step(X[start:], y[start:], ws))
                break
            kept = state["warm_count"]
            stop = _rows_until(weight, start, n, _next_point(state) - kept)
            Xs, ys = host(X[start:stop]), y[start:stop]
            ws = self._set_aside(ys, None if weight is None else weight[start:stop])
            if kept == 0:
                parts.append(np.zeros((stop - start, state["n_outputs"])))
            else:
                parts.append(self._step(Xs, ys, ws))
            self._keep(Xs, ys, ws)
            if state["warm_count"] == state["warm_rows"]:
                self._renew()
                self._drop_kept()
            elif state["warm_count"] > kept and state["warm_count"] & (state["warm_count"] - 1) == 0:
                self._renew()
            start = stop
        return np.concatenate(parts)

    def _step(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Standardise and learn rows; y is the public target."""
        state = self._state
        weight = self._row_weights(state, y, weight)
        X = self._standardized(state, X, weight)
        return self._learn(state, X, self._encode(state, y), weight)

    def _standardized(self, state: State, X: Rows, weight: np.ndarray | None) -> Rows:
        """Rows scaled by the running moments, which they update."""
        if not self.standardize:
            return X
        X = np.array(host(X), order="C")
        moments = (state[name] for name in COLUMNS)
        state["x_count"] = self._ops.standardize(X, weight, state["x_count"], *moments)
        return X

    # ---------------------------------------------------------------- warm-up
    def _keep(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Add rows of positive weight to the kept ones."""
        state = self._state
        if weight is None:
            weight = np.ones(len(y))
        counted = weight > 0
        X, y, weight = X[counted], y[counted], weight[counted]
        kept = unpack("warm_X", state)
        if kept is not None:
            X = concat([kept, X])
            y = np.concatenate([state["warm_y"], y])
            weight = np.concatenate([state["warm_weight"], weight])
        drop("warm_X", state)
        state |= pack("warm_X", X) | {"warm_y": np.array(y), "warm_weight": np.array(weight), "warm_count": len(y)}

    def _renew(self) -> None:
        """Estimate from the kept rows, then learn them again from the start."""
        state = self._state
        X, y = unpack("warm_X", state), state["warm_y"]
        weight = self._trusted(X, y, state["warm_weight"])
        state["t"] = 0
        if self.standardize:
            state["x_count"] = 0.0
            for name in COLUMNS:
                state[name][:] = 0.0
        self._forget_rows(state)
        weight = self._row_weights(state, y, weight)
        trusted = weight > 0
        X = self._standardized(state, X, weight)
        self._estimate(state, X if trusted.all() else X[trusted])
        self._forget()
        self._reset(state)
        self._learn(state, X, self._encode(state, y), weight)

    def _trusted(self, X: Rows, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Weights of the kept rows, 0 for those with a glitch."""
        return np.where(odd_cells(X), 0.0, weight)

    def _forget_rows(self, state: State) -> None:
        """Undo what :meth:`_row_weights` counted."""

    def _drop_kept(self) -> None:
        drop("warm_X", self._state)
        for name in ("warm_y", "warm_weight"):
            self._state.pop(name, None)
        self._state |= {"warm_rows": 0, "warm_count": 0}

    def _end_warm_up(self) -> None:
        """The data have ended (``fit``): estimate from what there is."""
        state = self._state
        if state["warm_rows"] and state["warm_count"]:
            self._renew()
            self._drop_kept()

    # ---------------------------------------------------------------- scoring
    def _scores(self, X: Any) -> np.ndarray:
        """Raw scores (n, n_outputs) of unchecked rows; the model is left as it is."""
        state = self.__dict__.get("_state")
        if state is None:
            raise NotFittedError(
                f"This {type(self).__name__} has not learned any row yet: call fit, partial_fit or learn"
            )
        hot = self.__dict__.get("_hot")
        if hot is None or not self._plain_rows(X, hot):
            X = self._check_X(X, reset=False)
        if state["warm_rows"] and not state["warm_count"]:
            return np.zeros((X.shape[0], state["n_outputs"]))
        if self.standardize:
            X = scaled_rows(host(X), state)
        scores = self._score(state, X)
        if not self._ops.all_finite(scores):
            raise ValueError(SCORING)
        return scores

    def _check_state(self) -> None:
        """Raise ValueError when the state (of a file, say) does not fit the parameters, or itself."""
        self._check_parameters()
        state = self.state_
        if hasattr(type(self), "classes_") and "classes" not in state:
            raise ValueError("state_ of a classifier lacks its classes")
        check_state(state, self._shapes(state))
        self._scores(np.ones((2, state["n_features"]), state["dtype"]))  # whatever is left to not fit together

    def __sklearn_is_fitted__(self) -> bool:
        return self.__dict__.get("_state") is not None

    # ---------------------------------------------------------------- caches (derived, never saved)
    @property
    def _ops(self) -> Any:
        # a model made on a device goes on where there is none: its state is the same
        return engines.get(self.engine if engines.usable(self.engine) else "auto")

    def _cached(self, name: Any, make: Callable[[], Any]) -> Any:
        cache = self.__dict__.setdefault("_cache", {})
        found = cache.get(name)
        if found is None:
            found = cache[name] = make()
        return found

    def _forget(self) -> None:
        self._sync()
        self._cache: dict[Any, Any] = {}
        self._hot: tuple[np.dtype, int, Any, int] | None = None

    def _warm_caches(self) -> None:
        """Allow the short path of plain calls once nothing about a row needs a decision."""
        state = self._state
        plain = not (state["warm_rows"] or self.standardize or hasattr(self, "feature_names_in_") or self._weighs())
        most = MODERATE[state["dtype"]]
        self._hot = (np.dtype(state["dtype"]), state["n_features"], self._ops.all_below, most) if plain else None

    def _weighs(self) -> bool:
        """Whether rows are weighed by more than ``sample_weight``."""
        return False

    @staticmethod
    def _plain_rows(X: Any, hot: tuple[np.dtype, int, Any, int]) -> bool:
        """Whether the rows need neither a conversion nor a closer look."""
        if type(X) is np.ndarray:
            plain = X.ndim == 2 and X.flags.c_contiguous and X.dtype == hot[0]
            return plain and X.shape[1] == hot[1] and X.shape[0] > 0 and hot[2](X, hot[3])
        if type(X) in (sp.csr_array, sp.csr_matrix):
            plain = X.ndim == 2 and X.dtype == hot[0] and X.shape[1] == hot[1] and X.shape[0] > 0
            return bool(plain and X.has_canonical_format and hot[2](X.data, hot[3]))
        return False

    def _hot_call(self, X: Any, y: Any) -> np.ndarray | None:
        """Encoded target when the call is plain enough for the short path, else None."""
        hot = self.__dict__.get("_hot")
        if hot is None or not self._plain_rows(X, hot):
            return None
        target = self._hot_target(y, X.shape[0])
        if target is not None:
            self._check_rows(X)
        return target

    def learn_row(self, X: np.ndarray, y: Any) -> None:
        """Learn one row, known to be finite, with what :meth:`learn` does but nothing around it.

        Parameters
        ----------
        X : (1, d) float64 array, C-contiguous
        y : a label, or a number for a regressor
        """
        hot = self.__dict__.get("_hot")
        if hot is not None and X.dtype == hot[0] and X.shape[1] == hot[1] and hot[2](X, hot[3]):
            target = self._hot_row(y)
            if target is not None:
                self._check_rows(X)
                self._learn(self._state, X, target, self._set_aside(target, None))
                return
        self._learn_checked(X, np.array([y]), None, None, fresh=False)

    def set_params(self, **params: Any) -> StreamEstimator:
        """Set parameters, nested ones as ``component__name``; see scikit-learn."""
        super().set_params(**params)
        self._forget()
        return self

    def __sizeof__(self) -> int:
        """Bytes, with the arrays of the state: schedulers weigh by it whether to move a model."""
        arrays = (value.nbytes for value in (self.__dict__.get("_state") or {}).values() if hasattr(value, "nbytes"))
        return super().__sizeof__() + sum(arrays)

    def __getstate__(self) -> Any:
        self._sync()
        return {key: value for key, value in super().__getstate__().items() if key not in ("_cache", "_hot")}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._forget()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.standardize
        return tags


def _next_point(state: State) -> int:
    """Row count at which the estimate is renewed next: a power of two, or the end of the warm-up."""
    point = 1
    while point <= state["warm_count"]:
        point *= 2
    return min(point, state["warm_rows"])


def _rows_until(weight: np.ndarray | None, start: int, n: int, wanted: int) -> int:
    """End of the shortest run from ``start`` that holds ``wanted`` rows of positive weight."""
    if weight is None:
        return min(n, start + wanted)
    counted = np.cumsum(weight[start:] > 0)
    return min(n, start + int(np.searchsorted(counted, wanted)) + 1)
