"""Model selection on a stream: many candidates, one pass over the rows per worker, the worst dropped early.

The candidates are dealt out to the workers. A rung is a stretch of the stream: every worker reads it once and lets each
of its candidates predict, then learn, each block. After a rung the worse part of all candidates is dropped and the
others are dealt out anew, to go on where they were; so the winner is the model that one machine would have trained.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid

from .. import zoo
from .._checks import whole
from ..evaluate._metrics import choose
from ..evaluate._runners import StreamRunner
from ._client import compute_each, connect, need, slots
from ._data import BLOCK, Data, Piece, partitions
from ._start import known_labels

FIRST_RUNG = 2048


@dataclass
class Candidate:
    """An estimator and how it has done.

    Attributes
    ----------
    name : str
    est : estimator
        Trained on the rows it has seen; of a dropped candidate, where it stood then.
    rows : int
    total : float
        Sum of the metric over the rows.
    error : str
        Why it could not go on, if it could not.
    """

    name: str
    est: Any
    rows: int = 0
    total: float = 0.0
    error: str = ""

    @property
    def value(self) -> float:
        """Mean of the metric so far, infinite for one that failed."""
        return np.inf if self.error else self.total / self.rows if self.rows else np.nan


@dataclass
class Found:
    """What a search found.

    Attributes
    ----------
    best : estimator
        The winner, trained on all rows.
    metric : str
    candidates : list of Candidate
        All of them: longest survivor first, then by their value.
    rungs : list of (int, int)
        Rows seen by the end of each rung, and candidates that took part in it.
    """

    metric: str
    candidates: list[Candidate] = field(default_factory=list)
    rungs: list[tuple[int, int]] = field(default_factory=list)

    @property
    def best(self) -> Any:
        return self.candidates[0].est

    def __str__(self) -> str:
        lines = [f"{self.metric:>14}  {'rows':>10}  candidate"]
        return "\n".join(lines + [f"{c.value:14.5g}  {c.rows:10,}  {c.error or c.name}" for c in self.candidates])


def search(
    candidates: Any,
    X: Any,
    y: Any = None,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    task: str = "binary",
    metric: str | None = None,
    first_rung: int = FIRST_RUNG,
    eta: float = 2.0,
    client: Any = None,
    classes: Any = None,
    block: int = BLOCK,
    labels: Any = None,
    random_state: int | None = 0,
    **reader: Any,
) -> Found:
    """Prequential search over estimators, or names of the zoo, with successive halving; one pass over the rows.

    Parameters
    ----------
    candidates : estimator, or list of estimators and names of the zoo
    X, y, client, classes, block, labels, **reader
        See :func:`fit`. Every worker reads all rows.
    grid : dict of str to sequence, optional
        Parameters to try, of every candidate: all combinations.
    task : {"binary", "multiclass", "regression"}
        Of zoo entries.
    metric : str, optional
        "mistake_rate" or "mse" by default.
    first_rung : int, default=2048
        Rows after which the first candidates are dropped; the next rung ends after ``eta`` times as many.
    eta : float, default=2
        At the end of a rung one of ``eta`` candidates goes on.
    random_state : int or None
        Seed of zoo entries, and of estimators that have none.

    Returns
    -------
    Found

    Examples
    --------
    >>> from kernelstream import FeatureClassifier, distributed
    >>> found = distributed.search(
    ...     ["fogd", "nogd"], "part-*.svm", grid={"gamma": [0.1, 1.0, 10.0]}
    ... )  # doctest: +SKIP
    >>> print(found)  # doctest: +SKIP
    """
    if not eta > 1:
        raise ValueError(f"eta must be > 1, got {eta!r}")
    whole("first_rung", first_rung)
    pool = _expanded(candidates, grid or {}, task, random_state)
    kinds = {is_classifier(one.est) for one in pool}
    if len(kinds) > 1:
        raise ValueError("classifiers and regressors cannot be compared")
    kind = "classification" if kinds.pop() else "regression"
    chosen = choose(metric, kind)[0]
    if chosen.needs_probability or chosen.name == "accuracy":
        raise ValueError(f"metric={metric!r}: the search makes mistake_rate, mse, rmse or mae small")
    with connect(client) as client:
        data = partitions(X, y, block=block, client=client, labels=labels, **reader)
        if kind == "classification" and classes is None:
            classes = known_labels(data, client)
        return _climb(pool, data, client, classes, chosen, kind, int(first_rung), eta)


def _expanded(candidates: Any, grid: Mapping[str, Sequence[Any]], task: str, seed: Any) -> list[Candidate]:
    if isinstance(candidates, str) or not isinstance(candidates, Iterable):
        candidates = [candidates]
    out = []
    for spec, params in itertools.product(list(candidates), ParameterGrid(dict(grid))):
        if isinstance(spec, str):
            words = ", ".join(f"{name}={value!r}" for name, value in params.items())
            est, name = zoo.make(spec, task, **params), f"{spec}({words})"
        else:
            est = clone(spec).set_params(**params)
            name = " ".join(repr(est).split())
        if not hasattr(est, "learn"):
            raise ValueError(f"{name} learns all rows at once: a prequential search compares learners of streams")
        if "random_state" in est.get_params() and est.random_state is None:
            est.set_params(random_state=seed)
        est._check_parameters()
        out.append(Candidate(name, est))
    if not out:
        raise ValueError("there are no candidates")
    return out


def _climb(
    pool: list[Candidate], data: Data, client: Any, classes: Any, metric: Any, kind: str, first: int, eta: float
) -> Found:
    delayed = need("dask").delayed
    found = Found(metric.name)
    at: Any = (0, None)  # partition, position in it
    seen, rung = 0, first
    dropped: list[Candidate] = []
    work = delayed(_rung, pure=False)
    while True:
        groups = [pool[i :: slots(client)] for i in range(min(slots(client), len(pool)))]
        # a file is only opened from its position on; parts of a dask collection are handed over as they are needed
        tasks = [work(data.pieces[at[0]], at[1], group, rung - seen, classes, metric.name, kind) for group in groups]
        results = compute_each(client, tasks)
        pool = [one for group, _, _ in results for one in group]
        rows, position = results[0][1], results[0][2]
        seen += rows
        at = (at[0] + 1, None) if position is None else (at[0], position)
        ended = at[0] == len(data)
        if seen < rung and not ended:
            continue
        found.rungs.append((seen, len(pool)))
        pool.sort(key=lambda one: one.value)
        if ended:
            break
        keep = max(1, int(np.ceil(len(pool) / eta)))
        dropped = pool[keep:] + dropped
        pool, rung = pool[:keep], max(seen + 1, round(eta * rung))
    for one in pool + dropped:
        if metric.name == "rmse" and not one.error:
            one.total = one.rows * metric.finish(one.value)
    found.candidates = pool + dropped
    if found.candidates[0].error:
        raise ValueError(f"no candidate could learn the rows: {found.candidates[0].error}")
    return found


def _rung(
    piece: Piece, position: Any, group: list[Candidate], rows: int, classes: Any, metric: str, kind: str
) -> tuple[list[Candidate], int, Any]:
    """The candidates after at most ``rows`` rows more, how many they were, and where to go on, None at the end."""
    group = copy.deepcopy(group)
    measure = choose(metric, kind)[0]
    runners = [StreamRunner(one.est, kind, classes, False) for one in group]

    def learn(X: Any, y: Any) -> int:
        for width in {one.est.n_features_in_ for one in group if hasattr(one.est, "n_features_in_")}:
            if X.shape[1] != width:  # the stream has checked for NaN: nothing else can be wrong with the rows alone
                raise ValueError(f"the rows have {X.shape[1]} features, those before had {width}")
        for one, runner in zip(group, runners):
            if not one.error:
                try:
                    predicted, _ = runner.answer_then_learn(X, y)
                except ValueError as error:
                    one.error = f"{one.name}: {error}"
                    continue
                one.total += float(np.sum(measure.rows(y, predicted, None)))
                one.rows += len(y)
        return len(y)

    with piece.stream() as stream:
        if position is not None:
            stream.seek(position)
        n = sum(piece.follow(stream, learn, rows))
        return group, n, stream.position if n == rows else None
