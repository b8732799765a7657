"""A model that loses no acknowledged row: every call is logged before it is answered.

State on disk, in one folder::

    snapshot-NUMBER.ks     the model after the records up to NUMBER; a model file, its notes hold the rest of the state
    challenger-NUMBER.ks   the challenger at that moment, if there is one
    version-V.ks           models that were champion before
    log-NUMBER.bin         the calls since the oldest snapshot (:mod:`.log`)
    mark                   the number of the call to come, from which a log that was cut is known
    lost.json              calls that can no longer be read (:mod:`.losses`)
    lock                   held by the process that owns the folder

After a crash the learner is the latest readable snapshot plus the calls logged after it, repeated call by call: the
arithmetic is the same, and the model equals, bit for bit, one that was never interrupted.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

from kernelstream import model_io
from kernelstream.checks import fraction, whole
from kernelstream.columns import Columns, make_stream
from kernelstream.copies import seeded
from kernelstream.evaluate.runners import task_of

from . import describe, records
from .answers import InUse, Learned, UnknownId, View
from .log import Log
from .rows import RowError, as_rows, takes_dictionaries
from .writer import Call, Writer

SNAPSHOT_ROWS = 50_000
SWAP_MS = 5.0  # least time between two copies for the readers
REMEMBER = 10_000  # rows waiting for their targets, and names of rows that have been learned


class DurableLearner(Writer):
    """A streaming model with a log and snapshots: what it has acknowledged survives the process.

    Parameters
    ----------
    folder : path
        Created if it does not exist. One process owns it at a time.
    model : estimator, optional
        What to start with when the folder is empty, fitted or not; it is copied. Otherwise the folder's state is used.
    flush : "each", "request" or float, default="each"
        When the log is forced to the disk: before every answer (calls that come at the same time share one fsync);
        when :meth:`flush` is called; or at least once in that many milliseconds. The operating system always gets it
        before the answer: a killed process loses nothing, a power cut at most what had not been forced yet.
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
        snapshot_rows = whole("snapshot_rows", snapshot_rows)
        path, self._turn, self._relevance = Path(folder), 0.0, describe.Relevance()
        super().__init__(path, Log(folder, flush), int(remember), snapshot_rows, swap_ms / 1000)
        path.mkdir(parents=True, exist_ok=True)
        self._lock = _own(self.folder)
        try:
            self._recover(model, columns)
        except BaseException:
            with contextlib.suppress(OSError):
                self.log.close()
            self._lock.close()
            raise
        self._publish()

    def next_view(self) -> View:
        """The model for the next request: the challenger, if the policy gives it a share and it is its turn."""
        rival = self._rival_view
        if rival is None:
            return self.view
        self._turn += self.policy["share"] or 0.0
        if self._turn < 1.0:
            return self.view
        self._turn -= 1.0
        return rival

    @property
    def model(self) -> Any:
        """The readers' copy of the model: do not change it."""
        return self.view.model

    def describe(self) -> dict[str, Any]:
        """What the learner is and how well it performs, as numbers, strings, lists and dicts."""
        return describe.describe(self, self.view, self._relevance)

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
            The disk cannot take them (it may be full); the model is as it was.
        UnknownId, Busy
        """
        return self.learn_soon(rows, y, ids, positions).result()

    def learn_soon(
        self,
        rows: Any = None,
        y: Any = None,
        ids: Sequence[Any] | None = None,
        positions: dict[str, int | str] | None = None,
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
        y = self._target(y, n)
        first = rows[0] if isinstance(rows, list) and rows else None
        columns = None
        if view.columns is None and isinstance(first, dict) and isinstance(X, np.ndarray):
            columns = [str(name) for name in first]
        more = {"columns": columns, "positions": positions}
        return self._send(Call(records.pack_learn(X, y, names, more), lambda: self._learn(X, y, names, more), rows=n))

    def acknowledge(self) -> int:
        """Mark lost calls as seen by the operator: they no longer count as a problem. Returns how many there were."""
        return self._send(Call(b"", self._acknowledge)).result()

    def flush(self) -> None:
        """Force the log to the disk."""
        self._send(Call(b"", self.log.flush)).result()

    def latest(self) -> View:
        """The model with everything learned so far: a new copy if that of the readers is out of date."""
        if self._stale:
            self._send(Call(b"", self._publish)).result()
        return self.view

    def snapshot(self) -> None:
        """Write a snapshot now."""
        self._send(Call(b"", lambda: self._snapshot(wait=True))).result()

    def challenge(self, model: Any) -> None:
        """Add a challenger, which learns the same rows from now on and is scored beside the champion; None removes it.

        Where rows are objects with words and gaps, a model of numbers gets an encoder of its own.
        """
        task = self.champion.scores.task
        if model is not None and (task_of(model) != task or not hasattr(model, "learn")):
            raise ValueError(f"{type(model).__name__} cannot challenge a model of {task} that learns row by row")
        if model is not None and takes_dictionaries(self.champion.model) and not takes_dictionaries(model):
            if getattr(model, "state_", None) is not None:
                raise ValueError(f"this {type(model).__name__} has learned rows of numbers, but rows here are objects")
            model = make_stream(Columns(), model)
        content = b"" if model is None else model_io.to_bytes(seeded(model))
        payload = records.pack(records.CHALLENGER, {}, (content,))
        self._send(Call(payload, lambda: self._challenge(content), snapshot=True)).result()

    def promote(self) -> int:
        """Make the challenger the champion; returns the new version. :meth:`rollback` restores the previous one."""
        return self._send(self._promotion()).result()

    def replace(self, model: Any) -> int:
        """Make another model the champion; returns the new version. :meth:`rollback` restores the previous one."""
        width, now = (getattr(one, "n_features_in_", None) for one in (model, self.view.model))
        if width is not None and now is not None and width != now:
            raise ValueError(f"this model has {width} columns, but the one that it would replace has {now}")
        self.challenge(model)
        return self.promote()

    def set_policy(self, share: float = 0.0, guard: float | None = None) -> None:
        """Set how challengers and new champions are treated, from now on and after a restart.

        Parameters
        ----------
        share : float, default=0
            Part of the requests for predictions that the challenger answers, 0 to 1.
        guard : float, optional
            When a challenger is promoted, the previous champion keeps learning as its challenger. If after at least 500
            rows the log-loss (of a regression, the squared error) of the new champion on the last 1,000 rows is more
            than ``guard`` times that of the previous one, the previous one becomes the champion again automatically.
        """
        fraction("share", share, zero=True, one=True)
        if guard is not None and not 1.0 <= guard < float("inf"):
            raise ValueError(f"guard must be a number >= 1 or None, got {guard!r}")
        policy = {"share": share, "guard": guard}
        self._send(Call(records.pack(records.POLICY, policy), lambda: self._set_policy(policy))).result()
        self.latest()

    def rollback(self, to: int | None = None) -> int:
        """Restore a former champion, as it was when it was replaced; returns the new version.

        ``to`` is its version, by default the latest one. The present champion can be restored in the same way.
        """
        known = [old["version"] for old in self.retired]
        if not known:
            raise ValueError("there is no earlier version to go back to")
        wanted = known[-1] if to is None else to
        if wanted not in known:
            raise ValueError(f"there is no version {wanted!r} to go back to: choose from {', '.join(map(str, known))}")
        call = Call(
            records.pack(records.ROLLBACK, {"to": wanted}),
            lambda: self._rollback(wanted),
            before=lambda: self._before_rollback(wanted),
            snapshot=True,
        )
        return self._send(call).result()

    def close(self) -> None:
        """Learn what is pending, write a snapshot, and release the folder."""
        with self._condition:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
            self._condition.notify_all()
        if thread is not None:
            thread.join()
        try:
            if self.rows_since_snapshot or self._moved:
                self._snapshot(wait=True)
            self._wait_for_saver()
            self.log.close()
        finally:
            self._lock.close()

    def __enter__(self) -> DurableLearner:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def _recall(self, ids: list[Any]) -> Any:
        """The rows of ids; rows that were learned already, and will be left out, are replaced by any other."""
        with self._waiting_lock:
            missing = [name for name in ids if name not in self._waiting and name not in self._ids]
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

    def _target(self, y: Any, n: int) -> np.ndarray | None:
        if self.view.task == "novelty":
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
            truth = next((i for i, value in enumerate(y) if isinstance(value, bool)), None)
            if truth is not None and self.view.task == "regression":
                raise RowError(f"target {truth} is {y[truth]!r}, but this model learns numbers", truth, "y")
            y = np.array(y)
        if len(y) != n:
            raise RowError(f"{n} rows, but {len(y)} targets", None, "y")
        if y.dtype.kind not in "biufUS":
            raise RowError("y must hold numbers of at most 64 bits, or words", None, "y")
        if self.view.task == "regression" and y.dtype.kind not in "iuf":
            raise RowError(f"target 0 is {y.tolist()[0]!r:.60}, but this model learns numbers", 0, "y")
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            at = int(np.argmin(np.isfinite(y).reshape(n, -1).all(axis=1)))
            raise RowError(f"target {at} is {y[at]}, which is not a finite number", at, "y")
        return y


def checked_ids(ids: Sequence[Any], n: int) -> list[Any]:
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
    except ImportError:  # this system has no such locks
        pass
    except OSError:
        file.close()
        raise InUse(f"{folder} is in use by another process (or another learner of this one)") from None
    return file


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
