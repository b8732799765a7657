"""Semigroup kernels: functions of x + z for rows of non-negative numbers, with random Laplace features."""

from __future__ import annotations

import math

import numpy as np

from kernelstream.kernels._base import Draw, project, register
from kernelstream.kernels._coordinates import DrawnFrequencies
from kernelstream.kernels._rows import _exp_neg
from kernelstream.rows import Rows

__all__ = ["ExponentialSemigroup", "ReciprocalSemigroup"]


class _Semigroup(DrawnFrequencies):
    """``k(x, z) = E exp(-w'(x + z))`` over random w >= 0, so that exp(-w'x) is an unbiased feature."""

    domain = "nonnegative"
    _per_draw = 1

    def _features(self, X: Rows, draw: Draw) -> np.ndarray:
        Z = _exp_neg(project(X, draw["W"]), 1.0)
        Z /= Z.dtype.type(math.sqrt(Z.shape[-1]))
        return Z


@register
class ExponentialSemigroup(_Semigroup):
    """Exponential semigroup kernel, ``k(x, z) = exp(-beta sum_i sqrt(x_i + z_i))`` for x, z >= 0.

    Random features exp(-w'x) with independent w_i from the Lévy distribution of scale beta^2/2.
    Yang, Sindhwani, Fan, Avron and Mahoney, Random Laplace Feature Maps for Semigroup Kernels on Histograms, CVPR 2014.

    Parameters
    ----------
    beta : float
        Greater than 0.

    Examples
    --------
    >>> from kernelstream.kernels import ExponentialSemigroup
    >>> round(float(ExponentialSemigroup(beta=0.5).pairwise([[1.0]], [[3.0]])[0, 0]), 4)
    0.3679
    """

    name = "exponential_semigroup"
    _positive = ("beta",)

    def __init__(self, beta: float = 1.0):
        self.beta = beta

    def _term(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        s = x + z
        return np.sqrt(s, out=s)

    def of_totals(self, S: np.ndarray) -> np.ndarray:
        return _exp_neg(S, self.beta)

    def _frequencies(self, rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        # Lévy of scale s is s / N(0, 1)^2. The cap keeps float32 features finite where x = 0.
        with np.errstate(divide="ignore"):
            return np.minimum(self.beta**2 / 2 / rng.standard_normal((d, D)) ** 2, 1e30)


@register
class ReciprocalSemigroup(_Semigroup):
    """Reciprocal semigroup kernel, ``k(x, z) = prod_i lam / (x_i + z_i + lam)`` for x, z >= 0.

    Random features exp(-w'x) with independent w_i from the exponential distribution of rate lam.
    Yang, Sindhwani, Fan, Avron and Mahoney, Random Laplace Feature Maps for Semigroup Kernels on Histograms, CVPR 2014.

    Parameters
    ----------
    lam : float
        Greater than 0.

    Examples
    --------
    >>> from kernelstream.kernels import ReciprocalSemigroup
    >>> float(ReciprocalSemigroup(lam=1.0).pairwise([[1.0]], [[2.0]])[0, 0])
    0.25
    """

    name = "reciprocal_semigroup"
    combine = np.multiply
    _positive = ("lam",)

    def __init__(self, lam: float = 1.0):
        self.lam = lam

    def _term(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        t = x + z
        t /= t.dtype.type(self.lam)
        t += 1
        return np.reciprocal(t, out=t)

    def _frequencies(self, rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        return rng.exponential(1 / self.lam, size=(d, D))
