"""The torch engine: what runs on a device; everything else is left to the CPU engine."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from ...core import threads
from ...passes.doubly.device import DeviceDescent, DeviceFeatureBlocks
from ...rows import dense, is_tensor
from .. import processor

NAME = "torch"
UNCOMPILED_ROWS = 128  # calls up to this length compile no program: many streams begin with short ones
# A GPU call takes 1.5 to 2 ms, however small it is. A CPU takes about as long for SMALL_WORK products, and makes and
# learns one feature of a row of d columns in about the time of d + 32 of them.
FEATURE_PRODUCTS, SMALL_WORK = 32, 1 << 23
GRAMS = 4  # matrices of the size of a Gram matrix that its factorisation may need
SCORED_FEATURES = 1 << 24  # features in float64 that exist at the same time where rows are scored

#: More functions of the engine, by the modules that have them; each takes the engine as its first argument.
IN_MODULES = {
    "device_map": ("maps", "on_device"),
    "doubly_blocks": ("doubly", "BlockFeatures"),
    "doubly_training": ("doubly", "training"),
    "feature_pass": ("switch", "SwitchedPass"),
    "kernel_blocks": ("kernel_blocks", "DeviceKernelBlocks"),
    "kernel_factor": ("kernel_blocks", "DeviceFactor"),
    "least_squares": ("ridge", "DeviceRecursion"),
    "metric_function": ("metric", "DeviceFunction"),
    "metric_matrix": ("metric", "matrix"),
    "metric_systems": ("metric", "DeviceSystems"),
    "ridge_trials": ("ridge_trials", "trials"),
    "row_matrix": ("kernel_blocks", "row_matrix"),
    "rrf_pass": ("rrf", "rrf_pass"),
}


class Ops:
    """Functions of an engine, bound to a device and a precision; see :class:`~kernelstream.engine.TorchEngine`."""

    NAME = NAME
    on_device = True
    FeatureBlocks = DeviceFeatureBlocks
    Descent = DeviceDescent

    def __init__(self, device: str | None, precision: str, block: int):
        try:
            self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
            torch.empty(1, device=self.device)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"device={device!r} cannot be used here: {str(error).splitlines()[0]}") from None
        self.precision, self.block = precision, block
        self.cuda = self.device.type == "cuda"
        self.stands_in = device is None and not self.cuda  # the CPU, because there is no GPU
        self.triton = has_triton()
        self.maps: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # feature maps on the device

    @property
    def host(self) -> Any:
        """The CPU engine."""
        return processor.engine()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in IN_MODULES:
            module, function = IN_MODULES[name]
            return functools.partial(getattr(import_module(f"{__name__}.{module}"), function), self)
        return getattr(self.host, name)

    def all_below(self, X: np.ndarray, exponent: int) -> bool:
        """Whether ``|X| < 2^exponent`` for every entry, by all cores; False for NaN."""
        low, high = torch.aminmax(from_array(X))
        bound = 2.0**exponent if exponent < sys.float_info.max_exp else math.inf
        return bool(low > -bound) and bool(high < bound)

    def plain_rows(self, X: np.ndarray, single: bool, d: int, exponent: int) -> bool:
        """Whether X is a contiguous (n, d) array of float32 or float64, n > 0, with all ``|X| < 2^exponent``."""
        plain = X.ndim == 2 and X.flags.c_contiguous and X.dtype == (np.float32 if single else np.float64)
        return plain and X.shape[1] == d and X.shape[0] > 0 and self.all_below(X, exponent)

    @contextlib.contextmanager
    def products(self) -> Iterator[None]:
        """Context in which matrix products of float32 numbers have the engine's precision."""
        with torch.no_grad(), self.full(self.precision != "float32"):
            yield

    @contextlib.contextmanager
    def full(self, tf32: bool = False) -> Iterator[None]:
        """Context in which products of float32 numbers are not rounded further, unless to ``tf32``."""
        before, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, tf32
        try:
            yield
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    def rounds(self, kind: torch.dtype) -> bool:
        """Whether large products of this type run on tensor cores, in our own programs."""
        return self.cuda and self.triton and kind == torch.float32 and self.precision != "float32"

    def tensor(self, array: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
        """A copy of an array on the device."""
        return from_array(array).to(self.device, dtype, copy=True)

    def is_small(self, n: int, width: int, columns: int) -> bool:
        """Whether the CPU learns n rows of ``width`` features in less time than a GPU call takes."""
        return self.cuda and n * width * (columns + FEATURE_PRODUCTS) <= SMALL_WORK

    def rows(self, X: Any, rows: slice, dtype: torch.dtype) -> torch.Tensor:
        """Rows of a tensor, an array or a CSR matrix, on the device."""
        if is_tensor(X):
            return X[rows].to(self.device, dtype)
        return from_array(dense(X[rows])).to(self.device)

    def cuts(self, n: int, width: int) -> list[slice]:
        """Blocks of rows for scoring, whose features fit in a part of the memory."""
        return threads.cuts(n, max(self.block, SCORED_FEATURES // width))

    def feature_rows(self, mapping: Any, X: Any, cuts: list[slice] | None, intercept: bool) -> Iterator[Any]:
        """``(rows, Z)`` block by block, Z in float64 on the device; with ``intercept`` a constant comes first."""
        device_map = self.device_map(mapping)
        device_map.look(X)
        with self.products():
            for rows in self.cuts(X.shape[0], device_map.n_out) if cuts is None else cuts:
                Z = device_map(self.rows(X, rows, device_map.dtype)).double()
                yield rows, torch.nn.functional.pad(Z, (1, 0), value=1.0) if intercept else Z

    def room_for_rows(self, itemsize: int) -> int:
        """How many rows may have a Gram matrix of their own, with its factor, on the device."""
        return math.isqrt(torch.cuda.mem_get_info(self.device)[0] // (GRAMS * itemsize)) if self.cuda else 0

    def map_times(self, mapping: Any, X: Any, weights: np.ndarray) -> np.ndarray:
        """``Z A`` of features Z, weights A (P, C), in float64, block by block; few rows are left to the CPU."""
        if self.is_small(X.shape[0], mapping.n_out, X.shape[1]):
            return self.host.map_times(mapping, X, weights)
        A = self.tensor(weights).double()
        scores = np.empty((X.shape[0], weights.shape[1]))
        for rows, Z in self.feature_rows(mapping, X, None, False):
            scores[rows] = (Z @ A).cpu().numpy()
        return scores


def from_array(array: Any) -> torch.Tensor:
    """A tensor of an array's numbers, in place where torch allows it."""
    array = np.ascontiguousarray(array)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


@functools.cache
def has_triton() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None
