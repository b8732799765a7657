"""The choice of a device: parameters of the torch engine, known without importing torch."""

from __future__ import annotations

import functools
from importlib.util import find_spec
from typing import Any

from sklearn.base import BaseEstimator

from ..checks import one_of

PRECISIONS = ("tf32", "float32")


class TorchEngine(BaseEstimator):
    """Features of blocks of rows as matrix products in PyTorch, on a GPU where there is one; needs the extra ``gpu``.

    ``engine="torch"`` is ``TorchEngine()``. Row-by-row semantics stay exact: the features of a block are made at once,
    then its rows are learned one after the other, on a GPU by one program that holds the weights in registers.

    Parameters
    ----------
    device : str or None
        "cuda", "cuda:1", "cpu", …; None is "cuda" where torch sees a GPU, else "cpu".
    precision : {"tf32", "float32"}
        Matrix products of float32 rows on a GPU: of numbers rounded to 11 bits, summed in float32 (tf32),
        or plain float32. float64 rows stay float64. ``docs/gpu.md`` has the error each causes.
    block : int, default=512
        Rows per block. It changes the speed and, beyond rounding, nothing else.

    Examples
    --------
    >>> from kernelstream.engine import TorchEngine
    >>> TorchEngine(device="cpu")
    TorchEngine(device='cpu')
    """

    def __init__(self, device: str | None = None, precision: str = "tf32", block: int = 512):
        self.device = device
        self.precision = precision
        self.block = block

    def ops(self) -> Any:
        """The functions of the engine; ValueError where it cannot run, or for a parameter out of range."""
        one_of("precision", self.precision, PRECISIONS)
        if isinstance(self.block, bool) or not isinstance(self.block, int) or not 1 <= self.block <= 4096:
            raise ValueError(f"block must be an integer from 1 to 4096, got {self.block!r}")
        if self.device is not None and not isinstance(self.device, str):
            raise ValueError(f"device must be a name such as 'cuda' or None, got {self.device!r}")
        if not has_torch():
            raise ValueError(
                "the torch engine needs PyTorch (pip install kernelstream[gpu]), which is not installed; "
                "engine='auto' uses the CPU"
            )
        return _ops(self.device, self.precision, self.block)


def has_torch() -> bool:
    """Whether PyTorch is installed."""
    return find_spec("torch") is not None


def is_torch(engine: Any) -> bool:
    """Whether a parameter ``engine`` means the torch engine."""
    return isinstance(engine, TorchEngine) or (isinstance(engine, str) and engine == "torch")


def usable(engine: Any) -> bool:
    """Whether the engine can run on this machine."""
    if is_torch(engine):
        try:
            (engine if isinstance(engine, TorchEngine) else TorchEngine()).ops()
        except ValueError:
            return False
    return True


@functools.cache
def _ops(device: str | None, precision: str, block: int) -> Any:
    from .torch import Ops

    return Ops(device, precision, block)
