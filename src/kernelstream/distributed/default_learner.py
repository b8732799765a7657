"""The default learner on many machines: what adds up over workers learns all rows, the rest a sample of them.

Least squares on features (one of the members, or two) is exact whatever machine sees which rows. The other members
follow the rows one by one, which workers cannot share; they learn a sample of at most 100,000 rows, drawn from all
partitions, on one worker, as ``fit`` does. As many rows are learned at once, here. Where members are weighed on rows
that are held out, nobody learns these before. Rows are scaled by what the sample says of the columns.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from .. import second_order
from ..estimators.second_order.ridge import Ridge, RidgeShell
from ..estimators.stack import fit as _fit
from ..estimators.stack.batch import Part, chosen, helps
from ..estimators.stack.shell import StackShell
from ..estimators.stack.weights import mean
from ..random import Stream, generator, seed_from
from ..rows import concat
from ..solvers.clock import Clock
from ._client import compute, need
from ._data import Data, Piece, Rows
from ._start import known_labels
from .landmarks import AllRows
from .ridge import add_rows, copied, merged

SAMPLE_ROWS = 100_000  # rows that members learn who follow them one by one
ENTRIES = (
    "n_features",
    "n_outputs",
    "dtype",
    "seed",
    "t",
    "classes",
    "classes_fixed",
    "class_counts",
    "first_width",
    "lasting",
    "weight_sums",
)


def fit_default_learner(est: StackShell, data: Data, client: Any, classes: Any = None) -> dict[str, Any]:
    """A state like that of ``est.fit``, the same for all partitions of the rows up to the solvers' tolerances.

    With at most 100,000 rows nothing is left out, and only least squares differs: it meets all rows by the last scales
    of the columns, and on one machine, in the first pass, by those of the time.
    """
    if is_classifier(est) and getattr(est, "class_weight", None) == "balanced":
        raise ValueError("class_weight='balanced' follows the rows one by one: give a dict of weights instead")
    delayed = need("dask").delayed
    rows = AllRows(data, client)
    labels = classes
    if is_classifier(est) and classes is None:
        labels = known_labels(data, client)
    est = clone(est).set_params(random_state=seed_from(est._learner.seed_source()))
    n = rows.n
    rng = generator(est.random_state, Stream.REMOTE_ROWS)
    some = np.arange(n) if n <= SAMPLE_ROWS else np.sort(rng.choice(n, SAMPLE_ROWS, replace=False))
    sample = rows.delayed(some), rows.delayed(some, target=True)
    est.state_, held, part = compute(client, delayed(_learned, pure=False)(est, *sample, labels, classes is None))
    if held is None:
        return est.state_
    exact = [i for i, member in enumerate(est._learner.members) if _adds_up(member)]
    seen = _as_seen(est, data, rows.starts, some[held])
    if n > SAMPLE_ROWS:
        names = [name for i, name in enumerate(est._learner.names()) if i not in exact]
        warnings.warn(
            f"{', '.join(names)}: these members follow rows one by one, which workers cannot share; they have learned "
            f"{SAMPLE_ROWS:,} of {n:,} rows, drawn at random",
            stacklevel=4,
        )
    factor, once = _factors(est), len(some) - len(held)
    for i in exact:
        # as often as it went over the sample while its loss on held-out rows fell
        passes = round(est._learner.members[i]._state["t"] / once)
        _enter(est, i, _everywhere(client, seen, est._learner.members[i], factor, passes))
    starts = rows.starts - np.searchsorted(some[held], rows.starts)
    _fit.conclude(est, part, _gathered(est, seen, starts, client), Clock(), n - len(held) if n > SAMPLE_ROWS else 0)
    return est.state_


def _learned(
    est: StackShell, X: Any, y: np.ndarray, labels: Any, free: bool
) -> tuple[dict[str, Any], np.ndarray | None, Part | None]:
    """On a worker: the state after all passes over the sample; what is left to do, rows held out and their numbers."""
    with _fit.fitting(est, True, helps(est, y)):
        found = _fit.passes_over(est, X, y, labels, None, True, "auto", Clock())
    if free and is_classifier(est):
        for state in (est._state, *est._state["members"]):
            state["classes_fixed"] = 0
    return est.state_, *((None, None) if found is None else (found.held, found.held_rows))


def _adds_up(member: Any) -> bool:
    """Whether what workers learn of a member is what one machine would."""
    return (
        isinstance(member._learner, Ridge)
        and member._learner.forgetting == 1
        and len(member._learner.ridges()) == 1
        and not getattr(member._learner.map, "grows", False)
    )


def _as_seen(est: StackShell, data: Data, starts: np.ndarray, held: np.ndarray) -> Data:
    """Partitions of rows as the members see them with encoded targets; without the rows held out."""
    light = clone(est)
    light._state = {name: value for name, value in est._state.items() if name in ENTRIES or name.startswith("x_")}
    light.n_features_in_ = est.n_features_in_
    work = need("dask").delayed(_prepared, pure=False)
    sent = need("dask").delayed(light, pure=False)
    pieces = []
    for i, piece in enumerate(data.pieces):
        low, high = np.searchsorted(held, starts[i : i + 2])
        pieces.append(work(piece, data.names[i], sent, held[low:high] - starts[i]))
    return Data(data.names, pieces)


def _prepared(piece: Piece, name: str, est: StackShell, without: np.ndarray) -> Rows:
    rows, targets, at = [], [], 0

    def use(X: Any, y: Any) -> None:
        nonlocal at
        X, y, _ = est._admit(X, y, None, None, fresh=False)
        which = np.setdiff1d(np.arange(len(y)), without - at)
        at += len(y)
        X, y, _ = _fit.prepared(est, est._state, X, y, None, which)
        rows.append(X)
        targets.append(y)

    for _ in piece.blocks(use):
        pass
    return Rows(name, concat(rows), np.concatenate(targets))


def _factors(est: Any) -> dict[float, float] | None:
    """Weights of encoded labels, next to the mean weight of the rows."""
    given = getattr(est, "class_weight", None)
    if given is None:
        return None
    labels = est._state["classes"]
    codes = est._encode(est._state, labels).tolist()
    unit = mean(est._state)
    return {code: float(given.get(label, 1.0)) / unit for code, label in zip(codes, labels.tolist(), strict=True)}


def _everywhere(
    client: Any, data: Data, member: RidgeShell, factor: dict[float, float] | None, passes: int
) -> RidgeShell:
    """A member that has learned the rows of all partitions so many times, and nothing else."""
    start = copy.copy(member)
    start.state_ = dict(member.state_) | {"t": 0}
    start._learner.reset(start.state_)
    return data.accumulated(client, start, _absorbed, merged, factor, passes)


def _absorbed(member: RidgeShell, piece: Piece, factor: dict[float, float] | None, passes: int) -> RidgeShell:
    """A copy of a member that has also learned a partition, without the forecasts that ``learn`` makes on its way."""
    member = copied(member)

    def use(X: Any, y: Any) -> None:
        c = np.ones(len(y)) if factor is None else np.array([factor[code] for code in y.tolist()])
        add_rows(member, X, y, c, passes)

    for _ in piece.blocks(use):
        pass
    second_order.flush(member._state, 1.0)
    return member


def _enter(est: StackShell, i: int, learned: RidgeShell) -> None:
    """Give member i what its likes have learned on the workers."""
    state = est._state["members"][i]
    shared = {name: state[name] for name in ("classes", "class_counts", "classes_fixed") if name in state}
    state.clear()
    state.update(learned.state_ | shared)
    est._learner.members[i]._forget()


def _gathered(est: StackShell, seen: Data, starts: np.ndarray, client: Any) -> Callable[[], Part]:
    """Gives rows of all partitions, here: a system of all rows needs them in one place."""
    wanted, factors, take = (
        chosen(est._state["seed"], int(starts[-1])),
        _factors(est),
        need("dask").delayed(_taken, pure=False),
    )
    cuts = np.searchsorted(wanted, starts)
    pieces = [take(piece, wanted[cuts[i] : cuts[i + 1]] - starts[i]) for i, piece in enumerate(seen.pieces)]

    def rows() -> Part:
        parts = compute(client, need("dask").delayed(list)(pieces))
        X, y = (np.concatenate(values) for values in zip(*parts, strict=True))
        return X, y, None if factors is None else np.array([factors[code] for code in y.tolist()])

    return rows


def _taken(piece: Rows, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(piece.X)[which], np.asarray(piece.y)[which]
