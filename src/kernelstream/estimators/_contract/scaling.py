r"""Whether the columns of the first rows share a unit: what ``standardize="auto"`` looks at.

One width for all columns compares them as they are: if one column is measured in thousands and another in
thousandths, the kernel sees only the first. The *unit* of column j in rows :math:`x_1, …, x_n` is the usual distance
from its median :math:`m_j` of the cells that differ from it (a column of rare ones among zeros has the unit 1, like a
column with as many ones as zeros):

.. math:: u_j^2 = \frac{1}{|\{i : x_{ij} \ne m_j\}|} \sum_i (x_{ij} - m_j)^2

Columns that never vary have none. Units are different if their root mean square is more than ``APART`` times their
geometric mean,

.. math:: \sqrt{\tfrac1d \sum_j u_j^2} \; > \; 1.5 \, \Bigl(\prod_j u_j\Bigr)^{1/d}

which compares the arithmetic and the geometric mean of variances, as Bartlett's test of equal variances does: the ratio
is 1 for equal units, has no unit itself, and a column that outweighs all others raises it, however many they are. For
the choice of statistic and number see papers/studies/column_units.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ...checks import few, is_flag
from ...core.corrupt import nothing_usual, places_of
from ...core.ranges import COLUMNS
from ...rows import Rows, dense
from .learner import Learner

AUTO = "auto"
APART = 1.5  # root mean square over geometric mean
FEWEST = 8  # rows that show a unit
WIDE = 2000  # columns up to which sparse rows of different units are made dense, so that they can be centred
NAMED = 3  # columns that a warning names, at either end


def check_standardize(value: Any) -> None:
    """ValueError unless it is True, False or "auto"."""
    if not (is_flag(value) or (isinstance(value, str) and value == AUTO)):
        raise ValueError(f"standardize must be True, False or 'auto', got {value!r}")


def demanded(value: Any) -> bool:
    """Whether ``standardize`` asks for scaling whatever the rows are."""
    return not isinstance(value, str) and bool(value)


def wanted_scaling(learner: Learner) -> bool | None:
    """Whether the columns of a learner's rows are to be scaled; None where the first rows decide."""
    given = learner.parameters["standardize"]
    if not isinstance(given, str):
        return bool(given)
    return False if learner.auto_scaling is None and not learner.one_width() else learner.auto_scaling


def no_moments(d: int, guards: bool) -> dict[str, Any]:
    """Entries of a state that scales d columns, before the first row; ``guards``: against corrupt cells."""
    found: dict[str, Any] = {"x_count": 0.0} | {name: np.zeros(d) for name in COLUMNS}
    return found | ({"x_usual": nothing_usual(d), "x_recent": np.zeros((places_of(d), d))} if guards else {})


def column_names(names: Any, columns: Any) -> str:
    """Some columns by their names, or numbers where they have none, for a message."""
    return few(j if names is None else repr(names[j]) for j in columns)


def scales_columns(state: dict[str, Any]) -> bool:
    """Whether rows are scaled before they are learned."""
    return "x_count" in state


def column_units(X: Rows) -> np.ndarray:
    """The unit of every column of X (n, d), as above, (d,); 0 for columns that never vary."""
    n, d = X.shape
    if not sp.issparse(X):
        return _units_of(np.asarray(X, np.float64))
    X = X.tocsc()
    found = np.zeros(d)
    full = 2 * np.diff(X.indptr) >= n  # the median of any other column is 0
    found[full] = _units_of(dense(X[:, full]).astype(np.float64))
    for j in np.flatnonzero(~full & (np.diff(X.indptr) > 0)):
        values = X.data[X.indptr[j] : X.indptr[j + 1]].astype(np.float64)
        found[j] = _units_of(values[:, None], 0.0)[0]
    return found


def _units_of(X: np.ndarray, median: Any = None) -> np.ndarray:
    if median is None:
        median = np.sort(X, axis=0)[(len(X) - 1) // 2]  # one of the cells: no column of two values has a third
    away = np.abs(X - median)
    most = away.max(axis=0, initial=0.0)
    parts = np.divide(away, most, out=np.zeros_like(away), where=most > 0)  # squares of small numbers would vanish
    return most * np.sqrt(np.square(parts).sum(axis=0) / np.maximum((away > 0).sum(axis=0), 1))


def apart(units: np.ndarray) -> float:
    """Root mean square over geometric mean of the units (d,) that are not 0; 1 where there are none."""
    logs = np.log(units[units > 0])
    if not len(logs):
        return 1.0
    logs -= logs.max()
    return float(np.sqrt(np.exp(2 * logs).mean()) / np.exp(logs.mean()))


def units_differ(X: Rows) -> bool:
    """Whether the columns of rows X (n, d) have different units."""
    return X.shape[0] >= FEWEST and apart(column_units(X)) > APART


def extremes(X: Rows, names: Any = None) -> str:
    """The columns of the largest and of the least units, for a message; ``names`` (d,) if they have some."""
    units = column_units(X)
    order = [int(j) for j in np.argsort(-units, kind="stable") if units[j] > 0]

    def listed(columns: list[int]) -> str:
        return ", ".join(f"{j if names is None else repr(names[j])} ({units[j]:.2g})" for j in columns)

    k = min(NAMED, len(order) // 2)
    return f"{listed(order[:k])} beside {listed(order[len(order) - k :])}"
