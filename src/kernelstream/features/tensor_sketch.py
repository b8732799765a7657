"""Tensor sketch of the polynomial kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from kernelstream import kernels
from kernelstream.checks import whole
from kernelstream.core import arrays
from kernelstream.features._base import Entries, KernelMap, Mapping, register
from kernelstream.random import SeedStream, generator


class TensorSketchMapping(Mapping):
    """Convolution of the ``degree`` count sketches ``X C_1 + b_1``, ... of each row, each of length D."""

    def __init__(self, C: Any, b: np.ndarray):
        self.C = C  # (d, degree * D) CSR, degree entries a row: the sketches side by side
        self.b = b  # (degree, D): the sketches of the constant
        self.n_out = b.shape[1]
        self.dtype = b.dtype

    def __call__(self, X: Any, ops: Any = arrays, out: np.ndarray | None = None) -> np.ndarray:
        P = X @ self.C
        if sparse.issparse(P):
            P = P.toarray()
        P = P.reshape(len(P), *self.b.shape) + self.b  # (m, degree, D)
        if len(self.b) == 1:
            return np.ascontiguousarray(P[:, 0])
        from scipy import fft  # slow to import

        # A product of polynomials in x is a convolution of their sketches, i.e. a product of spectra.
        spectrum = np.prod(fft.rfft(P, axis=2), axis=1)
        return fft.irfft(spectrum, n=self.n_out, axis=1)


@register
@dataclass(eq=False, repr=False)
class TensorSketch(KernelMap):
    r"""Sketch of the explicit features of the polynomial kernel :math:`(\gamma x'y + c)^p`.

    A row is scaled by :math:`\sqrt\gamma` and gets a last coordinate :math:`\sqrt c`. Its p-fold tensor product with
    itself, which has the polynomial kernel as inner product, is never formed: with p independent count sketches
    :math:`C_1, \dots, C_p` (each coordinate is added, with a random sign, to a random place of D),

    .. math:: z(x) = \mathrm{FFT}^{-1}\big(\mathrm{FFT}(C_1 x) \odot \cdots \odot \mathrm{FFT}(C_p x)\big)

    is a count sketch of the tensor product, so that :math:`E\, z(x)'z(y)` is the kernel [1]_. Time per row is
    O(p (nnz + D log D)).

    Parameters
    ----------
    degree : int, default 2
        The power p, from 1 to 100.
    c : float, default 1.0
        The constant, at least 0.
    gamma : float or "scale", default 1.0
        Factor of the inner product; "scale" is 1 / (d · variance) of the rows.
    n_components : int, default 256
        Length D of the sketch, the number of features.
    random_state : int, RandomState, Generator or None, default None

    Attributes
    ----------
    entries_ : dict
        Seed, and gamma where it is estimated.
    mapping_ : TensorSketchMapping
    n_features_in_ : int

    Notes
    -----
    The hashes of a column depend on the seed and the column's index alone, so that a stream's width may grow.

    References
    ----------
    .. [1] Pham, Pagh: Fast and scalable polynomial kernels via explicit feature maps, KDD 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.features import TensorSketch
    >>> X = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> Z = TensorSketch(degree=2, n_components=1024, random_state=0).fit_transform(X)
    >>> print(f"{Z[0] @ Z[1]:.2f}, exactly {(0.6 + 1) ** 2:.2f}")
    2.56, exactly 2.56
    """

    name: ClassVar[str] = "tensor_sketch"
    extends = True

    degree: int = 2
    c: float = 1.0
    gamma: float | str = 1.0
    n_components: int = 256
    random_state: Any = None

    @property
    def kernel_object(self) -> Any:
        """The polynomial kernel of the parameters."""
        return kernels.get(kernels.Polynomial(degree=self.degree, c=self.c, gamma=self.gamma))

    def width(self, entries: Entries, d: int) -> int:
        return whole("n_components", self.n_components)

    def build(self, entries: Entries, d: int, dtype: Any) -> TensorSketchMapping:
        kernel, D = self.resolved(entries), self.width(entries, d)
        degree = kernel.degree
        hashes = np.empty((d, degree), dtype=np.intp)
        signs = np.empty((d, degree), dtype=dtype)
        for i in range(d):
            hashes[i], signs[i] = _hash(generator(entries["seed"], SeedStream.MAP, i), degree, D)
        indptr = np.arange(0, d * degree + 1, degree)
        indices = (hashes + D * np.arange(degree)).ravel()
        C = sparse.csr_array(
            ((signs * np.sqrt(kernel.gamma)).ravel().astype(dtype), indices, indptr), shape=(d, degree * D)
        )
        b = np.zeros((degree, D), dtype=dtype)
        h, s = _hash(generator(entries["seed"], SeedStream.MAP_SHARED), degree, D)
        b[np.arange(degree), h] = s * np.sqrt(kernel.c)
        return TensorSketchMapping(C, b)


def _hash(rng: np.random.Generator, degree: int, D: int) -> tuple[np.ndarray, np.ndarray]:
    """Places in [0, D) and signs of one coordinate in each of the sketches."""
    words = rng.random((degree, 2))
    return (words[:, 0] * D).astype(np.intp), np.where(words[:, 1] < 0.5, -1.0, 1.0)
