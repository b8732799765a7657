r"""A metric from the gradients of the learned function itself, for exponential kernels.

.. math:: k(x, z) = w \exp(-\|M^{1/2}(x - z)\| / L) + (1 - w) \exp(-\sum_j m_j^{1/2} |u_j(x_j) - u_j(z_j)| / l)

Rows are compared by their distance in a metric M, and by the differences of single columns with their ranks,
:math:`u_j(x_j) = x_j + c\, r_j(x_j)`, as the cuts of trees are. f is kernel ridge regression on some rows,
:math:`(K + \lambda A^{-1})\, \alpha = y`, the sum of a function of each kind; G is the average outer product of the
gradients of the first, g that of the squared slopes of the second, each summed over the outputs:

.. math:: M \propto (\rho\, G + (1 - \rho) \operatorname{diag} G)^p, \qquad m \propto g^q

The kernel is solved again in the metrics that follow, a few times, as long as the error falls: from all columns alike
on, and from the columns that say something alone, each by as much as it says; then :math:`\rho` (how much of the part
off the diagonal counts), p and q, L, l, w, c and :math:`\lambda` are chosen by the same error, that at each row of a
function of all others. What was found on few rows is improved once on more of them.

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
from scipy import special

from ..core import threads
from ..core.triangular import divided_by, factorise, inverse_diagonal
from .clock import Clock
from .kernel_ridge import addition

SEARCHED = 4  # the search takes the fourth part of the rows, if that is neither too few nor too many,
MORE = 2  # and the improvement at its end so many times as many
JUDGED = 1000  # rows that are forecast by all others, at most: not those that gradients are taken at, if there are more
FEWEST = 24  # rows: with fewer there is nothing to compare
ROUNDS, MOST_ROUNDS = 3, 8  # of gradients on the first rows, and on all rows, as long as the error falls
RHO, RHOS = 0.5, (0.0, 1.0)  # rho of the rounds, and the values that are tried beside it
POWERS, SHARPER = (1.0, 1.0), ((2.0, 2.0), (2.0, 1.0), (1.0, 2.0))  # p and q of the rounds, likewise
TINY = np.finfo(float).tiny
GROUPS = 10  # of rows by their values in one column: what their means explain is what it says alone
LENGTH, LEAST_LENGTH, MOST_LENGTH = 3.0, 0.1, 100.0  # of both kinds, next to the usual distance of two rows
SHARE, SHARES = 0.5, (0.2, 0.8)  # w, and the values that are tried beside it
RANKS, RANKINGS = 1.0, (0.0, 3.0)  # c, and the values that are tried beside it
LAM, LEAST_LAM, MOST_LAM = 0.03, 1e-4, 30.0  # the penalty
STEP, FINER = 3.0, 3.0**0.5  # factors by which lengths and penalty go up and down
DISTANCES_LAM, COARSER = 0.01, 10.0  # the penalty of distances alone on all rows, and the factor by which it goes down
SLOPES = 800  # rows that gradients are taken at, at most;
SIGNS = 10**8  # of the second kind no more than so many comparisons of columns
LEAST_DISTANCE = 1e-10  # distance below which a kernel function has no gradient
TILE = 256  # rows of the kernel matrix that are filled at a time
BROAD = 1000  # columns up to which the part off the diagonal is tried

Rows = tuple[np.ndarray, np.ndarray]  # columns of deviation 1 and their ranks, (n, d) each; or what kernels compare


@dataclass(frozen=True)
class KernelMetric:
    """What a kernel is made of, and the penalty that goes with it."""

    root: np.ndarray  # M^{1/2} / L, (d, d), or (d,) for a diagonal M
    scales: np.ndarray  # m^{1/2} / l, (d,)
    share: float  # w
    ranks: float  # c
    lam: float

    def rows(self, rows: Rows, one_by_one: bool = False) -> Rows:
        """Rows in the metric, in the type of the given ones; ``one_by_one``, their bits do not depend on each other."""
        X, ranks = rows
        if self.root.ndim == 1:
            Z = X * self.root
        else:
            Z = (X[:, None] @ self.root)[:, 0] if one_by_one else X @ self.root
        U = (X + X.dtype.type(self.ranks) * ranks) * self.scales
        return np.ascontiguousarray(Z, X.dtype), np.ascontiguousarray(U, X.dtype)


def table(rows: Rows, share: float, ops: Any) -> np.ndarray:
    """Kernel values (n, n) of rows in a metric, in their type; each is computed once."""
    n = len(rows[0])
    K, tiled = np.empty((n, n), rows[0].dtype), tuple(ops.tiles(S) for S in rows)
    # the longest first
    threads.each(lambda part: ops.exponential_square(K, rows, tiled, share, part), threads.cuts(n, TILE)[::-1])
    return K


def between(rows: Rows, others: Rows, share: float, ops: Any) -> np.ndarray:
    """Kernel values (n, m) of rows and others in a metric, in their type."""
    return ops.exponential_mixture(rows, tuple(ops.tiles(T) for T in others), len(others[0]), share)


@dataclass(frozen=True)
class TriedMetric:
    """A metric with its error on held-out rows, and what it was made of."""

    metric: KernelMetric
    error: float
    alpha: Any  # (n, C), None where the matrix has no factor
    G: np.ndarray  # average gradient outer product, (d, d), and
    g: np.ndarray  # average squares of the slopes along ranks, (d,)
    rho: float
    powers: tuple[float, float]
    lengths: tuple[float, float]

    def made(self, **changes: Any) -> TriedMetric:
        """The same with other gradients, rho or powers; its error is not known."""
        new = replace(self, **changes)
        (p, q), (near, apart) = new.powers, new.lengths
        root, scales = root_of(new.G, new.rho, near, p), scales_of(new.g, apart, q)
        return replace(new, metric=replace(self.metric, root=root, scales=scales))

    def with_numbers(self, **changes: Any) -> TriedMetric:
        """The same with another share, factor of the ranks, penalty or the like; its error is not known."""
        return replace(self, metric=replace(self.metric, **changes))


class Systems:
    """Rows to learn from, with targets Y (n, C) and weights a (n,), and the systems of their kernels."""

    def __init__(self, ops: Any, X: Rows, Y: np.ndarray, a: np.ndarray, judged: int = JUDGED):
        self.ops, self.X, self.Y, self.a = ops, X, Y, a
        n, d = X[0].shape
        self.judged, self.some, self.near = min(judged, n), min(SLOPES, n), LEAST_DISTANCE
        self.factor: np.ndarray | None = None
        self.few = int(np.clip(SIGNS // (n * d), 50, self.some))  # rows that slopes of the second kind are taken at

    def columns(self) -> np.ndarray:
        """What each column says alone, (d,)."""
        return alone(self.X[0], self.Y, self.a)

    def diagonal(self, lam: float) -> np.ndarray:
        """That of the matrix of the system, (n,)."""
        return 1 + addition(lam, len(self.a), self.a)

    def table(self, metric: KernelMetric) -> Any:
        """Kernel values (n, n)."""
        Z = metric.rows(self.X)
        return table(Z, metric.share, self.ops)

    def solved(self, K: Any, lam: float) -> tuple[float, Any]:
        """The mean squared error at the last rows, each by all others, and the coefficients (n, C); K stays."""
        A = self.factor = np.empty_like(K) if self.factor is None else self.factor  # fresh memory takes longer
        A[:] = K
        if not factorise(A, self.diagonal(lam)):
            return np.inf, None
        alpha = divided_by(A, self.Y)
        left = alpha[-self.judged :] / inverse_diagonal(A, self.judged)[:, None]
        errors = np.square(left).sum(axis=1, dtype=np.float64)
        return float(np.average(errors, weights=self.a[-self.judged :])), alpha

    def gradients(self, metric: KernelMetric, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""``G`` (d, d) and ``g`` (d,): weighted means over some rows, and sums over the outputs.

        .. math:: \nabla f(x) = -R \sum_i \alpha_i \frac{k(x_i, x)}{\|z - z_i\|} (z - z_i), \quad z = R x

        of the first kind, with R = M^{1/2} / L; of the second, signs of :math:`u_j - u_{ij}` stand for the direction.
        """
        (Z, W), R = metric.rows(self.X), metric.root
        G, g = self._products(Z, self.some, alpha, 2), self._products(W, self.few, alpha, 1).diagonal()
        return G * np.outer(R, R) if R.ndim == 1 else R @ G @ R, metric.scales**2 * g

    def _products(self, rows: np.ndarray, some: int, alpha: np.ndarray, norm: int) -> np.ndarray:
        """Products (d, d) of the slopes of the functions of one kind: sums over the outputs, means over some rows."""
        tiles, A, d = self.ops.tiles(rows), np.ascontiguousarray(alpha.T, rows.dtype), rows.shape[1]
        weight, parts = self.a[:some, None, None] / self.a[:some].sum(), threads.cuts(some, TILE)
        found = np.empty((len(parts), d, d))

        def work(i: int) -> None:
            slopes = self.ops.exponential_slopes(rows[parts[i]], tiles, A, norm, self.near)
            found[i] = (slopes * weight[parts[i]]).reshape(-1, d).T @ slopes.reshape(-1, d)

        threads.each(work, range(len(parts)))
        return found.sum(axis=0)


def systems_of(ops: Any, X: Rows, Y: np.ndarray, a: np.ndarray) -> Any:
    """The systems of rows, in float32; an engine may have its own."""
    host = Systems(ops, X, Y.astype(np.float32), a)
    return getattr(ops, "metric_systems", lambda host: host)(host)


class Trials:
    """Systems, solved as long as there is time."""

    def __init__(self, systems: Any, clock: Clock):
        self.systems, self.clock = systems, clock
        self.kept: tuple[tuple[Any, ...], Any] = (), None

    def of(self, *tried: TriedMetric) -> list[TriedMetric]:
        """The same with their errors and coefficients (n, C); where no time is left, errors are infinite."""
        if self.clock.cubed and self.clock.late():
            return [replace(one, error=np.inf, alpha=None) for one in tried]
        return [self._of(one) for one in tried]

    def _of(self, tried: TriedMetric) -> TriedMetric:
        begin = time.monotonic()
        error, alpha = self.systems.solved(self.table(tried.metric), tried.metric.lam)
        self.clock.measured(len(self.systems.Y), time.monotonic() - begin)
        self.clock.step(f"error {error:.4g}")
        return replace(tried, error=error, alpha=alpha)

    def table(self, metric: KernelMetric) -> Any:
        """Kernel values (n, n), those of before where the kernel is the same."""
        kernel = metric.root, metric.scales, metric.share, metric.ranks
        kept, K = self.kept
        if K is None or not all(a is b or (np.isscalar(a) and a == b) for a, b in zip(kernel, kept, strict=True)):
            K = self.systems.table(metric)
            self.kept = kernel, K
        return K


def root_of(G: np.ndarray, rho: float, length: float, power: float = 1.0) -> np.ndarray:
    """``M^{1/2} / L`` of an average gradient outer product (d, d), (d,) where rho is 0.

    ``length`` is L next to the usual distance of two rows, the root of twice the trace of M.
    """
    diagonal = np.diag(G) / np.diag(G).max()
    if rho == 0:
        roots = diagonal ** (power / 2)
        return roots / (length * np.sqrt(2 * np.square(roots).sum()))
    values, V = np.linalg.eigh(rho * G / np.diag(G).max() + (1 - rho) * np.diag(diagonal))
    roots = np.maximum(values, 0.0) ** (power / 2)
    return (V * roots) @ V.T / (length * np.sqrt(2 * np.square(roots).sum()))


def scales_of(g: np.ndarray, length: float, power: float = 1.0) -> np.ndarray:
    """``m^{1/2} / l`` of average squares of slopes (d,); ``length`` is l next to the sum of the roots."""
    roots = (g / g.max()) ** (power / 2)
    return roots / (length * roots.sum())


def alone(X: np.ndarray, Y: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The part of the variance of targets Y (n, C) that each column of X (n, d) explains alone, (d,); weights a (n,).

    By the means of its tenths, less what chance explains; 0 where chance would explain as much in one column of all d
    (the F test).
    """
    n, d = X.shape
    group = sum(edge < X for edge in np.quantile(X, np.arange(1, GROUPS) / GROUPS, axis=0))
    Y, a = Y - np.average(Y, axis=0, weights=a), a / a.mean()
    total, between, groups = max(a @ np.square(Y).sum(axis=1), TINY), np.zeros(d), np.zeros(d)
    for number in range(GROUPS):
        own = (group == number) * a[:, None]
        size = own.sum(axis=0)
        between += np.square(Y.T @ own).sum(axis=0) / np.maximum(size, TINY)
        groups += size > 0
    more, rest = np.maximum(groups - 1, 1), n - groups
    with np.errstate(over="ignore"):  # a column that explains everything
        chance = special.fdtrc(more, rest, between / more * rest / np.maximum(total - between, TINY))
    return np.where((groups > 1) & (chance * d < 1), np.maximum(between / total - more / n, 0.0), 0.0)


def learn_metric(
    rows: Rows,
    Y: np.ndarray,
    weight: np.ndarray | None,
    order: np.ndarray,
    ops: Any,
    clock: Clock,
    searched: tuple[int, int],
    fine: bool = False,
) -> KernelMetric:
    """The metric for rows, whose columns have the deviation 1, as have their ranks, and targets Y (n, C) of mean 0.

    ``order`` (k,) has the numbers of rows as they are taken, and ``searched`` how many are enough, and too many. With
    ``fine`` lengths and penalty are tuned again at the end, in smaller steps.
    """
    n, d = rows[0].shape
    first = _first(n, searched)
    a = np.ones(n) if weight is None else weight

    def trials(count: int) -> Trials:
        some = order[:count]
        return Trials(systems_of(ops, (rows[0][some], rows[1][some]), Y[some], a[some]), clock)

    if len(order) < FEWEST:
        return plain_metric(d)
    last = trials(first)
    best = from_few(last, plain_start(d, bool(rows[1].any())), SHARPER)
    if len(order) > first:
        last = trials(MORE * first)
        best = rounds_from(last, last.of(best)[0], most=1)
    return (tuned(last, best, FINER) if fine else best).metric


def _first(n: int, searched: tuple[int, int]) -> int:
    """Rows of n that the search begins with."""
    return int(np.clip(n // SEARCHED, *searched))


def sees_few(n: int, searched: tuple[int, int]) -> bool:
    """Whether n rows are more than the search has at its end."""
    return n > MORE * _first(n, searched)


def of_distances(trials: Any, metric: KernelMetric) -> KernelMetric:
    """The metric that was found, or one of distances alone from rounds on all rows of the trials, which has less error.

    Distances in a full metric are what many rows can teach and few cannot: where the penalty is small.
    """
    plain = plain_start(len(metric.scales), False).made(rho=1.0).with_numbers(share=1.0, lam=DISTANCES_LAM)
    found, start = trials.of(replace(plain, metric=metric), plain)
    return _best([found, _walked(trials, rounds_from(trials, start, MOST_ROUNDS), _penalty, COARSER)]).metric


def plain_metric(d: int, ranks: float = RANKS) -> KernelMetric:
    """All d columns alike."""
    return KernelMetric(root_of(np.eye(d), 0.0, LENGTH), scales_of(np.ones(d), LENGTH), SHARE, ranks, LAM)


def plain_start(d: int, ranked: bool, broad: int = BROAD) -> TriedMetric:
    """All d columns alike, to begin with; the part off the diagonal is tried with up to ``broad`` of them."""
    rho = RHO if 1 < d <= broad else 0.0
    plain = plain_metric(d, RANKS if ranked else 0.0)
    return TriedMetric(plain, np.inf, None, np.eye(d), np.ones(d), rho, POWERS, (LENGTH, LENGTH))


def from_few(trials: Trials, plain: TriedMetric, powers: tuple[tuple[float, float], ...] = ()) -> TriedMetric:
    """Rounds of gradients; then rho, the powers that are to be tried, lengths with their penalty, share and ranks.

    They begin with all columns alike and the penalty of least error. That one is large where most columns are noise,
    and so smooth a function does not tell which. So they also begin with a small penalty, where the function follows
    its rows, noise included, and with the columns that say something alone.
    """
    (plain,) = trials.of(plain)
    starts, walked, columns = [plain], _walked(trials, plain, _penalty), trials.systems.columns()
    if walked is not plain:
        starts.append(walked)
    if columns.any():
        starts.append(_walked(trials, trials.of(plain.made(G=np.diag(columns), g=columns))[0], _penalty))
    best = _best([rounds_from(trials, start) for start in starts])
    best = _least(trials, best, *(best.made(rho=rho) for rho in (RHOS if best.rho else ())))
    best = _least(trials, best, *(best.made(powers=pair) for pair in powers))
    best = tuned(trials, best)
    best = _least(trials, best, *(best.with_numbers(share=share) for share in SHARES))
    ranked = best.metric.ranks > 0
    return _least(trials, best, *(best.with_numbers(ranks=ranks) for ranks in (RANKINGS if ranked else ())))


def rounds_from(trials: Trials, last: TriedMetric, most: int = ROUNDS) -> TriedMetric:
    """The best of some metrics, each from the gradients in the one before; the second may be worse than the first."""
    best = last
    for number in range(most):
        last = _renewed(trials, last)
        if last.error < best.error:
            best = last
        elif number:
            break
    return best


def tuned(trials: Trials, best: TriedMetric, step: float = STEP) -> TriedMetric:
    """The same with other lengths and another penalty, as long as the error falls."""
    for move in (partial(_length, 0), partial(_length, 1), _penalty):
        best = _walked(trials, best, move, step)
    return best


def _renewed(trials: Trials, last: TriedMetric) -> TriedMetric:
    """The metric from the gradients of the function learned last; the same again where they say nothing."""
    if last.alpha is None:
        return last
    G, g = trials.systems.gradients(last.metric, last.alpha)
    if not (np.isfinite(G).all() and np.isfinite(g).all() and np.diag(G).max() > 0 and g.max() > 0):
        return last
    return trials.of(last.made(G=G, g=g))[0]


def _least(trials: Trials, best: TriedMetric, *others: TriedMetric) -> TriedMetric:
    """The one of least error: the best so far or, where they are better, one of the others."""
    return _best([best, *trials.of(*others)]) if others else best


def _best(tried: list[TriedMetric]) -> TriedMetric:
    return min(tried, key=lambda one: one.error)


def _walked(
    trials: Trials, best: TriedMetric, move: Callable[[TriedMetric, float], TriedMetric | None], step: float = STEP
) -> TriedMetric:
    """The best so far, moved up or down by a factor as long as the error falls."""
    factors: tuple[float, ...] = (step, 1 / step)
    while True:
        moved = {factor: new for factor in factors if (new := move(best, factor)) is not None}
        found = _least(trials, best, *moved.values())
        if found is best:
            return best
        factors = tuple(factor for factor, new in moved.items() if new.metric is found.metric)
        best = found


def _penalty(best: TriedMetric, factor: float) -> TriedMetric | None:
    lam = best.metric.lam * factor
    return best.with_numbers(lam=lam) if 0.99 * LEAST_LAM < lam < 1.01 * MOST_LAM else None


def _length(kind: int, best: TriedMetric, factor: float) -> TriedMetric | None:
    """The penalty goes with a length, as a short one takes more."""
    near, apart = best.lengths
    lengths = (near * factor, apart) if kind == 0 else (near, apart * factor)
    if not LEAST_LENGTH < lengths[kind] < MOST_LENGTH:
        return None
    name = ("root", "scales")[kind]
    shorter: dict[str, Any] = {name: getattr(best.metric, name) / factor, "lam": best.metric.lam / factor}
    return replace(best.with_numbers(**shorter), lengths=lengths)
