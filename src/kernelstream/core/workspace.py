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


def on_lines(shape: tuple[int, ...]) -> np.ndarray:
    """An array of doubles that begins at a line of the processor's cache: vectors of AVX-512 are as long as one."""
    held = np.empty(math.prod(shape) + 8)
    start = -held.ctypes.data // 8 % 8
    return held[start : start + math.prod(shape)].reshape(shape)
