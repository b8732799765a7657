r"""A metric from the gradients of the learned function itself, for exponential kernels.

.. math:: k(x, z) = w \exp(-\|M^{1/2}(x - z)\| / L) + (1 - w) \exp(-\sum_j m_j^{1/2} |u_j(x_j) - u_j(z_j)| / l)

Rows are compared by their distance in a metric M, and by the differences of single columns with their ranks,
:math:`u_j(x_j) = x_j + c\, r_j(x_j)`, as the cuts of trees are. f is kernel ridge regression on some rows,
:math:`(K + \lambda A^{-1})\, \alpha = y`, the sum of a function of each kind; G is the average outer product of the
gradients of the first, g that of the squared slopes of the second, each summed over the outputs:

.. math:: M \propto (\rho\, G + (1 - \rho) \operatorname{diag} G)^p, \qquad m \propto g^q

References
----------
Radhakrishnan, Beaglehole, Pandit, Belkin: Mechanism for feature learning in neural networks and backpropagation-free
machine learning models, Science 383, 2024. Beaglehole et al.: xRFM: accurate, scalable, and interpretable feature
learning models for tabular data, arXiv 2508.10053, 2025 (full and diagonal metric, leaves).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from ..core import threads
from ..core.triangular import divided_by, factorise, inverse_diagonal
from .kernel_ridge import addition

JUDGED = 1000  # rows that are forecast by all others, at most: not those that gradients are taken at, if there are more
TINY = np.finfo(float).tiny
GROUPS = 10  # of rows by their values in one column: what their means explain is what it says alone
SLOPES = 800  # rows that gradients are taken at, at most;
SIGNS = 10**8  # of the second kind no more than so many comparisons of columns
LEAST_DISTANCE = 1e-10  # distance below which a kernel function has no gradient
TILE = 256  # rows of the kernel matrix that are filled at a time

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
