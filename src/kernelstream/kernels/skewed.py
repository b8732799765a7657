"""Skewed kernels: shift invariant in log(x + c), for x > -c."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from kernelstream.kernels._base import Draw, cos_sin, project, register
from kernelstream.kernels._coordinates import DrawnFrequencies
from kernelstream.kernels._rows import _exp_neg
from kernelstream.kernels.additive import sech_frequencies
from kernelstream.rows import Rows

__all__ = ["SkewedChi2", "SkewedIntersection"]


class _Skewed(DrawnFrequencies):
    """Product over coordinates of a function of log((x_i + c)/(z_i + c)), with Fourier features of log(x + c)."""

    domain = "above_minus_c"
    _positive = ("c",)
    _per_draw = 2

    def __init__(self, c: float = 1.0):
        self.c = c

    def _logarithm(self, X: Rows) -> Rows:
        """``log(x + c) - log(c)``: the constant changes no difference, and keeps zeros zero and sparse rows sparse."""
        X = X * X.dtype.type(1 / self.c)
        return X.log1p() if sparse.issparse(X) else np.log1p(X, out=X)

    def _diag(self, X: Rows) -> np.ndarray:
        return np.ones(X.shape[0], X.dtype)

    def _features(self, X: Rows, draw: Draw) -> np.ndarray:
        return cos_sin(project(self._logarithm(X), draw["W"]))


@register
class SkewedChi2(_Skewed):
    """Skewed chi-squared kernel, ``k(x, z) = prod_i 2 sqrt(x_i+c) sqrt(z_i+c) / (x_i+z_i+2c)`` for x, z > -c.

    Random features (cos, sin)(w'log(x + c)) with independent w_i of density sech(pi w_i).
    Li, Ionescu and Sminchisescu, Random Fourier Approximations for Skewed Multiplicative Histogram Kernels, DAGM 2010.

    Parameters
    ----------
    c : float
        Greater than 0.

    Examples
    --------
    >>> from kernelstream.kernels import SkewedChi2
    >>> float(SkewedChi2(c=1.0).pairwise([[0.0]], [[3.0]])[0, 0])
    0.8
    """

    name = "skewed_chi2"
    combine = np.multiply

    def _term(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        x, z = x + x.dtype.type(self.c), z + z.dtype.type(self.c)
        t = (2 * np.sqrt(x)) * np.sqrt(z)
        t /= x + z
        return t

    def _frequencies(self, rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        return sech_frequencies(rng, d, D)


@register
class SkewedIntersection(_Skewed):
    """Skewed intersection kernel, ``k(x, z) = prod_i min(sqrt((x_i+c)/(z_i+c)), sqrt((z_i+c)/(x_i+c)))`` for x, z > -c.

    The Laplacian kernel with gamma = 1/2 of log(x + c); random features (cos, sin)(w'log(x + c)) with independent
    w_i ~ Cauchy(0, 1/2).
    Li, Ionescu and Sminchisescu, Random Fourier Approximations for Skewed Multiplicative Histogram Kernels, DAGM 2010.

    Parameters
    ----------
    c : float
        Greater than 0.

    Examples
    --------
    >>> from kernelstream.kernels import SkewedIntersection
    >>> float(SkewedIntersection(c=1.0).pairwise([[0.0]], [[3.0]])[0, 0])
    0.5
    """

    name = "skewed_intersection"

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        # Logarithms of rows, not of pairs.
        return super()._gram(self._logarithm(X), self._logarithm(Z))

    def _term(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        difference = x - z
        return np.abs(difference, out=difference)

    def of_totals(self, S: np.ndarray) -> np.ndarray:
        return _exp_neg(S, 0.5)

    def _frequencies(self, rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        return rng.standard_cauchy((d, D)) / 2
