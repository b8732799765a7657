"""Learners made of learners: members learn the same rows, and their states are in a list inside that of the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from ...passes.ensemble.python import HISTORY
from ...random import SeedStream, generator
from ...rows import Rows
from ...state.change import Change
from ...state.nested import WARM, State
from ...state.schema import Array, Count, Members, Schema
from ...state.turns import in_turn
from ..feature import LinearOnFeatures
from .base import Shell, StreamEstimator
from .context import Context
from .labels import enter, outputs_of
from .learner import Learner
from .scaling import AUTO
from .state import is_trained


class Composite(Learner):
    """Members that are estimators of this library."""

    # ---------------------------------------------------------------- members
    def prototypes(self) -> list[Any]:
        """Unfitted copies of the members."""
        raise NotImplementedError

    def examples(self) -> list[Any]:
        """Unfitted copies of the members, for questions about them; never changed."""
        return self.cached("examples", self.prototypes)

    def size(self, state: State, i: int, member: Any) -> None:
        """Give a copy of member i the size that the member has now."""

    def attached(self, state: State) -> list[Any]:
        """The members, attached to their states."""
        return self.cached("members", lambda: self._attach(state))

    def _attach(self, state: State) -> list[Any]:
        made, states = self.prototypes(), state["members"]
        while len(made) < len(states):  # a set for every output
            made += self.prototypes()
        for i, (member, own) in enumerate(zip(made, states, strict=True)):
            self.size(state, i, member)
            member.state_ = own
        return made

    def owners(self, state: State) -> list[tuple[Any, State]]:
        return [
            *super().owners(state),
            *(pair for member in self.attached(state) for pair in member._learner.owners(member._state)),
        ]

    def put_back(self, state: State, remake: bool) -> None:
        members = self.derived.get("members")
        self.forget()
        if members is None or any(m._state is not own for m, own in zip(members, state["members"], strict=False)):
            return  # others had taken their places
        for i, member in enumerate(members):  # others may hold a reference to them
            self.size(state, i, member)
            member._derive_again(remake=True)
        self.derived["members"] = members

    # ---------------------------------------------------------------- a state
    def start(self, state: State, before: State | None) -> None:
        state["members"] = [start(member, i, state) for i, member in enumerate(self.examples())]

    def class_added(self, state: State, place: int, trained: bool, change: Change) -> None:
        self.outputs_changed(state)
        for member in self.attached(state):
            enter(member._learner, member._state, state["classes"], place, trained, change)

    def weights(self, state: State) -> np.ndarray:
        """Of the members in the forecast now, (N,)."""
        raise NotImplementedError

    def outputs_changed(self, state: State) -> None:
        """A label has appeared."""

    def warm_up_rows(self) -> int:
        return max(member._learner.warm_up_rows() for member in self.examples())

    def one_width(self) -> bool:
        return any(member._learner.one_width() for member in self.examples()) and not self.domains()

    def estimate(self, state: State, X: Rows) -> None:
        for member in self.attached(state):
            if member._learner.warm_up_rows():
                member._learner.estimate(member._state, X)

    def end_warm_up(self, state: State) -> None:
        for member in self.attached(state):
            member._learner.end_warm_up(member._state)

    def widen(self, state: State, d: int) -> None:
        for member, part in zip(self.attached(state), state["members"], strict=True):
            member._learner.widen(part, d)
            part["n_features"] = d

    def domains(self) -> list[Any]:
        return [domain for member in self.examples() for domain in member._learner.domains()]

    # ---------------------------------------------------------------- checks
    def count(self, state: State) -> int:
        """How many members the parameters ask for."""
        return len(self.examples())

    def schema(self, state: State, trained: bool) -> Schema:
        n, found = self.count(state), state.get("members")
        if isinstance(found, list) and len(found) != n:
            raise ValueError(f"the state holds {len(found)} learners, the parameters {n}")
        return {"members": Members(n)}

    def verify(self, state: State) -> None:
        for i, member in enumerate(self.attached(state)):
            try:
                member._check_state(is_trained(state))
            except ValueError as error:
                raise ValueError(f"learner {i}: {error}") from None


# -------------------------------------------------------------------- members: first states, targets and scores
def start(member: StreamEstimator, i: int, state: State) -> State:
    """State of member i before any row, from that of the whole."""
    source = member._learner.seed_source()
    own = {name: state[name] for name in ("n_features", "dtype")} | WARM
    own |= {"seed": _seed(member, i, state["seed"]) if source is None else int(source), "t": 0, "n_outputs": 1}
    if is_classifier(member):
        own |= {name: np.array(state[name]) for name in ("classes", "class_counts")}
        own |= {"classes_fixed": state["classes_fixed"]}
        own["n_outputs"] = outputs_of(member._learner, len(state["classes"]))
    else:
        member._layers.targets.declare(own, None)
    member._learner.start(own, None)
    return own


def _seed(member: StreamEstimator, i: int, seed: int) -> int:
    """Members on explicit features draw the same numbers, so that their maps can share work; others draw their own."""
    if type(member._learner) is LinearOnFeatures:
        return seed
    return int(generator(seed, SeedStream.MEMBER_SEEDS, i).integers(1 << 63))


def check(member: Any, whole: Context) -> None:
    """Raise ValueError for something that cannot be a member of what has this context."""
    if not isinstance(member, StreamEstimator):
        raise ValueError(f"members must be estimators of this library, got {member!r}")
    if type(member) is whole.kind:
        raise ValueError(f"a {whole.name} cannot be a member of another one")
    if is_classifier(member) == whole.regression:
        kind = "regressors" if whole.regression else "classifiers"
        raise ValueError(f"the members of a {whole.name} must be {kind}, got {type(member).__name__}")
    for name, plain in {"standardize": (AUTO, False), "class_weight": (None,)}.items():
        if getattr(member, name, plain[0]) not in plain:
            raise ValueError(f"set {name} of the {whole.name}, which applies to all members, not of a member")
    if not (member._learner.seed_source() is None or isinstance(member._learner.seed_source(), (int, np.integer))):
        raise ValueError(f"random_state of a member must be an integer, or None for that of the {whole.name}")
    member._check_parameters()


def copies(learners: list[Any], engine: str) -> list[StreamEstimator]:
    """Unfitted copies that use the given engine and do not scale rows, which the whole does."""
    made = [clone(learner) for learner in learners]
    for learner in made:
        learner.engine = engine
        if learner.standardize == AUTO:
            learner.standardize = False
        learner._forget()
    return made


def target(member: Any, state: State, y: np.ndarray) -> np.ndarray:
    """Encoded target as the member takes it: labels ±1 become codes for losses that keep a column for every class."""
    own = member._state
    if "classes" not in own or state["n_outputs"] > 1 or member._learner.loss(own).kind != "multiclass":
        return y
    return (y > 0).astype(float) if len(state["classes"]) == 2 else np.zeros(len(y))


def scores(F: np.ndarray, outputs: int) -> np.ndarray:
    """Scores of a member, (n, C), as the whole has them: two columns of two classes become their difference."""
    return F if F.shape[1] == outputs else F[:, 1:] - F[:, :1]


def history_schema(state: State, m: int) -> Schema:
    """The entries that remember weights of m members after every ``history_stride`` rows."""
    stride = state.get("history_stride")
    if not isinstance(stride, int) or stride < 1 or state["t"] // stride > HISTORY:
        raise ValueError(f"the weights after every {stride!r} of {state['t']} rows do not fit {HISTORY} places")
    return {"history": Array((HISTORY, m), "float32"), "history_stride": Count(1)}


# -------------------------------------------------------------------- what the estimators say of their members
def fitted(est: StreamEstimator) -> State:
    """The state of an estimator whose members have weights."""
    state = est._state
    if state is None or "history" not in state:
        raise AttributeError(f"{type(est).__name__} has no weights before it has learned a row")
    return state


@in_turn
def learners(est: Shell[Composite]) -> list[Any]:
    """The members, fitted; they go on learning with the whole."""
    members = est._learner.attached(est._of_state())
    for member in members:
        member._turns = est._turns  # they share the state, so they share the turns
    return members


@in_turn
def weights(est: Shell[Composite]) -> np.ndarray:
    """Weights of the members in the forecast now, (m,)."""
    return est._learner.weights(fitted(est))


@in_turn
def weights_history(est: Shell[Composite]) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers (k,) and the weights after each of those rows, (k, m); evenly spaced, at most 256 of them."""
    state = fitted(est)
    k = state["t"] // state["history_stride"]
    return state["history_stride"] * np.arange(1, k + 1), state["history"][:k].astype(float)
