"""Additive kernels for rows of non-negative numbers, such as histograms.

Chi2, Intersection and JensenShannon are homogeneous: each coordinate contributes ``sqrt(x z) h(log(x/z))``, and the
Fourier transform of h is a probability density, so ``sqrt(x) (cos, sin)(w log x)`` with w from it is an unbiased map.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse, special

from kernelstream.kernels._base import Draw, Kernel, project, register
from kernelstream.kernels._coordinates import CoordinateKernel
from kernelstream.kernels._rows import inner
from kernelstream.kernels.dot import _signs
from kernelstream.rows import Rows

__all__ = ["Chi2", "Hellinger", "Intersection", "JensenShannon"]


def sech_frequencies(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers with density sech(pi w): the inverse distribution function is log(tan(pi u / 2)) / pi."""
    return np.log(np.tan(np.pi / 2 * (1 - rng.random(shape)))) / np.pi


def _sqrt(X: Rows) -> Rows:
    return X.sqrt() if sparse.issparse(X) else np.sqrt(X)


@register
class Hellinger(Kernel):
    """Hellinger (Bhattacharyya) kernel, ``k(x, z) = sum_i sqrt(x_i z_i)`` for x, z >= 0.

    The finite map sqrt(x) is exact; random features are w'sqrt(x) with Rademacher w.
    Vedaldi and Zisserman, Efficient Additive Kernels via Explicit Feature Maps, PAMI 2012.

    Examples
    --------
    >>> from kernelstream.kernels import Hellinger
    >>> float(Hellinger().pairwise([[1.0, 4.0]], [[9.0, 1.0]])[0, 0])
    5.0
    """

    name = "hellinger"
    takes_csr = True
    domain = "nonnegative"
    _per_draw = 1

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        return inner(_sqrt(X), _sqrt(Z))

    def _diag(self, X: Rows) -> np.ndarray:
        return np.asarray(X.sum(axis=1)).ravel()

    def draw(self, rng: np.random.Generator, d: int, D: int) -> Draw:
        return {"signs": _signs(rng, d, D)}

    def _features(self, X: Rows, draw: Draw) -> np.ndarray:
        return project(_sqrt(X), draw["signs"]) / X.dtype.type(math.sqrt(draw["signs"].shape[-1]))


class _Homogeneous(CoordinateKernel):
    """Additive homogeneous kernel. A draw is one number w, used for every coordinate, and gives 2 d features."""

    domain = "nonnegative"

    def _diag(self, X: Rows) -> np.ndarray:
        return np.asarray(X.sum(axis=1)).ravel()  # h(0) = 1

    def _frequencies(self, rng: np.random.Generator, D: int) -> np.ndarray:
        raise NotImplementedError

    def draw(self, rng: np.random.Generator, d: int, D: int) -> Draw:
        return {"w": self._frequencies(rng, D)}

    def per_draw(self, d: int) -> int:
        return 2 * d

    def _features(self, X: Rows, draw: Draw) -> np.ndarray:
        n, d = X.shape
        w = draw["w"].astype(X.dtype)
        Z = np.zeros((n, 2, d, len(w)), X.dtype)
        # Only positive entries have a logarithm; the others have features 0, like their kernel.
        rows, columns, x = sparse.find(X)
        phase = np.log(x)[:, None] * w
        size = np.sqrt(x / X.dtype.type(len(w)))[:, None]
        Z[rows, 0, columns] = size * np.cos(phase)
        Z[rows, 1, columns] = size * np.sin(phase)
        return Z


@register
class Chi2(_Homogeneous):
    """Additive chi-squared kernel, ``k(x, z) = sum_i 2 x_i z_i / (x_i + z_i)`` for x, z >= 0 (0/0 counts as 0).

    Random features: for each draw w, of density sech(pi w), and each coordinate, sqrt(x_j) (cos, sin)(w log x_j): 2 d D
    columns for D draws.
    Vedaldi and Zisserman, Efficient Additive Kernels via Explicit Feature Maps, PAMI 2012.

    Examples
    --------
    >>> from kernelstream.kernels import Chi2
    >>> float(Chi2().pairwise([[1.0, 0.0]], [[3.0, 2.0]])[0, 0])
    1.5
    """

    name = "chi2"

    def _term(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        t = x + (z + np.finfo(x.dtype).tiny)  # never 0, and unchanged unless it would be
        np.divide(z, t, out=t)
        t *= 2 * x
        return t

    def _frequencies(self, rng: np.random.Generator, D: int) -> np.ndarray:
        return sech_frequencies(rng, D)


@register
class Intersection(_Homogeneous):
    """Histogram intersection kernel, ``k(x, z) = sum_i min(x_i, z_i)`` for x, z >= 0.

    Random features: for each draw w ~ Cauchy(0, 1/2) and each coordinate, sqrt(x_j) (cos, sin)(w log x_j): 2 d D
    columns for D draws.
    Vedaldi and Zisserman, Efficient Additive Kernels via Explicit Feature Maps, PAMI 2012.

    Examples
    --------
    >>> from kernelstream.kernels import Intersection
    >>> float(Intersection().pairwise([[1.0, 4.0]], [[3.0, 2.0]])[0, 0])
    3.0
    """

    name = "intersection"

    def _term(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.minimum(x, z)

    def _frequencies(self, rng: np.random.Generator, D: int) -> np.ndarray:
        return rng.standard_cauchy(D) / 2


@register
class JensenShannon(_Homogeneous):
    """Jensen-Shannon kernel, ``k(x, z) = sum_i x_i/2 log2((x_i+z_i)/x_i) + z_i/2 log2((x_i+z_i)/z_i)`` for x, z >= 0.

    A coordinate where one of the two is 0 contributes 0. Random features: for each draw w, of density
    2 sech(pi w) / (log 4 (1 + 4 w^2)), and each coordinate, sqrt(x_j) (cos, sin)(w log x_j): 2 d D columns for D draws.
    Vedaldi and Zisserman, Efficient Additive Kernels via Explicit Feature Maps, PAMI 2012.

    Examples
    --------
    >>> from kernelstream.kernels import JensenShannon
    >>> round(float(JensenShannon().pairwise([[1.0, 4.0]], [[3.0, 0.0]])[0, 0]), 4)
    1.6226
    """

    name = "jensen_shannon"

    def _term(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        # One logarithm a pair, of the sum; float64 because the three parts cancel when x and z differ much.
        x, z = x.astype(np.float64, copy=False), z.astype(np.float64, copy=False)
        s = x + z
        t = np.log(s + np.finfo(np.float64).tiny)
        t *= s
        t -= special.xlogy(x, x)
        t -= special.xlogy(z, z)
        t /= 2 * math.log(2)
        return t

    def _frequencies(self, rng: np.random.Generator, D: int) -> np.ndarray:
        # The density is that of Chi2 times a constant / (1 + 4 w^2): propose from the one, accept with the other.
        kept = [np.empty(0)]
        while (found := sum(map(len, kept))) < D:
            w = sech_frequencies(rng, 2 * (D - found))
            kept.append(w[rng.random(len(w)) * (1 + 4 * w**2) < 1])
        return np.concatenate(kept)[:D]
