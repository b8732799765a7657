"""Random features of any kernel that knows how to draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kernelstream.checks import whole
from kernelstream.core import arrays
from kernelstream.features._base import Entries, KernelMap, Mapping, register
from kernelstream.kernels import SkewedChi2, SkewedIntersection
from kernelstream.random import SeedStream, generator


class RandomMapping(Mapping):
    """``kernel.features(X, draw)`` of a fixed draw."""

    def __init__(self, kernel: Any, draw: dict[str, np.ndarray], d: int, dtype: Any):
        self.kernel = kernel
        self.draw = draw
        self.dtype = np.dtype(dtype)
        # Pairs (cos, sin) of phases have norm one.
        self.unit = kernel.is_fourier or isinstance(kernel, (SkewedChi2, SkewedIntersection))
        # A row of ones is in the domain of every kernel.
        self.n_out = kernel.features(np.ones((1, d), dtype=dtype), draw).shape[1]

    def __call__(self, X: Any, ops: Any = arrays, out: np.ndarray | None = None) -> np.ndarray:
        return np.ascontiguousarray(self.kernel.features(X, self.draw), dtype=self.dtype)


@register
@dataclass(eq=False, repr=False)
class RandomFeatures(KernelMap):
    r"""Random features of any kernel that has them: D independent draws, each an unbiased estimate of the kernel.

    .. math:: z(x) = D^{-1/2} [\phi_{w_1}(x), \dots, \phi_{w_D}(x)], \qquad E\, \phi_w(x)'\phi_w(x') = k(x, x')

    with the :math:`\phi_w` of the kernel: pairs (cos, sin) for the shift-invariant, additive and skewed kernels,
    exponentials for the semigroup kernels, rectified powers for arc-cosine kernels, products of random projections for
    dot-product kernels; sums, products and multiples of kernels combine those of their parts [1]_.

    Parameters
    ----------
    kernel : str or kernel object, default "arc_cosine"
        Any kernel with ``draw`` and ``features``.
    n_components : int, default 256
        Number D of draws; there are D features, or more where one draw gives several.
    gamma : float, "scale", "median" or None, default None
        Bandwidth of a kernel given by name, if it has one; None means "median". With a kernel object it must be None.
    random_state : int, RandomState, Generator or None, default None

    Attributes
    ----------
    entries_ : dict
        Seed and estimated bandwidths.
    mapping_ : RandomMapping
    n_features_in_ : int

    References
    ----------
    .. [1] Dai, Xie, He, Liang, Raj, Balcan, Song: Scalable kernel methods via doubly stochastic gradients, NeurIPS
       2014, table 1 (with its constants corrected).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.features import RandomFeatures
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> Z = RandomFeatures("arc_cosine", n_components=20000, random_state=0).fit_transform(X)
    >>> print(f"{Z[0] @ Z[1]:.2f}, exactly {1 / np.pi:.2f}")
    0.32, exactly 0.32
    """

    name: ClassVar[str] = "random"

    kernel: Any = "arc_cosine"
    n_components: int = 256
    gamma: float | str | None = None
    random_state: Any = None

    def prepare(self, X: Any, seed: int) -> Entries:
        self._check_parameters()
        return super().prepare(X, seed)

    def width(self, entries: Entries, d: int) -> int:
        return self._check_parameters() * self.resolved(entries).per_draw(d)

    def build(self, entries: Entries, d: int, dtype: Any) -> RandomMapping:
        D = self._check_parameters()
        kernel = self.resolved(entries)
        draw = kernel.draw(generator(entries["seed"], SeedStream.MAP), d, D)
        # Draws are made in float64, so that both precisions of a seed are the same map.
        cast = {
            key: np.ascontiguousarray(part, dtype) if part.dtype.kind == "f" else part for key, part in draw.items()
        }
        return RandomMapping(kernel, cast, d, dtype)

    def _check_parameters(self) -> int:
        kernel = self.kernel_object
        if not kernel.has_features:
            raise ValueError(f"the {kernel.name} kernel has no random features; use Nystroem")
        return whole("n_components", self.n_components)
