"""What the readers of texts share: the position, and how much of the source has been read."""

from __future__ import annotations

from ._base import Position, Stream
from ._bytes import Text


class TextStream(Stream):
    """Rows of a text, whose targets may be labels or numbers."""

    text: Text
    labels: bool | None

    def _where(self) -> Position:
        return {**self.text.where(), "labels": self.labels}

    def _seek(self, position: Position) -> None:
        self.text.seek(position)
        self.labels = position["labels"]

    def verify(self, position: Position) -> None:
        self.text.verify(position)

    @property
    def fraction(self) -> float | None:
        return self.text.bytes.fraction

    def close(self) -> None:
        self.text.bytes.close()
