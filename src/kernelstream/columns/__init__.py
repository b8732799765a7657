"""Rows as they come: words, dates, gaps and new columns as rows of numbers, learned on the way."""

from .encoder import Columns
from .kinds import KINDS
from .stream import StreamPipeline, make_stream

__all__ = [
    "KINDS",
    "Columns",
    "StreamPipeline",
    "make_stream",
]
