"""Several sources, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._table import Table
from .base import Block, Position, Stream


class Chain(Stream):
    """The rows of several sources of the same kind; a block never crosses the end of a source.

    Parameters
    ----------
    sources : list
    open : callable
        Makes a stream of a source.
    """

    def __init__(self, sources: Sequence[Any], open: Callable[[Any], Stream]):
        if not sources:
            raise ValueError("there is nothing to read")
        self.sources, self.open = list(sources), open
        self.at, self.now = 0, open(sources[0])
        super().__init__(self.now.name, self.now.block, self.now.on_error)
        self.skipped_before = 0
        self.ends: list[Position] = []  # where the sources before this one ended
        self._like_now()

    def _like_now(self) -> None:
        self.name, self.n_features, self.feature_names = self.now.name, self.now.n_features, self.now.feature_names

    def _go_to(self, at: int) -> None:
        before = self.now
        before.close()
        self.at, self.now = at, self.open(self.sources[at])
        if self.now.feature_names != before.feature_names:
            raise ValueError(f"the columns of {self.now.name} are not those of {before.name}")
        if isinstance(self.now, Table) and isinstance(before, Table) and before.labels is not None:
            self.now.labels = before.labels
        if before.feature_names is None and self.now.n_features is not None:
            self.now.n_features = max(self.now.n_features, before.n_features or 0)
        self._like_now()

    def _next(self, n: int) -> Block | None:
        while True:
            block = self.now.read(n)
            self.skipped = self.skipped_before + self.now.skipped
            self.n_features = self.now.n_features
            if block is not None or self.at + 1 == len(self.sources):
                return block
            self.skipped_before += self.now.skipped
            self.ends = [*self.ends, self.now.position]
            self._go_to(self.at + 1)

    def _where(self) -> Position:
        return {"source": self.at, "skipped_before": self.skipped_before, "ends": self.ends, "inner": self.now.position}

    def _seek(self, position: Position) -> None:
        if position["source"] >= len(self.sources):
            raise ValueError(
                f"the position to resume from is in source {position['source'] + 1} of {len(self.sources)}"
            )
        if position["source"] != self.at:
            self._go_to(position["source"])
        self.skipped_before, self.ends = position["skipped_before"], position["ends"]
        self.now.seek(position["inner"])
        self._like_now()

    def verify(self, position: Position) -> None:
        for source, inner in zip(self.sources, [*position["ends"], position["inner"]], strict=False):
            with self.open(source) as stream:
                stream.verify(inner)

    @property
    def fraction(self) -> float | None:
        part = self.now.fraction
        return None if part is None else (self.at + part) / len(self.sources)

    def close(self) -> None:
        self.now.close()
