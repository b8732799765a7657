r"""Widths of the columns, bandwidth and penalty by short trials on held-out rows, for models that were given none.

A column that the learned function f does not depend on should be wide, one that it turns on narrow:

.. math:: 1 / w_j \propto \sqrt{E\, (\partial f / \partial x_j)^2}

is the diagonal of the average gradient outer product. f is learned, the widths follow from it, f is learned again, as
long as the error on held-out rows falls.

References
----------
Radhakrishnan, Beaglehole, Pandit, Belkin: Mechanism for feature learning in neural networks and backpropagation-free
machine learning models, Science 383, 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh

from ...kernels import Kernel
from ...losses import Loss
from ...random import generator
from ...rows import Rows, divided, host
from ...solvers.falkon import CenterMatrix, falkon, kernel_blocks
from ...solvers.kernel_blocks import Factor, least_addition
from ..binning.fit import best_constant
from ..doubly.choice import scaled

FEW = (4_000, 400)  # rows and centres of the first trials
MORE = (16_000, 1_000)  # and of the last ones
LAMS = (1.0, 0.1, 0.01, 1e-3, 1e-4)
USUAL = 0.1  # best or next to it on nearly all sets that were tried
FIRST = 0.5  # of the median distance: where the search of the bandwidth begins
LEAST_ROWS = 24  # with fewer there is nothing to compare
FOLDED = 2_000  # fewer rows than this are cut into four folds, each held out once
STREAM = 5  # of the random order of the rows
ROUNDS = 4  # of widths from gradients, at most
SLOPES = 20_000  # gradients along single columns that a round looks at, at most; and
SLOPE_ROWS = 500  # rows
STEP = 0.02  # of differences, in units of the first widths
FLATTEST = 1e-3  # a column that does not matter is so much wider than the one that matters most


def widths(X: Rows) -> dict[str, np.ndarray]:
    """Ways to divide columns, (d,) each: by their range, by their deviation, or all by one number."""
    if sp.issparse(X):
        low, high = (np.asarray(bound.todense(), np.float64).ravel() for bound in (X.min(axis=0), X.max(axis=0)))
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        variance = np.asarray(X.multiply(X).mean(axis=0, dtype=np.float64)).ravel() - mean**2
    else:
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        variance = X.var(axis=0, dtype=np.float64)
    constant = high <= low
    deviation = np.sqrt(np.maximum(variance, 0.0))
    common = float(np.sqrt(np.mean(deviation**2))) or 1.0
    return {
        "range": np.where(constant, 1.0, high - low),
        "deviation": np.where(constant | (deviation == 0), 1.0, deviation),
        "one": np.full(X.shape[1], common),
    }


@dataclass(frozen=True)
class Solutions:
    """Functions ``sum_j alpha_j k(., s_j) + b``, one for each penalty."""

    kernel: Kernel
    S: Rows  # centres (m, d)
    alpha: np.ndarray  # (m, penalties, C)
    offset: np.ndarray  # (C,)
    ops: Any

    def one(self, k: int) -> Solutions:
        """That of penalty k alone."""
        return replace(self, alpha=np.ascontiguousarray(self.alpha[:, k : k + 1]))

    def __call__(self, X: Rows) -> np.ndarray:
        """Values at rows, (n, penalties, C)."""
        values = kernel_blocks(self.kernel, X, self.S, self.ops).dot(self.alpha.reshape(len(self.alpha), -1))
        return values.reshape(X.shape[0], *self.alpha.shape[1:]) + self.offset


@dataclass
class Search:
    """The rows and everything that stays the same while widths, bandwidth and penalty vary."""

    X: Rows  # (n, d)
    Y: np.ndarray  # (n, C)
    weight: np.ndarray | None
    loss: Loss
    seed: int
    ops: Any
    n_centers: int

    def widths_and_kernel(self, kernel_on: Any) -> tuple[np.ndarray, Kernel]:
        """Widths (d,) and the kernel with the least squared error on held-out rows.

        ``kernel_on(X)`` is the kernel whose bandwidth is the median distance of rows. The widths are compared at half
        of it; then the bandwidth goes down and up by halves from there as long as the error falls, with few rows
        and centres, and once more down with more of them: the more centres, the narrower a kernel may be.
        """
        ways = widths(self.X)
        if self.X.shape[0] < LEAST_ROWS:
            return ways["range"], scaled(kernel_on(divided(self.X, ways["range"])), FIRST)
        order = generator(self.seed, STREAM).permutation(self.X.shape[0])[: MORE[0]]
        sample = Search(self.X[order], self.Y[order], self._at(order), self.loss, self.seed, self.ops, self.n_centers)
        rows = {name: divided(sample.X, width) for name, width in ways.items()}
        base = {name: kernel_on(X[: FEW[0]]) for name, X in rows.items()}
        first = {name: sample._error(rows[name], scaled(base[name], FIRST), *FEW) for name in ways}
        best = min(first, key=first.__getitem__)
        X, kernel = rows[best], base[best]
        errors = {FIRST: first[best]}
        for factor in (0.5, 2.0):
            fraction = FIRST
            while errors[fraction] == min(errors.values()) and 2.0**-6 <= fraction <= 2.0**4:
                fraction *= factor
                errors[fraction] = sample._error(X, scaled(kernel, fraction), *FEW)
        fraction = min(errors, key=errors.__getitem__)
        wider, X, kernel, fraction = sample._by_slopes(X, kernel_on, kernel, fraction, errors[fraction])
        if X.shape[0] > FEW[0]:
            finer = {f: sample._error(X, scaled(kernel, f), *MORE) for f in (fraction, fraction * 0.7)}
            if finer[fraction * 0.7] < finer[fraction]:
                finer[fraction * 0.5] = sample._error(X, scaled(kernel, fraction * 0.5), *MORE)
            fraction = min(finer, key=finer.__getitem__)
        return ways[best] * wider, scaled(kernel, fraction)

    def _by_slopes(
        self, X: Rows, kernel_on: Any, kernel: Kernel, fraction: float, error: float
    ) -> tuple[np.ndarray, Rows, Kernel, float]:
        """Factors (d,) of the widths from gradients, the rows divided by them, and the kernel and its fraction there.

        Rows X and ``kernel``, which is to be scaled by ``fraction``, are the start, with this ``error``.
        """
        factors, rows = np.ones(X.shape[1]), X
        if sp.issparse(X) or X.shape[1] < 2:
            return factors, rows, kernel, fraction
        for _ in range(ROUNDS):
            slopes = self._slopes(rows, scaled(kernel, fraction)) / factors  # of the columns of X
            if not (np.isfinite(slopes).all() and slopes.max() > 0):
                break
            new = 1.0 / np.maximum(slopes / slopes.max(), FLATTEST)
            moved = divided(X, new)
            base = kernel_on(moved[: FEW[0]])
            errors = {f: self._error(moved, scaled(base, f), *FEW) for f in (fraction / 2, fraction, 2 * fraction)}
            best = min(errors, key=errors.__getitem__)
            if not errors[best] < error:
                break
            factors, rows, kernel, fraction, error = new, moved, base, best, errors[best]
        return factors, rows, kernel, fraction

    def _slopes(self, X: Rows, kernel: Kernel) -> np.ndarray:
        """Root of the mean square of the gradient of a function learned from few rows, along each column, (d,)."""
        train, test = next(self._cuts(FEW[0]))
        found = self._solutions(X, kernel, train, min(FEW[1], self.n_centers))
        found = found.one(int(np.argmin(self._errors(found, X, test))))
        d = X.shape[1]
        at = X[test[: max(1, min(SLOPE_ROWS, SLOPES // d))]]
        squares = np.empty(d)
        for j in range(d):
            sides = np.concatenate([at, at])
            sides[: len(at), j] += STEP
            sides[len(at) :, j] -= STEP
            f = found(sides)[:, 0]
            squares[j] = np.mean(np.sum((f[: len(at)] - f[len(at) :]) ** 2, axis=1))
        return np.sqrt(squares) / (2 * STEP)

    def penalty(self, kernel: Kernel) -> float:
        """The best of a few penalties; rows must be divided already."""
        if self.X.shape[0] < LEAST_ROWS:
            return USUAL
        total = np.zeros(len(LAMS))
        for train, test in self._cuts(MORE[0]):
            if self.loss.name == "squared":
                total += self._path(self.X, kernel, train, test, min(MORE[1], self.n_centers))
                continue
            Y, weight = self.Y[train], self._at(train)
            offset = best_constant(Y, weight, self.loss)
            centers = np.arange(min(FEW[1], self.n_centers, len(train)))
            Z = CenterMatrix(kernel, self.X[train], centers, self.ops)
            held = kernel_blocks(kernel, self.X[test], self.X[train[centers]], self.ops)
            start = None
            for k, lam in enumerate(LAMS):
                start = falkon(Z, Y, self.loss, lam, self.ops, weight=weight, offset=offset, start=start, tol=1e-2).W
                values = self.loss.value(self.Y[test], held.dot(Z.coefficients(start)) + offset)
                total[k] += np.average(values.sum(axis=1), weights=self._at(test))
        return LAMS[int(np.argmin(total))]

    def _error(self, X: Rows, kernel: Kernel, rows: int, centers: int) -> float:
        """Least squared error over the penalties."""
        m = min(centers, self.n_centers)
        parts = [self._path(X, kernel, train, test, m) for train, test in self._cuts(rows)]
        return float(np.sum(parts, axis=0).min())

    def _path(self, X: Rows, kernel: Kernel, train: np.ndarray, test: np.ndarray, m: int) -> np.ndarray:
        """Squared error on the test rows for every penalty."""
        return self._errors(self._solutions(X, kernel, train, m), X, test)

    def _solutions(self, X: Rows, kernel: Kernel, train: np.ndarray, m: int) -> Solutions:
        """Those of all penalties, from one factorisation.

        With ``T'T = K_SS`` and ``T'^-1 K'A K T^-1 = U diag(s) U'`` the weights are ``U (s + lam)^-1 U' T'^-1 K'A y``.
        """
        Y, weight = self.Y[train], self._at(train)
        offset = np.average(Y, axis=0, weights=weight)
        S = X[train[:m]]
        blocks = kernel_blocks(kernel, X[train], S, self.ops)
        a = np.ones(len(train)) if weight is None else weight
        m = blocks.shape[1]
        G, B = host(blocks.moment(np.arange(len(train)), a)), blocks.tdot(a[:, None] * (Y - offset))
        K = host(blocks.values.gram())
        factor = Factor(K, least_addition(K, X.dtype))
        G = factor.tsolve(factor.tsolve(G).T)
        s, U = eigh(0.5 * (G + G.T), check_finite=False)
        B = U.T @ factor.tsolve(B)
        W = np.stack([B / (np.maximum(s, 0.0) + lam)[:, None] for lam in LAMS], axis=1)
        return Solutions(kernel, S, factor.solve(U @ W.reshape(m, -1)).reshape(W.shape), offset, self.ops)

    def _errors(self, found: Solutions, X: Rows, test: np.ndarray) -> np.ndarray:
        """Squared error on the test rows, (penalties,)."""
        errors = np.square(found(X[test]) - self.Y[test][:, None]).sum(axis=2)
        return np.average(errors, axis=0, weights=self._at(test))

    def _cuts(self, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows to learn from, in random order, and rows to test on: one cut of many rows, four of few."""
        order = generator(self.seed, STREAM).permutation(self.X.shape[0])[:rows]
        quarters = np.array_split(order, 4)
        for k in range(4 if len(order) < FOLDED else 1):
            yield np.concatenate(quarters[:k] + quarters[k + 1 :]), quarters[k]

    def _at(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.weight is None else self.weight[rows]
