"""Rows as they come: words, dates, gaps and new columns as rows of numbers, learned on the way."""

from .encoder import Columns
from .files import CellsArrow, CellsCSV, JSONLines, open_rows
from .kinds import KINDS
from .sources import Cells, Records
from .stream import StreamPipeline, make_stream

__all__ = [
    "KINDS",
    "Cells",
    "CellsArrow",
    "CellsCSV",
    "Columns",
    "JSONLines",
    "Records",
    "StreamPipeline",
    "make_stream",
    "open_rows",
]
