"""One run: a data set in one order, one learner, one number."""

from __future__ import annotations

import functools
import inspect
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils import Bunch

from kernelstream import datasets, zoo
from kernelstream import settings as machine
from kernelstream.evaluate import model_bytes, model_size, prequential
from kernelstream.streams import augment

from ._arena import run_stream
from ._experiment import MEASURES, SYNTHETIC, Algorithm, Data, Experiment
from ._images import bent, blurred
from ._peers import peer
from ._synthetic import hands, play

RANGES = {"minmax": (0.0, 1.0), "minmax-sym": (-1.0, 1.0)}  # of the scales that `also` and `target` know
SCALERS = {"minmax": MinMaxScaler(), "minmax-sym": MinMaxScaler((-1.0, 1.0)), "standard": StandardScaler()}
PCA_ROWS = 10_000
THREADS = "n_jobs"  # settings of a run, and no parameters of a learner: threads of the library,
WITHIN = "within"  # and a share of the seconds that the first line of the experiment takes for the same rows
BATCH = 256  # rows of a call where seconds are counted
TUNING_ORDER = 1000  # the order of rows that grids are searched on; repetitions count from 0


@functools.lru_cache(maxsize=2)
def _load(data: Data) -> Any:
    """All rows of a data set, with the columns and labels that an experiment gives them."""
    part = data.split if data.scaled == "split" else None
    if data.hands is not None:
        X, y = hands(data.hands, np.random.default_rng(0))
        bunch = Bunch(X=X, y=y, task="multiclass", is_test=None)
    else:
        bunch = datasets.load(data.name, scale=data.scale if part is None else None, split=part)
    if data.scale is not None and (data.hands, part) != (None, None):
        bunch.X = SCALERS[data.scale].fit_transform(bunch.X).astype(np.float32)
    for column in data.also:
        low, high = bunch[column].min(), bunch[column].max()
        start, end = RANGES[data.scale or "raw"]
        one = start + (end - start) * (bunch[column] - low) / (high - low)
        bunch.X = np.column_stack([bunch.X, one]).astype(bunch.X.dtype)
    if data.classes:
        kept = np.flatnonzero(np.isin(bunch.y, data.classes))
        bunch.X, bunch.y = bunch.X[kept], bunch.y[kept]
        bunch.is_test = None if bunch.is_test is None else bunch.is_test[kept]
        bunch.task = "binary" if len(data.classes) == 2 else bunch.task
    if data.bends:
        train = np.arange(len(bunch.y)) if bunch.is_test is None else np.flatnonzero(~bunch.is_test)
        (_, *more) = augment([(bunch.X[train], bunch.y[train])], bent, data.bends)
        bunch.X, bunch.y = (np.concatenate([part, *new]) for part, new in zip((bunch.X, bunch.y), zip(*more)))
        if bunch.is_test is not None:
            bunch.is_test = np.append(bunch.is_test, np.zeros(data.bends * len(train), bool))
    if data.blur is not None:
        bunch.X = blurred(bunch.X, data.blur)
    if data.pca is not None:
        train = np.arange(len(bunch.y)) if bunch.is_test is None else np.flatnonzero(~bunch.is_test)
        bunch.X = PCA(data.pca, random_state=0).fit(bunch.X[train[:PCA_ROWS]]).transform(bunch.X)
    if data.dtype is not None:
        bunch.X = bunch.X.astype(data.dtype)
    return bunch


def rows_of(data: Data, order: int, kind: str, search: bool = False) -> tuple[Any, np.ndarray, Any, Any, str]:
    """X, y in a random order or their own, the held-out X and y (None in an online run), and the task.

    A ``search`` never sees the test rows: others of the training part are held out, a fifth of it if it takes all.
    """
    bunch = _load(replace(data, rows=None, test_rows=None, values={}))
    y, task = bunch.y, bunch.task
    if data.positive is not None:
        y, task = np.where(y == data.positive, 1, -1), "binary"
    if data.above is not None:
        y, task = np.where(y > data.above, 1, -1), "binary"
    if data.target is not None:
        low, high = RANGES[data.target]
        y = (low + (high - low) * (y - y.min()) / (y.max() - y.min())).astype(np.float64)
    rng = np.random.default_rng(order)
    part = np.flatnonzero(~bunch.is_test) if bunch.is_test is not None else None
    if kind == "online":
        train = np.arange(len(y))
        if part is not None and data.split != "all":
            train = part if data.split == "train" else np.flatnonzero(bunch.is_test)
        test = None
    elif part is not None:
        train, test = part, np.flatnonzero(bunch.is_test)
    else:
        mixed = np.random.default_rng(0).permutation(len(y))  # one split for all orders
        cut = len(y) * 4 // 5 if data.train_share is None else int(len(y) * data.train_share)
        train, test = mixed[:cut], mixed[cut:]
    train = train if data.order == "file" else rng.permutation(train)
    if test is not None and search:
        cut = min(data.rows or len(train), len(train) * 4 // 5)
        train, test = train[:cut], train[cut:]
    train = train[: data.rows]
    if test is None:
        return bunch.X[train], y[train], None, None, task
    test = np.random.default_rng(1).permutation(test)[: data.test_rows]
    return bunch.X[train], y[train], bunch.X[test], y[test], task


def build(algorithm: Algorithm, task: str, settings: dict[str, Any], seed: int) -> Any:
    """The learner of a run; ``"$eta"`` is the value that another setting, eta, has."""
    given = {name: value for name, value in settings.items() if name not in (THREADS, WITHIN)}
    own = {name: given[v[1:]] if isinstance(v, str) and v[:1] == "$" else v for name, v in given.items()}
    if algorithm.peer is not None:
        return peer(algorithm.peer, task, own, seed)
    return zoo.make(str(algorithm.zoo), task=task, **({"random_state": seed} | own))


def trace(experiment: Experiment, algorithm: Algorithm, settings: dict[str, Any]) -> list[float] | None:
    """What a recipe says of 8 fixed rows after 300 others: other defaults, or rules behind them, say something else."""
    if algorithm.zoo is None or experiment.kind in SYNTHETIC:
        return None
    X = np.random.default_rng(0).normal(size=(308, 3)).astype(np.float32)
    numbers = experiment.measure in ("mse", "rmse", "regret")
    y = X[:, 0] * X[:, 1] if numbers else np.where(X[:, 0] > X[:, 1], 1, -1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            est = build(algorithm, "regression" if numbers else "binary", settings, 0).fit(X[:300], y[:300])
        said = est.predict(X[300:]) if numbers else est.decision_function(X[300:])
    except Exception:  # these rows are not for it: the run will tell what is wrong, if anything is
        return None
    return [float(f"{value:.4g}") for value in np.ravel(said)]


def peak_mb() -> float:
    """Largest memory of this process so far; 0 where the system does not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1e6 if sys.platform == "darwin" else 1e3)


def run_job(
    experiment: Experiment, data: Data, algorithm: Algorithm, settings: dict[str, Any], order: int, search: bool = False
) -> dict[str, Any]:
    """Value, seconds, size and curve of one run; of a ``search`` for the best settings without the test rows."""
    if experiment.kind in SYNTHETIC:
        est = build(algorithm, "regression", settings, order)
        value, seconds, told = play(experiment.kind, est, data, order)
        return _outcome(est, round(value, 8), seconds, data.rows, told)
    if experiment.kind == "arena":
        return run_stream(data, algorithm, settings, order)
    X, y, X_test, y_test, task = rows_of(data, order, experiment.kind, search)
    metric, factor, higher = MEASURES[experiment.measure]
    before = peak_mb()
    est = build(algorithm, task, settings, order)
    if experiment.kind == "online":
        result = prequential(
            est, X, y, block_size=algorithm.block, metrics=metric, curve_points=30, progress=False,
            clock=time.process_time,  # others may work on the same machine
        )  # fmt: skip
        value, seconds, curve = result.metrics[metric], result.seconds, result.curves[metric]
        curves = [curve.rows.tolist(), [_shown(v, factor, higher, experiment.measure) for v in curve.value]]
    else:
        if WITHIN in settings:
            first = next(a for a in experiment.algorithms if a.serves(data.name))
            whole = build(first, task, experiment.settings(data, first, {}), order)
            limit = settings[WITHIN] * _fitted(whole, X, y, {})
            est, seconds = fitted_within(lambda: build(algorithm, task, settings, order), X, y, limit)
        else:
            seconds = _fitted(est, X, y, settings)
        curves, predicted = None, est.predict(X_test)
        wrong = (predicted - y_test) ** 2 if task == "regression" else predicted != y_test
        value = float(np.mean(wrong))
        if experiment.measure == "score" and task == "regression":
            value /= float(np.var(y_test))
    if not np.isfinite(value):
        raise FloatingPointError("the learner diverged")
    shown = seconds if metric == "seconds" else _shown(value, factor, higher, experiment.measure)
    return _outcome(est, shown, seconds, len(y), curves, peak_mb() - before if experiment.isolate else None)


def _fitted(est: Any, X: Any, y: np.ndarray, settings: dict[str, Any]) -> float:
    """Seconds of ``fit``."""
    # the rows are in a random order already, the same for all learners; those that choose their passes draw again
    passes = inspect.signature(est.fit).parameters.get("passes")
    keeps = passes is not None and passes.default == 1
    start = time.perf_counter()
    with machine.using(**({"threads": settings[THREADS]} if THREADS in settings else {})):
        est.fit(X, y, **({"shuffle": False} if keeps else {}))
    return time.perf_counter() - start


def fitted_within(make: Callable[[], Any], X: Any, y: np.ndarray, limit: float) -> tuple[Any, float]:
    """A learner that had at most so many seconds, up to its last call, and what it took.

    One that learns batch by batch goes over the rows again and again. One that takes all rows at once, and stops where
    it has converged, gets twice as many as before while four times the seconds are left.
    """
    est, at, spent, classes = make(), 0, 0.0, np.unique(y)
    start = time.perf_counter()
    if hasattr(est, "partial_fit"):
        while spent < limit:
            est.partial_fit(X[at : at + BATCH], y[at : at + BATCH], classes=classes)
            at = at + BATCH if at + BATCH < len(y) else 0
            spent = time.perf_counter() - start
        return est, spent
    rows = 2 * BATCH
    while True:
        rows = min(2 * rows, len(y))
        est, start = make(), time.perf_counter()
        est.fit(X[:rows], y[:rows])
        spent = time.perf_counter() - start
        if rows == len(y) or 4 * spent > limit:
            return est, spent


def _outcome(
    est: Any, value: float, seconds: float, rows: int | None, curve: Any, memory: float | None = None
) -> dict[str, Any]:
    """What is kept of a run."""
    return {
        "value": value,
        "seconds": round(seconds, 5),
        "size": model_size(est),
        "bytes": model_bytes(est),
        "rows": rows,
        "peak_mb": None if memory is None else round(memory, 1),
        "curve": curve,
    }


def _shown(value: float, factor: float, higher: bool, measure: str) -> float:
    shown = factor - factor * value if higher else factor * value
    return round(float(shown**0.5 if measure == "rmse" else shown), 6)
