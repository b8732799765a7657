"""Random binning on the device: names and numbers of cells by hashing and sorting, products with the matrix of cells,
and ridge regression by conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from ...core.grids import Grids
from ...rows import Rows

ENTRIES = 1 << 26  # coordinates that are turned into indices at the same time
TOGETHER = 1 << 26  # rows × grids × outputs that are looked up or summed at the same time


class DeviceBinning:
    """The functions on cells of the engine of the processor, of which the device does the hashing and the numbering."""

    def __init__(self, ops: Any):
        self.ops = ops

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ops.host.binning, name)

    def cell_hashes(self, X: Rows, grids: Grids, threads: int = 1) -> np.ndarray:
        """Names of the cells of all rows, (R, n) uint64; see :mod:`kernelstream.core.cells_python`."""
        return self._names(X, grids).cpu().numpy().view(np.uint64)

    def number_cells(self, X: Rows, grids: Grids, threads: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``cells`` (R, n), a column for every cell in order of first appearance; their names (D,); ``starts``."""
        cells, keys = [], []
        for names in self._names(X, grids):
            mine, key = _numbered(names)
            cells.append(mine)
            keys.append(key)
        starts = np.concatenate([[0], np.cumsum([len(key) for key in keys])])
        found = torch.cat(keys).cpu().numpy().view(np.uint64)
        return torch.stack(cells).cpu().numpy(), found, starts.astype(np.int64)

    def cell_pass(
        self, cells: np.ndarray, width: int, y: np.ndarray, weight: np.ndarray | None, state: dict[str, Any], spec: Any
    ) -> np.ndarray:
        """The online pass over cells, which the processor does: a row touches few weights, the next may need them."""
        return self.ops.host.binning.cell_pass(cells, width, y, weight, state, self.ops.host.spec(*spec))

    def _names(self, X: Rows, grids: Grids) -> torch.Tensor:
        """(R, n) int64 with the bits of the names."""
        ops, (n, d) = self.ops, X.shape
        A, B = (ops.tensor(part.astype(np.int64)) for part in grids.multipliers)
        inverse, offset = ops.tensor(grids.inverse), ops.tensor(grids.offset)
        out = torch.empty((grids.count, n), dtype=torch.int64, device=ops.device)
        step = max(1, ENTRIES // d)
        for start in range(0, n, step):
            rows = slice(start, min(n, start + step))
            block = ops.rows(X, rows, inverse.dtype)
            for r in range(grids.count):
                place = (block - offset[r]).double().mul_(inverse[r].double())
                index = place.clamp_(-(2.0**62), 2.0**62).round_().long()
                a, b = ((index * part).sum(dim=1) & 0xFFFFFFFF for part in (A, B))
                out[r, rows] = (a << 32) | b
        return out


def _numbered(names: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of names (n,) in order of first appearance, (n,) int32, and the name of every number."""
    order = torch.argsort(names, stable=True)  # equal names together, in the order of the rows
    held = names[order]
    begins = torch.ones(len(held), dtype=torch.bool, device=held.device)
    begins[1:] = held[1:] != held[:-1]
    ranks = torch.argsort(order[begins])  # groups by their first row
    number = torch.empty_like(ranks)
    number[ranks] = torch.arange(len(ranks), device=held.device)
    cells = torch.empty(len(held), dtype=torch.int32, device=held.device)
    cells[order] = number[torch.cumsum(begins, dim=0) - 1].int()
    return cells, held[begins][ranks]


class DeviceCells:
    """Z (n, D) with ``1/sqrt(R)`` in one column of each of R grids, on the device.

    ``Z V`` looks up the cell of every row; ``Z'U`` brings the rows of every cell together, which were sorted once, and
    takes differences of their running sum in float64.

    Parameters
    ----------
    ops : Ops
    Z : CellMatrix
        Without missing cells.
    """

    def __init__(self, ops: Any, Z: Any):
        self.shape, self.value = Z.shape, 1.0 / np.sqrt(len(Z.cells))
        starts = ops.tensor(Z.starts[:-1])
        self.cells = ops.tensor(Z.cells) + starts[:, None].int()  # (R, n), columns of Z
        self.order = torch.empty_like(self.cells)  # (R, n), rows by their cells
        for r, cells in enumerate(self.cells):
            self.order[r] = torch.argsort(cells, stable=True)
        self.ends = torch.cumsum(torch.bincount(self.cells.flatten(), minlength=self.shape[1]), dim=0)  # (D,)
        self.starts = [int(start) for start in Z.starts]

    def _grids(self, columns: int) -> Iterator[slice]:
        """Grids that are worked on at once."""
        R, n = self.cells.shape
        step = max(1, TOGETHER // (n * columns))
        return (slice(r, min(r + step, R)) for r in range(0, R, step))

    def dot(self, V: torch.Tensor) -> torch.Tensor:
        """``Z V``, (D, C) -> (n, C)."""
        n, C = self.shape[0], V.shape[1]
        F = torch.zeros((n, C), dtype=V.dtype, device=V.device)
        for grids in self._grids(C):
            F += V.index_select(0, self.cells[grids].flatten()).view(-1, n, C).sum(dim=0)
        return F.mul_(self.value)

    def tdot(self, U: torch.Tensor) -> torch.Tensor:
        """``Z'U``, (n, C) -> (D, C)."""
        n, C = U.shape
        out = torch.empty((self.shape[1], C), dtype=U.dtype, device=U.device)
        for grids in self._grids(C):
            running = torch.cumsum(U.index_select(0, self.order[grids].flatten()), dim=0, dtype=torch.float64)
            columns = slice(self.starts[grids.start], self.starts[grids.stop])
            sums = running[self.ends[columns] - (grids.start * n + 1)]
            out[columns] = torch.diff(sums, dim=0, prepend=sums.new_zeros((1, C)))
        return out.mul_(self.value)


def conjugate_gradient(ops: Any, problem: Any, tol: float, max_iter: int) -> tuple[np.ndarray, list[float], bool]:
    """The iteration of :mod:`kernelstream.solvers.cg`, for ``(Z'A Z + lam I) W = Z'A (Y - offset)``.

    Returns
    -------
    W : (D, C)
    history : list of float
        Largest relative residual after each iteration.
    converged : bool
    """
    Z, lam = DeviceCells(ops, problem.Z), problem.lam
    kind = torch.float32 if np.dtype(problem.dtype) == np.float32 else torch.float64
    A = np.ones((len(problem.Y), 1)) if problem.weight is None else problem.weight[:, None]
    right = ops.tensor(A * (problem.Y - problem.base())).to(kind)
    A = ops.tensor(A).to(kind)
    B = Z.tdot(right)
    W = torch.zeros_like(B) if problem.start is None else ops.tensor(problem.start).to(kind)
    R = B.clone()
    if problem.start is not None:
        R -= Z.tdot(A * Z.dot(W)) + lam * W
    M = 1.0 / (Z.tdot(A) * Z.value + lam)
    P = M * R
    rz = (R * P).sum(dim=0, dtype=torch.float64)
    scale = (B * (M * B)).sum(dim=0, dtype=torch.float64).sqrt().clamp_min(1e-300)
    history: list[float] = []
    for iteration in range(1, max_iter + 1):
        going = rz.sqrt() > scale * tol
        if not bool(going.any()):
            return W.cpu().numpy(), history, True
        Q = Z.tdot(A * Z.dot(P)) + lam * P
        pq = (P * Q).sum(dim=0, dtype=torch.float64)
        step = torch.where(going & (pq > 0), rz / torch.where(pq > 0, pq, 1.0), 0.0).to(kind)
        W += step * P
        R -= step * Q
        new = (R * (M * R)).sum(dim=0, dtype=torch.float64)
        turn = torch.where(going & (rz > 0), new / torch.where(rz > 0, rz, 1.0), 0.0).to(kind)
        P = M * R + turn * P
        rz = torch.where(going, new, rz)
        history.append(float((rz.sqrt() / scale).max()))
        problem.report(iteration, history[-1])
    return W.cpu().numpy(), history, bool((rz.sqrt() <= scale * tol).all())
