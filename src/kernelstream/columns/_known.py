"""What an encoder says of the columns it has seen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from ._names import result_names
from ._notes import notes
from ._pass import COUNT
from ._store import Store


class Known:
    """Mixed into the encoder, which holds what it has learned in ``_store``."""

    _store: Store

    @property
    def kinds_(self) -> dict[str, str]:
        """The kind of every column so far."""
        return {source.name: source.kind for source in self._learned().sources}

    @property
    def wrong_(self) -> dict[str, tuple[int, int]]:
        """Cells that did not fit their column's kind, by column: how many, and the row of the first, from 1."""
        return {source.name: (source.wrong, source.first_wrong) for source in self._learned().sources if source.wrong}

    @property
    def missing_(self) -> dict[str, float]:
        """Share of the learned rows in which a column had no value that could be used, by column; 0 for texts."""
        store = self._learned()
        found = {}
        for source in store.sources:
            if source.number >= 0:
                found[source.name] = 1.0 - float(store.moments[COUNT, source.number]) / max(store.t, 1)
            else:
                code = None if source.table is None else source.table.codes.get("")
                found[source.name] = 0.0 if code is None else float(store.counts[code]) / max(store.t, 1)
        return found

    def _target(self) -> tuple[float, float] | None:
        """Mean and deviation of the targets, where they are numbers."""
        store = self._learned()
        if store.task != "number" or not store.target[0, 0] > 0:
            return None
        weight, mean, m2 = store.target[:, 0].tolist()
        return mean, math.sqrt(m2 / weight)

    @property
    def notes_(self) -> dict[str, str]:
        """What is worth knowing about columns, by name: that one never changes, or only numbers or names the rows."""
        return notes(self._learned())

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns of the rows, in the order in which they came; (d,) strings."""
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

    @property
    def width_(self) -> int:
        """Columns of the result."""
        return self._learned().width

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """A name for every column of the result."""
        return np.array(result_names(self._learned()), dtype=object)

    def _learned(self) -> Store:
        store = self.__dict__.get("_store")
        if store is None:
            raise NotFittedError(f"This {type(self).__name__} has not learned any row yet: call learn_transform or fit")
        return store
