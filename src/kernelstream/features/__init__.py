"""Feature maps: scikit-learn transformers z with ``z(x)'z(x') ~ k(x, x')``.

>>> from kernelstream import features
>>> features.names()
['fourier', 'nystroem', 'random', 'raw', 'taylor', 'tensor_sketch']
>>> features.for_kernel("gaussian", n_components=64, gamma=0.5)
RandomFourier(gamma=0.5, n_components=64)
"""

from __future__ import annotations

from typing import Any

from kernelstream import kernels
from kernelstream.features._base import FeatureMap, Mapping, get, names, register
from kernelstream.features.binning import RandomBinning
from kernelstream.features.fourier import RandomFourier
from kernelstream.features.generic import RandomFeatures
from kernelstream.features.nystroem import Nystroem
from kernelstream.features.preconditioned import Preconditioned
from kernelstream.features.raw import RawFeatures
from kernelstream.features.taylor import TaylorFeatures
from kernelstream.features.tensor_sketch import TensorSketch

__all__ = [
    "FeatureMap",
    "Mapping",
    "Nystroem",
    "Preconditioned",
    "RandomBinning",
    "RandomFeatures",
    "RandomFourier",
    "RawFeatures",
    "TaylorFeatures",
    "TensorSketch",
    "for_kernel",
    "get",
    "names",
    "register",
]


def for_kernel(kernel: Any, n_components: int = 256, gamma: Any = None, random_state: Any = None) -> FeatureMap:
    """The natural map of a kernel: Fourier where it is shift invariant, tensor sketch for polynomials, its own random
    features where it has them, else Nyström.

    Parameters
    ----------
    kernel : str or kernel object
    n_components : int, default 256
        Frequencies, draws, length of the sketch or landmarks.
    gamma : float, "scale", "median" or None, default None
        Bandwidth of a kernel given by name.
    random_state : int, RandomState, Generator or None, default None

    Examples
    --------
    >>> from kernelstream import features
    >>> type(features.for_kernel("chi2")).__name__
    'RandomFeatures'
    """
    obj = kernels.get(kernel, gamma)
    if isinstance(obj, kernels.Polynomial):
        return TensorSketch(obj.degree, obj.c, obj.gamma, n_components, random_state)
    if obj.is_fourier:
        return RandomFourier(kernel, n_components, gamma, random_state=random_state)
    if obj.has_features:
        return RandomFeatures(kernel, n_components, gamma, random_state)
    return Nystroem(kernel, n_components, gamma, random_state=random_state)
