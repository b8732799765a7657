"""No map at all: the rows are the features."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from kernelstream.core import arrays
from kernelstream.features._base import Entries, FeatureMap, Mapping, register
from kernelstream.state.schema import Schema


class RawMapping(Mapping):
    """The rows themselves, dense."""

    def __init__(self, d: int, dtype: Any):
        self.n_out = d
        self.dtype = np.dtype(dtype)

    def __call__(self, X: Any, ops: Any = arrays, out: np.ndarray | None = None) -> np.ndarray:
        return np.array(X.toarray() if sparse.issparse(X) else X, dtype=self.dtype, order="C")


@register
class RawFeatures(FeatureMap):
    """The columns of X as features, ``z(x) = x``: with it the learners on features are linear models.

    Attributes
    ----------
    mapping_ : RawMapping
    n_features_in_ : int

    Examples
    --------
    >>> from kernelstream.features import RawFeatures
    >>> RawFeatures().fit_transform([[1.0, 2.0]])
    array([[1., 2.]])
    """

    def __init__(self) -> None:
        pass  # no parameters: without it the signature would be that of the base

    name: ClassVar[str] = "raw"
    extends = True

    def prepare(self, X: Any, seed: int) -> Entries:
        return {}

    def schema(self, entries: Entries, d: int) -> Schema:
        return {}

    def width(self, entries: Entries, d: int) -> int:
        return d

    def build(self, entries: Entries, d: int, dtype: Any) -> RawMapping:
        return RawMapping(d, dtype)
