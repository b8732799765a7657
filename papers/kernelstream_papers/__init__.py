"""The papers' tables and figures, computed again with this library, and beside the tools people use today.

An experiment is one declarative file in ``experiments/``: data, algorithms, grids, repetitions, the printed figures.

>>> import kernelstream_papers as papers
>>> papers.load("thesis-table-3-2").place
'Table 3.2'
"""

from ._experiment import Algorithm, Data, Experiment, Printed, load, names, parse
from ._records import Records
from ._runner import NoData, run
from ._table import Cell, table, worse

__all__ = [
    "Algorithm",
    "Cell",
    "Data",
    "Experiment",
    "NoData",
    "Printed",
    "Records",
    "load",
    "names",
    "parse",
    "run",
    "table",
    "worse",
]
