"""Lines of JSON."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Sequence
from typing import Any

from ._table import Raw, TextTable
from .base import BLOCK_ROWS
from .bytes import decoded
from .cells import LARGEST_NUMBER, Records, number
from .csv import SAMPLE_BYTES


class JSONLines(TextTable):
    """Rows of a text with one JSON object on each line, of any columns.

    Parameters
    ----------
    source : path, "-" or binary file
    target : str or None
        Key of y; None for rows without a target.
    block : int, default=1024
    features, drop, ignore : list of str, optional
        Keys to use, or to leave out.
    labels : bool, optional
        Whether targets are labels; by default they are if the first one is not a number.
    encoding : str, optional
        Of the text; UTF-8 by default.
    on_error : {"raise", "skip", "log"}
        What to do with a line that is not a JSON object, or has no target.
    """

    def __init__(
        self,
        source: Any,
        target: str | None = None,
        block: int = BLOCK_ROWS,
        *,
        mixed: bool = True,
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        ignore: Sequence[str] = (),
        labels: bool | None = None,
        encoding: str | None = None,
        on_error: str = "raise",
    ):
        super().__init__(source, block, encoding, mixed=mixed, labels=labels, on_error=on_error)
        if not mixed:
            raise ValueError(f"{self.name} holds JSON lines: mixed=True reads them")
        self.target = target
        self.chosen = None if features is None else {*features, target}
        self.left_out = {*drop, *ignore} - {target}

    def _raw(self, n: int) -> Raw | None:
        rows: list[dict[str, Any]] = []
        lines: list[int] = []
        wrong: dict[int, str] = {}
        while len(rows) < n and not ((rows or wrong) and self.eager and not self.text.has_line):
            content = self.text.readline()
            if not content:
                break
            if content.strip():
                row = self._object(content)
                if isinstance(row, str):
                    wrong[self.text.line] = row
                else:
                    rows.append(self._kept(row))
                    lines.append(self.text.line)
        return (Records(rows), lines, wrong) if rows or wrong else None

    def _object(self, content: bytes) -> dict[str, Any] | str:
        """The JSON object on a line, or what is wrong with it or its target."""
        row = json_object(content)
        if isinstance(row, str) or self.target is None:
            return row
        value = row.get(self.target)
        if isinstance(value, (bool, str, dict, list)) or number(value) is not None:
            return row
        return f"{self._what(self.target)}: {str(value)[:40]} is beyond {LARGEST_NUMBER:g}"

    def _kept(self, row: dict[str, Any]) -> dict[str, Any]:
        """The keys that are used; a target that is not a single value is a gap."""
        chosen = row.keys() if self.chosen is None else self.chosen
        found = {name: value for name, value in row.items() if name in chosen and name not in self.left_out}
        if self.target is not None and isinstance(found.get(self.target), (dict, list)):
            found[self.target] = None
        return found

    def _number(self, value: Any) -> float | None:
        return None if isinstance(value, (bool, str)) else number(math.nan if value is None else value)

    def sample(self) -> Records:
        """The first rows, without consuming them."""
        content = self.text.peek_bytes(SAMPLE_BYTES)
        found = map(json_object, content[: content.rfind(b"\n") + 1].splitlines() or [content])
        return Records([self._kept(row) for row in found if isinstance(row, dict)]).without(self.target)


def json_object(content: bytes) -> dict[str, Any] | str:
    """The JSON object on a line, or what is wrong with it."""
    try:
        row = json.loads(decoded(content.removeprefix(codecs.BOM_UTF8)))
    except (json.JSONDecodeError, RecursionError) as error:
        return f"this is not JSON ({error})"
    except ValueError as error:
        return str(error)
    if not isinstance(row, dict):
        return f"expected a JSON object, got {content[:40].decode('utf-8', 'replace')!r}"
    return row
