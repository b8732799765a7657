"""Automatic bandwidth and step size of the doubly stochastic learners, by short trials judged on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...kernels import Gaussian, Kernel
from ...losses import Loss
from ...passes.doubly.blocks import FeatureBlocks
from ...passes.doubly.descent import Descent, Diverged, largest_eigenvalue, mean_loss
from ...random import Stream
from ...rows import Rows
from ...state.nested import State
from .step import Plan

CHOICE_ROWS = 1536  # rows on which the choices are made
TRIAL_STEPS = 48
LARGE_TRIAL_STEPS = 32  # the same with large batches
TRIAL_SIZE = 256  # rows in a batch and draws in a block of a trial, at most
EIGEN_ROWS = 512
HELD_OUT = 4  # every fourth row
LEAST_ROWS = 24  # with fewer there is nothing to compare

FRACTIONS = (1.0, 0.5, 0.35, 0.25, 0.125)  # of the median distance
STEPS = (2.0, 8.0, 32.0)  # times 1 / largest eigenvalue, for losses with a bounded derivative
CONDITIONED_STEPS = (0.5, 2.0, 8.0)  # the same where the covariance of the features divides the gradient
CURVED_STEPS = (0.25, 1.0)  # for the others; the smaller one where small batches and blocks make steps noisy
HUBER_STEPS = (0.25, 1.0, 4.0)  # for a loss that is curved in the middle
HARMLESS = 0.1  # losses that differ by less, relatively, count as equal
USUAL_FRACTION = 0.5


def choose(
    learner: Any, state: State, kernel: Kernel, X: Rows, y: np.ndarray, weight: np.ndarray, plan: Plan
) -> float:  # fmt: skip
    """Enter the kernel's estimated numbers and ``eta`` into the state.

    Parameters
    ----------
    learner : Doubly
    state : dict
        With ``offset`` and ``lam``.
    kernel : Kernel
        With a numeric bandwidth, that of the median distance if fractions of it are to compete.
    X, y, weight : (n, d), (n,), (n,)
        Rows, encoded targets and positive weights.
    plan : Plan
        Of the training to come.

    Returns
    -------
    float
        Held-out loss of the choice, NaN if there was nothing to compare.
    """
    loss, eta = learner.loss(state), learner.step.eta
    enough = X.shape[0] >= LEAST_ROWS
    fractions = (1.0,) if not learner.chooses_bandwidth() else FRACTIONS if enough else (USUAL_FRACTION,)
    factors = _factors(loss, y, weight, plan.precondition) if eta == "auto" else (1.0,)
    usual = factors[len(factors) // 2]

    def step(kernel: Kernel, factor: float) -> float:
        return factor / max(top(kernel, X, weight), 1e-12) if eta == "auto" else float(eta)

    def loss_of(kernel: Kernel, factor: float) -> float:
        return trial(learner, state, kernel, step(kernel, factor), X, y, weight, plan)

    widths = [scaled(kernel, fraction) for fraction in fractions]
    at, factor, reached = 0, usual, np.nan
    if len(widths) > 1:
        reached, at = _least((loss_of(k, usual), i) for i, k in enumerate(widths))
    if enough and len(factors) > 1:
        tried = {c: loss_of(widths[at], c) for c in factors}
        reached, factor = _least((loss, c) for c, loss in tried.items())
        if plan.precondition:  # directions of small variance hardly affect the held-out loss
            factor = max(c for c, loss in tried.items() if loss <= reached + HARMLESS * abs(reached))
        if len(widths) > 1 and factor != usual:  # with other steps another width may be better
            # more rows can learn narrower kernels: a wider one that is better on these rows is not better on all
            ways = (1,) if plan.large and plan.rows > X.shape[0] else (-1, 1)
            at, reached = _downhill(at, tried[factor], len(widths), lambda i: loss_of(widths[i], factor), ways)
    if enough and learner.measures_loss and np.isnan(reached):
        reached = loss_of(widths[at], factor)
    learner.enter_kernel(state, widths[at])
    state["eta"] = step(widths[at], factor)
    return reached


def _least(tried: Iterable[tuple[float, Any]]) -> tuple[float, Any]:
    """The first pair with the least loss."""
    return min(tried, key=lambda pair: pair[0])


def _downhill(
    start: int, loss: float, n: int, trial: Callable[[int], float], ways: tuple[int, ...]
) -> tuple[int, float]:  # fmt: skip
    """Go from ``start``, whose loss is known, along 0..n-1 while the loss falls; where that ends, and its loss."""
    for way in ways:
        at = start
        while 0 <= at + way < n and (found := trial(at + way)) < loss:
            at, loss = at + way, found
        if at != start:
            return at, loss
    return start, loss


def scaled(kernel: Kernel, fraction: float) -> Kernel:
    """The same kernel with its width multiplied by ``fraction``."""
    name = kernel.bandwidth
    if name is None or fraction == 1.0:
        return kernel
    power = 1.0 if name == "length" else -2.0 if isinstance(kernel, Gaussian) else -1.0
    values = kernel.get_params(deep=False)
    return type(kernel)(**{**values, name: values[name] * fraction**power})


def _factors(loss: Loss, y: np.ndarray, weight: np.ndarray, precondition: float) -> tuple[float, ...]:
    """Candidates for eta × largest eigenvalue: about 1 where the curvature of the loss decides."""
    if loss.bound is None:
        return CURVED_STEPS
    steps = HUBER_STEPS if loss.name == "huber" else CONDITIONED_STEPS if precondition else STEPS
    return tuple(unit(loss, y, weight) * c for c in steps)


def unit(loss: Loss, y: np.ndarray, weight: np.ndarray) -> float:
    """Deviation of the target over the largest derivative of the loss; 1 if the derivative has no bound.

    A step of a bounded derivative moves the function by at most that much, however far the target is: steps grow with
    the unit, and a squared penalty must shrink with it to be as strong relative to a loss that is not squared.
    """
    if loss.bound is None or loss.kind != "regression":
        return 1.0
    spread = float(np.sqrt(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight))) / loss.bound
    return max(1.0, spread) if loss.name == "huber" else spread or 1.0


def top(kernel: Kernel, X: Rows, weight: np.ndarray) -> float:
    """Largest eigenvalue of the kernel matrix of some rows, divided by their number, times their mean weight."""
    some = X[:EIGEN_ROWS]
    return largest_eigenvalue(kernel.pairwise(some, some).astype(np.float64)) / some.shape[0] * float(weight.mean())


def held_out(n: int) -> np.ndarray:
    """Which of n rows trials are judged by, (n,) bool."""
    return np.arange(n) % HELD_OUT == HELD_OUT - 1


def trial_blocks(learner: Any, state: State, kernel: Kernel) -> FeatureBlocks:
    """Random features of a trial, which differ from those of the model."""
    shape = state["n_features"], min(learner.block_size, TRIAL_SIZE), state["dtype"]
    return FeatureBlocks(kernel, state["seed"], *shape, learner.ops, Stream.TRIAL_FEATURES, keep=False)


def trial(
    learner: Any, state: State, kernel: Kernel, eta: float, X: Rows, y: np.ndarray, weight: np.ndarray, plan: Plan
) -> float:  # fmt: skip
    """Held-out loss after a short training."""
    held, blocks = held_out(X.shape[0]), trial_blocks(learner, state, kernel)
    loss, step = learner.loss(state), learner.step
    descent = Descent(blocks, loss, eta, step.theta0, state["lam"], True, plan.precondition)
    steps, batch = (LARGE_TRIAL_STEPS, plan.batch) if plan.large else (TRIAL_STEPS, min(plan.batch, TRIAL_SIZE))
    model: State = {"offset": state["offset"]}
    descent.reset(model, state["n_outputs"])
    try:
        descent.train(model, X[~held], y[~held], weight[~held], steps, batch, state["seed"])
    except Diverged:
        return np.inf
    F = model["offset"] + blocks.scores(X[held], model["mean"], together=True)
    result = mean_loss(loss, y[held], F, weight[held])
    return result if np.isfinite(result) else np.inf
