"""What every feature map shares: the transformer, and the callable it builds.

A map's work is split in two so that a streaming estimator can use it without ``fit``: ``prepare`` turns rows into a
small dict (bandwidth, seed, landmarks), which is what gets saved; ``build`` turns that dict into a :class:`Mapping`,
the same one every time.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelstream.core import arrays
from kernelstream.kernels.parameters import KernelParameters
from kernelstream.random import seed_from
from kernelstream.rows import canonical, native
from kernelstream.state.schema import SEEDS, Count, Schema, anything

from ..registry.names import Catalogue
from ..registry.parameters import WithParameters

Entries = dict[str, Any]
FLOATS = (np.float64, np.float32)
PACKAGE = __name__.partition(".")[0] + "."


def get(spec: Any, **params: Any) -> Any:
    """A feature map from a name and its parameters; an object with ``prepare`` and ``build`` is returned as it is.

    Parameters
    ----------
    spec : str or feature map
        One of :func:`names`, or a map (then without ``params``).
    **params
        Parameters of the map.

    Examples
    --------
    >>> from kernelstream import features
    >>> features.get("nystroem", rank=5).rank
    5
    """
    if isinstance(spec, str):
        return CATALOGUE.find(spec)(**params)
    if isinstance(spec, type) or not (hasattr(spec, "prepare") and hasattr(spec, "build")):
        raise ValueError(
            f"a feature map is a name ({', '.join(names())}) or an object with prepare and build, got {spec!r}"
        )
    if params:
        raise ValueError(f"parameters {sorted(params)} belong in the feature map {spec!r} itself")
    return spec


class Mapping:
    """An immutable map of rows, ``(m, d)`` dense or CSR to ``(m, n_out)`` dense; made by :meth:`FeatureMap.build`.

    Attributes
    ----------
    n_out : int
        Number of features.
    unit : bool
        True when ``z'z = 1`` for every row.
    dtype : numpy.dtype
        float32 or float64, the type of the features.
    """

    n_out: int
    unit: bool = False
    dtype: np.dtype

    def __call__(self, X: Any, ops: Any = arrays, out: np.ndarray | None = None) -> np.ndarray:
        """Features of the rows of X, C-contiguous; ``ops`` is an engine, or :mod:`kernelstream.core.arrays`.

        ``out`` (m, n_out) may be used for the result.
        """
        raise NotImplementedError

    def work(self, entries: float) -> float:
        """About how many products the features of a row with ``entries`` entries cost; a cosine counts as 32."""
        return self.n_out * (entries + 32.0)


class _Checked(Mapping):
    """A mapping from outside the library, whose features are checked against what it declares."""

    def __init__(self, mapping: Any):
        self.mapping, self.n_out, self.unit = mapping, int(mapping.n_out), bool(getattr(mapping, "unit", False))
        self.dtype = np.dtype(mapping.dtype)

    def __call__(self, X: Any, ops: Any = arrays, out: np.ndarray | None = None) -> np.ndarray:
        Z = np.ascontiguousarray(self.mapping(X, ops, out), self.dtype)
        if Z.shape != (X.shape[0], self.n_out):
            raise ValueError(
                f"{type(self.mapping).__name__} made features of shape {Z.shape} from {X.shape[0]} rows, not "
                f"(rows, n_out) = ({X.shape[0]}, {self.n_out})"
            )
        return Z


def checked(mapping: Any) -> Mapping:
    """The mapping itself if it is one of this library's, else one that checks shapes and types of its features."""
    return mapping if type(mapping).__module__.startswith(PACKAGE) else _Checked(mapping)


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, WithParameters):
    """Base of the feature maps: a transformer whose fitted part is ``entries_`` (a flat dict) and ``mapping_``.

    A new map writes ``__init__``, ``prepare`` and ``build``; ``schema`` and ``width`` let a model file be checked
    before anything is built.
    """

    name: ClassVar[str] = ""
    #: True when a wider input keeps the features of the old columns, so that a stream's width may grow.
    extends: bool = False
    random_state: Any = None  # random numbers come from the seed that `prepare` gets

    @property
    def needs_data(self) -> bool:
        """Whether ``prepare`` looks at the rows; when False it may be called with ``X=None``."""
        return False

    @property
    def rows_wanted(self) -> int:
        """How many rows ``prepare`` needs to work well; a stream keeps at least as many before it fixes the map."""
        return 0

    def prepare(self, X: Any, seed: int) -> Entries:
        """Entries (numbers, strings, arrays) that together with the parameters determine the map.

        Parameters
        ----------
        X : (n, d) array or CSR, or None where ``needs_data`` is False
            Rows seen so far, already validated.
        seed : int
            Where every random number of the map comes from.
        """
        raise NotImplementedError

    def build(self, entries: Entries, d: int, dtype: Any) -> Mapping:
        """The mapping of rows of width ``d``: a pure function of the parameters and the entries."""
        raise NotImplementedError

    def schema(self, entries: Entries, d: int) -> Schema:
        """What `prepare` may have returned, for rows of width ``d``."""
        return anything(entries)

    def width(self, entries: Entries, d: int) -> int:
        """Number of features of rows of width ``d``, for entries that keep to the schema."""
        return self.build(entries, d, np.float64).n_out

    @property
    def takes_width(self) -> bool:
        """Whether a bandwidth is estimated from rows that may be scaled beforehand, so that their units matter."""
        return False

    @property
    def restricted(self) -> bool:
        """Whether the map rejects some finite rows, so that `check` has something to do."""
        return False

    def check(self, X: Any) -> None:
        """Raise ValueError when the rows leave the domain of the kernel; finite rows of the right width are assumed."""

    def fit(self, X: Any, y: Any = None) -> FeatureMap:
        """Prepare the map on the rows of X and build it.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : ignored

        Returns
        -------
        self
        """
        self._fit(self._validate(X, reset=True))
        return self

    def _fit(self, X: Any) -> Any:
        self.entries_ = self.prepare(X, seed_from(self.random_state))
        self.mapping_ = self.build(self.entries_, X.shape[1], X.dtype)

    def transform(self, X: Any) -> np.ndarray:
        """Features of the rows of X, in the float type of X.

        Parameters
        ----------
        X : (n, d) array or CSR

        Returns
        -------
        (n, n_out) array
        """
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        mapping = self.mapping_
        if mapping.dtype != X.dtype:  # fitted in one precision, used in the other: the entries serve both
            mapping = self.build(self.entries_, X.shape[1], X.dtype)
        return mapping(X, arrays)

    def _validate(self, X: Any, reset: bool) -> Any:
        X = canonical(X) if sp.issparse(X) else native(X)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=reset)
        if self.restricted:  # outside the try: an error about a parameter is not an error about the rows
            try:
                self.check(X)
            except ValueError as error:  # in the words that scikit-learn's users (and checks) know
                raise ValueError(f"Negative values in data passed to {type(self).__name__}: {error}") from None
        return X

    @property
    def _n_features_out(self) -> int:
        return self.mapping_.n_out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class KernelMap(KernelParameters, FeatureMap):
    """A map of a kernel given as a parameter, by name or as an object, with ``gamma``; it is drawn from a seed."""

    @property
    def needs_data(self) -> bool:
        return self.kernel_needs_data

    def prepare(self, X: Any, seed: int) -> Entries:
        return {"seed": int(seed), **self.kernel_entries(X)}

    def schema(self, entries: Entries, d: int) -> Schema:
        return {"seed": Count(0, SEEDS), **self.kernel_schema()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.kernel_object.domain == "nonnegative"
        return tags


CATALOGUE = Catalogue("feature map", FeatureMap)
register, names = CATALOGUE.register, CATALOGUE.names
