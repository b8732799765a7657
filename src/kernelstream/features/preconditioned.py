"""Features whose leading directions are damped: first-order steps on them are preconditioned steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from kernelstream.checks import whole
from kernelstream.core import arrays
from kernelstream.features._base import Entries, FeatureMap, Mapping, checked, get
from kernelstream.features.fourier import FourierMapping
from kernelstream.state.nested import under
from kernelstream.state.schema import Array, Schema, check, length, prefixed

INNER = "inner_"  # prefix of the entries of the map inside
KEPT_ROWS = 1024  # rows that a stream keeps to estimate the directions from
ROWS_PER_DIRECTION = 32  # rows, and frequencies, that are used for each direction
MIN_ROWS_PER_DIRECTION = 8  # with fewer rows there are fewer directions
MIN_DIRECTIONS, MAX_DIRECTIONS = 16, 64  # of rank="auto": 8 for each 44 that there are in a row's entries + 40
MAX_DEPTH = 64  # few directions are damped to the size of the one twice as far down, at most to that after this one
LEAST_EIGENVALUE = 1e-6  # eigenvalues below this share of the largest are rounding
EXACT_SIZE = 64  # rows or features up to which all eigenvectors are computed
POWER_STEPS, OVERSAMPLES = 4, 8  # block power steps where there are more, and vectors beyond those wanted


class PreconditionedMapping(Mapping):
    """``z - psi B`` of the features z (m, P) of another mapping, with ``psi = s V`` of some features s (m, p) among z.

    Parameters
    ----------
    inner : Mapping
        For z.
    V : (p, k)
    back : (k, P)
        B.
    """

    def __init__(self, inner: Mapping, V: np.ndarray, back: np.ndarray):
        self.inner, self.n_out, self.dtype = inner, inner.n_out, inner.dtype
        self.V, self.back = (np.ascontiguousarray(part, self.dtype) for part in (V, back))

    def __call__(self, X: Any, ops: Any = arrays, out: np.ndarray | None = None) -> np.ndarray:
        Z = self.inner(X, ops, out)
        if len(self.back):
            Z -= ops.matmul(ops.matmul(some(Z, len(self.V)), self.V), self.back)
        return Z


def some(Z: Any, p: int) -> Any:
    """p of the features Z (m, P): half of them from the beginning of each half of Z, cosines and sines."""
    P = Z.shape[1]
    if p == P:
        return Z
    at = np.r_[: p // 2, P // 2 : P // 2 + p // 2]
    return Z[:, at]


@dataclass(eq=False, repr=False)
class Preconditioned(FeatureMap):
    r"""Features of another map with their leading directions damped [1]_.

    .. math:: \tilde z(x) = z(x) - \sum_{j \le k} \Big(1 - \sqrt{\sigma_{l+1} / \sigma_j}\Big)\, c_j\, \psi_j(x), \qquad
       c_j = \frac{E\, z \psi_j}{E\, \psi_j^2}, \qquad l = \max(k, \min(2k, 64))

    with the k leading eigenfunctions :math:`\psi_j(x) = v_j's(x)` of the features and the eigenvalues :math:`\sigma` of
    their second moment, estimated from the first rows. Of Fourier features s are those of the first 32 k frequencies,
    at most 1,024, whose leading eigenfunctions are nearly those of all. Of other features s is z, so
    :math:`\tilde z = P^{1/2} z` with :math:`P = I - V \mathrm{diag}(1 - \sigma_{l+1} / \sigma_j) V'`, and a step
    ``w += tau z~`` is the step ``w += tau P z`` on the features z: the few directions in which all rows agree no longer
    limit its length, and updates that go by ``z'z`` (:class:`~kernelstream.updates.NormAdaGrad`,
    :class:`~kernelstream.updates.AdaGrad`) take the longer one that this allows. In a stream the directions are renewed
    whenever the number of rows has doubled, up to 32 rows for each direction and 1,024 in all (512 with
    ``rank="auto"``).

    Parameters
    ----------
    features : FeatureMap or str, default "fourier"
        The map z, of dense features.
    rank : int or "auto", default "auto"
        Number k of directions; smaller while there are fewer than eight rows for each. A row costs P × k products for P
        features. "auto" is 16 for rows of few columns and up to 64 for many, so that a pass takes about half as long
        again as a plain one (``docs/default_update.md``); with many classes, or time to spare, 64 learns more.
    random_state : int, RandomState, Generator or None, default None
        For the map inside.

    Attributes
    ----------
    entries_ : dict
        Entries of the map inside, V (p, k) for psi, and (1 - …) c (k, P).
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

    features: Any = "fourier"
    rank: int | str = "auto"
    random_state: Any = None

    @property
    def _inner(self) -> Any:
        return get(self.features)

    @property
    def rows_wanted(self) -> int:
        return (
            KEPT_ROWS // 2
            if isinstance(self.rank, str)
            else min(KEPT_ROWS, ROWS_PER_DIRECTION * whole("rank", self.rank))
        )

    @property
    def takes_width(self) -> bool:
        return self._inner.takes_width

    @property
    def restricted(self) -> bool:
        return self._inner.restricted

    def check(self, X: Any) -> None:
        self._inner.check(X)

    def prepare(self, X: Any, seed: int) -> Entries:
        inner, k = self._inner, self._rank(X)
        entries = inner.prepare(X, seed)
        mapping = checked(inner.build(entries, X.shape[1], X.dtype))
        Z = mapping(X[:: max(1, X.shape[0] // (ROWS_PER_DIRECTION * k))], arrays)
        if not isinstance(Z, np.ndarray):
            raise ValueError(f"Preconditioned needs a map of dense features, got {inner!r}")
        P = Z.shape[1]
        p = min(P, 2 * ROWS_PER_DIRECTION * k, 2 * KEPT_ROWS) if isinstance(mapping, FourierMapping) else P
        V, back = damped(some(Z, p), Z, min(k, len(Z) // MIN_ROWS_PER_DIRECTION, P - 1))
        return {INNER + name: value for name, value in entries.items()} | {"directions": V, "back": back}

    def _rank(self, X: Any) -> int:
        """Number of directions for rows like these."""
        if not isinstance(self.rank, str):
            return whole("rank", self.rank)
        if self.rank != "auto":
            raise ValueError(f"rank must be an integer or 'auto', got {self.rank!r}")
        entries = (X.nnz if sp.issparse(X) else X.size) / max(1, X.shape[0])
        return int(min(max(MIN_DIRECTIONS, 8 * ((entries + 40) // 44)), MAX_DIRECTIONS))

    def build(self, entries: Entries, d: int, dtype: Any) -> PreconditionedMapping:
        inner = checked(self._inner.build(under(entries, INNER), d, dtype))
        return PreconditionedMapping(inner, entries["directions"], entries["back"])

    def schema(self, entries: Entries, d: int) -> Schema:
        own = under(entries, INNER)
        inner = self._inner.schema(own, d)
        check(own, inner)
        k, p, width = length(entries, "back"), length(entries, "directions"), self._inner.width(own, d)
        if k > (MAX_DIRECTIONS if isinstance(self.rank, str) else whole("rank", self.rank)):
            raise ValueError(f"{k} directions are more than rank={self.rank}")
        if p > width or (p < width and (p % 2 or width % 2)):
            raise ValueError(f"directions of {p} features do not fit a map of {width}")
        return prefixed(INNER, inner) | {"directions": Array((p, k)), "back": Array((k, width))}

    def width(self, entries: Entries, d: int) -> int:
        return self._inner.width(under(entries, INNER), d)


def damped(S: np.ndarray, Z: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """V (p, k) for psi, and ``(1 - sqrt(s_(l+1) / s_j)) c_j`` (k, P), from features Z (n, P) and S (n, p) of rows."""
    s, U = leading(S, max(k, min(2 * k, MAX_DEPTH)) + 1 if k else 0)
    k = min(k, int((s[:-1] > LEAST_EIGENVALUE * max(s[:1].sum(), np.finfo(float).tiny)).sum()))
    if not k:
        return np.zeros((S.shape[1], 0)), np.zeros((0, Z.shape[1]))
    size, U = np.sqrt(s[:k]), np.asarray(U[:, :k], Z.dtype)  # psi is U size on these rows
    damping = np.sqrt(max(s[-1], LEAST_EIGENVALUE * s[0])) / size
    V, back = S.T @ U / size, U.T @ Z * ((1.0 - damping) / size)[:, None]
    return np.ascontiguousarray(V, np.float64), np.ascontiguousarray(back, np.float64)


def leading(S: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """At most k leading eigenvalues of ``SS'``, S (n, p), in falling order, and eigenvectors (n, k)."""
    n, p = S.shape
    k = min(k, n, p)
    if min(n, p) <= EXACT_SIZE:
        Q, root, _ = np.linalg.svd(S.astype(np.float64), full_matrices=False)
        return root[:k] ** 2, Q[:, :k]
    Q = np.random.default_rng(0).standard_normal((n, min(k + OVERSAMPLES, n, p))).astype(S.dtype)
    for _ in range(POWER_STEPS):
        Q = np.linalg.qr(S @ (S.T @ Q))[0]
    _, root, mix = np.linalg.svd(S.T @ Q, full_matrices=False)  # the best that is in the span of Q
    return root[:k].astype(np.float64) ** 2, (Q @ mix.T)[:, :k]
