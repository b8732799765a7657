"""The random grids of random binning: pitches, offsets and the numbers that name a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelstream.random import SeedStream, generator

# The compiled loops take a shorter path for coordinates within this many of the finest pitches from 0: their cell
# indices have 22 bits.
NEAR = 2**21 - 2


@dataclass(frozen=True)
class Grids:
    """R grids for rows of width d; cell index of x_j in grid r: the integer nearest to ``(x_j - offset) * inverse``.

    That is ``floor((x_j - u) / delta)`` with ``offset = u + delta/2`` and ``inverse = 1/delta``.
    """

    inverse: np.ndarray  # (R, d)
    offset: np.ndarray  # (R, d)
    limit: np.ndarray  # (d,), the largest |x_j| for the shorter path
    multipliers: np.ndarray  # (2, d) uint32, of the hash of a cell

    @property
    def count(self) -> int:
        """The number R of grids."""
        return len(self.inverse)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The four arrays, as the compiled functions take them."""
        return self.inverse, self.offset, self.limit, self.multipliers


def draw(kernel: Any, seed: int, d: int, R: int, dtype: Any, width: np.ndarray | None = None) -> Grids:
    """Grids of a kernel with ``pitches``, from a seed; the first grids do not depend on how many follow.

    Parameters
    ----------
    kernel : Kernel
        With a numeric bandwidth.
    seed, d, R : int
    dtype : numpy dtype
        Type of the rows.
    width : (d,) array, optional
        Widths by which the columns are divided before the kernel sees them; the grids are scaled instead.
    """
    if not hasattr(kernel, "pitches"):
        raise ValueError(
            f"random binning needs a product kernel with a convex profile, such as 'laplacian' or "
            f"kernels.Convex(profile): {type(kernel).__name__} has no pitches"
        )
    pitch = np.maximum(kernel.pitches(generator(seed, SeedStream.MAP), d, R).T, 1e-30)  # (R, d)
    if width is not None:
        pitch = pitch * width
    offset = (generator(seed, SeedStream.MAP, 1).random((R, d)) + 0.5) * pitch
    limit = NEAR * pitch.min(axis=0)
    multipliers = generator(seed, SeedStream.MAP, 2).integers(0, 2**32, (2, d), dtype=np.uint32)
    inverse, offset, limit = (np.ascontiguousarray(part, dtype=dtype) for part in (1 / pitch, offset, limit))
    return Grids(inverse, offset, limit, multipliers)


def coarsened(grids: Grids, factors: tuple[int, ...]) -> Grids:
    """The first grid at several times its pitch: an order of rows by these cells keeps neighbours together."""
    inverse = np.concatenate([grids.inverse[:1] / factor for factor in factors])
    offset = np.repeat(grids.offset[:1], len(factors), axis=0)
    return Grids(np.ascontiguousarray(inverse, grids.inverse.dtype), offset, grids.limit, grids.multipliers)
