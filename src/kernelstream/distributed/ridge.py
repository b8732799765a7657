r"""Ridge regression, exactly: the workers' sufficient statistics add up.

``A = lam I + sum_t z_t z_t'`` and ``b = sum_t y_t z_t`` are sums over rows. For r features and k outputs a sum has
8 (r² + (k + 1) r) bytes.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .. import second_order
from ..estimators._contract.base import Shell
from ..estimators._contract.calls import bound
from ..estimators._contract.scaling import wanted_scaling
from ..estimators.second_order.base import targets
from ..estimators.second_order.ridge import Ridge, merge
from ..features import Nystroem
from ..state.blas_threads import on_one_blas_thread
from ..state.nested import copied
from .start import begun
from .sums import Part, Parts


def fit_ridge(est: Shell[Ridge], learner: Ridge, parts: Parts, classes: Any) -> dict[str, Any]:
    """The state that ``est.fit`` would reach on the rows of all parts, up to rounding."""
    refuse(est, learner)
    start = begun(est, max(1, learner.warm_up_rows()), parts, classes)
    r = bound(start)[0].learner.width(start.state_)
    parts.check_memory(8 * (3 * r * r + 1024 * r), f"the statistics of {r:,} features")
    return parts.total(absorb, merged, start).state_


def refuse(est: Shell[Ridge], learner: Ridge) -> None:
    """ValueError for what makes the result depend on the order of the rows, or needs all of them in one place."""
    features = learner.map
    if len(learner.ridges()) > 1:
        raise ValueError("several values of lam are weighed by how they forecast row after row: give one number")
    if learner.forgetting != 1:
        raise ValueError("forgetting < 1 makes the order of rows matter, which workers do not keep: set it to 1")
    if wanted_scaling(learner):
        raise ValueError("standardize=True follows the rows one by one: scale the columns before a distributed fit")
    if is_classifier(est) and getattr(est, "class_weight", None) == "balanced":
        raise ValueError("class_weight='balanced' follows the rows one by one: give a dict of weights instead")
    if getattr(features, "grows", False):
        raise ValueError(f"{features!r} grows with the rows it has seen: give it a fixed size")
    if isinstance(features, Nystroem) and isinstance(features.landmarks, str):
        raise ValueError(
            f"landmarks={features.landmarks!r} chooses among all rows, which are in no one place: give the landmarks "
            f"as an array of rows"
        )


@on_one_blas_thread
def absorb(part: Part, learned: Shell[Ridge] | None, start: Shell[Ridge]) -> Shell[Ridge]:
    """A copy of the model that has also learned a part, without the forecasts that ``learn`` makes on its way."""
    est = copy.copy(start if learned is None else learned)
    est.state_ = copied(est.state_)  # a task may not change what it was given
    layers, state = bound(est)
    if "gram" not in state:
        layers.learner.reset(state)
    for _ in part.blocks(lambda X, y: _add(est, X, y)):
        pass
    second_order.flush(state, 1.0)
    return est


def _add(est: Any, X: Any, y: Any) -> None:
    """Enter rows X (n, d) with targets y (n,) into the sums."""
    X, y, weight = est._admit(X, y, None, None, fresh=False)
    layers, state = bound(est)
    if "classes" in state:
        layers.targets.declare(state, (y, state["classes_fixed"]))
    weight = layers.targets.row_weights(state, y, weight)
    weight = np.ones(X.shape[0]) if weight is None else weight
    Y = targets(state, layers.targets.encode(state, y))
    for rows, Z in layers.learner.feature_rows(state, X):
        second_order.append(state, Z, weight[rows], Y[rows])
    state["t"] += int(np.count_nonzero(weight))


def merged(a: Shell[Ridge], b: Shell[Ridge]) -> Shell[Ridge]:
    """What both have learned."""
    return merge(copy.copy(a), b)
