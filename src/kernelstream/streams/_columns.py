"""Columns of a table: which are features, and which is the target."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from ..registry.names import did_you_mean

MISSING = frozenset({"", "?", "NA", "nan", "NaN", "N/A", "null"})  # as in csv.hpp


class TableColumns:
    """Which columns of a table become the columns of X.

    Parameters
    ----------
    names : list of str
        Columns of the table; the second of one name is renamed, see :func:`different`.
    target : str, int or None
        Column of y, by name or number; None for rows without a target.
    features : list, optional
        Columns to use, in this order; all but the target by default.
    drop : list
        Columns to leave out.
    """

    def __init__(
        self,
        names: Sequence[str],
        target: str | int | None = None,
        features: Sequence[Any] | None = None,
        drop: Iterable[Any] = (),
        where: str = "the table",
    ):
        self.names, self.where = different(names), where
        self._numbers = {name: j for j, name in enumerate(self.names)}
        renamed = [f"{old!r} is {new!r}" for old, new in zip(names, self.names, strict=True) if old != new]
        if renamed:
            shown = ", ".join(renamed[:5]) + (", ..." if len(renamed) > 5 else "")
            warnings.warn(f"{where} has columns of the same name: the second {shown}", UserWarning, stacklevel=3)
        self.target = None if target is None else self._find(target)
        dropped = {self._find(column) for column in drop}
        if features is None:
            chosen = [j for j in range(len(self.names)) if j != self.target and j not in dropped]
        else:
            if features and not any(column in self._numbers or _is_place(column) for column in features):
                raise ValueError(
                    f"{where} has none of the columns {self._some(features)}: it has {self._some(self.names)}"
                )
            chosen = [self._find(column) for column in features]
            if self.target in chosen:
                raise ValueError(f"{self.names[self.target or 0]!r} cannot be a feature and the target")
        if not chosen:
            raise ValueError(f"{where} has no column left to learn from")
        self.features = chosen

    def _find(self, column: Any) -> int:
        """Number of a column given by name or number."""
        if isinstance(column, str):
            if column in self._numbers:
                return self._numbers[column]
            if not _is_place(column):
                hint = did_you_mean(column, self.names)
                raise ValueError(f"{self.where} has no column {column!r}: {hint}it has {self._some(self.names)}")
            column = int(column)
        if isinstance(column, bool) or not -len(self.names) <= column < len(self.names):
            raise ValueError(f"{self.where} has no column {column!r}: it has {len(self.names)}")
        return int(column) % len(self.names)

    @staticmethod
    def _some(names: Sequence[Any]) -> str:
        return ", ".join(map(str, names[:20])) + (", ..." if len(names) > 20 else "")

    @property
    def feature_names(self) -> list[str]:
        """A name for every column of X."""
        return [self.names[j] for j in self.features]

    @property
    def used(self) -> list[int]:
        """The features and the target."""
        return [*self.features, *([] if self.target is None else [self.target])]


def _is_place(column: Any) -> bool:
    """Whether a column is given by its number rather than its name."""
    return not isinstance(column, str) or column.lstrip("-").isdigit()


def different(names: Sequence[str]) -> list[str]:
    """Names of columns, of which the second ``x`` is ``x.1`` and the third ``x.2``, as in pandas.

    >>> different(["x", "y", "x", "x"])
    ['x', 'y', 'x.1', 'x.2']
    """
    given, found = set(names), dict[str, None]()
    again: dict[str, int] = {}
    for name in names:
        new = name
        while new in found or (new != name and new in given):
            again[name] = again.get(name, 0) + 1
            new = f"{name}.{again[name]}"
        found[new] = None
    return list(found)
