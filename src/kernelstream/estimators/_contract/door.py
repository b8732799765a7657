"""Input checks: rows in the one form that the library works with, targets and weights, and the first state.

Anything else is a ValueError.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length, validate_data

from ... import engine as engines
from ...checks import few
from ...core.arrays import all_below
from ...random import seed_from
from ...registry.caller import caller
from ...rows import MODERATE, Rows, canonical, check_names, host, is_pandas, is_series, is_tensor, native, unmasked
from ...state.nested import State
from ...state.undo import open_call
from ...streams.cells import Records, cells_of, numbers
from . import warm_up
from .scaling import column_names, demanded, fills_gaps, no_moments

if TYPE_CHECKING:
    from .base import StreamEstimator


def admit(
    est: StreamEstimator, X: Any, y: Any, classes: Any, sample_weight: Any, fresh: bool, empty: bool = False
) -> tuple[Rows, Any, Any]:
    """Checked rows, target and weights of a call; starts a state if there is none or ``fresh``.

    A ``fresh`` model needs rows of positive weight; ``empty`` leaves it without weights. Later calls may bring no rows,
    or only rows of weight 0.
    """
    starts = fresh or est.__dict__.get("_state") is None
    if starts:
        est.__dict__.get("_cache", {}).pop("learner", None)  # parameters may have changed
        engines.check(est.engine, est.on_device, type(est).__name__)
        est._check_parameters()
    if is_series(X) and np.ndim(y) == 0:
        y = np.array([y])
    X = checked_rows(est, X, reset=starts, least=int(fresh))
    y, sample_weight = unmasked(host(y)), unmasked(host(sample_weight))
    call = open_call(est)
    if call is not None:
        call.nothing_learned = False
    check_consistent_length(X, y)
    dtype = str(X.dtype).rpartition(".")[2]  # of an array or a tensor
    weight = None if sample_weight is None else checked_weights(sample_weight, X.shape[0])
    if weight is not None:
        check_moderate(weight, dtype, "sample_weight")
    if fresh and weight is not None and not weight.any():
        raise ValueError("all sample weights are zero: there is nothing to learn from")
    y, declared = est._check_target(y, classes, X.shape[0], weight, starts)
    if isinstance(est, RegressorMixin):
        check_moderate(y, dtype, "y")
    if starts and (X.shape[0] or classes is not None):
        _start(est, X, declared, empty)
    elif starts:  # no rows, and nothing is known yet about those to come
        for name in ("n_features_in_", "feature_names_in_"):
            est.__dict__.pop(name, None)
    elif declared is not None:
        est._declare(est._state, declared)
    return X, y, weight


def _start(est: StreamEstimator, X: Rows, declared: Any, empty: bool) -> None:
    """A fresh state for rows of the width and type of X."""
    state: State = {
        "n_features": int(X.shape[1]),
        "dtype": str(X.dtype).rpartition(".")[2],
        "seed": seed_from(est._learner.seed_source()),
        "t": 0,
        "n_outputs": 1,
        "warm_rows": 0 if est._at_once else warm_up.first_rows(est),
        "warm_count": 0,
    }
    if est._scaling():
        state |= no_moments(X.shape[1], fills_gaps(est))
    before = est.__dict__.pop("_state", None)
    est._forget()
    est._declare(state, declared)
    est._learner.start(state, before)
    est._state = state
    if not (empty or est._at_once or state["warm_rows"]):
        est._learner.reset(state)


def checked_rows(est: StreamEstimator, X: Any, reset: bool, least: int = 1) -> Rows:
    """Rows in the one form that the library works with; ValueError for fewer than ``least``."""
    if is_tensor(X) and est._ops.on_device:
        check_tensor(est, X, reset, least)
        for domain in est._learner.domains():
            domain.check(host(X))
        return host(X) if est._learner.keeps_rows else X
    X = _frame_of(est, X, reset) if is_series(X) else X
    dtype = [np.float64, np.float32] if reset else np.dtype(est._state["dtype"])
    if reset or not _is_plain(est, X, dtype, least):
        check_names(X)
        X = canonical(X) if sp.issparse(X) else native(X)
        if isinstance(X, np.ndarray) and X.dtype.kind == "M":  # which would pass as numbers
            _check_numbers(est, X)
        if isinstance(X, np.ndarray) and X.dtype.names:
            raise ValueError("X is an array of records: pass a data frame, pandas.DataFrame(X), or an array of numbers")
        checks = {"accept_sparse": "csr", "dtype": dtype, "order": "C", "ensure_min_samples": least}
        checks |= {"ensure_all_finite": not fills_gaps(est)}
        try:
            X = validate_data(est, X, reset=reset, **checks)
        except (TypeError, ValueError):
            if not (reset and est.columns is not None):  # it would have taken words and gaps
                _check_numbers(est, X)
            raise
        except OverflowError:
            raise ValueError("X holds an integer that is too large for a float") from None
    if sp.issparse(X):
        X = canonical(X)  # a data frame of sparse columns becomes a matrix on the way
    if fills_gaps(est):
        X = _without_infinity(est, X)
    cells = X.data if sp.issparse(X) else X
    check_moderate(cells if np.isfinite(cells).all() else cells[np.isfinite(cells)], X.dtype.name, "X")
    for domain in est._learner.domains():
        domain.check(X)
    if not (sp.issparse(X) and demanded(est.standardize)):
        return X
    return est._learner.dense(X)


def _frame_of(est: StreamEstimator, X: Any, reset: bool) -> Any:
    """A pandas Series whose index names the columns of the model as a frame of one row; ValueError for any other."""
    names = [] if reset else list(getattr(est, "feature_names_in_", ()))
    if names and is_pandas(X) and set(names) == set(X.index):
        return X.to_frame().T
    knows = f"those of this {type(est).__name__} are {few(names)}" if names else "it has learned none by name"
    raise ValueError(
        f"X is a Series, which is one row only where its index names the columns of the model ({knows}): "
        f"pass a data frame or an array, X.to_frame().T for a row of pandas and X.to_frame() for a column"
    )


def _without_infinity(est: StreamEstimator, X: Rows) -> Rows:
    """The rows with NaN in place of infinity, which is said once for every column."""
    infinite = np.isinf(X.data if sp.issparse(X) else X)
    if not infinite.any():
        return X
    columns = X.indices[infinite] if sp.issparse(X) else np.nonzero(infinite)[1]
    new = sorted(set(columns.tolist()) - est._infinite)
    est._infinite |= set(new)
    if new:
        warnings.warn(f"column {column_names(est, new)}: infinity is taken for a gap", UserWarning, stacklevel=caller())
    X = X.copy()
    (X.data if sp.issparse(X) else X)[infinite] = np.nan
    return X


def _check_numbers(est: StreamEstimator, X: Any) -> None:
    """ValueError for dictionaries, and for the first column that contains a word or a date, or else a gap."""
    if sp.issparse(X) or np.iscomplexobj(X):
        return
    try:
        cells, model = cells_of(X), type(est).__name__
    except ValueError:  # these are no rows at all
        return
    remedy = f"words, dates and gaps need an encoder, make_stream(Columns(), {model}())"
    if est.columns is not None:
        remedy = f"this {model} started with rows of numbers; with columns={{}} it takes words and dates at any time"
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


def _is_plain(est: StreamEstimator, X: Any, dtype: Any, least: int) -> bool:
    """Whether rows are in that form already and need no further checks."""
    return (
        type(X) is np.ndarray
        and X.dtype == dtype
        and X.ndim == 2
        and X.shape[1] == est._state["n_features"]
        and len(X) >= least
        and X.flags.c_contiguous
        and ("feature_names_in_" not in est.__dict__ or est._encoder is not None)
        and bool(np.isfinite(X).all())
    )


def check_tensor(est: Any, X: Any, reset: bool, least: int) -> None:
    """What scikit-learn's ``validate_data`` does, for rows in a torch tensor, which stay on their device."""
    name = type(est).__name__
    kind = str(X.dtype).rpartition(".")[2]
    if X.ndim != 2:
        raise ValueError(f"Expected 2D rows, got a tensor with {X.ndim} dimensions")
    if X.shape[0] < least or X.shape[1] == 0:
        raise ValueError(f"Found an empty tensor of rows with shape {tuple(X.shape)}")
    if kind not in ("float32", "float64") or (not reset and kind != est._state["dtype"]):
        wanted = "float32 or float64" if reset else est._state["dtype"]
        raise ValueError(f"{name} takes tensors of {wanted}, got {kind}: convert them with .to()")
    if not bool((X.abs() < 2.0 ** MODERATE[kind]).all()):
        if not bool(X.isfinite().all()):
            raise ValueError(f"Input X contains NaN or infinity, which {name} does not accept")
        check_moderate(X.detach().cpu().numpy(), kind, "X")
    if reset:
        est.n_features_in_ = X.shape[1]
        est.__dict__.pop("feature_names_in_", None)
    elif X.shape[1] != est.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, but {name} is expecting {est.n_features_in_} features as input")


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
