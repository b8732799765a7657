"""Bandwidths from data: the rules ``"scale"`` and ``"median"``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from kernelstream.rows import Rows, dense

#: Rows that the median distance uses.
MEDIAN_ROWS = 200
#: Lengths that a kernel can have in the precision of the rows: with shorter or longer ones, ``gamma`` or the random
#: frequencies would leave the range of floats. Rows much closer than the least count as one.
LENGTHS = {"float64": (1e-150, 1e150), "float32": (1e-18, 1e18)}
#: Rows on which a kernel without a rule of its own is compared with the Gaussian.
COMPARED_ROWS = 64


def median_rows(n: int) -> np.ndarray:
    """Which of n rows the median distance uses: from all over, since the first may be of one class or day."""
    m = min(n, MEDIAN_ROWS)
    return np.arange(m) * n // max(m, 1)


def _spread(X: Rows) -> Rows:
    return X if X.shape[0] <= MEDIAN_ROWS else X[median_rows(X.shape[0])]


def _degenerate(X: Rows) -> bool:
    """True for fewer than two distinct rows, which say nothing about distances."""
    if X.shape[0] < 2 or X.shape[1] == 0:
        return True
    if sparse.issparse(X):
        low, high = X.min(axis=0).toarray(), X.max(axis=0).toarray()
        return bool((low == high).all())
    return bool((X[0] == X).all())


def _exponent(size: float) -> int:
    """e with ``size = m 2^e``, 1/2 <= m < 1: in units of 2^e no square of such numbers overflows or vanishes."""
    return math.frexp(size)[1]


def variance(X: Rows) -> tuple[float, int]:
    """Variance over all entries of ``X`` (zeros of sparse rows included) in units of 2^e, and e."""
    values = X.data if sparse.issparse(X) else X
    e = _exponent(float(np.abs(values).max(initial=0.0)))
    values = np.ldexp(values.astype(np.float64), -e)
    if not sparse.issparse(X):
        return float(values.var()), e
    size = X.shape[0] * X.shape[1]
    mean = values.sum() / size
    # The zeros that are not stored differ from the mean by the mean.
    return float((np.square(values - mean).sum() + (size - values.size) * mean**2) / size), e


def median_distance(X: Rows, metric: str = "euclidean") -> tuple[float, int]:
    """Median distance of (at most 200) rows of ``X`` in units of 2^e, and e; over distinct pairs when most coincide."""
    from scipy.spatial.distance import pdist  # slow to import

    rows = dense(_spread(X)).astype(np.float64)
    e = _exponent(float(np.ptp(rows, axis=0).max()))
    if _exponent(float(np.abs(rows).max())) > e + 900:  # a column of one large number would overflow in these units
        rows -= rows.min(axis=0)
    distances = pdist(np.ldexp(rows, -e), metric)
    distances = distances if np.median(distances) else distances[distances > 0]
    return float(np.median(distances)), e


def _gamma(rule: str, X: Rows, metric: str, power: int) -> float:
    """``1/(d std^power)`` ("scale") or ``1/(power m^power)``, m the median distance; 1/d if all rows are the same."""
    if not np.isfinite(X.data if sparse.issparse(X) else X).all():
        raise ValueError("the bandwidth cannot be estimated: the rows contain NaN or infinity")
    d = X.shape[1]
    if _degenerate(X if rule == "scale" else _spread(X)):
        return 1 / max(d, 1)
    if rule == "scale":
        value, e = variance(X)
        value, factor = value if power == 2 else value**0.5, d
    else:
        value, e = median_distance(X, metric)
        value, factor = value**power, power
    shortest, longest = LENGTHS[X.dtype.name]
    with np.errstate(over="ignore"):
        gamma = float(np.ldexp(1 / (factor * value), -power * e))
    return min(max(gamma, 1 / (factor * longest**power)), 1 / (factor * shortest**power))


def gaussian_gamma(rule: str, X: Rows) -> float:
    """``gamma`` of ``exp(-gamma ||x - z||^2)``: 1/(d var) ("scale") or 1/(2 m^2) with m the median distance.

    Rows that are all the same give 1/d.
    """
    return _gamma(rule, X, "euclidean", 2)


def laplacian_gamma(rule: str, X: Rows) -> float:
    """``gamma`` of ``exp(-gamma ||x - z||_1)``: 1/(d std) ("scale") or 1/m with m the median L1 distance.

    Rows that are all the same give 1/d.
    """
    return _gamma(rule, X, "cityblock", 1)


def as_wide_as_gaussian(kernel: Callable[[float], Any], rule: str, X: Rows) -> float:
    """The bandwidth at which the median kernel value of (at most 64) rows is that of the Gaussian under the same rule.

    The kernel must rise or fall with its bandwidth; it is compared after division by ``sqrt(k(x, x) k(z, z))``. Rows
    that are all the same give 1.

    Parameters
    ----------
    kernel : callable
        From a bandwidth to the kernel.
    rule : {"scale", "median"}
    X : (n, d)
    """
    from scipy.optimize import brentq  # slow to import, and wanted only here
    from scipy.spatial.distance import pdist

    rows = X[:COMPARED_ROWS]
    gamma = gaussian_gamma(rule, X)
    if _degenerate(rows):
        return 1.0
    D2 = pdist(dense(rows).astype(np.float64), "sqeuclidean")
    goal = float(np.exp(-gamma * (np.median(D2) or np.median(D2[D2 > 0]))))
    pairs = np.triu_indices(rows.shape[0], 1)
    kept = D2 > 0 if np.median(D2) == 0 else np.ones(len(D2), bool)

    def beyond(log_value: float) -> float:
        """How much the kernel is above the Gaussian."""
        made = kernel(float(np.exp(log_value)))
        with np.errstate(all="ignore"):
            size = np.sqrt(made.diag(rows).astype(np.float64))
            values = (made.pairwise(rows, rows) / np.outer(size, size))[pairs][kept]
        return float(np.nan_to_num(np.median(values))) - goal

    start, step = beyond(0.0), 1.0
    while start != 0.0 and step < 1024:
        for end in (-step, step):
            if np.sign(beyond(end)) != np.sign(start):
                return float(np.exp(brentq(beyond, min(0.0, end), max(0.0, end), xtol=1e-9)))
        step *= 2
    if start == 0.0:
        return 1.0
    raise ValueError(
        f"{type(kernel(1.0)).__name__} has no rule {rule!r} for its bandwidth, and no bandwidth makes it as wide "
        f"as the Gaussian: give a number, or define _estimate(rule, X)"
    )
