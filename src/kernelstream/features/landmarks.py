"""Ways to choose the landmark rows of a Nyström map.

Each function takes ``(kernel, X, m, rng)``, with rows X (n, d) dense or CSR and a numeric kernel, and returns indices
of at most m distinct rows. None forms the (n, n) Gram matrix: the cost is O(n m) kernel values, or none for `uniform`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import eigh

Choice = Callable[[Any, Any, int, np.random.Generator], np.ndarray]


def uniform(kernel: Any, X: Any, m: int, rng: np.random.Generator) -> np.ndarray:
    """m rows, uniformly without replacement."""
    return rng.choice(X.shape[0], m, replace=False)


def kmeanspp(kernel: Any, X: Any, m: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++ seeding in the kernel's own space [1]_.

    Each next row is drawn with probability proportional to its squared distance ``k(x,x) - 2 k(x,c) + k(c,c)`` from the
    nearest landmark c so far. Rows that repeat a landmark are at distance 0; when no others are left, it stops.

    References
    ----------
    .. [1] Arthur, Vassilvitskii: k-means++: the advantages of careful seeding, SODA 2007.
    """
    k_xx = _diag(kernel, X)
    chosen = [int(rng.integers(X.shape[0]))]
    distance = np.full(X.shape[0], np.inf)
    while True:
        c = chosen[-1]
        np.minimum(distance, k_xx + k_xx[c] - 2.0 * _column(kernel, X, c), out=distance)
        distance[distance <= _negligible(k_xx)] = 0.0
        distance[c] = 0.0
        if len(chosen) == m or not distance.any():
            return np.array(chosen)
        chosen.append(_pick(distance, rng))


def rpcholesky(kernel: Any, X: Any, m: int, rng: np.random.Generator) -> np.ndarray:
    """Pivots of a randomly pivoted partial Cholesky factorisation of the Gram matrix [1]_.

    Each next row is drawn with probability proportional to its residual ``k(x,x) - k_S(x)'K_SS^-1 k_S(x)``. It stops
    before m rows when no residual is left: the Nyström approximation is then exact on X.

    References
    ----------
    .. [1] Chen, Epperly, Tropp, Webber: Randomly pivoted Cholesky: practical approximation of a kernel matrix with few
       entry evaluations, Communications on Pure and Applied Mathematics 2025, algorithm 1.
    """
    k_xx = _diag(kernel, X)
    residual = k_xx.copy()
    F = np.zeros((X.shape[0], m))
    chosen: list[int] = []
    for i in range(m):
        residual[residual <= _negligible(k_xx)] = 0.0
        if not residual.any():
            break
        s = _pick(residual, rng)
        chosen.append(s)
        g = _column(kernel, X, s) - F[:, :i] @ F[s, :i]
        F[:, i] = g / np.sqrt(max(g[s], residual[s]))
        residual -= F[:, i] ** 2
        residual[s] = 0.0
    return np.array(chosen, dtype=np.intp)


def leverage(kernel: Any, X: Any, m: int, rng: np.random.Generator) -> np.ndarray:
    """m rows with probabilities proportional to approximate ridge leverage scores [1]_.

    The score of row i is ``(K (K + lam I)^-1)_ii``. Scores of a random subset of rows are estimated from a weighted
    sample of a subset half as large, and so on from a first one of 2m rows; lam follows the sample's spectrum so that
    m/2 directions matter, few enough for m rows to find them all. Each level keeps about 2m rows, so the work is
    O(n m²) and the memory O(n m).

    References
    ----------
    .. [1] Musco, Musco: Recursive sampling for the Nyström method, NeurIPS 2017, algorithm 3.
    """
    n = X.shape[0]
    if m >= n:
        return np.arange(n)
    order = rng.permutation(n)
    size = min(n, 2 * m)
    sample, weight = order[:size], np.ones(size)
    while True:
        rows = order[: min(n, 2 * size)]
        found = leverage_scores(kernel, X[sample], weight * np.sqrt(len(rows) / size), m, X[rows])
        if len(rows) == n:
            return rows[rng.choice(n, m, replace=False, p=found / found.sum())]
        size, keep = len(rows), min(len(rows), 2 * m)
        # Rows enter independently, about `keep` of them; a row kept with probability p stands for 1/p rows. Its weight
        # is relative to the subset just scored, whose share of the next one the square root above accounts for.
        p = np.minimum(1.0, keep * found / found.sum())
        kept = rng.random(len(rows)) < p
        kept[np.argmax(p)] = True
        sample, weight = rows[kept], 1.0 / np.sqrt(p[kept])


def leverage_scores(kernel: Any, S: Any, weight: np.ndarray, m: int, X: Any) -> np.ndarray:
    """Scores of rows X (n, d) by a sample S (s, d) with weights (s,), of which m/2 directions matter; all in (0, 1]."""
    spectrum, V = eigh(_gram(kernel, S, S) * np.outer(weight, weight))
    spectrum = np.maximum(spectrum, 0.0)
    lam = _ridge(spectrum, 0.5 * m)
    B = (V.T * weight) @ _gram(kernel, S, X)
    explained = np.einsum("ij,ij,i->j", B, B, 1.0 / (spectrum + lam))
    return np.clip((_diag(kernel, X) - explained) / lam, 1e-10, 1.0)


def _ridge(spectrum: np.ndarray, d_eff: float) -> float:
    """The lam with effective dimension ``sum s / (s + lam) = d_eff``, by bisection of its logarithm."""
    high = max(float(spectrum.sum()) / d_eff, np.finfo(float).tiny)  # where the dimension is below d_eff
    low = 1e-12 * high
    for _ in range(40):
        lam = np.sqrt(low * high)
        low, high = (lam, high) if np.sum(spectrum / (spectrum + lam)) > d_eff else (low, lam)
    return high


def _pick(weight: np.ndarray, rng: np.random.Generator) -> int:
    """An index with probability proportional to its weight, never one of weight 0."""
    total = np.cumsum(weight)
    i = int(np.searchsorted(total, rng.random() * total[-1], side="right"))
    return min(i, int(np.flatnonzero(weight)[-1]))


def _negligible(k_xx: np.ndarray) -> float:
    """Squared distances below this are rounding."""
    return 1e-12 * float(np.max(np.abs(k_xx), initial=0.0))


def _gram(kernel: Any, X: Any, Z: Any) -> np.ndarray:
    return np.asarray(kernel.pairwise(X, Z), dtype=np.float64)


def _diag(kernel: Any, X: Any) -> np.ndarray:
    return np.asarray(kernel.diag(X), dtype=np.float64)


def _column(kernel: Any, X: Any, i: int) -> np.ndarray:
    return _gram(kernel, X, X[i : i + 1])[:, 0]


CHOICES: dict[str, Choice] = {
    "uniform": uniform,
    "kmeans++": kmeanspp,
    "leverage": leverage,
    "rpcholesky": rpcholesky,
}


def choose(how: str, kernel: Any, X: Any, m: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of X chosen in the way named, as indices; all rows in their order when there are no more than m."""
    if how not in CHOICES:
        raise ValueError(f"landmarks must be an array of rows or one of {', '.join(CHOICES)}, got {how!r}")
    if X.shape[0] <= m:
        return np.arange(X.shape[0])
    return CHOICES[how](kernel, X, m, rng)
