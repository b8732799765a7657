"""Snapshots of a learner: models as files, written beside and renamed, and their index in the journal."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelstream import model_io
from kernelstream.files import discard, numbered, sweep, write_atomic

from . import records
from .answers import StoreError
from .champions import Champions, Versions
from .journal import Journal, calls, snapshots

SNAPSHOTS_KEPT = 2
MODEL, RIVAL = "snapshot", "challenger"  # stems of their files, which the number of the call to come follows

logger = logging.getLogger("kernelstream_service")


class Snapshots:
    """Writes states of a learner, and finds the latest that can be read.

    Parameters
    ----------
    folder : path
    journal : Journal
    complain : callable
        Called with the name of a problem and what to say about it, or None when it is over.
    """

    def __init__(self, folder: Path, journal: Journal, complain: Callable[[str, str | None], None]):
        self.folder, self.journal, self.complain = folder, journal, complain
        self.number = -1  # of the latest one
        self.written = time.monotonic()  # when it was, by a clock that nobody sets

    def write(self, champions: Champions) -> None:
        """Write a state: its files, then its entry in the journal."""
        number, rival, files = self.journal.next, champions.challenger, dict[str, bytes]()
        try:
            if rival is not None:
                files[RIVAL] = model_io.to_bytes(rival.model)
            files[MODEL] = model_io.to_bytes(champions.champion.model)  # last: without it there is no snapshot
            for stem, content in files.items():
                write_atomic(self.path(stem, number), content)
            oldest = self.journal.index(number, champions.notes(), SNAPSHOTS_KEPT)
        except Exception as error:
            self.complain("snapshot", str(error))
            if number != self.number:  # an earlier one with the same number still needs its files
                discard(self.path(stem, number) for stem in files)
            raise
        self.complain("snapshot", None)
        self.number, self.written = number, time.monotonic()
        Versions(self.folder).drop(champions.retired[0]["version"] if champions.retired else 0)
        for stem in (MODEL, RIVAL):
            discard(path for at, path in numbered(self.folder, stem) if at < oldest)

    def path(self, stem: str, number: int) -> Path:
        """Where a model of a snapshot is."""
        return self.folder / f"{stem}-{number:016d}.ks"

    # ---------------------------------------------------------------- recovery
    def recover(self, remembered: int) -> tuple[Champions, int] | None:
        """The latest state: a snapshot and the calls after it, learned again, and how many rows these were.

        None in a folder where no learner has been.
        """
        sweep(self.folder)
        found = snapshots(self.journal.db)
        for number, notes, at in found:
            try:
                champions = self._read(number, notes, remembered)
            except (ValueError, OSError, KeyError, TypeError) as error:
                what = f"the snapshot of call {number} cannot be read ({error}): an older one is used"
                self.complain("recovery", what)
                continue
            self.number, self.written = number, time.monotonic() - max(0.0, time.time() - at)
            return champions, self._replay(champions, number)
        if found:
            raise StoreError(f"{self.folder}: none of its {len(found)} snapshots can be read; nothing has been changed")
        if any(True for _ in calls(self.journal.db, 0)):
            raise StoreError(f"{self.folder} holds calls without a snapshot: it is damaged")
        if any(number for number, _ in numbered(self.folder, MODEL)):
            raise StoreError(f"{self.folder} holds models without a journal: it is damaged")
        return None

    def _read(self, number: int, notes: dict[str, Any] | None, remembered: int) -> Champions:
        if notes is None:
            raise ValueError("its notes are damaged")
        model = model_io.load(self.path(MODEL, number))
        rival = None if notes["challenger"] is None else model_io.load(self.path(RIVAL, number))
        return Champions.from_notes(notes, model, rival, Versions(self.folder), remembered)

    def _replay(self, champions: Champions, start: int) -> int:
        rows, numbers = 0, []
        for number, content in calls(self.journal.db, start):
            numbers.append(number)
            try:
                call = records.unpack(content)
            except ValueError as error:
                raise StoreError(f"{self.folder}: call {number} of the journal cannot be used: {error}") from None
            rows += call.n if isinstance(call, records.Learn) else 0
            try:
                champions.apply(call)
            except (ValueError, OSError, ArithmeticError, TypeError) as error:  # it was refused then, too
                logger.warning("%s: call %d of the journal is skipped: %s", self.folder, number, error)
        self.journal.recover(start, numbers)
        return rows


def read_state(folder: Path, number: int) -> None:
    """Read the models of a snapshot; an error where they cannot be read."""
    model_io.load(folder / f"{MODEL}-{number:016d}.ks")
    with contextlib.suppress(FileNotFoundError):
        model_io.load(folder / f"{RIVAL}-{number:016d}.ks")
