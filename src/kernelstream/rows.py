"""Rows: dense arrays or CSR matrices, cut, stacked, and packed into a flat state."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.sparse as sp

#: Rows, targets and weights stay below 2 to this, by the type of the model: sums of their squares stay finite.
MODERATE = {"float64": 500, "float32": 50}

Rows = Any  # np.ndarray (n, d), or a scipy CSR matrix / array of that shape, or a torch tensor for the torch engine


def is_tensor(X: Any) -> bool:
    """Whether X is a torch tensor; torch is not imported for it."""
    return "torch" in sys.modules and isinstance(X, sys.modules["torch"].Tensor)


def host(X: Any) -> Any:
    """A torch tensor as an array in this machine's memory; anything else as it is."""
    return X.detach().cpu().numpy() if is_tensor(X) else X


def concat(parts: list[Rows]) -> Rows:
    """Rows of all parts, in order; dense as soon as one part is dense. Never an alias of a part."""
    if all(sp.issparse(part) for part in parts):
        return sp.vstack(parts, format="csr")
    return np.concatenate([part.toarray() if sp.issparse(part) else np.asarray(part) for part in parts])


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
