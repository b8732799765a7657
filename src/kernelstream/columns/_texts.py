"""What an encoder has learned of a column of texts, and the columns in which it shows.

Six scores (:mod:`.text`) are mixed by the recursion that also combines members of the default learner
(:mod:`kernelstream.passes.stack.python`). For two labels, or numbers, the result has the mixture and the six; for more
labels the mixture of each, and the six of the second label.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from .. import engine as engines
from ..passes.stack.states import start_recent, start_stack
from ..state.schema import Array, Schema, length
from ..streams.cells import is_missing
from . import text
from .text import COUNTED, FAMILIES, MAX_CHARACTERS, MAX_SCORE, OUTPUT_SUMS, PER_OUTPUT, PLACES, SCORES, SUMS

CHARACTERS_AT_ONCE = 1 << 20  # of texts whose pieces are held at once
NAMES = tuple(f"{family} {by}" for family in ("words", "characters") for by in ("linear", "weighted", "bayes"))


def outputs_of(means: int) -> int:
    """Scores of a kind, of an encoder that keeps so many means: one, or of more than two labels one for each."""
    return means if means < 2 else means + 1


def parts(means: int) -> int:
    """Columns of the result for a column of texts."""
    return outputs_of(means) + SCORES if means else 0


def score_name(index: int, labels: list[str]) -> str:
    """What a column of the result is: the mixture, the six scores, and of more labels than two mixtures again."""
    if 0 < index <= SCORES:
        return NAMES[index - 1]
    place = 0 if index == 0 else index - SCORES
    return "text" if len(labels) < 3 else f"text({labels[(1, 0, *range(2, len(labels)))[place]][1:]})"


class TextColumn:
    """The tables of a column of texts, see :func:`.text.text_pass`, and the mixture of its scores."""

    def __init__(self, numbers: bool, outputs: int = 1):
        self.numbers = numbers
        self.state: dict[str, np.ndarray] = {
            "table": np.zeros((FAMILIES * PLACES, COUNTED + PER_OUTPUT * outputs), np.float32),
            "sums": np.zeros((FAMILIES, SUMS + OUTPUT_SUMS * outputs)),
            "target": np.zeros(3),
        }
        self.mixture = start_stack(SCORES, outputs, numbers)

    def copy(self) -> TextColumn:
        made = copy.copy(self)
        made.state, made.mixture = ({k: v.copy() for k, v in part.items()} for part in (self.state, self.mixture))
        return made

    def part(self, touched: np.ndarray) -> Any:
        """A copy of the rows of the table that are touched, and of all else."""
        rest = {name: value.copy() for name, value in self.state.items() if name != "table"}
        return touched, self.state["table"][touched], rest, {name: value.copy() for name, value in self.mixture.items()}

    def put_back(self, saved: Any) -> None:
        """Undo what has changed since :meth:`part`."""
        touched, rows, rest, mixture = saved
        self.state["table"][touched] = rows
        self.state |= rest
        self.mixture |= mixture

    @property
    def outputs(self) -> int:
        """Scores of each kind."""
        return (self.state["sums"].shape[1] - SUMS) // OUTPUT_SUMS

    @property
    def different(self) -> float:
        """Different words and pairs of words so far."""
        return float(self.state["sums"][0, 1])

    def grow(self, outputs: int) -> None:
        """More labels: of the third, the first label gets an output of its own, the opposite of the second's."""
        table, sums, before = self.state["table"], self.state["sums"], self.outputs
        more = outputs - before
        table = np.concatenate([table, np.zeros((len(table), PER_OUTPUT * more), np.float32)], axis=1)
        sums = np.concatenate([sums, np.zeros((FAMILIES, OUTPUT_SUMS * more))], axis=1)
        if before == 1:
            second, first = (slice(COUNTED + PER_OUTPUT * c, COUNTED + PER_OUTPUT * (c + 1)) for c in (0, 1))
            table[:, first] = table[:, second] * np.array([0, -1, 1, 1, 1], np.float32)
            table[:, first.start] = table[:, 0] - table[:, second.start]
            second, first = (slice(SUMS + OUTPUT_SUMS * c, SUMS + OUTPUT_SUMS * (c + 1)) for c in (0, 1))
            sums[:, first] = sums[:, second] * np.array([0, 0, -1, 1, -1, 1])
            sums[:, first.start : first.start + 2] = sums[:, [0, 2]] - sums[:, second.start : second.start + 2]
        self.state |= {"table": table, "sums": sums}
        self.mixture |= start_recent(outputs)


def text_of(value: Any) -> str | None:
    """A cell as a text; "" if it is missing, None if it cannot be one."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if is_missing(value):
        return ""
    return value if isinstance(value, str) else str(value) if np.ndim(value) == 0 and np.isscalar(value) else None


def texts_of(cells: Any) -> tuple[list[str], list[int]]:
    """Cells as texts, and the places of those that cannot be any."""
    found = [text_of(cell) for cell in cells]
    return [value or "" for value in found], [i for i, value in enumerate(found) if value is None]


def packed(values: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Code points of texts in small letters, one after the other, and where each ends."""
    small = [value[:MAX_CHARACTERS].lower() for value in values]
    characters = np.frombuffer("".join(small).encode("utf-32-le", "surrogatepass"), np.uint32)
    return characters, np.cumsum([len(value) for value in small], dtype=np.int64)


def run(
    column: TextColumn, values: list[str], engine: str, Y: np.ndarray | None, weight: np.ndarray | None, journal: Any
) -> np.ndarray:
    """Columns of the result (n, parts) for texts, which are then learned, if there are targets Y (n, means)."""
    native = engine != "python" and engines.has_native()
    n, C, start = len(values), column.outputs, 0
    out = np.zeros((n, C + SCORES))
    while start < n:
        stop, characters = start + 1, len(values[start])
        while stop < n and characters + len(values[stop]) <= CHARACTERS_AT_ONCE:
            characters += len(values[stop])
            stop += 1
        rows = slice(start, stop)
        y, w = (None if array is None else array[rows] for array in (Y, weight))
        out[rows] = _block(column, packed(values[rows]), native, y, w, journal)
        start = stop
    return out


def _block(column: TextColumn, characters: Any, native: bool, Y: Any, weight: Any, journal: Any) -> np.ndarray:
    n, C, numbers = len(characters[1]), column.outputs, column.numbers
    if native:
        from .. import _core

        places, amounts, stops = _core.text_pieces(characters[0], characters[1], text.AMOUNTS)
    else:
        places, amounts, stops = text.text_pieces(characters[0], characters[1])
    targets = None if Y is None else Y if C == 1 else _by_label(Y)
    block = {"places": places, "amounts": amounts, "stops": stops, "Y": targets, "weight": weight}
    if journal is not None and Y is not None:
        family = np.repeat(np.arange(len(stops)) % FAMILIES, np.diff(stops, prepend=0))
        journal.save_text(column, np.unique(places + PLACES * family))
    scores, units = np.empty((SCORES, n, C)), np.empty((n, 2))
    (_core.text_pass if native else text.text_pass)(column.state, block, numbers, scores, units)
    counted = np.diff(stops[FAMILIES - 1 :: FAMILIES], prepend=0) > 0
    y = None
    if Y is not None:
        weight = np.where(counted, 1.0 if weight is None else weight, 0.0)
        assert targets is not None
        y = targets[:, 0] if numbers else 2 * targets[:, 0] - 1 if C == 1 else targets.argmax(axis=1).astype(float)
        y = np.ascontiguousarray(y)
    given = scores * units[:, 1:] + units[:, :1] if numbers else scores
    ops = engines.get("native" if native else "python")
    mixed = ops.stack_pass(given, y, weight if Y is not None else None, column.mixture, (numbers, False))
    mixed = (
        (mixed - units[:, :1]) / units[:, 1:]
        if numbers
        else mixed - (mixed.mean(axis=1, keepdims=True) if C > 1 else 0)
    )
    mixed = np.clip(mixed, -MAX_SCORE, MAX_SCORE)
    out = np.concatenate([mixed[:, :1], scores[:, :, 0].T, mixed[:, 1:]], axis=1)
    return np.where(counted[:, None], out, 0.0)


def _by_label(Y: np.ndarray) -> np.ndarray:
    """Targets (n, outputs) of labels from those of all but the first, which takes what has no other."""
    return np.ascontiguousarray(np.column_stack([Y[:, 0], 1.0 - Y.sum(axis=1), Y[:, 1:]]))


# -------------------------------------------------------------------- a flat state
def texts_to_state(columns: list[TextColumn]) -> dict[str, np.ndarray]:
    """Entries of an encoder's state: of the tables, the pieces that have come."""
    if not columns:
        return {}
    pieces = [np.flatnonzero(column.state["table"][:, 0]).astype(np.int32) for column in columns]
    tables = [column.state["table"][own] for column, own in zip(columns, pieces, strict=True)]
    found = {"text_pieces": np.concatenate(pieces), "text_table": np.concatenate(tables)}
    found["text_sizes"] = np.array([len(own) for own in pieces], np.int64)
    rest = {f"text_{name}": [column.state[name] for column in columns] for name in ("sums", "target")}
    rest |= {f"text_{name}": [column.mixture[name] for column in columns] for name in columns[0].mixture}
    return found | {name: np.stack(values) for name, values in rest.items()}


def texts_schema(state: dict[str, Any], columns: int, means: int) -> Schema:
    """What these entries may be."""
    if not columns:
        return {}
    C, pieces, numbers = outputs_of(means), length(state, "text_pieces"), state.get("task") == "number"
    mixture = start_stack(SCORES, C, numbers)
    return {
        "text_pieces": Array((pieces,), "int32", low=0, high=FAMILIES * PLACES - 1),
        "text_table": Array((pieces, COUNTED + PER_OUTPUT * C), "float32"),
        "text_sizes": Array((columns,), "int64", low=0, high=FAMILIES * PLACES),
        "text_sums": Array((columns, FAMILIES, SUMS + OUTPUT_SUMS * C)),
        "text_target": Array((columns, 3)),
        **{f"text_{name}": Array((columns, *value.shape)) for name, value in mixture.items()},
    }


def texts_from_state(state: dict[str, Any], columns: int, means: int) -> list[TextColumn]:
    """Columns of texts of a checked state; ValueError for entries that do not fit each other."""
    found, start = list[TextColumn](), 0
    if columns and state["text_sizes"].sum() != len(state["text_pieces"]):
        raise ValueError("state_['text_sizes'] does not match the pieces")
    for i in range(columns):
        made, stop = TextColumn(state["task"] == "number", outputs_of(means)), start + int(state["text_sizes"][i])
        own, start = slice(start, stop), stop
        pieces, sums = state["text_pieces"][own], state["text_sums"][i]
        if (np.diff(pieces) <= 0).any() or not valid(
            state["text_table"][own], sums, state["text_target"][i], made.numbers
        ):
            raise ValueError("state_['text_table'] cannot be that of texts")
        made.state["table"][pieces] = state["text_table"][own]
        made.state |= {name: state[f"text_{name}"][i].copy() for name in ("sums", "target")}
        made.mixture = {name: state[f"text_{name}"][i].copy() for name in made.mixture}
        found.append(made)
    return found


def valid(table: np.ndarray, sums: np.ndarray, target: np.ndarray, numbers: bool) -> bool:
    """Whether sums of weights and squares are what they can be: nothing is divided by 0, or the root of less."""
    own, all_ = (
        table[:, COUNTED:].reshape(len(table), -1, PER_OUTPUT),
        sums[:, SUMS:].reshape(FAMILIES, -1, OUTPUT_SUMS),
    )
    fine = (table[:, 0] > 0).all() and (own[:, :, [2, 4]] >= 0).all() and (all_[:, :, [3, 5]] >= 0).all()
    fine &= (sums[:, :SUMS] >= 0).all() and (target[[0, 2]] >= 0).all()
    if numbers:
        return bool(fine)
    within = (all_[:, :, 0] <= sums[:, None, 0]) & (all_[:, :, 1] <= sums[:, None, 2])
    return bool(fine and (own[:, :, 0] >= 0).all() and (all_[:, :, :2] >= 0).all() and within.all())
