"""Random binning features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernelstream.checks import whole
from kernelstream.core import grids as _grids
from kernelstream.core.cell_matrix import CellMatrix
from kernelstream.core.cells import ops
from kernelstream.core.threads import get_num_threads
from kernelstream.features._base import Entries, KernelMap, Mapping
from kernelstream.random import seed_from
from kernelstream.settings import MOST_THREADS


@dataclass(eq=False, repr=False)
class RandomBinning(KernelMap):
    r"""Random binning features of a product kernel with a convex profile: sparse, one entry per grid.

    Grid r cuts coordinate j into cells of pitch :math:`\delta_{rj}` from an offset :math:`u_{rj}`; a row's feature is
    the indicator of its cell,

    .. math:: z_r(x) = R^{-1/2}\, e_{c_r(x)}, \qquad c_r(x) = (\lfloor (x_j - u_{rj}) / \delta_{rj} \rfloor)_{j=1..d},

    with :math:`\delta` drawn from a density proportional to :math:`\delta\, k''(\delta)` (for the Laplacian kernel
    Gamma(2, 1/gamma)) and u uniform in :math:`[0, \delta]`. Two rows share a cell with probability k(x, x'), so
    :math:`E\, z(x)'z(x') = k(x, x')` [1]_. Linear models on these features reach the accuracy of the kernel with far
    fewer grids than they would need frequencies [2]_.

    Parameters
    ----------
    kernel : str or kernel object, default "laplacian"
        A kernel with ``pitches``: "laplacian", or :class:`~kernelstream.kernels.Convex` with a profile of yours.
    n_components : int, default 128
        Number R of grids, and of entries per row.
    gamma : float, "scale", "median" or None, default None
        Bandwidth of a kernel given by name; None means "median". With a kernel object it must be None.
    n_columns : int or None, default None
        None gives every cell met in ``fit`` a column of its own; cells first met in ``transform`` are left out. A
        number is a bound for streams: each grid hashes its cells into ``n_columns // R`` columns, nothing has to be
        remembered, and cells may share a column.
    random_state : int, RandomState, Generator or None, default None

    Attributes
    ----------
    entries_ : dict
        Seed and estimated bandwidth: with the parameters, all it takes to draw the grids again.
    cells_ : (D,) uint64 array
        Names of the cells that have a column, in the order of the columns (empty with ``n_columns``).
    starts_ : (R + 1,) int64 array
        Where the columns of each grid begin.

    Notes
    -----
    A cell's d indices are hashed to 64 bits, of which a table of the cells of one grid compares 40 and uses others to
    choose the place: two different cells are taken for one about once in 2^39 look-ups.
    With the same seed, a larger ``n_components`` keeps the grids of a smaller one and adds to them.

    References
    ----------
    .. [1] Rahimi, Recht: Random features for large-scale kernel machines, NeurIPS 2007.
    .. [2] Wu, Yen, Chen, Yan: Revisiting random binning features: fast convergence and strong parallelizability,
       KDD 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.features import RandomBinning
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> Z = RandomBinning(gamma=0.5, n_components=20000, random_state=0).fit_transform(X)
    >>> Z.getnnz(axis=1)
    array([20000, 20000, 20000], dtype=int32)
    >>> print(f"{(Z @ Z.T)[0, 1]:.2f}, exactly {np.exp(-0.5):.2f}")
    0.61, exactly 0.61
    """

    name: ClassVar[str] = "binning"

    kernel: Any = "laplacian"
    n_components: int = 128
    gamma: float | str | None = None
    n_columns: int | None = None
    random_state: Any = None

    def build(self, entries: Entries, d: int, dtype: Any) -> Mapping:
        raise ValueError(
            "RandomBinning makes sparse features, which learners on dense features cannot use; "
            "use BinningClassifier or BinningRegressor, for streams CellsClassifier or …Regressor with grids='hashed'"
        )

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """``fit(X).transform(X)``, going through the rows once.

        Parameters
        ----------
        X : (n, d) array or CSR
        y : ignored

        Returns
        -------
        (n, D) CSR matrix
        """
        X = self._validate(X, reset=True)
        return self._fit(X).tocsr(X.dtype)

    def transform(self, X: Any) -> Any:
        """Features of the rows of X.

        Parameters
        ----------
        X : (n, d) array or CSR

        Returns
        -------
        (n, D) CSR matrix
            R entries ``1/sqrt(R)`` per row, fewer where a row falls in cells that ``fit`` did not meet.
        """
        single = getattr(X, "dtype", None) == np.float32
        return self.cells(X).tocsr(np.float32 if single else np.float64)

    def cells(self, X: Any) -> CellMatrix:
        """The features of the rows of X as a matrix of column numbers; its ``index`` is (n, R).

        Parameters
        ----------
        X : (n, d) array or CSR
        """
        check_is_fitted(self, "entries_")
        X = self._validate(X, reset=False)
        grids = self._grids(X.dtype)
        if self.n_columns is not None:
            cells = ops.bucket_cells(X, grids, self._width(), most_threads())
            return CellMatrix(cells, self.starts_, ops, most_threads())
        if "table" not in self._cache:
            self._cache["table"] = ops.cell_table(self.cells_, self.starts_)
        cells = ops.find_cells(X, grids, self._cache["table"], most_threads())
        return CellMatrix(cells, self.starts_, ops, most_threads(), missing=True)

    def _fit(self, X: Any) -> CellMatrix:
        """Draw the grids and give a column to every cell of the rows of X."""
        R = whole("n_components", self.n_components)
        width = self._width()
        entries = self.prepare(X, seed_from(self.random_state))
        grids = _grids.draw(self.resolved(entries), entries["seed"], X.shape[1], R, X.dtype)
        if width:
            cells, keys = ops.bucket_cells(X, grids, width, most_threads()), np.empty(0, np.uint64)
            starts = width * np.arange(R + 1, dtype=np.int64)
        else:
            cells, keys, starts = ops.number_cells(X, grids, most_threads())
        self.entries_, self.cells_, self.starts_ = entries, keys, starts
        self._cache: dict[str, Any] = {}  # derived, never saved
        return CellMatrix(cells, starts, ops, most_threads())

    def _grids(self, dtype: Any) -> _grids.Grids:
        kernel = self.resolved(self.entries_)
        return _grids.draw(kernel, self.entries_["seed"], self.n_features_in_, len(self.starts_) - 1, dtype)

    def _width(self) -> int:
        """Columns per grid when they are hashed, else 0."""
        n_columns, n_grids = self.n_columns, self.n_components
        if n_columns is None:
            return 0
        if whole("n_columns", n_columns) < n_grids:
            raise ValueError(
                f"n_columns={n_columns} leaves less than one column for each of n_components={n_grids} grids"
            )
        if n_columns // n_grids >= 2**31:
            raise ValueError(f"n_columns={n_columns} is more than 2^31 columns a grid")
        return n_columns // n_grids

    @property
    def _n_features_out(self) -> int:
        return int(self.starts_[-1])

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {**state, "_cache": {}} if "_cache" in state else state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "entries_")


def most_threads() -> int:
    """Threads of one loop over grids."""
    return min(get_num_threads(), MOST_THREADS)
