"""Columns of a table as features: numbers as they are, categories hashed or one-hot, one column the target."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._checks import is_whole
from ..registry.names import did_you_mean

MISSING = frozenset({"", "?", "NA", "nan", "NaN", "N/A", "null"})  # as in csv.hpp
BUCKETS = 1024
_REMEMBERED = 1 << 17  # categories whose column is cached


class Columns:
    """Which columns of a table become which columns of X.

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
    hashed : list, or dict of column: buckets
        Columns of categories, each value of which goes to one of ``buckets`` columns (1024) by a hash of its name.
    one_hot : dict of column: values
        Columns of categories with a column of X for each of the values; any other value makes a bad row.
    """

    def __init__(
        self,
        names: Sequence[str],
        target: str | int | None = None,
        features: Sequence[Any] | None = None,
        drop: Iterable[Any] = (),
        hashed: Any = (),
        one_hot: dict[Any, Sequence[Any]] | None = None,
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
        hashed = hashed if isinstance(hashed, dict) else dict.fromkeys(hashed, BUCKETS)
        self.hashed = {self._find(column): _buckets(column, buckets) for column, buckets in hashed.items()}
        self.values = {self._find(c): {str(v): i for i, v in enumerate(vs)} for c, vs in (one_hot or {}).items()}
        for j in (*self.hashed, *self.values):
            if j not in chosen:
                raise ValueError(f"column {self.names[j]!r} is declared as categories, but is not a feature")
        both = set(self.hashed) & set(self.values)
        if both:
            raise ValueError(f"column {self.names[both.pop()]!r} is declared as hashed and as one_hot")
        if not chosen:
            raise ValueError(f"{where} has no column left to learn from")
        self.features = chosen
        self.sparse = bool(self.hashed)
        self.starts, self.width = {}, 0
        for j in chosen:
            self.starts[j] = self.width
            self.width += self.hashed.get(j) or len(self.values.get(j, "x"))
        self._memory: dict[int, dict[str, int]] = {j: {} for j in self.hashed}

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
    def textual(self) -> set[int]:
        """Columns of categories."""
        return {*self.hashed, *self.values}

    @property
    def feature_names(self) -> list[str]:
        """A name for every column of X."""
        names: list[str] = []
        for j in self.features:
            name = self.names[j]
            if j in self.hashed:
                names += [f"{name}#{i}" for i in range(self.hashed[j])]
            elif j in self.values:
                names += [f"{name}={value}" for value in self.values[j]]
            else:
                names.append(name)
        return names

    def encode(self, numbers: Mapping[int, np.ndarray], texts: Mapping[int, Sequence[str]], n: int, dtype: Any) -> Any:
        """X (n, width) of checked columns."""
        if not self.sparse:
            X = np.zeros((n, self.width), dtype)
            for j in self.features:
                if j in self.values:
                    X[np.arange(n), self.starts[j] + self._places(j, texts[j])] = 1
                else:
                    X[:, self.starts[j]] = numbers[j]
            return X
        columns = np.empty((n, len(self.features)), np.int32)
        data = np.ones((n, len(self.features)), dtype)
        for place, j in enumerate(self.features):
            if j in self.textual:
                columns[:, place] = self.starts[j] + self._places(j, texts[j])
            else:
                columns[:, place], data[:, place] = self.starts[j], numbers[j]
        keep = data != 0
        indptr = np.concatenate([[0], np.cumsum(keep.sum(axis=1))]).astype(np.int32)
        X = sp.csr_array((data[keep], columns[keep], indptr), shape=(n, self.width))
        X.has_canonical_format = True  # features are in order, and each fills its own range of columns
        return X

    def _places(self, j: int, texts: Sequence[str]) -> np.ndarray:
        if j in self.values:
            return np.fromiter(map(self.values[j].__getitem__, texts), np.int32, len(texts))
        memory = self._memory[j]
        if len(memory) > _REMEMBERED:
            memory.clear()
        for text in set(texts) - memory.keys():
            memory[text] = bucket(self.names[j], text, self.hashed[j])
        return np.fromiter(map(memory.__getitem__, texts), np.int32, len(texts))

    def check_text(self, j: int, text: str) -> str | None:
        """What is wrong with a category, or None."""
        if j in self.values and text not in self.values[j]:
            return f"column {self.names[j]!r}: {text!r} is not one of the values declared for it"
        return None


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


def bucket(column: str, value: str, buckets: int) -> int:
    """Bucket of a category: the same on every machine and in every run."""
    digest = hashlib.blake2b(f"{column}={value}".encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % buckets


def as_target(texts: Sequence[str]) -> np.ndarray:
    """Labels as an array of strings."""
    return np.array(texts, dtype=str)


def _buckets(column: Any, buckets: Any) -> int:
    if not is_whole(buckets) or buckets < 1:
        raise ValueError(f"column {column!r} must be hashed into an integer >= 1 of buckets, got {buckets!r}")
    return int(buckets)
