"""Many learners over the same rows, in the native engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ._multi_python import Hedge, State
from ._multi_python import combine as combine
from ._multi_python import start_hedge as start_hedge
from ._multi_python import theta as theta
from .threads import get_num_threads

ALONE = 200_000  # rows × features of all learners below which a second thread costs more than it saves


def hedge_pass(
    F: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray | None,
    state: State,
    hedge: Hedge,
    drawn: np.ndarray | None = None,
) -> np.ndarray:
    """Weights of learners over one block; see the python engine."""
    scores = np.empty(F.shape[1:])
    state["t"], state["history_stride"] = _core.hedge_pass(
        F, y, weight, state["log_theta"], state["t"], state["history"], state["history_stride"], state.get("range"),
        hedge.rate, hedge.share, hedge.votes, hedge.regression, drawn, scores,
    )  # fmt: skip
    return scores


def family_pass(
    P: np.ndarray, stretch: np.ndarray, y: np.ndarray, weights: np.ndarray | None, states: list[State], specs: list[Any]
) -> np.ndarray:
    """Learners on Fourier features with common frequencies, on several threads; see the python engine."""
    F = np.empty((len(states), len(P), len(states[0]["w"])))
    work = len(P) * sum(state["w"].shape[1] for state in states)
    threads = 1 if work < ALONE else min(get_num_threads(), len(states))
    _core.family_pass(P, stretch, y, weights, states, [(*twins, average) for twins, average in specs], threads, F)
    return F
