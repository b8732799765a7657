"""Learners inside a learner: their first states, their targets and scores in the form of the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from ...random import Stream, generator
from ...state.nested import WARM, State
from .._contract.base import StreamEstimator
from .._contract.scaling import AUTO
from ..feature import Linear


def start(member: StreamEstimator, i: int, state: State) -> State:
    """State of member i before any row, from that of the whole."""
    source = member._learner.seed_source()
    own = {name: state[name] for name in ("n_features", "dtype")} | WARM
    own |= {"seed": _seed(member, i, state["seed"]) if source is None else int(source), "t": 0, "n_outputs": 1}
    member._learner.begin(own)
    if not is_classifier(member):
        member._declare(own, None)
    return own


def _seed(member: StreamEstimator, i: int, seed: int) -> int:
    """Members on explicit features draw the same numbers, so that their maps can share work; all others their own."""
    if type(member._learner) is Linear:
        return seed
    return int(generator(seed, Stream.MEMBER_SEEDS, i).integers(1 << 63))


def check(member: Any, whole: StreamEstimator) -> None:
    """Raise ValueError for something that cannot be a member of ``whole``."""
    if not isinstance(member, StreamEstimator):
        raise ValueError(f"learners must be estimators of this library, got {member!r}")
    if type(member) is type(whole):
        raise ValueError(f"a {type(whole).__name__} cannot be one of the learners of another")
    if is_classifier(member) != is_classifier(whole):
        raise ValueError(f"{type(whole).__name__} and its learner {type(member).__name__} learn different things")
    for name, plain in {"standardize": (AUTO, False), "class_weight": (None,)}.items():
        if getattr(member, name, plain[0]) not in plain:
            raise ValueError(f"set {name} on the {type(whole).__name__}, for all learners at once, not on one of them")
    if not (member._learner.seed_source() is None or isinstance(member._learner.seed_source(), (int, np.integer))):
        raise ValueError("random_state of a learner must be an integer or None, which stands for that of the ensemble")
    member._check_parameters()


def copies(learners: list[Any], engine: str) -> list[StreamEstimator]:
    """Unfitted copies that use the given engine, and take rows as they come: the whole scales them."""
    made = [clone(learner) for learner in learners]
    for learner in made:
        learner.engine = engine
        if learner.standardize == AUTO:
            learner.standardize = False
    return made


def target(member: Any, state: State, y: np.ndarray) -> np.ndarray:
    """Encoded target as the member takes it: labels ±1 become codes for losses that keep a column for every class."""
    own = member._state
    if "classes" not in own or state["n_outputs"] > 1 or member._loss_now(own).kind != "multiclass":
        return y
    return (y > 0).astype(float) if len(state["classes"]) == 2 else np.zeros(len(y))


def scores(F: np.ndarray, outputs: int) -> np.ndarray:
    """Scores of a member, (n, C), as the whole has them: two columns of two classes become their difference."""
    return F if F.shape[1] == outputs else F[:, 1:] - F[:, :1]
