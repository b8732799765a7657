"""Parts on the workers of Dask: chains of tasks add the rows of neighbouring parts, a tree adds the chains."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..extras import needs
from .sums import Part, Parts, check_columns, names_of_columns, rows_and_target

with needs("distributed"):
    import distributed
    from dask.delayed import delayed as any_delayed

logger = logging.getLogger("kernelstream.distributed")

CHAINS = 2  # for each thread: a lost or slow worker holds up half of its share at most
MEMORY_SHARE = 0.6  # of a worker's memory limit: beyond that dask starts to write results to disk


delayed = functools.partial(any_delayed, pure=False)


class DaskParts(Parts):
    """Chunks of an array, partitions of a frame, or files."""

    def __init__(self, X: Any, y: Any = None, client: Any = None):
        self.client: Any = client or distributed.get_client()
        if not self.client.nthreads():
            raise ValueError("the cluster has no workers")
        self.columns = None
        self.sources: list[tuple[Any, ...]]  # the arguments of each Part, some of which workers have yet to compute
        if isinstance(X, list) and X and all(isinstance(part, Part) for part in X):
            if y is not None:
                raise ValueError("files hold their targets: name the column with target=, and leave y out")
            self.sources = [(part.name, part.source, part.options, part.labels) for part in X]
            check_columns(X, self.map(Part.columns, dict.fromkeys(range(len(X)), ())))
        elif hasattr(X, "to_delayed") and hasattr(X, "columns"):
            from pandas.api.types import is_numeric_dtype

            self.columns = names_of_columns({str(name): kind for name, kind in X.dtypes.items()}, y, is_numeric_dtype)
            split = delayed(rows_and_target)
            self.sources = [(f"partition {i}", split(part, y)) for i, part in enumerate(X.to_delayed())]
        elif hasattr(X, "to_delayed") and X.ndim == 2:
            self.sources = _chunks(X, y)
        else:
            raise ValueError(
                f"X must be a dask array of two dimensions, a frame of Dask or Spark, or distributed.files(...), got "
                f"{type(X).__name__}: rows in this process's memory are learned by the estimator's own fit"
            )

    def __len__(self) -> int:
        return len(self.sources)

    def map(self, function: Callable[..., Any], calls: Mapping[int, tuple[Any, ...]]) -> list[Any]:
        work = delayed(_called)
        return self._results([work(function, self.sources[i], *args) for i, args in calls.items()])

    def total(self, absorb: Callable[..., Any], add: Callable[[Any, Any], Any], *given: Any) -> Any:
        work, join = delayed(_called), delayed(add)
        shared = [delayed(value, traverse=False) for value in given]  # travel once
        threads = [address for address, count in sorted(self.client.nthreads().items()) for _ in range(count)]
        count = min(len(self), CHAINS * len(threads))
        sums: list[Any] = []
        for k, (a, b) in enumerate(pairwise(round(i * len(self) / count) for i in range(count + 1))):
            chain = None
            for source in self.sources[a:b]:
                chain = work(absorb, source, chain, *shared)
            # left alone, the scheduler would follow what all chains share, and put them on one worker
            place = threads[k * len(threads) // count]
            sums.append(self.client.compute(chain, workers=[place], allow_other_workers=True))
        chains = sums
        while len(sums) > 1:
            sums = [join(*sums[i : i + 2]) if i + 1 < len(sums) else sums[i] for i in range(0, len(sums), 2)]
        return self._results(sums, chains)[0]

    def check_memory(self, wanted: int, what: str) -> None:
        for address, worker in self.client.scheduler_info(n_workers=-1)["workers"].items():
            limit, bytes_wanted = worker.get("memory_limit") or 0, wanted * worker["nthreads"]
            if limit and bytes_wanted > MEMORY_SHARE * limit:
                raise ValueError(
                    f"{what} takes {bytes_wanted / 1e9:.1f} GB on worker {address}, which has {limit / 1e9:.1f} GB: "
                    f"use fewer features, fewer threads to a worker, or more memory"
                )

    def _results(self, works: list[Any], inputs: Sequence[Any] = ()) -> list[Any]:
        """What is computed on the workers, which keep none of it, also after an error or an interrupt."""
        before = set(self.client.nthreads())
        futures = self.client.compute(works)
        try:
            return self.client.gather(futures)
        finally:
            held = {*futures, *inputs}
            self.client.cancel([future for future in held if future.status == "pending"])
            for future in held:
                future.release()
            for address in sorted(before - set(self.client.nthreads())):
                logger.warning("worker %s was lost: what it held or was computing is computed again", address)


def _chunks(X: Any, y: Any) -> list[tuple[Any, ...]]:
    """Chunks of rows and of targets, cut alike."""
    if getattr(y, "ndim", None) != 1 or not hasattr(y, "to_delayed"):
        raise ValueError("the rows have no target: y must be a dask array of one dimension")
    if not X.shape[0] == y.shape[0]:  # NaN, where Dask does not know the sizes of chunks
        raise ValueError(f"X has {X.shape[0]} rows, y has {y.shape[0]} (compute_chunk_sizes() counts them)")
    X = X.rechunk({1: -1})
    pairs = zip(X.to_delayed().ravel(), y.rechunk((X.chunks[0],)).to_delayed().ravel())
    bounds = pairwise(np.cumsum([0, *X.chunks[0]]).tolist())
    return [(f"X[{a}:{b}]", pair) for (a, b), pair in zip(bounds, pairs)]


def _called(function: Callable[..., Any], source: tuple[Any, ...], *args: Any) -> Any:
    return function(Part(*source), *args)
