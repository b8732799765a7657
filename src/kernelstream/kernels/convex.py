"""Product kernels with a convex profile: the kernels that random binning can represent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelstream.kernels._coordinates import CoordinateKernel
from kernelstream.kernels.bandwidth import laplacian_gamma
from kernelstream.rows import Rows

__all__ = ["Convex"]

_GRID = 20001  # points of the tabulated distribution


class Convex(CoordinateKernel):
    r"""Product kernel of a convex profile, ``k(x, z) = prod_i profile(gamma |x_i - z_i|)``.

    A profile that falls from 1 to 0 and is convex is a mixture of hat functions ``max(0, 1 - t/delta)``: two numbers at
    distance t fall in one cell of a grid of pitch delta with that probability. The mixture has density
    ``delta profile''(delta)``, so its distribution function is ``1 - profile(delta) + delta profile'(delta)``;
    `pitches` inverts it numerically. Rahimi and Recht, Random Features for Large-Scale Kernel Machines, NIPS 2007.

    Parameters
    ----------
    profile : callable
        From an array of numbers t >= 0 to an array of values; 1 at 0, convex, decreasing to 0.
    gamma : float, "scale" or "median"
        The rules are those of the Laplacian kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.kernels import Convex
    >>> kernel = Convex(lambda t: 1 / (1 + t), gamma=2.0)
    >>> round(float(kernel.pairwise([[0.0, 0.0]], [[1.0, 0.5]])[0, 0]), 4)
    0.1667
    >>> pitches = kernel.pitches(np.random.default_rng(0), d=1, R=100_000)
    >>> print(f"{np.maximum(0, 1 - 1.0 / pitches).mean():.2f}, exactly {1 / 3:.2f}")
    0.33, exactly 0.33
    """

    name = "convex"
    bandwidth = "gamma"
    combine = np.multiply

    def __init__(self, profile: Callable[[np.ndarray], np.ndarray], gamma: float | str = "scale"):
        self.profile = profile
        self.gamma: Any = gamma

    def _term(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        t = np.abs(x - z)
        return np.asarray(self.profile(t * t.dtype.type(self.gamma)), t.dtype)

    def _estimate(self, rule: str, X: Rows) -> float:
        return laplacian_gamma(rule, X)

    def pitches(self, rng: np.random.Generator, d: int, R: int) -> np.ndarray:
        """Pitches of ``R`` random binning grids, (d, R), by the inverse of their distribution function."""
        self.validate()
        log_t, cdf = self._distribution()
        return np.exp(np.interp(rng.random((R, d)).T, cdf, log_t)) / self.gamma

    def _distribution(self) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms of t and the distribution function of the pitch there, cut to where it rises."""
        log_t = np.linspace(np.log(1e-8), np.log(1e8), _GRID)
        k = np.asarray(self.profile(np.exp(log_t)), np.float64)
        start = float(np.asarray(self.profile(np.zeros(1)))[0])
        cdf = start - k + np.gradient(k, log_t)  # t k'(t) is the derivative in log t
        if not np.isfinite(cdf).all() or abs(start - 1) > 1e-9 or (np.diff(cdf) < -1e-5).any() or cdf[-1] < 0.99:
            raise ValueError("the profile of a Convex kernel must be 1 at 0, convex, and decrease to 0")
        cdf = np.maximum.accumulate(cdf)
        rises = np.diff(cdf) > 0
        ends = np.append(rises, False) | np.append(False, rises)
        return log_t[ends], cdf[ends]
