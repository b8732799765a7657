"""A change of outputs: what becomes of a model with one score per class when a class appears."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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
    def added(cls, place: int, before: int, coming: int) -> Change:
        """A new output at a place among those there are."""
        source, factor = np.arange(before + 1), np.ones(before + 1)
        source[place:] -= 1
        source[place], factor[place] = 0, 0.0
        return cls(source, factor, max(before, 1), coming)

    def __len__(self) -> int:
        return len(self.source)

    @cached_property
    def fresh(self) -> np.ndarray:
        """Which outputs are new, (C_new,) bool."""
        return self.factor == 0

    @cached_property
    def sign(self) -> np.ndarray:
        """Signs of the factors, (C_new,)."""
        return np.sign(self.factor)

    def rows(self, A: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
        """``T diag(scale) A`` for A (C_old, ...), a new array."""
        factor = self.factor if scale is None else self.factor * scale[self.source]
        out = A.take(self.source, axis=0)
        for c in np.flatnonzero(factor != 1.0):
            out[c] = A[self.source[c]] * A.dtype.type(factor[c]) if factor[c] else 0
        return out
