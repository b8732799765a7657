"""What the doubly stochastic learners share: automatic choices, rows that wait for their batch, several passes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import Tags

from ... import kernels
from ..._checks import positive
from ...core import threads
from ...kernels import Kernel
from ...kernels.parameters import KernelParameters
from ...passes.doubly.blocks import FeatureBlocks
from ...passes.doubly.descent import Descent
from ...random import Stream, generator
from ...registry.parameters import named_part
from ...rows import Rows, concat, dense, drop, host, pack, unpack
from ...state.change import Change
from ...state.schema import POSITIVE, Array, Count, Number, Schema, check, prefixed
from ...state.turns import in_turn
from .._contract import warm_up
from .._contract.base import State, StreamEstimator
from .._contract.batch import counted
from .._contract.order import check_order
from .._contract.scaling import scales_columns
from .._contract.state import packed, scaled_rows, targets, widen_packed
from .._contract.warm_up import DENSE_ROWS, WARM_UP, rows_until
from .choice import CHOICE_ROWS, choose, trial, unit
from .step import BATCH, LARGE_BATCH, BatchTags, DoublySchedule, DoublyStep, Plan, checked_passes

KERNEL = "kernel_"  # prefix of the estimated parameters of the kernel in the state
WARM_STEPS = 64  # iterations over the kept rows whenever the automatic choices are renewed
LEAST_STEPS = 300  # iterations of fit with passes="auto", unless one pass has more
LARGE_STEPS = 150  # the same with large batches


class DoublyEstimator(StreamEstimator):
    """The contract of a streaming estimator for a learner whose unit is a batch of rows.

    Rows wait in the state until a batch is complete, so any split of a stream into calls gives the same model.
    """

    _short_way = False  # rows wait with their original labels

    kernel: Any
    gamma: Any
    lam: Any
    step: Any
    schedule: Any
    center: bool = False

    _replaced = frozenset({"alpha", "mean"})
    _named_parts: ClassVar = {"step": {"auto": DoublyStep}, "schedule": {"auto": DoublySchedule}}
    _least_steps = LEAST_STEPS
    _usual_size = 256  # draws in a block
    _usual_blocks: int | None = None  # where the model stops growing
    _measures_loss = False  # whether the held-out loss is needed even where there is nothing to choose

    # ---------------------------------------------------------------- components
    def _step_part(self) -> DoublyStep:
        return named_part(self, "step")

    @property
    def _schedule(self) -> DoublySchedule:
        return self._cached("schedule", lambda: named_part(self, "schedule"))

    @property
    def _batch_size(self) -> int:
        """Rows for which those of a stream wait."""
        size = self._schedule.batch_size
        return BATCH if isinstance(size, str) else size

    @property
    def _block_size(self) -> int:
        size = self._schedule.block_size
        return self._usual_size if isinstance(size, str) else size

    @property
    def _max_blocks(self) -> int | None:
        most = self._schedule.max_blocks
        return self._usual_blocks if isinstance(most, str) else most

    @property
    def _auto_gamma(self) -> bool:
        return isinstance(self.gamma, str) and self.gamma == "auto"

    @property
    def _given(self) -> KernelParameters:
        return self._cached("given", lambda: KernelParameters(self.kernel, None if self._auto_gamma else self.gamma))

    def _kernel_given(self) -> Kernel:
        """The kernel of the parameters; its bandwidth may still be a rule."""
        return self._given.kernel_object

    def _chooses_bandwidth(self) -> bool:
        """Whether fractions of the median distance compete on held-out rows."""
        kernel = self._kernel_given()
        auto = self._auto_gamma and isinstance(self.kernel, str)
        return auto and kernel.bandwidth is not None and "median" in kernel.rules

    @property
    @in_turn
    def kernel_(self) -> Kernel:
        """The kernel in use."""
        return self._kernel(self.state_)

    def _kernel(self, state: State) -> Kernel:
        found = {key[len(KERNEL) :]: value for key, value in state.items() if key.startswith(KERNEL)}
        return self._given.resolved(found) if found else self._kernel_given()

    def _descent(self, state: State) -> Descent:
        """The recursion for the entries of a state."""

        def build() -> Descent:
            kernel, step = self._kernel(state), self._step_part()
            ops = self._ops
            blocks = ops.FeatureBlocks(
                kernel,
                state["seed"],
                state["n_features"],
                self._block_size,
                state["dtype"],
                ops,
            )
            loss, limits = self._loss_now(state), (step.average, step.damping(), self._max_blocks)
            return ops.Descent(blocks, loss, state["eta"], step.theta0, state["lam"], *limits)

        made = self._cached("descent", build) if state is self.__dict__.get("_state") else build()
        made.loss = self._loss_now(state)  # a new class changes it
        return made

    def _check_parameters(self) -> None:
        step = self._step_part()
        step.check()
        kernel = self._kernel_given()
        if not kernel.has_features:
            raise ValueError(f"{type(kernel).__name__} has no random features, which doubly stochastic gradients need")
        named_part(self, "schedule").check()
        if self.lam != "auto":
            positive("lam", self.lam, zero=True)
        if not isinstance(self.center, (bool, np.bool_)):
            raise ValueError(f"center must be True or False, got {self.center!r}")

    def _check_X(self, X: Any, reset: bool, least: int = 1) -> Rows:
        return host(super()._check_X(X, reset, least))  # rows wait and are shuffled: they stay on the processor

    def _check_rows(self, X: Rows) -> None:
        if self._choosy():
            self._given.check(host(X))

    def _choosy(self) -> bool:
        return self._cached("restricted", lambda: self._given.restricted)

    # ---------------------------------------------------------------- automatic choices
    def _warm_up_rows(self) -> int:
        if self._chooses_bandwidth() or self._step_part().eta == "auto":
            return CHOICE_ROWS
        return WARM_UP if self.center or self._given.kernel_needs_data else 0

    def _one_width(self) -> bool:
        return self._given.takes_width

    def _begin(self, state: State) -> None:
        if not self._warm_up_rows():
            state |= {"offset": 0.0, "eta": float(self._step_part().eta), "lam": self._regulariser(state, CHOICE_ROWS)}

    def _regulariser(self, state: State, n: int) -> float:
        """The paper's 1/(100 n), if none is given: for a target whose deviation is 1, where that matters."""
        return 1.0 / (100.0 * n) if self.lam == "auto" else float(self.lam)

    def _choose(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray, n: int, plan: Plan) -> float:
        """Estimate everything automatic from rows X (m, d) with encoded targets y (m,), for n rows and the ``plan``.

        Returns the held-out loss of what was chosen; NaN where there was nothing to compare.
        """
        self._drop_kernel(state)
        kernel = self._kernel_given()
        state["offset"] = float(np.average(y, weights=weight)) if self.center else 0.0
        state["lam"] = self._regulariser(state, n)
        if self.lam == "auto":
            state["lam"] /= unit(self._loss_now(state), y, weight)
        return choose(self, state, kernel.resolve(X), X, y, weight, plan)

    def _trial(
        self, state: State, kernel: Kernel, eta: float, X: Rows, y: np.ndarray, weight: np.ndarray, plan: Plan
    ) -> float:  # fmt: skip
        """The loss by which a kernel and a step are judged."""
        return trial(self, state, kernel, eta, X, y, weight, plan)

    def _stream_rows(self, n: int) -> int:
        """Number of rows for which to regularise after n rows of a stream."""
        return CHOICE_ROWS

    @staticmethod
    def _drop_kernel(state: State) -> None:
        """Forget the numbers that the kernel took from rows."""
        for key in [key for key in state if key.startswith(KERNEL)]:
            del state[key]

    def _set_kernel(self, state: State, kernel: Kernel) -> None:
        """Enter the numbers that the kernel took from rows."""
        state |= {KERNEL + name: value for name, value in self._given.entries_of(kernel).items()}

    def _found(self, state: State, share: float) -> tuple[dict[str, Any], np.ndarray | None]:
        step = clone(self._step_part()).set_params(eta=float(state["eta"]))
        found = {"kernel": self._kernel(state), "gamma": None, "step": step, "standardize": scales_columns(state)}
        return {name: value for name, value in found.items() if name in self._get_param_names()}, None

    # ---------------------------------------------------------------- a stream of batches
    def _reset(self, state: State) -> None:
        for name in ("wait_y", "wait_weight"):
            state.pop(name, None)
        drop("wait_X", state)
        state["waiting"] = 0
        self._descent(state).reset(state, self._columns(state))

    def _columns(self, state: State) -> int:
        """Number of functions that are learned."""
        return state["n_outputs"]

    @contextlib.contextmanager
    def _without_scores(self) -> Iterator[None]:
        """Context in which the scores of rows that wait are not computed."""
        self._scores_unwanted = True
        try:
            yield
        finally:
            self.__dict__.pop("_scores_unwanted", None)

    def _learn_scaled(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        state, n = self._state, X.shape[0]
        X = warm_up.standardized(self, state, X, weight)
        wanted = not self.__dict__.get("_scores_unwanted", False)
        scores = np.zeros((n, state["n_outputs"]))
        start = 0
        while start < n:
            stop = rows_until(weight, start, n, self._batch_size - state["waiting"])
            part = slice(start, stop)
            fresh = self._wait(X[part], y[part], None if weight is None else weight[part])
            full = state["waiting"] == self._batch_size
            if full and fresh == stop - start:  # usually: the rows complete a batch, whose scores are computed anyway
                before = self._learn_waiting(wanted)
                if wanted:
                    scores[part] = before[-fresh:]
            else:
                if wanted:
                    scores[part] = self._score(state, X[part])
                if full:
                    self._learn_waiting(False)
            start = stop
        if wanted:
            self._follow(scores, self._encode(state, y), weight)
        return scores

    def _wait(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> int:
        """Add rows of positive weight to those that wait; returns how many."""
        state = self._state
        weight = np.ones(len(y)) if weight is None else weight
        if not weight.all():
            counted = weight > 0
            X, y, weight = X[counted], y[counted], weight[counted]
        fresh = len(y)
        if state["waiting"]:
            X = concat([unpack("wait_X", state), X])
            y = np.concatenate([state["wait_y"], y])
            weight = np.concatenate([state["wait_weight"], weight])
        drop("wait_X", state)
        if len(y):
            state |= pack("wait_X", X) | {"wait_y": np.array(y), "wait_weight": np.array(weight), "waiting": len(y)}
        return fresh

    def _learn_waiting(self, wanted: bool) -> np.ndarray:
        """One iteration for the rows that wait; returns their scores before it if ``wanted``, (b, C)."""
        state = self._state
        X, y, weight = unpack("wait_X", state), state.pop("wait_y"), state.pop("wait_weight")
        drop("wait_X", state)
        state["waiting"] = 0
        descent = self._descent(state)
        F, shown = descent.both(state, X) if wanted else (descent.iterate(state, X), np.empty(0))
        weight = self._row_weights(state, y, weight)
        descent.learn_batch(state, X, self._encode(state, y), weight, F)
        return shown

    def _renew(self) -> None:
        state = self._state
        X: Any = unpack("warm_X", state)
        y = state["warm_y"]
        self._forget_rows(state)
        weight: Any = self._row_weights(state, y, self._trusted(X, y, state["warm_weight"]))
        target = self._encode(state, y)
        warm_up.begin_scaling(self, state, X[weight > 0])
        X = warm_up.standardized(self, state, X, weight)
        plan = Plan(len(y), WARM_STEPS, self._batch_size, self._step_part().damping())
        self._choose(state, X, target, np.asarray(weight), self._stream_rows(len(y)), plan)
        self._forget()
        self._reset(state)
        self._descent(state).train(state, X, target, weight, plan.steps, plan.batch, state["seed"])

    # ---------------------------------------------------------------- fit
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, shuffle: bool = True, passes: Any = None
    ) -> DoublyEstimator:
        """Forget everything, choose what is automatic on a random part of the rows, then learn all in several passes.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : (n,) array
        sample_weight : (n,) array, optional
        shuffle : bool, default=True
            Take random batches of the rows. False keeps the order: what ``learn`` does on a fresh model.
        passes : float or "auto", optional
            In place of those of the schedule; with ``shuffle=False`` an integer, 1 if not given.

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
                passes = self._schedule.passes if passes is None else checked_passes(passes)
                rows, target, weight = self._admit(X, y, None, sample_weight, fresh=True)
                self._check_whole(target, weight)
                self._fit(rows, target, weight, passes)
                if scales_columns(self._state):
                    rows = dense(rows)
                self._link_from(*counted(rows, target, weight))
        return self

    def _fit(self, X: Rows, y: np.ndarray, weight: np.ndarray | None, passes: Any) -> None:
        state = self._state
        X, y, weight = counted(X, y, weight)
        n = len(y)
        weight = self._weigh_all(state, y, np.ones(n) if weight is None else weight)
        y = self._encode(state, y)
        some = generator(state["seed"], Stream.DOUBLY_ROWS).permutation(n)[:CHOICE_ROWS]
        X = self._scaled_by_all(state, X, some)
        plan = self._plan(n, passes)
        if self._warm_up_rows():
            self._choose(state, X[some], y[some], weight[some], n, plan)
        else:
            state["lam"] = self._regulariser(state, n)
        state |= {"warm_rows": 0, "warm_count": 0}
        self._forget()
        self._reset(state)
        descent = self._descent(state)
        if plan.large:  # a stream that goes on from here has smaller batches
            descent = replace(descent, precondition=plan.precondition)
        descent.train(state, X, y, weight, plan.steps, plan.batch, state["seed"])

    def _scaled_by_all(self, state: State, X: Rows, some: np.ndarray) -> Rows:
        """Rows of ``fit``, all scaled by the same moments, if at all: decided by ``some`` of them."""
        warm_up.begin_scaling(self, state, X[some])
        warm_up.warn_about_units(self, X[some])
        if not scales_columns(state):
            return X
        cuts = threads.cuts(X.shape[0], DENSE_ROWS)
        for rows in cuts:
            warm_up.standardized(self, state, X[rows], None)  # for the moments
        return np.concatenate([scaled_rows(X[rows], state) for rows in cuts])

    def _weigh_all(self, state: State, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Enter what is known from all targets; returns the weights of all rows."""
        return weight

    def _plan(self, n: int, passes: Any) -> Plan:
        """The iterations of ``fit`` in ``passes`` passes over n rows."""
        step, auto = self._step_part(), passes == "auto"
        large = auto and self._schedule.batch_size == "auto" and step.precondition == "auto"
        batch = min(LARGE_BATCH if large else self._batch_size, n)
        least = LARGE_STEPS if large else self._least_steps
        steps = max(math.ceil(n / batch), least) if auto else max(1, math.ceil(passes * n / batch))
        return Plan(n, steps, batch, step.damping(batch if large else None), large)

    # ---------------------------------------------------------------- the rest of the contract
    def _score(self, state: State, X: Rows) -> np.ndarray:
        return self._descent(state).predict(state, X)

    def _mix_outputs(self, state: State, change: Change) -> None:
        for name in ("alpha", "mean"):
            if name in state:
                state[name] = np.ascontiguousarray(np.moveaxis(change.rows(np.moveaxis(state[name], 2, 0)), 0, 2))

    def _widen(self, state: State, d: int) -> None:
        if not isinstance(self._kernel_given(), kernels.Gaussian):
            super()._widen(state, d)
        widen_packed("wait_X", state, d)  # the random numbers of a column do not depend on the number of columns

    def _schema(self, state: State, trained: bool) -> Schema:
        if not (trained or not self._warm_up_rows()):
            return {}
        kernel = prefixed(KERNEL, self._given.kernel_schema())
        settled: Schema = kernel | {"offset": Number(), "eta": Number(0.0), "lam": Number(0.0)}
        if not trained:
            return settled
        check({name: state[name] for name in settled if name in state}, settled)  # for the kernel
        blocks = state["t"] if self._max_blocks is None else min(state["t"], self._max_blocks)
        d, dtype = state["n_features"], state["dtype"]
        width = FeatureBlocks(self._kernel(state), state["seed"], d, self._block_size, dtype, self._ops).width
        weights = Array((blocks, width, self._columns_of(state)), dtype)
        average: Schema = {"mean": weights} if self._step_part().average else {}
        return settled | {"alpha": weights, "shrink": Number(POSITIVE, 1.0)} | average | self._waiting_schema(state)

    def _waiting_schema(self, state: State) -> Schema:
        """Rows that wait for their batch."""
        waiting = Count(0, self._batch_size - 1)
        check({name: state[name] for name in ("waiting",) if name in state}, {"waiting": waiting})
        n = state["waiting"]
        own: Schema = {"waiting": waiting}
        if n:
            own |= targets("wait_y", state, n) | {"wait_weight": Array((n,), low=POSITIVE)}
            own |= packed("wait_X", state, n)
        return own

    def _columns_of(self, state: State) -> int:
        """Number of functions that are learned, by the parameters alone."""
        return state["n_outputs"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self._kernel_given().domain == "nonnegative"
        fields = {name: getattr(tags, name) for name in Tags.__dataclass_fields__}
        return BatchTags(**fields, rows_per_update=self._batch_size)
