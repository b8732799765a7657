"""The torch engine: what runs on a device; everything else is handed to the engine of the processor."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from scipy.sparse import issparse

from ...core import threads
from ...losses import Loss
from ...passes.doubly.device import DeviceDescent, DeviceFeatureBlocks
from ...rows import dense, host, is_tensor
from ...updates import Update, unwrap

NAME = "torch"
SMALL = 128  # rows of a call for which no program is compiled: a stream begins with few rows when labels appear one
# after the other
# A call of a GPU costs 1.5 to 2 ms whatever is in it. A processor makes and learns a feature of a row in about the time
# of d + 32 products, d the columns; so many products are its 2 ms.
EACH, SMALL_WORK = 32, 1 << 23
GRAMS = 4  # matrices of the size of a Gram matrix that its factorisation may need
TOGETHER = 1 << 24  # features in float64 that exist at the same time where rows are scored


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
        self.stands_in = device is None and not self.cuda  # the processor, because there is no GPU
        self.triton = has_triton()
        self.maps: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # feature maps on the device

    @property
    def host(self) -> Any:
        """The engine of the processor."""
        from .. import get

        return get("auto")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
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
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = self.precision != "float32"
        try:
            with torch.no_grad():
                yield
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Context in which products of float32 numbers are not rounded further."""
        before, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, False
        try:
            yield
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    def rounds(self, kind: torch.dtype) -> bool:
        """Whether large products of such numbers are those of tensor cores, by programs of our own."""
        return self.cuda and self.triton and kind == torch.float32 and self.precision != "float32"

    def tensor(self, array: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
        """A copy of an array on the device."""
        return from_array(array).to(self.device, dtype, copy=True)

    def is_small(self, n: int, width: int, columns: int) -> bool:
        """Whether the processor has learned n rows with so many features before a GPU would have begun."""
        return self.cuda and n * width * (columns + EACH) <= SMALL_WORK

    def feature_pass(self, mapping: Any, loss: Loss, update: Update, state: dict[str, Any]) -> Any:
        """The learner on explicit features, with ``learn``, ``score`` and ``sync``."""
        from .switch import SwitchedPass

        return SwitchedPass(self, mapping, loss, update, state)

    @staticmethod
    def each_row(update: Update, state: dict[str, Any]) -> bool:
        """Whether rows are learned one after the other, since Gram matrices do not tell what an update does."""
        inner, average = unwrap(update)
        return inner.diagonal or average or "w_mean" in state

    def device_pass(self, mapping: Any, loss: Loss, update: Update, state: dict[str, Any]) -> Any:
        """The same with weights that live on the device: one program on a GPU, if it has the formulas."""
        if self.cuda and self.triton:
            from .formulas import program

            known = program(loss, unwrap(update)[0])
            if known is not None:
                from .walk_pass import WalkPass

                return WalkPass(self, mapping, loss, update, state, known)
        if self.each_row(update, state):
            from .each_row import EachRowPass

            return EachRowPass(self, mapping, loss, update, state)
        from .passes import FeaturePass

        return FeaturePass(self, mapping, loss, update, state)

    def rows(self, X: Any, rows: slice, dtype: torch.dtype) -> torch.Tensor:
        """Rows of a tensor, an array or a CSR matrix, on the device."""
        if is_tensor(X):
            return X[rows].to(self.device, dtype)
        return from_array(dense(X[rows])).to(self.device)

    def device_map(self, mapping: Any) -> Any:
        """The device's form of a feature map."""
        from .maps import on_device

        return on_device(self, mapping)

    def cuts(self, n: int, width: int) -> list[slice]:
        """Rows whose features are made at once where they are scored only: what fits in a part of the memory."""
        return threads.cuts(n, max(self.block, TOGETHER // width))

    def feature_rows(self, mapping: Any, X: Any, cuts: list[slice] | None, intercept: bool) -> Iterator[Any]:
        """``(rows, Z)`` block by block, Z in float64 on the device; with ``intercept`` a constant comes first."""
        device_map = self.device_map(mapping)
        device_map.look(X)
        with self.products():
            for rows in self.cuts(X.shape[0], device_map.n_out) if cuts is None else cuts:
                Z = device_map(self.rows(X, rows, device_map.dtype)).double()
                yield rows, torch.nn.functional.pad(Z, (1, 0), value=1.0) if intercept else Z

    def least_squares(self, state: dict[str, Any], rule: Any, forgetting: float) -> Any:
        """The recursion of ridge regression."""
        from .ridge import DeviceRecursion

        return DeviceRecursion(self, state, rule, forgetting)

    def kernel_blocks(self, kernel: Any, X: Any, S: Any, keep: bool = False) -> Any:
        """Products with the kernel matrix of rows and centres."""
        from .kernel_blocks import DeviceKernelBlocks

        return DeviceKernelBlocks(self, kernel, X, S, keep)

    def kernel_factor(self, K: Any, more: float) -> Any:
        """Triangular factors of a Gram matrix on the device, with so much added to its diagonal."""
        from .kernel_blocks import DeviceFactor

        return DeviceFactor(self, K, more)

    def row_matrix(self, kernel: Any, X: Any, more: np.ndarray) -> Any:
        """Gram matrix of all rows, with so much added to its diagonal."""
        from .kernel_blocks import RowMatrix, gram

        return RowMatrix(self, gram(self, kernel, X), more)

    def ridge_trials(self, kernel: Any, host: Any) -> Any:
        """Trials of kernel ridge regression on the device; ``host`` as it is for kernels and rows of the processor."""
        from .kernel_blocks import is_known
        from .ridge_trials import DeviceTrials

        return host if issparse(host.X) or not is_known(kernel) else DeviceTrials(self, host)

    def metric_systems(self, host: Any) -> Any:
        """Systems of metrics on the device."""
        from .metric import DeviceSystems

        return DeviceSystems(self, host)

    def metric_matrix(self, rows: Any, share: float, more: np.ndarray) -> Any:
        """Gram matrix of all rows in a metric, with so much added to its diagonal."""
        from .kernel_blocks import RowMatrix
        from .metric import between

        here: Any = tuple(self.tensor(part) for part in rows)
        return RowMatrix(self, between(here, here, share), more)

    def metric_function(self, rows: Any, share: float, alpha: np.ndarray) -> Any:
        """Kernel functions of all rows in a metric, with coefficients alpha (n, C)."""
        from .metric import DeviceFunction

        return DeviceFunction(self, rows, share, alpha)

    def room_for_rows(self, itemsize: int) -> int:
        """How many rows may have a Gram matrix of their own, with its factor, on the device."""
        return math.isqrt(torch.cuda.mem_get_info(self.device)[0] // (GRAMS * itemsize)) if self.cuda else 0

    def rrf_pass(
        self, X: Any, y: Any, weight: Any, state: Any, spec: Any, spectrum: Any, E: Any, eta_g: float, batch_size: int
    ) -> np.ndarray:
        """Weights and kernel together: batches on the device; single rows and unknown spectra by the processor."""
        from .rrf import Batches, is_known

        if batch_size == 1 or not is_known(spectrum) or self.is_small(X.shape[0], state["w"].shape[1], X.shape[1]):
            return self.host.rrf_pass(host(X), y, weight, state, spec, spectrum, E, eta_g, batch_size)
        with self.products():
            return Batches(self, state, spec.loss, spec.update, spectrum, E).learn(X, y, weight, eta_g, batch_size)

    def map_times(self, mapping: Any, X: Any, weights: np.ndarray) -> np.ndarray:
        """``Z A`` of features Z, weights A (P, C), in float64, block by block; of few rows by the processor."""
        if self.is_small(X.shape[0], mapping.n_out, X.shape[1]):
            return self.host.map_times(mapping, X, weights)
        A = self.tensor(weights).double()
        scores = np.empty((X.shape[0], weights.shape[1]))
        for rows, Z in self.feature_rows(mapping, X, None, False):
            scores[rows] = (Z @ A).cpu().numpy()
        return scores

    def doubly_blocks(self, blocks: Any) -> Any:
        """Random features made on the device."""
        from .doubly import BlockFeatures

        return BlockFeatures(self, blocks)

    def doubly_training(self, descent: Any) -> Any:
        """A descent whose weights and features are on the device."""
        from .doubly import Training

        return Training(**descent.__dict__ | {"blocks": descent.blocks.device})


def from_array(array: Any) -> torch.Tensor:
    """A tensor of an array's numbers, in place where torch allows it."""
    array = np.ascontiguousarray(array)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


@functools.cache
def has_triton() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None
