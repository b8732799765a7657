"""What the doubly stochastic learners share: automatic choices, rows that wait for their batch, several passes."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import Tags

from ... import kernels
from ...checks import positive
from ...core import threads
from ...core.ranges import settle
from ...kernels import Kernel
from ...kernels.parameters import KernelParameters
from ...passes.doubly.blocks import FeatureBlocks
from ...passes.doubly.descent import Descent
from ...random import Stream, generator
from ...registry.parameters import named_part
from ...rows import Rows, dense
from ...state.change import Change
from ...state.nested import under
from ...state.schema import POSITIVE, Array, Count, Number, Schema, check, prefixed
from ...state.turns import in_turn
from .._contract import kept, warm_up
from .._contract.base import Shell, State
from .._contract.kernel import WithKernel
from .._contract.order import check_order, counted
from .._contract.scaling import scales_columns
from .._contract.state import scaled_rows
from .._contract.warm_up import DENSE_ROWS, WARM_UP, runs
from .choice import CHOICE_ROWS, choose, unit
from .step import BATCH, LARGE_BATCH, BatchTags, DoublySchedule, DoublyStep, Plan, checked_passes

WARM_STEPS = 64  # iterations over the kept rows whenever the automatic choices are renewed
LEAST_STEPS = 300  # iterations of fit with passes="auto", unless one pass has more
LARGE_STEPS = 150  # the same with large batches


PARTS: Any = {"step": {"auto": DoublyStep}, "schedule": {"auto": DoublySchedule}}


class Doubly(WithKernel):
    """A learner whose unit is a batch of rows.

    Rows wait in the state, with their public targets, until their batch is complete, so that any split of a stream into
    calls gives the same model.
    """

    est: Any = None  # the estimator around it
    prefix = "kernel_"
    _replaced = frozenset({"alpha", "mean"})
    keeps_rows = True
    least_steps = LEAST_STEPS
    usual_size = 256  # draws in a block
    usual_blocks: int | None = None  # where the model stops growing
    measures_loss: bool = False  # whether the held-out loss is needed even where there is nothing to choose

    lam: Any = "auto"
    center: bool = False

    # ---------------------------------------------------------------- parts
    @property
    def auto_gamma(self) -> bool:
        """Whether the bandwidth is left to the model."""
        gamma = self.parameters["gamma"]
        return isinstance(gamma, str) and gamma == "auto"

    @cached_property
    def given(self) -> KernelParameters:
        """The kernel, and the bandwidth of one given by name."""
        return KernelParameters(self.parameters["kernel"], None if self.auto_gamma else self.parameters["gamma"])

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
        return BATCH if isinstance(size, str) else size

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

    def chooses_bandwidth(self) -> bool:
        """Whether fractions of the median distance compete on held-out rows."""
        kernel = self.given.kernel_object
        auto = self.auto_gamma and isinstance(self.given.kernel, str)
        return auto and kernel.bandwidth is not None and "median" in kernel.rules

    def kernel(self, state: State) -> Kernel:
        """The kernel with its bandwidth, where it has one already."""
        found = under(state, self.prefix)
        return self.given.resolved(found) if found else self.given.kernel_object

    def descent(self, state: State) -> Descent:
        """The recursion for the entries of a state."""
        own = state is self.est.__dict__.get("_state")
        made: Descent = self.cached("descent", lambda: self.make_descent(state)) if own else self.make_descent(state)
        # a new class changes the loss, and rows of a stream the penalty of a Gaussian process
        made.loss, made.lam = self.loss(state), state["lam"]
        return made

    def make_descent(self, state: State) -> Descent:
        """The same, not from the cache."""
        ops, step = self.ops, self.step
        shape = state["n_features"], self.block_size, state["dtype"]
        blocks = ops.FeatureBlocks(self.kernel(state), state["seed"], *shape, ops)
        loss, limits = self.loss(state), (step.average, step.damping(), self.max_blocks)
        return ops.Descent(blocks, loss, state["eta"], step.theta0, state["lam"], *limits)

    def check_parameters(self) -> None:
        self.step.check()
        kernel = self.given.kernel_object
        if not kernel.has_features:
            raise ValueError(f"{type(kernel).__name__} has no random features, which doubly stochastic gradients need")
        self.schedule.check()
        if self.lam != "auto":
            positive("lam", self.lam, zero=True)

    # ---------------------------------------------------------------- automatic choices
    def warm_up_rows(self) -> int:
        if self.chooses_bandwidth() or self.step.eta == "auto":
            return CHOICE_ROWS
        return WARM_UP if self.center or self.given.kernel_needs_data else 0

    def start(self, state: State, before: State | None) -> None:
        if not self.warm_up_rows():
            state |= {"offset": 0.0, "eta": float(self.step.eta), "lam": self.regulariser(state, CHOICE_ROWS)}

    def regulariser(self, state: State, n: int) -> float:
        """By default the paper's 1/(100 n), which is for a target of standard deviation 1, where that matters."""
        return 1.0 / (100.0 * n) if self.lam == "auto" else float(self.lam)

    def choose(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray, n: int, plan: Plan) -> float:
        """Estimate everything automatic from rows X (m, d) with encoded targets y (m,), for n rows and the ``plan``.

        Returns the held-out loss of what was chosen; NaN where there was nothing to compare.
        """
        kernel = self.given.kernel_object
        state["offset"] = float(np.average(y, weights=weight)) if self.center else 0.0
        state["lam"] = self.regulariser(state, n)
        if self.lam == "auto":
            state["lam"] /= unit(self.loss(state), y, weight)
        return choose(self, state, kernel.resolve(X), X, y, weight, plan)

    def stream_rows(self, n: int) -> int:
        """Number of rows for which to regularise after n rows of a stream."""
        return CHOICE_ROWS

    def found(self, state: State, share: float) -> tuple[dict[str, Any], np.ndarray | None]:
        step = clone(self.step).set_params(eta=float(state["eta"]))
        found = {"kernel": self.kernel(state), "gamma": None, "step": step, "standardize": scales_columns(state)}
        return {name: value for name, value in found.items() if name in self.est._get_param_names()}, None

    # ---------------------------------------------------------------- a stream of batches
    def reset(self, state: State) -> None:
        kept.take("wait", state)
        state["waiting"] = 0
        self.descent(state).reset(state, self.columns(state))

    def columns(self, state: State) -> int:
        """Number of functions that are learned, by the parameters alone."""
        return state["n_outputs"]

    def learn_scaled(self, X: Rows, y: np.ndarray, weight: np.ndarray | None, wanted: bool = True) -> np.ndarray:
        state, n = self.est._state, X.shape[0]
        X = warm_up.standardized(self.est, state, X, weight)
        scores = np.zeros((n, state["n_outputs"]))
        for part in runs(weight, n, lambda: self.batch_size - state["waiting"]):
            fresh = kept.add("wait", state, X[part], y[part], None if weight is None else weight[part])
            state["waiting"] += fresh
            full = state["waiting"] == self.batch_size
            if (
                full and fresh == part.stop - part.start
            ):  # usually: the rows complete a batch, whose scores are computed anyway
                before = self.learn_waiting(wanted)
                if wanted:
                    scores[part] = before[-fresh:]
            else:
                if wanted:
                    scores[part] = self.score(state, X[part])
                if full:
                    self.learn_waiting(False)
        if wanted:
            self.est._follow(scores, self.est._encode(state, y), weight)
        return scores

    def learn_waiting(self, wanted: bool) -> np.ndarray:
        """One iteration with the waiting rows; returns their scores before it if ``wanted``, (b, C)."""
        state = self.est._state
        X, y, weight = kept.take("wait", state)
        state["waiting"] = 0
        descent = self.descent(state)
        F, shown = descent.both(state, X) if wanted else (descent.iterate(state, X), np.empty(0))
        weight = self.est._row_weights(state, y, weight)
        descent.learn_batch(state, X, self.est._encode(state, y), weight, F)
        return shown

    def start_over(
        self, state: State, X: Rows, y: np.ndarray, target: np.ndarray, weight: np.ndarray, **how: Any
    ) -> None:
        plan = Plan(len(y), WARM_STEPS, self.batch_size, self.step.damping())
        self.choose(state, X, target, weight, self.stream_rows(len(y)), plan)
        self.leave_device()
        self.forget()
        self.reset(state)
        self.descent(state).train(state, X, target, weight, plan.steps, plan.batch, state["seed"])

    # ---------------------------------------------------------------- fit
    def fit(self, X: Rows, y: np.ndarray, weight: np.ndarray | None, passes: Any) -> None:
        """Choose what is automatic, then learn rows in ``passes`` passes; y is the public target."""
        state = self.est._state
        X, y, weight = counted(X, y, weight)
        n = len(y)
        weight = self.weigh_all(state, y, np.ones(n) if weight is None else weight)
        y = self.est._encode(state, y)
        some = generator(state["seed"], Stream.DOUBLY_ROWS).permutation(n)[:CHOICE_ROWS]
        X = self._scaled_by_all(state, X, some)
        plan = self.plan(n, passes)
        if self.warm_up_rows():
            self.choose(state, X[some], y[some], weight[some], n, plan)
        else:
            state["lam"] = self.regulariser(state, n)
        state |= {"warm_rows": 0, "warm_count": 0}
        self.leave_device()
        self.forget()
        self.reset(state)
        descent = self.descent(state)
        if plan.large:  # a stream that continues from here has smaller batches
            descent = replace(descent, precondition=plan.precondition)
        descent.train(state, X, y, weight, plan.steps, plan.batch, state["seed"])

    def _scaled_by_all(self, state: State, X: Rows, some: np.ndarray) -> Rows:
        """Rows of ``fit``, all scaled by the same moments, if at all: decided by ``some`` of them."""
        warm_up.begin_scaling(self.est, state, X[some])
        warm_up.warn_about_units(self.est, X[some])
        if not scales_columns(state):
            return X
        cuts = threads.cuts(X.shape[0], DENSE_ROWS)
        for rows in cuts:
            warm_up.standardized(self.est, state, X[rows], None)  # for the moments
        settle(state)
        return np.concatenate([scaled_rows(self.ops, X[rows], state) for rows in cuts])

    def weigh_all(self, state: State, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Enter what is known from all targets; returns the weights of all rows."""
        if "classes" not in state:
            return weight
        est: Any = self.est
        for label in np.unique(y):
            est._add_class(state, label, trained=False)
        if est.class_weight != "balanced":
            return np.asarray(est._row_weights(state, y, weight))
        counts = np.array([(y == label).sum() for label in state["classes"]], float)
        state["class_counts"][:] = counts
        return weight * (len(y) / (len(counts) * counts))[np.searchsorted(state["classes"], y)]

    def plan(self, n: int, passes: Any) -> Plan:
        """The iterations of ``fit`` in ``passes`` passes over n rows."""
        step, auto = self.step, passes == "auto"
        large = auto and self.schedule.batch_size == "auto" and step.precondition == "auto"
        batch = min(LARGE_BATCH if large else self.batch_size, n)
        least = LARGE_STEPS if large else self.least_steps
        steps = max(math.ceil(n / batch), least) if auto else max(1, math.ceil(passes * n / batch))
        return Plan(n, steps, batch, step.damping(batch if large else None), large)

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
        if not (trained or not self.warm_up_rows()):
            return {}
        kernel = prefixed(self.prefix, self.given.kernel_schema())
        settled: Schema = kernel | {"offset": Number(), "eta": Number(0.0), "lam": Number(0.0)}
        if not trained:
            return settled
        check({name: state[name] for name in settled if name in state}, settled)  # for the kernel
        blocks = state["t"] if self.max_blocks is None else min(state["t"], self.max_blocks)
        d, dtype = state["n_features"], state["dtype"]
        width = FeatureBlocks(self.kernel(state), state["seed"], d, self.block_size, dtype, self.ops).width
        weights = Array((blocks, width, self.columns(state)), dtype)
        average: Schema = {"mean": weights} if self.step.average else {}
        waiting: Schema = {"waiting": Count(0, self.batch_size - 1)}
        check({name: state[name] for name in waiting if name in state}, waiting)
        n = state["waiting"]
        waiting |= kept.schema("wait", state, n) if n else {}
        return settled | {"alpha": weights, "shrink": Number(POSITIVE, 1.0)} | average | waiting

    def tags(self, tags: Any) -> Any:
        tags.input_tags.positive_only = self.given.kernel_object.domain == "nonnegative"
        fields = {name: getattr(tags, name) for name in Tags.__dataclass_fields__}
        return BatchTags(**fields, rows_per_update=self.batch_size)


# -------------------------------------------------------------------- what the estimators have in common
def without_scores(partial_fit: Any) -> Any:
    """``partial_fit`` that does not compute the scores of waiting rows, which nobody will see."""

    @functools.wraps(partial_fit)
    def learn(est: Shell[Doubly], *args: Any, **kwargs: Any) -> Any:
        with est._turns:
            est._how = {"wanted": False}
            try:
                return partial_fit(est, *args, **kwargs)
            finally:
                del est._how

    return learn


def fit(
    self: Shell[Doubly], X: Any, y: Any, sample_weight: Any = None, *, shuffle: bool = True, passes: Any = None
) -> Shell[Doubly]:
    """Forget everything, choose what is automatic on a random part of the rows, then learn all in several passes.

    Parameters
    ----------
    X : (n, d) array or CSR
    y : (n,) array
    sample_weight : (n,) array, optional
    shuffle : bool, default=True
        Take random batches of the rows. False keeps the order: what ``learn`` does on a fresh model.
    passes : float or "auto", optional
        Replaces that of the schedule; with ``shuffle=False`` an integer, by default 1.

    Returns
    -------
    self
    """
    with self._turns:
        if not shuffle:
            self._fit_rows(X, y, sample_weight, shuffle, 1 if passes is None else passes)
            return self
        with self._kept(fresh=True):
            check_order(self, shuffle, 1)
            passes = self._learner.schedule.passes if passes is None else checked_passes(passes)
            rows, target, weight = self._admit(X, y, None, sample_weight, fresh=True)
            self._check_whole(target, weight)
            self._learner.fit(rows, target, weight, passes)
            if scales_columns(self._state):
                rows = dense(rows)
            self._link_from(*counted(rows, target, weight))
    return self


@in_turn
def kernel(est: Shell[Doubly]) -> Kernel:
    """The kernel in use."""
    return est._learner.kernel(est.state_)
