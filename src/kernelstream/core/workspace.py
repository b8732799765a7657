"""Buffers of the native engine."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

LINE = 64  # bytes of a cache line

_local = threading.local()


def workspace(name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array that the next call with the same name, in this thread, may reuse.

    A fresh array of a block's size costs a page fault every 4 kB, which is more than the arithmetic.
    """
    buffers = _local.__dict__
    size = math.prod(shape)
    held = buffers.get(name)
    if held is None or held.size < size or held.dtype != dtype:
        held = buffers[name] = on_lines((size,), dtype)
    return held[:size].reshape(shape)


def on_lines(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """An array that begins at a cache line: vectors of AVX-512 are as long as one."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    held = np.empty(size + LINE, np.uint8)
    start = -held.ctypes.data % LINE
    return held[start : start + size].view(dtype).reshape(shape)
