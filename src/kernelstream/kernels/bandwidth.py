"""Bandwidths from data: the rules ``"scale"`` and ``"median"``."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse
from scipy.spatial.distance import pdist

from kernelstream.rows import Rows, dense

#: Rows that the median distance looks at.
MEDIAN_ROWS = 200
#: Lengths that a kernel can have in the precision of the rows: with shorter or longer ones, ``gamma`` or the random
#: frequencies would leave the range of floats. Rows much closer than the least count as one.
LENGTHS = {"float64": (1e-150, 1e150), "float32": (1e-18, 1e18)}


def _degenerate(X: Rows) -> bool:
    """True for fewer than two distinct rows, which say nothing about distances."""
    if X.shape[0] < 2 or X.shape[1] == 0:
        return True
    if sparse.issparse(X):
        low, high = X.min(axis=0).toarray(), X.max(axis=0).toarray()
        return bool((low == high).all())
    return bool((X[0] == X).all())


def _require_finite(X: Rows) -> None:
    if not np.isfinite(X.data if sparse.issparse(X) else X).all():
        raise ValueError("the bandwidth cannot be estimated: the rows contain NaN or infinity")


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
    """Median distance of the first rows of ``X`` in units of 2^e, and e; over distinct pairs when most coincide."""
    rows = dense(X[:MEDIAN_ROWS]).astype(np.float64)
    e = _exponent(float(np.ptp(rows, axis=0).max()))
    if _exponent(float(np.abs(rows).max())) > e + 900:  # a column of one large number would overflow in these units
        rows -= rows.min(axis=0)
    distances = pdist(np.ldexp(rows, -e), metric)
    distances = distances if np.median(distances) else distances[distances > 0]
    return float(np.median(distances)), e


def _inverse(rule: str, X: Rows, metric: str, power: int, factor: int) -> float | None:
    """``1/(factor std^power)`` ("scale") or ``1/(factor m^power)``, m the median distance; None if all rows are the
    same.
    """
    _require_finite(X)
    if _degenerate(X if rule == "scale" else X[:MEDIAN_ROWS]):
        return None
    if rule == "scale":
        value, e = variance(X)
        value = value if power == 2 else value**0.5
    else:
        value, e = median_distance(X, metric)
        value = value**power
    shortest, longest = LENGTHS[X.dtype.name]
    with np.errstate(over="ignore"):
        gamma = float(np.ldexp(1 / (factor * value), -power * e))
    return min(max(gamma, 1 / (factor * longest**power)), 1 / (factor * shortest**power))


def gaussian_gamma(rule: str, X: Rows) -> float:
    """``gamma`` of ``exp(-gamma ||x - z||^2)``: 1/(d var) ("scale") or 1/(2 m^2) with m the median distance.

    Rows that are all the same give 1/d.
    """
    d = X.shape[1]
    found = _inverse(rule, X, "euclidean", 2, d if rule == "scale" else 2)
    return 1 / max(d, 1) if found is None else found


def laplacian_gamma(rule: str, X: Rows) -> float:
    """``gamma`` of ``exp(-gamma ||x - z||_1)``: 1/(d std) ("scale") or 1/m with m the median L1 distance.

    Rows that are all the same give 1/d.
    """
    d = X.shape[1]
    found = _inverse(rule, X, "cityblock", 1, d if rule == "scale" else 1)
    return 1 / max(d, 1) if found is None else found
