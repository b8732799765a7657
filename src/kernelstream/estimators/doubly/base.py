"""What the doubly stochastic learners share: rows that wait for their batch, and all rows in several passes."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import Tags

from ... import kernels
from ...checks import positive
from ...kernels import Kernel
from ...passes.doubly.blocks import FeatureBlocks
from ...passes.doubly.descent import EIGEN_ROWS, Descent, top_eigenvalue
from ...random import SeedStream, generator
from ...registry.parameters import named_part
from ...rows import Rows
from ...state.change import Change
from ...state.nested import under
from ...state.schema import POSITIVE, Array, Count, Number, Schema, check
from .._contract import kept
from .._contract.base import Shell, State, StreamEstimator
from .._contract.calls import learning
from .._contract.codes import decoded, encoded, outputs_of
from .._contract.kernel import WithKernel
from .._contract.kernel import kernel as kernel
from .._contract.layers import Layers
from .._contract.order import check_order, counted
from .._contract.warm_up import WARM_UP, runs
from .step import (
    BATCH,
    LARGE_BATCH,
    STREAM_BATCH,
    BatchTags,
    DoublySchedule,
    DoublyStep,
    checked_passes,
    target_unit,
    usual_step,
)

STREAM_ROWS = 1536  # rows for which the penalty of a stream is
LEAST_STEPS = 300  # iterations of fit with passes="auto", unless one pass has more
LARGE_STEPS = 150  # the same with large batches

PARTS: Any = {"step": {"auto": DoublyStep}, "schedule": {"auto": DoublySchedule}}


class Doubly(WithKernel):
    """A learner whose unit is a batch of rows.

    Rows wait in the state until their batch is complete, so that any split of a stream into calls gives the same model.
    """

    _replaced = frozenset({"alpha", "mean"})
    keeps_rows = True
    least_steps = LEAST_STEPS
    usual_size = 256  # draws in a block
    usual_blocks: int | None = None  # where the model stops growing

    lam: Any = "auto"
    center: bool = False

    # ---------------------------------------------------------------- parts
    @cached_property
    def step(self) -> DoublyStep:
        """Step sizes."""
        return named_part(self.context.kind, "step", self.parameters["step"])

    @cached_property
    def schedule(self) -> DoublySchedule:
        """Sizes of batches and blocks."""
        return named_part(self.context.kind, "schedule", self.parameters["schedule"])

    @property
    def batch_size(self) -> int:
        """Rows in a batch of a stream."""
        size = self.schedule.batch_size
        return STREAM_BATCH if isinstance(size, str) else size

    @property
    def block_size(self) -> int:
        """Draws in a block."""
        size = self.schedule.block_size
        return self.usual_size if isinstance(size, str) else size

    @property
    def max_blocks(self) -> int | None:
        """Blocks at which the model stops growing."""
        most = self.schedule.max_blocks
        return self.usual_blocks if isinstance(most, str) else most

    def descent(self, state: State) -> Descent:
        """The recursion for the entries of a state."""
        found = self.derived.get("descent")
        if found is None or found[0] is not state:
            found = self.derived["descent"] = state, self.make_descent(state)
        made: Descent = found[1]
        # a new class changes the loss, the first targets the step, and rows of a stream the penalty
        made.loss, made.eta, made.lam = self.loss(state), state["eta"], state["lam"]
        return made

    def make_descent(self, state: State, kind: Any = None, **more: Any) -> Descent:
        """The same, not from the cache; of another kind with ``more`` fields."""
        ops, step = self.ops, self.step
        shape = state["n_features"], self.block_size, state["dtype"]
        blocks = ops.FeatureBlocks(self.kernel(state), state["seed"], *shape, ops)
        given = {"theta0": step.theta0, "average": step.average, "precondition": step.damping()} | more
        given |= {"eta": state["eta"], "lam": state["lam"], "max_blocks": self.max_blocks}
        return (kind or ops.Descent)(blocks, self.loss(state), **given)

    def check_parameters(self) -> None:
        self.step.check()
        kernel = self.given.kernel_object
        if not kernel.has_features:
            raise ValueError(f"{type(kernel).__name__} has no random features, which doubly stochastic gradients need")
        self.schedule.check()
        if self.lam != "auto":
            positive("lam", self.lam, zero=True)

    # ---------------------------------------------------------------- what the first rows tell
    def warm_up_rows(self) -> int:
        if self.step.eta == "auto":
            return max(WARM_UP, min(self.batch_size, EIGEN_ROWS))
        return WARM_UP if self.center or self.given.kernel_needs_data else 0

    def start(self, state: State, before: State | None) -> None:
        if not self.warm_up_rows():
            self.estimate(state, None)

    def estimate(self, state: State, X: Rows) -> None:
        super().estimate(state, X)
        kernel = self.given.resolved(under(state, self.prefix))
        state |= {"offset": 0.0, "eta": self.first_step(state, kernel, X), "lam": self.penalty(state, STREAM_ROWS)}

    def first_step(self, state: State, kernel: Kernel, X: Rows) -> float:
        """Eta for rows X and targets whose unit is 1."""
        if self.step.eta != "auto":
            return float(self.step.eta)
        return usual_step(self.loss(state)) / top_eigenvalue(kernel, X)

    def penalty(self, state: State, n: int) -> float:
        """By default the paper's 1/(100 n), which is for a target of standard deviation 1, where that matters."""
        return 1.0 / (100.0 * n) if self.lam == "auto" else float(self.lam)

    def start_targets(self, state: State, y: np.ndarray, weight: np.ndarray) -> None:
        self.start_targets_of(state, y, weight, STREAM_ROWS)

    def start_targets_of(self, state: State, y: np.ndarray, weight: np.ndarray, n: int) -> None:
        """Level and unit of the targets y, some of n."""
        state["lam"] = self.penalty(state, n)
        if self.center:
            state["offset"] = float(np.average(y, weights=weight))
        unit = target_unit(self.loss(state), y, weight)
        if self.lam == "auto":
            state["lam"] /= unit
        if self.step.eta == "auto":  # weights that are all 1000 must not make the steps longer
            state["eta"] *= unit / float(weight[weight > 0].mean())

    # ---------------------------------------------------------------- a stream of batches
    def reset(self, state: State) -> None:
        kept.take("wait", state)
        state["waiting"] = 0
        self.descent(state).reset(state, self.columns(state))

    def columns(self, state: State) -> int:
        """Number of functions that are learned, by the parameters alone."""
        return state["n_outputs"]

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        n, y = X.shape[0], decoded(state, y, self.loss(state)) if len(state.get("classes", ())) else y
        scores = np.zeros((n, state["n_outputs"]))
        for part in runs(weight, n, lambda: self.batch_size - state["waiting"]):
            fresh = kept.add("wait", state, X[part], y[part], None if weight is None else weight[part])
            state["waiting"] += fresh
            full, all_wait = state["waiting"] == self.batch_size, fresh == part.stop - part.start
            if not (full and all_wait):
                scores[part] = self.score(state, X[part])
            if full:
                before = self.learn_waiting(state)
                if all_wait:  # usually: the scores of the batch are computed anyway
                    scores[part] = before[-fresh:]
        return scores

    def learn_waiting(self, state: State) -> np.ndarray:
        """One iteration with the waiting rows; returns their scores before it, (b, C)."""
        X, y, weight = kept.take("wait", state)
        state["waiting"] = 0
        descent = self.descent(state)
        F, shown = descent.both(state, X)
        target = encoded(state, y, self.loss(state)) if "classes" in state else y
        descent.learn_batch(state, X, target, weight, F)
        return shown

    # ---------------------------------------------------------------- fit
    def train(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray, first: np.ndarray, passes: Any) -> None:
        """Learn all rows, of which the ``first`` tell bandwidth and step, in random batches, in so many passes."""
        n = len(y)
        self.estimate(state, X[first])
        self.derived.leave_device()
        self.forget()
        self.reset(state)
        self.start_targets_of(state, y, weight, n)
        auto = self.schedule.batch_size == "auto"
        large = auto and passes == self.step.precondition == "auto"
        batch = min(LARGE_BATCH if large else BATCH if auto else self.batch_size, n)
        least = LARGE_STEPS if large else self.least_steps
        steps = max(math.ceil(n / batch), least) if passes == "auto" else max(1, math.ceil(passes * n / batch))
        descent = self.descent(state)
        if large:  # a stream that continues from here has smaller batches
            descent = replace(descent, precondition=self.step.damping(batch))
        descent.train(state, X, y, weight, steps, batch, state["seed"])

    # ---------------------------------------------------------------- the rest of the contract
    def score(self, state: State, X: Rows) -> np.ndarray:
        return self.descent(state).predict(state, X)

    def mix_outputs(self, state: State, change: Change) -> None:
        for name in ("alpha", "mean"):
            if name in state:
                state[name] = np.ascontiguousarray(np.moveaxis(change.rows(np.moveaxis(state[name], 2, 0)), 0, 2))

    def widen(self, state: State, d: int) -> None:
        if not isinstance(self.given.kernel_object, kernels.Gaussian):
            super().widen(state, d)
        kept.widen("wait_X", state, d)  # the random numbers of a column do not depend on the number of columns

    def schema(self, state: State, trained: bool) -> Schema:
        if not trained and self.warm_up_rows():
            return {}
        own: Schema = {"offset": Number(), "eta": Number(0.0), "lam": Number(0.0)} | self.kernel_schema(state, True)
        if not trained:
            return own
        own["waiting"] = Count(0, self.batch_size - 1)
        check({"waiting": state["waiting"]} if "waiting" in state else {}, {"waiting": own["waiting"]})
        waiting = kept.schema("wait", state, state["waiting"]) if state["waiting"] else {}
        blocks = state["t"] if self.max_blocks is None else min(state["t"], self.max_blocks)
        d, dtype = state["n_features"], state["dtype"]
        width = FeatureBlocks(self.kernel(state), state["seed"], d, self.block_size, dtype, self.ops).width
        weights = Array((blocks, width, self.columns(state)), dtype)
        average: Schema = {"mean": weights} if self.step.average else {}
        return own | {"alpha": weights, "shrink": Number(POSITIVE, 1.0)} | average | waiting

    def tags(self, tags: Any) -> Any:
        tags.input_tags.positive_only = self.given.kernel_object.domain == "nonnegative"
        fields = {name: getattr(tags, name) for name in Tags.__dataclass_fields__}
        return BatchTags(**fields, rows_per_update=self.batch_size)


# -------------------------------------------------------------------- what the estimators have in common
def fit(
    self: Shell[Doubly], X: Any, y: Any = None, sample_weight: Any = None, *, shuffle: bool = True, passes: Any = None
) -> Shell[Doubly]:
    """Forget everything, then learn the rows in random batches, in several passes.

    Parameters
    ----------
    X : (n, d) array or CSR
    y : (n,) array
        Ignored where there is no target.
    sample_weight : (n,) array, optional
    shuffle : bool, default=True
        Take random batches of the rows. False keeps the order: what ``learn`` does on a fresh model.
    passes : float or "auto", optional
        Replaces that of the schedule; with ``shuffle=False`` an integer, by default 1.

    Returns
    -------
    self
    """
    if not shuffle:
        own: int = 1 if passes is None else passes
        return StreamEstimator.fit(self, X, y, sample_weight, shuffle=shuffle, passes=own)
    with self._turns, learning(self, fresh=True):
        check_order(type(self).__name__, False, shuffle, 1)
        how = {} if passes is None else {"passes": checked_passes(passes)}
        rows, target, weight = self._admit(X, y, None, sample_weight, fresh=True)
        self._layers.targets.check_whole(target, weight)
        solve(self._layers, self._state, *counted(rows, target, weight), **how)
        self._layers.link_from(self._state, *counted(rows, target, weight), solve)
    return self


def solve(layers: Layers, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, passes: Any = None) -> None:
    """Scale all rows as the first ones of a stream are, and train with them; y is the public target."""
    learner: Any = layers.learner
    n = len(y)
    if "classes" in state:
        _, weight = layers.targets.batch(state, y, weight)
        state["n_outputs"] = outputs_of(learner, len(state["classes"]))
    first = generator(state["seed"], SeedStream.DOUBLY_ROWS).permutation(n)[:EIGEN_ROWS]
    layers.rows.decide(state, X[first])
    layers.rows.warn(state, X[first])
    X = layers.rows.settled(state, X, None)
    state |= {"warm_rows": 0, "warm_count": 0}
    passes = learner.schedule.passes if passes is None else passes
    learner.train(state, X, layers.targets.encode(state, y), np.ones(n) if weight is None else weight, first, passes)
