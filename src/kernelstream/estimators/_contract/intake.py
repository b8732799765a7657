"""A user's rows, weights and their checks: the one place where lists, frames, tensors and matrices become an array.

Anything that cannot be learned is a ValueError. Rows of the usual kind do not come here: see :mod:`.calls`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_consistent_length, validate_data

from ...checks import few
from ...core.arrays import all_below
from ...registry.caller import warn
from ...rows import (
    MODERATE,
    Rows,
    canonical,
    check_names,
    host,
    is_pandas,
    is_series,
    is_tensor,
    native,
    unmasked,
)
from ...state.nested import State
from ...streams.cells import Records, cells_of, numbers
from .calls import Form, plain_rows
from .layers import Layers
from .scaling import column_names, demanded

PLAIN_TARGETS = (bool, int, float, str)  # which make an array of one number or word


def made_plain(X: Any, y: Any, form: Form, state: State, intake: Intake) -> tuple[Any, Any, np.ndarray | None]:
    """Rows, target and encoded target of a call in another form (lists, say); no encoded target if it needs a decision.

    Only the rows and the state matter, not how the rows are given: lists are learned like arrays, to the same bits.
    """
    rows, targets = X, form.layers.targets
    if not plain_rows(X, form):
        rows = intake(X, least=0)
        if not plain_rows(rows, form):
            return X, y, None
    n = rows.shape[0]
    if n == 1 and type(y) is list and len(y) == 1 and type(y[0]) in PLAIN_TARGETS:
        y = np.array(y)
    target = targets.plain(state, y, n, form)
    if target is None and not (type(y) is np.ndarray and y.ndim == 1):
        y = host(y)
        check_consistent_length(rows, y)
        target = targets.plain(state, targets.check(state, y, None, n, None)[0], n, form)
    return (X, y, None) if target is None else (rows, y, target)


class Intake(NamedTuple):
    """Turns rows of any kind into those of one model.

    Parameters
    ----------
    est : estimator
        For scikit-learn, which enters names and number of the columns, and looks for them.
    layers : Layers
    state : State or None
        None where a model starts with these rows.
    """

    est: Any
    layers: Layers
    state: State | None

    def __call__(self, X: Any, least: int = 1) -> Rows:
        """Rows in the one form that the library works with; ValueError for fewer than ``least``."""
        learner, state = self.layers.learner, self.state
        if is_tensor(X) and learner.ops.on_device:
            self._check_tensor(X, least)
            for domain in learner.domains():
                domain.check(host(X))
            return host(X) if learner.keeps_rows else X
        X = self._frame_of(X) if is_series(X) else X
        if state is None or not self._is_plain(X, state, least):
            X = self._validated(X, least)
        if sp.issparse(X):
            X = canonical(X)  # a data frame of sparse columns becomes a matrix on the way
        if self.layers.guards:
            X = self._without_infinity(X)
        cells = X.data if sp.issparse(X) else X
        check_moderate(cells if np.isfinite(cells).all() else cells[np.isfinite(cells)], X.dtype.name, "X")
        for domain in learner.domains():
            domain.check(X)
        if not sp.issparse(X) or not demanded(learner.parameters["standardize"]):
            return X
        if learner.dense is None:
            raise ValueError(
                "standardize=True centres every column and would make sparse rows dense; "
                "scale them beforehand (for example with MaxAbsScaler) or pass X.toarray()"
            )
        return learner.dense(X)

    def call(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, fresh: bool, call: Any
    ) -> tuple[Rows, Any, Any, Any]:
        """Checked rows, target and weights of a call, and what of the target is to be declared.

        ``call`` is told when the rows are known to be good: from then on the model may change.
        """
        if is_series(X) and np.ndim(y) == 0:
            y = np.array([y])
        X = self(X, least=int(fresh))
        y, sample_weight = unmasked(host(y)), unmasked(host(sample_weight))
        if call is not None:
            call.nothing_learned = False
        check_consistent_length(X, y)
        dtype = str(X.dtype).rpartition(".")[2]  # of an array or a tensor
        weight = None if sample_weight is None else checked_weights(sample_weight, X.shape[0])
        if weight is not None:
            check_moderate(weight, dtype, "sample_weight")
        if fresh and weight is not None and not weight.any():
            raise ValueError("all sample weights are zero: there is nothing to learn from")
        y, declared = self.layers.targets.check(self.state, y, classes, X.shape[0], weight)
        if self.layers.learner.regression:
            check_moderate(y, dtype, "y")
        return X, y, weight, declared

    def _is_plain(self, X: Any, state: State, least: int) -> bool:
        """Whether rows are in that form already and need no further checks."""
        return (
            type(X) is np.ndarray
            and X.dtype == np.dtype(state["dtype"])
            and X.ndim == 2
            and (self.layers.encoder is not None or X.shape[1] == state["n_features"])
            and len(X) >= least
            and X.flags.c_contiguous
            and (self.layers.encoder is not None or not hasattr(self.est, "feature_names_in_"))
            and bool(np.isfinite(X).all())
        )

    def _validated(self, X: Any, least: int) -> Rows:
        """Rows as scikit-learn's ``validate_data`` makes them, and errors that say what to do about them."""
        check_names(X)
        X = canonical(X) if sp.issparse(X) else native(X)
        if isinstance(X, np.ndarray) and X.dtype.kind == "M":  # which would pass as numbers
            self._check_numbers(X)
        if isinstance(X, np.ndarray) and X.dtype.names:
            raise ValueError("X is an array of records: pass a data frame, pandas.DataFrame(X), or an array of numbers")
        fresh = self.state is None
        dtype: Any = [np.float64, np.float32] if self.state is None else np.dtype(self.state["dtype"])
        checks = {"accept_sparse": "csr", "dtype": dtype, "order": "C", "ensure_min_samples": least}
        checks |= {"ensure_all_finite": not self.layers.guards}
        try:
            return validate_data(self.est, X, reset=fresh, **checks)
        except (TypeError, ValueError):
            if not (fresh and self.est.columns is not None):  # it would have taken words and gaps
                self._check_numbers(X)
            raise
        except OverflowError:
            raise ValueError("X holds an integer that is too large for a float") from None

    def _frame_of(self, X: Any) -> Any:
        """A pandas Series whose index names the columns of the model as a frame of one row; ValueError for others."""
        names = [] if self.state is None else list(getattr(self.est, "feature_names_in_", ()))
        if names and is_pandas(X) and set(names) == set(X.index):
            return X.to_frame().T
        name = self.layers.learner.context.name
        knows = f"those of this {name} are {few(names)}" if names else "it has learned none by name"
        raise ValueError(
            f"X is a Series, which is one row only where its index names the columns of the model ({knows}): "
            f"pass a data frame or an array, X.to_frame().T for a row of pandas and X.to_frame() for a column"
        )

    def _without_infinity(self, X: Rows) -> Rows:
        """The rows with NaN in place of infinity, which is said once for every column."""
        infinite = np.isinf(X.data if sp.issparse(X) else X)
        if not infinite.any():
            return X
        columns = X.indices[infinite] if sp.issparse(X) else np.nonzero(infinite)[1]
        new = sorted(set(columns.tolist()) - self.layers.infinite)
        self.layers.infinite.update(new)
        if new:
            names = column_names(getattr(self.est, "feature_names_in_", None), new)
            warn(f"column {names}: infinity is taken for a gap")
        X = X.copy()
        (X.data if sp.issparse(X) else X)[infinite] = np.nan
        return X

    def _check_numbers(self, X: Any) -> None:
        """ValueError for dictionaries, and for the first column that contains a word or a date, or else a gap."""
        if sp.issparse(X) or np.iscomplexobj(X):
            return
        try:
            cells, model = cells_of(X), self.layers.learner.context.name
        except ValueError:  # these are no rows at all
            return
        remedy = f"words, dates and gaps need an encoder, make_stream(Columns(), {model}())"
        if self.est.columns is not None:
            remedy = (
                f"this {model} started with rows of numbers; with columns={{}} it takes words and dates at any time"
            )
        if isinstance(cells, Records):
            raise ValueError(f"X must be an array or a data frame, got dictionaries: {remedy}")
        gap = ""
        for name in cells.first_names():
            values: Any = cells.get(name)
            found, wrong = numbers(values)
            for row in wrong[:1]:
                if isinstance(values[row], dict):  # of which scikit-learn expects numpy's own error
                    return
                if isinstance(values[row], float) and np.isinf(values[row]):
                    raise ValueError(f"Input X contains infinity: column {name!r}, row {row}")
                raise ValueError(f"column {name!r} holds {values[row]!r}, which is not a number: {remedy}")
            missing = np.isnan(found)
            if not gap and missing.any():
                gap = f"Input X contains NaN: column {name!r} has a gap in row {missing.argmax()}: {remedy}"
        if gap:
            raise ValueError(gap)

    def _check_tensor(self, X: Any, least: int) -> None:
        """What scikit-learn's ``validate_data`` does, for rows in a torch tensor, which stay on their device."""
        est, state, name = self.est, self.state, self.layers.learner.context.name
        kind = str(X.dtype).rpartition(".")[2]
        if X.ndim != 2:
            raise ValueError(f"Expected 2D rows, got a tensor with {X.ndim} dimensions")
        if X.shape[0] < least or X.shape[1] == 0:
            raise ValueError(f"Found an empty tensor of rows with shape {tuple(X.shape)}")
        if kind not in ("float32", "float64") or (state is not None and kind != state["dtype"]):
            wanted = "float32 or float64" if state is None else state["dtype"]
            raise ValueError(f"{name} takes tensors of {wanted}, got {kind}: convert them with .to()")
        if not bool((X.abs() < 2.0 ** MODERATE[kind]).all()):
            if not bool(X.isfinite().all()):
                raise ValueError(f"Input X contains NaN or infinity, which {name} does not accept")
            check_moderate(X.detach().cpu().numpy(), kind, "X")
        if state is None:
            est.n_features_in_ = X.shape[1]
            vars(est).pop("feature_names_in_", None)
        elif X.shape[1] != state["n_features"]:
            raise ValueError(
                f"X has {X.shape[1]} features, but {name} is expecting {state['n_features']} features as input"
            )


def checked_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Weights of n rows as an array (n,); ValueError for anything but numbers that are finite and not negative."""
    try:
        weight = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"sample_weight must hold numbers in the range of floats, got {sample_weight!r}") from None
    if weight.ndim == 0:
        weight = np.full(n, weight)
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got an array of {weight.ndim} dimensions")
    if len(weight) != n:
        raise ValueError(f"sample_weight has {len(weight)} entries for {n} rows")
    if not np.isfinite(weight).all():
        raise ValueError("Input sample_weight contains NaN or infinity")
    if (weight < 0).any():
        raise ValueError(f"Negative values in data passed to `sample_weight`: {weight[weight < 0][0]:g}")
    return np.ascontiguousarray(weight)


def check_moderate(values: Any, dtype: str, what: str) -> None:
    """ValueError for finite numbers that a model of a float type cannot take.

    Parameters
    ----------
    values : array of floats, of any shape
    dtype : {"float64", "float32"}
        The type of the model's numbers.
    what : str
        What they are, for the message: "X", "y" or "sample_weight".
    """
    most = MODERATE[dtype]
    if values.size and not all_below(values, most):
        worst = float(values.flat[np.abs(values).argmax()])
        remedy = "" if dtype == "float64" else " or take float64 rows"
        raise ValueError(
            f"{what} holds {worst:g}: numbers beyond {2.0**most:.1g} are refused, because sums of their squares would "
            f"overflow in {dtype}. Scale {'the columns' if what == 'X' else 'it'}{remedy}"
        )
