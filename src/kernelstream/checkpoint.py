"""Long runs that survive a crash: training on a stream, with checkpoints to resume from.

A checkpoint is a model file (:mod:`kernelstream.model_io`) that also holds the position of the stream. Blocks are cut
at the same rows in every run, so a run that was killed at any moment and resumed ends with the same model, bit for bit,
as one that was not.
"""

from __future__ import annotations

import math
import os
import pickle
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone, is_outlier_detector

from .checks import whole
from .evaluate.metrics import BASIC, errors
from .evaluate.runners import StreamRunner, task_of
from .files import discard, numbered, sweep
from .innermost import innermost
from .model_io import ModelFileError, read, save, to_bytes
from .streams.base import joined

FILES_KEPT = 3
ROWS_BETWEEN = 100_000
LONG_BLOCK_SECONDS = 0.25  # seconds: a run that takes longer for a block holds a copy of itself from before the block


class Checkpoints:
    """The latest few states of a run, in a folder.

    Parameters
    ----------
    folder : path
        Created when the first checkpoint is written.
    keep : int, default=3
        How many to keep.
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = FILES_KEPT):
        self.folder, self.keep = Path(folder), whole("keep", keep)
        self._unreadable: set[Path] = set()

    def files(self) -> list[Path]:
        """Checkpoints, oldest first."""
        return [path for _, path in self._numbered()]

    def _numbered(self) -> list[tuple[int, Path]]:
        """Rows after which checkpoints were written, by their names, and the files."""
        return numbered(self.folder, "checkpoint") if self.folder.is_dir() else []

    def save(self, est: Any, rows: int, notes: dict[str, Any]) -> Path:
        """Write a checkpoint after ``rows`` rows, and remove those that are too old.

        A file that cannot be read, or has more rows than this run has learned, does not count among the latest: it
        never replaces a good one, and is removed with them.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"checkpoint-{rows:012d}.ks"
        save(est, path, notes)
        self._unreadable.discard(path)
        found = self._numbered()
        kept = [at for at, old in found if at <= rows and old not in self._unreadable][-self.keep :]
        if len(kept) == self.keep:
            discard(old for at, old in found if at < kept[0])
        return path

    def latest(self) -> tuple[Any, dict[str, Any]] | None:
        """Model and notes of the latest checkpoint that can be read, or None; a damaged one is skipped.

        Raises
        ------
        ValueError
            A file with the name of a checkpoint holds a plain model.
        """
        for path in reversed(self.files()):
            try:
                model, notes = read(path)
            except (ModelFileError, OSError) as error:
                self._unreadable.add(path)
                warnings.warn(f"skipping a checkpoint that cannot be read: {error}", RuntimeWarning, stacklevel=2)
                continue
            if not _is_checkpoint(notes):
                raise ValueError(
                    f"{path} is a model and not a checkpoint: it does not say how far the stream was read. "
                    f"Continue from it as a model (train --from), or move it elsewhere"
                )
            return model, notes
        return None


def _is_checkpoint(notes: dict[str, Any]) -> bool:
    """Whether the notes of a model file are those of a checkpoint."""
    kinds: dict[str, Any] = {"position": dict, "total": (int, float), "unknown": int, "block": int, "notes": dict}
    known = all(isinstance(notes.get(name), kind) for name, kind in kinds.items())
    return known and isinstance(notes["position"].get("rows"), int) and _not_negative(notes["position"])


def _not_negative(position: Any) -> bool:
    """Whether no number in the position of a stream is below 0."""
    if isinstance(position, dict):
        return all(map(_not_negative, position.values()))
    return not isinstance(position, (int, float)) or position >= 0


@dataclass
class Run:
    """What :func:`train` did.

    Attributes
    ----------
    model : estimator
    rows, skipped : int
        Rows learned and rows left out, from the start of the stream.
    resumed : int
        Rows learned before, by the run that this one continues.
    seconds : float
        Time of this run.
    metric : str
        "mistake_rate" or "mse", of the predictions made before each row was learned; "training_mistake_rate" or
        "training_mse" of a model that learns all rows at once; "novelty_rate", the share of rows that a novelty
        detector called novel before it learned them.
    value : float
    finished : bool
        False when it was asked to stop before the end of the stream.
    """

    model: Any
    rows: int = 0
    skipped: int = 0
    resumed: int = 0
    seconds: float = 0.0
    metric: str = ""
    value: float = float("nan")
    finished: bool = False


def train(
    est: Any,
    stream: Any,
    folder: str | os.PathLike[str] | None = None,
    *,
    every: int = ROWS_BETWEEN,
    keep: int = FILES_KEPT,
    resume: bool = False,
    labels: Callable[[np.ndarray], np.ndarray] | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[Run], Any] | None = None,
    hold: Callable[[bytes, int, dict[str, Any]], Any] | None = None,
    notes: dict[str, Any] | None = None,
) -> Run:
    """Learn all rows of a stream, in order, in one pass.

    Parameters
    ----------
    est : estimator
        It is trained in place. Where the stream's rows get wider, the model does too. One without ``learn`` is fitted
        to all rows at once, which are collected in memory; it cannot have checkpoints.
    stream : Stream
        A novelty detector needs no target, and ignores one.
    folder : path, optional
        Where checkpoints go. Without it none are written.
    every : int, default=100,000
        Rows from one checkpoint to the next, rounded up to whole blocks.
    keep : int, default=3
        Checkpoints to keep.
    resume : bool, default=False
        Resume from the latest checkpoint, if there is one: the model and the stream continue where they were.
    labels : callable, optional
        Applied to every block of targets.
    stop : callable, optional
        Called after every block; True ends the run, after a checkpoint.
    progress : callable, optional
        Called with the :class:`Run` after every block.
    hold : callable, optional
        Called before a block, if blocks take long, with the pickled model, the rows it has learned and the notes of a
        checkpoint: what :meth:`Checkpoints.save` needs, for a process that has to end within the block.
    notes : dict, optional
        Kept in the checkpoints; a run can only resume from one with the same notes.

    Returns
    -------
    Run

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import FeatureRegressor, streams
    >>> from kernelstream.checkpoint import train
    >>> X = np.random.default_rng(0).uniform(-3, 3, (3000, 1))
    >>> run = train(FeatureRegressor(random_state=0), streams.Arrays(X, np.sin(X[:, 0])))
    >>> run.rows, run.value < 0.05
    (3000, True)
    """
    whole("every", every)
    if not hasattr(est, "learn"):
        if folder is not None:
            raise ValueError(f"{type(est).__name__} learns all rows at once: a run of it has no checkpoints")
        return _train_at_once(est, stream, labels, stop, progress)
    kept = Checkpoints(folder, keep) if folder is not None else None
    if kept is not None:
        to_bytes(est)  # a model that cannot be saved should fail now, not hours later
    if resume and kept is None:
        raise ValueError("resume=True needs the folder of the checkpoints")
    task = task_of(est)
    run = Run(est, metric=BASIC[task][0])
    total, unknown = 0.0, 0  # errors, and rows without one: of the first nothing was known
    found = kept.latest() if kept is not None and resume else None
    if found is not None:
        total, unknown = _go_on(est, stream, run, found, notes)
    if kept is not None:
        if kept.files() and not resume:
            raise ValueError(f"{folder} holds checkpoints of an earlier run: resume from them, or remove them first")
        sweep(kept.folder)
    runner = StreamRunner(est, task, None, probability=False)
    saved = run.rows
    copies = _Copies(hold)
    started, position = time.perf_counter(), stream.position  # after the rows learned: those read may be more

    def inside() -> dict[str, Any]:
        return {"position": position, "total": total, "unknown": unknown, "block": stream.block, "notes": notes or {}}

    for X, y in _blocks(stream, run, labels, stop, progress):
        copies.before_block(est, position["rows"], inside)
        total += _learned(est, runner, X, y, task)
        unknown += runner.unknown
        run.value, position = _mean(total, stream.rows - unknown), stream.position
        if kept is not None and stream.rows // every > saved // every:
            kept.save(est, stream.rows, inside())
            saved = stream.rows
    if kept is not None and (run.rows > saved or not run.finished):
        kept.save(est, position["rows"], inside())
    run.seconds = time.perf_counter() - started
    return run


class _Copies:
    """Copies of a run from before its long blocks; they take at most a twentieth of the time."""

    def __init__(self, hold: Callable[[bytes, int, dict[str, Any]], Any] | None):
        self.hold, self.cost = hold, 0.0
        self.began = self.made = time.perf_counter()

    def before_block(self, est: Any, rows: int, inside: Callable[[], dict[str, Any]]) -> None:
        now = time.perf_counter()
        if self.hold is not None and now - self.began > LONG_BLOCK_SECONDS and now - self.made > 20 * self.cost:
            self.hold(pickle.dumps(est, protocol=5), rows, inside())
            self.made = time.perf_counter()
            self.cost = self.made - now
        self.began = time.perf_counter()


def _train_at_once(est: Any, stream: Any, labels: Any, stop: Any, progress: Any) -> Run:
    """Fit a model to all rows of a stream together."""
    task = task_of(est)
    run = Run(est, metric=f"training_{BASIC[task][0]}")
    started = time.perf_counter()
    blocks = list(_blocks(stream, run, labels, stop, progress))
    if blocks:
        X, y = joined(blocks)  # type: ignore[misc]
        est.fit(X, y)
        run.value = float(errors(task, y, est.predict(X)).mean())
    run.seconds = time.perf_counter() - started
    return run


def _blocks(stream: Any, run: Run, labels: Any, stop: Any, progress: Any) -> Iterator[tuple[Any, Any]]:
    """Blocks until the stream ends or a stop is requested; a block counts once the next one is asked for."""
    started = time.perf_counter()
    while stop is None or not stop():
        block = stream.read()
        if block is None:
            run.finished = stop is None or not stop()  # a stream that was asked to stop gives None before its end
            break
        X, y = block
        if is_outlier_detector(run.model):
            y = None
        elif y is None:
            raise ValueError(f"{stream.name} has no target to learn: say which column it is")
        yield X, y if labels is None or y is None else labels(y)
        run.rows, run.skipped, run.seconds = stream.rows, stream.skipped, time.perf_counter() - started
        if progress is not None:
            progress(run)
    run.skipped = stream.skipped


def _learned(est: Any, runner: StreamRunner, X: Any, y: np.ndarray, task: str) -> float:
    """Learn a block; returns the sum of the errors made on it before, or the number of novelties."""
    width = getattr(est, "n_features_in_", None)
    try:
        if width is not None and X.shape[1] > width:
            est.widen(X.shape[1])
        if task == "novelty":
            answer = np.where(innermost(est).novel(est.learn(X)), -1, 1)
        else:
            answer = runner.answer_then_learn(X, y)[0]
    except MemoryError as error:
        raise ValueError(
            f"there is not enough memory for a model of rows with {X.shape[1]:,} columns ({error}): make it smaller "
            f"(n_components, budget), or hash the columns into fewer"
        ) from None
    return float(errors(task, y, answer)[runner.unknown :].sum())


def _mean(total: float, rows: int) -> float:
    return total / rows if rows > 0 else math.nan


def _go_on(
    est: Any, stream: Any, run: Run, found: tuple[Any, dict[str, Any]], notes: dict[str, Any] | None
) -> tuple[float, int]:
    """Continue from the latest checkpoint; returns the sum of errors so far, and how many rows have none."""
    model, inside = found
    now = notes or {}
    differ = [key for key, value in inside["notes"].items() if now.get(key) != value]
    wrong = [f"{key}={now.get(key)!r} now, {inside['notes'][key]!r} then" for key in differ]
    if type(model) is not type(est) or _parameters(model) != _parameters(est):
        wrong.insert(0, f"{est!r} now, {model!r} then")
    if inside["block"] != stream.block:
        wrong.append(f"block={stream.block} now, {inside['block']} then")
    if wrong:
        raise ValueError(f"the checkpoint belongs to another run: {'; '.join(wrong)}")
    try:
        stream.verify(inside["position"])
        stream.seek(inside["position"])
    except (KeyError, TypeError, AttributeError):
        raise ValueError(f"the checkpoint belongs to another run: its position is not in {stream.name}") from None
    if hasattr(model, "state_"):
        est.state_ = model.state_
    if hasattr(model, "feature_names_in_"):
        est.feature_names_in_ = model.feature_names_in_
    run.rows = run.resumed = stream.rows
    run.skipped = stream.skipped
    run.value = _mean(inside["total"], stream.rows - inside["unknown"])
    return inside["total"], inside["unknown"]


def _parameters(est: Any) -> bytes:
    """The parameters in a form that can be compared."""
    return to_bytes(clone(est))
