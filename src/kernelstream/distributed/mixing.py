r"""First-order learners by iterative parameter mixing: an approximation of one pass over all rows.

K shards learn ``sync_rows`` rows each, all from the same weights w; then the models become one (:mod:`._mix`).

The model that is returned is a mean of the common weights that follows them at a distance of about a tenth of the rows,

.. math:: m \leftarrow m + \frac{(p + 1) n}{t + p n} (w - m), \qquad p = 9,

after t rows, n of them in this round (Shamir, Zhang 2013): the last weights alone depend on which rows came last. A
single shard is one pass, and its weights are the last ones.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from .._checks import whole
from ..estimators.feature import FeatureEstimator
from ..streams import Stream
from ..updates import CoinBetting, unwrap
from ._client import call_each, forget, need, release, slots
from ._data import Data, Piece, runs
from ._mix import State, lengthened, mixed
from ._start import begin, refuse

SYNC_ROWS = 50
DECAY = 9  # p of the mean

Call = tuple[Any, Any, State, int]  # partition, position in it, state, rows
Result = tuple[State, int, Any]

_open: dict[tuple[str, str], Stream] = {}  # on a worker: by job and partition, where the next round goes on


def mixes(est: Any) -> bool:
    """Whether an estimator is a linear model that learns by a first-order update."""
    return isinstance(est, FeatureEstimator) and type(est)._learn is FeatureEstimator._learn


def fit_mixing(
    est: FeatureEstimator, data: Data, client: Any, classes: Any = None, *, sync_rows: int = SYNC_ROWS
) -> State:
    """One pass over all rows by several learners that become one every ``sync_rows`` rows of each."""
    refuse(est)
    whole("sync_rows", sync_rows)
    if isinstance(unwrap(est._update)[0], CoinBetting):
        raise ValueError("the wealth of coin betting cannot be shared out: choose another update, such as 'adagrad'")
    model = begin(est, data, client, classes, all_labels=True)  # all models must have the same outputs
    model._reset(model._state)
    shards = [Shard([data.pieces[i] for i in run], client) for run in runs(len(data), slots(client))]
    job = uuid.uuid4().hex
    shell = client.compute(need("dask").delayed(_same, pure=False)(model))
    try:
        return rounds(
            model,
            shards,
            int(sync_rows),
            lambda calls: call_each(client, advance, [(job, shell, *call) for call in calls]),
        )
    finally:
        for shard in shards:
            shard.close()
        release(client, shell)
        forget(client, _close, job)


def rounds(
    model: FeatureEstimator, shards: list[Shard], sync_rows: int, run: Callable[[list[Call]], list[Result]]
) -> State:
    """The common state after all rows, its weights replaced by their mean if several shards took part.

    Parameters
    ----------
    model : estimator
        With the state that all begin with.
    run : callable
        Runs the calls of a round, each given by the remaining arguments of :func:`advance`.
    """
    update, averaged = unwrap(model._update)
    state, mean, seen, alone = model._state, model._state["w"], 0, len(shards) == 1
    while shards := [shard for shard in shards if shard.queue]:
        start = lengthened(state, update, len(shards))
        found = run([(shard.piece, shard.position, start, sync_rows) for shard in shards])
        for shard, (_, _, position) in zip(shards, found):
            shard.move(position)
        parts = [(part, n) for part, n, _ in found if n]
        if parts:
            state = mixed(state, start, parts, update)
            n = sum(n for _, n in parts)
            seen += n
            mean = mean + (DECAY + 1) * n / (seen + DECAY * n) * (state["w"] - mean)
    return state if alone or averaged else state | {"w": np.ascontiguousarray(mean, state["w"].dtype)}


class Shard:
    """Some partitions, read one after the other, and where the next round goes on."""

    def __init__(self, pieces: list[Any], client: Any = None):
        self.queue, self.client = pieces, client
        self.position: Any = None
        self._held: Any = None

    @property
    def piece(self) -> Any:
        """The partition being read; a part of a dask collection stays with a worker as long."""
        if isinstance(self.queue[0], Piece):
            return self.queue[0]
        if self._held is None:
            self._held = self.client.compute(self.queue[0])
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


def advance(job: str, shell: FeatureEstimator, piece: Piece, position: Any, state: State, rows: int) -> Result:
    """The state after at most ``rows`` rows more, how many they were, and where to go on, None at the end.

    Parameters
    ----------
    shell : estimator
        The same in all rounds; what it derives from parameters and seed is made once.
    position : dict or None
        Where to go on in the partition: in a stream that was left open there, or in a new one.
    """
    est = copy.copy(shell)
    est.state_ = {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in state.items()}
    est._cache["mapping"] = shell._mapping(shell._state)
    key = job, piece.name
    stream = _open.pop(key, None)
    if stream is not None and stream.position != position:  # a round that is repeated
        stream.close()
        stream = None
    if stream is None:
        stream = piece.stream()
        if position is not None:
            stream.seek(position)
    try:
        n = sum(piece.follow(stream, lambda X, y: len(est.learn(X, y)), rows))
        if n == rows:
            _open[key] = stream
            return est._state, n, stream.position
        return est._state, n, None
    finally:
        if _open.get(key) is not stream:
            stream.close()


def _close(job: str) -> None:
    for key in [key for key in _open if key[0] == job]:
        _open.pop(key).close()


def _same(model: Any) -> Any:
    return model
