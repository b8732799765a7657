"""Feature learners on a GPU, whose rows are learned one by one in a single program (:mod:`.walk`).

Rows in main memory are copied a chunk ahead, in a stream of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

import numpy as np
import torch

from ...losses import Loss
from ...rows import is_tensor
from ...state.nested import State
from ...updates import Update
from . import UNCOMPILED_ROWS, from_array
from .cosines import FREQUENCIES, fourier, fourier_tf32
from .each_row import EachRowPass
from .formulas import Program
from .maps import Fourier, round_
from .passes import DeviceFeaturePass
from .walk import Walk, WalkedRows, WalkedState, WalkKind

CHUNK = 32  # blocks whose rows are brought at once


class WalkPass(EachRowPass):
    """An :class:`.EachRowPass` whose rows are learned by one program for each block."""

    programs: int | None = None  # how many programs share the features; None: chosen here

    def __init__(self, ops: Any, mapping: Any, loss: Loss, update: Update, state: State, program: Program):
        super().__init__(ops, mapping, loss, update, state)
        self.program = program
        self.memory, self.book = ops.tensor(state["memory"]), self._new_book()
        self.walk: Any = None  # made with the buffers, when there are rows for them
        self.walked = False

    def _prepare(self) -> None:
        """Buffers, and the division of the features."""
        if self.walk is not None:
            return
        device, kind, m = self.ops.device, self.w.dtype, self.ops.block
        self.multiprocessors = torch.cuda.get_device_properties(device).multi_processor_count
        case = WalkKind(
            self.program, len(self.w), kind == torch.float64, "center" in self.state, self.map.unit, self.average
        )
        self.walk = Walk(case, self._held(), self.multiprocessors, self.programs)
        self.copies = torch.cuda.Stream(device)
        width = self.map.width if isinstance(self.map, Fourier) else self.state["n_features"]
        self.rows_in = torch.zeros((CHUNK * m, width), dtype=kind, device=device)
        if isinstance(self.map, Fourier):
            self.Z = torch.empty((m, self.map.n_out), dtype=kind, device=device)
            self.room = self.Z.new_empty((m, min(self.map.n_out // 2, FREQUENCIES)))

    def _held(self) -> WalkedState:
        return WalkedState(self.w, self.held.get("G"), self.held.get("w_mean"), self.memory, self.book)

    # ---------------------------------------------------------------- numbers in the state and on the device
    def _new_book(self) -> torch.Tensor:
        """Rows so far, and count and mean of the target."""
        book = torch.zeros(3, dtype=torch.float64)
        book[0] = float(self.state["t"])
        if "center" in self.state:
            book[1:] = torch.from_numpy(self.state["center"])
        return book.to(self.ops.device)

    def _numbers_home(self) -> None:
        """Copy the memory of the update and the mean of the target to the state."""
        self.state["memory"][:] = self.memory.cpu().numpy()
        if "center" in self.state:
            self.state["center"][:] = self.book[1:].cpu().numpy()

    def _numbers_there(self) -> None:
        """Copy the same, and the number of rows, to the device."""
        self.memory.copy_(torch.from_numpy(self.state["memory"]))
        self.book.copy_(self._new_book())

    def sync(self) -> None:
        if self.stale:
            super().sync()
            self._numbers_home()

    def _load(self) -> None:
        super()._load()
        self._numbers_there()

    def mark(self) -> Callable[[], DeviceFeaturePass]:
        put_back = super().mark()

        def after_all() -> DeviceFeaturePass:
            torch.cuda.synchronize(self.ops.device)  # pending work must not write afterwards
            return put_back()

        return after_all

    def _tensors(self) -> list[torch.Tensor]:
        return [*super()._tensors(), self.memory, self.book]

    # ---------------------------------------------------------------- rows
    def _few(self, n: int) -> bool:
        """Few rows are left to torch as long as no program has been compiled for these outputs."""
        return n <= UNCOMPILED_ROWS and not self.walked

    def score(self, X: Any) -> np.ndarray:
        """Scores of rows, (n, C) float64."""
        self._numbers_home()
        if self._few(X.shape[0]):
            return super().score(X)
        out = np.empty((X.shape[0], len(self.w)))
        with closing(self._blocks(X)) as blocks:
            for rows, Z in blocks:
                with self.ops.full():  # few columns: memory decides, not the rate of products
                    out[rows] = (Z @ self.answering.T).cpu().numpy()
        return out + self.state["center"][1] if "center" in self.state else out

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        n, C, kind, device = X.shape[0], len(self.w), self.w.dtype, self.ops.device
        if self._few(n):
            self._numbers_home()
            scores = super().learn(X, y, weight)
            self._numbers_there()
            return scores
        F = torch.empty((n, C), dtype=kind, device=device)
        targets = from_array(y).to(device, kind)
        weights = torch.ones(n, dtype=kind, device=device) if weight is None else from_array(weight).to(device, kind)
        self.stale = self.walked = True
        held = self._held()
        with closing(self._blocks(X)) as blocks:
            for rows, Z in blocks:
                K = targets if self.map.unit else torch.linalg.vector_norm(Z, dim=1, dtype=kind).square_()
                self.walk(WalkedRows(Z, K, targets[rows], weights[rows], F[rows]), held)
        scores = F.double().cpu().numpy()
        self.walk.check()
        self._check(scores)
        self.state["t"] += n if weight is None else int(np.count_nonzero(weight))
        return scores

    def _blocks(self, X: Any) -> Generator[tuple[slice, torch.Tensor], None, None]:
        """``(rows, Z)`` block by block, in a buffer that the next block uses again.

        It changes torch's settings for the thread until it is closed.
        """
        self._prepare()
        self.map.look(X)
        n, m = X.shape[0], self.ops.block
        with self.ops.products(), torch.cuda.device(self.ops.device):
            for start in range(0, n, CHUNK * m):
                size = min(CHUNK * m, n - start)
                self._put(X, slice(start, start + size))
                for k in range(0, size, m):
                    rows = slice(start + k, min(start + k + m, start + size))
                    yield rows, self._features_of(self.rows_in[k : k + m])[: rows.stop - rows.start]

    def _features_of(self, X: torch.Tensor) -> torch.Tensor:
        """Features of a block of placed rows."""
        if not isinstance(self.map, Fourier):
            return self.map(X)
        if self.ops.rounds(X.dtype):
            fourier_tf32(X, self.map.Wt, self.Z, 2 * self.multiprocessors)
        elif X.dtype == torch.float32:
            fourier(X, self.map.Wt, self.Z, self.room)
        else:
            self.Z.copy_(self.map.of_placed(X))
        return self.Z

    def _put(self, X: Any, rows: slice) -> None:
        """Rows of a tensor, an array or a CSR matrix into the buffer of the chunk."""
        into, stream = self.rows_in[: rows.stop - rows.start], torch.cuda.current_stream()
        with torch.cuda.stream(stream if is_tensor(X) else self.copies):
            given = self.ops.rows(X, rows, self.w.dtype)
        if not is_tensor(X):
            stream.wait_stream(self.copies)
            given.record_stream(stream)
        into[:, : X.shape[1]].copy_(given)
        if isinstance(self.map, Fourier):
            self.map.place(into)
            if self.ops.rounds(into.dtype):
                round_(into)
