"""The kernel interface and the registry of kernels by name."""

from __future__ import annotations

import math
import numbers
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from kernelstream.checks import positive
from kernelstream.core.threads import cuts
from kernelstream.kernels._rows import MEMORY_ELEMENTS, as_rows
from kernelstream.kernels.bandwidth import as_wide_as_gaussian
from kernelstream.random import SeedStream, generator
from kernelstream.rows import Rows, dense

from ..registry.names import Catalogue
from ..registry.parameters import WithParameters

Draw = dict[str, np.ndarray]


def get(spec: Any, gamma: float | str | None = None) -> Kernel:
    """Kernel from a registered name or a kernel object.

    Parameters
    ----------
    spec : str or Kernel
        A name of `names`, or an object, which is returned unchanged.
    gamma : float, "scale", "median" or None
        Bandwidth of a kernel given by name; None keeps the kernel's default. Must be None for an object. A kernel
        whose bandwidth is a length takes the length that gives the same width as a Gaussian, ``1/sqrt(2 gamma)``.

    Returns
    -------
    Kernel
        Bandwidths given by a rule still have to be estimated with `Kernel.resolve`.

    Examples
    --------
    >>> from kernelstream import kernels
    >>> kernels.get("gaussian", gamma=0.5).gamma
    0.5
    """
    if isinstance(spec, Kernel):
        if gamma is not None:
            raise ValueError(f"gamma must be None when kernel is an object: set it there instead of gamma={gamma!r}")
        spec.validate(resolved=False)
        return spec
    if not isinstance(spec, str):
        raise ValueError(f"kernel must be a name or a Kernel object, got {spec!r}")
    cls = CATALOGUE.find(spec)
    if gamma is None:
        return cls()
    if cls.bandwidth is None:
        raise ValueError(f"gamma must be None for the kernel {spec!r}: it has no bandwidth, got gamma={gamma!r}")
    if not isinstance(gamma, str):
        gamma = cls._from_gamma(positive("gamma", gamma))
    kernel = cls(**{cls.bandwidth: gamma})
    kernel.validate(resolved=False)
    return kernel


class Kernel(WithParameters):
    """Positive semi-definite function of two rows; parameters only, no state.

    A new kernel sets `name` and defines ``__init__`` (which only stores) and `_gram`; `_diag` makes its diagonal quick,
    and the random features, `draw` and `_features`, are optional. Rows are ndarrays, CSR matrices or CSR arrays; a
    kernel gets dense ones unless it says `takes_csr`.
    """

    #: Registry key.
    name: ClassVar[str] = ""
    #: Rows the kernel is defined for: "real", "nonnegative" or "above_minus_c".
    domain: ClassVar[str] = "real"
    #: Parameter that holds the bandwidth, or None.
    bandwidth: ClassVar[str | None] = None
    #: Rules that may stand for a numeric bandwidth.
    rules: ClassVar[tuple[str, ...]] = ("scale", "median")
    #: Whether the kernel's functions take CSR rows, any number at a time; otherwise they get dense blocks.
    takes_csr: ClassVar[bool] = False
    #: Parameters that must be positive numbers, besides the bandwidth.
    _positive: ClassVar[tuple[str, ...]] = ()
    #: How many numbers a draw gives a row, if that does not depend on the width.
    _per_draw: ClassVar[int | None] = None

    # Lets ``np.float64(2) * kernel`` reach ``__rmul__`` instead of making an object array.
    __array_ufunc__ = None

    def validate(self, resolved: bool = True) -> None:
        """Raise a ValueError that names the first invalid parameter.

        Parameters
        ----------
        resolved : bool
            Also reject a bandwidth that is still a rule.
        """
        for name in (*self._positive, *([] if self.bandwidth is None else [self.bandwidth])):
            value, owner = getattr(self, name), type(self).__name__
            if name != self.bandwidth or not isinstance(value, str):
                positive(name, value)
            elif value not in self.rules:
                known = " or ".join(map(repr, self.rules))
                raise ValueError(f"{name} of {owner} must be a number or {known}, got {value!r}")
            elif resolved:
                raise ValueError(f"{name}={value!r} of {owner} is a rule: call resolve(X) to get a number")

    @classmethod
    def _from_gamma(cls, gamma: float) -> float:
        """Value of the bandwidth parameter for a number given as ``gamma``."""
        return gamma

    def resolve(self, X: Any) -> Kernel:
        """Kernel whose bandwidth is a number; a rule is estimated on the rows ``X`` (n, d)."""
        self.validate(resolved=False)
        if self.bandwidth is None or not isinstance(getattr(self, self.bandwidth), str):
            return self
        value = self._estimate(getattr(self, self.bandwidth), as_rows(X))
        return type(self)(**{**self.get_params(deep=False), self.bandwidth: value})

    def _estimate(self, rule: str, X: Rows) -> float:
        """The bandwidth of a rule: unless a kernel has a formula, that which makes it as wide as the Gaussian's."""

        def kernel(value: float) -> Kernel:
            return type(self)(**{**self.get_params(deep=False), str(self.bandwidth): value})

        return as_wide_as_gaussian(kernel, rule, X)

    def check(self, X: Any) -> None:
        """Raise a ValueError that names the kernel when a value of ``X`` (n, d) is outside its domain."""
        if self.domain == "real":
            return
        values = X.data if sparse.issparse(X) else np.asarray(X)
        if values.size == 0:
            return
        least = values.min()
        # Written so that NaN, which fails every comparison, is rejected too.
        if self.domain == "nonnegative" and not least >= 0:
            raise ValueError(f"{type(self).__name__} needs x >= 0, found {least}")
        if self.domain == "above_minus_c" and not least > -self.c:
            raise ValueError(f"{type(self).__name__} needs x > -c = {-self.c}, found {least}")

    def pairwise(self, X: Any, Z: Any) -> np.ndarray:
        """Gram block ``k(x_i, z_j)``.

        Parameters
        ----------
        X : (n, d) ndarray or CSR
        Z : (m, d) ndarray or CSR

        Returns
        -------
        (n, m) ndarray
            In the dtype of ``X`` if that is float32 or float64, else float64.
        """
        self.validate()
        same = X is Z
        X = as_rows(X)
        Z = X if same else as_rows(Z, X.dtype)
        if X.shape[1] != Z.shape[1]:
            raise ValueError(f"rows differ in width: X has {X.shape[1]} columns, Z has {Z.shape[1]}")
        self.check(X)
        if not same:
            self.check(Z)
        if self.takes_csr:
            return self._gram(X, Z).astype(X.dtype, copy=False)
        return self._in_blocks(X, Z)

    def _in_blocks(self, X: Rows, Z: Rows) -> np.ndarray:
        """The Gram block from dense blocks, so small that the differences of all pairs would fit into memory."""
        (n, d), m = X.shape, Z.shape[0]
        K = np.empty((n, m), X.dtype)
        for columns in cuts(m, min(1024, MEMORY_ELEMENTS // max(1, d))):
            right = dense(Z[columns])
            for rows in cuts(n, MEMORY_ELEMENTS // max(1, d * len(right))):
                K[rows, columns] = self._gram(dense(X[rows]), right)
        return K

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        """`pairwise` on checked rows of one dtype; the result may be float64."""
        raise NotImplementedError(f"{type(self).__name__} needs a method _gram(X, Z), the kernel of all pairs of rows")

    def diag(self, X: Any) -> np.ndarray:
        """``k(x_i, x_i)`` of every row of ``X`` (n, d), shape (n,)."""
        self.validate()
        X = as_rows(X)
        self.check(X)
        return self._diag(X if self.takes_csr else dense(X)).astype(X.dtype, copy=False)

    def _diag(self, X: Rows) -> np.ndarray:
        """`diag` on checked rows; without a formula, from the Gram matrices of single rows."""
        return np.array([self.pairwise(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(X.shape[0])])

    @property
    def has_features(self) -> bool:
        """Whether `draw` and `features` exist."""
        return type(self).draw is not Kernel.draw

    @property
    def is_fourier(self) -> bool:
        """Whether the kernel is shift invariant with ``k(x, x) = 1`` and has `frequencies`."""
        return False

    def draw(self, rng: np.random.Generator, d: int, D: int) -> Draw:
        """Random parameters of ``D`` independent draws for rows of width ``d``: arrays whose last axis is the draw."""
        raise NotImplementedError(f"{type(self).__name__} has no random features")

    def features(self, X: Any, draw: Draw) -> np.ndarray:
        """Random features ``Z`` with ``E[Z Z'] = K``, in the dtype of ``X``.

        Each draw gives r numbers (r = 1 or 2 unless the kernel says otherwise). Column ``j D + i`` is number ``j`` of
        draw ``i``, divided by ``sqrt(D)``, so ``Z.reshape(n, r, D)`` separates the draws.

        Parameters
        ----------
        X : (n, d) ndarray or CSR
        draw : dict
            Result of `draw` for the same width.

        Returns
        -------
        (n, r D) ndarray
        """
        self.validate()
        X = as_rows(X)
        self.check(X)
        Z = self._features(X if self.takes_csr or self.is_fourier else dense(X), draw)
        return Z.reshape(X.shape[0], math.prod(Z.shape[1:]))

    def per_draw(self, d: int) -> int:
        """Number r of features that each draw gives rows of width ``d``."""
        if self._per_draw is not None:
            return self._per_draw
        return self.features(np.full((1, d), 0.5), self.draw(generator(0, SeedStream.MAP), d, 1)).shape[1]

    def _features(self, X: Rows, draw: Draw) -> np.ndarray:
        """`features` on checked rows, shape (n, r, D) or (n, r D)."""
        raise NotImplementedError(f"{type(self).__name__} has no random features")

    def __add__(self, other: Any) -> Kernel:
        return COMPOSED["sum"](self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return COMPOSED["product"](self, other)
        return COMPOSED["scale"](self, float(other)) if isinstance(other, numbers.Real) else NotImplemented

    __rmul__ = __mul__


CATALOGUE = Catalogue("kernel", Kernel)
COMPOSED: dict[str, Any] = {}  # kernels of kernels by the name of what is done to these: entered by `compose`
register, names = CATALOGUE.register, CATALOGUE.names


def project(X: Rows, W: np.ndarray) -> np.ndarray:
    """``X W`` as an ndarray in the dtype of ``X``."""
    return np.asarray(X @ np.asarray(W, dtype=X.dtype))


def cos_sin(P: np.ndarray) -> np.ndarray:
    """``[cos P, sin P] / sqrt(D)`` for phases ``P`` (n, D), shape (n, 2, D)."""
    n, D = P.shape
    Z = np.empty((n, 2, D), P.dtype)
    np.cos(P, out=Z[:, 0])
    np.sin(P, out=Z[:, 1])
    Z *= P.dtype.type(1 / math.sqrt(D))
    return Z


class FourierKernel(Kernel):
    """Shift-invariant kernel with ``k(x, x) = 1``, ``k(x, z) = E cos(w'(x - z))`` over random frequencies ``w``.

    Subclasses define `_frequencies` (and `_quantiles`); `draw` and `features` follow: ``[cos(XW), sin(XW)] / sqrt(D)``,
    cos block first (Rahimi and Recht, Random Features for Large-Scale Kernel Machines, NIPS 2007).
    """

    #: Whether the frequencies have no preferred direction, as orthogonal maps need.
    isotropic: ClassVar[bool] = False
    #: Whether the coordinates of a frequency are independent and alike: rows may then get wider while a model learns.
    independent: ClassVar[bool] = False
    #: Whether the kernel is a function of ``||x - z||^2`` alone, `of_squares`.
    radial: ClassVar[bool] = False
    _per_draw = 2

    @property
    def is_fourier(self) -> bool:
        return True

    def frequencies(self, rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        """``D`` independent frequencies for rows of width ``d``, shape (d, D)."""
        self.validate()
        return self._frequencies(rng, d, D)

    def _frequencies(self, rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        raise NotImplementedError

    def of_squares(self, D2: np.ndarray) -> np.ndarray:
        """The kernel at squared distances ``D2`` of any shape, whose memory it may use; for radial kernels."""
        raise NotImplementedError(f"{type(self).__name__} is not a function of the distance")

    def n_uniforms(self, d: int) -> int:
        """How many uniform numbers `quantiles` needs for one frequency."""
        return d

    def quantiles(self, U: np.ndarray, d: int) -> np.ndarray:
        """Frequencies (d, D) from uniform numbers in (0, 1), by inverse distribution functions.

        Parameters
        ----------
        U : (n_uniforms(d), D) ndarray
            Quasi-random points, for example; independent uniforms give the distribution of `frequencies`.
        d : int
            Width of the rows.
        """
        self.validate()
        if U.shape[0] != self.n_uniforms(d):
            raise ValueError(f"U must have {self.n_uniforms(d)} rows for width {d}, got {U.shape[0]}")
        return self._quantiles(U, d)

    def _quantiles(self, U: np.ndarray, d: int) -> np.ndarray:
        raise NotImplementedError(f"{type(self).__name__} has no inverse distribution function")

    def draw(self, rng: np.random.Generator, d: int, D: int) -> Draw:
        return {"W": self.frequencies(rng, d, D)}

    def _diag(self, X: Rows) -> np.ndarray:
        return np.ones(X.shape[0], X.dtype)

    def _features(self, X: Rows, draw: Draw) -> np.ndarray:
        return cos_sin(project(X, draw["W"]))


class StretchedKernel(FourierKernel):
    """Fourier kernel whose frequencies are independent numbers of one law, all stretched by its bandwidth ``gamma``."""

    independent = True

    @property
    def spread(self) -> float:
        """Factor that turns the numbers of ``standard`` into frequencies."""
        return self.gamma

    @staticmethod
    def standard(rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        """Frequencies (d, D) with a spread of 1."""
        raise NotImplementedError

    def _frequencies(self, rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        return self.standard(rng, d, D) * self.spread
