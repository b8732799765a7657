r"""A metric from the gradients of the learned function itself, for exponential kernels.

.. math:: k(x, z) = w \exp(-\|M^{1/2}(x - z)\| / L) + (1 - w) \exp(-\sum_j m_j^{1/2} |u_j(x_j) - u_j(z_j)| / l)

Rows are compared by their distance in a metric M, and by the differences of single columns with their ranks,
:math:`u_j(x_j) = x_j + c\, r_j(x_j)`, as the cuts of trees are. f is kernel ridge regression on some rows,
:math:`(K + \lambda A^{-1})\, \alpha = y`, the sum of a function of each kind; G is the average outer product of the
gradients of the first, g that of the squared slopes of the second, each summed over the outputs:

.. math:: M = (\rho\, G + (1 - \rho) \operatorname{diag} G) / \max_j G_{jj}, \qquad m = g / \max_j g_j

The kernel is solved again in the metrics that follow, a few times, as long as the error falls, from a small penalty on
and from the one that suits the plain metric; then :math:`\rho` (how
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
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..core import threads
from .clock import Clock
from .kernel_ridge import LARGEST_INVERSE_WEIGHT, divided_by, factorise, inverse_diagonal

SEARCHED = 4  # the search takes the fourth part of the rows, if that is neither too few nor too many,
MORE = 2  # and the improvement at its end so many times as many
JUDGED = 1000  # rows that are forecast by all others, at most
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
LEAST_DISTANCE = 1e-10  # distance below which a kernel function has no gradient
TILE = 256  # rows and columns of the kernel matrix that are filled at a time
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


def table(rows: Rows, share: float, ops: Any) -> np.ndarray:
    """Kernel values (n, n) of rows in a metric, in their type; each is computed once."""
    n = len(rows[0])
    K, parts = np.empty((n, n), rows[0].dtype), threads.cuts(n, TILE)
    tiles = [[ops.tiles(S[part]) for part in parts] for S in rows]

    def fill(i: int) -> None:
        for j in range(i + 1):
            near, apart = (
                ops.exponential(S[parts[i]], tile[j], parts[j].stop - parts[j].start, norm, 1.0)
                for S, tile, norm in zip(rows, tiles, (2, 1), strict=True)
            )
            near *= K.dtype.type(share)
            apart *= K.dtype.type(1 - share)
            near += apart
            K[parts[i], parts[j]] = near
            K[parts[j], parts[i]] = near.T

    threads.each(fill, range(len(parts))[::-1])  # the longest first
    return K


def between(rows: Rows, others: Rows, share: float, ops: Any) -> np.ndarray:
    """Kernel values (n, m) of rows and others in a metric, in their type."""
    near, apart = (
        ops.exponential(S, ops.tiles(T), len(T), norm, 1.0) for S, T, norm in zip(rows, others, (2, 1), strict=True)
    )
    return share * near + (1 - share) * apart


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

    def made(self, **changes: Any) -> Tried:
        """The same with other gradients or rho; its error is not known."""
        new = replace(self, **changes)
        root, scales = root_of(new.G, new.rho, new.lengths[0]), scales_of(new.g, new.lengths[1])
        return replace(new, metric=replace(self.metric, root=root, scales=scales))

    def with_numbers(self, **changes: Any) -> Tried:
        """The same with another share, factor of the ranks, penalty or the like; its error is not known."""
        return replace(self, metric=replace(self.metric, **changes))


class Systems:
    """Rows to learn from, with targets Y (n, C) and weights a (n,), and the systems of their kernels."""

    side_by_side = True  # whether a thread can solve one system and another thread another

    def __init__(self, ops: Any, X: Rows, Y: np.ndarray, a: np.ndarray, judged: int = JUDGED):
        self.ops, self.X, self.Y, self.a = ops, X, Y, a
        n, d = X[0].shape
        self.judged, self.some, self.near = min(judged, n), min(SLOPES, n), LEAST_DISTANCE
        self.few = int(np.clip(SIGNS // (n * d), 50, self.some))  # rows that slopes of the second kind are taken at

    def diagonal(self, lam: float) -> np.ndarray:
        """That of the matrix of the system, (n,)."""
        return 1 + lam * np.minimum(1 / self.a, LARGEST_INVERSE_WEIGHT)

    def table(self, metric: Metric) -> Any:
        """Kernel values (n, n)."""
        Z = metric.rows(self.X)
        return table(Z, metric.share, self.ops)

    def solved(self, K: Any, lam: float) -> tuple[float, Any]:
        """The mean squared error at the last rows, each by all others, and the coefficients (n, C); K stays."""
        A = K.copy()
        if not factorise(A, self.diagonal(lam)):
            return np.inf, None
        alpha = divided_by(A, self.Y)
        left = alpha[-self.judged :] / inverse_diagonal(A, self.judged)[:, None]
        errors = np.square(left).sum(axis=1, dtype=np.float64)
        return float(np.average(errors, weights=self.a[-self.judged :])), alpha

    def gradients(self, metric: Metric, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""``G`` (d, d) and ``g`` (d,): weighted means over some rows, and sums over the outputs.

        .. math:: \nabla f(x) = -R \sum_i \alpha_i \frac{k(x_i, x)}{\|z - z_i\|} (z - z_i), \quad z = R x

        of the first kind, with R = M^{1/2} / L; of the second, signs of :math:`u_j - u_{ij}` stand for the direction.
        """
        (Z, W), R = metric.rows(self.X), metric.root
        slopes, along = self._slopes(Z[: self.some], Z, alpha, 2), self._slopes(W[: self.few], W, alpha, 1)
        slopes = slopes * R if R.ndim == 1 else slopes @ R
        first, second = (self.a[: len(part)] / self.a[: len(part)].sum() for part in (slopes, along))
        G = (slopes * first[:, None, None]).reshape(-1, len(metric.scales)).T @ slopes.reshape(-1, len(metric.scales))
        return G, metric.scales**2 * (second @ np.square(along).sum(axis=1))

    def _slopes(self, at: np.ndarray, centres: np.ndarray, alpha: np.ndarray, norm: int) -> np.ndarray:
        """Those of the functions of one kind at some rows, (n, C, d), on all threads."""
        out = np.empty((len(at), alpha.shape[1], at.shape[1]))
        tiles, A = self.ops.tiles(centres), np.ascontiguousarray(alpha.T, centres.dtype)

        def work(part: slice) -> None:
            out[part] = self.ops.exponential_slopes(at[part], tiles, A, norm, self.near)

        threads.each(work, threads.cuts(len(at), TILE))
        return out


class Trials:
    """Systems, solved as long as there is time."""

    def __init__(self, systems: Any, clock: Clock):
        self.systems, self.clock = systems, clock
        self.kept: tuple[tuple[Any, ...], Any] = (), None

    def of(self, *tried: Tried) -> list[Tried]:
        """The same with their errors and coefficients (n, C), several on threads of their own.

        Where no time is left, errors are infinite.
        """
        if self.clock.cubed and self.clock.late():
            return [replace(one, error=np.inf, alpha=None) for one in tried]
        if len({id(one.metric.root) for one in tried}) == 1:  # a table for all of them, where they have the same
            self.table(tried[0].metric)
        found, begin = list(tried), time.monotonic()

        def work(i: int) -> None:
            error, alpha = self.systems.solved(self.table(tried[i].metric), tried[i].metric.lam)
            found[i] = replace(tried[i], error=error, alpha=alpha)

        if self.systems.side_by_side:
            threads.each(work, range(len(tried)))
        else:
            for i in range(len(tried)):
                work(i)
        if len(tried) == 1:
            self.clock.measured(len(self.systems.Y), time.monotonic() - begin)
        for one in found:
            self.clock.step(f"error {one.error:.4g}")
        return found

    def table(self, metric: Metric) -> Any:
        """Kernel values (n, n), those of before where the kernel is the same."""
        kernel = metric.root, metric.scales, metric.share, metric.ranks
        kept, K = self.kept
        if K is None or not all(a is b or (np.isscalar(a) and a == b) for a, b in zip(kernel, kept, strict=True)):
            K = self.systems.table(metric)
            self.kept = kernel, K
        return K


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


def learn_metric(
    rows: Rows,
    Y: np.ndarray,
    weight: np.ndarray | None,
    order: np.ndarray,
    ops: Any,
    clock: Clock,
    searched: tuple[int, int],
) -> Metric:
    """The metric for rows, whose columns have the deviation 1, as have their ranks, and targets Y (n, C) of mean 0.

    ``order`` (k,) has the numbers of rows as they are taken, and ``searched`` how many are enough, and too many.
    """
    n, d = rows[0].shape
    first = int(np.clip(n // SEARCHED, *searched))
    a = np.ones(n) if weight is None else weight

    def trials(count: int) -> Trials:
        some = order[:count]
        systems = Systems(ops, (rows[0][some], rows[1][some]), Y[some].astype(np.float32), a[some])
        return Trials(getattr(ops, "metric_systems", lambda host: host)(systems), clock)  # an engine may have its own

    if len(order) < FEWEST:
        return plain_metric(d)
    best = from_few(trials(first), plain_start(d, bool(rows[1].any())))
    if len(order) > first:
        more = trials(MORE * first)
        best = rounds_from(more, more.of(best)[0], most=1)
    return best.metric


def plain_metric(d: int, ranks: float = RANKS) -> Metric:
    """All d columns alike."""
    return Metric(root_of(np.eye(d), 0.0, LENGTH), scales_of(np.ones(d), LENGTH), SHARE, ranks, LAM)


def plain_start(d: int, ranked: bool, broad: int = BROAD) -> Tried:
    """All d columns alike, to begin with; the part off the diagonal is tried with up to ``broad`` of them."""
    rho = RHO if 1 < d <= broad else 0.0
    plain = plain_metric(d, RANKS if ranked else 0.0)
    return Tried(plain, np.inf, None, np.eye(d), np.ones(d), rho, (LENGTH, LENGTH))


def from_few(trials: Trials, start: Tried) -> Tried:
    """Rounds of gradients from a start on; then rho, the lengths with their penalty, share and ranks.

    They begin with the penalty of the start, and with the one of least error. That one is large where most columns are
    noise, and so smooth a function does not tell which; the other follows its rows, noise included.
    """
    (start,) = trials.of(start)
    begun = [rounds_from(trials, one) for one in (start, _walked(trials, start, _penalty))]
    best = min(begun, key=lambda tried: tried.error)
    best = _least(trials, best, *(best.made(rho=rho) for rho in (RHOS if best.rho else ())))
    best = tuned(trials, best)
    best = _least(trials, best, *(best.with_numbers(share=share) for share in SHARES))
    ranked = best.metric.ranks > 0
    return _least(trials, best, *(best.with_numbers(ranks=ranks) for ranks in (RANKINGS if ranked else ())))


def rounds_from(trials: Trials, last: Tried, most: int = ROUNDS) -> Tried:
    """The best of some metrics, each from the gradients in the one before; the second may be worse than the first."""
    best = last
    for number in range(most):
        last = _renewed(trials, last)
        if last.error < best.error:
            best = last
        elif number:
            break
    return best


def tuned(trials: Trials, best: Tried) -> Tried:
    """The same with other lengths and another penalty, as long as the error falls."""
    for move in (partial(_length, 0), partial(_length, 1), _penalty):
        best = _walked(trials, best, move)
    return best


def _renewed(trials: Trials, last: Tried) -> Tried:
    """The metric from the gradients of the function learned last; the same again where they say nothing."""
    if last.alpha is None:
        return last
    G, g = trials.systems.gradients(last.metric, last.alpha)
    if not (np.isfinite(G).all() and np.isfinite(g).all() and np.diag(G).max() > 0 and g.max() > 0):
        return last
    return trials.of(last.made(G=G, g=g))[0]


def _least(trials: Trials, best: Tried, *others: Tried) -> Tried:
    """The one of least error: the best so far or, where they are better, one of the others."""
    return min([best, *trials.of(*others)], key=lambda tried: tried.error) if others else best


def _walked(trials: Trials, best: Tried, move: Callable[[Tried, float], Tried | None]) -> Tried:
    """The best so far, moved up or down by a factor as long as the error falls."""
    factors: tuple[float, ...] = (STEP, 1 / STEP)
    while True:
        moved = {factor: new for factor in factors if (new := move(best, factor)) is not None}
        found = _least(trials, best, *moved.values())
        if found is best:
            return best
        factors = tuple(factor for factor, new in moved.items() if new.metric is found.metric)
        best = found


def _penalty(best: Tried, factor: float) -> Tried | None:
    lam = best.metric.lam * factor
    return best.with_numbers(lam=lam) if 0.99 * LEAST_LAM < lam < 1.01 * MOST_LAM else None


def _length(kind: int, best: Tried, factor: float) -> Tried | None:
    """The penalty goes with a length, as a short one takes more."""
    near, apart = best.lengths
    lengths = (near * factor, apart) if kind == 0 else (near, apart * factor)
    if not LEAST_LENGTH < lengths[kind] < MOST_LENGTH:
        return None
    name = ("root", "scales")[kind]
    shorter: dict[str, Any] = {name: getattr(best.metric, name) / factor, "lam": best.metric.lam / factor}
    return replace(best.with_numbers(**shorter), lengths=lengths)
