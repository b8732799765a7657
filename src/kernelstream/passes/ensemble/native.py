"""Many learners over the same rows, in the native engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...core.threads import get_num_threads
from ...state.nested import State
from .python import Hedge

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
    _core.hedge_pass(state, F, y, weight, drawn, hedge, scores)
    return scores


def family_pass(
    P: np.ndarray, y: np.ndarray, weights: np.ndarray | None, members: list[tuple[State, Any, float]]
) -> np.ndarray:
    """Learners on Fourier features whose frequencies are multiples of the same ones; returns their scores, (m, n, C).

    Parameters
    ----------
    P : (n, D)
        Projections of the rows on the common frequencies. A learner takes the cosines and sines of so many times P, or
        of as many of its columns as its weights are for.
    y : (n,) float64
    weights : (m, n) or None
        Factors of the gradients, for every learner its own.
    members : list
        Of each learner the state, as in ``linear_pass``, the compiled specification, and the factor of P.
    """
    F = np.empty((len(members), len(P), len(members[0][0]["w"])))
    work = len(P) * sum(state["w"].shape[1] for state, _, _ in members)
    threads = 1 if work < ALONE else min(get_num_threads(), len(members))
    _core.family_pass(members, P, y, weights, threads, F)
    return F
