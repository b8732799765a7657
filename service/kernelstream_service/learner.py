"""A model that loses no acknowledged row: every call is in the journal before it is answered.

State on disk, in one folder::

    learner.db             the calls since the oldest snapshot, the index of snapshots, losses, dead letters (.journal)
    snapshot-NUMBER.ks     the model after the calls up to NUMBER
    challenger-NUMBER.ks   the challenger at that moment, if there is one
    version-V.ks           models that were champion before
    lock                   held by the process that owns the folder; the number of the call to come

After a crash the learner is the latest readable snapshot plus the calls after it, repeated call by call: the arithmetic
is the same, and the model equals, bit for bit, one that was never interrupted.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelstream import model_io
from kernelstream.checks import whole
from kernelstream.columns import Columns, make_stream
from kernelstream.copies import seeded
from kernelstream.evaluate.runners import task_of

from . import journal, records
from .answers import Dead, Learned, StoreError, UnknownId, View
from .champions import Champions, ScoredModel, Versions
from .describe import Relevance, describe
from .journal import Journal
from .readers import Readers
from .rows import RowError, as_rows, checked_ids, checked_target, takes_dictionaries
from .snapshots import Snapshots
from .writer import Writer

SNAPSHOT_ROWS = 50_000
SWAP_MS = 5.0  # least time between two copies for the readers
REMEMBER = 10_000  # rows waiting for their targets, and names of rows that have been learned

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


class DurableLearner:
    """A streaming model with a journal and snapshots: what it has acknowledged survives the process.

    Parameters
    ----------
    folder : path
        Created if it does not exist. One process owns it at a time.
    model : estimator, optional
        What to start with when the folder is empty, fitted or not; it is copied. Otherwise the folder's state is used.
    flush : "each", "request" or float, default="each"
        When the journal is forced to the disk: before every answer (calls that come at the same time share one
        transaction); when :meth:`flush` is called; or at least once in that many milliseconds. The operating system
        always gets it before the answer: a killed process loses nothing, a power cut at most what had not been forced.
    snapshot_rows : int, default=50,000
        Rows from one snapshot to the next: no more than about these are replayed after a crash.
    columns : sequence of str, optional
        Names of the columns, for rows that come as dictionaries, where the model does not know them itself.
    swap_ms : float, default=5
        Readers use a copy of the model that is renewed at most this often: predictions never wait for learning, and
        are behind it by this much and the time of one call.
    remember : int, default=10,000
        How many predicted rows wait for their targets (:meth:`predict` with ``ids``), and how many names of learned
        rows are kept so that a repeated call does not learn twice; a call has at most that many ids.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from kernelstream import FeatureRegressor
    >>> from kernelstream_service import DurableLearner
    >>> folder = tempfile.TemporaryDirectory()
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> with DurableLearner(folder.name, FeatureRegressor(random_state=0)) as learner:
    ...     learner.learn(X, np.sin(X[:, 0])).total
    500
    >>> with DurableLearner(folder.name) as learner:
    ...     learner.total, learner.predict(np.zeros((1, 1))).shape
    (500, (1,))
    >>> folder.cleanup()
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        model: Any = None,
        *,
        flush: str | float = "each",
        snapshot_rows: int = SNAPSHOT_ROWS,
        columns: Sequence[str] | None = None,
        swap_ms: float = SWAP_MS,
        remember: int = REMEMBER,
    ):
        self.snapshot_rows, self.remembered = whole("snapshot_rows", snapshot_rows), int(remember)
        self.folder, self.problems = Path(folder), dict[str, str]()
        self._waiting: OrderedDict[Any, Any] = OrderedDict()  # rows by id, until their targets come
        self._waiting_lock = threading.Lock()
        journal.flush_policy(flush)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.journal = Journal(self.folder, flush)
        self.snapshots = Snapshots(self.folder, self.journal, self._complain)
        try:
            recovered = self.snapshots.recover(self.remembered)
            self.champions, self.rows_since_snapshot = recovered or (self._begun(model, columns), 0)
            self._lost = self.journal.losses()
            if self._lost:
                self._complain("lost", journal.told(self._lost))
            self.readers = Readers(self.champions, swap_ms / 1000)
        except BaseException:
            self.journal.close()
            raise
        self._relevance = Relevance()
        self._writer = Writer[Asked](f"learner {self.folder.name}", self._serve, self._look_after, self._due)

    def _begun(self, model: Any, columns: Sequence[str] | None) -> Champions:
        if model is None:
            raise StoreError(f"{self.folder} holds no learner yet: give a model to start with")
        if not hasattr(model, "learn"):
            raise ValueError(f"{type(model).__name__} has no method learn: it cannot be updated row by row")
        seat = model_io.load(io.BytesIO(model_io.to_bytes(seeded(model))))
        names = None if columns is None else [str(name) for name in columns]
        champions = Champions.of(seat, Versions(self.folder), self.remembered, names)
        self.journal.recover(0, [])
        self.snapshots.write(champions, wait=True)
        return champions

    # ---------------------------------------------------------------- what it is
    @property
    def view(self) -> View:
        """What readers see now."""
        return self.readers.view

    @property
    def model(self) -> Any:
        """The readers' copy of the model: do not change it."""
        return self.view.model

    @property
    def champion(self) -> ScoredModel:
        """The model that learns, with its scores; only the writer may use the model."""
        return self.champions.champion

    @property
    def total(self) -> int:
        """Rows learned."""
        return self.champions.total

    @property
    def version(self) -> int:
        """Number of the champion."""
        return self.champions.version

    @property
    def positions(self) -> dict[str, int | str]:
        """How far the sources have been read."""
        return self.champions.positions

    def health(self) -> dict[str, Any]:
        """Whether all is well: {"status": "ok" or "degraded", "problems": {...}, "waiting": calls, "lost": calls}."""
        problems = dict(self.problems)
        status = "degraded" if problems else "ok"
        lost = journal.count_lost(self._lost)
        return {"status": status, "problems": problems, "waiting": self._writer.waiting, "lost": lost}

    def brief(self) -> dict[str, Any]:
        """A few facts, for a list of many learners."""
        scores = self.champion.scores.summary()
        about = {"rows": self.total, "rows_per_second": self.readers.rows_per_second(), "version": self.version}
        return about | {"metric": scores["metric"], "recent": scores["recent"], "status": self.health()["status"]}

    def describe(self) -> dict[str, Any]:
        """What the learner is and how well it performs, as numbers, strings, lists and dicts."""
        about = describe(self.champions, self.view, self._relevance)
        return about | {"rows_per_second": self.readers.rows_per_second(), "health": self.health()}

    # ---------------------------------------------------------------- rows
    def predict(self, rows: Any, ids: Sequence[Any] | None = None) -> np.ndarray:
        """Predictions by the readers' copy; with ``ids``, the rows wait for :meth:`learn` with the same ids."""
        view = self.view
        X = as_rows(rows, view.model, view.columns)
        answer = view.model.predict(X)
        if ids is not None:
            self.remember(ids, X)
        return answer

    def remember(self, ids: Sequence[Any], rows: Any) -> None:
        """Keep rows until their targets come, in memory only; the oldest are dropped when there are too many."""
        ids = checked_ids(ids, len(rows) if isinstance(rows, list) else rows.shape[0])
        with self._waiting_lock:
            for i, name in enumerate(ids):
                self._waiting.pop(name, None)
                self._waiting[name] = rows[i : i + 1]
            while len(self._waiting) > self.remembered:
                self._waiting.popitem(last=False)

    def learn(
        self,
        rows: Any = None,
        y: Any = None,
        ids: Sequence[Any] | None = None,
        positions: dict[str, int | str] | None = None,
        dead: Sequence[Dead] = (),
    ) -> Learned:
        """Learn rows; they are in the journal when this returns.

        Parameters
        ----------
        rows : (n, d) array or CSR, or list of n lists or dictionaries, optional
            Without rows, those that :meth:`predict` was given under the same ids.
        y : (n,) array or list
        ids : sequence of n strings or integers, optional
            Names of the rows. A row whose name is among the last ones learned is left out: a call can be repeated when
            its answer was lost.
        positions : dict, optional
            How far the sources of the rows have been read, by name; ``positions`` is brought up to date together
            with the model, in one step, so that a reader can go on exactly there.
        dead : sequence of Dead
            Messages that were left out on the way to these positions; they are kept.

        Raises
        ------
        RowError or ValueError
            Something is wrong with the rows; the model is as it was.
        LogError
            The disk cannot take them (it may be full); the model is as it was.
        UnknownId, Busy
        """
        return self.learn_soon(rows, y, ids, positions, dead).result()

    def learn_soon(
        self,
        rows: Any = None,
        y: Any = None,
        ids: Sequence[Any] | None = None,
        positions: dict[str, int | str] | None = None,
        dead: Sequence[Dead] = (),
    ) -> Future[Any]:
        """:meth:`learn` without the wait: its answer, or error, will be in the future returned."""
        names = None if ids is None else list(ids)
        view = self.view
        if rows is None:
            if names is None:
                raise ValueError("learn needs rows, or the ids of rows that were predicted")
            rows = self._recall(names)
        X = as_rows(rows, view.model, view.columns)
        n = len(X) if isinstance(X, list) else X.shape[0]
        if names is not None:
            names = checked_ids(names, n)
            if n > self.remembered:  # the first ones would be forgotten by the time the call is repeated
                raise RowError(f"{n:,} ids, but only {self.remembered:,} are remembered: send fewer", None, "ids")
        first = rows[0] if isinstance(rows, list) and rows else None
        columns = None
        if view.columns is None and isinstance(first, dict) and isinstance(X, np.ndarray):
            columns = [str(name) for name in first]
        call = records.Learn(X, checked_target(y, n, view.task), names, columns, positions)
        return self._writer.send(Asked(call, dead=dead, content=records.pack(call)))

    def _recall(self, ids: list[Any]) -> Any:
        """The rows of ids; rows that were learned already, and will be left out, are replaced by any other."""
        with self._waiting_lock:
            missing = [name for name in ids if name not in self._waiting and name not in self.champions.ids]
            if missing:
                raise UnknownId(missing)
            found: list[Any] = [self._waiting.get(name) for name in ids]
        some = next((row for row in found if row is not None), None)
        if some is None:
            return np.zeros((len(ids), getattr(self.view.model, "n_features_in_", 1)))
        found = [some if row is None else row for row in found]
        if isinstance(found[0], list):
            return [row[0] for row in found]
        return np.concatenate(found)

    # ---------------------------------------------------------------- champions
    def challenge(self, model: Any) -> None:
        """Add a challenger, which learns the same rows from now on and is scored beside the champion; None removes it.

        Where rows are objects with words and gaps, a model of numbers gets an encoder of its own.
        """
        task = self.champion.scores.task
        if model is not None and (task_of(model) != task or not hasattr(model, "learn")):
            raise ValueError(f"{type(model).__name__} cannot challenge a model of {task} that learns row by row")
        if model is not None and takes_dictionaries(self.view.model) and not takes_dictionaries(model):
            if getattr(model, "state_", None) is not None:
                raise ValueError(f"this {type(model).__name__} has learned rows of numbers, but rows here are objects")
            model = make_stream(Columns(), model)
        self._change(records.Challenge(b"" if model is None else model_io.to_bytes(seeded(model))))

    def promote(self) -> int:
        """Make the challenger the champion; returns the new version. :meth:`rollback` restores the previous one."""
        return self._change(records.Promote())

    def replace(self, model: Any) -> int:
        """Make another model the champion; returns the new version. :meth:`rollback` restores the previous one."""
        width, now = (getattr(one, "n_features_in_", None) for one in (model, self.view.model))
        if width is not None and now is not None and width != now:
            raise ValueError(f"this model has {width} columns, but the one that it would replace has {now}")
        self.challenge(model)
        return self.promote()

    def rollback(self, to: int | None = None) -> int:
        """Restore a former champion, as it was when it was replaced; returns the new version.

        ``to`` is its version, by default the latest one. The present champion can be restored in the same way.
        """
        known = [old["version"] for old in self.champions.retired]
        if not known:
            raise ValueError("there is no earlier version to go back to")
        wanted = known[-1] if to is None else to
        if wanted not in known:
            raise ValueError(f"there is no version {wanted!r} to go back to: choose from {', '.join(map(str, known))}")
        return self._change(records.Rollback(wanted))

    def _change(self, call: records.Call) -> Any:
        return self._writer.send(Asked(call, content=records.pack(call))).result()

    # ---------------------------------------------------------------- the disk
    def acknowledge(self) -> int:
        """Mark lost calls as seen by the operator: they no longer count as a problem. Returns how many there were."""
        return self._do(self._acknowledge)

    def flush(self) -> None:
        """Force the journal to the disk."""
        self._do(self.journal.flush)

    def snapshot(self) -> None:
        """Write a snapshot now."""
        self._do(lambda: self._snapshot(wait=True))

    def latest(self) -> View:
        """The model with everything learned so far: a new copy if that of the readers is out of date."""
        if self.readers.stale or self._writer.waiting:
            self._do(self.readers.publish)
        return self.view

    def close(self) -> None:
        """Learn what is pending, write a snapshot, and release the folder."""
        if not self._writer.close():
            return
        try:
            self.snapshots.finish(wait=True)
            if self.journal.next > self.snapshots.number:
                self._snapshot(wait=True)
        finally:
            self.journal.close()

    def __enter__(self) -> DurableLearner:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def _do(self, work: Callable[[], Any]) -> Any:
        return self._writer.send(Asked(work=work)).result()

    def _complain(self, what: str, message: str | None) -> None:
        if message is None:
            self.problems.pop(what, None)
            return
        if self.problems.get(what) != message:
            logger.error("%s: %s: %s", self.folder, what, message)
        self.problems[what] = message

    # ---------------------------------------------------------------- the writer's thread
    def _serve(self, batch: list[tuple[Asked, Future[Any]]]) -> None:
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
                self._snapshot(wait=True)
        if snapshot or (self.total and not self.view.rows):  # a prediction may follow at once
            self._publish()  # else after the answers: none of them waits for it
        for answer, (_, future) in zip(answers, group):
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _applied(self, call: Any) -> Any:
        answer = self.champions.apply(call)
        if isinstance(call, records.Learn) and call.n:
            self.rows_since_snapshot += call.n
            self.readers.example = call.X[-1:]
            with self._waiting_lock:
                for name in call.ids or ():
                    self._waiting.pop(name, None)
        self.readers.stale = True
        return answer

    def _due(self) -> float | None:
        waits = [wait for wait in (self.readers.due(), self.journal.due()) if wait is not None]
        if self.snapshots.busy:
            waits.append(0.05)
        return min(waits, default=None)

    def _look_after(self) -> None:
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
                self._snapshot(wait=False)

    def _snapshot(self, wait: bool) -> None:
        self.rows_since_snapshot = 0  # also if it fails: not again at once, the journal has everything
        self.snapshots.write(self.champions, wait)

    def _publish(self) -> None:
        try:
            self.readers.publish()
            self._complain("readers", None)
        except MemoryError:
            self._complain("readers", "there is not enough memory for a new copy of the model")

    def _acknowledge(self) -> int:
        calls = self.journal.acknowledge()
        self._lost = []
        self._complain("lost", None)
        return calls


def read_model(source: str | os.PathLike[str] | bytes) -> tuple[Any, list[str] | None]:
    """A model that can learn row by row, and the names of its columns if its file has them.

    Raises
    ------
    ModelFileError
        The file cannot be read.
    TypeError
        The model cannot learn row by row.
    """
    model, notes = model_io.read(io.BytesIO(source) if isinstance(source, bytes) else source)
    if not hasattr(model, "learn"):
        raise TypeError(f"{type(model).__name__} learns all rows at once: it cannot be updated row by row")
    names = notes.get("reader", {}).get("features") if isinstance(notes.get("reader"), dict) else None
    if names is not None and len(names) != getattr(model, "n_features_in_", None):
        names = None  # some columns (of words, for example) became several
    return model, names


def file_of(learner: DurableLearner) -> bytes:
    """The file of the champion with everything it has learned."""
    view = learner.latest()
    notes: dict[str, Any] = {"rows": view.rows}
    if view.columns is not None:
        notes["reader"] = {"features": list(view.columns)}
    return model_io.to_bytes(view.model, notes)
