"""The streaming encoder: rows of mixed cells to rows of numbers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import TransformerMixin
from sklearn.utils._set_output import _wrap_data_with_container

from ..checks import flag, one_of, positive, whole
from ..registry.caller import warn
from ..registry.names import did_you_mean
from ..registry.parameters import WithParameters
from ..state.turns import OwnTurns, in_turn
from ..state.undo import all_or_nothing, open_call
from ..streams.cells import Cells, cells_of
from ._encoding import CellRows, compare, encode, encode_row, learn_row, learn_stream, learn_table
from ._growing import Widths
from ._journal import Journal, NeedsCopy
from ._known import Known, check_known
from ._parse import alone
from ._state import State, from_state, to_state
from ._store import Store
from ._targets import Targets, checked_weights
from .kinds import KINDS

LEARNED = ("_store", "_warned")  # attributes of an encoder that has learned rows


@dataclass(eq=False, repr=False)
class Columns(Known, TransformerMixin, WithParameters):
    """Encoder of words, numbers, dates and gaps as rows of numbers, which learns as the rows arrive.

    A row is encoded with what was learned from the rows before it, and learned afterwards: no row sees its own target
    or a later one, and any split of the rows into calls gives the same numbers.

    Parameters
    ----------
    kinds : dict of name: kind, optional
        Kinds of columns whose first cells would be misleading: "number", "integer" (a number whose values may be
        codes; encoded both ways), "category", "date", "text" or "ignored". These columns exist from the first row on.
        Other columns are what most of their cells are: of all rows in ``fit``, of the first ones in a stream, as
        docs/columns.md tells. A column of a stream that turns out to be of another kind than its first cells gets
        new columns in the result; its old ones are 0 from then on. Other columns that only number or name the rows take
        no part, and numbers that always grow are taken as times.
    target : {"auto", "number", "label"}
        What y holds; by default, floats are numbers and anything else is a label.
    one_hot : int, default=16
        Columns that encode the categories of a column: the first ``one_hot`` categories have one each; any other is
        spread over three of them, with signs, by a hash of its name.
    shrink : float, default=10
        Weight, in rows, of the overall mean in the mean of a category.
    max_categories : int, default=10,000
        Categories of a column that are remembered. When there is one more, half of those without a column of their own
        are forgotten: the ones with the least weight and, among equals, the older.
    max_columns : int, default=1,000
        Most columns of the rows that are used; further ones are ignored, with a warning.
    scale : bool, default=True
        Scale numbers by the running mean and deviation, and means of categories by the deviation of the target.
    strict : bool, default=False
        Whether a cell that does not fit its column's kind (a word among numbers) is an error. Otherwise it is taken as
        missing, and counted in ``wrong_``.
    engine : {"auto", "native", "python"}
        The implementation; both give the same numbers.

    Examples
    --------
    >>> from kernelstream.columns import Columns
    >>> rows = [{"colour": "red", "size": 1.5}, {"colour": "blue"}, {"colour": "red", "size": 2.5}]
    >>> X = Columns(one_hot=2).learn_transform(rows, [1.0, 0.0, 1.0])
    >>> X.round(2).tolist()  # missing, mean of the target, red, blue; size, missing
    [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0, 1.0], [0.0, 0.09, 1.0, 0.0, 1.0, 0.0]]
    """

    kinds: dict[str, str] | None = None
    _: KW_ONLY
    target: str = "auto"
    one_hot: int = 16
    shrink: float = 10.0
    max_categories: int = 10_000
    max_columns: int = 1_000
    scale: bool = True
    strict: bool = False
    engine: str = "auto"

    _turns = OwnTurns()

    # ---------------------------------------------------------------- learning
    def learn_transform(self, rows: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Encode the rows in order, each with what was learned from the rows before it, and learn them.

        Parameters
        ----------
        rows : data frame, dictionary, list of dictionaries, or array (n, d)
        y : (n,) array, optional
            Targets, for the means of the categories; they are given in all calls or in none.
        sample_weight : (n,) array, optional
            A row of weight 0 is encoded and not learned.

        Returns
        -------
        (n, width) float64 array
            Columns that appear at a later row are 0 in the rows before it.
        """
        with self._turns, all_or_nothing(self):
            return self._contained(self._learn(rows, y, sample_weight)[0], rows)

    def partial_fit(self, rows: Any, y: Any = None, sample_weight: Any = None) -> Columns:
        """Learn the rows in order; see :meth:`learn_transform`."""
        with self._turns, all_or_nothing(self):
            self._learn(rows, y, sample_weight)
        return self

    def fit(self, rows: Any, y: Any = None, sample_weight: Any = None) -> Columns:
        """Forget everything, then learn all rows; see :meth:`fit_transform`."""
        with self._turns, all_or_nothing(self):
            self._fit(rows, y, sample_weight)
        return self

    def fit_transform(self, rows: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Forget everything, then learn all rows and encode them: a table, whose order does not matter.

        Numbers and dates are scaled by the moments of all rows, as in ``transform``. The mean of a category is that of
        the rows before in a random order: unlike in ``fit(...).transform(...)``, no row sees its own target.
        """
        with self._turns, all_or_nothing(self):
            return self._fit(rows, y, sample_weight)

    def transform(self, rows: Any) -> Any:
        """Encode rows, each as if it came next; nothing is learned.

        Columns are found by name, in any order. A column that does not exist is taken as missing, and one that was
        never learned is ignored; both with a warning, once.

        Parameters
        ----------
        rows : data frame, dictionary, list of dictionaries, or array (n, d)

        Returns
        -------
        (n, width) float64 array
        """
        with self._turns:
            return self._encode(rows)

    # ---------------------------------------------------------------- what is known
    @property
    @in_turn
    def state_(self) -> State:
        """Everything that was learned: a copy, as a flat dict of arrays, numbers and strings."""
        return to_state(self._learned())

    @state_.setter
    @in_turn
    def state_(self, state: State) -> None:
        self._check_parameters()
        self._store = from_state(state, self.one_hot)

    def __sklearn_is_fitted__(self) -> bool:
        return "_store" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        return tags

    def __getstate__(self) -> Any:
        with self._turns:
            kept = {key: value for key, value in super().__getstate__().items() if key not in ("_turns", "_open")}
            return {key: value.copy() if key == "_store" else value for key, value in kept.items()}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        if "_store" in self.__dict__:
            self._store = self._store.copy()  # arrays of a mapped file cannot be written to

    def _contained(self, X: np.ndarray, rows: Any) -> Any:
        """The result in the container that ``set_output`` asks for."""
        if "_sklearn_output_config" not in self.__dict__ and get_config()["transform_output"] == "default":
            return X
        return _wrap_data_with_container("transform", X, rows, self)

    # ---------------------------------------------------------------- the work
    def check_state(self) -> None:
        """Nothing is left to check: setting ``state_`` has done it."""

    def _check_parameters(self) -> None:
        least = 2 * (whole("one_hot", self.one_hot, 0) + 1)
        whole("max_columns", self.max_columns)
        whole("max_categories", self.max_categories, least)
        positive("shrink", self.shrink)
        flag("scale", self.scale)
        flag("strict", self.strict)
        one_of("target", self.target, ("auto", "number", "label"))
        one_of("engine", self.engine, ("auto", "native", "python"))
        if not isinstance(self.kinds, (dict, type(None))):
            raise ValueError(f"kinds must be a dict of name: kind, got {self.kinds!r}")
        for name, kind in (self.kinds or {}).items():
            if kind not in KINDS:
                hint = did_you_mean(str(kind), KINDS)
                raise ValueError(f"kinds: {name!r} cannot be {kind!r}: {hint}kinds are {', '.join(KINDS)}")

    def _started(self) -> Store:
        """A store with the columns whose kinds were given."""
        self._check_parameters()
        store = Store(int(self.one_hot))
        for name, kind in (self.kinds or {}).items():
            store.add(str(name), kind)
        return store

    def _begin_call(self) -> list[Journal]:
        """The journal of a call that learns, see :func:`~kernelstream.state.undo.all_or_nothing`."""
        return [Journal(self._store)] if "_store" in self.__dict__ else []

    @staticmethod
    def _inside_call() -> tuple[()]:
        return ()

    def _learn(self, rows: Any, y: Any, sample_weight: Any, task: str | None = None) -> tuple[np.ndarray, Widths]:
        """Encode and learn rows, inside of ``all_or_nothing`` unless they are the first.

        Returns all rows with the columns there are at the end, and how many of these there are from which rows on;
        nothing where that stays as it was.
        """
        before, rows, call = self.__dict__.get("_store"), alone(rows), open_call(self)
        assert before is None or call is not None
        journal = None if before is None or call is None else call.undo_of(self)
        if before is not None and journal is not None and type(rows) is dict and sample_weight is None:
            quick = self._learn_quickly(before, rows, y, journal)
            if quick is not None:
                return quick, []
        store = self._started() if before is None else before
        batch = self._checked(rows, y, sample_weight, store.task or task or self.target)
        cells = batch.cells
        if (batch.targets is None) == bool(store.task) and (store.task or store.t) and cells.n:
            raise ValueError("y must be given in all calls or in none: an earlier call was different")
        if store.t and type(cells) is Cells:  # a dictionary may hold new names only; a table has others by mistake
            check_known(store, cells)
        try:
            found = learn_stream(self, store, batch, journal, self._warn_once)
        except NeedsCopy:
            assert journal is not None
            journal.undo()
            store = store.copy()
            found = learn_stream(self, store, batch, None, self._warn_once)
        if cells.n or before is not None:
            self._store = store
        return found

    @staticmethod
    def _checked(rows: Any, y: Any, sample_weight: Any, task: str) -> CellRows:
        cells = cells_of(rows)
        targets = None if y is None else Targets([y] if np.ndim(y) == 0 else y, cells.n, task)
        return CellRows(cells, targets, None if sample_weight is None else checked_weights(sample_weight, cells.n))

    def _fit(self, rows: Any, y: Any, sample_weight: Any, task: str | None = None) -> np.ndarray:
        """Forget everything, learn and encode a table; inside of ``all_or_nothing``, unless nothing was learned."""
        for name in LEARNED:
            self.__dict__.pop(name, None)
        store = self._started()
        batch = self._checked(rows, y, sample_weight, task or self.target)
        X = learn_table(self, store, batch, self._warn_once)
        if batch.cells.n:
            self._store = store
        return X

    def _learn_quickly(self, store: Store, row: dict[Any, Any], y: Any, journal: Journal) -> np.ndarray | None:
        """Learn and encode a dictionary with nothing new or unusual in it; None for any other."""
        return learn_row(self, store, row, y, journal)

    def _encode(self, rows: Any) -> np.ndarray:
        store, rows = self._learned(), alone(rows)
        if type(rows) is dict:
            X = encode_row(self, store, rows, "unknown" in self.__dict__.get("_warned", ()))
            if X is not None:
                return X
        cells = cells_of(rows)
        compare(store, cells, self._warn_once)
        return encode(self, store, cells, self._warn_once)

    def _warn_once(self, what: str, text: str) -> None:
        """Warn, once for each ``what``."""
        warned = self.__dict__.setdefault("_warned", set())
        if what not in warned:
            warned.add(what)
            warn(text)
