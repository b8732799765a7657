"""Targets and weights of rows: numbers, or labels in the order in which they appeared, for the means of categories."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from ..streams.cells import LARGEST_NUMBER, is_missing
from ._store import CLASSES, Store
from .categories import word


class Targets:
    """Checked targets of n rows.

    Attributes
    ----------
    task : {"number", "label"}
    numbers : (n,) float64, where they are numbers
    codes : list of int, and ``words`` : list of str, where they are labels: a code is a place in ``words``
    """

    def __init__(self, y: Any, n: int, task: str):
        values = np.asarray(y)
        if values.ndim == 2 and values.shape[1] == 1 and hasattr(y, "shape"):  # a frame of one column
            values = values[:, 0]
        if values.ndim != 1 or len(values) != n:
            raise ValueError(f"y must hold one target for each of the {n} rows, got an array of shape {values.shape}")
        self.task = task if task != "auto" else "number" if values.dtype.kind == "f" else "label"
        if self.task == "number":
            try:
                self.numbers = np.ascontiguousarray(values, np.float64)
            except (TypeError, ValueError):
                raise ValueError(f"y must hold numbers, got {values.dtype}") from None
            usable = np.abs(self.numbers) <= LARGEST_NUMBER
            if not usable.all():
                row = int(np.argmin(usable))
                raise ValueError(
                    f"y holds {self.numbers[row]:g} in row {row + 1}: targets must be finite numbers up to "
                    f"{LARGEST_NUMBER:g}"
                )
            return
        seen: dict[Any, int] = {}
        try:
            self.codes = [seen.setdefault(label, len(seen)) for label in values.tolist()]
        except TypeError:
            raise ValueError(f"y must hold labels, got {values[0]!r}") from None
        self.words = [label_word(label) for label in seen]

    def part(self, rows: Any) -> Targets:
        """Targets of some of the rows."""
        made = copy.copy(self)
        if self.task == "number":
            made.numbers = self.numbers[rows]
            return made
        codes = [self.codes[i] for i in rows]
        order = {code: place for place, code in enumerate(dict.fromkeys(codes))}
        made.codes, made.words = [order[code] for code in codes], [self.words[code] for code in order]
        return made

    def new_labels(self, store: Store) -> list[tuple[int, str]]:
        """Labels that the store lacks and has a place for, each with its first row, in the order of the rows."""
        if self.task == "number" or len(store.labels) >= CLASSES:
            return []
        found = [(self.codes.index(code), name) for code, name in enumerate(self.words) if name not in store.labels]
        return found[: CLASSES - len(store.labels)]

    def matrix(self, store: Store) -> np.ndarray:
        """The targets whose means are kept, (n, T)."""
        if self.task == "number":
            return self.numbers[:, None]
        places = [store.labels.index(name) if name in store.labels else 0 for name in self.words]
        columns = np.array(places, np.intp)[self.codes]
        Y = np.zeros((len(columns), store.means))
        known = np.flatnonzero(columns)
        Y[known, columns[known] - 1] = 1.0
        return Y


def one_target(store: Store, y: Any) -> np.ndarray | None:
    """The target of one row, (1, T); None where it needs the full check."""
    if type(y) in (list, tuple, np.ndarray):
        if len(y) != 1:
            return None
        y = y[0]
    if store.task == "number":
        quick = type(y) in (float, int, np.float64) and -LARGEST_NUMBER <= y <= LARGEST_NUMBER
        return np.array([[y]], np.float64) if quick else None
    if isinstance(y, np.generic):
        y = y.item()
    at = store.places.get(y) if type(y) in (int, str) else None
    if at is None:
        try:
            at = store.labels.index(label_word(y))
        except ValueError:
            return None
        if type(y) in (int, str):
            store.places[y] = at
    Y = np.zeros((1, store.means))
    if at:
        Y[0, at - 1] = 1.0
    return Y


def label_word(label: Any) -> str:
    """A name for a label: 1, 1.0 and True are one label, "1" is another."""
    if type(label) is str and 0 < len(label) <= 60:
        return f"s{label}"
    if is_missing(label) and not isinstance(label, str):
        raise ValueError("y holds a missing label")
    if isinstance(label, (bool, int, float)):
        if isinstance(label, int) and abs(label) > 2**53:
            return f"n{label}"[:80]
        return f"n{float(label)!r}" if math.isfinite(label) else f"n{label}"
    return f"s{word(str(label)) or str(label)[:60]}"


def checked_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Weights of n rows as an array; ValueError for anything but numbers from 0 to the largest."""
    try:
        weight = np.ascontiguousarray(sample_weight, np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must hold numbers") from None
    if weight.ndim == 0:
        weight = np.full(n, weight)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must hold one weight for each of the {n} rows, got shape {weight.shape}")
    if not ((weight >= 0) & (weight <= LARGEST_NUMBER)).all():
        raise ValueError(f"sample_weight must hold numbers from 0 to {LARGEST_NUMBER:g}")
    return weight
