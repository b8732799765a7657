"""Feature learners on a GPU whose rows are walked one after the other by one program (:mod:`.walk`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from . import SMALL
from .blocks import FeatureBuffers
from .each_row import EachRowPass
from .pipeline import CudaPass
from .walk import Walk


class WalkPass(CudaPass, EachRowPass):
    """An :class:`.EachRowPass` whose rows are learned by one program for each block."""

    walk: Walk | None = None  # made with the buffers
    walked = False
    programs: int | None = None  # that share the features; None chooses

    def _few(self, n: int) -> bool:
        """Few rows are left to torch as long as no program has been compiled for these outputs."""
        return n <= SMALL and not self.walked

    def _buffers(self) -> Any:
        device = self.ops.device
        most = torch.cuda.get_device_properties(device).multi_processor_count
        self.walk = Walk(self.w, 1 + len(self._others()), most, self.programs)
        self.numbers = torch.tensor(self.program.numbers, dtype=torch.float64, device=device)
        return FeatureBuffers(self.ops, self.map, self.w, 1)

    def _chunk(self, size: int) -> None:
        m, Z, kind = self.ops.block, self.blocks.Z[0], self.w.dtype
        walk: Any = self.walk
        self.walked = True
        for start in range(0, size, m):
            rows = slice(start, min(start + m, size))
            some = Z[: rows.stop - start]
            self.blocks.features(self.rows_in[start : start + m], 0)
            K = self.y_in if self.map.unit else torch.linalg.vector_norm(some, dim=1, dtype=kind).square_()
            walk(
                some, K, self.y_in[rows], self.weight_in[rows], self.F[rows], (self.w, self.G, self.mean), self.program,
                self.numbers, self.memory, self.book,
                center="center" in self.state, unit=self.map.unit, average=self.average,
            )  # fmt: skip

    def _check(self, scores: np.ndarray) -> None:
        if self.walk is not None:
            self.walk.check()
        super()._check(scores)
