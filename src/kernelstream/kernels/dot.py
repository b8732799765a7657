"""Kernels of the inner product x'z (and of the norms of x and z)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernelstream.checks import is_whole, number, positive
from kernelstream.core.threads import cuts
from kernelstream.kernels._base import Draw, Kernel, project, register
from kernelstream.kernels._rows import MEMORY_ELEMENTS, inner, squared_norms
from kernelstream.kernels.bandwidth import gaussian_gamma
from kernelstream.rows import Rows

__all__ = ["ArcCosine", "DotProduct", "Linear", "Polynomial"]

HIGHEST = 100  # degree of a polynomial: what is not 1 has left the range of floating-point numbers long before


def _signs(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Rademacher numbers, +1 or -1 with equal probability."""
    return (2 * rng.integers(0, 2, size=shape, dtype=np.int8) - 1).astype(np.int8)


@register
class Linear(Kernel):
    """Linear kernel, ``k(x, z) = x'z``; random features w'x with Rademacher w.

    Kar and Karnick, Random Feature Maps for Dot Product Kernels, AISTATS 2012.

    Examples
    --------
    >>> from kernelstream.kernels import Linear
    >>> float(Linear().pairwise([[1.0, 2.0]], [[3.0, 4.0]])[0, 0])
    11.0
    """

    name = "linear"
    takes_csr = True
    _per_draw = 1

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        return inner(X, Z)

    def _diag(self, X: Rows) -> np.ndarray:
        return squared_norms(X)

    def draw(self, rng: np.random.Generator, d: int, D: int) -> Draw:
        return {"signs": _signs(rng, d, D)}

    def _features(self, X: Rows, draw: Draw) -> np.ndarray:
        return project(X, draw["signs"]) / X.dtype.type(math.sqrt(draw["signs"].shape[-1]))


@register
class DotProduct(Kernel):
    """Dot-product kernel, ``k(x, z) = sum_n a_n (x'z)^n`` with finitely many a_n >= 0.

    Random Maclaurin features: a draw picks N with P[N = n] = 2^-(n+1) and gives sqrt(a_N 2^(N+1)) times the product of
    N Rademacher projections of x (0 when N is beyond the last coefficient).
    Kar and Karnick, Random Feature Maps for Dot Product Kernels, AISTATS 2012.

    Parameters
    ----------
    coefficients : sequence of float
        a_0, a_1, ...

    Examples
    --------
    >>> from kernelstream.kernels import DotProduct
    >>> float(DotProduct([1.0, 0.0, 0.5]).pairwise([[1.0, 2.0]], [[3.0, 4.0]])[0, 0])
    61.5
    """

    name = "dot_product"
    takes_csr = True
    _per_draw = 1

    def __init__(self, coefficients: Any = (1.0, 1.0, 0.5)):
        self.coefficients = coefficients

    def validate(self, resolved: bool = True) -> None:
        self._series()

    def _series(self) -> list[float]:
        try:
            series = [number("coefficients", a) for a in self.coefficients]
        except TypeError:
            raise ValueError(f"coefficients must be a sequence of numbers, got {self.coefficients!r}") from None
        if not series or min(series) < 0:
            raise ValueError(f"coefficients must be one or more numbers >= 0, got {self.coefficients!r}")
        return series

    def _polynomial(self, t: np.ndarray) -> np.ndarray:
        """Horner's rule."""
        *lower, last = self._series()
        out = np.full_like(t, last)
        for a in reversed(lower):
            out *= t
            out += t.dtype.type(a)
        return out

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        return self._polynomial(inner(X, Z))

    def _diag(self, X: Rows) -> np.ndarray:
        return self._polynomial(squared_norms(X))

    def draw(self, rng: np.random.Generator, d: int, D: int) -> Draw:
        degrees = rng.geometric(0.5, size=D) - 1
        return {"degrees": degrees, "signs": _signs(rng, len(self._series()) - 1, d, D)}

    def _features(self, X: Rows, draw: Draw) -> np.ndarray:
        degrees, signs, series = draw["degrees"], draw["signs"], self._series()
        weight = np.zeros(degrees.shape)
        for n, a in enumerate(series):
            weight[degrees == n] = math.sqrt(a * 2.0 ** (n + 1) / len(degrees))
        Z = np.repeat(weight.astype(X.dtype)[None, :], X.shape[0], axis=0)
        for n in range(1, len(series)):
            longer = (degrees >= n) & (degrees < len(series))
            Z[:, longer] *= project(X, signs[n - 1][:, longer])
        return Z


@register
class Polynomial(Kernel):
    """Polynomial kernel, ``k(x, z) = (gamma x'z + c)^degree``.

    Random features: the product of `degree` Rademacher projections of (sqrt(gamma) x, sqrt(c)).
    Kar and Karnick, Random Feature Maps for Dot Product Kernels, AISTATS 2012.

    Parameters
    ----------
    degree : int
        From 1 to 100.
    c : float
        At least 0.
    gamma : float or "scale"
        "scale" is 1/(d var), the variance over all entries, estimated by `resolve`.

    Examples
    --------
    >>> from kernelstream.kernels import Polynomial
    >>> float(Polynomial(degree=2, c=1.0, gamma=1.0).pairwise([[1.0, 2.0]], [[3.0, 4.0]])[0, 0])
    144.0
    """

    name = "polynomial"
    takes_csr = True
    _per_draw = 1
    bandwidth = "gamma"
    rules = ("scale",)

    def __init__(self, degree: int = 3, c: float = 1.0, gamma: float | str = "scale"):
        self.degree = degree
        self.c = c
        self.gamma: Any = gamma

    def validate(self, resolved: bool = True) -> None:
        if not is_whole(self.degree) or not 1 <= self.degree <= HIGHEST:
            raise ValueError(f"degree must be an integer from 1 to {HIGHEST}, got {self.degree!r}")
        positive("c", self.c, zero=True)
        super().validate(resolved)

    def _estimate(self, rule: str, X: Rows) -> float:
        return gaussian_gamma(rule, X)

    def _power(self, t: np.ndarray) -> np.ndarray:
        t *= t.dtype.type(self.gamma)
        t += t.dtype.type(self.c)
        # numpy's power is slow for small integers other than 2.
        out = t.copy()
        for _ in range(self.degree - 1):
            out *= t
        return out

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        return self._power(inner(X, Z))

    def _diag(self, X: Rows) -> np.ndarray:
        return self._power(squared_norms(X))

    def draw(self, rng: np.random.Generator, d: int, D: int) -> Draw:
        self.validate()
        return {"signs": _signs(rng, self.degree, d + 1, D)}

    def _features(self, X: Rows, draw: Draw) -> np.ndarray:
        signs, dtype = draw["signs"], X.dtype.type
        Z = np.full((X.shape[0], signs.shape[-1]), 1 / math.sqrt(signs.shape[-1]), X.dtype)
        for factor in signs:
            projection = project(X, factor[:-1])
            projection *= dtype(math.sqrt(self.gamma))
            projection += factor[-1] * dtype(math.sqrt(self.c))
            Z *= projection
        return Z


@register
class ArcCosine(Kernel):
    r"""Arc-cosine kernel of order n, ``k(x, z) = ||x||^n ||z||^n J_n(a) / pi`` with a the angle between x and z.

    J_0 = pi - a, J_1 = sin a + (pi - a) cos a, J_2 = 3 sin a cos a + (pi - a)(1 + 2 cos^2 a): infinitely wide layers of
    steps, ramps and squared ramps. Random features sqrt(2) 1[w'x > 0] (w'x)^n with w ~ N(0, I).
    Cho and Saul, Kernel Methods for Deep Learning, NIPS 2009.

    Parameters
    ----------
    order : {0, 1, 2}

    Notes
    -----
    A row of zeros has no angle; k is 0 there, as its random features are.

    Examples
    --------
    >>> from kernelstream.kernels import ArcCosine
    >>> float(ArcCosine(order=0).pairwise([[1.0, 0.0]], [[0.0, 3.0]])[0, 0])
    0.5
    """

    name = "arc_cosine"
    takes_csr = True
    _per_draw = 1

    def __init__(self, order: int = 1):
        self.order = order

    def validate(self, resolved: bool = True) -> None:
        if isinstance(self.order, bool) or self.order not in (0, 1, 2):
            raise ValueError(f"order must be 0, 1 or 2, got {self.order!r}")

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        K = np.empty((X.shape[0], Z.shape[0]), X.dtype)
        Z = Z.astype(np.float64)
        zz = np.sqrt(squared_norms(Z))
        # float64 throughout: near a = 0 the angle has the square root of the rounding error of the cosine.
        for rows in cuts(X.shape[0], MEMORY_ELEMENTS // 4 // max(1, Z.shape[0])):
            block = X[rows].astype(np.float64)
            norms = np.sqrt(squared_norms(block))[:, None] * zz
            cosine = inner(block, Z)
            np.divide(cosine, norms, out=cosine, where=norms > 0)
            np.clip(cosine, -1, 1, out=cosine)
            K[rows] = self._angular(cosine) * (norms**self.order if self.order else norms > 0)
        return K

    def _angular(self, cosine: np.ndarray) -> np.ndarray:
        """``J_n / pi``."""
        opening = np.pi - np.arccos(cosine)
        if self.order == 0:
            return opening / np.pi
        sine = np.sqrt(1 - cosine**2)
        if self.order == 1:
            return (sine + opening * cosine) / np.pi
        return (3 * sine * cosine + opening * (1 + 2 * cosine**2)) / np.pi

    def _diag(self, X: Rows) -> np.ndarray:
        squared = squared_norms(X)
        return (squared > 0).astype(X.dtype) if self.order == 0 else squared**self.order * (1, 1, 3)[self.order]

    def draw(self, rng: np.random.Generator, d: int, D: int) -> Draw:
        self.validate()
        return {"W": rng.standard_normal((d, D))}

    def _features(self, X: Rows, draw: Draw) -> np.ndarray:
        P = project(X, draw["W"])
        Z = (P > 0).astype(P.dtype) if self.order == 0 else np.maximum(P, 0) ** self.order
        return Z * P.dtype.type(math.sqrt(2 / P.shape[-1]))
