"""Buffers of the native engine."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

_local = threading.local()


def workspace(name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array that the next call with the same name, in this thread, may reuse.

    A fresh array of a block's size costs a page fault every 4 kB, which is more than the arithmetic.
    """
    buffers = _local.__dict__
    size = math.prod(shape)
    held = buffers.get(name)
    if held is None or held.size < size or held.dtype != dtype:
        held = buffers[name] = np.empty(size, dtype)
    return held[:size].reshape(shape)
