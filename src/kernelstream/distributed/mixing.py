r"""First-order learners by iterative parameter mixing: an approximation of one pass over all rows.

K shards learn ``sync_rows`` rows each, all from the same weights w; then the models become one,

.. math:: w \leftarrow w + s \sum_k \frac{n_k}{n} (w_k - w), \qquad n = \sum_k n_k,

n_k being the rows shard k has learned. With s = 1 this is the average (McDonald, Hall, Mann 2010), as safe as the
learner itself, but it moves like a learner that has seen one shard only. "add" lets the changes of all shards add up,
s = 1 + (K - 1) t / (t + n) after t rows, and with them the sums of squares that set AdaGrad's step sizes: what one
machine would do, with gradients that are up to ``K sync_rows`` rows old. It keeps up with one machine as long as that
is a few hundred rows.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..estimators.feature import FeatureEstimator
from ..updates import AdaGrad, CoinBetting, NormAdaGrad, unwrap
from ._client import compute, compute_each, need, slots
from ._data import Data, Piece, runs, tree
from ._start import begin, refuse

State = dict[str, Any]

SYNC_ROWS = 100
WAYS = ("auto", "average", "add")


def mixes(est: Any) -> bool:
    """Whether an estimator is a linear model that learns by a first-order update."""
    return isinstance(est, FeatureEstimator) and type(est)._learn is FeatureEstimator._learn


def fit_mixing(
    est: FeatureEstimator,
    data: Data,
    client: Any,
    classes: Any = None,
    *,
    sync_rows: int = SYNC_ROWS,
    aggregate: str = "auto",
    shards: int | None = None,
) -> State:
    """One pass over all rows by several learners that become one every ``sync_rows`` rows of each."""
    refuse(est)
    if isinstance(sync_rows, bool) or not isinstance(sync_rows, (int, np.integer)) or sync_rows < 1:
        raise ValueError(f"sync_rows must be an integer >= 1, got {sync_rows!r}")
    if aggregate not in WAYS:
        raise ValueError(f"aggregate must be one of {', '.join(WAYS)}, got {aggregate!r}")
    update, _ = unwrap(est._update)
    if isinstance(update, CoinBetting):
        raise ValueError("the wealth of coin betting cannot be shared out: choose another update, such as 'ada_grad'")
    adds = aggregate == "add" or (aggregate == "auto" and isinstance(update, (AdaGrad, NormAdaGrad)))
    known = classes
    if is_classifier(est) and classes is None:  # all models must have the same outputs
        known = compute(client, tree(data.map(_labels), np.union1d))
    model = begin(est, data, client, known)
    if is_classifier(est) and classes is None:
        model._state["classes_fixed"] = 0
    model._reset(model._state)
    queues = [list(run) for run in runs(len(data), shards or slots(client))]
    _rounds(model, [Shard(data, queue, client) for queue in queues], client, int(sync_rows), adds)
    return model._state


def _rounds(model: FeatureEstimator, shards: list[Shard], client: Any, rows: int, adds: bool) -> None:
    delayed = need("dask").delayed
    update, _ = unwrap(model._update)
    try:
        while shards := [shard for shard in shards if shard.queue]:
            work = delayed(advance, pure=False)
            found = compute_each(client, [work(shard.piece, shard.position, model, rows) for shard in shards])
            for shard, (_, _, position) in zip(shards, found):
                shard.move(position)
            parts = [(state, n) for state, n, _ in found if n]
            if parts:
                model.state_ = mixed(model._state, parts, update, adds)
    finally:
        for shard in shards:
            shard.close()


class Shard:
    """Some partitions, read one after the other, and where the next round goes on."""

    def __init__(self, data: Data, queue: list[int], client: Any):
        self.data, self.queue, self.client = data, queue, client
        self.position: Any = None
        self._held: Any = None

    @property
    def piece(self) -> Any:
        """The partition being read; a part of a dask collection stays with a worker as long."""
        piece = self.data.pieces[self.queue[0]]
        if isinstance(piece, Piece):
            return piece
        if self._held is None:
            self._held = self.client.compute(piece)
        return self._held

    def move(self, position: Any) -> None:
        """Go on from there; None is the end of the partition."""
        self.position = position
        if position is None:
            self.close()
            self.queue.pop(0)

    def close(self) -> None:
        if self._held is not None:
            self._held.release()
            self._held = None


def advance(piece: Piece, position: Any, est: FeatureEstimator, rows: int) -> tuple[State, int, Any]:
    """The state after at most ``rows`` rows more, how many they were, and where to go on, None at the end."""
    est = copy.deepcopy(est)
    with piece.stream() as stream:
        if position is not None:
            stream.seek(position)
        n = sum(piece.follow(stream, lambda X, y: len(est.learn(X, y)), rows))
        return est._state, n, stream.position if n == rows else None


def _labels(piece: Piece) -> np.ndarray:
    found = np.empty(0)
    for labels in piece.blocks(lambda X, y: np.unique(y)):
        found = labels if not len(found) else np.union1d(found, labels)
    return found


def mixed(base: State, parts: list[tuple[State, int]], update: Any, adds: bool) -> State:
    """The state that takes the place of several, which all began as ``base`` and have learned so many rows each."""
    states, rows = [state for state, _ in parts], np.array([n for _, n in parts], float)
    share = rows / rows.sum()
    out = dict(base)

    def average(values: list[Any], first: Any, s: float = 1.0) -> Any:
        return first + s * sum(a * (value - first) for a, value in zip(share, values))

    def summed(values: list[Any], first: Any) -> Any:
        """Of things that count rows: what each has added."""
        return first + sum(value - first for value in values)

    def of(name: str) -> list[Any]:
        return [state[name] for state in states]

    dtype = base["w"].dtype
    # steps are long and stale at the beginning: adding sets in as the rows seen outnumber those of a round
    s = 1.0 + (len(states) - 1) * base["t"] / (base["t"] + rows.sum()) if adds else 1.0
    w = average([state["w"] * state["scale"][:, None] for state in states], base["w"] * base["scale"][:, None], s)
    out |= {"w": np.ascontiguousarray(w, dtype), "scale": np.ones_like(base["scale"]), "t": summed(of("t"), base["t"])}
    squares = summed if adds else average
    if "G" in base:
        out["G"] = np.ascontiguousarray(squares(of("G"), base["G"]), dtype)
    if "w_mean" in base:  # a mean over all rows so far
        total = summed([state["t"] * state["w_mean"] for state in states], base["t"] * base["w_mean"])
        out["w_mean"] = np.ascontiguousarray(total / max(out["t"], 1), dtype)
    if "class_counts" in base:
        out["class_counts"] = summed(of("class_counts"), base["class_counts"])
    if "center" in base:
        count = summed([c[0] for c in of("center")], base["center"][0])
        total = summed([c[0] * c[1] for c in of("center")], base["center"][0] * base["center"][1])
        out["center"] = np.array([count, total / count if count else 0.0])
    out["memory"] = _memory(base["memory"], of("memory"), update, average, summed, squares)
    return out


def _memory(base: np.ndarray, parts: list[np.ndarray], update: Any, average: Any, summed: Any, squares: Any) -> Any:
    """What the update remembers: moments of rows add up, anything else is averaged."""
    if not base.size:
        return base
    out = average(parts, base)
    if not isinstance(update, (AdaGrad, NormAdaGrad)):
        return out
    n, mean, spread, size = (lambda m, i=i: m[i, 0] for i in range(4))
    count = summed([n(part) for part in parts], n(base))
    if count:
        y = summed([n(p) * mean(p) for p in parts], n(base) * mean(base)) / count
        yy = summed([spread(p) + n(p) * mean(p) ** 2 for p in parts], spread(base) + n(base) * mean(base) ** 2)
        k = summed([n(p) * size(p) for p in parts], n(base) * size(base)) / count
        out[:4, 0] = count, y, max(yy - count * y**2, 0.0), k
    if isinstance(update, NormAdaGrad):
        out[4] = squares([part[4] for part in parts], base[4])
    return out
