"""Shift-invariant kernels: functions of x - z, with random Fourier features."""

from __future__ import annotations

import math

import numpy as np

from kernelstream.kernels._base import FourierKernel, register
from kernelstream.kernels._rows import Rows, squared_distances
from kernelstream.kernels.bandwidth import gaussian_gamma

__all__ = ["Gaussian"]

# Largest error of a float32 Gaussian that the cheap distances may cause; above it they are made in float64.
_FLOAT32_ERROR = 1e-5


def _exp_neg(D2: np.ndarray, gamma: float) -> np.ndarray:
    """``exp(-gamma D2)`` in place: the hot loop of every Gaussian Gram block."""
    D2 *= D2.dtype.type(-gamma)
    return np.exp(D2, out=D2)


@register
class Gaussian(FourierKernel):
    r"""Gaussian kernel, ``k(x, z) = exp(-gamma ||x - z||^2)``; its spectrum is N(0, 2 gamma I).

    Rahimi and Recht, Random Features for Large-Scale Kernel Machines, NIPS 2007.

    Parameters
    ----------
    gamma : float, "scale" or "median"
        1/(2 sigma^2). "scale" is 1/(d var), the variance over all entries; "median" is 1/(2 m^2) with m the
        median distance of (at most 200) rows. Both are estimated by `resolve`.

    Examples
    --------
    >>> from kernelstream.kernels import Gaussian
    >>> float(Gaussian(gamma=0.5).pairwise([[0.0, 0.0]], [[1.0, 1.0]])[0, 0])
    0.36787944117144233
    """

    name = "gaussian"
    bandwidth = "gamma"
    isotropic = True
    _positive = ("gamma",)

    def __init__(self, gamma: float | str = "scale"):
        self.gamma = gamma

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        return _exp_neg(squared_distances(X, Z, precision=_FLOAT32_ERROR / self.gamma), self.gamma)

    def _estimate(self, rule: str, X: Rows) -> float:
        return gaussian_gamma(rule, X)

    def frequencies(self, rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        return rng.standard_normal((d, D)) * math.sqrt(2 * self.gamma)
