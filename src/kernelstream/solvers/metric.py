r"""A metric from the gradients of the learned function itself, for exponential kernels.

.. math:: k(x, z) = w \exp(-\|M^{1/2}(x - z)\| / L) + (1 - w) \exp(-\sum_j m_j^{1/2} |u_j(x_j) - u_j(z_j)| / l)

Rows are compared by their distance in a metric M, and by the differences of single columns with their ranks,
:math:`u_j(x_j) = x_j + c\, r_j(x_j)`, as the cuts of trees are. f is kernel ridge regression on some rows,
:math:`(K + \lambda A^{-1})\, \alpha = y`, the sum of a function of each kind; G is the average outer product of the
gradients of the first, g that of the squared slopes of the second, each summed over the outputs:

.. math:: M = (\rho\, G + (1 - \rho) \operatorname{diag} G) / \max_j G_{jj}, \qquad m = g / \max_j g_j

The kernel is solved again in the metrics that follow, a few times, as long as the error falls; then :math:`\rho` (how
much of the part off the diagonal counts), L, l, w, c and :math:`\lambda` are chosen by the same error, that at each row
of a function of all others. What was found on few rows is improved once on more of them.

References
----------
Radhakrishnan, Beaglehole, Pandit, Belkin: Mechanism for feature learning in neural networks and backpropagation-free
machine learning models, Science 383, 2024. Beaglehole et al.: xRFM: accurate, scalable, and interpretable feature
learning models for tabular data, arXiv 2508.10053, 2025 (full and diagonal metric, leaves).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core import threads
from ..kernels._rows import squared_distances
from ..random import Stream, generator
from .clock import Clock
from .kernel_blocks import ELEMENTS
from .kernel_ridge import FAR, divided_by, factorise, inverse_diagonal

FIRST, SECOND = 2500, 5000  # rows to learn from, at first and for the improvement
JUDGED = 1500  # rows that are forecast by all others, at most
FEWEST = 24  # rows: with fewer there is nothing to compare
ROUNDS = 3  # of gradients on the first rows
RHO, RHOS = 0.5, (0.0, 1.0)  # rho of the rounds, and the values that are tried beside it
LENGTH, LEAST_LENGTH, MOST_LENGTH = 3.0, 0.1, 100.0  # of both kinds, next to the usual distance of two rows
SHARE, SHARES = 0.5, (0.2, 0.8)  # w, and the values that are tried beside it
RANKS, RANKINGS = 1.0, (0.0, 3.0)  # c, and the values that are tried beside it
LAM, LEAST_LAM, MOST_LAM = 0.03, 1e-4, 30.0  # the penalty
STEP = 3.0  # factor by which lengths and penalty go up and down
SLOPES = 800  # rows that gradients are taken at, at most;
SIGNS = 10**8  # of the second kind no more than so many comparisons of columns
NEAR = 1e-10  # distance below which a kernel function has no gradient
BROAD = 1000  # columns up to which the part off the diagonal is tried

Rows = tuple[np.ndarray, np.ndarray]  # columns of deviation 1 and their ranks, (n, d) each; or what kernels compare


@dataclass(frozen=True)
class Metric:
    """What a kernel is made of, and the penalty that goes with it."""

    root: np.ndarray  # M^{1/2} / L, (d, d), or (d,) for a diagonal M
    scales: np.ndarray  # m^{1/2} / l, (d,)
    share: float  # w
    ranks: float  # c
    lam: float

    def rows(self, rows: Rows) -> Rows:
        """Rows in the metric, in the type of the given ones."""
        X, ranks = rows
        Z = X * self.root if self.root.ndim == 1 else X @ self.root
        U = (X + X.dtype.type(self.ranks) * ranks) * self.scales
        return np.ascontiguousarray(Z, X.dtype), np.ascontiguousarray(U, X.dtype)


def table(rows: Rows, others: Rows, share: float, ops: Any) -> np.ndarray:
    """Kernel values (n, m) of rows and others in a metric, in their type."""
    K = np.empty((len(rows[0]), len(others[0])), rows[0].dtype)
    tiles = [ops.tiles(S) for S in others]

    def fill(part: slice) -> None:
        first, second = (
            ops.exponential(S[part], tile, K.shape[1], norm, 1.0)
            for S, tile, norm in zip(rows, tiles, (2, 1), strict=True)
        )
        first *= K.dtype.type(share)
        second *= K.dtype.type(1 - share)
        np.add(first, second, out=K[part])

    threads.each(fill, threads.cuts(len(K), max(1, ELEMENTS // max(1, K.shape[1]))))
    return K


@dataclass(frozen=True)
class Tried:
    """A metric with its error on held-out rows, and what it was made of."""

    metric: Metric
    error: float
    alpha: Any  # (n, C), None where the matrix has no factor
    G: np.ndarray  # average gradient outer product, (d, d), and
    g: np.ndarray  # average squares of the slopes along ranks, (d,)
    rho: float
    lengths: tuple[float, float]

    def made(self, **changes: Any) -> Metric:
        """The metric with other gradients, rho or lengths."""
        new = replace(self, **changes)
        return replace(
            self.metric, root=root_of(new.G, new.rho, new.lengths[0]), scales=scales_of(new.g, new.lengths[1])
        )


class Trials:
    """Rows to learn from, with targets Y (n, C) and weights a (n,)."""

    def __init__(self, ops: Any, X: Rows, Y: np.ndarray, a: np.ndarray, clock: Clock):
        self.ops, self.X, self.Y, self.a, self.clock = ops, X, Y, a, clock

    def at(self, metric: Metric, walk: bool = True) -> tuple[Metric, float, Any]:
        """The metric with the best penalty near its own (or just its own), the error, and the coefficients (n, C).

        Where no time is left, the error is infinite.
        """
        if self.clock.cubed and self.clock.late():
            return metric, np.inf, None
        begin = time.monotonic()
        Z = metric.rows(self.X)
        K = table(Z, Z, metric.share, self.ops)
        more = np.minimum(1 / self.a, FAR)

        def solved(lam: float) -> tuple[Metric, float, Any]:
            A = K.copy()
            if not factorise(A, 1 + lam * more):
                return replace(metric, lam=lam), np.inf, None
            alpha = divided_by(A, self.Y)
            left = alpha[-JUDGED:] / inverse_diagonal(A, JUDGED)[:, None]
            errors = np.square(left).sum(axis=1, dtype=np.float64)
            return replace(metric, lam=lam), float(np.average(errors, weights=self.a[-JUDGED:])), alpha

        best = solved(metric.lam)
        self.clock.solved(len(self.Y), time.monotonic() - begin, f"error {best[1]:.4g}")
        for factor in (STEP, 1 / STEP) if walk else ():
            lam, start = metric.lam * factor, best
            while 0.99 * LEAST_LAM < lam < 1.01 * MOST_LAM and (new := solved(lam))[1] < best[1]:
                best, lam = new, lam * factor
            if best is not start:
                break
        return best

    def gradients(self, metric: Metric, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""``G`` (d, d) and ``g`` (d,): weighted means over some rows, and sums over the outputs.

        .. math:: \nabla f(x) = -R \sum_i \alpha_i \frac{k(x_i, x)}{\|z - z_i\|} (z - z_i), \quad z = R x

        of the first kind, with R = M^{1/2} / L; of the second, signs of :math:`u_j - u_{ij}` stand for the direction.
        """
        (Z, W), R = metric.rows(self.X), metric.root
        n, d = Z.shape
        some = min(SLOPES, n)
        at, a = Z[:some], self.a[:some]
        r = np.sqrt(squared_distances(at, Z, precision=0))
        P = np.where(r > NEAR, np.exp(-r) / np.maximum(r, NEAR), 0.0).astype(Z.dtype)
        G = np.zeros((d, d))
        for column in alpha.T:
            Q = P * column
            slopes = (at * Q.sum(axis=1)[:, None] - Q @ Z).astype(np.float64)
            slopes = slopes * R if R.ndim == 1 else slopes @ R
            G += (slopes * a[:, None]).T @ slopes
        few = int(np.clip(SIGNS // (n * d), 50, some))
        K = self.ops.exponential(W[:few], self.ops.tiles(W), n, 1, 1.0)
        along = [((K * np.sign(W[:few, j, None] - W[:, j])) @ alpha).astype(np.float64) for j in range(d)]
        g = metric.scales**2 * np.array([self.a[:few] @ np.square(slopes).sum(axis=1) for slopes in along])
        return G / a.sum(), g / self.a[:few].sum()


def root_of(G: np.ndarray, rho: float, length: float) -> np.ndarray:
    """``M^{1/2} / L`` of an average gradient outer product (d, d), (d,) where rho is 0.

    ``length`` is L next to the usual distance of two rows, the root of twice the trace of M.
    """
    diagonal = np.diag(G) / np.diag(G).max()
    unit = length * np.sqrt(2 * diagonal.sum())
    if rho == 0:
        return np.sqrt(diagonal) / unit
    M = rho * G / np.diag(G).max() + (1 - rho) * np.diag(diagonal)
    values, V = np.linalg.eigh(M)
    return (V * np.sqrt(np.maximum(values, 0.0))) @ V.T / unit


def scales_of(g: np.ndarray, length: float) -> np.ndarray:
    """``m^{1/2} / l`` of average squares of slopes (d,); ``length`` is l next to the sum of the roots."""
    roots = np.sqrt(g / g.max())
    return roots / (length * roots.sum())


def learn_metric(rows: Rows, Y: np.ndarray, weight: np.ndarray | None, seed: int, ops: Any, clock: Clock) -> Metric:
    """The metric for rows, whose columns have the deviation 1, as have their ranks, and targets Y (n, C) of mean 0."""
    n, d = rows[0].shape
    order = generator(seed, Stream.METRIC_ROWS).permutation(n)
    a = np.ones(n) if weight is None else weight

    def trials(count: int) -> Trials:
        some = order[:count]
        return Trials(ops, (rows[0][some], rows[1][some]), Y[some].astype(np.float32), a[some], clock)

    if n < FEWEST:
        return plain_metric(d)
    best = from_few(trials(FIRST))
    if n > FIRST:
        best = from_more(trials(SECOND), best)
    return best.metric


def plain_metric(d: int, ranks: float = RANKS) -> Metric:
    """All d columns alike."""
    return Metric(root_of(np.eye(d), 0.0, LENGTH), scales_of(np.ones(d), LENGTH), SHARE, ranks, LAM)


def from_few(trials: Trials, broad: int = BROAD) -> Tried:
    """Rounds of gradients from the plain metric on; then rho, the lengths with their penalty, and the share.

    The part off the diagonal is tried with up to ``broad`` columns, ranks where there are any.
    """
    d, ranked = trials.X[0].shape[1], trials.X[1].any()
    rho, rhos = (RHO, RHOS) if 1 < d <= broad else (0.0, ())
    plain = plain_metric(d, RANKS if ranked else 0.0)
    last = best = Tried(*trials.at(plain), np.eye(d), np.ones(d), rho, (LENGTH, LENGTH))
    for number in range(ROUNDS):
        last = _renewed(trials, last)
        if last.error < best.error:
            best = last
        elif number:
            break
    for rho in rhos:
        metric, error, alpha = trials.at(best.made(rho=rho), walk=False)
        if error < best.error:
            best = replace(best, metric=metric, error=error, alpha=alpha, rho=rho)
    for which in (0, 1):
        best = _at_length(trials, best, which)
    return _with(trials, _at_penalty(trials, best), share=SHARES, ranks=RANKINGS if ranked else ())


def _at_length(trials: Trials, best: Tried, which: int) -> Tried:
    """The best so far with the best length of a kind; the penalty goes with it, as a short one takes more."""
    for factor in (STEP, 1 / STEP):
        start = best
        while LEAST_LENGTH < (length := best.lengths[which] * factor) < MOST_LENGTH:
            lengths = (length, best.lengths[1]) if which == 0 else (best.lengths[0], length)
            metric = replace(best.made(lengths=lengths), lam=best.metric.lam / factor)
            metric, error, alpha = trials.at(metric, walk=False)
            if error >= best.error:
                break
            best = replace(best, metric=metric, error=error, alpha=alpha, lengths=lengths)
        if best is not start:
            break
    return best


def _at_penalty(trials: Trials, best: Tried) -> Tried:
    metric, error, alpha = trials.at(best.metric)
    return replace(best, metric=metric, error=error, alpha=alpha)


def from_more(trials: Trials, best: Tried) -> Tried:
    """The same metric on more rows, or that of the gradients there, whichever is better."""
    best = _at_penalty(trials, best)
    new = _renewed(trials, best)
    return new if new.error < best.error else best


def _renewed(trials: Trials, last: Tried) -> Tried:
    """The metric from the gradients of the function learned last; the same again where they say nothing."""
    if last.alpha is None:
        return last
    G, g = trials.gradients(last.metric, last.alpha)
    if not (np.isfinite(G).all() and np.isfinite(g).all() and np.diag(G).max() > 0 and g.max() > 0):
        return last
    new = replace(last, G=G, g=g)
    metric, error, alpha = trials.at(new.made(), walk=False)
    return replace(new, metric=metric, error=error, alpha=alpha)


def _with(trials: Trials, best: Tried, **values: tuple[float, ...]) -> Tried:
    """The best so far with other numbers in its metric, where they are better."""
    for name, tried in values.items():
        for value in tried:
            changed: dict[str, Any] = {name: value}
            metric, error, alpha = trials.at(replace(best.metric, **changed), walk=False)
            if error < best.error:
                best = replace(best, metric=metric, error=error, alpha=alpha)
    return best
