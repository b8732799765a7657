"""Blocks of random features that are made when needed and then discarded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from ... import settings
from ...core import threads
from ...kernels import Gaussian, Kernel
from ...random import SeedStream, generator
from ...rows import Rows

ROWS = 2048  # rows for which a block is made once
TILE = 128  # rows whose features stay in the second-level cache until they are multiplied
GROUP = 8  # blocks whose scores are summed before they join the others: the same sums on any number of threads


class FeatureBlocks:
    """Block i of the random features of a kernel, for i = 0, 1, 2, …: a function of (seed, stream, i) alone.

    Parameters
    ----------
    kernel : Kernel
        With a numeric bandwidth and random features.
    seed : int
    stream : SeedStream
        Where the random numbers come from. The Gaussian kernel takes them from :mod:`kernelstream.core.philox`, the
        others from ``kernelstream.random.generator``.
    d : int
        Width of the rows.
    size : int
        Draws in a block; less when a draw has more than two features, so that a block has at most about ``2 size``.
    dtype : numpy.dtype
    ops : module
        The engine.

    Attributes
    ----------
    width : int
        Number of features of a block.
    """

    def __init__(
        self,
        kernel: Kernel,
        seed: int,
        d: int,
        size: int,
        dtype: Any,
        ops: Any,
        stream: SeedStream = SeedStream.MAP,
    ):
        self.kernel, self.seed, self.d = kernel, seed, d
        self.dtype, self.ops, self.stream = np.dtype(dtype), ops, stream
        self.normal = isinstance(kernel, Gaussian)
        per_draw = kernel.per_draw(d)
        self.draws = size if per_draw <= 2 else max(1, 2 * size // per_draw)
        self.width = per_draw * self.draws
        self._room = settings.cache_bytes()  # made blocks are kept in it, the first ones first
        self._kept: dict[int, Any] = {}

    # ---------------------------------------------------------------- making a block
    def _frequencies(self, i: int, coordinates: np.ndarray) -> np.ndarray:
        """Rows ``coordinates`` of the Gaussian frequencies of block i, (len(coordinates), D)."""
        scale = math.sqrt(2.0 * self.kernel.gamma)
        stream = self.stream >> 32  # this generator counts streams in a word of 32 bits
        return self.ops.normals(self.seed, i, coordinates, self.draws, stream, scale, self.dtype)

    def _make(self, i: int) -> Any:
        """The random part of block i: frequencies (d, D) of a Fourier kernel, else what the kernel draws."""
        if self.normal:
            return self._frequencies(i, np.arange(self.d))
        rng = generator(self.seed, self.stream, i)
        if self.kernel.is_fourier:
            return self.kernel.frequencies(rng, self.d, self.draws).astype(self.dtype)
        return self.kernel.draw(rng, self.d, self.draws)

    def random_part(self, i: int) -> Any:
        """What :meth:`_make` returns, from the cache if it is there."""
        made = self._kept.get(i)
        if made is None:
            made = self._make(i)
            size = made.nbytes if isinstance(made, np.ndarray) else sum(part.nbytes for part in made.values())
            if size <= self._room:
                self._room -= size
                self._kept[i] = made
        return made

    # ---------------------------------------------------------------- using it
    def features(self, X: Rows, i: int) -> np.ndarray:
        """Features of rows in block i, (m, width)."""
        X, part = self._narrow(X)
        made: Any = self.random_part(i) if part is None else self._frequencies(i, part)
        if self.kernel.is_fourier:
            return self.ops.fourier(X, made)
        return self.kernel.features(X, made)

    def scores(self, X: Rows, A: np.ndarray, first: int = 0, together: bool = False) -> np.ndarray:
        """``sum_i Z_i(X) A_i`` over blocks i = first, first + 1, …, with weights A (blocks, width, C); (n, C) float64.

        ``together`` allows the python engine to take all rows at once, where the scores of a row may depend on its
        neighbours in the last bit.
        """
        n, C = X.shape[0], A.shape[2]
        out = np.zeros((n, C))
        groups = threads.cuts(len(A), GROUP)
        pieces = [(rows, group) for rows in threads.cuts(n, ROWS) for group in groups]
        sums: dict[tuple[int, int], np.ndarray] = {}

        def work(piece: tuple[slice, slice]) -> None:
            rows, group = piece
            part, coordinates = self._narrow(X[rows])
            F = sums[rows.start, group.start] = np.zeros((part.shape[0], C))
            for k in range(group.start, group.stop):
                i = first + k
                made = self.random_part(i) if coordinates is None else self._frequencies(i, coordinates)
                self._add(part, made, A[k], F, together)

        # for less, starting threads takes longer than the work
        threads.each(work, pieces, self.ops.THREADED and n * len(A) > 1000)
        for rows, group in pieces:
            out[rows] += sums[rows.start, group.start]
        return out

    def _add(self, X: Rows, made: Any, A: np.ndarray, F: np.ndarray, together: bool) -> None:
        """``F += Z A`` for the block whose random part is given."""
        alone = self.ops.BLOCK == 1 and not together  # a row's scores do not depend on its neighbours
        for rows in threads.cuts(X.shape[0], 1 if alone else TILE):
            part = X[rows]
            if self.kernel.is_fourier:
                Z = self.ops.fourier(part, made, self.ops.workspace("Z", (part.shape[0], len(A)), made.dtype))
            else:
                Z = self.kernel.features(part, made)
            F[rows] += times(Z, A) if alone else Z @ A

    def _narrow(self, X: Rows) -> tuple[Rows, np.ndarray | None]:
        """Rows without columns that are 0 in all of them, and the columns left: wide CSR rows need few frequencies."""
        if not (self.normal and sp.issparse(X)) or 4 * X.nnz > self.d:
            return X, None
        used, indices = np.unique(X.indices, return_inverse=True)
        narrow = sp.csr_array((X.data, indices.astype(X.indices.dtype), X.indptr), shape=(X.shape[0], len(used)))
        return narrow, used


def times(Z: np.ndarray, A: np.ndarray) -> np.ndarray:
    """``Z A``, (m, P) (P, C) -> (m, C), number by number: none depends on how many rows and outputs there are.

    A product of matrices would add up in another order with one output than with two.
    """
    columns = np.ascontiguousarray(A.T)
    return np.array([[z @ a for a in columns] for z in np.ascontiguousarray(Z)])
