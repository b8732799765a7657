"""Rows as they come, for an estimator that takes them itself: words, dates, gaps and new columns.

Rows of numbers without gaps are learned without an encoder. A model whose first rows are something else (a data frame
with words or gaps, dictionaries) encodes all its rows by its own :class:`~kernelstream.columns.Columns`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...columns import Columns
from ...rows import is_pandas
from ...state.turns import in_turn

PREFIX = "columns:"  # of the encoder's entries in the state


def is_mixed(X: Any) -> bool:
    """Whether rows hold anything but numbers."""
    if sp.issparse(X):
        return False
    if isinstance(X, dict) or (isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], dict)):
        return True
    if isinstance(X, np.ndarray):
        if np.ma.is_masked(X):
            return True
        if X.dtype.kind == "O":
            return any(cell is None or isinstance(cell, str) for cell in X.ravel())
        return X.dtype.kind == "f" and bool(np.isnan(X).any())
    if not hasattr(X, "columns") and not hasattr(X, "column_names"):
        return False
    if is_pandas(X) and all(getattr(dtype, "kind", "O") in "iuf" for dtype in X.dtypes):
        return bool(X.isna().to_numpy().any())  # numbers that may be missing, of pandas and Arrow, are numbers
    if hasattr(X, "__array__"):
        try:
            values = np.asarray(X)
        except (TypeError, ValueError):
            return True
        if values.dtype.kind in "iub":
            return False
        return values.dtype.kind != "f" or bool(np.isnan(values).any())
    return True


class MixedRows:
    """Base of KernelClassifier and KernelRegressor, which have the parameter ``columns``."""

    columns: Any
    _encoder: Columns | None = None

    @property
    def columns_(self) -> Columns:
        """The encoder of the rows, fitted; only models of mixed rows have one."""
        if self._encoder is None:
            raise AttributeError(f"{type(self).__name__} has no columns_: its rows are numbers")
        return self._encoder

    @property
    def n_features_in_(self) -> int:
        """Columns of the rows as they come; the members of a model of mixed rows see ``columns_.width_`` of them."""
        if self._encoder is not None:
            return self._encoder.n_features_in_
        return _kept(self, "n_features_in_")

    @n_features_in_.setter
    def n_features_in_(self, n: int) -> None:
        self.__dict__["n_features_in_"] = n

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns of the rows, where they have names."""
        if self._encoder is not None:
            return self._encoder.feature_names_in_
        return _kept(self, "feature_names_in_")

    @feature_names_in_.setter
    def feature_names_in_(self, names: np.ndarray) -> None:
        if self._encoder is None:  # which knows them
            self.__dict__["feature_names_in_"] = names

    @feature_names_in_.deleter
    def feature_names_in_(self) -> None:
        self.__dict__.pop("feature_names_in_", None)

    @in_turn
    def widen(self: Any, n_features: int) -> Any:
        """Take rows with more columns from now on; mixed rows may have new columns at any time."""
        return super().widen(n_features) if self._encoder is None else self  # type: ignore[misc]

    def _new_encoder(self: Any) -> Columns:
        kinds = self.columns if isinstance(self.columns, dict) else None
        return Columns(kinds, engine=self.engine if self.engine in ("native", "python") else "auto")

    def _check_columns(self) -> None:
        if isinstance(self.columns, dict) or (isinstance(self.columns, str) and self.columns == "auto"):
            return
        raise ValueError(f"columns must be 'auto' or a dict of name: kind, got {self.columns!r}")

    def _encodes(self: Any, X: Any, fresh: bool) -> bool:
        """Whether rows go through the encoder."""
        if not fresh and self.__dict__.get("_state") is not None:
            return self._encoder is not None
        return isinstance(self.columns, dict) or is_mixed(X)

    # ---------------------------------------------------------------- learning
    def _learn_any(self: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> np.ndarray:
        learn = super()._learn_any  # type: ignore[misc]
        with self._turns:
            if not self._encodes(X, fresh=False):
                return learn(X, y, classes, sample_weight)
            y = y if type(y) is np.ndarray and y.ndim else np.array([y]) if np.ndim(y) == 0 else y
            return self._encoded(X, y, sample_weight, False, lambda rows: learn(rows, y, classes, sample_weight))

    def _fit_rows(self: Any, X: Any, y: Any, sample_weight: Any, *order: Any) -> None:
        fit = super()._fit_rows  # type: ignore[misc]
        if not self._encodes(X, fresh=True):
            held, self._encoder = self._encoder, None
            try:
                fit(X, y, sample_weight, *order)
            except BaseException:
                self._encoder = held
                raise
            return
        shuffle, _ = order
        self._encoded(X, y, sample_weight, True, lambda rows: fit(rows, y, sample_weight, *order), shuffle)

    def _encoded(
        self: Any,
        X: Any,
        y: Any,
        sample_weight: Any,
        fresh: bool,
        learn: Callable[[np.ndarray], Any],
        table: bool = False,
    ) -> Any:
        """Encode and learn rows, of a stream or of a table; an error leaves the encoder and the model as they were."""
        started = not fresh and self._encoder is not None
        encoder = self._encoder if started else self._new_encoder()
        task = "number" if self._regression else "label"
        held, before = self._encoder, None
        t = self._state["t"] if started else -1
        try:
            with encoder._kept(lambda: started and self._state["t"] > t):
                rows = (encoder._fit if table else encoder._learn)(X, y, sample_weight, task)
                if started and rows.shape[1] > self._state["n_features"]:
                    before = self.state_
                    super().widen(rows.shape[1])  # type: ignore[misc]
                self._encoder = encoder
                return learn(self._filled(rows) if started else rows)
        except BaseException:
            if before is not None:
                self.state_ = before
            self._encoder = held
            raise

    def _filled(self: Any, rows: np.ndarray) -> np.ndarray:
        missing = self._state["n_features"] - rows.shape[1]
        return np.pad(rows, ((0, 0), (0, missing))) if missing > 0 else rows

    # ---------------------------------------------------------------- rows to be scored
    def _scores(self: Any, X: Any) -> np.ndarray:
        return super()._scores(self._as_numbers(X))  # type: ignore[misc]

    def _as_numbers(self: Any, X: Any) -> Any:
        """Rows as the members take them, if there is an encoder: each as if it came next."""
        return X if self._encoder is None else self._filled(self._encoder._encode(X))

    # ---------------------------------------------------------------- state
    @property
    @in_turn
    def state_(self: Any) -> dict[str, Any]:
        """Everything learned, flat; the entries of learner i have names that begin with ``m{i}_``."""
        state = super().state_  # type: ignore[misc]
        if self._encoder is not None:
            state |= {PREFIX + name: value for name, value in self._encoder.state_.items()}
        return state

    @state_.setter
    @in_turn
    def state_(self: Any, flat: dict[str, Any]) -> None:
        own = {name.removeprefix(PREFIX): value for name, value in flat.items() if name.startswith(PREFIX)}
        encoder = None
        if own:
            encoder = self._new_encoder()
            encoder.state_ = own
        kept = {name: value for name, value in flat.items() if not name.startswith(PREFIX)}
        _next_setter(type(self), MixedRows)(self, kept)
        self._encoder = encoder


def _kept(model: Any, name: str) -> Any:
    """An attribute of models without an encoder, as scikit-learn sets it."""
    if name not in model.__dict__:
        raise AttributeError(f"{type(model).__name__} has no {name}")
    return model.__dict__[name]


def _next_setter(cls: type, after: type) -> Callable[[Any, Any], None]:
    """The setter of ``state_`` that comes after a class in the order of methods."""
    order = list(cls.__mro__)
    for base in order[order.index(after) + 1 :]:
        if "state_" in vars(base):
            return vars(base)["state_"].fset
    raise TypeError(f"{cls.__name__} has no state_")
