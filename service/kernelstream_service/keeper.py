"""What the writer of a learner does: calls are written, applied and answered, in this order."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from kernelstream import model_io
from kernelstream.copies import seeded

from . import journal, records
from .answers import Dead, StoreError
from .champions import Champions, Versions
from .journal import Journal
from .readers import Readers, Waiting
from .snapshots import Snapshots

logger = logging.getLogger("kernelstream_service")


@dataclass(frozen=True, eq=False)
class Asked:
    """What the writer is asked for: a call to write and apply, or work that needs no record; and its answer to come."""

    call: records.Call | None = None
    work: Callable[[], Any] | None = None
    dead: Sequence[Dead] = ()
    content: bytes = b""  # of the call
    answer: Future[Any] = field(default_factory=Future)

    @property
    def alone(self) -> bool:
        """Whether it shares no transaction with others; a snapshot is then written before the answer."""
        return not isinstance(self.call, records.Learn)

    def settle(self, answer: Any) -> None:
        """Give the answer, or an error without its frames, which would keep models alive."""
        if isinstance(answer, Exception):
            self.answer.set_exception(answer.with_traceback(None))
        else:
            self.answer.set_result(answer)


class Keeper:
    """The state of a learner and its folder; all but the constructor and :meth:`close` is for the writer's thread.

    The parameters are those of :class:`.learner.DurableLearner`; ``swap`` is in seconds.
    """

    def __init__(
        self,
        folder: Path,
        model: Any,
        columns: Sequence[str] | None,
        flush: str | float,
        snapshot_rows: int,
        swap: float,
        remember: int,
    ):
        self.folder, self.snapshot_rows, self.problems = folder, snapshot_rows, dict[str, str]()
        self.waiting, self.rows_since_snapshot = Waiting(remember), 0
        self.journal = Journal(folder, flush)
        try:
            self.snapshots = Snapshots(folder, self.journal, self._complain)
            recovered = self.snapshots.recover(remember)
            if recovered is None:
                self.champions = self._begun(model, columns, remember)
            else:
                self.champions, self.rows_since_snapshot = recovered
            self.lost = journal.losses(self.journal.db)
            if self.lost:
                self._complain("lost", journal.told(self.lost))
            self.readers = Readers(self.champions, swap)
        except BaseException:
            self.journal.close()
            raise

    def _begun(self, model: Any, columns: Sequence[str] | None, remember: int) -> Champions:
        if model is None:
            raise StoreError(f"{self.folder} holds no learner yet: give a model to start with")
        if not hasattr(model, "learn"):
            raise ValueError(f"{type(model).__name__} has no method learn: it cannot be updated row by row")
        seat = model_io.load(io.BytesIO(model_io.to_bytes(seeded(model))))
        names = None if columns is None else [str(name) for name in columns]
        champions = Champions.of(seat, Versions(self.folder), remember, names)
        self.journal.recover(0, [])
        self.snapshots.write(champions)
        return champions

    def close(self) -> None:
        """Write a snapshot, and release the folder."""
        try:
            if self.journal.next > self.snapshots.number:
                self.snapshot()
        finally:
            self.journal.close()

    def _complain(self, what: str, message: str | None) -> None:
        if message is None:
            self.problems.pop(what, None)
            return
        if self.problems.get(what) != message:
            logger.error("%s: %s: %s", self.folder, what, message)
        self.problems[what] = message

    # ---------------------------------------------------------------- calls
    def serve(self, batch: list[Asked]) -> None:
        """Calls in their order; neighbours that need nothing else share a transaction."""
        for alone, group in groupby(batch, lambda asked: asked if asked.alone else None):
            if alone is None:
                self._commit(list(group))
            else:
                self._alone(alone)

    def _alone(self, asked: Asked) -> None:
        try:
            if asked.work is not None:
                asked.settle(asked.work())
                return
            if asked.call is not None:
                self.champions.prepare(asked.call)
        except Exception as error:
            asked.settle(error)
        else:
            self._commit([asked], snapshot=True)
            trim()

    def _commit(self, group: list[Asked], snapshot: bool = False) -> None:
        """Write, learn, answer."""
        try:
            letters = [one for asked in group for one in asked.dead]
            first = self.journal.append([asked.content for asked in group], letters)
            self._complain("log", None)
        except Exception as error:
            if isinstance(error, OSError):
                self._complain("log", f"{error.strerror or error}; nothing is learned until it can be written again")
            for asked in group:
                asked.settle(error)
            return
        answers = [self._applied(asked.call, number) for number, asked in enumerate(group, first)]
        if snapshot:
            with contextlib.suppress(Exception):  # a snapshot that fails is reported in `problems`
                self.snapshot()
        if snapshot or (self.champions.total and not self.readers.view.rows):  # a prediction may follow at once
            self._publish()  # else after the answers: none of them waits for it
        for asked, answer in zip(group, answers):
            asked.settle(answer)

    def _applied(self, call: Any, number: int) -> Any:
        """The answer to a call; where it is refused, the error, and it is void in the journal."""
        try:
            answer = self.champions.apply(call)
        except Exception as error:
            self.journal.replace(number, records.pack(records.Void()))
            return error.with_traceback(None)
        if isinstance(call, records.Learn):
            if call.n:
                self.rows_since_snapshot += call.n
                self.readers.example = call.X[-1:]
            self.waiting.forget(call.ids or ())
        self.readers.stale = True
        return answer

    # ---------------------------------------------------------------- between calls
    def due(self) -> float | None:
        """Seconds until :meth:`look_after` has something to do; None if nothing is waiting."""
        return min((wait for wait in (self.readers.due(), self.journal.due()) if wait is not None), default=None)

    def look_after(self) -> None:
        """Do what is due between calls: a copy for the readers, the disk, a snapshot."""
        due = self.readers.due()
        if due is not None and due <= 0:
            self._publish()
        try:
            self.journal.flush_if_due()
        except Exception as error:
            self._complain("log", f"{error}; a snapshot is tried instead")
            self.rows_since_snapshot = self.snapshot_rows
        if self.rows_since_snapshot >= self.snapshot_rows:
            with contextlib.suppress(Exception):  # reported in `problems`
                self.snapshot()

    def snapshot(self) -> None:
        """Write a snapshot."""
        self.rows_since_snapshot = 0  # also if it fails: not again at once, the journal has everything
        self.snapshots.write(self.champions)

    def _publish(self) -> None:
        try:
            self.readers.publish()
            self._complain("readers", None)
        except MemoryError:
            self._complain("readers", "there is not enough memory for a new copy of the model")

    def acknowledge(self) -> int:
        """Mark all losses as seen."""
        calls = self.journal.acknowledge()
        self.lost = []
        self._complain("lost", None)
        return calls


def trim() -> None:
    """Give memory back that nobody uses: glibc keeps it, and a model that is replaced leaves some megabytes of it."""
    gc.collect()  # models are circles
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
