"""What an encoder has learned, in the form it works with: tables, arrays, and the layout of the result."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ._seasons import SIZE
from ._texts import TextColumn, outputs_of, parts
from .categories import PLACES, CategoryTable, pattern
from .dates import CYCLES
from .kinds import VOTES

VALUE, GAP, MEAN, SLOT, CYCLE, RECENT, ROWS, SEASON, SCORE = range(9)  # parts of a column of the source
CLASSES = 5  # labels, all but the first of which have a mean
NUMERIC = ("number", "integer", "date")
TABLED = ("integer", "category")
TIMED, IDLE = "timed", "idle"  # roles of columns, see :mod:`._counting`
# of the pass, see :mod:`._pass`
ARRAYS = (
    *("moments", "number_at", "counts", "sums", "recent", "place", "amount", "mean_at", "recent_at", "within"),
    *("between", "target", "seasons", "spans"),
)
NEVER = np.iinfo(np.int64).max  # a row that does not come
MANY = 16  # categories of equal size: where there are as many, each also shows its recent mean
YEAR_SINE = CYCLES.index("year:sin")


def parts_of(kind: str, means: int, one_hot: int, many: bool = False, reads: bool = False) -> list[tuple[int, int]]:
    """The columns of the result that a column of a kind has, in their order: which part, and which of several.

    ``reads`` says whether its cells are read as texts.
    """
    found = [(VALUE, 0)] if kind in NUMERIC else []
    found += [(GAP, 0)] if kind != "ignored" else []
    found += [(MEAN, t) for t in range(means)] if kind in TABLED else []
    found += [(SLOT, s) for s in range(one_hot)] if kind == "category" else []
    found += [(CYCLE, c) for c in range(len(CYCLES))] if kind == "date" else []
    found += [(SEASON, t) for t in range(means)] if kind == "date" else []
    found += [*((RECENT, t) for t in range(means)), (ROWS, 0)] if many else []
    return found + ([(SCORE, s) for s in range(parts(means))] if reads else [])


class InputColumn:
    """A column of the rows that come: its name and kind, and where it is in the arrays.

    ``number`` is its place among the numbers, ``coded`` that among the categories, ``dated`` that among the dates, -1
    for none; ``seasons`` are the columns of the result for seasons. ``retired`` says that a column of integers has had
    too many values to hold codes, ``many`` that one of words has more values than columns of their own. ``role`` is
    "timed" of numbers that are times, "idle" of a column that takes no part. ``form`` is how numbers or dates are
    written (see :data:`.kinds.Reading`). ``settled`` columns keep their kind; a ``replaced`` one was of another kind
    than its first cells seemed to be: a later column of the same name reads its cells, and its own parts of the result
    stay 0. ``wrong`` cells were taken as missing, the first of them in row ``first_wrong``, counted from 1. ``reads``
    says that cells are read as texts: ``text`` is what was learned of these, once there is a target, and shows in the
    columns ``scores``.
    """

    __slots__ = (
        *("coded", "dated", "first_wrong", "form", "gap", "kind", "many", "name", "number", "reads", "replaced"),
        *("retired", "role", "scores", "seasons", "settled", "slots", "table", "text", "wrong"),
    )

    def __init__(self, name: str, kind: str):
        self.name, self.kind = name, kind
        self.number = self.coded = self.dated = self.gap = self.slots = -1
        self.seasons: list[int] = []
        self.table = CategoryTable() if kind in TABLED else None
        self.reads = kind == "text"
        self.text: TextColumn | None = None
        self.scores: list[int] = []
        self.retired = self.settled = self.replaced = self.many = False
        self.role: str | None = None
        self.form = "." if kind in ("number", "integer") else ""
        self.wrong = self.first_wrong = 0

    def copy(self) -> InputColumn:
        made = copy.copy(self)
        made.table = None if self.table is None else self.table.copy()
        made.seasons = list(self.seasons)
        made.text, made.scores = None if self.text is None else self.text.copy(), list(self.scores)
        return made


class Store:
    """Everything mutable of an encoder.

    A category has a code: its row of ``counts``, ``sums``, ``recent``, ``place`` and ``amount`` (see :mod:`._pass`),
    which have room for more than there are. ``layout`` says of each column of the result which source it is of, which
    part of it, and which of several.
    """

    def __init__(self, one_hot: int):
        self.one_hot = one_hot
        self.sources: list[InputColumn] = []
        self.by_name: dict[str, InputColumn] = {}  # the column that reads the cells of a name
        self.votes = np.zeros((0, VOTES), np.int64)  # of the cells of each source, see :mod:`.kinds`
        self.idle: set[int] = set()  # places of the sources that take no part
        self.undecided: list[int] = []  # places of the sources whose kind may still change
        self.came: dict[str, None] = {}  # names of all columns of the rows, in the order in which they came
        self.layout: list[tuple[int, int, int]] = []
        self.moments, self.number_at = np.zeros((7, 0)), np.zeros((3, 0), np.int32)
        self.size, self.free = 0, []  # type: ignore[var-annotated]
        self.counts, self.sums = np.zeros(0), np.zeros((0, 0))
        self.place, self.amount = np.zeros((0, PLACES), np.int32), np.zeros((0, PLACES))
        self.recent = np.zeros((0, 0))
        self.within, self.between = np.zeros((0, 0)), np.zeros((0, 0))
        self.mean_at, self.recent_at = np.zeros((0, 0), np.int32), np.zeros((0, 1), np.int32)
        self.seasons, self.spans = np.zeros((0, SIZE)), np.zeros((0, 3))  # see :mod:`._seasons`
        self.task = ""  # "number" or "label" once a target has come
        self.labels: list[str] = []
        self.target = np.zeros((3, 0))
        self.t = 0
        self.plan: Any = None  # derived from the sources, for single rows
        self.places: dict[Any, int] = {}  # of labels as they come, found again for single rows
        self.from_start = np.zeros(0, np.int64)  # first rows of numbers that are there from the start, or never

    def copy(self) -> Store:
        made = copy.copy(self)
        made.plan, made.places = None, {}
        made.sources = [source.copy() for source in self.sources]
        made.find_columns()
        made.layout, made.free, made.labels = list(self.layout), list(self.free), list(self.labels)
        made.came = dict(self.came)
        for name in (*ARRAYS, "votes"):
            setattr(made, name, getattr(self, name).copy())
        return made

    @property
    def width(self) -> int:
        return len(self.layout)

    @property
    def means(self) -> int:
        """Means per category: one of numbers, one for every label but the first, none without a target."""
        return self.mean_at.shape[1]

    def find_columns(self) -> None:
        """What follows from the sources: which of them are read, and which may change."""
        self.plan = None
        self.by_name = {source.name: source for source in self.sources}  # the last of a name
        self.idle = {i for i, s in enumerate(self.sources) if s.role == IDLE}
        self.undecided = [i for i, s in enumerate(self.sources) if not (s.settled or s.replaced)]
        self.from_start = np.zeros(self.moments.shape[1], np.int64)
        self.from_start[[s.number for s in self.sources if s.replaced and s.number >= 0]] = NEVER

    # ---------------------------------------------------------------- growing
    def add(self, name: str, kind: str) -> InputColumn:
        """A new source, with its columns at the end of the layout."""
        at, source = len(self.sources), InputColumn(name, kind)
        self.sources.append(source)
        self.votes = np.append(self.votes, np.zeros((1, VOTES), np.int64), axis=0)
        if kind in NUMERIC:
            source.number = self.moments.shape[1]
            self.number_at = np.append(self.number_at, np.zeros((3, 1), np.int32), axis=1)
            self.moments = np.append(self.moments, np.zeros((7, 1)), axis=1)
            self.from_start = np.append(self.from_start, 0)
        if kind in TABLED:
            source.coded = len(self.mean_at)
            self.mean_at = np.append(self.mean_at, np.zeros((1, self.means), np.int32), axis=0)
            self.recent_at = np.append(self.recent_at, np.full((1, self.means + 1), -1, np.int32), axis=0)
            self.within, self.between = (
                np.append(a, np.zeros((2, self.means)), axis=0) for a in (self.within, self.between)
            )
        if kind == "date":
            source.dated = len(self.spans)
            self.seasons = np.append(self.seasons, np.zeros((SIZE, self.seasons.shape[1])), axis=0)
            self.spans = np.append(self.spans, np.zeros((1, 3)), axis=0)
        own = parts_of(kind, self.means, self.one_hot, reads=source.reads)
        self.place_parts(source, {part: self.width + i for i, part in enumerate(own)})
        self.layout += [(at, part, index) for part, index in own]
        self.by_name[name], self.plan = source, None
        self.undecided.append(at)
        return source

    def replace(self, at: int, kind: str) -> InputColumn:
        """A source of another kind in the place of one, whose parts of the result are 0 from now on."""
        source = self.sources[at]
        source.replaced = True
        if source.table is not None:
            self.drop(source, list(source.table.codes))
        source.text = None
        made = self.add(source.name, kind)
        self.votes[-1] = self.votes[at]
        self.find_columns()
        return made

    def settle(self, sources: list[InputColumn]) -> None:
        """Columns that keep their kind from now on."""
        for source in sources:
            source.settled = True
        if sources:
            self.find_columns()

    def rewrite(self, source: InputColumn, form: str) -> None:
        """Another mark or order in numbers or dates: what was learned of them is forgotten."""
        source.form = form
        self.moments[:, source.number] = 0.0
        if source.kind == "date":
            self.seasons[SIZE * source.dated : SIZE * (source.dated + 1)] = 0.0
        if source.table is not None:
            self.drop(source, list(source.table.codes))

    def place_parts(self, source: InputColumn, at: dict[tuple[int, int], int]) -> None:
        """Note in which column of the result each part of a source is."""
        if source.kind in NUMERIC:
            year = -2 if source.role == TIMED else -1
            self.number_at[:, source.number] = at[VALUE, 0], at[GAP, 0], at.get((CYCLE, YEAR_SINE), year)
        if source.kind in TABLED:
            self.mean_at[source.coded] = [at[MEAN, t] for t in range(self.means)]
        if source.many:
            self.recent_at[source.coded] = [*(at[RECENT, t] for t in range(self.means)), at[ROWS, 0]]
        if source.kind in ("category", "text"):
            source.gap = at[GAP, 0]
        source.seasons = [column for (part, _), column in at.items() if part == SEASON]
        if source.reads:
            source.scores = [at[SCORE, s] for s in range(parts(self.means))]
            self._read(source)
        source.slots = at.get((SLOT, 0), at.get((CYCLE, 0), -1))

    def begin_target(self, task: str) -> None:
        """Start to learn numbers or labels: there is one mean from the start."""
        self.task = task
        self._add_mean()

    def add_label(self, label: str) -> None:
        """Add a new label; the second uses the mean that exists, the third to the fifth get one more each."""
        if len(self.labels) < CLASSES:
            self.labels.append(label)
            if len(self.labels) > 2:
                self._add_mean()

    def _add_mean(self) -> None:
        t, coded = self.means, [(at, source) for at, source in enumerate(self.sources) if source.kind in TABLED]
        self.mean_at = np.insert(self.mean_at, t, -1, axis=1)
        self.recent_at = np.insert(self.recent_at, t, -1, axis=1)
        for at, source in coded:
            self.mean_at[source.coded, t] = self.width
            self.layout.append((at, MEAN, t))
        for at, source in coded:
            if source.many:
                self.recent_at[source.coded, t] = self.width
                self.layout.append((at, RECENT, t))
        for at, source in enumerate(self.sources):
            if source.kind == "date":
                source.seasons.append(self.width)
                self.layout.append((at, SEASON, t))
        self.seasons = np.pad(np.insert(self.seasons, SIZE + t, 0.0, axis=1), [(0, 0), (0, 1)])
        for name in ("sums", "recent", "within", "between"):
            setattr(self, name, np.insert(getattr(self, name), t, 0.0, axis=1))
        if t:
            self.within[1::2, t], self.between[1::2, t] = self.within[1::2, 0], self.between[1::2, 0]
        total = self.target[0, 0] if t else 0.0  # no row so far had the new label
        self.target = np.append(self.target, [[total], [0.0], [0.0]], axis=1)
        for at, source in enumerate(self.sources):
            if source.reads:
                more = range(len(source.scores), parts(t + 1))
                source.scores += range(self.width, self.width + len(more))
                self.layout += [(at, SCORE, s) for s in more]
                self._read(source)

    def read(self, at: int) -> None:
        """Read the cells of a source as texts as well, from now on."""
        source = self.sources[at]
        source.reads, source.scores = True, list(range(self.width, self.width + parts(self.means)))
        self.layout += [(at, SCORE, s) for s in range(parts(self.means))]
        self._read(source)
        self.plan = None

    def _read(self, source: InputColumn) -> None:
        """Tables of texts for the labels so far."""
        if source.replaced or not self.means:
            return
        source.text = source.text or TextColumn(self.task == "number")
        if outputs_of(self.means) > source.text.outputs:
            source.text.grow(outputs_of(self.means))

    def set_role(self, source: InputColumn, role: str | None) -> None:
        """Let a column take no part or its numbers be times, or neither."""
        source.role = role
        if source.number >= 0:
            self.number_at[2, source.number] = -2 if role == TIMED else -1
        self.find_columns()

    @property
    def silent(self) -> list[int]:
        """Columns of the result that stay 0, since their source takes no part."""
        return [c for c, (at, _, _) in enumerate(self.layout) if at in self.idle] if self.idle else []

    # ---------------------------------------------------------------- categories
    def crowded(self, codes: np.ndarray | None = None) -> list[InputColumn]:
        """Columns of many categories, by the rows so far or by their codes, whose recent means do not show yet.

        There are more than have columns of their own, and n rows would repeat no more often in ``MANY`` of equal size,
        ``n^2 >= MANY sum_c n_c^2``: where nearly all rows are of a few, little is to be learned of the others.
        """
        counts = self.counts if codes is None else np.bincount(codes[codes >= 0], minlength=len(self.counts))
        found = []
        for source in self.by_name.values() if self.task else ():
            table: Any = source.table
            if source.kind == "category" and not source.many and len(table.codes) > self.one_hot:
                of_words = counts[[code for name, code in table.codes.items() if name != ""]]
                if len(of_words) > self.one_hot and of_words.sum() ** 2 >= MANY * (of_words**2).sum() > 0:
                    found.append(source)
        return found

    def show_recent(self, source: InputColumn) -> None:
        """New columns for the recent mean and the rows of each category, which begins with its mean of all rows."""
        codes = list(source.table.codes.values())  # type: ignore[union-attr]
        self.recent[codes] = self.sums[codes] / np.maximum(self.counts[codes], 1e-300)[:, None]
        source.many = True
        parts = [*((RECENT, t) for t in range(self.means)), (ROWS, 0)]
        self.recent_at[source.coded] = range(self.width, self.width + len(parts))
        self.layout += [(self.sources.index(source), part, index) for part, index in parts]

    def enter(self, source: InputColumn, name: Any, for_good: bool) -> int:
        """The code of a category that has none yet; unless ``for_good``, it is encoded as the next new one would be."""
        table: Any = source.table
        if self.free:
            code = self.free.pop()
        else:
            code, self.size = self.size, self.size + 1
            if self.size > len(self.counts):
                self._grow(max(64, 2 * self.size))
        shows: list[tuple[int, float]] = []
        if source.kind == "category":
            if name == "":
                shows = [(source.gap, 1.0)]
            elif table.own < self.one_hot:
                shows = [(source.slots + table.own, 1.0)]
                table.own += for_good
            else:
                shows = [(source.slots + s, sign) for s, sign in pattern(f"{source.name}={name}", self.one_hot)]
        shows += [(-1, 0.0)] * (PLACES - len(shows))
        self.place[code], self.amount[code] = zip(*shows, strict=True)
        table.codes[name] = code
        return code

    def _grow(self, capacity: int) -> None:
        for name in ("sums", "recent", "place", "amount", "counts"):  # the counts last: their length is the capacity
            old = getattr(self, name)
            more = np.zeros((capacity - len(old), *old.shape[1:]), old.dtype)  # fewer after an interrupt
            setattr(self, name, np.concatenate([old, more]))

    def drop(self, source: InputColumn, names: list[Any]) -> None:
        """Remove categories from a table; their codes may be used again."""
        codes = [source.table.codes.pop(name) for name in names]  # type: ignore[union-attr]
        self.counts[codes] = 0.0
        self.sums[codes] = 0.0
        self.recent[codes] = 0.0
        self.free += reversed(codes)

    def forget(self, source: InputColumn) -> None:
        """Make room in a full table: half of the categories without a column of their own, those with the least weight.

        Of equal weight the older ones go. The missing cell is never forgotten.
        """
        table: Any = source.table
        names = [name for name in table.codes if name != ""][table.own :]
        weights = self.counts[[table.codes[name] for name in names]]
        lightest = np.argsort(weights, kind="stable")[: max(1, len(names) // 2)]
        self.drop(source, [names[i] for i in sorted(lightest.tolist())])

    def retire(self, source: InputColumn) -> None:
        """Stop treating a column of integers as codes: it has too many values."""
        self.drop(source, list(source.table.codes))  # type: ignore[union-attr]
        source.retired = True
        self.plan = None


OF_CODES = ("counts", "sums", "recent")  # arrays that a pass changes, with a row for each category,
OF_ALL = ("moments", "target", "votes", "within", "between", "seasons", "spans")  # and others
