"""Learners made of learners: members learn the same rows, and their states are in a list inside that of the whole."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import clone, is_classifier

from ...core.targets import no_targets
from ...passes.ensemble.python import HISTORY
from ...random import SeedStream, generator
from ...rows import Rows
from ...state.change import Change
from ...state.nested import WARM, State
from ...state.schema import Array, Count, Members, Schema
from ...state.turns import in_turn
from ..feature import LinearOnFeatures
from .base import Shell, StreamEstimator
from .calls import bound
from .codes import enter, outputs_of
from .context import Context, learner_of
from .layers import Layers
from .learner import Learner, solves
from .scaling import AUTO
from .state import is_trained

L = TypeVar("L", bound=Learner)
Pair = tuple[Learner, State]  # a member: what learns, and what it has learned


class Composite(Learner):
    """Members: learners made of the parameters of estimators of this library, and their states."""

    _lasting = ("examples", "shells")

    # ---------------------------------------------------------------- members
    def prototypes(self) -> list[Any]:
        """The estimators whose parameters the members have."""
        raise NotImplementedError

    def examples(self) -> list[Learner]:
        """A learner of each prototype, for questions that no state answers."""
        return self.derived.cached("examples", lambda: [learner_of(made, self.ops) for made in self.prototypes()])

    def sized(self, state: State, i: int, learner: Learner) -> Learner:
        """Member i with the size that it has now."""
        return learner

    def member_learners(self, state: State) -> list[Learner]:
        """What learns in each member."""

        def make() -> list[Learner]:
            examples = self.examples()
            sets = len(state["members"]) // len(examples)  # one for every output
            made = [type(example)(example.parameters, example.context) for example in examples * sets]
            return [self.sized(state, i, learner) for i, learner in enumerate(made)]

        return self.derived.cached("learners", make)

    def pairs(self, state: State) -> list[Pair]:
        """The members."""
        return list(zip(self.member_learners(state), state["members"], strict=True))

    def shells(self, state: State) -> list[Any]:
        """The members as estimators, for users, who may hold them as long as learners and states are these."""
        pairs, held = self.pairs(state), self.derived.get("shells", [])
        if [(id(learner), id(own)) for _, learner, own in held] != [(id(learner), id(own)) for learner, own in pairs]:
            held = self.derived["shells"] = [(shell(*pair), *pair) for pair in pairs]
        return [made for made, _, _ in held]

    def owners(self, state: State) -> list[Pair]:
        return [
            *super().owners(state),
            *(owner for learner, own in self.pairs(state) for owner in learner.owners(own)),
        ]

    def put_back(self, state: State, remake: bool) -> None:
        learners = self.derived.get("learners")
        self.forget()
        if learners is None or len(learners) != len(state["members"]):
            return  # others had taken their places
        self.derived["learners"] = [self.sized(state, i, learner) for i, learner in enumerate(learners)]
        for learner, own in self.pairs(state):
            learner.put_back(own, remake)

    # ---------------------------------------------------------------- a state
    def start(self, state: State, before: State | None) -> None:
        examples = self.examples()
        state["members"] = [start(examples[i % len(examples)], i, state) for i in range(self.count(state))]

    def class_added(self, state: State, place: int, trained: bool, change: Change) -> None:
        self.outputs_changed(state)
        for learner, own in self.pairs(state):
            enter(learner, own, state["classes"], place, trained, change)

    def weights(self, state: State) -> np.ndarray:
        """Of the members in the forecast now, (N,)."""
        raise NotImplementedError

    def outputs_changed(self, state: State) -> None:
        """A label has appeared."""

    def warm_up_rows(self) -> int:
        return max(learner.warm_up_rows() for learner in self.examples())

    def one_width(self) -> bool:
        return any(learner.one_width() for learner in self.examples()) and not self.domains()

    def estimate(self, state: State, X: Rows) -> None:
        for learner, own in self.pairs(state):
            if learner.warm_up_rows():
                learner.estimate(own, X)

    def end_warm_up(self, state: State) -> None:
        for learner, own in self.pairs(state):
            if learner.end_warm_up is not None:
                learner.end_warm_up(own)

    def widen(self, state: State, d: int) -> None:
        for learner, own in self.pairs(state):
            learner.widen(own, d)
            own["n_features"] = d

    def domains(self) -> list[Any]:
        return [domain for learner in self.examples() for domain in learner.domains()]

    # ---------------------------------------------------------------- checks
    def count(self, state: State) -> int:
        """How many members the parameters ask for: each once, or once for every output."""
        return len(self.examples())

    def schema(self, state: State, trained: bool) -> Schema:
        n, found = self.count(state), state.get("members")
        if isinstance(found, list) and len(found) != n:
            raise ValueError(f"the state holds {len(found)} learners, the parameters {n}")
        return {"members": Members(n)}

    def verify(self, state: State) -> None:
        for i, (learner, own) in enumerate(self.pairs(state)):
            try:
                learner.check_parameters()
                Layers(learner).check(own, is_trained(state))
            except ValueError as error:
                raise ValueError(f"learner {i}: {error}") from None


# -------------------------------------------------------------------- members: first states, targets and scores
def start(learner: Learner, i: int, state: State) -> State:
    """State of member i before any row, from that of the whole."""
    seed = learner.parameters["seed"]
    if seed is None and type(learner) is LinearOnFeatures:  # the same numbers, so that their maps can share work
        seed = state["seed"]
    elif seed is None:
        seed = generator(state["seed"], SeedStream.MEMBER_SEEDS, i).integers(1 << 63)
    own = {name: state[name] for name in ("n_features", "dtype")} | WARM
    own |= {"seed": int(seed), "t": 0, "n_outputs": 1}
    if not learner.regression:
        own |= {name: np.array(state[name]) for name in ("classes", "class_counts")}
        own |= {"classes_fixed": state["classes_fixed"], "n_outputs": outputs_of(learner, len(state["classes"]))}
    elif not solves(learner):
        own |= no_targets(1)
    learner.start(own, None)
    return own


def shell(learner: Learner, state: State) -> Any:
    """An estimator around a learner and its state."""
    kind: Any = learner.context.kind
    made = clone(kind(**{name: learner.parameters[name] for name in kind._get_param_names()}))
    made.state_ = state
    made._made = Layers(learner)  # what it derives from the state must change with the state
    return made


def check(member: Any, whole: Context) -> Learner:
    """The learner of a member; ValueError for something that cannot be a member of what has this context."""
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
    learner: Learner = learner_of(member, whole.ops)
    source = learner.parameters["seed"]
    if not (source is None or isinstance(source, (int, np.integer))):
        raise ValueError(f"random_state of a member must be an integer, or None for that of the {whole.name}")
    member._check_parameters()
    return learner


def copies(learners: list[Any], engine: str) -> list[StreamEstimator]:
    """Unfitted copies that use the given engine and do not scale rows, which the whole does."""
    made = [clone(learner) for learner in learners]
    for learner in made:
        learner.engine = engine
        if learner.standardize == AUTO:
            learner.standardize = False
    return made


def codes(learner: Learner, state: State, y: np.ndarray) -> np.ndarray:
    """Encoded targets of the whole as a member takes them: a loss with a column for every class takes codes for ±1."""
    if "classes" not in state or state["n_outputs"] > 1 or learner.loss(state).kind != "multiclass":
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
def inside(est: Shell[L]) -> tuple[L, State]:
    """The learner of an estimator and its state, for functions that answer from them."""
    layers, state = bound(est)
    return cast("L", layers.learner), state


def fitted(est: StreamEstimator) -> State:
    """The state of an estimator whose members have weights."""
    state = est._state
    if state is None or "history" not in state:
        raise AttributeError(f"{type(est).__name__} has no weights before it has learned a row")
    return state


@in_turn
def learners(est: Shell[Composite]) -> list[Any]:
    """The members, fitted; they go on learning with the whole."""
    whole, state = inside(est)
    found = whole.shells(state)
    for made in found:
        made._turns = est._turns  # they share the state, so they share the turns
    return found


@in_turn
def weights(est: Shell[Composite]) -> np.ndarray:
    """Weights of the members in the forecast now, (m,)."""
    state = fitted(est)
    return inside(est)[0].weights(state)


@in_turn
def weights_history(est: Shell[Composite]) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers (k,) and the weights after each of those rows, (k, m); evenly spaced, at most 256 of them."""
    state = fitted(est)
    k = state["t"] // state["history_stride"]
    return state["history_stride"] * np.arange(1, k + 1), state["history"][:k].astype(float)
