r"""Doubly stochastic gradients over partitions: the batches of one machine, only coefficients travel.

The rows stay in the workers' memory. Iteration t is the one of :class:`~kernelstream.DoublyStochasticClassifier` on the
same random batch: each worker scores the rows of the batch that it holds, makes block t of the features from the seed
and returns its part of the gradient, (width, C); the sum, the new coefficients, goes out with the next iteration.
"""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np

from ..estimators._contract.door import checked_rows
from ..estimators.doubly.base import DoublyShell
from ..estimators.doubly.choice import CHOICE_ROWS
from ..passes.doubly.descent import Descent, batches, gradients
from ..random import Stream, generator
from ..rows import concat
from ._client import check_memory, compute, forget, need, slots, spread
from ._data import Data, Piece, runs
from ._start import begin, refuse, units_warning, warn
from .landmarks import AllRows

_held: dict[str, dict[str, Any]] = {}  # on a worker: the coefficients of a job so far


def fit_doubly(est: DoublyShell, data: Data, client: Any, classes: Any = None) -> dict[str, Any]:
    """The state that ``est.fit`` would reach on the rows of all partitions, up to rounding."""
    refuse(est)
    if est._learner.step.damping():
        raise ValueError("preconditioned steps need all rows of a batch in one place: set precondition to 0")
    delayed = need("dask").delayed
    model = begin(est, data, client, classes, all_labels=True)
    state = model._state
    rows = AllRows(data, client)
    n = rows.n
    if model._learner.warm_up_rows():
        some = generator(state["seed"], Stream.DOUBLY_ROWS).permutation(n)[:CHOICE_ROWS]
        work = delayed(_settled, pure=False)
        state |= compute(client, work(model, rows.delayed(some), rows.delayed(some, target=True), n))
        warn(compute(client, delayed(units_warning, pure=False)(model, rows.delayed(some))))
    else:
        state["lam"] = model._learner.regulariser(state, n)
    model._forget()
    model._learner.reset(state)
    share = -(-n // slots(client))
    check_memory(client, 2 * share * state["n_features"] * np.dtype(state["dtype"]).itemsize, "its share of rows")
    data = data.with_rows(np.diff(rows.starts))
    bounds = np.unique(rows.starts)  # of the partitions that are left
    groups = runs(len(data), slots(client))
    keep = delayed(_kept, pure=False)
    shards = spread(client, [keep([data.pieces[i] for i in group], model) for group in groups])
    job = uuid.uuid4().hex
    try:
        _iterate(model, shards, bounds[[group.start for group in groups] + [len(data)]], job, client)
    finally:
        for shard in shards:
            shard.release()
        forget(client, _forget_job, job)
    return state


def _settled(est: DoublyShell, X: Any, y: Any, n: int) -> dict[str, Any]:
    """What is chosen on a sample of rows."""
    state = dict(est._state)
    X = checked_rows(est, X, reset=False)
    weight = est._row_weights(state, y, np.ones(len(y)))
    learner = est._learner
    plan = learner.plan(n, learner.schedule.passes)
    learner.choose(state, X, est._encode(state, y), np.asarray(weight), n, plan)
    return {key: value for key, value in state.items() if key not in est._state or est._state[key] is not value}


def _kept(pieces: list[Piece], est: DoublyShell) -> tuple[DoublyShell, Any, np.ndarray, np.ndarray | None]:
    """The model, and rows, encoded targets and weights of some partitions."""
    parts = [
        block for piece in pieces for block in piece.blocks(lambda X, y: est._admit(X, y, None, None, fresh=False))
    ]
    X, y = concat([X for X, _, _ in parts]), np.concatenate([y for _, y, _ in parts])
    return est, X, est._encode(est._state, y), est._row_weights(est._state, y, None)


def _iterate(model: DoublyShell, shards: list[Any], starts: np.ndarray, job: str, client: Any) -> None:
    state, delayed = model._state, need("dask").delayed
    descent, n = model._learner.descent(state), int(starts[-1])
    plan = model._learner.plan(n, model._learner.schedule.passes)
    batch = plan.batch
    work = delayed(gradient, pure=False)
    news: Any = None  # block and coefficients of the iteration before
    for rows in batches(n, batch, plan.steps, state["seed"]):
        home = np.searchsorted(starts, rows, side="right") - 1
        mine = [rows[home == k] - starts[k] for k in range(len(shards))]
        at = state["t"], state["shrink"]
        # every shard gets the news of every iteration, whether it has rows of the batch or not
        tasks = [work(shard, own, job, at, news, batch) for shard, own in zip(shards, mine)]
        found = compute(client, delayed(list)(tasks))
        late = [k for k, part in enumerate(found) if part is None]
        if late:  # a worker that is new to the job, or took over from one that was lost
            again = [work(shards[k], mine[k], job, at, state["alpha"], batch) for k in late]
            for k, part in zip(late, compute(client, delayed(list)(again))):
                found[k] = part
        before = state["shrink"]
        i, delta = descent.step(state, sum(found))
        rescaled = state["shrink"] > before
        news = state["alpha"] if rescaled else (i, delta)


def gradient(shard: Any, rows: np.ndarray, job: str, at: tuple[int, float], news: Any, batch: int) -> Any:
    """The shard's part of the gradient, (width, C), or None if this process has missed earlier iterations.

    Parameters
    ----------
    news : (block, coefficients), all coefficients, or None before the first iteration
    """
    est, X, y, weight = shard
    t, shrink = at
    descent: Descent = est._learner.descent(est._state)
    held = _held.setdefault(job, {"t": 0, "alpha": est._state["alpha"]})
    if isinstance(news, np.ndarray):
        held |= {"t": t, "alpha": news}
    elif held["t"] < t - 1:
        return None
    elif held["t"] == t - 1 and news is not None:
        i, delta = news
        alpha = held["alpha"]
        if i == len(alpha):
            alpha = np.concatenate([alpha, delta[None]])
        else:
            alpha = alpha.copy()
            alpha[i] += delta
        held |= {"t": t, "alpha": alpha}
    i = descent.block_of(t + 1)
    part = X[rows]
    state = {**est._state, "alpha": held["alpha"], "shrink": shrink}
    if not len(rows):
        return np.zeros((descent.blocks.width, est._state["alpha"].shape[2]), descent.blocks.dtype)
    G = gradients(descent.loss, y[rows], descent.iterate(state, part, True))
    if weight is not None:
        G = G * weight[rows, None]
    Z = descent.blocks.features(part, i)
    return Z.T @ (G / batch).astype(Z.dtype)


def _forget_job(job: str) -> None:
    _held.pop(job, None)
