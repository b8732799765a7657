"""A change of outputs: what becomes of a model with one score per class when a class appears."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Change:
    """Outputs f (C_old,) become T f, every row of T (C_new, C_old) having at most one entry that is not 0.

    Attributes
    ----------
    source : (C_new,) int
        The old output that a new one comes from; 0 where there is none.
    factor : (C_new,)
        What it is multiplied by; 0 for a new output.
    before : int
        C_old.
    coming : int
        How many outputs there will be after the call, where that is known: room for them can be made at once.
    """

    source: np.ndarray
    factor: np.ndarray
    before: int
    coming: int = 0

    @classmethod
    def of(cls, T: np.ndarray) -> Change:
        """From the matrix."""
        source = np.abs(T).argmax(axis=1)
        return cls(source, T[np.arange(len(T)), source].astype(float), T.shape[1])

    def __len__(self) -> int:
        return len(self.source)

    @property
    def fresh(self) -> np.ndarray:
        """Which outputs are new, (C_new,) bool."""
        return self.factor == 0

    @property
    def sign(self) -> np.ndarray:
        """Of the factors, (C_new,)."""
        return np.sign(self.factor)

    def rows(self, A: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
        """``T diag(scale) A`` for A (C_old, ...), a new array."""
        factor = self.factor if scale is None else self.factor * scale[self.source]
        out = A.take(self.source, axis=0)
        for c in np.flatnonzero(factor != 1.0):
            out[c] = A[self.source[c]] * A.dtype.type(factor[c]) if factor[c] else 0
        return out
