"""Snapshots of a learner, and its recovery from the latest of them and the log."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelstream import model_io
from kernelstream.copies import seeded
from kernelstream.evaluate.runners import rows_learned, task_of
from kernelstream.files import discard, numbered, sweep, write_atomic

from . import records
from .answers import StoreError
from .champions import Champions, ScoredModel, logger
from .log import Log
from .losses import Gap, Losses
from .samples import Clock, Samples
from .scores import Scores

SNAPSHOTS_KEPT = 2  # snapshots
NOTED = ("version", "total", "columns", "positions", "retired", "policy", "rollbacks")  # go into a snapshot as they are
FORMAT_FILE, FORMAT = "format", 1  # of the folder; the number changes when an older version could not read it right


def check_format(folder: Path) -> None:
    """Raise a StoreError if a folder has another format than that of this version."""
    try:
        found = (folder / FORMAT_FILE).read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:  # nothing is there yet
        return
    if found != str(FORMAT):
        raise StoreError(f"{folder} has format {found[:20]!r}, but this version of kernelstream reads format {FORMAT}")


class Snapshots(Champions):
    """Champions that can be written to the disk as a whole and read back."""

    def __init__(self, folder: Path, log: Log, remembered: int):
        super().__init__(folder, log, remembered)
        self.rows_since_snapshot = 0  # that a restart would have to learn again
        self.snapshot_time = 0.0  # when the latest one was written
        self._saver: threading.Thread | None = None

    def _notes(self) -> dict[str, Any]:
        notes = {name: getattr(self, name) for name in NOTED} | {"next": self.log.next, "ids": list(self._ids)}
        notes |= {"samples": self.samples.to_notes(), "clock": self.clock.to_notes()}
        notes["scores"] = self.champion.scores.to_notes()
        if self.challenger is not None and self.against is not None:
            notes["challenger"] = {
                "scores": self.challenger.scores.to_notes(), "failures": self.challenger.failures,
                "against": self.against.to_notes(), "former": self.on_probation,
            }  # fmt: skip
        return notes

    def _snapshot(self, wait: bool) -> None:
        """Write the current state to the disk; in another thread unless ``wait``."""
        self._wait_for_saver()
        try:
            number = self.log.next
            content = model_io.to_bytes(self.champion.model, {"live": self._notes()})
            rival = None if self.challenger is None else model_io.to_bytes(self.challenger.model)
            self.log.roll()
        except (OSError, ValueError) as error:
            self.rows_since_snapshot = 0  # not again at once: the log has everything
            self._complain("snapshot", str(error))
            raise
        self.rows_since_snapshot, self._moved = 0, False
        if wait:
            self._write_snapshot(number, content, rival)
            return
        arguments = (number, content, rival)
        self._saver = threading.Thread(target=self._save_aside, args=arguments, name="snapshot", daemon=True)
        self._saver.start()

    def _save_aside(self, number: int, content: bytes, rival: bytes | None) -> None:
        with contextlib.suppress(Exception):  # reported in `problems`
            self._write_snapshot(number, content, rival)

    def _write_snapshot(self, number: int, content: bytes, rival: bytes | None) -> None:
        whole, beside = (self.folder / f"{kind}-{number:016d}.ks" for kind in ("snapshot", "challenger"))
        try:
            if rival is not None:
                write_atomic(beside, rival)
            write_atomic(whole, content)
        except OSError as error:
            self._complain("snapshot", str(error))
            if not whole.exists():  # an earlier one with the same number still needs its challenger
                discard([beside])
            raise
        self.problems.pop("snapshot", None)
        self.snapshot_time = time.time()
        snapshots = numbered(self.folder, "snapshot")
        first = [found for found, path in snapshots if path not in self._unreadable][-SNAPSHOTS_KEPT:][0]
        oldest = self.retired[0]["version"] if self.retired else 0
        for stem, least in (("snapshot", first), ("challenger", first), ("version", oldest)):
            discard(path for found, path in numbered(self.folder, stem) if found < least)
        self.log.drop(first)

    def _wait_for_saver(self) -> None:
        if self._saver is not None:
            self._saver.join()
            self._saver = None

    def _recover(self, model: Any, columns: Sequence[str] | None) -> None:
        check_format(self.folder)
        sweep(self.folder)
        self.losses = Losses(self.folder)
        self._unreadable: set[Path] = set()
        found = numbered(self.folder, "snapshot")
        for number, path in reversed(found):
            try:
                self._restore(path, number)
            except (ValueError, OSError, KeyError, TypeError) as error:
                self._unreadable.add(path)
                self._complain("recovery", f"{path.name} cannot be read ({error}): an older snapshot is used")
                continue
            self._replay(number)
            return
        if found:
            raise StoreError(f"{self.folder}: none of its {len(found)} snapshots can be read; nothing has been changed")
        held = sum(1 for _ in self.log.read())
        if held or self.log.next:  # a log that never held anything is what a process left that died at its first steps
            raise StoreError(
                f"{self.folder} holds a log without a snapshot: it is not the folder of a learner, or it is damaged"
            )
        if model is None:
            raise StoreError(f"{self.folder} holds no learner yet: give a model to start with")
        if not hasattr(model, "learn"):
            raise ValueError(f"{type(model).__name__} has no method learn: it cannot be updated row by row")
        seat = model_io.load(io.BytesIO(model_io.to_bytes(seeded(model))))
        self.champion = ScoredModel(seat, Scores(task_of(seat)))
        self.total = rows_learned(seat)
        self.columns = None if columns is None else [str(name) for name in columns]
        write_atomic(self.folder / FORMAT_FILE, b"%d\n" % FORMAT)
        self.log.open()
        self._snapshot(wait=True)

    def _restore(self, path: Path, number: int) -> None:
        """Replace the state by that of a snapshot."""
        model, notes = model_io.read(path)
        notes = notes["live"]
        rival = None
        if "challenger" in notes:
            rival = model_io.load(path.with_name(f"challenger-{number:016d}.ks"))
        self.champion = ScoredModel(model, Scores.from_notes(notes["scores"]))
        if rival is not None:
            about = notes["challenger"]
            self.challenger = ScoredModel(rival, Scores.from_notes(about["scores"]), about["failures"])
            self.against, self.on_probation = Scores.from_notes(about["against"]), about["former"]
        vars(self).update({name: notes[name] for name in NOTED})
        self.samples, self.clock = Samples.from_notes(notes["samples"]), Clock.from_notes(notes["clock"])
        self.snapshot_time = path.stat().st_mtime
        self._ids = OrderedDict.fromkeys(notes["ids"])

    def _replay(self, start: int) -> None:
        void: set[int] = set()
        for number, payload in self.log.read(start):
            if payload[:1] == records.VOID:
                void.update(self._unpacked(number, payload)[1]["numbers"])
        for number, payload in self.log.read(start):
            if number not in void:
                self._again(number, *self._unpacked(number, payload))
        unknown: list[Gap] = [(self.log.next, None)] if self.log.marked is None else []
        self._lose([*self.log.lost, *unknown])
        if self.log.torn and not self.log.lost:
            logger.warning("%s: %d bytes that were never acknowledged ended the log", self.folder, self.log.torn)
        self.log.open()

    def _lose(self, gaps: Sequence[Gap]) -> None:
        """Report what could not be read, now or at an earlier start, until it is acknowledged."""
        try:
            self.losses.add(gaps)
        except OSError as error:  # the next start will find the gaps again
            self._complain("recovery", f"{self.losses.path.name} cannot be written: {error}")
        if self.losses.open:
            self._complain("lost", str(self.losses))

    def _acknowledge(self) -> int:
        calls = self.losses.acknowledge()
        self.problems.pop("lost", None)
        self.problems.pop("rollback", None)
        return calls

    def _unpacked(self, number: int, payload: bytes) -> tuple[bytes, dict[str, Any], memoryview]:
        try:
            return records.unpack(payload)
        except ValueError as error:
            raise StoreError(f"{self.folder}: record {number} of the log cannot be used: {error}") from None

    def _again(self, number: int, kind: bytes, header: dict[str, Any], content: memoryview) -> None:
        try:
            if kind == records.LEARN:
                X, y, ids = records.unpack_learn(header, content)
                self._learn(X, y, ids, header)
                self.rows_since_snapshot += len(X) if isinstance(X, list) else X.shape[0]
            elif kind == records.CHALLENGER:
                self._challenge(bytes(content))
            elif kind == records.PROMOTE:
                self._promote(header["back"])
            elif kind == records.ROLLBACK:
                self._rollback(header["to"])
            elif kind == records.POLICY:
                self._set_policy({name: header[name] for name in ("share", "guard")})
        except (ValueError, OSError, ArithmeticError, TypeError) as error:  # it was refused then, too
            logger.warning("%s: record %d of the log is skipped: %s", self.folder, number, error)
