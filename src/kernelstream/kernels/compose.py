"""Kernels made of kernels: sum, product, multiple."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernelstream._checks import positive
from kernelstream.kernels._base import Draw, FourierKernel, Kernel
from kernelstream.rows import Rows

__all__ = ["Product", "Scale", "Sum"]


class _Pair(Kernel):
    """A kernel of two kernels, ``left`` and ``right``."""

    takes_csr = True  # each kernel sees to its own rows

    def __init__(self, left: Any, right: Any):
        self.left = left
        self.right = right

    def __repr__(self) -> str:  # scikit-learn's takes time exponential in the number of kernels in a row
        return f"{type(self).__name__}(left={self.left!r}, right={self.right!r})"

    def validate(self, resolved: bool = True) -> None:
        for name in ("left", "right"):
            part = getattr(self, name)
            if not isinstance(part, Kernel):
                raise ValueError(f"{name} must be a Kernel object, got {part!r}")
            part.validate(resolved)

    def resolve(self, X: Any) -> Kernel:
        self.validate(resolved=False)
        left, right = self.left.resolve(X), self.right.resolve(X)
        return self if left is self.left and right is self.right else type(self)(left, right)

    def check(self, X: Any) -> None:
        self.left.check(X)
        self.right.check(X)

    @property
    def has_features(self) -> bool:
        return self.left.has_features and self.right.has_features

    def draw(self, rng: np.random.Generator, d: int, D: int) -> Draw:
        self.validate()
        left, right = self.left.draw(rng, d, D), self.right.draw(rng, d, D)
        return {f"left__{key}": value for key, value in left.items()} | {
            f"right__{key}": value for key, value in right.items()
        }

    def _both(self, X: Rows, draw: Draw) -> tuple[np.ndarray, np.ndarray]:
        """Features of the two kernels, each (n, r, D)."""
        D = next(iter(draw.values())).shape[-1]
        parts = []
        for side in ("left", "right"):
            own = {key.removeprefix(f"{side}__"): value for key, value in draw.items() if key.startswith(f"{side}__")}
            Z = getattr(self, side).features(X, own)
            parts.append(Z.reshape(X.shape[0], Z.shape[1] // D, D))
        return parts[0], parts[1]


class Sum(_Pair):
    """Sum of two kernels, ``k(x, z) = left(x, z) + right(x, z)``; also written ``left + right``.

    The features are those of both kernels, side by side.
    Shawe-Taylor and Cristianini, Kernel Methods for Pattern Analysis, Cambridge 2004, proposition 3.22.

    Parameters
    ----------
    left, right : Kernel

    Examples
    --------
    >>> from kernelstream.kernels import Gaussian, Linear
    >>> float((Gaussian(gamma=1.0) + Linear()).pairwise([[1.0]], [[1.0]])[0, 0])
    2.0
    """

    name = "sum"

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        K = self.left.pairwise(X, Z)
        K += self.right.pairwise(X, Z)
        return K

    def _diag(self, X: Rows) -> np.ndarray:
        return self.left.diag(X) + self.right.diag(X)

    def per_draw(self, d: int) -> int:
        return self.left.per_draw(d) + self.right.per_draw(d)

    def _features(self, X: Rows, draw: Draw) -> np.ndarray:
        return np.concatenate(self._both(X, draw), axis=1)


class Product(_Pair):
    """Product of two kernels, ``k(x, z) = left(x, z) right(x, z)``; also written ``left * right``.

    When both are Fourier kernels so is the product, and its frequencies are sums of independent frequencies of the two.
    Otherwise the features of a draw are all products of one feature of each kernel: r_left r_right of them.
    Shawe-Taylor and Cristianini, Kernel Methods for Pattern Analysis, Cambridge 2004, proposition 3.22.

    Parameters
    ----------
    left, right : Kernel

    Examples
    --------
    >>> from kernelstream.kernels import Gaussian, Linear
    >>> float((Gaussian(gamma=1.0) * Linear()).pairwise([[2.0]], [[2.0]])[0, 0])
    4.0
    """

    name = "product"

    @property
    def is_fourier(self) -> bool:
        return self.left.is_fourier and self.right.is_fourier

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        K = self.left.pairwise(X, Z)
        K *= self.right.pairwise(X, Z)
        return K

    def _diag(self, X: Rows) -> np.ndarray:
        return self.left.diag(X) * self.right.diag(X)

    def frequencies(self, rng: np.random.Generator, d: int, D: int) -> np.ndarray:
        """``D`` independent frequencies (d, D); only for two Fourier kernels."""
        if not self.is_fourier:
            raise ValueError("frequencies exist only for the product of two Fourier kernels")
        return self.left.frequencies(rng, d, D) + self.right.frequencies(rng, d, D)

    def n_uniforms(self, d: int) -> int:
        """How many uniform numbers `quantiles` needs for one frequency."""
        return self.left.n_uniforms(d) + self.right.n_uniforms(d)

    def quantiles(self, U: np.ndarray, d: int) -> np.ndarray:
        """Frequencies (d, D) from uniform numbers (n_uniforms(d), D); only for two Fourier kernels."""
        split = self.left.n_uniforms(d)
        return self.left.quantiles(U[:split], d) + self.right.quantiles(U[split:], d)

    def draw(self, rng: np.random.Generator, d: int, D: int) -> Draw:
        self.validate()
        return {"W": self.frequencies(rng, d, D)} if self.is_fourier else super().draw(rng, d, D)

    def per_draw(self, d: int) -> int:
        return 2 if self.is_fourier else self.left.per_draw(d) * self.right.per_draw(d)

    def _features(self, X: Rows, draw: Draw) -> np.ndarray:
        if self.is_fourier:
            return FourierKernel._features(self, X, draw)
        left, right = self._both(X, draw)
        # Both sides are divided by sqrt(D) already, their products only need it once.
        left *= left.dtype.type(math.sqrt(left.shape[-1]))
        return left[:, :, None] * right[:, None]


class Scale(Kernel):
    """Multiple of a kernel, ``k(x, z) = factor kernel(x, z)``; also written ``factor * kernel``.

    The features are multiplied by sqrt(factor).

    Parameters
    ----------
    kernel : Kernel
    factor : float
        Greater than 0.

    Examples
    --------
    >>> from kernelstream.kernels import Linear
    >>> float((2.0 * Linear()).pairwise([[1.0, 2.0]], [[3.0, 4.0]])[0, 0])
    22.0
    """

    name = "scale"
    takes_csr = True

    def __init__(self, kernel: Any, factor: float = 1.0):
        self.kernel = kernel
        self.factor = factor

    def __repr__(self) -> str:
        return f"Scale(factor={self.factor!r}, kernel={self.kernel!r})"

    def validate(self, resolved: bool = True) -> None:
        if not isinstance(self.kernel, Kernel):
            raise ValueError(f"kernel must be a Kernel object, got {self.kernel!r}")
        positive("factor", self.factor)
        self.kernel.validate(resolved)

    def resolve(self, X: Any) -> Kernel:
        self.validate(resolved=False)
        kernel = self.kernel.resolve(X)
        return self if kernel is self.kernel else Scale(kernel, self.factor)

    def check(self, X: Any) -> None:
        self.kernel.check(X)

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        K = self.kernel.pairwise(X, Z)
        K *= K.dtype.type(self.factor)
        return K

    def _diag(self, X: Rows) -> np.ndarray:
        return self.kernel.diag(X) * X.dtype.type(self.factor)

    @property
    def has_features(self) -> bool:
        return self.kernel.has_features

    def draw(self, rng: np.random.Generator, d: int, D: int) -> Draw:
        self.validate()
        return self.kernel.draw(rng, d, D)

    def per_draw(self, d: int) -> int:
        return self.kernel.per_draw(d)

    def _features(self, X: Rows, draw: Draw) -> np.ndarray:
        return self.kernel.features(X, draw) * X.dtype.type(math.sqrt(self.factor))
