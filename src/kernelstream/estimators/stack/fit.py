"""`fit` of the default learner: what a batch allows and a stream does not.

From 200 rows on, all rows are learned at once (:mod:`.batch`). Before that, members and their combination learn the
rows as ``learn`` does, so that the model can go on with the rows of a stream. Their forecasts of the last tenth of the
rows, made before these are learned, decide whether the members count in what ``fit`` says.

Fewer rows, or those of members that are given, are taken in random order, and a tenth is held out, too. Members learn
the others as a stream; then those that take small steps go over the rows again as long as their loss on the held-out
rows falls. The members are weighed on the held-out rows, which none of them has learned yet, and then learn those rows
as well.
"""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...checks import positive
from ...core import threads
from ...core.ranges import hold
from ...passes.stack.states import start_stack
from ...progress import Bar
from ...random import SeedStream, generator
from ...rows import Rows, take
from ...solvers.clock import Clock
from ...state.nested import State
from .._contract import mixed, weights
from .._contract.base import Shell
from .._contract.callbacks import learn_passes, with_callbacks
from .._contract.calls import bound, learning
from .._contract.order import check_order
from .._contract.scaling import scales_columns
from .._contract.targets import NoTarget
from ..cells.base import CellTables
from ..feature import LinearOnFeatures
from ..learned import LearnedFeatures
from . import batch
from .base import Stack
from .batch import Part
from .combination import of_output

MOST_PASSES = 8  # passes, where they are chosen automatically; and
MOST_ROWS_PASSED = 4_000_000  # rows in all of them together
HELD_OUT_SHARE = 0.1  # part of the rows that is held out: at least
LEAST_HELD_OUT, MOST_HELD_OUT = 20, 5000  # rows, and at most
USUAL_STEPS = 30  # of a fit, usually: for the progress bar
TOO_FEW_ROWS = 60  # rows for which nothing is held out
REPEATED = (CellTables, LinearOnFeatures, LearnedFeatures)  # families that gain by a second pass

Prepare = Callable[[np.ndarray], Part]  # of row numbers


@with_callbacks
def fit(
    self: Shell[Stack],
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    shuffle: bool = True,
    passes: int | str = "auto",
    time_limit: float | None = None,
    verbose: bool = False,
) -> Shell[Stack]:
    """Forget everything, then learn all rows, in any order.

    Parameters
    ----------
    X : (n, d) array or CSR
    y : (n,) array
    sample_weight : (n,) array, optional
    shuffle : bool, default=True
        Take the rows in a random order that follows from the estimator's seed. False keeps the order, in one pass:
        what ``learn`` does on a fresh model.
    passes : int or "auto", default="auto"
        Largest number of passes over the rows. "auto" stops when the loss on held-out rows no longer falls, after eight
        passes or four million rows at the latest. 1 makes a single pass, as on a stream, and learns no metric.
    time_limit : float, optional
        Seconds after which the search for a metric and the passes end. There is always one pass, and the last system
        takes as many rows as the time allows.
    verbose : bool, default=False
        Show a progress bar on stderr.

    Returns
    -------
    self
    """
    with self._turns:
        if isinstance(passes, str) and passes != "auto":
            raise ValueError(f"passes must be an integer >= 1 or 'auto', got {passes!r}")
        limit = positive("time_limit", float("inf") if time_limit is None else time_limit, infinite=True)
        with Bar(bool(verbose), "fit", "steps") as bar:
            clock = Clock(limit, lambda steps, remark: bar.update(steps, remark, float(max(USUAL_STEPS, steps))))
            with learning(self, fresh=True):
                check_order(type(self).__name__, False, shuffle, 1 if passes == "auto" else passes)
                _passes_over(self, X, y, sample_weight, shuffle, passes, clock)
            mixed.name_columns(self, self._encoder)
            bar.update(clock.steps, "all rows", clock.steps)
    return self


def _passes_over(
    est: Shell[Stack], X: Any, y: Any, sample_weight: Any, shuffle: bool, passes: Any, clock: Clock
) -> None:
    rows, target, weight = est._admit(X, y, None, sample_weight, fresh=True, shuffle=shuffle)
    layers, state = bound(est)
    targets, stack = layers.targets, est._learner
    counted = np.arange(rows.shape[0]) if weight is None else np.flatnonzero(weight > 0)
    if shuffle and "classes" in state:  # in no order no label is new, and rows need not be cut where one appears
        targets.declare(state, (np.unique(target[counted]), bool(state["classes_fixed"])))
    helps = isinstance(stack.members, str) and batch.helps(stack.regression, target[counted])
    at_once = shuffle and passes != 1 and helps
    shuffled = shuffle and not at_once
    most = _passes(passes, len(counted), shuffle)
    held = _held_out(state["seed"], counted, target) if most > 1 else None
    if held is not None and at_once:  # the last ones: members take the rows in their order
        held = counted[len(counted) - len(held) :]
    streamed = weight  # the stream's way over the rows that are not held out
    if held is not None:
        streamed = np.ones(rows.shape[0]) if weight is None else weight.copy()
        streamed[held] = 0.0
    prepare, train = (
        partial(_prepared, stack, state, targets, rows, target, weight),
        np.setdiff1d(counted, () if held is None else held),
    )
    learn_passes(est, X, y, (rows, target, streamed), shuffled, 1, {"shuffled": shuffled})
    if held is None:
        return
    if at_once:
        S = stack.members_score(state, prepare(held)[0], False)
        own = None if weight is None else weight[held]
        layers.learn(state, take(rows, held), target[held], own, {"shuffled": shuffled})
        if scales_columns(state):
            hold(state)
        others = prepare(train[batch.chosen(state["seed"], len(train))])
        stack.learn_batch(state, prepare(held), S, others, clock)
        return
    # the combination takes them as a stream
    held_rows = prepare(generator(state["seed"], SeedStream.HELD_OUT_ORDER).permutation(held))
    _more_passes(stack, state, prepare, train, held_rows, most, clock)
    _weigh(stack, state, *held_rows)
    _members_learn(stack, state, list(range(len(state["members"]))), *held_rows)


def _more_passes(
    stack: Stack, state: State, prepare: Prepare, train: np.ndarray, held_rows: Part, most: int, clock: Clock
) -> None:
    """Members that gain by it go over the rows again, as long as their loss on held-out rows falls."""
    learners = stack.member_learners(state)
    active = [i for i, learner in enumerate(learners) if isinstance(learner, REPEATED)]
    best = {i: (_held_loss(stack, state, i, *held_rows), None) for i in active}
    for number in range(1, most):
        order = generator(state["seed"], SeedStream.FIT_ORDER, number).permutation(train)
        for part in threads.cuts(len(order), 8192):
            X, y, w = prepare(order[part])
            _members_learn(stack, state, active, X, y, w)
        for i in list(active):
            loss = _held_loss(stack, state, i, *held_rows)
            if loss < best[i][0]:
                best[i] = (loss, copy.deepcopy(state["members"][i]))
            else:
                active.remove(i)
        clock.step(f"pass {number + 1}")
        if not active or clock.late():
            break
    for i, (_, kept) in best.items():
        if kept is not None:
            state["members"][i].clear()
            state["members"][i].update(kept)
            learners[i].forget()


def _prepared(
    stack: Stack, state: State, targets: NoTarget, rows: Rows, target: np.ndarray, weight: Any, which: np.ndarray
) -> Any:
    """Scaled rows, encoded targets and weights; what is known of the columns stays as it is."""
    X = stack.seen(state, np.asarray(take(rows, which)))
    y = target[which]
    w = None if weight is None else weight[which]
    if targets.weighs or weights.SUMS in state:
        w = weights.over_mean(state, targets.row_weights(state, y, w), len(y))
    return X, targets.encode(state, y), w


def _members_learn(stack: Stack, state: State, which: list[int], X: np.ndarray, y: np.ndarray, weight: Any) -> None:
    N = len(stack.examples())

    def work(i: int) -> None:
        stack.member_learns(state, i, X, of_output(y, i // N), weight)

    threads.each(work, which, stack.ops.THREADED)


def _held_loss(stack: Stack, state: State, i: int, X: np.ndarray, y: np.ndarray, weight: Any) -> float:
    """Mean loss of a member on held-out rows."""
    f, own = stack.member_scores(state, i, X), of_output(y, i // len(stack.examples()))
    value = float(np.average(batch.losses(stack.regression, f, own[:, None]), weights=weight))
    return value if np.isfinite(value) else np.inf


def _weigh(stack: Stack, state: State, X: np.ndarray, y: np.ndarray, weight: Any) -> None:
    """The combination, made again on forecasts of held-out rows."""
    F = stack.forecasts(state, X, None, None)
    for o, part in enumerate(stack.combination.parts(state)):
        errors = part["member_errors"].copy()
        for name, value in start_stack(len(stack.examples()), stack.columns(state), stack.regression).items():
            part[name][...] = value
        own = of_output(y, o)
        for _ in range(2):  # the second time with a good start
            stack.ops.stack_pass(F[o], own, weight, part, (stack.regression, False))
        part["member_errors"][...] = errors


def _passes(passes: Any, n: int, shuffle: bool) -> int:
    """How many passes there may be."""
    if not shuffle or n < TOO_FEW_ROWS:
        return 1 if passes == "auto" or n < TOO_FEW_ROWS else int(passes)
    if isinstance(passes, numbers.Integral):
        return int(passes)
    return int(np.clip(MOST_ROWS_PASSED // max(n, 1), 1, MOST_PASSES))


def _held_out(seed: int, counted: np.ndarray, target: np.ndarray) -> np.ndarray | None:
    """Rows held out, sorted; no class loses all of its rows."""
    n = min(max(LEAST_HELD_OUT, int(HELD_OUT_SHARE * len(counted))), MOST_HELD_OUT)
    order = generator(seed, SeedStream.HELD_OUT_ROWS).permutation(counted)
    chosen = order[:n]
    if target.ndim == 1 and target.dtype.kind in "biuUS":
        labels = target[chosen]
        rest = np.unique(target[order[n:]])
        chosen = chosen[np.isin(labels, rest)]
    return np.sort(chosen) if len(chosen) >= 5 else None
