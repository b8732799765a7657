# Written by tools/stub.py from the compiled core; do not edit.
# ruff: noqa
# fmt: off
"""
Compiled loops of kernelstream: states and arrays in, changed in place.
"""

from collections.abc import Sequence
from typing import Any, overload

import numpy
from numpy.typing import NDArray
from typing_extensions import CapsuleType


@overload
def cg_dots(P: NDArray[numpy.float32], Q: NDArray[numpy.float32], sums: NDArray[numpy.float64], threads: int) -> None: ...

@overload
def cg_dots(P: NDArray[numpy.float64], Q: NDArray[numpy.float64], sums: NDArray[numpy.float64], threads: int) -> None: ...

@overload
def cg_step(state: dict[str, Any], step: NDArray[numpy.float32], lam: float, sums: NDArray[numpy.float64], threads: int) -> None: ...

@overload
def cg_step(state: dict[str, Any], step: NDArray[numpy.float64], lam: float, sums: NDArray[numpy.float64], threads: int) -> None: ...

@overload
def cg_turn(turn: NDArray[numpy.float32], M: NDArray[numpy.float32], R: NDArray[numpy.float32], P: NDArray[numpy.float32], threads: int) -> None: ...

@overload
def cg_turn(turn: NDArray[numpy.float64], M: NDArray[numpy.float64], R: NDArray[numpy.float64], P: NDArray[numpy.float64], threads: int) -> None: ...

@overload
def sweep_columns(state: dict[str, Any], features: tuple[NDArray[numpy.float32], NDArray[numpy.float64]], order: NDArray[numpy.int64], y: NDArray[numpy.float64], weight: NDArray[numpy.float64] | None, rule: tuple[str, float, bool], threads: int) -> tuple[float, float]: ...

@overload
def sweep_columns(state: dict[str, Any], features: tuple[NDArray[numpy.float64], NDArray[numpy.float64]], order: NDArray[numpy.int64], y: NDArray[numpy.float64], weight: NDArray[numpy.float64] | None, rule: tuple[str, float, bool], threads: int) -> tuple[float, float]: ...

def cell_lists(cells: NDArray[numpy.int32], starts: NDArray[numpy.int64], rows: NDArray[numpy.int32], first: NDArray[numpy.int32], threads: int) -> None: ...

def sweep_cells(state: dict[str, Any], lists: tuple[NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.int64]], order: NDArray[numpy.int64], y: NDArray[numpy.float64], weight: NDArray[numpy.float64] | None, rule: tuple[str, float, bool], threads: int) -> tuple[float, float]: ...

def cell_pass(state: dict[str, Any], cells: NDArray[numpy.int32], width: int, y: NDArray[numpy.float64], weight: NDArray[numpy.float64] | None, spec: Spec, F: NDArray[numpy.float64]) -> None: ...

@overload
def bin_hashes(arg0: NDArray[numpy.float32], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.uint32]], arg2: NDArray[numpy.uint64], arg3: int, /) -> None: ...

@overload
def bin_hashes(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.uint32]], arg2: NDArray[numpy.uint64], arg3: int, /) -> None: ...

@overload
def bin_hashes(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.uint32]], arg2: NDArray[numpy.uint64], arg3: int, /) -> None: ...

@overload
def bin_hashes(arg0: NDArray[numpy.float64], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint32]], arg2: NDArray[numpy.uint64], arg3: int, /) -> None: ...

@overload
def bin_hashes(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint32]], arg2: NDArray[numpy.uint64], arg3: int, /) -> None: ...

@overload
def bin_hashes(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint32]], arg2: NDArray[numpy.uint64], arg3: int, /) -> None: ...

@overload
def bin_buckets(arg0: NDArray[numpy.float32], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.uint32]], arg2: int, arg3: NDArray[numpy.int32], arg4: int, /) -> None: ...

@overload
def bin_buckets(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.uint32]], arg2: int, arg3: NDArray[numpy.int32], arg4: int, /) -> None: ...

@overload
def bin_buckets(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.uint32]], arg2: int, arg3: NDArray[numpy.int32], arg4: int, /) -> None: ...

@overload
def bin_buckets(arg0: NDArray[numpy.float64], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint32]], arg2: int, arg3: NDArray[numpy.int32], arg4: int, /) -> None: ...

@overload
def bin_buckets(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint32]], arg2: int, arg3: NDArray[numpy.int32], arg4: int, /) -> None: ...

@overload
def bin_buckets(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint32]], arg2: int, arg3: NDArray[numpy.int32], arg4: int, /) -> None: ...

@overload
def bin_number(arg0: NDArray[numpy.float32], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.uint32]], arg2: NDArray[numpy.int32], arg3: int, /) -> tuple[NDArray[numpy.uint64], NDArray[numpy.int64]]: ...

@overload
def bin_number(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.uint32]], arg2: NDArray[numpy.int32], arg3: int, /) -> tuple[NDArray[numpy.uint64], NDArray[numpy.int64]]: ...

@overload
def bin_number(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.uint32]], arg2: NDArray[numpy.int32], arg3: int, /) -> tuple[NDArray[numpy.uint64], NDArray[numpy.int64]]: ...

@overload
def bin_number(arg0: NDArray[numpy.float64], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint32]], arg2: NDArray[numpy.int32], arg3: int, /) -> tuple[NDArray[numpy.uint64], NDArray[numpy.int64]]: ...

@overload
def bin_number(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint32]], arg2: NDArray[numpy.int32], arg3: int, /) -> tuple[NDArray[numpy.uint64], NDArray[numpy.int64]]: ...

@overload
def bin_number(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint32]], arg2: NDArray[numpy.int32], arg3: int, /) -> tuple[NDArray[numpy.uint64], NDArray[numpy.int64]]: ...

@overload
def bin_find(arg0: NDArray[numpy.float32], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.uint32]], arg2: NDArray[numpy.uint64], arg3: NDArray[numpy.int64], arg4: NDArray[numpy.int32], arg5: int, /) -> None: ...

@overload
def bin_find(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.uint32]], arg2: NDArray[numpy.uint64], arg3: NDArray[numpy.int64], arg4: NDArray[numpy.int32], arg5: int, /) -> None: ...

@overload
def bin_find(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.uint32]], arg2: NDArray[numpy.uint64], arg3: NDArray[numpy.int64], arg4: NDArray[numpy.int32], arg5: int, /) -> None: ...

@overload
def bin_find(arg0: NDArray[numpy.float64], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint32]], arg2: NDArray[numpy.uint64], arg3: NDArray[numpy.int64], arg4: NDArray[numpy.int32], arg5: int, /) -> None: ...

@overload
def bin_find(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint32]], arg2: NDArray[numpy.uint64], arg3: NDArray[numpy.int64], arg4: NDArray[numpy.int32], arg5: int, /) -> None: ...

@overload
def bin_find(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint32]], arg2: NDArray[numpy.uint64], arg3: NDArray[numpy.int64], arg4: NDArray[numpy.int32], arg5: int, /) -> None: ...

def bin_slots(keys: NDArray[numpy.uint64], starts: NDArray[numpy.int64]) -> tuple[NDArray[numpy.uint64], NDArray[numpy.int64]]: ...

@overload
def bin_times(cells: NDArray[numpy.int32], starts: NDArray[numpy.int64], V: NDArray[numpy.float32], out: NDArray[numpy.float64], missing: bool, threads: int) -> None: ...

@overload
def bin_times(cells: NDArray[numpy.int32], starts: NDArray[numpy.int64], V: NDArray[numpy.float64], out: NDArray[numpy.float64], missing: bool, threads: int) -> None: ...

@overload
def bin_transposed_times(cells: NDArray[numpy.int32], starts: NDArray[numpy.int64], U: NDArray[numpy.float32], out: NDArray[numpy.float32], threads: int) -> None: ...

@overload
def bin_transposed_times(cells: NDArray[numpy.int32], starts: NDArray[numpy.int64], U: NDArray[numpy.float64], out: NDArray[numpy.float64], threads: int) -> None: ...

@overload
def csr_norms(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: int, arg2: NDArray[numpy.float32], /) -> None: ...

@overload
def csr_norms(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: int, arg2: NDArray[numpy.float32], /) -> None: ...

@overload
def csr_norms(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: int, arg2: NDArray[numpy.float64], /) -> None: ...

@overload
def csr_norms(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: int, arg2: NDArray[numpy.float64], /) -> None: ...

@overload
def gaussian_csr(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: NDArray[numpy.float32], arg2: NDArray[numpy.float32], arg3: NDArray[numpy.float32], arg4: float, arg5: NDArray[numpy.float32], /) -> None: ...

@overload
def gaussian_csr(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: NDArray[numpy.float32], arg2: NDArray[numpy.float32], arg3: NDArray[numpy.float32], arg4: float, arg5: NDArray[numpy.float32], /) -> None: ...

@overload
def gaussian_csr(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64], arg4: float, arg5: NDArray[numpy.float64], /) -> None: ...

@overload
def gaussian_csr(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64], arg4: float, arg5: NDArray[numpy.float64], /) -> None: ...

@overload
def gaussian_csr_among(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: NDArray[numpy.float32], arg2: NDArray[numpy.float32], arg3: float, arg4: NDArray[numpy.float32], /) -> None: ...

@overload
def gaussian_csr_among(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: NDArray[numpy.float32], arg2: NDArray[numpy.float32], arg3: float, arg4: NDArray[numpy.float32], /) -> None: ...

@overload
def gaussian_csr_among(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: float, arg4: NDArray[numpy.float64], /) -> None: ...

@overload
def gaussian_csr_among(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: float, arg4: NDArray[numpy.float64], /) -> None: ...

@overload
def gaussian_csr_scores(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: NDArray[numpy.float32], arg2: NDArray[numpy.float32], arg3: NDArray[numpy.float32], arg4: float, arg5: NDArray[numpy.float32], arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def gaussian_csr_scores(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: NDArray[numpy.float32], arg2: NDArray[numpy.float32], arg3: NDArray[numpy.float32], arg4: float, arg5: NDArray[numpy.float32], arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def gaussian_csr_scores(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64], arg4: float, arg5: NDArray[numpy.float64], arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def gaussian_csr_scores(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64], arg4: float, arg5: NDArray[numpy.float64], arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def gaussian_wide_among(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: int, arg2: NDArray[numpy.float32], arg3: float, arg4: NDArray[numpy.float32], /) -> None: ...

@overload
def gaussian_wide_among(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: int, arg2: NDArray[numpy.float32], arg3: float, arg4: NDArray[numpy.float32], /) -> None: ...

@overload
def gaussian_wide_among(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: int, arg2: NDArray[numpy.float64], arg3: float, arg4: NDArray[numpy.float64], /) -> None: ...

@overload
def gaussian_wide_among(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: int, arg2: NDArray[numpy.float64], arg3: float, arg4: NDArray[numpy.float64], /) -> None: ...

@overload
def csr_to_slots(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.int64], arg3: NDArray[numpy.float32] | None, arg4: NDArray[numpy.float32] | None, /) -> None: ...

@overload
def csr_to_slots(arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.int64], arg3: NDArray[numpy.float32] | None, arg4: NDArray[numpy.float32] | None, /) -> None: ...

@overload
def csr_to_slots(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.int64], arg3: NDArray[numpy.float64] | None, arg4: NDArray[numpy.float64] | None, /) -> None: ...

@overload
def csr_to_slots(arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.int64], arg3: NDArray[numpy.float64] | None, arg4: NDArray[numpy.float64] | None, /) -> None: ...

@overload
def row_norms(arg0: NDArray[numpy.float32], arg1: NDArray[numpy.float32], /) -> None: ...

@overload
def row_norms(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.float64], /) -> None: ...

@overload
def gaussian_dense(arg0: NDArray[numpy.float32], arg1: NDArray[numpy.float32], arg2: NDArray[numpy.float32], arg3: NDArray[numpy.float32], arg4: float, arg5: NDArray[numpy.float32], arg6: bool, /) -> None: ...

@overload
def gaussian_dense(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64], arg4: float, arg5: NDArray[numpy.float64], arg6: bool, /) -> None: ...

class SparseSetSingle:
    """Vectors of very many columns, by their entries."""

    def __init__(self, arg: int, /) -> None: ...

    def __len__(self) -> int: ...

    def read(self, arg0: NDArray[numpy.float32], arg1: NDArray[numpy.int64], /) -> None: ...

    def count(self, arg: NDArray[numpy.int64], /) -> int: ...

    def entries(self, arg0: NDArray[numpy.int64], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.int64], /) -> None: ...

    @overload
    def put(self, arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.int64], arg3: NDArray[numpy.float32], /) -> None: ...

    @overload
    def put(self, arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.int64], arg3: NDArray[numpy.float32], /) -> None: ...

    @overload
    def gaussian(self, arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: int, arg2: NDArray[numpy.float32], arg3: int, arg4: NDArray[numpy.float32], arg5: float, arg6: NDArray[numpy.float32], /) -> None: ...

    @overload
    def gaussian(self, arg0: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: int, arg2: NDArray[numpy.float32], arg3: int, arg4: NDArray[numpy.float32], arg5: float, arg6: NDArray[numpy.float32], /) -> None: ...

class SparseSet:
    """Vectors of very many columns, by their entries."""

    def __init__(self, arg: int, /) -> None: ...

    def __len__(self) -> int: ...

    def read(self, arg0: NDArray[numpy.float64], arg1: NDArray[numpy.int64], /) -> None: ...

    def count(self, arg: NDArray[numpy.int64], /) -> int: ...

    def entries(self, arg0: NDArray[numpy.int64], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.int64], /) -> None: ...

    @overload
    def put(self, arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.int64], arg3: NDArray[numpy.float64], /) -> None: ...

    @overload
    def put(self, arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.int64], arg3: NDArray[numpy.float64], /) -> None: ...

    @overload
    def gaussian(self, arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg1: int, arg2: NDArray[numpy.float64], arg3: int, arg4: NDArray[numpy.float64], arg5: float, arg6: NDArray[numpy.float64], /) -> None: ...

    @overload
    def gaussian(self, arg0: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg1: int, arg2: NDArray[numpy.float64], arg3: int, arg4: NDArray[numpy.float64], arg5: float, arg6: NDArray[numpy.float64], /) -> None: ...

def expansion_pass(arg0: dict[str, Any], arg1: dict[str, Any], arg2: Spec, arg3: bool, /) -> tuple[int, int]: ...

def budget_pass(arg0: dict[str, Any], arg1: dict[str, Any], arg2: Spec, arg3: int, arg4: int, /) -> tuple[int, list[float]]: ...

FLOAT_TILE: int = 64

DOUBLE_TILE: int = 32

def cells_pass(arg0: dict[str, Any], arg1: NDArray[numpy.int32], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: tuple[Any, ...], arg5: NDArray[numpy.float64], arg6: NDArray[numpy.float64], /) -> None: ...

def cells_score(arg0: dict[str, Any], arg1: NDArray[numpy.int32], arg2: bool, arg3: NDArray[numpy.float64], /) -> None: ...

@overload
def cells_find(arg0: NDArray[numpy.float64], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.int32], int], arg2: bool, arg3: NDArray[numpy.int32], /) -> None: ...

@overload
def cells_find(arg0: NDArray[numpy.float64], arg1: tuple[NDArray[numpy.int32], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint64], int], arg2: bool, arg3: NDArray[numpy.int32], /) -> None: ...

@overload
def cells_pass_rows(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float64], tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32], NDArray[numpy.int32], int], bool], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: tuple[Any, ...], arg5: NDArray[numpy.float64], arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def cells_pass_rows(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float64], tuple[NDArray[numpy.int32], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint64], int], bool], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: tuple[Any, ...], arg5: NDArray[numpy.float64], arg6: NDArray[numpy.float64], /) -> None: ...

def grid_maps(arg0: NDArray[numpy.int32], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.int32], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.int32], arg5: NDArray[numpy.int32], /) -> None: ...

def cells_gains(arg0: NDArray[numpy.int32], arg1: NDArray[numpy.float64], arg2: int, arg3: bool, arg4: NDArray[numpy.float64], /) -> None: ...

@overload
def city_block(X: NDArray[numpy.float32], Z: NDArray[numpy.float32], out: NDArray[numpy.float32]) -> None: ...

@overload
def city_block(X: NDArray[numpy.float64], Z: NDArray[numpy.float64], out: NDArray[numpy.float64]) -> None:
    """out (n, m) <- sums of |x_j - z_j| for X (n, d) and Z (m, d)."""

@overload
def exponential(X: NDArray[numpy.float32], tiles: NDArray[numpy.float32], out: NDArray[numpy.float32], norm: int, c: float) -> None: ...

@overload
def exponential(X: NDArray[numpy.float64], tiles: NDArray[numpy.float64], out: NDArray[numpy.float64], norm: int, c: float) -> None:
    """
    out (n, m) <- exp(-c |x - z|) for X (n, d) and m rows z in tiles of 64 bytes a column.
    """

@overload
def exponential_sums(X: NDArray[numpy.float32], tiles: NDArray[numpy.float32], A: NDArray[numpy.float64], out: NDArray[numpy.float64], norm: int, c: float) -> None: ...

@overload
def exponential_sums(X: NDArray[numpy.float64], tiles: NDArray[numpy.float64], A: NDArray[numpy.float64], out: NDArray[numpy.float64], norm: int, c: float) -> None:
    """
    out (n, C) <- exp(-c |x - z|) A' for X (n, d), m rows z in tiles and A (C, m).
    """

def columns_pass(arg0: dict[str, Any], arg1: dict[str, Any], arg2: float, arg3: bool, arg4: bool, arg5: NDArray[numpy.float64], /) -> None: ...

def numbers_of_texts(arg0: list[Any], arg1: NDArray[numpy.float64], /) -> bool: ...

def columns_row(arg0: list[Any], arg1: dict[str, Any], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.int32], /) -> tuple[Any, ...]: ...

@overload
def csr_form(arg0: NDArray[numpy.int32], arg1: NDArray[numpy.int32], arg2: int, arg3: int, /) -> int: ...

@overload
def csr_form(arg0: NDArray[numpy.int64], arg1: NDArray[numpy.int64], arg2: int, arg3: int, /) -> int: ...

class Turns:
    """
    A lock whose callers take turns; the thread that has it may take it again.
    """

    def __init__(self) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, arg0: object | None, arg1: object | None, arg2: object | None, /) -> None: ...

class Marks:
    """Some states as they are, to go back to."""

    def __init__(self, arg0: list[Any], arg1: list[Any], /) -> None: ...

    def save(self) -> bool: ...

    def forget(self) -> None: ...

    def restore(self) -> bool: ...

@overload
def cosine_sums(P: NDArray[numpy.float32], amplitude: NDArray[numpy.float32], phase: NDArray[numpy.float32], F: NDArray[numpy.float64]) -> None: ...

@overload
def cosine_sums(P: NDArray[numpy.float64], amplitude: NDArray[numpy.float64], phase: NDArray[numpy.float64], F: NDArray[numpy.float64]) -> None:
    """F (m,) += sum_j amplitude_j cos(P_ij - phase_j) for P (m, D)."""

@overload
def fourier_row(X: NDArray[numpy.float32], W: NDArray[numpy.float32], Z: NDArray[numpy.float32], scale: float) -> None: ...

@overload
def fourier_row(X: NDArray[numpy.float64], W: NDArray[numpy.float64], Z: NDArray[numpy.float64], scale: float) -> None:
    """
    Z (1, 2 D) <- scale * [cos(X W), sin(X W)] for one row X (1, d), W (d, D).
    """

def libsvm_parse(data: bytes, start: int, max_rows: int, zero_based: bool, n_features: int, single: bool) -> tuple[Any, ...]:
    """
    Complete lines of LIBSVM text -> labels, indptr, indices, values, width, lines, consumed, bad rows.
    """

def csv_parse(data: bytes, start: int, max_rows: int, delimiter: bytes, kinds: bytes, fill: float | None, largest: float) -> tuple[Any, ...]:
    """
    Complete lines of delimited text -> rows, numbers, places of text fields, lines, consumed, quoted, bad rows.
    """

@overload
def fourier_pass(arg0: dict[str, Any], arg1: NDArray[numpy.float32], arg2: tuple[NDArray[numpy.float32], Blas, bool, NDArray[numpy.float32] | None, NDArray[numpy.float32] | None], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64] | None, arg5: Spec, arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def fourier_pass(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg2: tuple[NDArray[numpy.float32], Blas, bool, NDArray[numpy.float32] | None, NDArray[numpy.float32] | None], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64] | None, arg5: Spec, arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def fourier_pass(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg2: tuple[NDArray[numpy.float32], Blas, bool, NDArray[numpy.float32] | None, NDArray[numpy.float32] | None], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64] | None, arg5: Spec, arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def fourier_pass(arg0: dict[str, Any], arg1: NDArray[numpy.float64], arg2: tuple[NDArray[numpy.float64], Blas, bool, NDArray[numpy.float64] | None, NDArray[numpy.float64] | None], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64] | None, arg5: Spec, arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def fourier_pass(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg2: tuple[NDArray[numpy.float64], Blas, bool, NDArray[numpy.float64] | None, NDArray[numpy.float64] | None], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64] | None, arg5: Spec, arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def fourier_pass(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg2: tuple[NDArray[numpy.float64], Blas, bool, NDArray[numpy.float64] | None, NDArray[numpy.float64] | None], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64] | None, arg5: Spec, arg6: NDArray[numpy.float64], /) -> None: ...

class FourierLearnerSingle:
    """Learns single rows on Fourier features."""

    def __init__(self, arg0: dict[str, Any], arg1: NDArray[numpy.float32], arg2: object, /) -> None: ...

    def learn(self, arg0: NDArray[numpy.float32], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64] | None, arg3: NDArray[numpy.float64], /) -> None: ...

@overload
def nystroem_pass(arg0: dict[str, Any], arg1: NDArray[numpy.float32], arg2: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], float, NDArray[numpy.float32], Blas, bool], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64] | None, arg5: Spec, arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def nystroem_pass(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg2: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], float, NDArray[numpy.float32], Blas, bool], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64] | None, arg5: Spec, arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def nystroem_pass(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg2: tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32], float, NDArray[numpy.float32], Blas, bool], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64] | None, arg5: Spec, arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def nystroem_pass(arg0: dict[str, Any], arg1: NDArray[numpy.float64], arg2: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], float, NDArray[numpy.float64], Blas, bool], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64] | None, arg5: Spec, arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def nystroem_pass(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg2: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], float, NDArray[numpy.float64], Blas, bool], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64] | None, arg5: Spec, arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def nystroem_pass(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg2: tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64], float, NDArray[numpy.float64], Blas, bool], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64] | None, arg5: Spec, arg6: NDArray[numpy.float64], /) -> None: ...

class FourierLearner:
    """Learns single rows on Fourier features."""

    def __init__(self, arg0: dict[str, Any], arg1: NDArray[numpy.float64], arg2: object, /) -> None: ...

    def learn(self, arg0: NDArray[numpy.float64], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64] | None, arg3: NDArray[numpy.float64], /) -> None: ...

def adwin_look(buckets: NDArray[numpy.float64], used: NDArray[numpy.int64], first: NDArray[numpy.float64], block: NDArray[numpy.float64], delta: float) -> int:
    """
    Rows since the mean of losses rose, or 0; block (32,) enters the window.
    """

def page_look(moments: NDArray[numpy.float64], held: NDArray[numpy.float64], block: NDArray[numpy.float64], delta: float, threshold: float) -> int:
    """
    Rows since the sum began that is beyond the threshold, or 0; block (32,) is added.
    """

def kernel_look(W: NDArray[numpy.float64], reference: NDArray[numpy.float64], last: NDArray[numpy.float64], block: object) -> tuple[float, float]:
    """
    F statistic of the last rows against those before and its second degrees of freedom; block (32, d) enters the window.
    """

def hedge_pass(arg0: dict[str, Any], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: NDArray[numpy.bool_] | None, arg5: tuple[float, float, bool, bool], arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def family_pass(arg0: list[Any], arg1: NDArray[numpy.float32], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: int, arg5: NDArray[numpy.float64], /) -> None: ...

@overload
def family_pass(arg0: list[Any], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: int, arg5: NDArray[numpy.float64], /) -> None: ...

@overload
def linear_pass(arg0: dict[str, Any], arg1: NDArray[numpy.float32], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: Spec, arg5: bool, arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def linear_pass(arg0: dict[str, Any], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: Spec, arg5: bool, arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def linear_pass_csr(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32]], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: Spec, arg5: NDArray[numpy.float64], arg6: object, /) -> None: ...

@overload
def linear_pass_csr(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64]], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: Spec, arg5: NDArray[numpy.float64], arg6: object, /) -> None: ...

@overload
def linear_pass_csr(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32]], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: Spec, arg5: NDArray[numpy.float64], arg6: object, /) -> None: ...

@overload
def linear_pass_csr(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64]], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: Spec, arg5: NDArray[numpy.float64], arg6: object, /) -> None: ...

@overload
def squash(arg0: NDArray[numpy.float32], arg1: float, /) -> None: ...

@overload
def squash(arg0: NDArray[numpy.float64], arg1: float, /) -> None: ...

@overload
def standardize(arg0: dict[str, Any], arg1: NDArray[numpy.float32], arg2: NDArray[numpy.float64] | None, /) -> None: ...

@overload
def standardize(arg0: dict[str, Any], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64] | None, /) -> None: ...

def set_aside(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.float64] | None, arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64], /) -> int: ...

@overload
def philox_normals(seed: int, block: int, stream: int, rows: NDArray[numpy.int64], scale: float, out: NDArray[numpy.float32]) -> None: ...

@overload
def philox_normals(seed: int, block: int, stream: int, rows: NDArray[numpy.int64], scale: float, out: NDArray[numpy.float64]) -> None:
    """
    out (n, D) <- scale * rows `rows` (n,) of block `block` of the normal numbers of a seed.
    """

@overload
def squared_distances(arg0: NDArray[numpy.float32], arg1: NDArray[numpy.float32], arg2: NDArray[numpy.float32], arg3: NDArray[numpy.float32], arg4: NDArray[numpy.float32], arg5: NDArray[numpy.float32], arg6: int, /) -> None: ...

@overload
def squared_distances(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64], arg5: NDArray[numpy.float64], arg6: int, /) -> None: ...

@overload
def settle_rows(arg0: NDArray[numpy.float32], arg1: NDArray[numpy.float32] | None, arg2: NDArray[numpy.float32], arg3: int, arg4: int, arg5: list[Any], arg6: Sequence[NDArray[numpy.int32]], /) -> tuple[int, list[bool]]: ...

@overload
def settle_rows(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.float64] | None, arg2: NDArray[numpy.float64], arg3: int, arg4: int, arg5: list[Any], arg6: Sequence[NDArray[numpy.int32]], /) -> tuple[int, list[bool]]: ...

@overload
def pool_pass(arg0: tuple[int, NDArray[numpy.float32], NDArray[numpy.float32] | None, NDArray[numpy.float32], float], arg1: int, arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: list[Any], arg5: int, arg6: NDArray[numpy.float64], /) -> list[int]: ...

@overload
def pool_pass(arg0: tuple[int, NDArray[numpy.float64], NDArray[numpy.float64] | None, NDArray[numpy.float64], float], arg1: int, arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: list[Any], arg5: int, arg6: NDArray[numpy.float64], /) -> list[int]: ...

@overload
def pool_hedge_pass(arg0: dict[str, Any], arg1: tuple[int, NDArray[numpy.float32], NDArray[numpy.float32] | None, NDArray[numpy.float32], float], arg2: list[Any], arg3: tuple[NDArray[numpy.float64], NDArray[numpy.float64] | None, NDArray[numpy.float64], NDArray[numpy.bool_]], arg4: tuple[tuple[float, float, bool, bool], tuple[float, bool]], arg5: int, arg6: tuple[NDArray[numpy.float64], NDArray[numpy.float64]], /) -> list[int]: ...

@overload
def pool_hedge_pass(arg0: dict[str, Any], arg1: tuple[int, NDArray[numpy.float64], NDArray[numpy.float64] | None, NDArray[numpy.float64], float], arg2: list[Any], arg3: tuple[NDArray[numpy.float64], NDArray[numpy.float64] | None, NDArray[numpy.float64], NDArray[numpy.bool_]], arg4: tuple[tuple[float, float, bool, bool], tuple[float, bool]], arg5: int, arg6: tuple[NDArray[numpy.float64], NDArray[numpy.float64]], /) -> list[int]: ...

class RowLearner32:
    """A learner of single rows."""

def row_hashed_cells32(arg0: dict[str, Any], arg1: list[Any], arg2: tuple[Any, ...], arg3: tuple[NDArray[numpy.int32], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint64], int], /) -> RowLearner32: ...

def row_column_cells32(arg0: dict[str, Any], arg1: list[Any], arg2: tuple[Any, ...], arg3: NDArray[numpy.int32], arg4: int, arg5: tuple[int, int, int], arg6: tuple[int, int], /) -> RowLearner32: ...

def row_linear32(arg0: dict[str, Any], arg1: list[Any], arg2: NDArray[numpy.float32] | None, arg3: bool, arg4: bool, arg5: tuple[str, Sequence[float], str, Sequence[float]], /) -> RowLearner32: ...

def row_learned_widths32(arg0: dict[str, Any], arg1: list[Any], arg2: NDArray[numpy.float32], arg3: float, arg4: float, arg5: tuple[str, Sequence[float], str, Sequence[float]], /) -> RowLearner32: ...

def row_window32(arg0: dict[str, Any], arg1: list[Any], arg2: int, arg3: int, /) -> RowLearner32: ...

def row_least_squares32(arg0: dict[str, Any], arg1: list[Any], arg2: NDArray[numpy.float32] | None, arg3: bool, arg4: bool, arg5: Blas, arg6: dict[str, Any], /) -> RowLearner32: ...

class RowStack32:
    """All learners of a stack, and what combines them."""

    def __init__(self, arg0: dict[str, Any], arg1: list[Any], arg2: bool, arg3: float, arg4: NDArray[numpy.float64], arg5: NDArray[numpy.float64], /) -> None: ...

    def learn(self, arg0: NDArray[numpy.float32], arg1: NDArray[numpy.float64], arg2: bool, arg3: NDArray[numpy.float64], /) -> int: ...

    def score(self, arg0: NDArray[numpy.float32], arg1: bool, arg2: NDArray[numpy.float64], /) -> int: ...

class RowLearner64:
    """A learner of single rows."""

def row_hashed_cells64(arg0: dict[str, Any], arg1: list[Any], arg2: tuple[Any, ...], arg3: tuple[NDArray[numpy.int32], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.uint64], int], /) -> RowLearner64: ...

def row_column_cells64(arg0: dict[str, Any], arg1: list[Any], arg2: tuple[Any, ...], arg3: NDArray[numpy.int32], arg4: int, arg5: tuple[int, int, int], arg6: tuple[int, int], /) -> RowLearner64: ...

def row_linear64(arg0: dict[str, Any], arg1: list[Any], arg2: NDArray[numpy.float64] | None, arg3: bool, arg4: bool, arg5: tuple[str, Sequence[float], str, Sequence[float]], /) -> RowLearner64: ...

def row_learned_widths64(arg0: dict[str, Any], arg1: list[Any], arg2: NDArray[numpy.float64], arg3: float, arg4: float, arg5: tuple[str, Sequence[float], str, Sequence[float]], /) -> RowLearner64: ...

def row_window64(arg0: dict[str, Any], arg1: list[Any], arg2: int, arg3: int, /) -> RowLearner64: ...

def row_least_squares64(arg0: dict[str, Any], arg1: list[Any], arg2: NDArray[numpy.float64] | None, arg3: bool, arg4: bool, arg5: Blas, arg6: dict[str, Any], /) -> RowLearner64: ...

class RowStack64:
    """All learners of a stack, and what combines them."""

    def __init__(self, arg0: dict[str, Any], arg1: list[Any], arg2: bool, arg3: float, arg4: NDArray[numpy.float64], arg5: NDArray[numpy.float64], /) -> None: ...

    def learn(self, arg0: NDArray[numpy.float64], arg1: NDArray[numpy.float64], arg2: bool, arg3: NDArray[numpy.float64], /) -> int: ...

    def score(self, arg0: NDArray[numpy.float64], arg1: bool, arg2: NDArray[numpy.float64], /) -> int: ...

ROW_DONE: int = 0

ROW_STALE: int = 2

@overload
def rrf_pass(arg0: dict[str, Any], arg1: NDArray[numpy.float32], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: Spec, arg5: tuple[str, int, NDArray[numpy.float32], float, float, int, bool], arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def rrf_pass(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.int32], NDArray[numpy.int32], int], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: Spec, arg5: tuple[str, int, NDArray[numpy.float32], float, float, int, bool], arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def rrf_pass(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float32], NDArray[numpy.int64], NDArray[numpy.int64], int], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: Spec, arg5: tuple[str, int, NDArray[numpy.float32], float, float, int, bool], arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def rrf_pass(arg0: dict[str, Any], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: Spec, arg5: tuple[str, int, NDArray[numpy.float64], float, float, int, bool], arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def rrf_pass(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.int32], NDArray[numpy.int32], int], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: Spec, arg5: tuple[str, int, NDArray[numpy.float64], float, float, int, bool], arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def rrf_pass(arg0: dict[str, Any], arg1: tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64], int], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: Spec, arg5: tuple[str, int, NDArray[numpy.float64], float, float, int, bool], arg6: NDArray[numpy.float64], /) -> None: ...

@overload
def rrf_two_products(arg0: NDArray[numpy.float32], arg1: NDArray[numpy.float32], arg2: NDArray[numpy.float32], /) -> None: ...

@overload
def rrf_two_products(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], /) -> None: ...

class Blas:
    def __init__(self, arg0: CapsuleType, arg1: CapsuleType, arg2: CapsuleType, /) -> None: ...

PANEL: int = 24

LINE: int = 8

class Act:
    """A second-order rule: its name and parameters, and those of its loss."""

    def __init__(self, arg0: str, arg1: Sequence[float], arg2: str, arg3: Sequence[float], /) -> None: ...

def second_order_learn(arg0: dict[str, Any], arg1: dict[str, Any], arg2: Act, /) -> None: ...

def second_order_run(arg0: Blas, arg1: dict[str, Any], arg2: dict[str, Any], arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64], arg5: NDArray[numpy.float64] | None, arg6: tuple[NDArray[numpy.float64], NDArray[numpy.float64]], /) -> None: ...

def second_order_score(arg0: dict[str, Any], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64], /) -> None: ...

def second_order_factor(arg0: Blas, arg1: NDArray[numpy.float64], arg2: float, arg3: NDArray[numpy.float64], arg4: NDArray[numpy.float64], arg5: NDArray[numpy.float64], arg6: NDArray[numpy.float64], /) -> bool: ...

def diagonal_pass(arg0: dict[str, Any], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64], arg3: NDArray[numpy.float64] | None, arg4: Act, arg5: NDArray[numpy.float64], /) -> None: ...

@overload
def taylor(arg0: NDArray[numpy.float32], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.int64], arg3: NDArray[numpy.float32], arg4: bool, arg5: NDArray[numpy.float32], /) -> None: ...

@overload
def taylor(arg0: NDArray[numpy.float64], arg1: NDArray[numpy.int64], arg2: NDArray[numpy.int64], arg3: NDArray[numpy.float64], arg4: bool, arg5: NDArray[numpy.float64], /) -> None: ...

class Spec:
    """Loss, update and strategy of a pass, each a name and its parameters."""

    def __init__(self, loss: tuple[str, Sequence[float]], update: tuple[str, Sequence[float]], strategy: tuple[str, Sequence[float]] | None = None, average: bool = False) -> None: ...

    @property
    def average(self) -> bool: ...

def has_loss(arg: str, /) -> bool: ...

def has_update(arg: str, /) -> bool: ...

def has_budget(arg: str, /) -> bool: ...

def stack_pass(arg0: dict[str, Any], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64] | None, arg3: NDArray[numpy.float64] | None, arg4: tuple[Any, ...], arg5: NDArray[numpy.float64], arg6: object | None, /) -> None: ...

def calibrate(state: dict[str, Any], scores: NDArray[numpy.float64], y: NDArray[numpy.float64] | None, weight: NDArray[numpy.float64] | None, own: bool, keep: NDArray[numpy.float64], out: NDArray[numpy.float64]) -> None:
    """
    out <- log-odds (n,) or log-probabilities (n, C) before each row; with y, the rows are learned.
    """

def follow(link: NDArray[numpy.float64], scores: NDArray[numpy.float64], y: NDArray[numpy.float64], weight: NDArray[numpy.float64] | None, classes: int, keep: NDArray[numpy.float64]) -> None:
    """
    The link learns from scores (n, outputs) and labels, -1 or 1 for one output, else numbers of classes.
    """

def doubts(scores: NDArray[numpy.float64], y: NDArray[numpy.float64], out: NDArray[numpy.float64]) -> None:
    """
    out (n,) <- 1 - P(y) of scores (n, C): log-odds for C = 1, where y is -1 or 1, else logarithms of probabilities.
    """

def track(state: dict[str, Any], errors: NDArray[numpy.float64], levels: NDArray[numpy.float64], steps: NDArray[numpy.float64], half: NDArray[numpy.float64]) -> None:
    """
    half (n, L) <- half-widths of intervals before each error, which is then learned.
    """

@overload
def trig(P: NDArray[numpy.float32], Z: NDArray[numpy.float32], scale: float) -> None: ...

@overload
def trig(P: NDArray[numpy.float64], Z: NDArray[numpy.float64], scale: float) -> None:
    """Z (m, 2 D) <- scale * [cos P, sin P] for P (m, D)."""

@overload
def exp_scaled(X: NDArray[numpy.float32], c: float, clip: bool = True) -> None: ...

@overload
def exp_scaled(X: NDArray[numpy.float64], c: float, clip: bool = True) -> None:
    """X <- exp(-c X) in place; with clip, negative entries count as 0."""

@overload
def all_finite(X: NDArray[numpy.float32]) -> bool: ...

@overload
def all_finite(X: NDArray[numpy.float64]) -> bool:
    """False when X holds a NaN or an infinity."""

@overload
def all_below(X: NDArray[numpy.float32], exponent: int) -> bool: ...

@overload
def all_below(X: NDArray[numpy.float64], exponent: int) -> bool:
    """False when some |X| reaches 2^exponent, or is NaN."""

@overload
def csr_matmul(data: NDArray[numpy.float32], indices: NDArray[numpy.int32], indptr: NDArray[numpy.int32], W: NDArray[numpy.float32], out: NDArray[numpy.float32]) -> None: ...

@overload
def csr_matmul(data: NDArray[numpy.float32], indices: NDArray[numpy.int64], indptr: NDArray[numpy.int64], W: NDArray[numpy.float32], out: NDArray[numpy.float32]) -> None: ...

@overload
def csr_matmul(data: NDArray[numpy.float64], indices: NDArray[numpy.int32], indptr: NDArray[numpy.int32], W: NDArray[numpy.float64], out: NDArray[numpy.float64]) -> None:
    """out (m, D) <- A W, A in CSR, W (d, D)."""

@overload
def csr_matmul(data: NDArray[numpy.float64], indices: NDArray[numpy.int64], indptr: NDArray[numpy.int64], W: NDArray[numpy.float64], out: NDArray[numpy.float64]) -> None: ...

def plain_rows(X: object, single: bool, d: int, exponent: int) -> bool:
    """
    Whether X is a contiguous (n, d) array of floats or doubles, n > 0, with all |X| < 2^exponent.
    """

def window_pass(arg0: dict[str, Any], arg1: NDArray[numpy.float64], arg2: NDArray[numpy.float64] | None, arg3: NDArray[numpy.float64] | None, arg4: tuple[Any, ...], arg5: NDArray[numpy.float64], /) -> None: ...
