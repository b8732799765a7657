"""Kernels made of kernels: sum, product, multiple."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from kernelstream.kernels._base import COMPOSED, Draw, FourierKernel, Kernel
from kernelstream.rows import Rows
from kernelstream.state.nested import under

__all__ = ["Product", "Scale", "Sum"]


class _Composed(Kernel):
    """A kernel of other kernels, which are those of its parameters that ``_parts`` names."""

    _parts: ClassVar[tuple[str, ...]] = ("left", "right")
    takes_csr = True  # each kernel sees to its own rows

    def __repr__(self) -> str:  # scikit-learn's takes time exponential in the number of kernels in a row
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params(deep=False).items())
        return f"{type(self).__name__}({given})"

    def _kernels(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._parts}

    def validate(self, resolved: bool = True) -> None:
        super().validate(resolved)
        for name, part in self._kernels().items():
            if not isinstance(part, Kernel):
                raise ValueError(f"{name} must be a Kernel object, got {part!r}")
            part.validate(resolved)

    def resolve(self, X: Any) -> Kernel:
        self.validate(resolved=False)
        parts = self._kernels()
        resolved = {name: part.resolve(X) for name, part in parts.items()}
        return self if resolved == parts else type(self)(**self.get_params(deep=False) | resolved)

    def check(self, X: Any) -> None:
        for part in self._kernels().values():
            part.check(X)

    @property
    def has_features(self) -> bool:
        return all(part.has_features for part in self._kernels().values())

    def draw(self, rng: np.random.Generator, d: int, D: int) -> Draw:
        self.validate()
        drawn = {name: part.draw(rng, d, D) for name, part in self._kernels().items()}
        return {f"{name}__{key}": value for name, own in drawn.items() for key, value in own.items()}

    def _features_of_parts(self, X: Rows, draw: Draw) -> list[np.ndarray]:
        """Features of the kernels, each (n, r, D)."""
        D = next(iter(draw.values())).shape[-1]
        found = [part.features(X, under(draw, f"{name}__")) for name, part in self._kernels().items()]
        return [Z.reshape(X.shape[0], Z.shape[1] // D, D) for Z in found]


class _Pair(_Composed):
    """A kernel of two kernels, ``left`` and ``right``."""

    def __init__(self, left: Any, right: Any):
        self.left = left
        self.right = right


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
        return np.concatenate(self._features_of_parts(X, draw), axis=1)


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
        left, right = self._features_of_parts(X, draw)
        # Both sides are divided by sqrt(D) already, their products only need it once.
        left *= left.dtype.type(math.sqrt(left.shape[-1]))
        return left[:, :, None] * right[:, None]


class Scale(_Composed):
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
    _parts = ("kernel",)
    _positive = ("factor",)

    def __init__(self, kernel: Any, factor: float = 1.0):
        self.kernel = kernel
        self.factor = factor

    def _gram(self, X: Rows, Z: Rows) -> np.ndarray:
        K = self.kernel.pairwise(X, Z)
        K *= K.dtype.type(self.factor)
        return K

    def _diag(self, X: Rows) -> np.ndarray:
        return self.kernel.diag(X) * X.dtype.type(self.factor)

    def per_draw(self, d: int) -> int:
        return self.kernel.per_draw(d)

    def _features(self, X: Rows, draw: Draw) -> np.ndarray:
        return self._features_of_parts(X, draw)[0] * X.dtype.type(math.sqrt(self.factor))


COMPOSED.update({kind.name: kind for kind in (Sum, Product, Scale)})
