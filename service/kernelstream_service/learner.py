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

import io
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

from kernelstream import model_io
from kernelstream.checks import whole
from kernelstream.columns import Columns, make_stream
from kernelstream.copies import seeded
from kernelstream.evaluate.runners import task_of

from . import journal, records
from .answers import Dead, Learned, View
from .champions import ScoredModel
from .describe import Relevance, describe
from .keeper import Asked, Keeper
from .rows import RowError, as_rows, checked_ids, checked_target, takes_dictionaries
from .writer import Writer

SNAPSHOT_ROWS = 50_000
SWAP_MS = 5.0  # least time between two copies for the readers
REMEMBER = 10_000  # rows waiting for their targets, and names of rows that have been learned


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
        transaction); when ``flush`` is called; or at least once in that many milliseconds. The operating system
        always gets it before the answer: a killed process loses nothing, a power cut at most what had not been forced.
    snapshot_rows : int, default=50,000
        Rows from one snapshot to the next: no more than about these are replayed after a crash.
    columns : sequence of str, optional
        Names of the columns, for rows that come as dictionaries, where the model does not know them itself.
    swap_ms : float, default=5
        Readers use a copy of the model that is renewed at most this often: predictions never wait for learning, and
        are behind it by this much and the time of one call.
    remember : int, default=10,000
        How many predicted rows wait for their targets (``predict`` with ``ids``), and how many names of learned
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
        self.folder, self.remembered = Path(folder), int(remember)
        journal.flush_policy(flush)
        snapshot_rows = whole("snapshot_rows", snapshot_rows)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.keeper = Keeper(self.folder, model, columns, flush, snapshot_rows, swap_ms / 1000, self.remembered)
        self.champions = self.keeper.champions  # and all else that calls change; only the writer may change it
        self._relevance, self._writer = Relevance(), Writer(f"learner {self.folder.name}", self.keeper)

    # ---------------------------------------------------------------- what it is
    @property
    def view(self) -> View:
        """What readers see now."""
        return self.keeper.readers.view

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
        problems = dict(self.keeper.problems)
        status = "degraded" if problems else "ok"
        lost = journal.count_lost(self.keeper.lost)
        return {"status": status, "problems": problems, "waiting": self._writer.waiting, "lost": lost}

    def brief(self) -> dict[str, Any]:
        """A few facts, for a list of many learners."""
        scores = self.champion.scores.summary()
        about = {"rows": self.total, "rows_per_second": self.keeper.readers.rows_per_second(), "version": self.version}
        return about | {"metric": scores["metric"], "recent": scores["recent"], "status": self.health()["status"]}

    def describe(self) -> dict[str, Any]:
        """What the learner is and how well it performs, as numbers, strings, lists and dicts."""
        about = describe(self.champions, self.view, self._relevance)
        return about | {"rows_per_second": self.keeper.readers.rows_per_second(), "health": self.health()}

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
        n = len(rows) if isinstance(rows, list) else rows.shape[0]
        self.keeper.waiting.remember(checked_ids(ids, n), rows)

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
            width = getattr(view.model, "n_features_in_", 1)
            rows = self.keeper.waiting.recall(names, self.champions.ids, width)
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
        return self._do(self.keeper.acknowledge)

    def flush(self) -> None:
        """Force the journal to the disk."""
        self._do(self.keeper.journal.flush)

    def snapshot(self) -> None:
        """Write a snapshot now."""
        self._do(self.keeper.snapshot)

    def latest(self) -> View:
        """The model with everything learned so far: a new copy if that of the readers is out of date."""
        if self.keeper.readers.stale or self._writer.waiting:
            self._do(self.keeper.readers.publish)
        return self.view

    def close(self) -> None:
        """Learn what is pending, write a snapshot, and release the folder."""
        if self._writer.close():
            self.keeper.close()

    def __enter__(self) -> DurableLearner:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def _do(self, work: Callable[[], Any]) -> Any:
        return self._writer.send(Asked(work=work)).result()


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
