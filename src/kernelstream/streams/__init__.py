"""Streams: rows of files, pipes, frames and iterators as blocks (X, y), in one pass and bounded memory.

>>> import io
>>> from kernelstream import FeatureClassifier, streams
>>> text = io.BytesIO(b"a,b,label\\n1,2,yes\\n3,4,no\\n5,6,yes\\n")
>>> model = FeatureClassifier(random_state=0)
>>> for X, y in streams.CSV(text, target="label", block=2):
...     _ = model.partial_fit(X, y)
>>> model.classes_.tolist()
['no', 'yes']
"""

from ._open import FORMATS, open
from .arrays import Arrays
from .augment import augment
from .base import BadRowError, Stream
from .cells import Cells, Records
from .chain import Chain
from .csv import CSV
from .iterators import Blocks
from .jsonl import JSONLines
from .libsvm import LibSVM
from .tables import Arrow, Frame

__all__ = [
    "CSV",
    "FORMATS",
    "Arrays",
    "Arrow",
    "BadRowError",
    "Blocks",
    "Cells",
    "Chain",
    "Frame",
    "JSONLines",
    "LibSVM",
    "Records",
    "Stream",
    "augment",
    "open",
]
