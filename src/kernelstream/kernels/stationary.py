"""Shift-invariant kernels: functions of x - z, with random Fourier features."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse, special

from kernelstream.checks import positive
from kernelstream.kernels._base import FourierKernel, StretchedKernel, register
from kernelstream.kernels._coordinates import CoordinateKernel
from kernelstream.kernels._rows import (
    _exp_neg,
    exact_squared_distances,
    gaussian_distances,
    squared_distances,
)
from kernelstream.kernels.bandwidth import gaussian_gamma, laplacian_gamma
from kernelstream.rows import Rows

try:
    from kernelstream.core import arrays_native as arrays
except ImportError:  # installed without the compiled core
    arrays = None  # type: ignore[assignment, unused-ignore]

__all__ = ["Cauchy", "Gaussian", "Laplacian", "Matern", "SpectralMixture"]

# Largest error of a float32 Gaussian that the cheap distances may cause; above it they are made in float64.
_FLOAT32_ERROR = 1e-5


@register
class Gaussian(StretchedKernel):
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
    >>> round(float(Gaussian(gamma=0.5).pairwise([[0.0, 0.0]], [[1.0, 1.0]])[0, 0]), 4)
    0.3679
    """

    name = "gaussian"
    takes_csr = True
    bandwidth = "gamma"
    isotropic = True
    radial = True

    def __init__(self, gamma: float | str = "scale"):
        self.gamma: Any = gamma

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        return self.of_squares(gaussian_distances(X, Z, self.gamma, precision=_FLOAT32_ERROR / self.gamma))

    def of_squares(self, D2: np.ndarray) -> np.ndarray:
        return _exp_neg(D2, self.gamma)

    def _estimate(self, rule: str, X: Rows) -> float:
        return gaussian_gamma(rule, X)

    @property
    def spread(self) -> float:
        return math.sqrt(2 * self.gamma)

    @staticmethod
    def standard(rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        return rng.standard_normal((d, D))

    def _quantiles(self, U: np.ndarray, d: int) -> np.ndarray:
        return special.ndtri(U) * self.spread


@register
class Laplacian(StretchedKernel, CoordinateKernel):
    r"""Laplacian kernel, ``k(x, z) = exp(-gamma ||x - z||_1)``; its spectrum is Cauchy(0, gamma) in each coordinate.

    Rahimi and Recht, Random Features for Large-Scale Kernel Machines, NIPS 2007.

    Parameters
    ----------
    gamma : float, "scale" or "median"
        "scale" is 1/(d std), the standard deviation over all entries; "median" is 1/m with m the median L1 distance
        of (at most 200) rows. Both are estimated by `resolve`.

    Examples
    --------
    >>> from kernelstream.kernels import Laplacian
    >>> round(float(Laplacian(gamma=0.5).pairwise([[0.0, 0.0]], [[1.0, 1.0]])[0, 0]), 4)
    0.3679
    """

    name = "laplacian"
    common_terms = True
    bandwidth = "gamma"

    def __init__(self, gamma: float | str = "scale"):
        self.gamma: Any = gamma

    def _term(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        difference = x - z
        return np.abs(difference, out=difference)

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        if arrays is None or sparse.issparse(X) or sparse.issparse(Z) or X.dtype != Z.dtype:
            return super()._gram(X, Z)
        return arrays.exponential(X, arrays.tiles(Z), Z.shape[0], 1, self.gamma)

    def totals(self, X: Rows, Z: Rows) -> np.ndarray:
        if sparse.issparse(X) or sparse.issparse(Z):
            return super().totals(X, Z)
        from scipy.spatial.distance import cdist  # slow to import, and rarely needed

        return cdist(X, Z, "cityblock").astype(X.dtype, copy=False)

    def of_totals(self, S: np.ndarray) -> np.ndarray:
        return _exp_neg(S, self.gamma)

    def _estimate(self, rule: str, X: Rows) -> float:
        return laplacian_gamma(rule, X)

    @staticmethod
    def standard(rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        return rng.standard_cauchy((d, D))

    def _quantiles(self, U: np.ndarray, d: int) -> np.ndarray:
        return np.tan(np.pi * (U - 0.5)) * self.spread

    def pitches(self, rng: np.random.Generator, d: int, R: int) -> np.ndarray:
        """Pitches of ``R`` random binning grids, (d, R): Gamma(2, 1/gamma), the sum of two exponential numbers."""
        self.validate()
        return -np.log1p(-rng.random((R, d, 2))).sum(axis=2).T / self.gamma


@register
class Cauchy(StretchedKernel, CoordinateKernel):
    r"""Product Cauchy kernel, ``k(x, z) = prod_i 1 / (1 + gamma^2 (x_i - z_i)^2)``; its spectrum is Laplace(0, gamma).

    Rahimi and Recht, Random Features for Large-Scale Kernel Machines, NIPS 2007.

    Parameters
    ----------
    gamma : float, "scale" or "median"
        The rules match the kernel near its top, exp(-gamma^2 ||x - z||^2), with the Gaussian's: "scale" is
        1/sqrt(d var), "median" is 1/(sqrt(2) m) with m the median distance. Both are estimated by `resolve`.

    Examples
    --------
    >>> from kernelstream.kernels import Cauchy
    >>> float(Cauchy(gamma=1.0).pairwise([[0.0, 0.0]], [[1.0, 1.0]])[0, 0])
    0.25
    """

    name = "cauchy"
    bandwidth = "gamma"
    combine = np.multiply

    def __init__(self, gamma: float | str = "scale"):
        self.gamma: Any = gamma

    def _term(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        t = x - z
        t *= t.dtype.type(self.gamma)
        t *= t
        t += 1
        return np.reciprocal(t, out=t)

    def _estimate(self, rule: str, X: Rows) -> float:
        return math.sqrt(gaussian_gamma(rule, X))

    @staticmethod
    def standard(rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        return rng.laplace(size=(d, D))

    def _quantiles(self, U: np.ndarray, d: int) -> np.ndarray:
        # Each half of the distribution from the side where 1 - 2|U - 1/2| is exact.
        return np.where(U < 0.5, np.log(2 * U), -np.log(2 * (1 - U))) * self.spread


@register
class Matern(FourierKernel):
    r"""Matérn kernel, ``k(x, z) = 2^(1-nu)/Gamma(nu) r^nu K_nu(r)`` with ``r = sqrt(2 nu) ||x - z|| / length``.

    Its spectrum is the multivariate Student t with 2 nu degrees of freedom and scale 1/length.
    Rasmussen and Williams, Gaussian Processes for Machine Learning, MIT Press 2006, section 4.2.

    Parameters
    ----------
    nu : float
        Smoothness; 0.5, 1.5, 2.5 have closed forms, ``inf`` is the Gaussian with gamma = 1/(2 length^2).
    length : float, "scale" or "median"
        "scale" is sqrt(d var / 2), "median" the median distance of (at most 200) rows: the lengths of the Gaussian that
        follows the same rule. Both are estimated by `resolve`.

    Examples
    --------
    >>> from kernelstream.kernels import Matern
    >>> round(float(Matern(nu=0.5, length=1.0).pairwise([[0.0]], [[1.0]])[0, 0]), 4)
    0.3679
    """

    name = "matern"
    takes_csr = True
    bandwidth = "length"
    isotropic = True
    radial = True

    def __init__(self, nu: float = 1.5, length: float | str = "scale"):
        self.nu = nu
        self.length: Any = length

    def validate(self, resolved: bool = True) -> None:
        if not (isinstance(self.nu, float) and self.nu == math.inf):
            positive("nu", self.nu)
        super().validate(resolved)

    @classmethod
    def _from_gamma(cls, gamma: float) -> float:
        return 1 / math.sqrt(2 * gamma)

    def _estimate(self, rule: str, X: Rows) -> float:
        return self._from_gamma(gaussian_gamma(rule, X))

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        # k has a kink at 0 for small nu: rounding would show as ||x - z||^(2 nu)
        return self.of_squares(exact_squared_distances(X, Z))

    def of_squares(self, D2: np.ndarray) -> np.ndarray:
        if self.nu == math.inf:
            return _exp_neg(D2, 1 / (2 * self.length**2))
        r = np.sqrt(D2, out=D2)
        r *= math.sqrt(2 * self.nu) / self.length
        if self.nu == 0.5:
            return _exp_neg(r, 1.0)
        if self.nu == 1.5:
            return (1 + r) * np.exp(-r)
        if self.nu == 2.5:
            return (1 + r + r**2 / 3) * np.exp(-r)
        return _matern_bessel(r, self.nu)

    def _frequencies(self, rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        normal = rng.standard_normal((d, D)) / self.length
        if self.nu == math.inf:
            return normal
        return normal / np.sqrt(rng.standard_gamma(self.nu, D) / self.nu)  # chi^2_{2 nu} / (2 nu) = Gamma(nu) / nu

    def n_uniforms(self, d: int) -> int:
        return d + 1

    def _quantiles(self, U: np.ndarray, d: int) -> np.ndarray:
        normal = special.ndtri(U[:d]) / self.length
        if self.nu == math.inf:
            return normal
        return normal / np.sqrt(special.gammaincinv(self.nu, U[d]) / self.nu)


def _matern_bessel(r: np.ndarray, nu: float) -> np.ndarray:
    """``2^(1-nu)/Gamma(nu) r^nu K_nu(r)``, in logarithms because the factors overflow long before the product."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_k = (1 - nu) * math.log(2) - special.gammaln(nu) + nu * np.log(r) + np.log(special.kve(nu, r)) - r
    # K_nu overflows only near r = 0, where the series of the kernel starts 1 - r^2 / (4 (nu - 1)), or is 1 to rounding.
    near = np.where(r > 0, -(r**2) / (4 * max(nu - 1, 1.0)), 0.0)
    return np.minimum(np.exp(np.where(np.isfinite(log_k) | (r > 1e2 * max(nu, 1)), log_k, near)), 1)


@register
class SpectralMixture(FourierKernel):
    r"""Spectral mixture, ``k(x, z) = sum_q v_q exp(-||scale_q (x - z)||^2 / 2) cos(mean_q'(x - z))``.

    Its spectrum is the mixture of the Gaussians N(mean_q, scale_q^2) with weights v_q.
    Wilson and Adams, Gaussian Process Kernels for Pattern Discovery and Extrapolation, ICML 2013.

    Parameters
    ----------
    weights : (Q,) array-like
        v_q >= 0, summing to 1.
    means, scales : (Q, d), (Q, 1) or (Q,) array-like
        Centre and standard deviation (>= 0) of each component; one column serves every coordinate.

    Examples
    --------
    >>> from kernelstream.kernels import SpectralMixture
    >>> kernel = SpectralMixture(weights=[0.5, 0.5], means=[0.0, 3.0], scales=[1.0, 0.1])
    >>> round(float(kernel.pairwise([[0.0]], [[1.0]])[0, 0]), 4)
    -0.1893
    """

    name = "spectral_mixture"
    takes_csr = True

    def __init__(self, weights: Any = (1.0,), means: Any = (0.0,), scales: Any = (1.0,)):
        self.weights = weights
        self.means = means
        self.scales = scales

    def validate(self, resolved: bool = True) -> None:
        self._components(None)

    def _components(self, d: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights (Q,), means (Q, d) and scales (Q, d); widths are not checked when ``d`` is None."""
        weights = _numbers("weights", self.weights)
        if weights.ndim != 1 or weights.size == 0 or (weights < 0).any() or abs(weights.sum() - 1) > 1e-6:
            raise ValueError(f"weights must be non-negative and sum to 1, got {self.weights!r}")
        shaped = []
        for name in ("means", "scales"):
            values = _numbers(name, getattr(self, name))
            values = values[:, None] if values.ndim == 1 else values
            if values.ndim != 2 or len(values) != len(weights):
                raise ValueError(f"{name} must have one row for each of the {len(weights)} weights")
            if d is not None:
                if values.shape[1] not in (1, d):
                    raise ValueError(f"{name} has {values.shape[1]} columns, the rows have {d}")
                values = np.broadcast_to(values, (len(weights), d))
            shaped.append(values)
        if (shaped[1] < 0).any():
            raise ValueError(f"scales must be >= 0, got {self.scales!r}")
        return weights / weights.sum(), shaped[0], shaped[1]

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        K = np.zeros((X.shape[0], Z.shape[0]), X.dtype)
        for weight, mean, scale in zip(*self._components(X.shape[1])):
            XS = _scale_columns(X, scale)
            ZS = XS if X is Z else _scale_columns(Z, scale)
            part = _exp_neg(squared_distances(XS, ZS, precision=_FLOAT32_ERROR), 0.5)
            # cos(a - b) is the inner product of (cos, sin)(a) and (cos, sin)(b).
            part *= (_circle(X @ mean) @ _circle(Z @ mean).T).astype(part.dtype, copy=False)
            part *= part.dtype.type(weight)
            K += part
        return K

    def _frequencies(self, rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        weights, means, scales = self._components(d)
        q = rng.choice(len(weights), size=D, p=weights)
        return means[q].T + scales[q].T * rng.standard_normal((d, D))

    def n_uniforms(self, d: int) -> int:
        return d + 1

    def _quantiles(self, U: np.ndarray, d: int) -> np.ndarray:
        weights, means, scales = self._components(d)
        q = np.minimum(np.searchsorted(np.cumsum(weights), U[d], side="right"), len(weights) - 1)
        return means[q].T + scales[q].T * special.ndtri(U[:d])


def _numbers(name: str, values: Any) -> np.ndarray:
    """Array of finite floats, or a ValueError that names the parameter."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers, got {values!r}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {values!r}")
    return array


def _scale_columns(X: Rows, scale: np.ndarray) -> Rows:
    scale = scale.astype(X.dtype)
    return X.multiply(scale[None, :]).tocsr() if sparse.issparse(X) else X * scale


def _circle(phase: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(phase), np.sin(phase)], axis=1)
