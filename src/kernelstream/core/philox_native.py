"""Normal numbers from counters, compiled; see :mod:`kernelstream.core.philox`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .philox import SEED_MASK


def normals(
    seed: int, block: int, rows: np.ndarray, D: int, stream: int = 0, scale: float = 1.0, dtype: Any = np.float32
) -> np.ndarray:
    """Rows of a block of an endless array of normal numbers, the same bits as those of the python engine."""
    out = np.empty((len(rows), D), dtype)
    _core.philox_normals(seed & SEED_MASK, block, stream, np.ascontiguousarray(rows, np.int64), scale, out)
    return out
