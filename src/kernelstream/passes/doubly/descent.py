r"""Doubly stochastic functional gradients: the recursion, for given components.

Iteration t takes a mini-batch of b rows and block t of random features, phi_t::

    f(x) = offset + sum_i alpha_i' phi_i(x)
    alpha_t = -gamma_t (1/b) sum_x l'(f(x), y) phi_t(x),   alpha_i <- (1 - gamma_t lam) alpha_i for i < t
    gamma_t = eta theta0 / (theta0 + t)

Dai, Xie, He, Liang, Raj, Balcan, Song: Scalable kernel methods via doubly stochastic gradients, NIPS 2014.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ...kernels import Kernel
from ...losses import Loss
from ...random import SeedStream, generator
from ...rows import Rows
from ...state.nested import State
from .blocks import FeatureBlocks

EIGEN_ROWS = 512  # rows whose kernel matrix gives a largest eigenvalue, at most
LEAST_SHRINK = 1e-6  # the common factor of the weights is multiplied into them below this
AVERAGE = 4.0  # the t-th iterate enters the average with weight 4 / (t + 3): recent ones count most
UNIFORM = 1.0  # with weight 1 / t: all count the same


class Diverged(ValueError):
    """The steps are so large that the function leaves the range of floating-point numbers."""


@dataclass
class Descent:
    """What an iteration needs besides the state, which holds

    ``alpha`` (blocks, width, C), the weights divided by the number ``shrink``; ``mean`` of the same shape, the average
    of the weights over the iterations (only if ``average``); ``offset``, a number; ``t``, iterations so far.
    """

    xp: ClassVar[Any] = np  # what arrays are made by

    blocks: FeatureBlocks
    loss: Loss
    eta: float
    theta0: float
    lam: float
    average: bool | str = True
    precondition: float = 0.0
    max_blocks: int | None = None

    def reset(self, state: State, n_outputs: int) -> None:
        """Start with the function that is ``offset`` everywhere."""
        empty = np.zeros((0, self.blocks.width, n_outputs), self.blocks.dtype)
        state |= {"t": 0, "alpha": empty, "shrink": 1.0}
        if self.average:
            state["mean"] = empty.copy()

    # ---------------------------------------------------------------- scores
    def answering(self, state: State) -> np.ndarray:
        """Weights that predictions are made with: the average if there is one, else the last iterate."""
        return state["mean"] if self.average else state["alpha"] * state["alpha"].dtype.type(state["shrink"])

    def level(self, state: State) -> float:
        """What is added to the function in predictions."""
        return state["offset"]

    def predict(self, state: State, X: Rows) -> np.ndarray:
        """Scores of rows, (n, C)."""
        return self.level(state) + self.blocks.scores(X, self.answering(state))

    def both(self, state: State, X: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Scores of the last iterate, (n, C), at which gradients are taken, and those of :meth:`predict`."""
        alpha, C = state["alpha"], state["alpha"].shape[2]
        F = self.blocks.scores(X, np.concatenate([alpha, self.answering(state)], axis=2))
        return state["offset"] + state["shrink"] * F[:, :C], self.level(state) + F[:, C:]

    # ---------------------------------------------------------------- learning
    def block_of(self, t: int) -> int:
        """The block that iteration t = 1, 2, … adds to, or comes back to once there are ``max_blocks``."""
        return t - 1 if self.max_blocks is None else (t - 1) % self.max_blocks

    def rate(self, t: int) -> float:
        """The step size gamma_t."""
        return self.eta * self.theta0 / (self.theta0 + t)

    def share(self, t: int) -> float:
        """Weight with which iterate t enters the average."""
        a = UNIFORM if self.average == "uniform" else AVERAGE
        return a / (t + a - 1.0)

    @property
    def damping(self) -> float:
        """What is added to a covariance of largest eigenvalue 1 before dividing by it, at least (about) lam."""
        return max(self.precondition, self.lam * self.eta)  # eta is about 1 / largest eigenvalue

    def decay(self, t: int) -> float:
        """Factor of the older weights in iteration t."""
        lam = self.lam / self.damping if self.precondition else self.lam  # see _conditioned
        return max(0.0, 1.0 - self.rate(t) * lam)

    def descend(self, state: State, X: Rows, G: np.ndarray, F: np.ndarray) -> tuple[int, np.ndarray]:
        """One iteration for rows X (b, d) with scores F (b, C) and derivatives G (b, C) of their losses.

        Returns the block and what was added to its ``alpha``, (width, C).
        """
        t = state["t"] + 1
        i, gamma = self.block_of(t), self.rate(t)
        Z = self.blocks.features(X, i)
        direction = self._direction(Z, G, F - state["offset"])
        shrink = state["shrink"] * self.decay(t)
        alpha = state["alpha"]
        if shrink < LEAST_SHRINK:
            alpha = alpha * float(shrink)
            shrink = 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            delta = self.xp.asarray(direction * (-gamma / shrink), dtype=alpha.dtype)
        if not bool(self.xp.isfinite(delta).all()):
            raise Diverged(f"the scores grow without bound: steps of eta={self.eta:.3g} are too large")
        here = delta[None] if i == len(alpha) else alpha[i : i + 1] + delta
        alpha = self.xp.concatenate([alpha[:i], here, alpha[i + 1 :]])
        state |= {"t": t, "alpha": alpha, "shrink": shrink}
        if self.average:
            self._average(state)
        return i, delta

    def _average(self, state: State) -> None:
        alpha, mean, w = state["alpha"], state["mean"], self.share(state["t"])
        new = self.xp.zeros_like(alpha)
        new[: len(mean)] = mean
        new *= 1.0 - w
        new += alpha * float(w * state["shrink"])
        state["mean"] = new

    def _direction(self, Z: Any, G: np.ndarray, F: np.ndarray) -> Any:
        """The gradient of the mean loss, (width, C), for features Z and scores F without the offset."""
        return self._conditioned(Z, G, F) if self.precondition else Z.T @ (G / len(G)).astype(Z.dtype)

    def _conditioned(self, Z: np.ndarray, G: np.ndarray, F: np.ndarray) -> np.ndarray:
        r"""The gradient divided by ``(S + rho) / s``, S the batch's feature covariance, s its largest eigenvalue.

        rho is ``damping`` s. The gradient of the regulariser, lam f, must be divided too, or the function would
        converge elsewhere: ``(S + rho)^-1 f = f/rho - (S + rho)^-1 S f/rho``. The first part is a stronger
        :meth:`decay`, the second enters here through ``S f = Z'F/b``.
        """
        b, width = Z.shape
        dual = b < width  # (Z'Z + r)^-1 Z' = Z' (ZZ' + r)^-1: the smaller of the two
        # rho limits the condition of S to 1/damping, so that products in the precision of the features suffice
        S = (Z @ Z.T if dual else Z.T @ Z).astype(np.float64) / b
        top = largest_eigenvalue(S) or 1.0
        rho = self.damping * top
        S[np.diag_indices_from(S)] += rho
        factor = cho_factor(S, overwrite_a=True, check_finite=False)
        with np.errstate(over="ignore", invalid="ignore"):  # `descend` checks the result
            R = (G - self.lam / rho * F) * (top / b)
            if dual:
                return Z.T @ cho_solve(factor, R, check_finite=False).astype(Z.dtype)
            return cho_solve(factor, Z.T @ R.astype(Z.dtype), check_finite=False)

    def learn_batch(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, F: np.ndarray) -> Any:
        """One iteration for rows whose scores are F (b, C); y as the loss takes it."""
        G = gradients(self.loss, y, F)
        return self.descend(state, X, G if weight is None else G * weight[:, None], F)

    def train(
        self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None, steps: int, batch: int, seed: int
    ) -> None:
        """``steps`` iterations over random mini-batches of the rows X (n, d).

        The scores of a batch are swept over all blocks, or, where that is less work, the scores of all n rows are kept
        up to date with every new block: the same numbers, up to rounding.
        """
        n = X.shape[0]
        batch = min(batch, n)
        U = (
            self.blocks.scores(X, state["alpha"], together=True) if steps * batch > 2 * n else None
        )  # before shrink and offset
        for rows in batches(n, batch, steps, seed):
            part = X[rows]
            sums = self.blocks.scores(part, state["alpha"], together=True) if U is None else U[rows]
            F = state["offset"] + state["shrink"] * self._home(sums)
            before = state["shrink"]
            i, delta = self.learn_batch(state, part, y[rows], None if weight is None else weight[rows], F)
            if U is not None:
                if state["shrink"] > before:  # it was multiplied into the weights
                    U *= before * self.decay(state["t"])
                U += self.blocks.scores(X, delta[None], i, True)

    def _home(self, sums: Any) -> np.ndarray:
        """Sums as an array of this machine."""
        return sums


def gradients(loss: Loss, y: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Derivatives of the loss, (n, C), for scores F (n, C)."""
    return loss.gradient(y, F) if loss.kind == "multiclass" else loss.gradient(y, F[:, 0])[:, None]


def batches(n: int, batch: int, steps: int, seed: int) -> Iterator[np.ndarray]:
    """Indices of ``steps`` mini-batches: random orders of the n rows, one after the other, cut into equal parts."""
    order, passes = np.empty(0, np.int64), 0
    for _ in range(steps):
        while len(order) < batch:
            order = np.concatenate([order, generator(seed, SeedStream.DOUBLY_ORDER, passes).permutation(n)])
            passes += 1
        yield order[:batch]
        order = order[batch:]


def largest_eigenvalue(K: np.ndarray, rounds: int = 30) -> float:
    """Of a positive semi-definite matrix, by the power method."""
    v = generator(0, SeedStream.POWER_START).standard_normal(len(K))
    for _ in range(rounds):
        w = K @ v
        size = float(np.linalg.norm(w))
        if size == 0.0:
            return 0.0
        v = w / size
    return float(v @ K @ v)


def top_eigenvalue(kernel: Kernel, X: Rows) -> float:
    """Largest eigenvalue of K/n, K the kernel matrix of some of the rows; never 0."""
    some = X[:EIGEN_ROWS]
    return max(largest_eigenvalue(kernel.pairwise(some, some).astype(np.float64)) / some.shape[0], 1e-12)
