r"""Which columns matter to the default learner: rows that are kept, and how much forecasts of them change.

.. math:: r_j = E\left[\left(\frac{f(x + h e_j) - f(x - h e_j)}{2h}\right)^2\right]

over recent rows, columns in standard deviations: the diagonal of the average gradient outer product, by differences
with a step of h = 1/4, because some members are step functions. Learning only keeps a row now and then; the
differences are computed on request (:mod:`.answers`). The targets of these rows tell how certain forecasts are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...state.nested import State
from ...state.schema import Array
from ...trust.recent import differences, places, some_of, taken

STEP = 0.25  # of the differences, in deviations


def schema(state: State, targets: int) -> dict[str, Array]:
    """Rows of the width and type of a state, and targets (0 where these are labels)."""
    kept = places(state["first_width"])
    found = {"X": Array((kept, state["n_features"]), state["dtype"])}
    return found | ({"y": Array((kept, targets))} if targets else {})


def start(state: State, targets: int) -> State:
    """No rows yet, nor targets."""
    return {name: np.zeros(entry.shape, entry.dtype) for name, entry in schema(state, targets).items()}


def follow(reasons: State, X: np.ndarray, y: np.ndarray, t: int, weight: np.ndarray | None) -> None:
    """Keep some of the rows X (n, d), as the members see them, and their targets; t rows were learned before."""
    kept = reasons["X"]
    m = len(kept)
    counted = np.arange(len(X)) if weight is None else np.flatnonzero(weight > 0)
    some, at = taken(t, len(counted), m)
    kept[at] = X[counted[some]]  # a place that is taken twice has the later row: numpy writes in order
    if "y" in reasons:
        reasons["y"][at] = y.reshape(len(y), -1)[counted[some]]


def relevance(reasons: State, t: int, answers: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The r_j at rows kept of t in all, (d,), from a function that scores rows."""
    kept = reasons["X"]
    rows = some_of(np.array(kept[: min(t, len(kept))], np.float64))
    return np.asarray((differences(answers, rows, 1.0, STEP) ** 2).sum(axis=1).mean(axis=0))
