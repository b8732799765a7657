"""Many learners over the same rows, in the native engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from ...core.threads import get_num_threads
from ...state.nested import State
from ..spec import Spec
from . import python as _multi_python
from .python import Hedge
from .python import combine as combine
from .python import start_hedge as start_hedge
from .python import theta as theta

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
    _core.hedge_pass(state, F, y, weight, drawn, numbers(hedge), scores)
    return scores


def numbers(hedge: Hedge) -> tuple[float, float, bool, bool]:
    """How scores become one, as the compiled passes take it."""
    return float(hedge.rate), float(hedge.share), hedge.votes, hedge.regression


def family_pass(
    P: np.ndarray,
    stretch: list[float],
    y: np.ndarray,
    weights: np.ndarray | None,
    states: list[State],
    specs: list[Spec],
) -> np.ndarray:
    """Learners on Fourier features with common frequencies, on several threads; see the python engine."""
    F = np.empty((len(states), len(P), len(states[0]["w"])))
    slow = [i for i, spec in enumerate(specs) if spec.core is None]
    if slow:
        quick = [i for i, spec in enumerate(specs) if spec.core is not None]
        for some, learn in ((quick, family_pass), (slow, _by_specification)):
            if some:
                own = None if weights is None else np.ascontiguousarray(weights[some])
                stretches = [stretch[i] for i in some]
                F[some] = learn(P, stretches, y, own, [states[i] for i in some], [specs[i] for i in some])
        return F
    work = len(P) * sum(state["w"].shape[1] for state in states)
    threads = 1 if work < ALONE else min(get_num_threads(), len(states))
    members = [(state, spec.core, factor) for state, spec, factor in zip(states, specs, stretch, strict=True)]
    _core.family_pass(members, P, y, weights, threads, F)
    return F


def _by_specification(P: np.ndarray, stretch: list[float], y: Any, weights: Any, states: Any, specs: Any) -> np.ndarray:
    """The python engine's pass, for learners with a part that has no compiled twin."""
    return _multi_python.family_pass(P, stretch, y, weights, states, specs)
