"""What an encoder has learned as a flat dict of arrays, numbers and strings, and back.

Strings are kept as one array of their bytes (UTF-8) and one of the places where they end.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..state.schema import MOST, Array, Count, Schema, Text, check, length
from ._counting import COUNTING
from ._seasons import SIZE
from ._store import CLASSES, CYCLE, IDLE, NUMERIC, SCORE, SEASON, SLOT, TABLED, TIMED, InputColumn, Store, parts_of
from ._texts import parts, texts_from_state, texts_schema, texts_to_state
from .kinds import KINDS, VOTES, is_code

State = dict[str, Any]
ROLES = (None, TIMED, IDLE)
TASKS = ("", "number", "label")
WRITTEN = {**dict.fromkeys(KINDS, ("",)), "number": (".", ","), "integer": (".", ","), "date": ("", "d/m", "m/d")}
FLAGS = ("retired", "settled", "replaced", "many", "reads")
FORMS = ("", ".", ",", "d/m", "m/d")


def packed(name: str, words: list[str]) -> State:
    """Strings as two arrays."""
    parts = [text.encode("utf-8", "surrogatepass") for text in words]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return {name: np.frombuffer(b"".join(parts), np.uint8).copy(), f"{name}_ends": ends}


def unpacked(name: str, state: State) -> list[str]:
    """Inverse of :func:`packed`."""
    data, starts = state[name].tobytes(), [0, *state[f"{name}_ends"].tolist()]
    return [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(starts)]


def to_state(store: Store) -> State:
    """The flat dict of a store."""
    tabled = [source for source in store.sources if source.kind in TABLED]
    names = [name for source in tabled for name in source.table.codes]  # type: ignore[union-attr]
    codes = [code for source in tabled for code in source.table.codes.values()]  # type: ignore[union-attr]
    return {
        "t": store.t,
        "task": store.task,
        **packed("came", list(store.came)),
        **packed("names", [source.name for source in store.sources]),
        "kinds": np.array([KINDS.index(source.kind) for source in store.sources], np.int64),
        "flags": np.array([_flags(source) for source in store.sources], np.int64),
        "forms": np.array([FORMS.index(source.form) for source in store.sources], np.int64),
        "votes": store.votes.copy(),
        "wrong": np.array([(s.wrong, s.first_wrong) for s in store.sources], np.int64).reshape(-1, 2),
        "layout": np.array(store.layout, np.int64).reshape(-1, 3),
        "moments": store.moments.copy(),
        **packed("words", [name if isinstance(name, str) else str(int(name)) for name in names]),
        "table_sizes": np.array([len(source.table.codes) for source in tabled], np.int64),  # type: ignore[union-attr]
        "counts": store.counts[codes],
        "sums": store.sums[codes],
        "recent": store.recent[codes],
        "within": store.within.copy(),
        "between": store.between.copy(),
        "seasons": store.seasons.copy(),
        "spans": store.spans.copy(),
        **packed("labels", store.labels),
        "target": store.target.copy(),
        **texts_to_state([source.text for source in store.sources if source.text is not None]),
    }


def _flags(source: InputColumn) -> int:
    own = sum(1 << b for b, name in enumerate(FLAGS) if getattr(source, name))
    return own + (ROLES.index(source.role) << len(FLAGS))


def schema(state: State, one_hot: int) -> Schema:
    """What the entries may be; the lengths are those of a few entries, which are checked against each other later."""
    sources, width = length(state, "kinds"), length(state, "layout")
    numbers, means = length(state, "moments", 1), length(state, "target", 1)
    words, tables, dates = length(state, "counts"), length(state, "table_sizes"), length(state, "spans")
    return {
        "t": Count(),
        "task": Text(TASKS),
        **_strings("came", state, length(state, "came_ends")),
        **_strings("names", state, sources),
        "kinds": Array((sources,), "int64", low=0, high=len(KINDS) - 1),
        "flags": Array((sources,), "int64", low=0, high=(len(ROLES) << len(FLAGS)) - 1),
        "forms": Array((sources,), "int64", low=0, high=len(FORMS) - 1),
        "votes": Array((sources, VOTES), "int64", low=0, high=MOST),
        "wrong": Array((sources, 2), "int64", low=0, high=MOST),
        "layout": Array((width, 3), "int64", low=0, high=max(sources, one_hot, parts(CLASSES), SEASON, SCORE)),
        "moments": Array((7, numbers)),
        **_strings("words", state, words),
        "table_sizes": Array((tables,), "int64", low=0, high=words),
        "counts": Array((words,), low=0.0),
        "sums": Array((words, means)),
        "recent": Array((words, means)),
        "within": Array((2 * tables, means), low=0.0),
        "between": Array((2 * tables, means), low=0.0),
        "seasons": Array((SIZE * dates, SIZE + 2 * means)),
        "spans": Array((dates, 3)),
        **_strings("labels", state, length(state, "labels_ends")),
        "target": Array((3, means)),
        **texts_schema(state, _texts(state), means),
    }


def _texts(state: State) -> int:
    """How many columns of texts have learned something."""
    flags = state.get("flags")
    if not isinstance(flags, np.ndarray) or flags.dtype != np.int64 or not length(state, "target", 1):
        return 0
    reads, replaced = (flags & 1 << FLAGS.index(name) != 0 for name in ("reads", "replaced"))
    return int(np.count_nonzero(reads & ~replaced))


def _strings(name: str, state: State, count: int) -> Schema:
    """What the two arrays of some strings may be, see :func:`packed`."""
    size = length(state, name)
    return {name: Array((size,), "uint8"), f"{name}_ends": Array((count,), "int64", low=0, high=size, rising=True)}


def from_state(state: State, one_hot: int) -> Store:
    """The store of a flat dict; ValueError unless :func:`to_state` could have made it."""
    check(state, schema(state, one_hot))
    store = Store(one_hot)
    names, words, labels = (unpacked(name, state) for name in ("names", "words", "labels"))
    live = [name for name, flags in zip(names, state["flags"].tolist(), strict=True) if not flags & 4]
    if len(set(live)) < len(live):
        raise ValueError("state_['names'] holds a name twice")
    came = unpacked("came", state)
    store.came = dict.fromkeys(came)
    if len(store.came) < len(came) or not store.came.keys() >= set(names):
        raise ValueError("state_['came'] must hold the name of every column once")
    store.task, store.t, store.labels = state["task"], int(state["t"]), labels
    store.target, store.moments = state["target"].copy(), state["moments"].copy()
    if (store.moments[[0, 2, 5, 6]] < 0).any() or (store.target[[0, 2]] < 0).any():
        raise ValueError("state_ holds a negative count or sum of squares")
    store.votes = state["votes"].copy()
    means = store.target.shape[1]
    if means != (0 if not store.task else 1 if store.task == "number" else max(1, len(labels) - 1)):
        raise ValueError(f"{means} means do not match {len(labels)} labels")
    if len(labels) > CLASSES or (labels and store.task != "label"):
        raise ValueError("state_['labels'] holds labels that have no place")
    store.layout = [tuple(row) for row in state["layout"].tolist()]
    _sources(store, names, state)
    texts = iter(texts_from_state(state, _texts(state), means))
    for source in store.sources:
        source.text = next(texts) if means and source.reads and not source.replaced else None
    _columns(store, means)
    _tables(store, words, state)
    return store


def _sources(store: Store, names: list[str], state: State) -> None:
    numbers = coded = dates = 0
    for i, name in enumerate(names):
        source = InputColumn(name, KINDS[state["kinds"][i]])
        source.wrong, source.first_wrong = map(int, state["wrong"][i])
        for b, flag in enumerate(FLAGS):
            setattr(source, flag, bool(state["flags"][i] & 1 << b))
        reads = source.kind == "text" or (source.reads and source.kind == "category")
        if (source.many and not (source.kind == "category" and store.task)) or source.reads != reads:
            raise ValueError(f"state_['flags'] has one that column {source.name!r} cannot have")
        source.role = ROLES[state["flags"][i] >> len(FLAGS)]
        if source.role not in (None, *COUNTING.get(source.kind, ())):
            raise ValueError(f"state_['flags'] has one that column {source.name!r} cannot have")
        source.form = FORMS[state["forms"][i]]
        if source.form not in WRITTEN[source.kind]:
            raise ValueError(f"state_['forms'] has one that column {source.name!r} cannot have")
        if source.kind in NUMERIC:
            source.number, numbers = numbers, numbers + 1
        if source.kind in TABLED:
            source.coded, coded = coded, coded + 1
        if source.kind == "date":
            source.dated, dates = dates, dates + 1
        store.sources.append(source)
    store.find_columns()
    if any(store.by_name[source.name] is source for source in store.sources if source.replaced):
        raise ValueError("state_['flags'] has a column that was replaced by none")
    if (numbers, coded, dates) != (store.moments.shape[1], len(state["table_sizes"]), len(state["spans"])):
        raise ValueError("state_['kinds'] does not match the numbers, the tables and the dates")
    store.seasons, store.spans = state["seasons"].copy(), state["spans"].copy()


def _columns(store: Store, means: int) -> None:
    """Where every part of every source is, by the layout, which must have each of them once."""
    at = {part: column for column, part in enumerate(store.layout)}
    wanted: set[tuple[int, int, int]] = set()
    store.number_at = np.full((3, store.moments.shape[1]), -1, np.int32)
    tables = sum(s.kind in TABLED for s in store.sources)
    store.mean_at, store.recent_at = (np.full((tables, columns), -1, np.int32) for columns in (means, means + 1))
    for i, source in enumerate(store.sources):
        own = parts_of(source.kind, means, store.one_hot, source.many, source.reads)
        mine = {part: at.get((i, *part), -1) for part in own}
        wanted.update((i, *part) for part in mine)
        if -1 in mine.values():
            raise ValueError(f"state_['layout'] lacks a part of column {source.name!r}")
        rest = [column for (part, _), column in mine.items() if part in (SLOT, CYCLE)]
        if rest and rest != list(range(rest[0], rest[0] + len(rest))):
            raise ValueError(f"state_['layout'] scatters the columns of {source.name!r}")
        store.place_parts(source, mine)
    if len(at) != len(store.layout) or wanted != set(at):
        raise ValueError("state_['layout'] has columns of nothing")


def _tables(store: Store, words: list[str], state: State) -> None:
    if sum(state["table_sizes"].tolist()) != len(words):
        raise ValueError("state_['table_sizes'] does not match the words")
    store.sums, store.recent = (np.zeros((0, store.target.shape[1])) for _ in range(2))
    store._grow(max(64, 2 * len(words)))
    start = 0
    for source in (source for source in store.sources if source.kind in TABLED):
        size = int(state["table_sizes"][source.coded])
        mine = words[start : start + size]
        if len(set(mine)) < size or (size and (source.retired or source.replaced)):
            raise ValueError(f"state_['words'] cannot be those of column {source.name!r}")
        for name in mine:
            key: Any = name
            if source.kind == "integer" and name != "":
                key = float(name)
                if not is_code(key) or name != str(int(key)):
                    raise ValueError(f"state_['words']: {name!r} is not an integer of column {source.name!r}")
            store.enter(source, key, for_good=True)
        start += size
    n = len(words)
    store.counts[:n], store.sums[:n], store.recent[:n] = state["counts"], state["sums"], state["recent"]
    store.within, store.between = state["within"].copy(), state["between"].copy()
