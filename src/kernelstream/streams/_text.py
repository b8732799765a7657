"""What the readers of texts share: the position, and how much of the source has been read."""

from __future__ import annotations

from typing import Any

from ._base import Position, Stream
from ._bytes import Text, name_of
from ._table import Table


class TextStream(Stream):
    """Rows of a text."""

    def __init__(self, source: Any, block: int, **options: Any):
        super().__init__(name_of(source), block, **options)
        self.text = source if isinstance(source, Text) else Text(source)

    def _where(self) -> Position:
        return self.text.where()

    def _seek(self, position: Position) -> None:
        self.text.seek(position)

    def verify(self, position: Position) -> None:
        self.text.verify(position)

    @property
    def fraction(self) -> float | None:
        return self.text.bytes.fraction

    def close(self) -> None:
        self.text.bytes.close()


class TextTable(TextStream, Table):
    """A table in a text, whose targets may be labels or numbers."""

    def _waits(self) -> bool:
        return not self.text.has_line

    def _where(self) -> Position:
        return {**self.text.where(), "labels": self.labels}

    def _seek(self, position: Position) -> None:
        self.text.seek(position)
        self.labels = position["labels"]
