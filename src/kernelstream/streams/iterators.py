"""Iterables of Python that give blocks (X, y)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..rows import canonical
from .base import BLOCK_ROWS, Block, Position, Stream, joined


class Blocks(Stream):
    """An iterable of pairs (X, y), X with any number of rows, regrouped into blocks of equal length.

    Parameters
    ----------
    blocks : iterable
        Pairs of rows (n, d), dense or CSR, and targets (n,) or None. An iterable that can be restarted, such as a
        list, allows :meth:`seek` backwards.
    block : int, default=1024
        Rows per block.
    n_rows : int, optional
        Rows in all, if known.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.streams import Blocks
    >>> [len(y) for X, y in Blocks([(np.ones((3, 2)), np.ones(3))] * 4, block=5)]
    [5, 5, 2]
    """

    unit = "row"

    def __init__(self, blocks: Iterable[Any], block: int = BLOCK_ROWS, *, n_rows: int | None = None):
        super().__init__(getattr(blocks, "name", None) or type(blocks).__name__, block)
        self.blocks, self.n_rows = blocks, n_rows
        self.source = iter(blocks)
        self.held: list[Block] = []
        self.n_held = 0

    def _next(self, n: int) -> Block | None:
        while self.n_held < n:
            pair = next(self.source, None)
            if pair is None:
                break
            block = _pair(pair)
            if self.n_features is not None and block[0].shape[1] != self.n_features:
                raise ValueError(
                    f"{self.name}: a block has {block[0].shape[1]} columns, the first had {self.n_features}"
                )
            self.n_features = int(block[0].shape[1])
            if block[0].shape[0]:
                self.held.append(block)
                self.n_held += block[0].shape[0]
        whole = joined(self.held)
        if whole is None:
            return None
        taken, (X, y) = min(n, self.n_held), whole
        self.held = [(X[taken:], None if y is None else y[taken:])] if taken < self.n_held else []
        self.n_held -= taken
        return X[:taken], None if y is None else y[:taken]

    def _where(self) -> Position:
        return {}

    def _seek(self, position: Position) -> None:
        todo = position["rows"] - self.rows
        if todo < 0:
            if self.source is self.blocks:
                raise ValueError(f"{self.name} cannot be read again from an earlier position")
            self.source, self.held, self.n_held, self.rows = iter(self.blocks), [], 0, 0
            todo = position["rows"]
        while todo:
            block = self._next(min(todo, self.block))
            if block is None:
                raise ValueError(f"{self.name} ends before the position to resume from")
            todo -= block[0].shape[0]


def _pair(pair: Any) -> Block:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ValueError(f"an iterable must give pairs (X, y), not {type(pair).__name__}")
    X = canonical(pair[0]) if sp.issparse(pair[0]) else np.asarray(pair[0])
    y = None if pair[1] is None else np.asarray(pair[1])
    if X.ndim != 2 or (y is not None and y.shape != X.shape[:1]):
        raise ValueError(f"a block has X of shape {X.shape} and y of shape {None if y is None else y.shape}")
    return X, y
