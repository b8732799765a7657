"""What comes in: rows in the one form that the library works with, and weights; ValueError for anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from ...core.arrays import all_below
from ...rows import MODERATE, Rows, canonical, check_names, host, is_tensor, native
from .scaling import demanded

if TYPE_CHECKING:
    from .base import StreamEstimator


def checked_rows(est: StreamEstimator, X: Any, reset: bool, least: int = 1) -> Rows:
    """Rows in the one form that the library works with; ValueError for fewer than ``least``."""
    if is_tensor(X) and est._ops.on_device:
        check_tensor(est, X, reset, least)
        est._learner.check_rows(X)
        return host(X) if est._learner.keeps_rows else X
    dtype = [np.float64, np.float32] if reset else np.dtype(est._state["dtype"])
    if reset or not _is_plain(est, X, dtype, least):
        check_names(X)
        X = canonical(X) if sp.issparse(X) else native(X)
        checks = {"accept_sparse": "csr", "dtype": dtype, "order": "C", "ensure_min_samples": least}
        X = validate_data(est, X, reset=reset, **checks)
    if sp.issparse(X):
        X = canonical(X)  # a data frame of sparse columns becomes a matrix on the way
    check_moderate(X.data if sp.issparse(X) else X, X.dtype.name, "X")
    est._learner.check_rows(X)
    if not (sp.issparse(X) and demanded(est.standardize)):
        return X
    if est._takes_sparse:
        return est._learner.dense(X)
    raise ValueError(
        "standardize=True centres every column and would make sparse rows dense; "
        "scale them beforehand (for example with MaxAbsScaler) or pass X.toarray()"
    )


def _is_plain(est: StreamEstimator, X: Any, dtype: Any, least: int) -> bool:
    """Whether rows are in that form already, so that they need no further check."""
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
    """What scikit-learn's ``validate_data`` does, for rows that are a torch tensor and stay where they are."""
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
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must hold numbers, got {sample_weight!r}") from None
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
