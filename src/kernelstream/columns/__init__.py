"""Rows of words, dates, gaps and new columns, encoded as rows of numbers by an encoder that learns from the stream."""

from .encoder import Columns
from .kinds import KINDS
from .stream import StreamPipeline, make_stream

__all__ = [
    "KINDS",
    "Columns",
    "StreamPipeline",
    "make_stream",
]
