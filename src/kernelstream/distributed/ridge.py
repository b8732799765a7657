r"""Ridge regression, exactly: the workers' sufficient statistics add up.

``A = lam I + sum_t z_t z_t'`` and ``b = sum_t y_t z_t`` are sums over rows, so a chain of tasks adds the rows of some
partitions and a tree adds the chains. For r features and k outputs each step of the tree moves 8 (r² + (k + 1) r)
bytes.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from .. import second_order
from ..estimators._contract.base import Shell
from ..estimators.second_order.base import targets
from ..estimators.second_order.ridge import Ridge, merge
from ..state.blas_threads import on_one_blas_thread
from ._client import check_memory
from ._data import Data, Piece
from ._start import begin, refuse


def fit_ridge(est: Shell[Ridge], data: Data, client: Any, classes: Any = None) -> dict[str, Any]:
    """The state that ``est.fit`` would reach on the rows of all partitions, up to rounding."""
    refuse(est)
    if len(est._learner.ridges()) > 1:
        raise ValueError("several values of lam are weighed by how they forecast row after row: give one number")
    if est._learner.forgetting != 1:
        raise ValueError("forgetting < 1 makes the order of rows matter, which workers do not keep: set it to 1")
    start = begin(est, data, client, classes)
    r = start._learner.width(start._state)
    check_memory(client, 8 * (3 * r * r + 1024 * r), f"the statistics of {r:,} features")
    return data.accumulated(client, start, absorb, merged).state_


def absorb(est: Shell[Ridge], piece: Piece) -> Shell[Ridge]:
    """A copy of the model that has also learned a partition, without the forecasts that ``learn`` makes on its way."""
    est = copied(est)
    if "gram" not in est.state_:
        est._learner.reset(est.state_)
    for _ in piece.blocks(lambda X, y: _add(est, X, y)):
        pass
    second_order.flush(est._state, 1.0)
    return est


@on_one_blas_thread
def _add(est: Any, X: Any, y: Any) -> None:
    """Enter rows X (n, d) with targets y (n,) into the sums."""
    X, y, weight = est._admit(X, y, None, None, fresh=False)
    state = est._state
    if "classes" in state:
        for label in np.setdiff1d(y, state["classes"]):
            est._add_class(state, label, trained=True)
    weight = est._row_weights(state, y, weight)
    weight = np.ones(X.shape[0]) if weight is None else weight
    Y = targets(state, est._encode(state, y))
    for rows, Z in est._learner.feature_rows(state, X):
        second_order.append(state, Z, weight[rows], Y[rows])
    state["t"] += int(np.count_nonzero(weight))


def copied(est: Shell[Ridge]) -> Shell[Ridge]:
    """The model with arrays of its own: a task may not change what it was given."""
    est = copy.copy(est)
    est.state_ = {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in est.state_.items()}
    return est


def merged(a: Shell[Ridge], b: Shell[Ridge]) -> Shell[Ridge]:
    """What both have learned."""
    return merge(copy.copy(a), b)
