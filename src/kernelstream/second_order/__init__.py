"""Second-order learning: ``w = A^-1 b`` after every row, by sufficient statistics.

The mathematics is in three small files: what a row does (:mod:`.rules`), what is remembered (:mod:`.statistics`), and
the recursion, once row by row (:mod:`.rows`) and once in blocks (:mod:`.blocks`).
"""

from . import diagonal, experts
from .rows import RowRecursion
from .rules import LeastSquares, Margin, Newton, Rule
from .statistics import BY_ROW, REPLACED, announce, append, factor, flush, more_ridge, schema, start, totals, widen

__all__ = [
    "BY_ROW",
    "REPLACED",
    "LeastSquares",
    "Margin",
    "Newton",
    "RowRecursion",
    "Rule",
    "announce",
    "append",
    "diagonal",
    "experts",
    "factor",
    "flush",
    "more_ridge",
    "schema",
    "start",
    "totals",
    "widen",
]
