"""The parts of one block on a GPU, in buffers that are made once: features, Gram matrix, scores, recursion, weights."""

from __future__ import annotations

from typing import Any

import torch

from . import products
from .maps import DeviceMap, Fourier
from .recursion import BOOK, Program, recursion


class FeatureBuffers:
    """Features of blocks of m rows, and their scores; m is the engine's.

    Parameters
    ----------
    ops : Ops
    features : DeviceMap
    w : (C, P)
        Weights, for their type and size.
    count : int
        Blocks that exist at the same time.
    """

    def __init__(self, ops: Any, features: DeviceMap, w: torch.Tensor, count: int):
        self.ops, self.features_of = ops, features
        C, P = w.shape
        m, device = ops.block, w.device
        single = w.dtype == torch.float32
        self.fused = ops.rounds(w.dtype)
        self.half = single and ops.precision == "fp16"
        kind = torch.float16 if self.half else w.dtype
        self.Z = [torch.zeros((m, P), dtype=kind, device=device) for _ in range(count)]
        if self.fused:
            self.programs = torch.cuda.get_device_properties(device).multi_processor_count
        elif single:
            self.room = torch.empty((m, min(P // 2 + 1, products.FREQUENCIES)), device=device)
        if single:
            self.scores_of = products.Scores(m, C, device)

    def features(self, X: torch.Tensor, k: int) -> None:
        """Features of rows X (m, d padded), placed if they are for a Fourier map, into buffer k."""
        Z, features = self.Z[k], self.features_of
        if isinstance(features, Fourier) and self.fused:
            products.fourier_tf32(X, features.Wt, Z, 2 * self.programs)
        elif isinstance(features, Fourier) and Z.dtype != torch.float64:
            products.fourier(X, features.Wt, Z, self.room)
        else:
            Z.copy_(features.of_placed(X) if isinstance(features, Fourier) else features(X))

    def scores(self, k: int, w: torch.Tensor, F: torch.Tensor) -> None:
        """F (m, C) from the features in buffer k and weights w (C, P), in float32 or better."""
        if w.dtype == torch.float32:
            self.scores_of(self.Z[k], w, F)
        else:
            torch.mm(self.Z[k], w.T, out=F)


class BlockBuffers(FeatureBuffers):
    """Two sets of features and Gram matrices, so that one block's can be made while another is used.

    Rows that are missing have weight 0.

    Parameters
    ----------
    ops : Ops
    features : DeviceMap
    program : Program
    w : (C, P)
        The weights, changed in place.
    memory : (n, C) float64, book : (3,) float64
        See :func:`recursion`.
    center : bool
    """

    def __init__(
        self,
        ops: Any,
        features: DeviceMap,
        program: Program,
        w: torch.Tensor,
        memory: torch.Tensor,
        book: torch.Tensor,
        center: bool,
    ):
        super().__init__(ops, features, w, 2)
        self.program, self.w, self.memory, self.book, self.center = program, w, memory, book, center
        C, P = w.shape
        m, device = ops.block, w.device
        self.S = [torch.zeros((m, m), dtype=w.dtype, device=device) for _ in range(2)]
        self.alpha = torch.zeros((m, C), dtype=w.dtype, device=device)
        self.decay = torch.ones(C, dtype=w.dtype, device=device)
        self.numbers = torch.tensor(program.numbers, dtype=torch.float64, device=device)
        if self.fused:
            self.gram = products.Gram(m, P, device, products.GRAM[self.Z[0].dtype], self.programs)

    def products(self, k: int) -> None:
        """Gram matrix of the features in buffer k."""
        if self.fused:
            self.gram(self.Z[k], self.S[k])
        else:
            torch.mm(self.Z[k], self.Z[k].T, out=self.S[k])

    def recursion(self, k: int, F: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> None:
        """The rows in order: F becomes the scores before each update."""
        recursion(
            F, self.S[k], y, weight, self.program, self.numbers, self.memory, self.book, self.alpha, self.decay,
            center=self.center, unit=self.features_of.unit,
        )  # fmt: skip

    def absorb(self, k: int) -> None:
        """``w <- decay w + alpha'Z``."""
        Z, w, alpha = self.Z[k], self.w, self.alpha
        if w.dtype == torch.float32 and (len(w) > 1 or self.half):
            products.absorb(Z, alpha, self.decay, w)
            return
        if self.program.decays:
            w *= self.decay[:, None]
        if len(w) == 1:
            w[0].addmv_(Z.T, alpha[:, 0])
        else:
            w.addmm_(alpha.T, Z)

    def step(self, k: int, F: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> None:
        """All that must wait for the block before."""
        with self.ops.full():  # few columns: memory decides, not the rate of products
            self.scores(k, self.w, F)
            self.recursion(k, F, y, weight)
            self.absorb(k)


def new_book(state: dict[str, Any], device: torch.device) -> torch.Tensor:
    """Rows so far, and count and mean of the target."""
    book = torch.zeros(BOOK, dtype=torch.float64)
    book[0] = float(state["t"])
    if "center" in state:
        book[1:] = torch.from_numpy(state["center"])
    return book.to(device)
