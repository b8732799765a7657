r"""Regret: what a forecaster lost beyond the best function of a kernel's space, and how an adversary makes it lose.

After n rows, with forecasts p,

.. math:: R_n = \sum_{t \le n} (y_t - p_t)^2 - \min_f \Big[\sum_{t \le n} (y_t - f(x_t))^2 + \lambda \|f\|^2\Big].

With ``K + lambda I = L L'`` and ``e = L^-1 y`` the minimum is ``lambda y'(K + lambda I)^-1 y = lambda sum_t e_t^2``,
for every n at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cholesky, eigvalsh, solve_triangular
from scipy.optimize import minimize

from kernelstream import kernels
from kernelstream.random import SeedStream, generator, seed_from

__all__ = ["best_in_hindsight", "effective_dimension", "greedy_adversary", "regret", "regret_bound"]


def _gram(X: Any, kernel: Any) -> np.ndarray:
    X = np.asarray(X, dtype=np.float64)
    resolved = kernels.get(kernel).resolve(X)
    return np.asarray(resolved.pairwise(X, X), dtype=np.float64)


def best_in_hindsight(X: Any, y: Any, kernel: Any, lam: float = 1.0) -> np.ndarray:
    """``min_f sum_{s<=t} (y_s - f(x_s))² + lam |f|²`` for every t, (n,), over the functions of the kernel's space.

    Parameters
    ----------
    X : (n, d) array
    y : (n,) array
    kernel : Kernel or str
    lam : float, default=1.0

    Examples
    --------
    >>> from kernelstream_papers.regret import best_in_hindsight
    >>> best_in_hindsight([[0.0], [0.0]], [1.0, 1.0], "linear", lam=1.0).tolist()
    [1.0, 2.0]
    """
    K = _gram(X, kernel)
    L = cholesky(K + lam * np.eye(len(K)), lower=True)
    e = solve_triangular(L, np.asarray(y, dtype=np.float64), lower=True)
    return lam * np.cumsum(e**2)


def regret(X: Any, y: Any, predictions: Any, kernel: Any, lam: float = 1.0) -> np.ndarray:
    """Regret after every row, (n,): losses so far minus those (and the norm) of the best function for these rows.

    Parameters
    ----------
    X : (n, d) array
    y : (n,) array
    predictions : (n,) array
        Forecasts made before each target was seen, as ``learn`` returns them.
    kernel : Kernel or str
    lam : float, default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import KernelAWV
    >>> from kernelstream_papers.regret import regret, regret_bound
    >>> from kernelstream.kernels import Gaussian
    >>> X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    >>> y = np.sign(X[:, 0])
    >>> curve = regret(X, y, KernelAWV(Gaussian(1.0)).learn(X, y), Gaussian(1.0))
    >>> bool(curve[-1] <= regret_bound(X, Gaussian(1.0))[-1])
    True
    """
    y = np.asarray(y, dtype=np.float64)
    losses = (y - np.asarray(predictions, dtype=np.float64)) ** 2
    return np.cumsum(losses) - best_in_hindsight(X, y, kernel, lam)


def effective_dimension(X: Any, kernel: Any, lam: float = 1.0) -> float:
    """``tr K (K + lam I)^-1``: how many directions of the kernel's space the rows fill.

    Parameters
    ----------
    X : (n, d) array
    kernel : Kernel or str
    lam : float, default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream_papers.regret import effective_dimension
    >>> effective_dimension(np.eye(4), "linear", lam=1.0)
    2.0
    """
    spectrum = np.maximum(eigvalsh(_gram(X, kernel)), 0.0)
    return float((spectrum / (spectrum + lam)).sum())


def regret_bound(X: Any, kernel: Any, lam: float = 1.0, bound: float = 1.0) -> np.ndarray:
    """``B² log det(I + K/lam)`` after every row, (n,): the most that Kernel-AWV can regret with ``|y| <= B``.

    Parameters
    ----------
    X : (n, d) array
    kernel : Kernel or str
    lam : float, default=1.0
    bound : float, default=1.0
        B.
    """
    K = _gram(X, kernel)
    L = cholesky(K / lam + np.eye(len(K)), lower=True)
    return bound**2 * 2 * np.cumsum(np.log(L.diagonal()))


def greedy_adversary(
    estimator: Any,
    n: int,
    d: int,
    kernel: Any,
    lam: float = 1.0,
    *,
    candidates: int = 200,
    polish: int = 3,
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Play n rows of [-1, 1]^d and targets of [-1, 1] against a forecaster, each the worst next one.

    A row x with target y raises the regret by ``(y - p(x))² - lam (y - m(x))²/(lam + v(x))``, m and v being mean and
    variance of kernel ridge regression on the rows so far. In y this is convex, so y is -1 or 1; over x the best of
    some random rows are improved by L-BFGS-B.

    Parameters
    ----------
    estimator : regressor
        Not yet fitted; it is not changed, a clone plays.
    n, d : int
        Rows to play, and their width.
    kernel : Kernel or str
        The space of functions the forecaster competes with; a numeric bandwidth is needed.
    lam : float, default=1.0
    candidates, polish : int
        Random rows looked at in each step, and how many of them are improved.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    X : (n, d), y : (n,), predictions : (n,)
        The game, for :func:`regret`.
    """
    from sklearn.base import clone

    rng = generator(seed_from(random_state), SeedStream.OPPONENT)
    kernel = kernels.get(kernel)
    learner = clone(estimator)
    X, y, P = np.empty((n, d)), np.empty(n), np.empty(n)
    L, e = np.zeros((n, n)), np.zeros(n)

    def gain(rows: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Rise of the regret for y = -1 and y = 1, (m, 2), and the forecasts."""
        p = learner.predict(rows) if t else np.zeros(len(rows))
        W = solve_triangular(L[:t, :t], kernel.pairwise(X[:t], rows), lower=True) if t else np.zeros((0, len(rows)))
        mean, v = W.T @ e[:t], np.maximum(kernel.diag(rows) - (W**2).sum(axis=0), 0.0)
        targets = np.array([-1.0, 1.0])
        rise = (targets - p[:, None]) ** 2 - (lam / (lam + v))[:, None] * (targets - mean[:, None]) ** 2
        return rise, p

    for t in range(n):
        rows = rng.uniform(-1, 1, (candidates, d))
        rise, _ = gain(rows, t)
        best, x, side = -np.inf, rows[0], 1
        for flat in np.argsort(rise, axis=None)[::-1][:polish]:
            i, sign = np.unravel_index(flat, rise.shape)
            found = _ascend(lambda Z, sign=sign, t=t: gain(Z, t)[0][:, sign], rows[i])
            value = float(gain(found[None], t)[0][0, sign])
            if value > best:
                best, x, side = value, found, int(sign)
        X[t], y[t] = x, (-1.0, 1.0)[side]
        P[t] = gain(x[None], t)[1][0]
        k = kernel.pairwise(X[: t + 1], x[None])[:, 0]
        if t:
            L[t, :t] = solve_triangular(L[:t, :t], k[:t], lower=True)
        L[t, t] = np.sqrt(max(k[t] - L[t, :t] @ L[t, :t], 0.0) + lam)
        e[t] = (y[t] - L[t, :t] @ e[:t]) / L[t, t]
        learner.partial_fit(x[None], y[t : t + 1])
    return X, y, P


def _ascend(value: Any, x: np.ndarray) -> np.ndarray:
    """A maximum of ``value`` (rows -> numbers) in the cube [-1, 1]^d near x; gradients by differences, in one call."""
    h = 1e-6

    def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
        steps = h * np.where(x > 0, -1.0, 1.0)  # inwards
        values = value(np.concatenate([x[None], x + np.diag(steps)]))
        return -float(values[0]), -(values[1:] - values[0]) / steps

    found = minimize(negative, x, jac=True, method="L-BFGS-B", bounds=[(-1, 1)] * len(x), options={"maxiter": 50})
    return np.clip(found.x, -1, 1)
