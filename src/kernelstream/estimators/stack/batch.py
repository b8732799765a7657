r"""Learners of all rows at once, beside the members of the stream: what only ``fit`` can have.

.. math:: f_t(x) = (1 - \lambda_t) s(x) + \lambda_t (a s(x) + \sum_j b_j g_j(x)), \quad \lambda_t = n / t

s is the combination of the members, g_j are kernel ridge on all rows in a learned metric (:mod:`..metric`), by the
norms 2 and 1, learned on n rows; a and b >= 0 make the loss on held-out rows small. Rows that come after ``fit``
teach the members alone, so with t > n rows in all the share of the batch learners falls: what they know grows old.
(Learned on many machines, n may be more than the members have learned; then t counts from there.) For several classes s
are log-probabilities, and so is f once it is normalised.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from ...random import Stream, generator
from ...state.schema import Array, Count, Schema, anything
from .._contract.base import State
from ..metric import MetricClassifier, MetricRegressor

PREFIX = "batch_"
FEWEST = 200  # rows: with fewer, too few are held out to weigh them
MOST = 100_000  # rows that they learn from
GAIN = 0.99  # loss on held-out rows that is worth keeping them, as a part of that without them
TRACE = 0.02  # weights below it count for nothing
KINDS: dict[str, dict[str, Any]] = {"metric": {"norm": 2}, "columns": {"norm": 1}}  # names and parameters


class Teacher:
    """Knows the rows that batch learners learn; ``rows()`` gives them as members see them, targets, weights or None."""

    def __init__(self, rows: Callable[[], tuple[np.ndarray, np.ndarray, Any]]):
        self.rows = functools.cache(rows)

    def teach(self, learner: Any, held: Any) -> np.ndarray:
        """Teach a learner the rows and those held out; scores that the latter, which come last, have without them."""
        (X, y, weight), (XH, yH, wH) = self.rows(), held
        learner._leave = np.arange(len(y) + len(yH)) >= len(y)
        if weight is not None:  # rows of weight 0 would be left out, and the others counted wrongly
            weight = np.maximum(np.concatenate([weight, wH]), np.finfo(float).tiny)
        learner.fit(np.concatenate([X, XH]), np.concatenate([y, yH]), sample_weight=weight)
        return learner._left[0]


def chosen(seed: int, n: int) -> np.ndarray:
    """Numbers of the rows that batch learners learn of n, sorted: some of very many."""
    return np.arange(n) if n <= MOST else np.sort(generator(seed, Stream.STACK_ROWS).permutation(n)[:MOST])


def local(est: Any, prepare: Any, train: np.ndarray) -> Teacher | None:
    """What teaches batch learners rows ``train`` of this machine; None where they are too few."""
    some = train[chosen(est._state["seed"], len(train))]
    return Teacher(lambda: prepare(some)) if len(train) >= FEWEST else None


def learn(est: Any, teacher: Teacher, held: Any, S: np.ndarray, rows: int = 0) -> None:
    """Where held-out rows gain by it, enter learners of all rows and their weights into the state.

    Parameters
    ----------
    est : StackEstimator
    teacher : Teacher
    held : rows, encoded targets, weights
    S : (len(held), C)
        Scores of the members' combination for the held-out rows, which no member had learned.
    rows : int
        How many rows they learn, if not those that the members have learned.
    """
    state = est._state
    _, yH, wH = held
    found: dict[str, Any] = {}
    G = []
    for kind in KINDS:
        learner = found[kind] = _make(kind, est)
        learner._linkless = True  # scores are all that is asked of it
        G.append(_spread(learner, teacher.teach(learner, held), S.shape[1]))
    before, blend, after = _weights(est._regression, np.stack([S, *G]), yH, wH)
    if not after < GAIN * before:
        return
    kept = [i for i, b in enumerate(blend[1:]) if b > TRACE]
    if not kept:  # all that helped was another scale of the members' own scores
        return
    kinds = [list(found)[i] for i in kept]
    state |= {f"{PREFIX}kinds": ",".join(kinds), f"{PREFIX}blend": blend[[0, *(i + 1 for i in kept)]]}
    state[f"{PREFIX}rows"] = int(rows or state["t"])
    if rows:
        state[f"{PREFIX}since"] = int(state["t"])
    for kind in kinds:
        state |= {f"{PREFIX}{kind}_{name}": value for name, value in found[kind].state_.items()}
    est._cache.pop("batch", None)


def present(state: State) -> bool:
    """Whether a model has batch learners."""
    return f"{PREFIX}blend" in state


def blended(est: Any, state: State, X: np.ndarray, S: np.ndarray, t: int, learned: Any = False) -> np.ndarray:
    """Scores S (m, C) of the members with the batch learners' part.

    ``t`` rows were learned before the first of them. ``learned``: False where these rows were only asked about, else
    their weights, or None; a row of weight 0 does not count.
    """
    age: Any = t
    if learned is not False:
        counted = np.ones(len(X), int) if learned is None else (np.asarray(learned) > 0).astype(int)
        age = (t + np.cumsum(counted) - counted)[:, None]
    blend, n = state[f"{PREFIX}blend"], state[f"{PREFIX}rows"]
    learners = est._cached("batch", lambda: _attached(est, state))
    F = blend[0] * S
    for b, learner in zip(blend[1:], learners, strict=True):
        F += b * _spread(learner, learner._learner.score(learner._state, X[:, : learner.n_features_in_]), S.shape[1])
    share = n / np.maximum(n + age - state.get(f"{PREFIX}since", n), n)
    F = share * F + (1.0 - share) * S
    return F - special.logsumexp(F, axis=1, keepdims=True) if S.shape[1] > 1 and not est._regression else F


def drop(state: State) -> None:
    """Forget the batch learners: a class has appeared that they do not know."""
    for name in [name for name in state if name.startswith(PREFIX)]:
        del state[name]


def schema(state: State) -> Schema:
    """The entries, of which :func:`verify` looks at the learners' own."""
    names = [name for name in state if name.startswith(PREFIX)]
    if not names:
        return {}
    kinds, t = _kinds(state), max(state["t"], 1)
    own: Schema = {f"{PREFIX}blend": Array((1 + len(kinds),), low=0.0), f"{PREFIX}rows": Count(1, t)}
    if f"{PREFIX}since" in state:
        own |= {f"{PREFIX}rows": Count(1), f"{PREFIX}since": Count(0, t)}
    return anything(name for name in names if name not in own) | own


def verify(est: Any, state: State) -> None:
    """ValueError for learners that do not fit the state, whose other entries keep to :func:`schema`."""
    if not any(name.startswith(PREFIX) for name in state):
        return
    known = {f"{PREFIX}{name}" for name in ("kinds", "blend", "rows", "since")}
    C = state["n_outputs"]
    for kind, learner in zip(_kinds(state), _attached(est, state), strict=True):
        known |= {f"{PREFIX}{kind}_{name}" for name in learner._state}
        learner._check_state(True)
        if learner.n_features_in_ > state["n_features"]:
            raise ValueError(f"the batch learner {kind!r} has {learner.n_features_in_} columns, more than the model")
        if est._regression:
            ok = learner._state["n_outputs"] == 1
        else:
            codes = (-1, 1) if C == 1 else range(C)
            ok = set(np.asarray(learner.classes_).tolist()) <= set(codes)
        if not ok:
            raise ValueError(f"the batch learner {kind!r} knows other targets than the model")
    odd = sorted(name for name in state if name.startswith(PREFIX) and name not in known)
    if odd:
        raise ValueError(f"state_ has entries of no learner: {', '.join(odd)}")


def _kinds(state: State) -> list[str]:
    kinds = state.get(f"{PREFIX}kinds")
    found = kinds.split(",") if isinstance(kinds, str) and kinds else []
    if not found or len(set(found)) != len(found) or any(kind not in KINDS for kind in found):
        raise ValueError(f"state_[{PREFIX + 'kinds'!r}] must name some of {', '.join(KINDS)}, got {kinds!r}")
    return found


def _make(kind: str, est: Any) -> Any:
    made = MetricRegressor if est._regression else MetricClassifier
    return made(**KINDS[kind], engine=est.engine, random_state=int(est._state["seed"]))


def _attached(est: Any, state: State) -> list[Any]:
    """The learners of a state."""
    learners = []
    for kind in _kinds(state):
        learner, start = _make(kind, est), f"{PREFIX}{kind}_"
        learner._turns = est._turns
        learner.state_ = {name[len(start) :]: value for name, value in state.items() if name.startswith(start)}
        learners.append(learner)
    return learners


def _spread(learner: Any, F: np.ndarray, C: int) -> np.ndarray:
    """Scores (n, C) of the whole's outputs, from those of a batch learner: forecasts, margins, one for each class."""
    if C == 1 or not hasattr(learner, "classes_"):
        return F
    codes = np.asarray(learner.classes_, int)
    full = np.full((len(F), C), -1.0)  # a class that it has not seen
    full[:, codes] = np.concatenate([-F, F], axis=1) if F.shape[1] == 1 else F
    return full


def mean_loss(regression: bool, F: np.ndarray, y: np.ndarray, weight: Any) -> float:
    """Mean loss of scores F (n, C): the squared error, or minus the logarithm of the probability of the label."""
    if regression:
        loss = (F[:, 0] - y) ** 2
    elif F.shape[1] == 1:
        loss = np.logaddexp(0.0, -y * F[:, 0])
    else:
        loss = special.logsumexp(F, axis=1) - F[np.arange(len(y)), y.astype(int)]
    return float(np.average(loss, weights=weight))


def _weights(regression: bool, F: np.ndarray, y: np.ndarray, weight: Any) -> tuple[float, np.ndarray, float]:
    """Loss of the first of F (k, n, C), weights (k,) >= 0 of all, and the loss with these."""

    def loss(w: np.ndarray) -> float:
        return mean_loss(regression, np.tensordot(w, F, 1), y, weight)

    from scipy.optimize import minimize, nnls  # slow to import, and wanted only here

    alone = np.eye(len(F))[0]
    if regression:
        root = np.sqrt(np.ones(len(y)) if weight is None else weight)
        w, _ = nnls((F[:, :, 0] * root).T, y * root)
    else:
        w = minimize(loss, alone, bounds=[(0.0, 10.0)] * len(F)).x
    return loss(alone), w, loss(w)
