"""What an encoder says about the columns it has seen: their kinds, the names of the result, and notes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from ..checks import few
from ..registry.names import did_you_mean
from ..streams.cells import Cells
from ._parse import value_of
from ._pass import COUNT
from ._store import GAP, IDLE, MEAN, RECENT, ROWS, SCORE, SEASON, SLOT, TIMED, VALUE, InputColumn, Store
from ._texts import score_name
from .dates import CYCLES

PER_TARGET = {MEAN: "mean", RECENT: "recent", SEASON: "season"}
MIN_ROWS_NOTED = 30  # rows before anything is said
MAX_ROWS_PER_WORD = 1.1  # rows for each category, at most, where a column names the rows


class Known:
    """Mixed into the encoder, which holds what it has learned in ``_store``."""

    _store: Store

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned so far."""
        return int(self._learned().t)

    @property
    def kinds_(self) -> dict[str, str]:
        """The kind of every column so far."""
        return {source.name: source.kind for source in self._learned().by_name.values()}

    @property
    def wrong_(self) -> dict[str, tuple[int, int]]:
        """Cells that did not fit their column's kind, by column: their number, and the row of the first, from 1."""
        wrong = [source for source in self._learned().by_name.values() if source.wrong]
        return {source.name: (source.wrong, source.first_wrong) for source in wrong}

    def usable(self, name: str, value: Any) -> bool:
        """Whether a cell that is not missing fits the kind of a column of numbers or dates."""
        return value_of(self._learned().by_name[name], value) is not None

    @property
    def missing_(self) -> dict[str, float]:
        """Share of the learned rows in which a column had no value that could be used, by column; 0 for texts."""
        store = self._learned()
        found = {}
        for source in store.by_name.values():
            if source.number >= 0:
                found[source.name] = 1.0 - float(store.moments[COUNT, source.number]) / max(store.t, 1)
            else:
                code = None if source.table is None else source.table.codes.get("")
                found[source.name] = 0.0 if code is None else float(store.counts[code]) / max(store.t, 1)
        return found

    @property
    def target_moments_(self) -> tuple[float, float] | None:
        """Mean and deviation of the targets, where they are numbers."""
        store = self._learned()
        if store.task != "number" or not store.target[0, 0] > 0:
            return None
        weight, mean, m2 = store.target[:, 0].tolist()
        return mean, math.sqrt(m2 / weight)

    @property
    def notes_(self) -> dict[str, str]:
        """Notes on columns, by name: that one never changes, or only numbers or names the rows."""
        store = self._learned()
        found = {source.name: _note(store, source) for source in store.by_name.values() if store.t >= MIN_ROWS_NOTED}
        return {name: text for name, text in found.items() if text}

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns of the rows, in the order in which they appeared; (d,) strings."""
        return np.array(list(self._learned().came), dtype=object)

    @property
    def n_features_in_(self) -> int:
        """Columns of the rows."""
        return len(self._learned().came)

    def _sources_of_width(self) -> np.ndarray:
        """The place in ``feature_names_in_`` of the column that each column of the result is of, (width,)."""
        store = self._learned()
        place = {name: i for i, name in enumerate(store.came)}
        return np.array([place[store.sources[at].name] for at, _, _ in store.layout], np.intp)

    def scores_texts(self, width: int) -> bool:
        """Whether some of the first columns of the result are scores of texts."""
        return any(part == SCORE for _, part, _ in self._learned().layout[:width])

    @property
    def width_(self) -> int:
        """Columns of the result."""
        return self._learned().width

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """A name for every column of the result."""
        store = self._learned()
        names = [_name(store, store.sources[at], part, index) for at, part, index in store.layout]
        return np.array(names, dtype=object)

    def _learned(self) -> Store:
        store = self.__dict__.get("_store")
        if store is None:
            raise NotFittedError(f"This {type(self).__name__} has not learned any row yet: call learn_transform or fit")
        return store


def _name(store: Store, source: InputColumn, part: int, index: int) -> str:
    """The name of a column of the result: that of the source, and which part of it."""
    if source.replaced:
        return f"{source.name} (as {source.kind}):{part}.{index}"
    if part in PER_TARGET:  # the label is named where there are more than two
        label = f"({store.labels[index + 1][1:]})" if len(store.labels) > 2 else ""
        return f"{source.name}:{PER_TARGET[part]}{label}"
    if part == SLOT:  # the category that has the slot, or the number of the slot while there is none
        owners = [name for name in source.table.codes if name != ""]  # type: ignore[union-attr]
        taken = index < source.table.own  # type: ignore[union-attr]
        return f"{source.name}={owners[index]}" if taken else f"{source.name}#{index}"
    if part == SCORE:
        return f"{source.name}:{score_name(index, store.labels)}"
    return source.name + {VALUE: "", GAP: ":missing", ROWS: ":rows"}.get(part, f":{CYCLES[index]}")


def some(names: list[str], known: list[str] | None = None) -> str:
    """A few of the names, for a message; with ``known`` ones, a hint about the first."""
    shown = few(map(repr, names))
    hint = did_you_mean(names[0], known) if known else ""
    return f"{shown} ({hint.rstrip(': ')})" if hint else shown


def _note(store: Store, source: InputColumn) -> str:
    """A sentence about a column that is useless in its present form, or used as a time; "" for any other."""
    use = {TIMED: "; it is taken as a time", IDLE: "; it takes no part"}.get(source.role or "", "")
    if source.number >= 0:
        count, _, m2, low, high, *_ = store.moments[:, source.number].tolist()
        if count == store.t and low == high:
            return "it never changes"
        # the sum of squares of n different whole numbers is least where they follow on each other, as row numbers do
        consecutive = count * (count**2 - 1) / 12
        if high - low == count - 1 and abs(m2 - consecutive) <= 1e-9 * consecutive:
            return f"it looks like a row number: every new row has a value that was never seen{use}"
        if use:
            told = "every value is larger than those before" if source.role == TIMED else "no value comes twice"
            return told + use
    elif source.table is not None and source.table.codes:
        counts = store.counts[list(source.table.codes.values())]
        if len(counts) == 1:
            return "it never changes"
        if len(counts) >= MIN_ROWS_NOTED and counts.mean() <= MAX_ROWS_PER_WORD:
            return f"it looks like an identifier: nearly every row has a different word{use}"
    return ""


def check_known(store: Store, cells: Cells) -> list[str]:
    """Names of columns that are not known; ValueError where there are no others."""
    others = [name for name, _ in cells.others(store.by_name)]
    if others and not any(map(cells.has, store.by_name)):
        raise ValueError(
            f"the rows have none of the columns that the model knows: they have {few(others, 20)}; it "
            f"knows {few(store.by_name, 20)}"
        )
    return others
