"""Merging two support vectors into one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels import Gaussian
from ..rows import dense
from ..state import undo as _undo
from ._base import Budget, Row, SupportSet, register
from .removal import smallest

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
# Two vectors with the same coefficient can be merged on either side of their middle, and equally far pairs are equally
# good; losses that differ by less than this share are taken as equal, and the right side and the lowest slot win,
# whatever the rounding.
EQUAL = 1e-10
STEPS = 30  # of the golden-section search: h to 5e-7, the loss to its square


@register
class Merge(Budget):
    r"""Merge the smallest vector with the partner that loses least: ``z = h a + (1 - h) b`` replaces both.

    The best coefficient of z is ``(alpha_a k(a, z) + alpha_b k(b, z))/k(z, z)``; h is found by golden section, for
    every possible partner with the Gaussian kernel, where ``k(a, z) = k(a, b)^((1-h)^2)``, ``k(b, z) = k(a, b)^(h^2)``
    and ``||x - z||^2 = h ||x - a||^2 + (1 - h) ||x - b||^2 - h (1 - h) ||a - b||^2`` gives z's kernel values. With
    other kernels the partner is the vector nearest in feature space, and z's values are computed again.

    Wang, Crammer, Vucetic: Breaking the curse of kernelization (BSGD), JMLR 13 (2012).
    """

    name = "merge"
    gram = True
    least = 2

    def absorb(self, S: SupportSet, row: Row) -> None:
        if not S.full:
            return S.place(S.n, row, row.tau)
        n, a = S.n, smallest(S, row)
        alpha = np.hstack([S.coefficients, row.tau[:, None]])  # (C, n + 1), the new row last
        gram, diag = S.state["budget_gram"], np.append(S.diag, row.k_xx)
        k_a = np.append(gram[a], row.k[a]) if a < n else np.append(row.k, row.k_xx)
        aa = float(alpha[:, a] @ alpha[:, a])
        if isinstance(S.kernel, Gaussian):
            h, cost = mix(alpha[:, a], alpha, k_a)
            cost[a] = np.inf
            b = int(np.argmax(cost <= cost.min() + EQUAL * aa))
            h_b = float(h[b])
        else:
            distance = diag[a] + diag - 2 * k_a
            distance[a] = np.inf
            b = int(np.argmin(distance))
            h_b = _search(S, row, a, b, alpha)
        x_a, x_b = _vector(S, row, a), _vector(S, row, b)
        z = h_b * x_a + (1 - h_b) * x_b
        k_z = S.kernel.pairwise(z[None], np.stack([z, x_a, x_b]))[0].astype(np.float64)
        slot = min(a, b)  # of z: one of the two is an old slot
        free = max(a, b)
        _put(S, row, slot, z, k_z[0], (alpha[:, a] * k_z[1] + alpha[:, b] * k_z[2]) / k_z[0])
        if free < n:
            row.k = row.k.copy()
            row.k[slot] = S.kernel.pairwise(z[None], _vector(S, row, n)[None])[0, 0]
            S.place(free, row, row.tau)
        return None


def mix(alpha_a: np.ndarray, alpha: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Best h of a with every b, and the loss ``||alpha_a phi_a + alpha_b phi_b - alpha_z phi_z||^2``; Gaussian kernel.

    alpha_a (C,), alpha (C, n), k (n,) = k(a, b).
    """
    with np.errstate(divide="ignore"):
        log_k = np.maximum(np.log(k, dtype=np.float64), -1e4)  # k = 0 from underflow
    aa, bb, ab = float(alpha_a @ alpha_a), (alpha**2).sum(axis=0), alpha_a @ alpha

    def kept(h: np.ndarray) -> np.ndarray:  # squared norm of the merged term
        k_az, k_bz = np.exp((1 - h) ** 2 * log_k), np.exp(h * h * log_k)
        return aa * k_az**2 + bb * k_bz**2 + 2 * ab * k_az * k_bz

    h = _golden_section(kept, np.zeros_like(log_k), np.ones_like(log_k))
    return h, aa + bb + 2 * ab * k - kept(h)


def _golden_section(f: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """Where f is largest between low and high, elementwise."""
    for _ in range(STEPS):
        width = GOLDEN * (high - low)
        left, right = high - width, low + width
        better = f(left) > f(right) * (1.0 + EQUAL)
        low, high = np.where(better, low, left), np.where(better, right, high)
    return 0.5 * (low + high)


def _search(S: SupportSet, row: Row, a: int, b: int, alpha: np.ndarray) -> float:
    """Best h of one pair, for any kernel."""
    x_a, x_b = _vector(S, row, a), _vector(S, row, b)

    def kept(h: Any) -> float:
        h = float(h)
        z = (h * x_a + (1 - h) * x_b)[None]
        k = S.kernel.pairwise(z, np.stack([x_a, x_b]))[0].astype(np.float64)
        term = alpha[:, a] * k[0] + alpha[:, b] * k[1]
        return float(term @ term) / max(float(S.kernel.diag(z)[0]), 1e-300)

    return float(_golden_section(kept, 0.0, 1.0))


def _vector(S: SupportSet, row: Row, j: int) -> np.ndarray:
    """Support vector j, or the new row for j = n."""
    return S.support[j] if j < S.n else dense(S.X[row.i : row.i + 1])[0].astype(S.support.dtype)


def _put(S: SupportSet, row: Row, slot: int, z: np.ndarray, k_zz: float, coefficient: np.ndarray) -> None:
    """The vector z becomes support vector ``slot``."""
    _undo.rows(S.support, slice(slot, slot + 1))
    S.support[slot] = z
    S.alpha[:, slot] = coefficient / S.scale
    S.diag[slot] = k_zz
    if row.i + 1 < len(S.K):
        S.K[row.i + 1 :, slot] = S.kernel.pairwise(S.X[row.i + 1 :], S.support[slot : slot + 1])[:, 0]
    S.enter(slot, S.kernel.pairwise(S.support, S.support[slot : slot + 1])[:, 0], k_zz)
