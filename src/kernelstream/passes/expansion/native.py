"""Kernel expansions in the native engine: blocks of kernel values, and the passes over numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

from ... import _core
from ...budgets import Merge
from ...budgets.projection import REFRESH, refresh
from ...core.blas import BLAS
from ...core.threads import cuts
from ...core.workspace import on_lines, workspace
from ...kernels import Gaussian, Kernel
from ...rows import Rows
from ...state import undo as _undo
from ...state.nested import State
from ...updates import PassiveAggressive
from ..linear.native import spec as make_spec
from ..spec import Spec, Told
from . import python as _expansion_python
from .rows import SparseRows, WideRows

LARGE = 256  # support vectors from which a fixed inverse is worth its memory, and foresight while the set grows
ROWS_SOLVED_TOGETHER = 8  # rows of a block from which it pays to foresee which of them will act
ROWS_WHILE_GROWING = 64  # the same while the set grows
MANY_ACT = 128  # vectors, times the share of rows that act, from which it is as well to solve all rows of a block
SOLVED = 512  # rows handled at once from then on: the inverse is read once for all of them that act
WIDE = 4096  # columns up to which sparse rows are multiplied through dense tiles
CHUNK = 512  # support vectors per product when only scores are wanted


class BlockExpansion:
    """Kernel values between blocks of rows and the support set of a state.

    The Gaussian kernel takes one product per block; for sparse rows a copy of the support vectors is kept in tiles.
    All that is kept here follows from the state.
    """

    block = 128  # rows handled at once

    def __init__(self, kernel: Kernel, state: State):
        self.kernel = kernel
        self.gaussian = type(kernel) is Gaussian
        self.norms = np.zeros(0)
        self.tiles: np.ndarray | None = None
        self.inverse: np.ndarray | None = None
        self.entries: Any = None  # the support vectors by their entries, where rows are wide

    def cut(self, X: Rows, rows: slice) -> Any:
        """The rows of a block."""
        if not (self.gaussian and sp.issparse(X)):
            return X[rows]
        norms = np.empty(rows.stop - rows.start, X.dtype)
        block = (SparseRows if X.shape[1] <= WIDE else WideRows)(X, rows, norms)
        _core.csr_norms(block.csr, X.shape[1], norms)
        return block

    def columns(self, X: Any, state: State) -> np.ndarray:
        """K (m, capacity): kernel values with the support vectors; only the first ``n_support`` columns count."""
        n, support = state["n_support"], state["support"]
        K = workspace("K", (X.shape[0], len(support)), support.dtype)
        if n == 0:
            return K
        self._values(X, state, slice(0, n), K[:, :n])
        return K

    def _values(self, X: Any, state: State, part: slice, K: np.ndarray) -> None:
        """K (m, n): kernel values with some support vectors."""
        support, norms = state["support"][part], self._norms(state) if self.gaussian else self.norms
        if not self._fits(X):
            K[:] = self.kernel.pairwise(X, support)
        elif isinstance(X, WideRows):
            self._entries(state).gaussian(X.csr, X.shape[1], X.norms, part.start, norms[part], self._gamma, K)
        elif isinstance(X, SparseRows):
            _core.gaussian_csr(X.csr, X.norms, self._tiles(state), norms, self._gamma, K)  # all from the first on
        else:
            np.matmul(X, support.T, out=K)
            _core.gaussian_dense(X, squared_norms(X), support, norms[part], self._gamma, K, False)

    def among(self, X: Any) -> np.ndarray:
        """G (m, m): kernel values of the block's rows with each other, on and above the diagonal."""
        m = X.shape[0]
        if not self._fits(X):
            return np.ascontiguousarray(self.kernel.pairwise(X, X))
        G = workspace("G", (m, m), X.norms.dtype if isinstance(X, SparseRows) else X.dtype)
        if isinstance(X, WideRows):
            among, places = _sparse_set(m, G.dtype), np.arange(m)
            among.put(X.csr, X.shape[1], places, places, None)
            among.gaussian(X.csr, X.shape[1], X.norms, 0, X.norms, self._gamma, G)
            np.fill_diagonal(G, 1.0)
        elif isinstance(X, SparseRows):
            width = tile_width(G.dtype)
            tiles = workspace("tiles", (-(-m // width), X.shape[1], width), G.dtype)
            _core.gaussian_csr_among(X.csr, X.norms, tiles, self._gamma, G)
        else:
            norms = squared_norms(X)
            np.matmul(X, X.T, out=G)
            _core.gaussian_dense(X, norms, X, norms, self._gamma, G, True)
        return G

    def scores(self, X: Any, state: State, alpha: np.ndarray) -> np.ndarray:
        """sum_j alpha_cj k(s_j, x) for the rows, alpha (C, n) -> (m, C) float64."""
        n, support = alpha.shape[1], state["support"]
        F = np.zeros((X.shape[0], len(alpha)))
        if n and type(X) is SparseRows:  # values that are added up at once need not be stored
            _core.gaussian_csr_scores(X.csr, X.norms, self._tiles(state), self._norms(state), self._gamma, alpha, F)
            return F
        for part in cuts(n, CHUNK):
            K = workspace("scores", (X.shape[0], part.stop - part.start), support.dtype)
            self._values(X, state, part, K)
            F += K @ alpha[:, part].T
        return F

    def put(self, X: Any, joined: np.ndarray, state: State, start: int) -> None:
        """Rows ``joined`` of the block become the support vectors from ``start`` on."""
        self.replace(X, joined, state, np.arange(start, start + len(joined)))
        slots = slice(start, start + len(joined))
        state["diag"][slots] = 1.0 if self.gaussian else self.kernel.diag(state["support"][slots])

    def replace(self, X: Any, rows: np.ndarray, state: State, slots: np.ndarray) -> None:
        """Rows ``rows`` of the block become the support vectors ``slots``."""
        if isinstance(X, WideRows):
            self._replace_wide(X, rows, state, slots)
            return
        _undo.rows(state["support"], slots)
        if isinstance(X, SparseRows):
            _core.csr_to_slots(X.csr, rows, slots, state["support"], self._tiles(state))
            self._norms(state)[slots] = X.norms[rows]
        else:
            state["support"][slots] = X[rows].toarray() if sp.issparse(X) else X[rows]
            self.changed(state, slots)

    def changed(self, state: State, slots: np.ndarray) -> None:
        """The support vectors ``slots`` of the state are new."""
        if not self.gaussian:
            return
        if self.entries is not None:
            self._entries(state).read(state["support"], slots)
        vectors = state["support"][slots]
        self._norms(state)[slots] = squared_norms(vectors)
        if self.tiles is not None:
            tiles = self._tiles(state)
            width = tiles.shape[2]
            tiles[slots // width, :, slots % width] = vectors

    def fixed_inverse(self, state: State) -> np.ndarray | None:
        """Inverse Gram matrix of a large support set that will not change any more, (n, n).

        One product with it takes a quarter of the time of two triangular solutions; for few vectors it does not matter.
        """
        if "budget_factor" not in state or not state["n_support"] == state["alpha"].shape[1] >= LARGE:
            return None
        if self.inverse is None:
            # the row-major factor L is, read by columns, the upper factor L'
            inverse, info = lapack.dpotri(state["budget_factor"].T, lower=0)
            if info:
                raise np.linalg.LinAlgError("the Gram matrix of the support set is singular")
            self.inverse = np.where(np.tri(len(inverse), dtype=bool), inverse.T, inverse)
            self.block = SOLVED
        return self.inverse

    # ---------------------------------------------------------------- Gaussian kernel
    @property
    def _gamma(self) -> float:
        return float(self.kernel.gamma)

    def _fits(self, X: Any) -> bool:
        """Whether the block goes through the compiled Gaussian kernel."""
        return self.gaussian and not sp.issparse(X)

    def _entries(self, state: State) -> Any:
        """The support vectors by their entries."""
        support = state["support"]
        if self.entries is None or len(self.entries) != len(support):
            self.entries = _sparse_set(len(support), support.dtype)
            self.entries.read(support, np.arange(state["n_support"]))
        return self.entries

    def _replace_wide(self, X: WideRows, rows: np.ndarray, state: State, slots: np.ndarray) -> None:
        """:meth:`replace` for wide rows: of a support vector only what was not zero, or will not be, is written to."""
        count, columns = X.entries(rows)
        new = np.stack([np.repeat(slots, count), columns])
        _undo.rows(state["support"], tuple(np.concatenate([self.filled(state, slots), new], axis=1)))
        self._entries(state).put(X.csr, X.shape[1], rows, slots, state["support"])
        self._norms(state)[slots] = X.norms[rows]

    def filled(self, state: State, slots: np.ndarray) -> np.ndarray:
        """Slots and columns (2, n) of all entries of some support vectors."""
        return np.stack(self._entries(state).entries(slots))

    def blend(self, X: WideRows, state: State, blends: np.ndarray) -> None:
        """:func:`_blend` for wide rows, in the columns that the vectors and rows have which it is about."""
        support, written = state["support"], np.unique(blends[:, 0]).astype(np.int64)
        ends = np.unique(blends[:, 1:3]).astype(np.int64)
        rows, slots = -1 - ends[ends < 0], np.union1d(written, ends[ends >= 0])
        used = np.unique(np.concatenate([self.filled(state, slots)[1], X.entries(rows)[1]]))
        vectors = dict(zip(slots.tolist(), support[np.ix_(slots, used)], strict=True))
        for i in rows.tolist():
            at = slice(X.X.indptr[X.rows.start + i], X.X.indptr[X.rows.start + i + 1])
            vectors[-1 - i] = np.zeros(len(used), support.dtype)
            vectors[-1 - i][np.searchsorted(used, X.X.indices[at])] = X.X.data[at]
        for slot, a, b, h in blends:
            mixed = vectors[a] if h == 1.0 else h * vectors[a] + (1 - h) * vectors[b]
            vectors[int(slot)] = mixed.astype(support.dtype, copy=False)
        made = sp.csr_array(np.stack([vectors[slot] for slot in written.tolist()]))
        csr = made.data, used[made.indices].astype(np.int64), made.indptr.astype(np.int64)
        norms = np.empty(len(written), support.dtype)
        _core.csr_norms(csr, X.shape[1], norms)
        _undo.rows(support, np.ix_(written, used))
        self._entries(state).put(csr, X.shape[1], np.arange(len(written)), written, support)
        self._norms(state)[written] = norms

    def _norms(self, state: State) -> np.ndarray:
        """||s||^2 of the support vectors, padded to whole tiles."""
        support = state["support"]
        width = tile_width(support.dtype)
        size = -(-len(support) // width) * width
        if len(self.norms) != size or self.norms.dtype != support.dtype:
            self.norms = np.zeros(size, support.dtype)
            self.norms[: len(support)] = squared_norms(support)
        return self.norms

    def _tiles(self, state: State) -> np.ndarray:
        """The support vectors, in tiles (tiles, d, width) with a vector in every column."""
        support = state["support"]
        capacity, d = support.shape
        width = tile_width(support.dtype)
        count = -(-capacity // width)
        held = self.tiles
        if held is None or len(held) != count:
            self.tiles = tiles = on_lines((count, d, width), support.dtype)
            padded = np.zeros((count * width, d), support.dtype)
            padded[:capacity] = support
            tiles[:] = padded.reshape(count, width, d).transpose(0, 2, 1)
        return self.tiles  # type: ignore[return-value]


def _sparse_set(size: int, dtype: Any) -> Any:
    """Room for vectors of very many columns, by their entries."""
    return (_core.SparseSetSingle if dtype == np.float32 else _core.SparseSet)(size)


def squared_norms(X: np.ndarray) -> np.ndarray:
    """``||x||^2`` of dense rows, to the bit what the same rows have in CSR."""
    norms = np.empty(len(X), X.dtype)
    _core.row_norms(X, norms)
    return norms


def tile_width(dtype: Any) -> int:
    """Vectors to a tile."""
    return _core.FLOAT_TILE if np.dtype(dtype) == np.float32 else _core.DOUBLE_TILE


def expansion_pass(
    F: np.ndarray,
    G: np.ndarray,
    targets: Told,
    spec: Spec,
    state: State,
    room: int,
    M: np.ndarray | None = None,
    stop: bool = True,
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Kernel expansion without removal; see the python engine."""
    if spec.core is None:
        return _expansion_python.expansion_pass(F, G, targets, spec, state, room, M, stop)
    joined = np.empty(min(len(F), room), np.int64)
    coefficients = np.empty((len(joined), F.shape[1]))
    decay = np.empty(F.shape[1])
    y, weight, u = targets
    block = {"F": F, "G": G, "M": M, "y": y, "weight": weight, "u": u}
    block |= {"joined": joined, "coefficients": coefficients, "decay": decay}
    consumed, q = _core.expansion_pass(state, block, spec.core, stop)
    return consumed, joined[:q], coefficients[:q], decay


def budget_pass(
    expansion: BlockExpansion, X: Any, Z: np.ndarray | None, targets: Told, state: State, spec: Spec
) -> np.ndarray:
    """Kernel expansion under a budget; see the python engine."""
    merges = isinstance(spec.strategy, Merge)
    if spec.core is None or (merges and not expansion.gaussian):
        return _by_specification(expansion, X, Z, targets, state, spec)
    K, G = expansion.columns(X, state), expansion.among(X)
    m, first, start = len(K), state["t"], 0
    owner = np.full(K.shape[1], -1, np.int64)
    y, weight, u = targets
    block = {"K": K, "G": G, "y": y, "weight": weight, "u": u, "Z": Z, "owner": owner}
    block["scores"] = scores = np.empty((m, len(state["alpha"])))
    inverse = expansion.fixed_inverse(state)
    if inverse is None:
        foreseen = "budget_factor" in state and m >= ROWS_WHILE_GROWING and state["n_support"] >= LARGE
    else:
        block["inverse"], foreseen = inverse, m >= ROWS_SOLVED_TOGETHER
    if foreseen:
        block |= _solve_likely(inverse, K, G, Told(y, weight), state, spec)
    while start < m:
        start, blends = _core.budget_pass(state, block, spec.core, start, first)
        if "budget_basis" in state and state["budget_memory"][0] >= REFRESH:
            refresh(state)
    if merges:
        _blend(expansion, X, state, np.reshape(blends, (-1, 4)))
    else:
        slots = np.flatnonzero(owner >= 0)
        if len(slots):
            expansion.replace(X, owner[slots], state, slots)
    return scores


def _solve_likely(
    inverse: np.ndarray | None, K: np.ndarray, G: np.ndarray, targets: Told, state: State, spec: Spec
) -> State:
    """``solved``: K^-1 k of the rows that will act, or k without a fixed inverse; ``solution``: where each has its own.

    Which rows act is foreseen by a pass that lets them join instead of projecting them: where the support set covers
    the rows well the two hardly differ. Rows it did not foresee (-1) are solved one by one.
    """
    n, m = state["n_support"], len(K)
    F = (K[:, :n] @ state["alpha"][:, :n].T) * state["scale"]
    trial = {"t": state["t"], "memory": state["memory"].copy()}
    if "center" in state:
        trial["center"] = state["center"].copy()
    # a margin error that is projected moves the function like a passive-aggressive step
    margins = spec.strategy is not None and spec.strategy.restless
    joins = make_spec(spec.loss, PassiveAggressive(C=1.0) if margins else spec.update)
    _, rows, _, _ = expansion_pass(F, G, targets, joins, trial, m, stop=False)
    if inverse is None and margins and len(rows) * n >= MANY_ACT * m:
        rows = np.arange(m)  # projections wait until the block ends
    solution = np.full(m, -1)
    solution[rows] = np.arange(len(rows))
    return {"solved": K[rows] if inverse is None else K[rows] @ inverse, "solution": solution, "blas": BLAS}


def _blend(expansion: BlockExpansion, X: Any, state: State, blends: np.ndarray) -> None:
    """Make the merged vectors ``h a + (1 - h) b`` in the order in which they came about."""
    if not len(blends):
        return
    if isinstance(X, WideRows):
        expansion.blend(X, state, blends)
        return
    support = state["support"]
    rows = X.plain() if isinstance(X, SparseRows) else X

    def vector(j: float) -> np.ndarray:
        if j >= 0:
            return support[int(j)]
        i = int(-1 - j)
        return rows[i : i + 1].toarray()[0] if sp.issparse(rows) else rows[i]

    slots = np.unique(blends[:, 0]).astype(np.int64)
    _undo.rows(support, slots)
    for slot, a, b, h in blends:
        support[int(slot)] = vector(a) if h == 1.0 else h * vector(a) + (1 - h) * vector(b)
    expansion.changed(state, slots)


def _by_specification(
    expansion: BlockExpansion, X: Any, Z: np.ndarray | None, targets: Told, state: State, spec: Spec
) -> np.ndarray:
    """The python pass, for parts without a compiled twin and kernels whose values it would have to compute."""
    rows = X.plain() if isinstance(X, SparseRows) else X
    before = state["support"].copy()
    scores = _expansion_python.budget_pass(
        _expansion_python.Expansion(expansion.kernel, state), rows, Z, targets, state, spec
    )
    expansion.changed(state, np.flatnonzero((before != state["support"]).any(axis=1)))
    return scores
