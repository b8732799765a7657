"""Rows: dense arrays or CSR matrices, checked when they come in, cut, stacked, and packed into a flat state."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.sparse as sp

from .checks import few

#: Rows, targets and weights stay below 2 to this, by the type of the model: sums of their squares stay finite.
MODERATE = {"float64": 500, "float32": 50}
CANONICAL, UNORDERED, BROKEN_ROWS, BROKEN_COLUMNS = range(4)


def csr_form_by_numpy(indices: np.ndarray, indptr: np.ndarray, d: int, stored: int) -> int:
    """Form of a CSR matrix with d columns and room for ``stored`` entries: one of the four above."""
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any() or indptr[-1] > stored:
        return BROKEN_ROWS
    used = indices[: indptr[-1]]
    if len(used) and not 0 <= used.min() <= used.max() < d:
        return BROKEN_COLUMNS
    rises = np.append(used[1:] > used[:-1], True)
    ends = indptr[1:]
    rises[ends[ends > 0] - 1] = True  # the next index is of another row
    return CANONICAL if rises.all() else UNORDERED


try:
    from ._core import csr_form
except ImportError:  # installed without the compiled core
    csr_form = csr_form_by_numpy

_LARGEST = np.iinfo(np.int32).max

Rows = Any  # np.ndarray (n, d), or a scipy CSR matrix / array of that shape, or a torch tensor for the torch engine


def is_tensor(X: Any) -> bool:
    """Whether X is a torch tensor; torch is not imported for it."""
    return "torch" in sys.modules and isinstance(X, sys.modules["torch"].Tensor)


def host(X: Any) -> Any:
    """A torch tensor as an array in this machine's memory; anything else as it is."""
    return X.detach().cpu().numpy() if is_tensor(X) else X


def is_pandas(rows: Any) -> bool:
    """Whether rows are a data frame of pandas, which is not imported for it."""
    return type(rows).__module__.partition(".")[0] == "pandas"


def is_series(rows: Any) -> bool:
    """Whether rows are a Series of pandas or polars: one row, or one column."""
    return type(rows).__name__ == "Series" and hasattr(rows, "to_frame")


def check_names(frame: Any) -> None:
    """ValueError where columns of a data frame share a name."""
    if is_pandas(frame) and hasattr(frame, "columns"):
        names = [str(name) for name in frame.columns]
        twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        if twice:
            raise ValueError(
                f"the data frame has more than one column named {few(map(repr, twice))}: "
                "give each its own name, or drop all but one"
            )


def unmasked(array: Any) -> Any:
    """A masked array with a gap (NaN, None among words) in every masked place; anything else as it is."""
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if not np.ma.is_masked(array):
        return np.asarray(array)
    if array.dtype.kind in "fiub":
        return np.ma.filled(array.astype(np.result_type(array.dtype, np.float32)), np.nan)
    return np.ma.filled(array.astype(object), None)


def native(array: Any) -> Any:
    """An array of numbers or strings in this machine's byte order, without a mask; anything else as it is."""
    array = unmasked(array)
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    return array


def is_canonical(X: Any) -> bool:
    """Whether a CSR matrix is sound and in the form that :func:`canonical` gives."""
    data, indices, indptr = X.data, X.indices, X.indptr
    if not (type(indices) is type(indptr) is np.ndarray and indices.dtype == indptr.dtype == np.int32):
        return False
    if indptr.shape != (X.shape[0] + 1,) or not len(indices) == len(data) == indptr[-1]:
        return False
    return csr_form(indices, indptr, X.shape[1], len(indices)) == CANONICAL


def canonical(X: Any) -> Any:
    """A sparse matrix as CSR in the one form that the library works with; ValueError if it is unsound.

    Column indices rise strictly within a row, indices are int32 (int64 where that is too small), and all is in this
    machine's byte order: a model does not depend on how a matrix came. The caller's matrix is never changed; what is in
    this form already is returned as it is.
    """
    if X.ndim != 2:
        return X  # the check of the shape comes later
    if X.format != "csr":
        _check_other(X)  # scipy's conversions trust the indices
        X = X.tocsr()
    elif type(X) in (sp.csr_array, sp.csr_matrix) and X.data.dtype.isnative and is_canonical(X):
        return X
    n, d = X.shape
    data, indices, indptr = (native(np.asarray(part)) for part in (X.data, X.indices, X.indptr))
    form, indices, indptr = _form(indices, indptr, n, d, data)
    if form == BROKEN_ROWS:
        raise ValueError(
            f"X is not a valid CSR matrix: indptr must have {n + 1} entries that start with 0, never decrease, and end "
            f"within the {min(len(data), len(indices))} stored values"
        )
    if form == BROKEN_COLUMNS:
        raise ValueError(f"X is not a valid CSR matrix: a column index is not in 0 ... {d - 1}")
    nnz = int(indptr[-1])
    kind = np.int32 if max(nnz, d) <= _LARGEST else np.int64
    out = sp.csr_array(
        (data[:nnz], indices[:nnz].astype(kind, copy=False), indptr.astype(kind, copy=False)), shape=(n, d)
    )
    if form == UNORDERED:
        out = out.copy()
        out.sum_duplicates()
    return out


def _form(
    indices: np.ndarray, indptr: np.ndarray, n: int, d: int, data: np.ndarray
) -> tuple[int, np.ndarray, np.ndarray]:
    """Form of a CSR matrix, and its indices as arrays of one type of integers."""
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu" or indices.ndim != 1 or data.ndim != 1:
        raise ValueError("X is not a valid CSR matrix: indices and indptr must be arrays of integers, data of numbers")
    if indptr.shape != (n + 1,):
        return BROKEN_ROWS, indices, indptr
    if not (indices.dtype == indptr.dtype and indices.dtype in (np.int32, np.int64)):
        indices, indptr = indices.astype(np.int64), indptr.astype(np.int64)
    indices, indptr = np.ascontiguousarray(indices), np.ascontiguousarray(indptr)
    return csr_form(indices, indptr, d, min(len(data), len(indices))), indices, indptr


def _check_other(X: Any) -> None:
    """ValueError for indices outside the matrix, in the other forms that have indices."""
    n, d = X.shape
    sound = True
    if X.format in ("csc", "bsr"):
        data, blocks = X.data, (1, 1) if X.format == "csc" else X.data.shape[1:]
        across, along = (n, d) if X.format == "csc" else (d // blocks[1], n // blocks[0])
        flat = data if data.ndim == 1 else data[:, 0, 0]
        form, _, _ = _form(native(np.asarray(X.indices)), native(np.asarray(X.indptr)), along, across, flat)
        sound = form in (CANONICAL, UNORDERED)
    elif X.format == "coo" and X.nnz:
        sound = all(index.min() >= 0 and index.max() < size for index, size in zip((X.row, X.col), X.shape))
        sound = sound and len(X.row) == len(X.col) == len(X.data)
    if not sound:
        raise ValueError(
            f"X is not a valid {X.format.upper()} matrix: an index lies outside its {n} rows and {d} columns"
        )


def concat(parts: list[Rows]) -> Rows:
    """Rows of all parts, in order; dense as soon as one part is dense. Never an alias of a part."""
    if all(sp.issparse(part) for part in parts):
        return sp.vstack(parts, format="csr")
    return np.concatenate([part.toarray() if sp.issparse(part) else np.asarray(part) for part in parts])


def padded(X: Rows, width: int) -> Rows:
    """Rows with columns of zeros up to a width; other arrays likewise, at the end of their last axis."""
    if X.shape[-1] == width:
        return X
    if not sp.issparse(X):
        return np.pad(X, [(0, 0)] * (X.ndim - 1) + [(0, width - X.shape[-1])])
    return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def take(X: Any, at: Any) -> Any:
    """Some rows of a matrix, a tensor, a data frame or a list, by an array of their numbers or by a slice."""
    if isinstance(at, np.ndarray):
        if is_tensor(X):
            return X[sys.modules["torch"].from_numpy(at).to(X.device)]
        if isinstance(X, list):
            return [X[i] for i in at.tolist()]
    return X.iloc[at] if hasattr(X, "iloc") else X[at]


def merged(
    X: Rows, Y: np.ndarray, weight: np.ndarray | None, also: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
    """Equal rows (n, d) as one: the first of each, mean targets, sums of weights, and which one each row became.

    Squared losses of targets Y (n, outputs) are those of their mean, up to a constant. Rows that differ in ``also``,
    (n, ...), are not equal.
    """

    def content(i: int) -> bytes:
        own = b"" if also is None else also[i].tobytes()
        if sp.issparse(X):
            part = slice(X.indptr[i], X.indptr[i + 1])
            return X.indices[part].tobytes() + X.data[part].tobytes() + own
        return X[i].tobytes() + own

    place: dict[bytes, int] = {}
    group = np.array([place.setdefault(content(i), len(place)) for i in range(len(Y))], np.int64)
    first = np.unique(group, return_index=True)[1]
    if len(first) == len(Y):
        return first, Y, weight, group
    total = np.bincount(group, weights=weight).astype(np.float64)
    away = (Y - Y[first][group]) * (1.0 if weight is None else weight[:, None])  # 0 for equal targets
    sums = np.stack([np.bincount(group, weights=column) for column in away.T], axis=1)
    return first, Y[first] + sums / np.where(total > 0, total, 1.0)[:, None], total, group


def divided(X: Rows, width: np.ndarray) -> Rows:
    """Rows with every column divided by its width, in their own type."""
    return sp.csr_array(X.multiply(1 / width.astype(X.dtype))) if sp.issparse(X) else X / width.astype(X.dtype)


def bounds(X: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest value of every column, (d,) and (d,) float64; zeros that sparse rows do not store count."""
    low, high = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        low, high = low.todense(), high.todense()
    return np.asarray(low, np.float64).ravel(), np.asarray(high, np.float64).ravel()


def column_ranges(X: Rows) -> np.ndarray:
    """Largest less least value of every column, (d,); 1 for a column that does not vary."""
    return width_between(*bounds(X))


def width_between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """``high - low`` of columns, (d,); 1 where they are equal, since columns are divided by it."""
    return np.where(high > low, high - low, 1.0)


def dense(X: Rows) -> np.ndarray:
    """The same rows as a dense array."""
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def pack(prefix: str, X: Rows) -> dict[str, Any]:
    """Entries of a flat state that hold X: one array, or the CSR triple and the width."""
    if not sp.issparse(X):
        return {prefix: np.array(X, order="C")}
    return {
        f"{prefix}_data": X.data.copy(),
        f"{prefix}_indices": X.indices.copy(),
        f"{prefix}_indptr": X.indptr.copy(),
        f"{prefix}_width": int(X.shape[1]),
    }


def unpack(prefix: str, state: dict[str, Any]) -> Rows | None:
    """Inverse of :func:`pack`; None when the state holds no such rows."""
    if prefix in state:
        return state[prefix]
    if f"{prefix}_data" not in state:
        return None
    indptr = state[f"{prefix}_indptr"]
    shape = (len(indptr) - 1, state[f"{prefix}_width"])
    return sp.csr_array((state[f"{prefix}_data"], state[f"{prefix}_indices"], indptr), shape=shape)


def drop(prefix: str, state: dict[str, Any]) -> None:
    """Remove the entries written by :func:`pack`."""
    for suffix in ("", "_data", "_indices", "_indptr", "_width"):
        state.pop(prefix + suffix, None)
