"""Taylor features: the monomials of a Gaussian, polynomial or dot-product kernel, each once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from kernelstream import kernels
from kernelstream.checks import whole
from kernelstream.core import arrays
from kernelstream.features._base import Entries, KernelMap, Mapping, register
from kernelstream.kernels._rows import squared_norms
from kernelstream.state.schema import Count, Number, Schema

MAX_DEGREE = 100  # no degree above it is ever needed in floating point: 1/100! is 1e-158


class TaylorMapping(Mapping):
    """``coef_k x^k`` (times ``exp(-|x|^2 / 2)`` for the Gaussian) of rows ``x = scale X``, all |k| <= M, by degree.

    The monomials of degree n are made from those of degree n - 1: x_i times every one whose smallest variable is at
    least i, which is a run ``begin[n-1, i] : end[n-1]`` of the features already made.
    """

    def __init__(self, d: int, degree: int, series: np.ndarray, scale: float, gaussian: bool, dtype: Any):
        self.dtype = np.dtype(dtype)
        self.scale = self.dtype.type(scale)
        self.gaussian = gaussian
        self.n_out = math.comb(degree + d, degree)
        self.begin = np.zeros((degree, d), np.int64)
        self.end = np.ones(degree, np.int64)
        coef, power = np.ones(1), np.zeros(1)  # of the monomials of one degree; exponent of their smallest variable
        lead = np.full(1, d)  # that variable; the constant has none
        coefs = [coef * math.sqrt(series[0])]
        start = 0
        for n in range(1, degree + 1):
            first = np.searchsorted(lead, np.arange(d)) if n > 1 else np.zeros(d, int)
            self.begin[n - 1], self.end[n - 1] = start + first, start + len(coef)
            runs = [slice(f, None) for f in first]
            power = np.concatenate([np.where(lead[run] == i, power[run] + 1, 1) for i, run in enumerate(runs)])
            coef = np.concatenate([coef[run] for run in runs]) / np.sqrt(power)
            lead = np.concatenate([np.full(len(lead[run]), i) for i, run in enumerate(runs)])
            start = int(self.end[n - 1])
            coefs.append(coef * math.sqrt(series[n]))
        self.coef = np.concatenate(coefs).astype(self.dtype)

    def __call__(self, X: Any, ops: Any = arrays, out: np.ndarray | None = None) -> np.ndarray:
        X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=self.dtype, order="C") * self.scale
        Z = np.empty((X.shape[0], self.n_out), self.dtype) if out is None else out
        getattr(ops, "taylor", taylor)(X, self.begin, self.end, self.coef, self.gaussian, Z)
        return Z


def taylor(X: np.ndarray, begin: np.ndarray, end: np.ndarray, coef: np.ndarray, gaussian: bool, Z: np.ndarray) -> None:
    """All monomials of the rows of X (m, d) up to degree M, times ``coef`` (r,) and ``exp(-|x|^2 / 2)``, in Z (m, r).

    ``begin`` (M, d) and ``end`` (M,) say which features of the degree before are multiplied by x_i.
    """
    # The exponential comes first: the products then stay in range where the monomials alone would overflow.
    Z[:, 0] = np.exp(-0.5 * np.einsum("ij,ij->i", X, X)) if gaussian else 1.0
    out = 1
    for starts, stop in zip(begin, end):
        for i, start in enumerate(starts):
            size = stop - start
            np.multiply(X[:, i : i + 1], Z[:, start:stop], out=Z[:, out : out + size])
            out += size
    Z *= coef


def taylor_degree(radius: float, sigma: float, n: int, lam: float = 1.0) -> int:
    r"""Degree M with which the regret bound of the Taylor features is at most twice that of the kernel itself.

    ``M = ceil(max(8 R^2 / sigma^2, 2 log(2 n (1 + kappa) / min(lam, 1/lam))))`` for n rows of norm at most R, where
    ``kappa = 1`` for the Gaussian kernel (theorem 4.1 of the reference of :class:`TaylorFeatures`).

    Examples
    --------
    >>> from kernelstream.features.taylor import taylor_degree
    >>> taylor_degree(radius=1.0, sigma=1.0, n=1000)
    17
    """
    return math.ceil(max(8 * radius**2 / sigma**2, 2 * math.log(4 * max(n, 1) / min(lam, 1 / lam))))


@register
@dataclass(eq=False, repr=False)
class TaylorFeatures(KernelMap):
    r"""Monomials that expand the Gaussian kernel in its own space.

    With :math:`\sigma^2 = 1/(2\gamma)`, for every multi-index k with :math:`|k| \le M`,

    .. math:: g_k(x) = e^{-\|x\|^2/(2\sigma^2)} \prod_i \frac{x_i^{k_i}}{\sigma^{k_i}\sqrt{k_i!}}:

    :math:`r = \binom{M+d}{M}` orthonormal functions of the kernel's space, so :math:`z(x)'z(x')` is the Taylor
    expansion of the kernel up to degree M. Its error is at most :math:`(R/\sigma)^{2M+2}/(M+1)!` for rows of norm at
    most R [1]_. Deterministic; each monomial appears once; every degree is made from the one before, so a feature costs
    one product. Best where the dimension is small and the rows are not far from 0 in units of sigma.

    Parameters
    ----------
    kernel : str or kernel object, default "gaussian"
        Gaussian; or polynomial, dot_product, linear, whose finite expansions are exact from their own degree on.
    degree : int or "auto", default 2
        M. "auto" follows theorem 4.1 of [1]_ for the rows at hand (``taylor_degree``, with lambda 1), as far as
        ``max_features`` allows; an :class:`~kernelstream.OnlineRidge` lets it grow with the stream.
    gamma : float, "scale", "median" or None, default None
        Bandwidth of a kernel given by name; None means "median". With a kernel object it must be None.
    max_features : int, default 2000
        "auto" stays below it; a degree that needs more is an error, because a learner's time grows with its square.

    Attributes
    ----------
    entries_ : dict
        Degree, estimated bandwidth and largest norm.
    mapping_ : TaylorMapping
    n_features_in_ : int

    References
    ----------
    .. [1] Jézéquel, Gaillard, Rudi: Efficient online learning with kernels for adversarial large scale problems,
       NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.features import TaylorFeatures
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.5]])
    >>> Z = TaylorFeatures(gamma=0.5, degree=6).fit_transform(X)
    >>> Z.shape
    (3, 28)
    >>> print(f"{Z[1] @ Z[2]:.5f}, exactly {np.exp(-0.5 * 1.25):.5f}")
    0.53526, exactly 0.53526
    """

    name: ClassVar[str] = "taylor"

    kernel: Any = "gaussian"
    degree: int | str = 2
    gamma: float | str | None = None
    max_features: int = 2000

    @property
    def needs_data(self) -> bool:
        return self.kernel_needs_data or (self.grows and isinstance(self.kernel_object, kernels.Gaussian))

    @property
    def grows(self) -> bool:
        """Whether the degree rises with the length of the stream."""
        return isinstance(self.degree, str) and isinstance(self.kernel_object, kernels.Gaussian)

    def prepare(self, X: Any, seed: int) -> Entries:
        self._check_degree()
        entries = self.kernel_entries(X)
        if not self.grows:
            return entries
        radius = math.sqrt(float(squared_norms(X).max()))
        entries["radius"] = radius
        return {**entries, "degree": self._auto(entries, X.shape[1], X.shape[0], 1.0)}

    def grown(self, entries: Entries, d: int, n: int, lam: float) -> Entries | None:
        """Entries for a stream of n rows so far, or None when they stay the same."""
        if not self.grows:
            return None
        degree = self._auto(entries, d, n, lam)
        return {**entries, "degree": degree} if degree > entries["degree"] else None

    def schema(self, entries: Entries, d: int) -> Schema:
        self._check_degree()
        grown: Schema = {"radius": Number(0.0), "degree": Count(0, MAX_DEGREE)} if self.grows else {}
        return self.kernel_schema() | grown

    def width(self, entries: Entries, d: int) -> int:
        return self._size(entries, d, _series(self.resolved(entries)))[1]

    def _size(self, entries: Entries, d: int, series: np.ndarray) -> tuple[int, int]:
        """Degree, and number of monomials of rows of width d."""
        degree = entries.get("degree", len(series) - 1 if self.degree == "auto" else self.degree)
        degree = min(int(degree), len(series) - 1)
        r, most = math.comb(degree + d, degree), whole("max_features", self.max_features)
        if r > most:
            raise ValueError(f"degree={degree} on {d} columns makes {r} features, more than max_features={most}")
        return degree, r

    def build(self, entries: Entries, d: int, dtype: Any) -> TaylorMapping:
        kernel = self.resolved(entries)
        series = _series(kernel)
        degree, _ = self._size(entries, d, series)
        gaussian = isinstance(kernel, kernels.Gaussian)
        return TaylorMapping(d, degree, series, math.sqrt(2 * kernel.gamma) if gaussian else 1.0, gaussian, dtype)

    def _auto(self, entries: Entries, d: int, n: int, lam: float) -> int:
        """Theorem 4.1 for n rows, but never more features than half the rows (or than the columns need)."""
        sigma = 1 / math.sqrt(2 * self.resolved(entries).gamma)
        wanted = min(taylor_degree(entries["radius"], sigma, n, lam), MAX_DEGREE)
        room = min(max(n // 2, d + 1), whole("max_features", self.max_features))
        degree = 0
        while degree < wanted and math.comb(degree + 1 + d, d) <= room:
            degree += 1
        return degree

    def _check_degree(self) -> None:
        _series(self.kernel_object)
        if self.degree != "auto":
            whole("degree", self.degree)


def _series(kernel: Any) -> np.ndarray:
    """``n! a_n`` of a kernel ``sum_n a_n (x'z)^n``; for the Gaussian, of the exponential of x'z / sigma^2."""
    if isinstance(kernel, kernels.Gaussian):
        return np.ones(MAX_DEGREE + 1)
    if isinstance(kernel, kernels.Polynomial):
        n = kernel.degree
        gamma = 1.0 if isinstance(kernel.gamma, str) else kernel.gamma
        series = [math.comb(n, j) * gamma**j * kernel.c ** (n - j) for j in range(n + 1)]
    elif isinstance(kernel, kernels.DotProduct):
        series = kernel._series()
    elif isinstance(kernel, kernels.Linear):
        series = [0.0, 1.0]
    else:
        raise ValueError(
            f"Taylor features exist for the kernels gaussian, polynomial, dot_product and linear, not for {kernel!r}"
        )
    return np.array([a * math.factorial(j) for j, a in enumerate(series)])
