"""Nyström features."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, lapack
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import _num_samples, check_array

from kernelstream import kernels
from kernelstream.checks import whole
from kernelstream.core import arrays
from kernelstream.features import landmarks
from kernelstream.features._base import FLOATS, Entries, KernelMap, Mapping, register
from kernelstream.random import SeedStream, generator
from kernelstream.state.schema import Array, Schema, length


class NystroemMapping(Mapping):
    """``k(X, S) P`` with landmarks S (m, d) and a projection P (m, k)."""

    def __init__(self, kernel: Any, S: np.ndarray, P: np.ndarray):
        self.kernel = kernel
        self.S = S
        self.P = P
        self.n_out = P.shape[1]
        self.dtype = P.dtype

    def __call__(self, X: Any, ops: Any = arrays, out: np.ndarray | None = None) -> np.ndarray:
        return ops.matmul(self.kernel.pairwise(X, self.S), self.P, out)

    def work(self, entries: float) -> float:
        return len(self.S) * (entries + 32.0 + self.n_out)


class GaussianNystroemMapping(NystroemMapping):
    """The same for the Gaussian kernel, with everything that depends on the landmarks alone precomputed."""

    def __init__(self, kernel: Any, S: np.ndarray, P: np.ndarray):
        super().__init__(kernel, S, P)
        self.gamma = float(kernel.gamma)
        self.S2 = np.ascontiguousarray(-2 * S.T)
        self.norms = row_norms(S, squared=True)
        # Largest |x|² for which |x|² - 2 x's + |s|² loses less than 1e-5 of the kernel to rounding.
        self.far = 1e-5 / (self.gamma * np.finfo(P.dtype).eps) - float(self.norms.max())

    def sizes(self, X: Any) -> np.ndarray:
        """``|x|²`` of rows X (n, d), (n,)."""
        xx = row_norms(X, squared=True) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
        return xx.astype(self.dtype, copy=False)

    def __call__(self, X: Any, ops: Any = arrays, out: np.ndarray | None = None) -> np.ndarray:
        xx = self.sizes(X)
        if not xx.max(initial=0.0) <= self.far:
            return super().__call__(X, ops, out)  # the kernel itself takes care
        K = ops.matmul(X, self.S2)
        K += xx[:, None]
        K += self.norms
        return ops.matmul(ops.exp_scaled(K, self.gamma), self.P, out)


@register
@dataclass(eq=False, repr=False)
class Nystroem(KernelMap):
    r"""Nyström features: the kernel seen from a set of landmark rows S.

    With the top k eigenpairs :math:`K_{SS} \approx V_k D_k V_k'` of the landmarks' Gram matrix,

    .. math:: z(x) = D_k^{-1/2} V_k' k_S(x), \qquad z(x)'z(x') = k_S(x)' (V_k D_k^{-1} V_k')\, k_S(x'),

    which is exact for x and x' among the landmarks when k is the rank of :math:`K_{SS}`, and otherwise the projection
    on the span of the (leading directions of the) landmarks in the kernel's space [1]_.

    Parameters
    ----------
    kernel : str or kernel object, default "gaussian"
        Any kernel.
    n_components : int, default 100
        Number of landmarks. With fewer rows than that, all of them are landmarks (``fit`` warns). Not used where
        ``landmarks`` is an array.
    gamma : float, "scale", "median" or None, default None
        Bandwidth of a kernel given by name; None means "median". With a kernel object it must be None.
    landmarks : {"uniform", "kmeans++", "leverage", "rpcholesky"} or (m, d) array, default "uniform"
        How landmarks are chosen among the rows: uniformly; by k-means++ seeding in the kernel's space; by approximate
        ridge leverage scores [2]_; as the pivots of a randomly pivoted Cholesky factorisation [3]_. Or the landmarks
        themselves.
    rank : int or None, default None
        Number k of eigenpairs, at most the number of landmarks; None means all. Eigenvalues that are rounding noise are
        dropped in either case, so there may be fewer features.
    random_state : int, RandomState, Generator or None, default None

    Attributes
    ----------
    entries_ : dict
        Landmarks, projection matrix :math:`V_k D_k^{-1/2}` and estimated bandwidth.
    mapping_ : NystroemMapping
    n_features_in_ : int

    Notes
    -----
    An eigenvalue is dropped when it is below ``eps ** (2/3)`` of the largest, eps being the precision of the rows:
    keeping a share t of the spectrum amplifies the rounding of k_S(x) to ``eps / sqrt(t)``, dropping it costs t, and
    the two meet there.

    References
    ----------
    .. [1] Williams, Seeger: Using the Nyström method to speed up kernel machines, NeurIPS 2000.
    .. [2] Musco, Musco: Recursive sampling for the Nyström method, NeurIPS 2017.
    .. [3] Chen, Epperly, Tropp, Webber: Randomly pivoted Cholesky: practical approximation of a kernel matrix with few
       entry evaluations, Communications on Pure and Applied Mathematics 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.features import Nystroem
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> Z = Nystroem(gamma=0.5, n_components=3, random_state=0).fit_transform(X)
    >>> print(f"{Z[0] @ Z[1]:.4f}, exactly {np.exp(-0.5):.4f}")
    0.6065, exactly 0.6065
    """

    name: ClassVar[str] = "nystroem"
    extends = True

    kernel: Any = "gaussian"
    n_components: int = 100
    gamma: float | str | None = None
    landmarks: Any = "uniform"
    rank: int | None = None
    random_state: Any = None

    @property
    def needs_data(self) -> bool:
        return isinstance(self.landmarks, str) or super().needs_data

    @property
    def rows_wanted(self) -> int:
        return whole("n_components", self.n_components) if isinstance(self.landmarks, str) else 0

    def fit(self, X: Any, y: Any = None) -> Nystroem:
        super().fit(X, y)
        m = len(self.entries_["landmarks"])
        if isinstance(self.landmarks, str) and _num_samples(X) < self.n_components:
            warnings.warn(
                f"n_components={self.n_components} landmarks were requested, but there are only {m} rows; "
                f"all of them are used",
                UserWarning,
                stacklevel=2,
            )
        return self

    def prepare(self, X: Any, seed: int) -> Entries:
        entries = self.kernel_entries(X)
        kernel = self.resolved(entries)
        S = self._landmarks(kernel, X, seed)
        tolerance = np.finfo(S.dtype if X is None else X.dtype).eps ** (2 / 3)
        return {"landmarks": S, "projection": projection(gram(kernel, S), self._rank(len(S)), tolerance), **entries}

    def schema(self, entries: Entries, d: int) -> Schema:
        m, columns = length(entries, "landmarks"), length(entries, "landmarks", 1)
        rank = length(entries, "projection", 1)
        if not (m >= 1 and 1 <= columns <= d and 1 <= rank <= m):
            raise ValueError(f"{m} landmarks of width {columns} do not make {rank} features of rows of width {d}")
        rows = Array((m, columns), ("float64", "float32"))
        return {"landmarks": rows, "projection": Array((m, rank)), **self.kernel_schema()}

    def width(self, entries: Entries, d: int) -> int:
        return entries["projection"].shape[1]

    def build(self, entries: Entries, d: int, dtype: Any) -> NystroemMapping:
        S = entries["landmarks"]
        if S.shape[1] > d:
            raise ValueError(f"the landmarks have {S.shape[1]} columns, but the rows have only {d}")
        # Columns that appeared after the landmarks were chosen are zero in them.
        S = np.pad(S, ((0, 0), (0, d - S.shape[1]))).astype(dtype)
        P = np.ascontiguousarray(entries["projection"], dtype=dtype)
        kernel = self.resolved(entries)
        cls = GaussianNystroemMapping if type(kernel) is kernels.Gaussian else NystroemMapping
        return cls(kernel, S, P)

    def _landmarks(self, kernel: Any, X: Any, seed: int) -> np.ndarray:
        if isinstance(self.landmarks, str):
            m = self.rows_wanted
            if self.rank is not None and whole("rank", self.rank) > m:
                raise ValueError(f"rank={self.rank} exceeds n_components={m}")
            S = X[landmarks.choose(self.landmarks, kernel, X, m, generator(seed, SeedStream.MAP))]
            return S.toarray() if sparse.issparse(S) else S
        S = check_array(self.landmarks, accept_sparse="csr", dtype=FLOATS, input_name="landmarks")
        if X is not None and S.shape[1] != X.shape[1]:
            raise ValueError(f"landmarks have {S.shape[1]} columns, but the rows have {X.shape[1]}")
        kernel.check(S)
        if self.rank is not None and whole("rank", self.rank) > S.shape[0]:
            raise ValueError(f"rank={self.rank} exceeds the number of landmarks, {S.shape[0]}")
        return S.toarray() if sparse.issparse(S) else S.copy()

    def _rank(self, m: int) -> int:
        return m if self.rank is None else min(self.rank, m)


def gram(kernel: Any, S: np.ndarray) -> np.ndarray:
    """Kernel values of landmarks S (m, d) with each other, (m, m), in float64."""
    S = S.astype(np.float64)
    return kernel.pairwise(S, S)


def projection(K: np.ndarray, rank: int, tolerance: float) -> np.ndarray:
    """``V_k D_k^-1/2`` (m, k) of the Gram matrix of the landmarks, top eigenpair first; k <= rank after the cut."""
    D, V = largest_eigenpairs(K, rank)
    D, V = D[::-1], V[:, ::-1]
    keep = D / max(D[0], np.finfo(float).tiny) > tolerance
    if not keep.any():  # a Gram matrix of zeros: one feature that is always 0
        return np.zeros((len(K), 1))
    return np.ascontiguousarray(V[:, keep] / np.sqrt(D[keep]))


def largest_eigenpairs(K: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest ``rank`` eigenvalues of a symmetric K (m, m), in ascending order, and their vectors (m, rank).

    Divide and conquer finds all vectors of a tridiagonal matrix in less time than an eighth of them take one by one;
    only those that are wanted become vectors of K.
    """
    m = len(K)
    unit = float(np.asarray_chkfinite(max(K.max(), -K.min()))) or 1.0
    K = K / unit  # in tiny units LAPACK is slow, or loses digits
    if m < 16 or 8 * rank < m or not hasattr(lapack, "dstevd"):  # new in SciPy 1.16
        D, V = eigh(K, subset_by_index=(m - rank, m - 1))
    else:
        A, d, e, tau, _ = lapack.dsytrd(K.T, lower=1, lwork=32 * m, overwrite_a=1)
        D, V, failed = lapack.dstevd(d, e)
        if failed:
            raise np.linalg.LinAlgError("the eigenvalues did not converge")
        D, V = D[m - rank :], np.asfortranarray(V[:, m - rank :])
        V[1:] = lapack.dormqr("L", "N", A[1:, :-1], tau, V[1:], 32 * rank)[0]
    return D * unit, V
