"""Plain calls: rows that, as a single look shows, need neither conversion nor further checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_consistent_length

from ...rows import MODERATE, host, is_canonical
from . import weights
from .door import checked_rows
from .scaling import scales_columns

if TYPE_CHECKING:
    from .base import StreamEstimator


PLAIN_TARGETS = (bool, int, float, str)  # which make an array of one number or word


class FastPath(NamedTuple):
    """What the rows of plain calls are like, so that a single look shows whether they need further checks."""

    dtype: np.dtype
    width: int
    all_below: Any
    exponent: int  # of the bound of all numbers
    domains: list[Any]  # of the learner, which check rows further
    plain_rows: Any
    single: bool  # whether rows are float32


def plain_form(est: StreamEstimator) -> FastPath | None:
    """What rows of plain calls are like; None while rows still need a decision."""
    fast: FastPath | None = est._cache.get("fast")
    if fast is not None or est.__dict__.get("_state") is None:
        return fast
    est._check_reset()
    state, ops = est._state, est._ops
    decided = not state["warm_rows"] and (est._encoder is not None or not hasattr(est, "feature_names_in_"))
    if decided and not (est._weighs() or weights.SUMS in state):
        dtype, most = np.dtype(state["dtype"]), MODERATE[state["dtype"]]
        rows = est._learner.domains(), ops.plain_rows, dtype == np.float32
        fast = est._cache["fast"] = FastPath(dtype, state["n_features"], ops.all_below, most, *rows)
    return fast


def plain_rows(est: StreamEstimator, X: Any, fast: FastPath) -> bool:
    """Whether the rows need neither a conversion nor further checks."""
    if type(X) is np.ndarray:
        return fast.plain_rows(X, fast.single, fast.width, fast.exponent)
    if type(X) in (sp.csr_array, sp.csr_matrix) and not scales_columns(est._state):
        plain = X.ndim == 2 and X.dtype == fast.dtype and X.shape[1] == fast.width and X.shape[0] > 0
        return bool(plain and is_canonical(X) and fast.all_below(X.data, fast.exponent))
    return False


def made_plain(est: StreamEstimator, X: Any, y: Any, fast: FastPath) -> tuple[Any, Any, np.ndarray | None]:
    """Rows, target and encoded target of a call in another form (lists, say); no encoded target if it needs a decision.

    Only the rows and the state matter, not how the rows are given: lists are learned like arrays, to the same bits.
    """
    rows = X
    if not plain_rows(est, X, fast):
        rows = checked_rows(est, X, reset=False, least=0)
        if not plain_rows(est, rows, fast):
            return X, y, None
    n = rows.shape[0]
    if n == 1 and type(y) is list and len(y) == 1 and type(y[0]) in PLAIN_TARGETS:
        y = np.array(y)
    target = est._fast_target(y, n)
    if target is None and not (type(y) is np.ndarray and y.ndim == 1):
        y = host(y)
        check_consistent_length(rows, y)
        target = est._fast_target(est._check_target(y, None, n, None, False)[0], n)
    return (X, y, None) if target is None else (rows, y, target)
