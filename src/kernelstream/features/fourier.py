"""Random Fourier features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kernelstream.checks import one_of, whole
from kernelstream.core import arrays
from kernelstream.features import sampling
from kernelstream.features._base import Entries, KernelMap, Mapping, register
from kernelstream.features.sampling import Draws


class FourierMapping(Mapping):
    """``[cos(X W), sin(X W)] / sqrt(D)`` with frequencies W (d, D)."""

    unit = True

    def __init__(self, W: np.ndarray):
        self.W = W
        self.n_out = 2 * W.shape[1]
        self.dtype = W.dtype

    def __call__(self, X: Any, ops: Any = arrays, out: np.ndarray | None = None) -> np.ndarray:
        return ops.fourier(X, self.W, out)


@register
@dataclass(eq=False, repr=False)
class RandomFourier(KernelMap):
    r"""Random Fourier features of a shift-invariant kernel.

    By Bochner's theorem :math:`k(x, x') = E \cos w'(x - x')` for frequencies w drawn from the kernel's spectrum, so

    .. math:: z(x) = D^{-1/2} [\cos w_1'x, \dots, \cos w_D'x, \sin w_1'x, \dots, \sin w_D'x]

    has :math:`E\, z(x)'z(x') = k(x, x')`, with an error of order :math:`D^{-1/2}`, and :math:`z(x)'z(x) = 1` [1]_.

    Parameters
    ----------
    kernel : str or kernel object, default "gaussian"
        Any kernel with ``frequencies``: gaussian, laplacian, cauchy, matern, spectral mixtures, their products.
    n_components : int, default 256
        Number D of frequencies; there are 2D features.
    gamma : float, "scale", "median" or None, default None
        Bandwidth of a kernel given by name; None means "median". With a kernel object it must be None.
    sampling : {"iid", "orthogonal", "structured", "qmc"}, default "iid"
        Independent frequencies; orthogonal directions in blocks of d, by QR or by Hadamard matrices (isotropic
        kernels: gaussian, matern) [2]_; or inverse CDFs of a scrambled Sobol sequence [3]_. The last three have smaller
        errors: much smaller for orthogonal directions when D is at least d, and for Sobol points when d is small.
    random_state : int, RandomState, Generator or None, default None

    Attributes
    ----------
    entries_ : dict
        Seed and estimated bandwidth: with the parameters, all it takes to build the map again.
    mapping_ : FourierMapping
        Its ``W`` is the (d, D) array of frequencies.
    n_features_in_ : int

    Notes
    -----
    With ``sampling="iid"`` or ``"qmc"`` row i of the frequencies depends on the seed and i alone (gaussian, laplacian,
    cauchy, matern), so a wider input adds rows to ``W`` and leaves the others as they are.

    References
    ----------
    .. [1] Rahimi, Recht: Random features for large-scale kernel machines, NeurIPS 2007.
    .. [2] Yu, Suresh, Choromanski, Holtmann-Rice, Kumar: Orthogonal random features, NeurIPS 2016.
    .. [3] Avron, Sindhwani, Yang, Mahoney: Quasi-Monte Carlo feature maps for shift-invariant kernels, JMLR 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.features import RandomFourier
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> Z = RandomFourier(gamma=0.5, n_components=4096, sampling="qmc", random_state=0).fit_transform(X)
    >>> Z.shape
    (3, 8192)
    >>> print(f"{Z[0] @ Z[1]:.2f}, exactly {np.exp(-0.5):.2f}")
    0.61, exactly 0.61
    """

    name: ClassVar[str] = "fourier"

    kernel: Any = "gaussian"
    n_components: int = 256
    gamma: float | str | None = None
    sampling: str = "iid"
    random_state: Any = None

    @property
    def extends(self) -> bool:  # type: ignore[override]
        return sampling.extends(self.kernel_object, self.sampling)

    def width(self, entries: Entries, d: int) -> int:
        one_of("sampling", self.sampling, sampling.SAMPLINGS)
        return 2 * whole("n_components", self.n_components)

    def build(
        self,
        entries: Entries,
        d: int,
        dtype: Any,
        draws: Draws | None = None,
        known: np.ndarray | None = None,
    ) -> FourierMapping:
        """As :meth:`FeatureMap.build`; ``draws`` and ``known`` as for ``sampling.frequencies``."""
        D, kernel = whole("n_components", self.n_components), self.resolved(entries)
        return FourierMapping(sampling.frequencies(kernel, entries["seed"], d, D, self.sampling, dtype, draws, known))
