"""Where the work is done: by the caller's client, the cluster at an address, or a cluster on this machine."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
import weakref
from collections.abc import Iterator
from typing import Any

from ..extras import needs

logger = logging.getLogger("kernelstream.distributed")

LOOK = 2.0  # seconds between two looks at the workers
SCHEDULER_SECONDS = 10.0  # seconds that a scheduler may take to answer
MEMORY_SHARE = 0.6  # of a worker's memory limit: beyond that dask starts to write results to disk


def need(module: str) -> Any:
    """A module of the extra, or an ImportError that names it."""
    with needs("distributed"):
        return importlib.import_module(module)


class Driver:
    """Stands in for a dask client where Spark has the rows: Spark runs the jobs, the driver computes the rest."""

    def nthreads(self) -> dict[str, int]:
        """One thread, that of the driver."""
        return {"driver": 1}

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        """No memory limits are known."""
        return {"workers": {}}


def here(work: Any) -> Any:
    """The value of something that may be delayed, computed by this process."""
    return work.compute(scheduler="synchronous") if hasattr(work, "__dask_graph__") else work


def is_spark(rows: Any) -> bool:
    """Whether rows are a DataFrame of Spark."""
    return any(kind.__module__.startswith("pyspark.sql") for kind in type(rows).__mro__)


@contextlib.contextmanager
def connect(client: Any = None, rows: Any = None) -> Iterator[Any]:
    """A dask client for the time of a ``with`` block.

    Parameters
    ----------
    client : distributed.Client, str or None
        A client, which stays open; the address of a scheduler (``"tcp://host:8786"``); None or "local" for
        processes on this machine, one per core, that end with the block.
    rows : optional
        What the work is about: a DataFrame of Spark needs no client, its session does the work.

    Examples
    --------
    >>> from kernelstream import distributed
    >>> with distributed.connect("local") as client:  # doctest: +SKIP
    ...     distributed.fit(model, "part-*.csv", target="price", client=client)
    """
    if is_spark(rows):
        yield Driver()
        return
    library = need("distributed")
    with contextlib.ExitStack() as stack:
        if client is None or client == "local":
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            cluster = library.LocalCluster(
                n_workers=cores, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
            )
            stack.enter_context(cluster)
            client = stack.enter_context(library.Client(cluster))
            client.run(_carry_on)
        elif isinstance(client, str):
            try:
                client = stack.enter_context(library.Client(client, timeout=SCHEDULER_SECONDS))
            except (OSError, ValueError) as error:
                raise ValueError(f"no dask scheduler answers at {client!r}: {error}") from None
        elif not isinstance(client, library.Client):
            raise ValueError(
                f"client must be a distributed.Client, an address such as 'tcp://host:8786', or None, got {client!r}"
            )
        if not client.nthreads():
            raise ValueError(f"the cluster at {client.scheduler.address} has no workers")
        _known[client] = set(client.nthreads())
        yield client
        look_for_losses(client)


def _carry_on() -> None:
    """On a worker of this machine: ignore control-C, which the client handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


_known: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()  # workers last seen, by client


def look_for_losses(client: Any) -> None:
    """Log which workers have been lost since the last look; dask computes again what they held."""
    now = set(client.nthreads())
    for address in sorted(_known.get(client, set()) - now):
        logger.warning("worker %s was lost: what it held or was computing is computed again", address)
    _known[client] = now


def slots(client: Any) -> int:
    """Tasks that all workers together run at a time."""
    return max(1, sum(client.nthreads().values()))


def check_memory(client: Any, wanted: int, what: str) -> None:
    """ValueError, before anything is computed, if a worker has less memory than its part of the work needs.

    Parameters
    ----------
    wanted : int
        Bytes for each thread of a worker.
    what : str
        What they hold, for the message.
    """
    for address, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        limit = worker.get("memory_limit") or 0
        if limit and wanted * worker["nthreads"] > MEMORY_SHARE * limit:
            raise ValueError(
                f"{what} takes {wanted * worker['nthreads'] / 1e9:.1f} GB on worker {address}, which has "
                f"{limit / 1e9:.1f} GB: use fewer features, fewer threads to a worker, or more memory"
            )


def compute(client: Any, work: Any) -> Any:
    """The value of a delayed object; after an error or an interrupt nothing remains on the workers.

    The results of a worker that dies are computed again elsewhere by dask. A task during which several workers have
    died is given up, because it probably kills them.
    """
    if isinstance(client, Driver):
        return here(work)
    return _results(client, [client.compute(work)])[0]


def call_each(client: Any, function: Any, calls: list[tuple[Any, ...]]) -> list[Any]:
    """``function(*call)`` of every call, each on a worker of its own if there are enough: a round of few, short tasks.

    The arguments are sent directly, which takes less of the scheduler's and client's time than a graph of delayed
    objects.
    """
    futures = [
        client.submit(function, *call, **place, pure=False) for place, call in zip(_places(client, len(calls)), calls)
    ]
    return _results(client, futures)


def spread(client: Any, works: list[Any]) -> list[Any]:
    """Futures of delayed objects, neighbours on the same worker."""
    return [client.compute(work, **place) for place, work in zip(_places(client, len(works)), works)]


def _places(client: Any, count: int) -> list[dict[str, Any]]:
    """Where ``count`` tasks go, neighbours to the same worker.

    Left alone, the scheduler would follow the small objects that tasks share, and put all of them on one worker. The
    places are preferences: when a worker is lost another one takes over.
    """
    threads = [address for address, threads in sorted(client.nthreads().items()) for _ in range(threads)]
    if not threads:  # all are lost: any worker may do it
        return [{} for _ in range(count)]
    return [{"workers": [threads[k * len(threads) // count]], "allow_other_workers": True} for k in range(count)]


def _results(client: Any, futures: list[Any]) -> list[Any]:
    library = need("distributed")
    try:
        while True:
            with contextlib.suppress(library.TimeoutError):
                library.wait(futures, timeout=LOOK, return_when="ALL_COMPLETED")
                break
            look_for_losses(client)
            if any(future.status == "error" for future in futures):
                break
        for future in futures:
            if future.status == "error":
                future.result()
        return client.gather(futures)
    except library.scheduler.KilledWorker as error:
        raise RuntimeError(f"a task was given up because every worker that ran it died: {error}") from None
    finally:
        release(client, *futures)


def release(client: Any, *futures: Any) -> None:
    """Release results, and stop the tasks that still compute them."""
    pending = [future for future in futures if future.status == "pending"]
    if pending:
        with contextlib.suppress(Exception):
            client.cancel(pending)
    for future in futures:
        future.release()
