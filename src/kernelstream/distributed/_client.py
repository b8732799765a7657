"""Where the work is done: a client of the caller's, the cluster at an address, or one of this machine's own."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
from collections.abc import Iterator
from typing import Any

logger = logging.getLogger("kernelstream.distributed")

ROOM = 0.6  # of a worker's memory limit: beyond that dask starts to write results to disk


def need(module: str) -> Any:
    """A module of the extra, or an ImportError that names it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"training on several machines needs dask ({error}): pip install 'kernelstream[distributed]'"
        ) from None


@contextlib.contextmanager
def connect(client: Any = None) -> Iterator[Any]:
    """A dask client for the time of a ``with`` block.

    Parameters
    ----------
    client : distributed.Client, str or None
        A client, left open afterwards; the address of a scheduler (``"tcp://host:8786"``); None or "local" for
        processes of this machine, one for each core, that end with the block.

    Examples
    --------
    >>> from kernelstream import distributed
    >>> with distributed.connect("local") as client:  # doctest: +SKIP
    ...     distributed.fit(model, "part-*.csv", target="price", client=client)
    """
    library = need("distributed")
    with contextlib.ExitStack() as stack:
        if client is None or client == "local":
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            cluster = library.LocalCluster(
                n_workers=cores, threads_per_worker=1, dashboard_address=None, silence_logs=logging.ERROR
            )
            stack.enter_context(cluster)
            client = stack.enter_context(library.Client(cluster))
        elif isinstance(client, str):
            try:
                client = stack.enter_context(library.Client(client))
            except (OSError, ValueError) as error:
                raise ValueError(f"no dask scheduler answers at {client!r}: {error}") from None
        elif not isinstance(client, library.Client):
            raise ValueError(
                f"client must be a distributed.Client, an address such as 'tcp://host:8786', or None, got {client!r}"
            )
        if not client.nthreads():
            raise ValueError(f"the cluster at {client.scheduler.address} has no workers")
        stack.enter_context(_losses_logged(client))
        yield client


@contextlib.contextmanager
def _losses_logged(client: Any) -> Iterator[None]:
    """Say in the log when a worker is lost; dask computes again what it held."""

    before = getattr(client, "_event_handlers", {}).get("all")  # a client has one handler for a topic

    def heard(event: tuple[float, Any]) -> None:
        message = event[1]
        if isinstance(message, dict) and message.get("action") == "remove-worker" and not message.get("expected"):
            lost, cut = (len(message.get(key) or ()) for key in ("lost-computed-tasks", "processing-tasks"))
            logger.warning(
                "worker %s was lost: %d results and %d unfinished tasks of its are computed again",
                message.get("worker", "?"),
                lost,
                cut,
            )
        if before is not None:
            before(event)

    client.subscribe_topic("all", heard)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            if before is None:
                client.unsubscribe_topic("all")
            else:
                client.subscribe_topic("all", before)


def slots(client: Any) -> int:
    """Tasks that run at a time on all workers together."""
    return max(1, sum(client.nthreads().values()))


def check_memory(client: Any, wanted: int, what: str) -> None:
    """ValueError, before anything is computed, when a worker has less memory than its part of the work takes.

    Parameters
    ----------
    wanted : int
        Bytes for each thread of a worker.
    what : str
        What they hold, for the message.
    """
    for address, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        limit = worker.get("memory_limit") or 0
        if limit and wanted * worker["nthreads"] > ROOM * limit:
            raise ValueError(
                f"{what} takes {wanted * worker['nthreads'] / 1e9:.1f} GB on worker {address}, which has "
                f"{limit / 1e9:.1f} GB: use fewer features, fewer threads to a worker, or more memory"
            )


def compute(client: Any, work: Any) -> Any:
    """The value of a delayed object; on an error or an interrupt nothing is left behind on the workers.

    A worker that dies takes its results with it; dask computes them again elsewhere. A task that was running on three
    workers when they died is given up, as what kills them.
    """
    killed = need("distributed").scheduler.KilledWorker
    future = client.compute(work, retries=0)
    try:
        return future.result()
    except killed as error:
        raise RuntimeError(
            f"a task was running on several workers when they died, the last one time: {error}"
        ) from None
    finally:
        release(client, future)


def release(client: Any, *futures: Any) -> None:
    """Let go of results, and stop what still works on them."""
    with contextlib.suppress(Exception):
        client.cancel([future for future in futures if future.status == "pending"])
    for future in futures:
        future.release()
