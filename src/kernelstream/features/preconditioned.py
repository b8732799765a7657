"""Features whose leading directions are damped: first-order steps on them are preconditioned steps."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh

from kernelstream._checks import whole
from kernelstream.core import arrays
from kernelstream.features._base import Entries, FeatureMap, Mapping, checked, get
from kernelstream.state.schema import Array, Schema, check, length, prefixed

INNER = "inner_"  # prefix of the entries of the map inside
ROWS = 1024  # rows from which the directions are estimated
FEWEST = 8  # rows for each direction
LEAST = 1e-6  # eigenvalues below this share of the largest are rounding


class PreconditionedMapping(Mapping):
    """``z - V ((1 - d) * V'z)`` of the features z of another mapping."""

    def __init__(self, inner: Mapping, V: np.ndarray, damping: np.ndarray):
        self.inner, self.n_out, self.dtype = inner, inner.n_out, inner.dtype
        self.V = np.ascontiguousarray(V, self.dtype)
        self.back = np.ascontiguousarray((V * (1.0 - damping)).T, self.dtype)

    def __call__(self, X: Any, ops: Any = arrays, out: np.ndarray | None = None) -> np.ndarray:
        Z = self.inner(X, ops, out)
        if self.V.shape[1]:
            Z -= ops.matmul(ops.matmul(Z, self.V), self.back)
        return Z


class Preconditioned(FeatureMap):
    r"""Features of another map with their leading directions damped [1]_.

    .. math:: \tilde z = P^{1/2} z, \qquad P = I - V\, \mathrm{diag}(1 - \sigma_{k+1} / \sigma_j)\, V'

    with the k leading eigenvectors V and eigenvalues :math:`\sigma` of the second moment of the features z, estimated
    from the first rows. A step ``w += tau z~`` on them is the step ``w += tau P z`` on the features z: the few
    directions in which all rows agree no longer limit its length, and updates that go by ``z'z``
    (:class:`~kernelstream.updates.NormAdaGrad`, :class:`~kernelstream.updates.AdaGrad`) take the longer one that this
    allows. In a stream the directions are renewed whenever the number of rows has doubled, up to 1,024.

    Parameters
    ----------
    features : FeatureMap or str, default "fourier"
        The map z, of dense features.
    rank : int, default 64
        Number k of directions; smaller while there are fewer than eight rows for each.
    random_state : int, RandomState, Generator or None, default None
        For the map inside.

    Attributes
    ----------
    entries_ : dict
        Entries of the map inside, directions and damping.
    mapping_ : PreconditionedMapping
    n_features_in_ : int

    References
    ----------
    .. [1] Ma, Belkin: Diving into the shallows: a computational perspective on large-scale shallow learning, NeurIPS
       2017 (EigenPro).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from kernelstream import FeatureClassifier
    >>> from kernelstream.features import Preconditioned, RandomFourier
    >>> X, y = make_moons(2000, noise=0.2, random_state=0)
    >>> features = Preconditioned(RandomFourier(n_components=200))
    >>> model = FeatureClassifier(features, random_state=0).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.95
    True
    """

    name: ClassVar[str] = "preconditioned"
    needs_data = True
    rows_wanted = ROWS

    def __init__(self, features: Any = "fourier", rank: int = 64, random_state: Any = None):
        self.features = features
        self.rank = rank
        self.random_state = random_state

    @property
    def _inner(self) -> Any:
        return get(self.features)

    @property
    def takes_width(self) -> bool:
        return self._inner.takes_width

    @property
    def restricted(self) -> bool:
        return self._inner.restricted

    def check(self, X: Any) -> None:
        self._inner.check(X)

    def prepare(self, X: Any, seed: int) -> Entries:
        inner, rank = self._inner, whole("rank", self.rank)
        entries = inner.prepare(X, seed)
        mapping = checked(inner.build(entries, X.shape[1], X.dtype))
        Z = mapping(X, arrays)
        if not isinstance(Z, np.ndarray):
            raise ValueError(f"Preconditioned needs a map of dense features, got {inner!r}")
        V, damping = leading(Z.astype(np.float64), min(rank, X.shape[0] // FEWEST, Z.shape[1] - 1))
        return {INNER + name: value for name, value in entries.items()} | {"directions": V, "damping": damping}

    def build(self, entries: Entries, d: int, dtype: Any) -> PreconditionedMapping:
        inner = checked(self._inner.build(self._of_inner(entries), d, dtype))
        return PreconditionedMapping(inner, entries["directions"], entries["damping"])

    def schema(self, entries: Entries, d: int) -> Schema:
        own = self._of_inner(entries)
        inner = self._inner.schema(own, d)
        check(own, inner)
        k, width = length(entries, "damping"), self._inner.width(own, d)
        if k > whole("rank", self.rank):
            raise ValueError(f"{k} directions are more than rank={self.rank}")
        return prefixed(INNER, inner) | {
            "directions": Array((width, k)),
            "damping": Array((k,), low=0.0, high=1.0),
        }

    def width(self, entries: Entries, d: int) -> int:
        return self._inner.width(self._of_inner(entries), d)

    @staticmethod
    def _of_inner(entries: Entries) -> Entries:
        return {name[len(INNER) :]: value for name, value in entries.items() if name.startswith(INNER)}


def leading(Z: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """k leading eigenvectors (P, k) of ``Z'Z``, Z (n, P), and ``sqrt(s_(k+1) / s_j)`` for each, (k,)."""
    n, P = Z.shape
    if k < 1:
        return np.zeros((P, 0)), np.zeros(0)
    s, U = eigh(Z @ Z.T, subset_by_index=(n - min(n, k + 1), n - 1), check_finite=False)
    s, U = s[::-1], U[:, ::-1]
    kept = s[:-1] > LEAST * max(s[0], np.finfo(float).tiny)
    k = int(kept.sum())
    V = (Z.T @ U[:, :k]) / np.sqrt(s[:k])
    return np.ascontiguousarray(V), np.sqrt(np.maximum(s[k], LEAST * s[0]) / s[:k]) if k else np.zeros(0)
