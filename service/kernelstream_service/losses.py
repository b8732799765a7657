"""What a learner has lost: calls that were answered, and can no longer be read from a damaged disk.

They are written to a file beside the log, and stay a problem, whatever is restarted, until the operator has
acknowledged them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernelstream.checks import few
from kernelstream.files import write_atomic

LOST_FILE = "lost.json"
ENTRY = ("first", "last", "found", "acknowledged")

Gap = tuple[int, int | None]


class Losses:
    """Gaps in the log of a folder.

    Parameters
    ----------
    folder : path

    Attributes
    ----------
    entries : list of dict
        ``{"first", "last", "found", "acknowledged"}``: numbers of records, ``last`` None where it is unknown, and two
        times, the second None until an operator has acknowledged the loss.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self.path = Path(folder) / LOST_FILE
        self.entries: list[dict[str, Any]] = []
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            self.entries = [{name: entry[name] for name in ENTRY} for entry in found]
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError):  # what it said is lost, too
            self.entries = [_entry(0, None)]

    @property
    def open(self) -> list[dict[str, Any]]:
        """Those that are not acknowledged yet."""
        return [entry for entry in self.entries if entry["acknowledged"] is None]

    @property
    def calls(self) -> int:
        """How many calls these are, at least."""
        return sum(1 if entry["last"] is None else entry["last"] - entry["first"] + 1 for entry in self.open)

    def add(self, gaps: Sequence[Gap]) -> None:
        """Record gaps; one that is found again at the next start is not new."""
        known = {(entry["first"], entry["last"]) for entry in self.entries}
        fresh = [gap for gap in gaps if gap not in known]
        if fresh:
            self.entries += [_entry(*gap) for gap in fresh]
            self._write()

    def acknowledge(self) -> int:
        """Mark all as seen by an operator; returns how many calls they are."""
        calls = self.calls
        for entry in self.open:
            entry["acknowledged"] = _now()
        if calls:
            self._write()
        return calls

    def __str__(self) -> str:
        gaps = [
            f"records {entry['first']} to {entry['last']}"
            if entry["last"] is not None
            else f"an unknown number of records from {entry['first']} on"
            for entry in self.open
        ]
        return f"the log is damaged: {few(gaps)} cannot be read, and what they held is lost; all others were used"

    def _write(self) -> None:
        write_atomic(self.path, json.dumps(self.entries, indent=1).encode())


def _entry(first: int, last: int | None) -> dict[str, Any]:
    return dict(zip(ENTRY, (first, last, _now(), None), strict=True))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
