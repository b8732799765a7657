r"""A metric from the gradients of the learned function itself, for exponential kernels.

.. math:: k(x, z) = \exp(-\|M^{1/2}(x - z)\|_p / L), \qquad (K + \lambda A^{-1})\, \alpha = y, \qquad
          G = E\, \nabla f\, \nabla f', \qquad M = (\rho\, G + (1 - \rho) \operatorname{diag} G) / \max_j G_{jj}

f is kernel ridge regression on some rows, G its average gradient outer product, summed over the outputs. The kernel is
solved again in the metric that follows from G, a few times, as long as the error on held-out rows falls; then
:math:`\rho` (how much of the part off the diagonal counts), L and :math:`\lambda` are chosen by the same error. What
was found on few rows is improved once on more of them. p is 2, or 1 with a diagonal M: a kernel of single columns, as
the cuts of trees are.

References
----------
Radhakrishnan, Beaglehole, Pandit, Belkin: Mechanism for feature learning in neural networks and backpropagation-free
machine learning models, Science 383, 2024. Beaglehole et al.: xRFM: accurate, scalable, and interpretable feature
learning models for tabular data, arXiv 2508.10053, 2025 (full and diagonal metric, leaves).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..kernels import Laplacian, Matern
from ..kernels._rows import squared_distances
from ..random import Stream, generator
from .kernel_blocks import Centers
from .kernel_ridge import FAR, divided_by, factorise

KERNELS = {1: Laplacian(gamma=1.0), 2: Matern(nu=0.5, length=1.0)}  # exp(-|z - z'|) of rows z = M^{1/2} x / L
FIRST, SECOND = 1500, 3000  # rows to learn from, at first and for the improvement
HELD = 2000  # rows to judge by, at most; a quarter of few
FEWEST = 24  # rows: with fewer there is nothing to compare
ROUNDS = 3  # of gradients on the first rows
SHARES = (0.5, 0.0, 1.0)  # values of rho, the one of the rounds first
LENGTH, LENGTHS = 10.0, (3.0, 30.0)  # L, and the values that are tried beside it
LAM, LEAST_LAM, MOST_LAM = 0.01, 1e-4, 10.0  # the penalty goes up and down by factors of ten from the first
SLOPES = 800  # rows that gradients are taken at, at most;
SIGNS = 10**8  # for the norm 1 no more than so many comparisons of columns
NEAR = 1e-10  # distance below which a kernel function has no gradient
BROAD = 1000  # columns up to which the part off the diagonal is tried


@dataclass(frozen=True)
class Metric:
    """``M^{1/2} / L``, (d, d), or (d,) for a diagonal M, the penalty that goes with it, and the norm p."""

    root: np.ndarray
    lam: float
    norm: int

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Rows X (n, d) in the metric, in float32: ``exp(-|z - z'|)`` of them is the kernel."""
        Z = X * self.root if self.root.ndim == 1 else X @ self.root
        return np.ascontiguousarray(Z, np.float32)


@dataclass(frozen=True)
class Tried:
    """A metric with its error on held-out rows, and what it was made of."""

    metric: Metric
    error: float
    alpha: Any  # (n, C), None where the matrix has no factor
    G: np.ndarray | None  # average gradient outer product, (d, d)
    rho: float
    length: float


class Trials:
    """Rows X (n, d) to learn from with targets Y (n, C) and weights a (n,), and the same of rows to judge by."""

    def __init__(self, ops: Any, learned: tuple[np.ndarray, ...], held: tuple[np.ndarray, ...]):
        self.ops, (self.X, self.Y, self.a), (self.XH, self.YH, self.aH) = ops, learned, held

    def at(self, metric: Metric, walk: bool = True) -> tuple[Metric, float, Any]:
        """The metric with the best penalty near its own (or just its own), the error, and the coefficients (n, C)."""
        Z = metric.rows(self.X)
        values = Centers(KERNELS[metric.norm], Z, self.ops)
        K, KH = values.table(Z), values.table(metric.rows(self.XH))
        more = np.minimum(1 / self.a, FAR)

        def solved(lam: float) -> tuple[Metric, float, Any]:
            A = K.copy()
            if not factorise(A, 1 + lam * more):
                return replace(metric, lam=lam), np.inf, None
            alpha = divided_by(A, self.Y)
            errors = np.square(KH @ alpha - self.YH).sum(axis=1, dtype=np.float64)
            return replace(metric, lam=lam), float(np.average(errors, weights=self.aH)), alpha

        best = solved(metric.lam)
        for factor in (10.0, 0.1) if walk else ():
            lam, start = metric.lam * factor, best
            while 0.99 * LEAST_LAM < lam < 1.01 * MOST_LAM and (new := solved(lam))[1] < best[1]:
                best, lam = new, lam * factor
            if best is not start:
                break
        return best

    def gradients(self, metric: Metric, alpha: np.ndarray) -> np.ndarray:
        r"""``G`` (d, d), the weighted mean over some rows, and the sum over the outputs, of ``g g'``.

        .. math:: g(x) = -R \sum_i \alpha_i \frac{k(x_i, x)}{\|z - z_i\|} (z - z_i), \qquad z = R x,\; R = M^{1/2} / L

        For the norm 1 the signs of z - z_i stand for its direction, and the diagonal of G is all that is made.
        """
        Z, R = metric.rows(self.X), metric.root
        n, d = Z.shape
        some = min(SLOPES, n) if metric.norm == 2 else int(np.clip(SIGNS // (n * d), 50, SLOPES))
        at, a = Z[:some], self.a[:some]
        K = Centers(KERNELS[metric.norm], Z, self.ops).table(at)
        if metric.norm == 1:
            slopes = [((K * np.sign(at[:, j, None] - Z[:, j])) @ alpha).astype(np.float64) for j in range(d)]
            return np.diag([R[j] ** 2 * float(a @ np.square(g).sum(axis=1)) for j, g in enumerate(slopes)]) / a.sum()
        r = np.sqrt(squared_distances(at, Z, precision=0))
        P = np.where(r > NEAR, K / np.maximum(r, NEAR), 0.0).astype(np.float32)
        G = np.zeros((d, d))
        for column in alpha.T:
            Q = P * column
            g = (at * Q.sum(axis=1)[:, None] - Q @ Z).astype(np.float64)
            g = g * R if R.ndim == 1 else g @ R
            G += (g * a[:, None]).T @ g
        return G / a.sum()


def root_of(G: np.ndarray, rho: float, length: float) -> np.ndarray:
    """``M^{1/2} / L`` of an average gradient outer product (d, d), (d,) where rho is 0."""
    diagonal = np.diag(G) / np.diag(G).max()
    if rho == 0:
        return np.sqrt(diagonal) / length
    M = rho * G / np.diag(G).max() + (1 - rho) * np.diag(diagonal)
    values, V = np.linalg.eigh(M)
    return (V * np.sqrt(np.maximum(values, 0.0))) @ V.T / length


def learn_metric(X: np.ndarray, Y: np.ndarray, weight: np.ndarray | None, norm: int, seed: int, ops: Any) -> Metric:
    """The metric of a norm for rows X (n, d), whose columns have the deviation 1, and targets Y (n, C) of mean 0."""
    n, d = X.shape
    order = generator(seed, Stream.METRIC_ROWS).permutation(n)
    a = np.ones(n) if weight is None else weight
    held = min(HELD, n // 4)

    def trials(rows: int) -> Trials:
        judged, learned = order[:held], order[held : held + rows]
        return Trials(ops, *((X[rows], Y[rows].astype(np.float32), a[rows]) for rows in (learned, judged)))

    plain = Metric(np.full(d, 1 / LENGTH), LAM, norm)
    if n < FEWEST:
        return plain
    best = _from_few(trials(FIRST), plain)
    if n - held > FIRST:
        best = _from_more(trials(SECOND), best)
    return best.metric


def _from_few(trials: Trials, plain: Metric) -> Tried:
    """Rounds of gradients from the plain metric on; then rho, and then L with its penalty."""
    shares = _shares(plain)
    last = best = Tried(*trials.at(plain), None, shares[0], LENGTH)
    for number in range(ROUNDS):
        last = _renewed(trials, last, shares[0])
        if last.error < best.error:
            best = last
        elif number:
            break
    for rho in shares[1:] if best.G is not None else ():
        best = _better(best, _with(trials, best, rho, best.length, walk=False))
    for length in (LENGTH, *LENGTHS):
        best = _better(best, _with(trials, best, best.rho, length))
    return best


def _from_more(trials: Trials, best: Tried) -> Tried:
    """The same metric on more rows, or that of the gradients there, whichever is better."""
    metric, error, alpha = trials.at(best.metric)
    best = replace(best, metric=metric, error=error, alpha=alpha)
    if alpha is None:
        return best
    G = trials.gradients(metric, alpha)
    if not np.diag(G).max() > 0:
        return best
    for rho in _shares(metric):
        best = _better(best, _with(trials, replace(best, G=G), rho, best.length, walk=False))
    return best


def _shares(metric: Metric) -> tuple[float, ...]:
    """Values of rho that make sense."""
    return SHARES if metric.norm == 2 and 1 < len(metric.root) <= BROAD else (0.0,)


def _renewed(trials: Trials, last: Tried, rho: float) -> Tried:
    """The metric from the gradients of the function learned last; the same again where they say nothing."""
    G = None if last.alpha is None else trials.gradients(last.metric, last.alpha)
    if G is None or not np.isfinite(G).all() or not np.diag(G).max() > 0:
        return last
    return _with(trials, replace(last, G=G), rho, last.length, walk=False)


def _with(trials: Trials, from_: Tried, rho: float, length: float, walk: bool = True) -> Tried:
    """Another rho or L, with the gradients that a metric was made of."""
    root = np.full(trials.X.shape[1], 1 / length) if from_.G is None else root_of(from_.G, rho, length)
    return Tried(*trials.at(replace(from_.metric, root=root), walk), from_.G, rho, length)


def _better(one: Tried, other: Tried) -> Tried:
    return other if other.error < one.error else one
