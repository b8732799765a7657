"""A model that does not lose what it was told: every call is in a log before it is answered.

State on disk, in one folder::

    snapshot-NUMBER.ks     the model after the records up to NUMBER; a model file, its notes hold the rest of the state
    challenger-NUMBER.ks   the challenger at that moment, if there is one
    version-V.ks           models that were champion before
    log-NUMBER.bin         the calls since the oldest snapshot (:mod:`.log`)
    lock                   held by the process that owns the folder

The learner after a crash is the latest snapshot that can be read, plus the calls of the log behind it, in the same
calls: the arithmetic is repeated and the model equals, bit for bit, one that was never disturbed.
"""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import os
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import model_io
from .._files import sweep, write_atomic
from ..estimators._contract.base import StreamEstimator
from ..kernels import Kernel
from ..random import seed_from
from . import records
from .log import Log, LogError
from .rows import RowError, as_rows, columns_of
from .scores import Scores, task_of, weights_of

SNAPSHOT_ROWS = 50_000
SWAP_MS = 5.0  # least time between two copies for the readers
KEEP = 2  # snapshots
VERSIONS = 5  # former champions that can be called back
REMEMBER = 10_000  # rows waiting for their targets, and names of rows that have been learned
WAITING = 10_000  # calls that may wait for the writer
TOGETHER = 256  # calls that share one fsync
SHARE = 10  # copies for the readers take at most one part in so many of the writer's time
IDLE = 5.0  # seconds after which the writer's thread ends

_SNAPSHOT = re.compile(r"snapshot-(\d{16})\.ks\Z")
_OWN = re.compile(r"(?:snapshot|challenger)-(\d{16})\.ks\Z")

logger = logging.getLogger("kernelstream.live")


class StoreError(OSError):
    """The folder of a learner cannot be used."""


class Busy(RuntimeError):
    """More calls are waiting than the learner takes on; nothing of this one has been learned."""


class UnknownId(KeyError):
    """Targets for rows that are not remembered."""

    def __init__(self, ids: list[Any]):
        super().__init__(ids)
        self.ids = ids

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.ids[:5])) + (", ..." if len(self.ids) > 5 else "")
        return f"no row is remembered under the id {shown}: send the row together with its target"


@dataclass(frozen=True)
class View:
    """What readers see: a copy of the model at some moment, which nobody changes any more."""

    model: Any
    version: int
    rows: int
    columns: tuple[str, ...] | None


@dataclass
class Learned:
    """Answer to a call of ``learn``: rows learned now, rows in all, version, rows left out as learned before."""

    learned: int
    total: int
    version: int
    repeated: int = 0


@dataclass
class _Seat:
    """A model and how it does."""

    model: Any
    scores: Scores
    failures: int = 0

    def learn(self, X: Any, y: Any, also: Scores | None = None) -> None:
        """Learn rows and count the answers before; ``also`` counts them too."""
        asked = None
        if self.scores.task == "classification" and not hasattr(self.model, "loss"):
            with contextlib.suppress(Exception):  # a model without probabilities, or without a row so far
                asked = self.model.predict_proba(X)
        answer = self.model.learn(X) if self.scores.task == "novelty" else self.model.learn(X, y)
        for scores in (self.scores, also):
            if scores is not None:
                try:
                    scores.add(self.model, answer, y, asked)
                except Exception:  # the rows are learned: what cannot be counted must not look like a refusal
                    logger.exception("the answers of %s cannot be scored", type(self.model).__name__)


@dataclass
class _Call:
    """A call on its way to the writer."""

    payload: bytes
    apply: Callable[[], Any]
    rows: int = 0
    before: Callable[[], Any] | None = None  # what must be on the disk before the record is
    after: Callable[[], Any] | None = None
    future: Future = field(default_factory=Future)


class DurableLearner:
    """A streaming model with a log and snapshots: what it has acknowledged survives the process.

    Parameters
    ----------
    folder : path
        Made if it is not there. One process owns it at a time.
    model : estimator, optional
        What to start with when the folder is empty, fitted or not; it is copied. Later the folder's own state counts.
    flush : "each", "request" or float, default="each"
        When the log is forced to the disk: before every answer (calls that come at the same time share one fsync);
        when :meth:`flush` is called; or at least every so many milliseconds. It is handed to the operating system
        before every answer in any case: a killed process loses nothing, a power cut at most what was not yet forced.
    snapshot_rows : int, default=50,000
        Rows from one snapshot to the next: no more than about these are replayed after a crash.
    columns : sequence of str, optional
        Names of the columns, for rows that come as dictionaries, where the model does not know them itself.
    swap_ms : float, default=5
        Readers use a copy of the model that is renewed at most this often: predictions never wait for learning, and
        are behind it by this much and the time of one call.
    remember : int, default=10,000
        How many predicted rows wait for their targets (:meth:`predict` with ``ids``), and how many names of learned
        rows are kept so that a repeated call does not learn twice.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from kernelstream import FeatureRegressor
    >>> from kernelstream.live import DurableLearner
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
        folder: str | os.PathLike,
        model: Any = None,
        *,
        flush: str | float = "each",
        snapshot_rows: int = SNAPSHOT_ROWS,
        columns: Sequence[str] | None = None,
        swap_ms: float = SWAP_MS,
        remember: int = REMEMBER,
    ):
        if isinstance(snapshot_rows, bool) or not isinstance(snapshot_rows, (int, np.integer)) or snapshot_rows < 1:
            raise ValueError(f"snapshot_rows must be an integer >= 1, got {snapshot_rows!r}")
        self.folder = Path(folder)
        self.log = Log(folder, flush)
        self.snapshot_rows, self.swap, self.remembered = int(snapshot_rows), swap_ms / 1000, int(remember)
        self.problems: dict[str, str] = {}
        self._condition = threading.Condition()
        self._queue: deque[_Call] = deque()
        self._thread: threading.Thread | None = None
        self._saver: threading.Thread | None = None
        self._closed = False
        self._waiting: OrderedDict[Any, Any] = OrderedDict()  # rows by id, until their targets come
        self._waiting_lock = threading.Lock()
        self._ids: OrderedDict[Any, None] = OrderedDict()  # of rows that have been learned
        self._voids: list[int] = []
        self.version, self.total = 1, 0
        self.columns: list[str] | None = None
        self.positions: dict[str, int | str] = {}  # how far the sources have been read
        self._moved = False  # since the latest snapshot
        self.challenger: _Seat | None = None
        self.against: Scores | None = None  # of the champion, since the challenger is there
        self.retired: list[dict[str, int]] = []
        self._since_snapshot = 0
        self._example: Any = None  # a row that was learned
        self._pace: deque[tuple[float, int]] = deque(maxlen=1000)  # when how many rows had been learned
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = _own(self.folder)
        try:
            self._recover(model, columns)
        except BaseException:
            self._lock.close()
            raise
        self._publish()

    # ---------------------------------------------------------------- for everybody
    @property
    def view(self) -> View:
        """The model as readers see it."""
        return self._view

    @property
    def model(self) -> Any:
        """The readers' copy of the model: do not change it."""
        return self._view.model

    def predict(self, rows: Any, ids: Sequence[Any] | None = None) -> np.ndarray:
        """Predictions by the readers' copy; with ``ids``, the rows wait for :meth:`learn` with the same ids."""
        view = self._view
        X = as_rows(rows, view.model, view.columns)
        answer = view.model.predict(X)
        if ids is not None:
            self.remember(ids, X)
        return answer

    def remember(self, ids: Sequence[Any], rows: Any) -> None:
        """Keep rows until their targets come; the oldest go when there are too many. They are kept in memory only."""
        ids = _checked_ids(ids, len(rows) if isinstance(rows, list) else rows.shape[0])
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
    ) -> Learned:
        """Learn rows; they are in the log when this returns.

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

        Raises
        ------
        RowError or ValueError
            Something is wrong with the rows; the model is as it was.
        LogError
            The disk cannot take them (it is full, say); the model is as it was.
        UnknownId, Busy
        """
        return self.learn_soon(rows, y, ids, positions).result()

    def learn_soon(
        self,
        rows: Any = None,
        y: Any = None,
        ids: Sequence[Any] | None = None,
        positions: dict[str, int | str] | None = None,
    ) -> Future:
        """:meth:`learn` without the wait: its answer, or error, will be in the future returned."""
        names = None if ids is None else list(ids)
        view = self._view
        if rows is None:
            if names is None:
                raise ValueError("learn needs rows, or ids of rows that were predicted")
            rows = self._recall(names)
        X = as_rows(rows, view.model, view.columns)
        n = len(X) if isinstance(X, list) else X.shape[0]
        if names is not None:
            names = _checked_ids(names, n)
        y = self._target(y, n)
        first = rows[0] if isinstance(rows, list) and rows else None
        columns = None
        if view.columns is None and isinstance(first, dict) and isinstance(X, np.ndarray):
            columns = [str(name) for name in first]
        more = {"columns": columns, "positions": positions}
        return self._send(_Call(records.pack_learn(X, y, names, more), lambda: self._learn(X, y, names, more), rows=n))

    def flush(self) -> None:
        """Force the log to the disk."""
        self._send(_Call(b"", self.log.flush)).result()

    def latest(self) -> View:
        """The model with all that has been learned so far: a copy is made, where the readers' one is behind."""
        if self._stale:
            self._send(_Call(b"", self._publish)).result()
        return self._view

    def snapshot(self) -> None:
        """Write a snapshot now."""
        self._send(_Call(b"", lambda: self._snapshot(wait=True))).result()

    def challenge(self, model: Any) -> None:
        """A challenger: it learns the same rows from now on, and is scored beside the champion. None ends it."""
        task = self.champion.scores.task
        if model is not None and (task_of(model) != task or not hasattr(model, "learn")):
            raise ValueError(f"{type(model).__name__} cannot challenge a model of {task} that learns row by row")
        content = b"" if model is None else model_io.to_bytes(_seeded(model))
        call = _Call(records.pack(records.CHALLENGER, {}, (content,)), lambda: self._challenge(content))
        call.after = lambda: self._snapshot(wait=True)
        self._send(call).result()

    def promote(self) -> int:
        """The challenger becomes the champion; returns the new version. The champion so far can be called back."""
        call = _Call(records.pack(records.PROMOTE, {}), self._promote, before=self._before_promote)
        call.after = lambda: self._snapshot(wait=True)
        return self._send(call).result()

    def rollback(self, to: int | None = None) -> int:
        """A former champion, as it was when it was replaced, becomes the champion again; returns the new version.

        ``to`` is its version, by default the latest one. The champion so far can be called back in turn.
        """
        known = [old["version"] for old in self.retired]
        if not known:
            raise ValueError("there is no former version to go back to")
        wanted = known[-1] if to is None else to
        if wanted not in known:
            raise ValueError(f"there is no version {wanted!r} to go back to: choose from {', '.join(map(str, known))}")
        call = _Call(
            records.pack(records.ROLLBACK, {"to": wanted}),
            lambda: self._rollback(wanted),
            before=lambda: self._before_rollback(wanted),
        )
        call.after = lambda: self._snapshot(wait=True)
        return self._send(call).result()

    def health(self) -> dict[str, Any]:
        """Whether all is well: {"status": "ok" or "degraded", "problems": {...}, "waiting": calls}."""
        problems = dict(self.problems)
        return {"status": "degraded" if problems else "ok", "problems": problems, "waiting": len(self._queue)}

    def rows_per_second(self, seconds: float = 5.0) -> float:
        """Rows learned a second, lately."""
        now, total = time.monotonic(), self.total
        then = next(((at, rows) for at, rows in list(self._pace) if at >= now - seconds), None)
        return 0.0 if then is None or now - then[0] < 0.05 else (total - then[1]) / (now - then[0])

    def describe(self) -> dict[str, Any]:
        """What the learner is and how it does, as numbers, strings, lists and dicts."""
        view, champion = self._view, self.champion
        inner = getattr(view.model, "model_", view.model)  # behind an encoder of columns
        kinds = getattr(getattr(view.model, "columns_", None), "kinds_", None)
        columns = kinds if view.columns is None else view.columns
        about: dict[str, Any] = {
            "class": type(inner).__name__,
            "task": champion.scores.task,
            "rows": self.total,
            "rows_per_second": self.rows_per_second(),
            "version": self.version,
            "versions": list(self.retired),
            "columns": None if columns is None else list(columns),
            "kinds": kinds,
            "width": getattr(inner, "n_features_in_", None),
            "classes": _plain(getattr(inner, "classes_", None)),
            "members": _members(inner),
            "relevance": _plain(getattr(inner, "relevance_", None)),
            "drift": champion.scores.marks,
            "scores": champion.scores.summary(),
            "challenger": None,
            "health": self.health(),
        }
        rival, against = self.challenger, self.against
        if rival is not None and against is not None:
            about["challenger"] = {
                "class": type(rival.model).__name__,
                "scores": rival.scores.summary(),
                "champion": against.summary(),
                "failures": rival.failures,
            }
        return about

    def close(self) -> None:
        """Learn what is waiting, write a snapshot, and let go of the folder."""
        with self._condition:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
            self._condition.notify_all()
        if thread is not None:
            thread.join()
        try:
            if self._since_snapshot or self._moved:
                self._snapshot(wait=True)
            self._wait_for_saver()
            self.log.close()
        finally:
            self._lock.close()

    def __enter__(self) -> DurableLearner:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    # ---------------------------------------------------------------- calls
    def _recall(self, ids: list[Any]) -> Any:
        with self._waiting_lock:
            missing = [name for name in ids if name not in self._waiting and name not in self._ids]
            if missing:
                raise UnknownId(missing)
            found: list[Any] = [self._waiting.get(name) for name in ids]
        if any(row is None for row in found):  # learned already: the names will be left out, the rows do not matter
            known = next((row for row in found if row is not None), None)
            if known is None:
                return self._some_row(len(ids))
            found = [known if row is None else row for row in found]
        if isinstance(found[0], list):
            return [row[0] for row in found]
        return np.concatenate(found)

    def _some_row(self, n: int) -> Any:
        """Rows of the right shape for names that have all been learned already."""
        width = getattr(self._view.model, "n_features_in_", 1)
        return np.zeros((n, width))

    def _target(self, y: Any, n: int) -> np.ndarray | None:
        if task_of(self._view.model) == "novelty":
            return None
        if y is None:
            raise RowError("learn needs y, one target for each row")
        if not isinstance(y, np.ndarray):
            y = list(y)
            wrong = next((i for i, value in enumerate(y) if not isinstance(value, (str, int, float, np.generic))), None)
            if wrong is not None:
                raise RowError(f"target {wrong} is {y[wrong]!r}, which is neither a number nor a word", wrong, "y")
            if len({isinstance(value, str) for value in y}) > 1:
                raise RowError("y mixes words and numbers", None, "y")
            y = np.array(y)
        if len(y) != n:
            raise RowError(f"{n} rows, but {len(y)} targets", None, "y")
        if y.dtype.kind not in "biufUS":
            raise RowError("y must hold numbers of at most 64 bits, or words", None, "y")
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            at = int(np.argmin(np.isfinite(y).reshape(n, -1).all(axis=1)))
            raise RowError(f"target {at} is {y[at]}, which is no finite number", at, "y")
        return y

    def _send(self, call: _Call) -> Future:
        call.future.set_running_or_notify_cancel()  # who waits for it may go away: it is learned all the same
        with self._condition:
            if self._closed:
                raise StoreError("the learner has been closed")
            if len(self._queue) >= WAITING:
                raise Busy(f"{len(self._queue):,} calls are waiting")
            self._queue.append(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=f"learner {self.folder.name}", daemon=True)
                self._thread.start()
            else:
                self._condition.notify()
        return call.future

    # ---------------------------------------------------------------- the writer's thread
    def _work(self) -> None:
        idle_since = time.monotonic()
        while True:
            with self._condition:
                while not self._queue and not self._closed:
                    now = time.monotonic()
                    waits = [idle_since + IDLE - now]
                    if self._stale:
                        waits.append(self._swapped + self._pause - now)
                    if (due := self.log.due()) is not None:
                        waits.append(due)
                    if min(waits) <= 0:
                        break
                    self._condition.wait(min(waits))
                batch = [self._queue.popleft() for _ in range(min(len(self._queue), TOGETHER))]
                if not batch and (self._closed or time.monotonic() >= idle_since + IDLE):
                    if self._stale:
                        self._publish()
                    if self.log.due() is None or self._closed:
                        self._thread = None
                        return
            try:
                if batch:
                    self._serve(batch)
                    idle_since = time.monotonic()
                self._look_after()
            except Exception as error:  # a lack of memory, say: the next calls may fare better
                self._complain("writer", f"{type(error).__name__}: {error}")
                for call in batch:
                    if not call.future.done():
                        call.future.set_exception(error)

    def _serve(self, batch: list[_Call]) -> None:
        """Calls in their order; neighbours that need nothing else share a write to the log."""
        group: list[_Call] = []
        for call in batch:
            if call.payload and call.before is None:
                group.append(call)
                continue
            self._commit(group)
            group = []
            self._commit([call])
        self._commit(group)

    def _commit(self, group: list[_Call]) -> None:
        """Log, learn, answer."""
        if not group:
            return
        try:
            for call in group:
                if call.before is not None:
                    call.before()
            payloads = [call.payload for call in group if call.payload]
            first = self.log.next
            if payloads or self._voids:
                voids = [records.pack(records.VOID, {"numbers": self._voids})] if self._voids else []
                first = self.log.append([*voids, *payloads]) + len(voids)
                self._voids = []
                self.problems.pop("log", None)
        except Exception as error:
            if isinstance(error, OSError):
                self._complain("log", f"{error.strerror or error}; nothing is learned until it can be written again")
            for call in group:
                call.future.set_exception(error)
            return
        answers: list[tuple[_Call, Any, BaseException | None]] = []
        for i, call in enumerate(group):
            try:
                answers.append((call, call.apply(), None))
            except Exception as error:
                if call.payload:
                    self._voids.append(first + i)
                answers.append((call, None, error))
            self._since_snapshot += call.rows
        if self._voids:
            with contextlib.suppress(OSError):  # else they go with the next record
                self.log.append([records.pack(records.VOID, {"numbers": self._voids})])
                self._voids = []
        for call in group:
            if call.after is not None:
                with contextlib.suppress(Exception):  # a snapshot that fails is said in `problems`
                    call.after()
        due = time.monotonic() - self._swapped >= self._pause or any(call.after is not None for call in group)
        if due or (self.total and not self._view.rows):  # whoever taught the first rows may ask at once
            self._publish()
        for call, answer, failure in answers:
            if failure is None:
                call.future.set_result(answer)
            else:
                call.future.set_exception(failure)

    def _look_after(self) -> None:
        """What is due besides calls: a copy for the readers, an fsync, a snapshot."""
        if self._stale and time.monotonic() - self._swapped >= self._pause:
            self._publish()
        try:
            self.log.flush_if_due()
        except OSError as error:
            self._complain("log", f"{error.strerror or error}; a snapshot is tried instead")
            with contextlib.suppress(Exception):
                self._snapshot(wait=True)
        if self._since_snapshot >= self.snapshot_rows and (self._saver is None or not self._saver.is_alive()):
            with contextlib.suppress(Exception):
                self._snapshot(wait=False)

    def _publish(self) -> None:
        """A new copy for the readers; where there is no memory for it, they keep the one they have."""
        started = time.monotonic()
        try:
            model = _copied(self.champion.model, self._example)
        except MemoryError:
            if not hasattr(self, "_view"):
                raise
            self._complain("readers", "there is not enough memory for a new copy of the model")
            self._swapped = time.monotonic()
            return
        self.problems.pop("readers", None)
        columns = columns_of(model) or self.columns
        self._view = View(model, self.version, self.total, None if columns is None else tuple(columns))
        self._swapped, self._stale = time.monotonic(), False
        if not self._pace or started - self._pace[-1][0] > 0.1:
            self._pace.append((started, self.total))
        self._pause = max(self.swap, SHARE * (self._swapped - started))

    def _complain(self, what: str, message: str) -> None:
        if self.problems.get(what) != message:
            logger.error("%s: %s: %s", self.folder, what, message)
        self.problems[what] = message

    # ---------------------------------------------------------------- what calls do, now and in a replay
    def _learn(self, X: Any, y: Any, ids: list[Any] | None, more: dict[str, Any]) -> Learned:
        repeated = 0
        if ids is not None:
            fresh = list({name: i for i, name in reversed(list(enumerate(ids))) if name not in self._ids}.values())[
                ::-1
            ]
            repeated = len(ids) - len(fresh)
            if repeated:
                X = [X[i] for i in fresh] if isinstance(X, list) else X[fresh]
                y = None if y is None else y[fresh]
        n = len(X) if isinstance(X, list) else X.shape[0]
        if n:
            self.champion.learn(X, y, self.against)
            if more.get("columns") is not None and self.columns is None:
                self.columns = more["columns"]
            if self.challenger is not None:
                self._teach_challenger(X, y)
            self.total += n
            self._stale, self._example = True, X[-1:]
        if ids is not None:
            self._learned(ids)
        if more.get("positions"):
            self.positions = self.positions | more["positions"]
            self._moved = True
        return Learned(n, self.total, self.version, repeated)

    def _teach_challenger(self, X: Any, y: Any) -> None:
        assert self.challenger is not None
        try:
            self.challenger.learn(X, y)
        except Exception as error:
            self.challenger.failures += 1
            logger.warning("%s: the challenger could not learn: %s", self.folder, error)

    def _learned(self, ids: list[Any]) -> None:
        for name in ids:
            self._ids[name] = None
            self._ids.move_to_end(name)
        while len(self._ids) > self.remembered:
            self._ids.popitem(last=False)
        with self._waiting_lock:
            for name in ids:
                self._waiting.pop(name, None)

    def _challenge(self, content: bytes) -> None:
        self.challenger = self.against = None
        if content:
            model = model_io.load(io.BytesIO(content))
            self.challenger = _Seat(model, Scores(task_of(model)))
            self.against = Scores(self.champion.scores.task)

    def _version_file(self, version: int) -> Path:
        return self.folder / f"version-{version:06d}.ks"

    def _retire(self) -> None:
        """The champion as it is goes to a file of its own, before the record that replaces it is written."""
        notes = {"live": {"scores": self.champion.scores.to_notes()}}
        model_io.save(self.champion.model, self._version_file(self.version), notes)

    def _before_promote(self) -> None:
        if self.challenger is None:
            raise ValueError("there is no challenger to promote")
        self._retire()

    def _before_rollback(self, to: int) -> None:
        model_io.read(self._version_file(to))  # an error now, rather than behind the record
        self._retire()

    def _succeed(self, seat: _Seat) -> int:
        if not self._version_file(self.version).exists():  # in a replay, after somebody removed it
            self._retire()
        self.retired = [*self.retired, {"version": self.version, "rows": self.total}][-VERSIONS:]
        self.champion, self.challenger, self.against = seat, None, None
        self.version += 1
        self._stale = True
        return self.version

    def _promote(self) -> int:
        assert self.challenger is not None
        return self._succeed(self.challenger)

    def _rollback(self, to: int) -> int:
        model, notes = model_io.read(self._version_file(to))
        return self._succeed(_Seat(model, Scores.from_notes(notes["live"]["scores"])))

    # ---------------------------------------------------------------- snapshots
    def _notes(self) -> dict[str, Any]:
        notes: dict[str, Any] = {
            "next": self.log.next, "version": self.version, "total": self.total, "columns": self.columns,
            "positions": self.positions, "retired": self.retired, "ids": list(self._ids),
            "scores": self.champion.scores.to_notes(),
        }  # fmt: skip
        if self.challenger is not None and self.against is not None:
            notes["challenger"] = {
                "scores": self.challenger.scores.to_notes(), "failures": self.challenger.failures,
                "against": self.against.to_notes(),
            }  # fmt: skip
        return notes

    def _snapshot(self, wait: bool) -> None:
        """The state as it is now, to the disk; in another thread unless ``wait``."""
        self._wait_for_saver()
        try:
            number = self.log.next
            content = model_io.to_bytes(self.champion.model, {"live": self._notes()})
            rival = None if self.challenger is None else model_io.to_bytes(self.challenger.model)
            self.log.roll()
        except (OSError, ValueError) as error:
            self._since_snapshot = 0  # not again at once: the log has everything
            self._complain("snapshot", str(error))
            raise
        self._since_snapshot, self._moved = 0, False
        if wait:
            self._write_snapshot(number, content, rival)
            return
        arguments = (number, content, rival)
        self._saver = threading.Thread(target=self._save_aside, args=arguments, name="snapshot", daemon=True)
        self._saver.start()

    def _save_aside(self, number: int, content: bytes, rival: bytes | None) -> None:
        with contextlib.suppress(Exception):  # said in `problems`
            self._write_snapshot(number, content, rival)

    def _write_snapshot(self, number: int, content: bytes, rival: bytes | None) -> None:
        try:
            if rival is not None:
                write_atomic(self.folder / f"challenger-{number:016d}.ks", rival)
            write_atomic(self.folder / f"snapshot-{number:016d}.ks", content)
        except OSError as error:
            self._complain("snapshot", str(error))
            raise
        self.problems.pop("snapshot", None)
        kept = [found for found, path in self._snapshots() if path not in self._unreadable][-KEEP:]
        for path in list(self.folder.iterdir()):
            match = _OWN.match(path.name)
            if match and int(match[1]) < kept[0]:
                with contextlib.suppress(OSError):
                    path.unlink()
        self.log.drop(kept[0])
        oldest = self.retired[0]["version"] if self.retired else 0
        for path in self.folder.glob("version-*.ks"):
            if int(path.stem.removeprefix("version-")) < oldest:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _wait_for_saver(self) -> None:
        if self._saver is not None:
            self._saver.join()
            self._saver = None

    def _snapshots(self) -> list[tuple[int, Path]]:
        return sorted((int(match[1]), path) for path in self.folder.iterdir() if (match := _SNAPSHOT.match(path.name)))

    # ---------------------------------------------------------------- recovery
    def _recover(self, model: Any, columns: Sequence[str] | None) -> None:
        sweep(self.folder)
        self._unreadable: set[Path] = set()
        found = self._snapshots()
        for number, path in reversed(found):
            try:
                self._take(path, number)
            except (ValueError, OSError, KeyError, TypeError) as error:
                self._unreadable.add(path)
                self._complain("recovery", f"{path.name} cannot be read ({error}): an older snapshot is used")
                continue
            self._replay(number)
            return
        if found:
            raise StoreError(f"{self.folder}: none of its {len(found)} snapshots can be read; nothing has been changed")
        if self.log.files():
            raise StoreError(f"{self.folder} holds a log without a snapshot: it is no folder of a learner, or damaged")
        if model is None:
            raise StoreError(f"{self.folder} holds no learner yet: say which model to start with")
        if not hasattr(model, "learn"):
            raise ValueError(f"{type(model).__name__} has no learn: it cannot go on learning")
        seat = model_io.load(io.BytesIO(model_io.to_bytes(_seeded(model))))
        self.champion = _Seat(seat, Scores(task_of(seat)))
        self.columns = None if columns is None else [str(name) for name in columns]
        self.log.open()
        self._snapshot(wait=True)

    def _take(self, path: Path, number: int) -> None:
        """The state of a snapshot."""
        model, notes = model_io.read(path)
        notes = notes["live"]
        rival = None
        if "challenger" in notes:
            rival = model_io.load(path.with_name(f"challenger-{number:016d}.ks"))
        self.champion = _Seat(model, Scores.from_notes(notes["scores"]))
        if rival is not None:
            about = notes["challenger"]
            self.challenger = _Seat(rival, Scores.from_notes(about["scores"]), about["failures"])
            self.against = Scores.from_notes(about["against"])
        self.version, self.total, self.columns = notes["version"], notes["total"], notes["columns"]
        self.positions = notes["positions"]
        self.retired, self._ids = notes["retired"], OrderedDict.fromkeys(notes["ids"])

    def _replay(self, start: int) -> None:
        void: set[int] = set()
        for _, payload in self.log.read(start):
            if payload[:1] == records.VOID:
                void.update(records.unpack(payload)[1]["numbers"])
        for number, payload in self.log.read(start):
            if number not in void:
                self._again(number, payload)
        if self.log.lost:
            gaps = ", ".join(f"{a} to {b}" for a, b in self.log.lost)
            self._complain("recovery", f"the log is damaged: its records {gaps} cannot be read; all others were used")
        elif self.log.torn:
            logger.warning("%s: %d bytes that were never acknowledged ended the log", self.folder, self.log.torn)
        self.log.open()

    def _again(self, number: int, payload: bytes) -> None:
        kind, header, content = records.unpack(payload)
        try:
            if kind == records.LEARN:
                X, y, ids = records.unpack_learn(header, content)
                self._learn(X, y, ids, header)
                self._since_snapshot += len(X) if isinstance(X, list) else X.shape[0]
            elif kind == records.CHALLENGER:
                self._challenge(bytes(content))
            elif kind == records.PROMOTE:
                self._promote()
            elif kind == records.ROLLBACK:
                self._rollback(header["to"])
        except (ValueError, OSError, ArithmeticError, TypeError) as error:  # it was refused then, too
            logger.warning("%s: record %d of the log is passed over: %s", self.folder, number, error)


def _plain(value: Any) -> Any:
    """An attribute of a model as JSON knows it; None where it has none."""
    try:
        return None if value is None else np.asarray(value).tolist()
    except Exception:
        return None


def _members(model: Any) -> dict[str, Any] | None:
    """Names and weights of the members of an ensemble."""
    weights = weights_of(model)
    if weights is None:
        return None
    told = getattr(model, "members_", None)
    names = [one["name"] for one in told] if isinstance(told, list) and told and isinstance(told[0], dict) else []
    names = names or [_member_name(member) for member in getattr(model, "learners_", [])][: len(weights)]
    if len(set(names)) < len(weights):
        names = [f"{i + 1}: {name}" for i, name in enumerate(names or ["member"] * len(weights))]
    return {"names": names, "weights": weights}


def _member_name(member: Any) -> str:
    """A member in a few words: its kernel if it has one."""
    params = member.get_params() if hasattr(member, "get_params") else {}
    kernel = next((value for value in params.values() if isinstance(value, Kernel)), None)
    return " ".join(str(kernel or member).split())[:60]


def _copied(model: Any, example: Any) -> Any:
    """A copy of a model for readers, ready to answer at once.

    What a model derives from its state is made again, by a first prediction; the feature map, which nobody changes, is
    shared.
    """
    made = copy.deepcopy(model)
    if isinstance(model, StreamEstimator) and model.__dict__.get("_state") is not None:
        with model._turns:
            cache = model.__dict__.get("_cache") or {}
            made._cache |= {name: cache[name] for name in ("map", "mapping") if name in cache}
        made._warm_caches()
    if example is not None:
        with contextlib.suppress(ValueError, ArithmeticError):  # it will be said to whoever asks
            made.predict(example)
    return made


def _seeded(model: Any) -> Any:
    """The model, with numbers for seeds that are left to chance: a replay must draw the same."""
    if getattr(model, "state_", None) is not None or not hasattr(model, "get_params"):
        return model
    deep = not isinstance(model, StreamEstimator)  # the parts of an estimator draw from its own seed
    params = model.get_params(deep=deep)
    free = [name for name, value in params.items() if name.split("__")[-1] == "random_state" and value is None]
    if not free:
        return model
    model = copy.deepcopy(model)
    return model.set_params(**{name: seed_from(None) % 2**31 for name in free})


def _checked_ids(ids: Sequence[Any], n: int) -> list[Any]:
    ids = list(ids)
    if len(ids) != n:
        raise RowError(f"{n} rows, but {len(ids)} ids", None, "ids")
    for i, name in enumerate(ids):
        if isinstance(name, bool) or not isinstance(name, (str, int)) or len(str(name)) > 200:
            raise RowError(f"id {i} is {name!r:.60}: ids are integers or words of at most 200 characters", i, "ids")
    return ids


def _own(folder: Path) -> Any:
    """The open file whose lock says that this process owns the folder."""
    file = open(folder / "lock", "a+")  # noqa: SIM115  (it stays open as long as the learner)
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # no such locks here
        pass
    except OSError:
        file.close()
        raise StoreError(f"{folder} is in use by another process (or another learner of this one)") from None
    return file


__all__ = ["Busy", "DurableLearner", "Learned", "LogError", "StoreError", "UnknownId", "View"]
