"""Runs what is missing: grids first, then repetitions, on all cores, every result kept at once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from kernelstream import datasets
from kernelstream.cli import Bar

from ._experiment import SYNTHETIC, Algorithm, Data, Experiment, digest, load
from ._job import TUNING_ORDER, run_job, trace
from ._records import Records, environment

CURVES = 5  #: repetitions whose curves are kept: enough for a picture


class NoData(ValueError):
    """Data sets that were asked for, or all of an experiment, are not there."""


@dataclass(frozen=True)
class Task:
    """A run that is still to be done."""

    key: str
    data: Data
    algorithm: Algorithm
    point: dict[str, Any]
    settings: dict[str, Any]
    order: int
    what: str
    trace: list[float] | None = None


def run(
    experiment: Experiment | str,
    folder: str | Path = "results",
    *,
    n_jobs: int = -1,
    quick: bool = False,
    progress: bool | None = None,
    only: Iterable[str] | None = None,
    algorithms: Iterable[str] | None = None,
) -> Records:
    """Run what an experiment still lacks, and return all its records.

    Parameters
    ----------
    experiment : Experiment or str
    folder : path, default "results"
        Where ``NAME.jsonl`` is kept. Stop at any time: the next call goes on from there.
    n_jobs : int, default -1
        Processes; -1 is one per core.
    quick : bool, default False
        Few rows and repetitions.
    progress : bool or None
        A bar on stderr; None shows it on a terminal.
    only : data sets, optional
        Leave the others out.
    algorithms : labels, optional
        Leave the others out.

    Returns
    -------
    Records

    Raises
    ------
    NoData
        A ValueError: a data set that was asked for, or every one of the experiment, is not there.
    """
    experiment = load(experiment) if isinstance(experiment, str) else experiment
    experiment = experiment.quick() if quick else experiment
    records = Records(folder, experiment.name)
    chosen = None if only is None else set(only)
    labels = None if algorithms is None else set(algorithms)
    needed = (
        set()
        if experiment.kind in SYNTHETIC
        else {d.name for d in experiment.data if d.river is None and d.hands is None}
    )
    missing = needed - set(datasets.names())
    lacking = missing if chosen is None else missing & chosen
    if lacking and (chosen is not None or lacking == needed):
        raise NoData(
            f"{experiment.name}: {', '.join(sorted(lacking))} {'is' if len(lacking) == 1 else 'are'} not there: set "
            f"KERNELSTREAM_DATA to the folder that holds the data sets"
        )
    for name in sorted(lacking):
        warnings.warn(
            f"{experiment.name}: data set {name!r} is not there and left out (KERNELSTREAM_DATA names the folder)",
            stacklevel=2,
        )
    lines = [
        (d, a)
        for d, a in experiment.lines()
        if d.name not in missing and (chosen is None or d.name in chosen) and (labels is None or a.label in labels)
    ]
    where = environment()
    n_jobs = 1 if experiment.alone else n_jobs
    with Bar(progress, experiment.name, "runs", patience=0.0) as bar:
        _work(experiment, _grid_tasks(experiment, lines, records), records, n_jobs, where, bar)
        _work(experiment, _repeat_tasks(experiment, lines, records), records, n_jobs, where, bar)
    return records


def grid_key(experiment: Experiment, data: Data, algorithm: Algorithm, settings: dict[str, Any]) -> str:
    judged = ["training rows"] if experiment.kind == "holdout" else []
    return digest("grid", *_what(experiment, data, algorithm, settings), experiment.tuned_on(algorithm), *judged)


def repeat_key(experiment: Experiment, data: Data, algorithm: Algorithm, settings: dict[str, Any], order: int) -> str:
    return digest("repeat", *_what(experiment, data, algorithm, settings), order)


def _what(experiment: Experiment, data: Data, algorithm: Algorithm, settings: dict[str, Any]) -> tuple[Any, ...]:
    """All that a run depends on; the values of a data set in a file have their effect through the settings."""
    if experiment.kind not in SYNTHETIC and data.river is None:
        data = replace(data, values={})
    return (experiment.name, experiment.kind, experiment.measure, data, settings, algorithm.zoo, algorithm.peer,
            algorithm.block)  # fmt: skip


def tuned(
    experiment: Experiment, data: Data, algorithm: Algorithm, point: dict[str, Any], records: Records
) -> dict[str, Any] | None:
    """Settings of a point with the best of its grid; None while the grid is not complete."""
    settings = experiment.settings(data, algorithm, point)
    if not algorithm.grid:
        return settings
    found = [(records.get(grid_key(experiment, data, algorithm, settings | c)), c) for c in algorithm.candidates()]
    if any(record is None for record, _ in found):
        return None
    sign = -1.0 if experiment.more_is_better else 1.0
    worst = float("inf")
    values = [worst if r is None or r["value"] is None else sign * r["value"] for r, _ in found]
    return settings | found[min(range(len(values)), key=values.__getitem__)][1]


def _grid_tasks(experiment: Experiment, lines: list[tuple[Data, Algorithm]], records: Records) -> list[Task]:
    tasks = []
    for data, algorithm in lines:
        if not algorithm.grid:
            continue
        for point in algorithm.points():
            base = experiment.settings(data, algorithm, point)
            said = trace(experiment, algorithm, base | algorithm.candidates()[0])
            for candidate in algorithm.candidates():
                settings = base | candidate
                key = grid_key(experiment, data, algorithm, settings)
                if not records.settled(key, said):
                    tasks.append(Task(key, data, algorithm, point, settings, TUNING_ORDER, "grid", said))
    return tasks


def _repeat_tasks(experiment: Experiment, lines: list[tuple[Data, Algorithm]], records: Records) -> list[Task]:
    points = ((d, a, point, tuned(experiment, d, a, point, records)) for d, a in lines for point in a.points())
    ready = [(d, a, point, s, trace(experiment, a, s)) for d, a, point, s in points if s is not None]
    tasks = []
    for order in range(experiment.repeats):  # all lines once before any line twice: a table fills evenly
        for data, algorithm, point, settings, said in ready:
            key = repeat_key(experiment, data, algorithm, settings, order)
            if not records.settled(key, said):
                tasks.append(Task(key, data, algorithm, point, settings, order, "repeat", said))
    return tasks


def _work(
    experiment: Experiment, tasks: list[Task], records: Records, n_jobs: int, where: dict[str, Any],
    bar: Bar,
) -> None:  # fmt: skip
    import joblib

    bar.update(0, total=len(tasks))
    if not tasks:
        return
    calls = (joblib.delayed(_one)(experiment, task) for task in tasks)
    done = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")(calls)
    for number, (task, outcome) in enumerate(done, 1):
        head = {
            "key": task.key,
            "experiment": experiment.name,
            "what": task.what,
            "data": task.data.name,
            "algorithm": task.algorithm.label,
            "point": task.point,
            "settings": task.settings,
            "order": task.order,
            "trace": task.trace,
        }
        if task.what == "grid" or task.order >= CURVES:
            outcome["curve"] = None
        records.add(head | outcome | {"environment": where})
        bar.update(number, f"{task.data.name} {task.algorithm.label}", len(tasks))


def _one(experiment: Experiment, task: Task) -> tuple[Task, dict[str, Any]]:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    data = task.data
    most = experiment.tuned_on(task.algorithm)
    if task.what == "grid" and most is not None:
        data = replace(data, rows=min(data.rows or most, most))
    from joblib.externals.loky import ProcessPoolExecutor

    run = partial(run_job, experiment, data, task.algorithm, task.settings, task.order, task.what == "grid")
    try:
        if experiment.isolate:  # a process of its own, so that its peak memory can be measured
            with ProcessPoolExecutor(1, initializer=warnings.simplefilter, initargs=("ignore",)) as pool:
                return task, pool.submit(run).result()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return task, run()
    except Exception as error:  # one bad setting of a grid must not end a run of hours
        return task, {"value": None, "error": f"{type(error).__name__}: {error}"}
