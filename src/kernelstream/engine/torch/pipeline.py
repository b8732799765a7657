r"""Feature learners on a GPU: blocks in two streams, chunks of blocks as one CUDA graph.

While the recursion of a block runs (one program, on one multiprocessor), the features and the Gram matrix of the next
block are made by all the others. Rows in this machine's memory travel through two page-locked buffers, a chunk ahead.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ...losses import Loss
from ...rows import dense, is_tensor
from ...state.nested import State
from ...updates import Update
from . import SMALL, from_array
from .blocks import BlockBuffers, new_book
from .maps import Fourier, round_
from .passes import FeaturePass
from .recursion import Program

CHUNK = 32  # blocks of a graph


class CudaPass(FeaturePass):
    """A :class:`FeaturePass` whose recursion runs on the device too."""

    def __init__(self, ops: Any, mapping: Any, loss: Loss, update: Update, state: State, program: Program):
        super().__init__(ops, mapping, loss, update, state)
        self.memory = ops.tensor(state["memory"])
        self.book = new_book(state, ops.device)
        self.program = program
        self.width = self.map.width if isinstance(self.map, Fourier) else state["n_features"]
        self.rounds = isinstance(self.map, Fourier) and ops.rounds(self.w.dtype)
        self.ready = False

    def _prepare(self) -> None:
        """Buffers and streams, when there are rows for them."""
        if self.ready:
            return
        kind, device, m, C = self.w.dtype, self.ops.device, self.ops.block, len(self.w)
        self.blocks = self._buffers()
        self.rows_in = torch.zeros((CHUNK * m, self.width), dtype=kind, device=device)
        self.y_in = torch.zeros(CHUNK * m, dtype=kind, device=device)
        self.weight_in = torch.zeros(CHUNK * m, dtype=kind, device=device)
        self.F = torch.zeros((CHUNK * m, C), dtype=kind, device=device)
        self.main = torch.cuda.Stream(device, priority=-1)  # what all waits for goes first
        self.side = torch.cuda.Stream(device)
        self.copies = torch.cuda.Stream(device)
        self.graph: Any = None
        self.pinned: list[torch.Tensor] = []
        self.ready = True

    def _buffers(self) -> Any:
        """Those of the parts of a block."""
        center = "center" in self.state
        return BlockBuffers(self.ops, self.map, self.program, self.w, self.memory, self.book, center)

    def sync(self) -> None:
        if self.stale:
            super().sync()
            self._numbers_home()

    def _numbers_home(self) -> None:
        """Memory of the update and mean of the target into the state."""
        self.state["memory"][:] = self.memory.cpu().numpy()
        if "center" in self.state:
            self.state["center"][:] = self.book[1:].cpu().numpy()

    def _load(self) -> None:
        super()._load()
        self.memory.copy_(torch.from_numpy(self.state["memory"]))
        self.book.copy_(new_book(self.state, self.ops.device))

    def mark(self) -> Callable[[], FeaturePass]:
        put_back = super().mark()

        def after_all() -> FeaturePass:
            torch.cuda.synchronize(self.ops.device)  # what is under way must not write afterwards
            return put_back()

        return after_all

    def _tensors(self) -> list[torch.Tensor]:
        return [*super()._tensors(), self.memory, self.book]

    def _few(self, n: int) -> bool:
        """Whether so few rows are left to the processor."""
        return n <= SMALL

    def _learn_small(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """A few rows, their recursion by the processor."""
        self._numbers_home()
        scores = super().learn(X, y, weight)
        self.memory.copy_(torch.from_numpy(self.state["memory"]))
        self.book.copy_(new_book(self.state, self.ops.device))
        return scores

    def score(self, X: Any) -> np.ndarray:
        """Scores of rows, (n, C) float64."""
        if self._few(X.shape[0]):
            self._numbers_home()
            return super().score(X)
        self._prepare()
        self.map.look(X)
        n, chunk = X.shape[0], len(self.F)
        out = np.empty((n, len(self.w)))
        m = self.ops.block
        with self.ops.products(), torch.cuda.device(self.ops.device), torch.cuda.stream(self.main):
            for start in range(0, n, chunk):
                size = min(chunk, n - start)
                self._put(X, slice(start, start + size))
                for k in range(0, size, m):
                    self.blocks.features(self.rows_in[k : k + m], 0)
                    self.blocks.scores(0, self.answering, self.F[k : k + m])
                out[start : start + size] = self.F[:size].cpu().numpy()
        return out + float(self.book[2]) if "center" in self.state else out

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        if self._few(X.shape[0]):
            return self._learn_small(X, y, weight)
        self._prepare()
        self.map.look(X)
        n, chunk, kind, device = X.shape[0], len(self.F), self.w.dtype, self.ops.device
        out = torch.empty((n, len(self.w)), dtype=kind, device=device)
        targets = from_array(y).to(device, kind)
        weights = torch.ones(n, dtype=kind, device=device) if weight is None else from_array(weight).to(device, kind)
        self.stale = True
        with self.ops.products(), torch.cuda.device(device):
            self.main.wait_stream(torch.cuda.current_stream())
            for start in range(0, n, chunk):
                size = min(chunk, n - start)
                part = slice(start, start + size)
                with torch.cuda.stream(self.main):
                    self._put(X, part)
                    self.y_in[:size].copy_(targets[part])
                    self.weight_in[:size].copy_(weights[part])
                    if size < chunk:
                        self.weight_in[size:].zero_()
                    self._chunk(size)
                    out[part].copy_(self.F[:size])
            torch.cuda.current_stream().wait_stream(self.main)
        scores = out.double().cpu().numpy()
        self._check(scores)
        self.state["t"] += n if weight is None else int(np.count_nonzero(weight))
        return scores

    # ---------------------------------------------------------------- a chunk of blocks
    def _chunk(self, size: int) -> None:
        """Learn the rows that the buffers hold."""
        blocks = -(-size // self.ops.block)
        if blocks < CHUNK:
            self._blocks(blocks)
            return
        if self.graph is None:
            self._capture()
        self.graph.replay()

    def _capture(self) -> None:
        """Record a full chunk; a few blocks run before it (and are undone) so that everything is compiled."""
        kept = [(held, held.clone()) for held in self._tensors()]
        self._blocks(2)
        for held, value in kept:
            held.copy_(value)
        self.main.synchronize()
        graph = torch.cuda.CUDAGraph()
        collects = gc.isenabled()
        gc.disable()  # a model that is freed meanwhile would free its own graph, which ends the recording
        try:
            with torch.cuda.graph(graph, stream=self.main):
                self._blocks(CHUNK)
        finally:
            if collects:
                gc.enable()
        self.graph = graph

    def _blocks(self, count: int) -> None:
        """Features and Gram matrices in the side stream, at most two blocks ahead of the recursions in this one."""
        m, main, side, blocks = self.ops.block, torch.cuda.current_stream(), self.side, self.blocks
        side.wait_stream(main)
        used: list[torch.cuda.Event] = []
        for i in range(count):
            rows, k = slice(i * m, (i + 1) * m), i % 2
            with torch.cuda.stream(side):
                if i >= 2:
                    side.wait_event(used[i - 2])
                blocks.features(self.rows_in[rows], k)
                blocks.products(k)
                made = side.record_event()
            main.wait_event(made)
            blocks.step(k, self.F[rows], self.y_in[rows], self.weight_in[rows])
            used.append(main.record_event())
        main.wait_stream(side)

    # ---------------------------------------------------------------- rows
    def _put(self, X: Any, rows: slice) -> None:
        """Rows of a tensor, an array or a CSR matrix into the buffer of the chunk."""
        self._copy(X, rows)
        if isinstance(self.map, Fourier):
            self.map.place(self.rows_in[: rows.stop - rows.start])
        if self.rounds:
            round_(self.rows_in[: rows.stop - rows.start])

    def _copy(self, X: Any, rows: slice) -> None:
        size, d = rows.stop - rows.start, X.shape[1]
        into = self.rows_in[:size, :d]
        if is_tensor(X):
            into.copy_(X[rows])
            return
        if not self.pinned:
            shape = (len(self.rows_in), d)
            self.pinned = [torch.empty(shape, dtype=self.w.dtype, pin_memory=True) for _ in range(2)]
            self.landed = [torch.empty(shape, dtype=self.w.dtype, device=self.ops.device) for _ in range(2)]
            self.free = [torch.cuda.Event(), torch.cuda.Event()]
            self.turn = 0
        k = self.turn
        self.turn = 1 - k
        self.free[k].synchronize()  # the chunk before last has left these buffers
        self.pinned[k][:size].copy_(from_array(dense(X[rows])))
        with torch.cuda.stream(self.copies):
            self.landed[k][:size].copy_(self.pinned[k][:size], non_blocking=True)
            there = self.copies.record_event()
        stream = torch.cuda.current_stream()
        stream.wait_event(there)
        into.copy_(self.landed[k][:size])
        self.free[k].record(stream)
