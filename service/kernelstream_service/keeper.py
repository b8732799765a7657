"""What the writer of a learner does: calls are written, applied and answered, in this order."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelstream import model_io
from kernelstream.copies import seeded

from . import journal, records
from .answers import Dead, StoreError
from .champions import Champions, Versions
from .journal import Journal
from .memory import trim
from .readers import Readers
from .snapshots import Snapshots
from .waiting import Waiting

logger = logging.getLogger("kernelstream_service")


@dataclass(frozen=True, eq=False)
class Asked:
    """What the writer is asked for: a call to write and apply, or work that needs no record."""

    call: records.Call | None = None
    work: Callable[[], Any] | None = None
    dead: Sequence[Dead] = ()
    content: bytes = b""  # of the call

    @property
    def alone(self) -> bool:
        """Whether it shares no transaction with others; a snapshot is then written before the answer."""
        return self.call is None or not isinstance(self.call, records.Learn)


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
        self.waiting = Waiting(remember)
        self.journal = Journal(folder, flush)
        self.snapshots = Snapshots(folder, self.journal, self._complain)
        try:
            recovered = self.snapshots.recover(remember)
            self.champions, self.rows_since_snapshot = recovered or (self._begun(model, columns, remember), 0)
            self.lost = self.journal.losses()
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
        self.snapshots.write(champions, wait=True)
        return champions

    def close(self) -> None:
        """Write a snapshot, and release the folder."""
        try:
            with contextlib.suppress(Exception):  # reported in `problems`; the next one may succeed
                self.snapshots.finish(wait=True)
            if self.journal.next > self.snapshots.number:
                self.snapshot(wait=True)
        finally:
            self.journal.close()

    def _complain(self, what: str, message: str | None) -> None:
        if message is None:
            self.problems.pop(what, None)
            return
        if self.problems.get(what) != message:
            logger.error("%s: %s: %s", self.folder, what, message)
        self.problems[what] = message

    def serve(self, batch: list[tuple[Asked, Future[Any]]]) -> None:
        """Calls in their order; neighbours that need nothing else share a transaction."""
        group: list[tuple[Asked, Future[Any]]] = []
        for asked, future in batch:
            if asked.alone:
                self._commit(group)
                group = []
                self._alone(asked, future)
            else:
                group.append((asked, future))
        self._commit(group)

    def _alone(self, asked: Asked, future: Future[Any]) -> None:
        if asked.call is not None:
            try:
                self.champions.prepare(asked.call)
            except Exception as error:
                future.set_exception(error.with_traceback(None))
                return
            self._commit([(asked, future)], snapshot=True)
            return
        assert asked.work is not None
        try:
            future.set_result(asked.work())
        except Exception as error:
            future.set_exception(error.with_traceback(None))

    def _commit(self, group: list[tuple[Asked, Future[Any]]], snapshot: bool = False) -> None:
        """Write, learn, answer."""
        if not group:
            return
        try:
            first = self.journal.append([asked.content for asked, _ in group],
                                        [one for asked, _ in group for one in asked.dead])  # fmt: skip
            self._complain("log", None)
        except Exception as error:
            if isinstance(error, OSError):
                self._complain("log", f"{error.strerror or error}; nothing is learned until it can be written again")
            for _, future in group:
                future.set_exception(error.with_traceback(None))
            return
        answers: list[Any] = []
        for number, (asked, _) in enumerate(group, first):
            try:
                answers.append(self._applied(asked.call))
            except Exception as error:
                self.journal.replace(number, records.pack(records.Void()))
                answers.append(error.with_traceback(None))  # whose frames would keep models alive
        if snapshot:
            with contextlib.suppress(Exception):  # a snapshot that fails is reported in `problems`
                self.snapshot(wait=True)
        if snapshot or (self.champions.total and not self.readers.view.rows):  # a prediction may follow at once
            self._publish()  # else after the answers: none of them waits for it
        for answer, (_, future) in zip(answers, group):
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        if snapshot:
            trim()

    def _applied(self, call: Any) -> Any:
        answer = self.champions.apply(call)
        if isinstance(call, records.Learn) and call.n:
            self.rows_since_snapshot += call.n
            self.readers.example = call.X[-1:]
        if isinstance(call, records.Learn) and call.ids:
            self.waiting.forget(call.ids)
        self.readers.stale = True
        return answer

    def due(self) -> float | None:
        """Seconds until :meth:`look_after` has something to do; None if nothing is waiting."""
        waits = [wait for wait in (self.readers.due(), self.journal.due()) if wait is not None]
        if self.snapshots.busy:
            waits.append(0.05)
        return min(waits, default=None)

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
        with contextlib.suppress(Exception):  # reported in `problems`
            self.snapshots.finish()
            if self.rows_since_snapshot >= self.snapshot_rows and not self.snapshots.busy:
                self.snapshot(wait=False)

    def snapshot(self, wait: bool) -> None:
        """Write a snapshot; unless ``wait``, its files in another thread."""
        self.rows_since_snapshot = 0  # also if it fails: not again at once, the journal has everything
        self.snapshots.write(self.champions, wait)

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
