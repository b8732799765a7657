"""``train --dask``: the same model file, learned by the workers of a dask cluster."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from typing import Any

from ..extras import needs
from .algorithms import build, finds_novelties
from .base import UsageError, import_parts
from .reading import DATASET, fingerprint, open_data, reading
from .targets import targets_for
from .training import kept, report, task_of_run


def train_on_workers(args: argparse.Namespace) -> None:
    """Train on files that the workers read; only the first block of the first file is read here."""
    from .. import distributed, model_io

    for name in ("checkpoint", "start", "limit", "shuffle"):
        if getattr(args, name) is not None:
            raise UsageError(f"--{'from' if name == 'start' else name} cannot be used with --dask")
    if finds_novelties(args, {}):
        raise UsageError("--dask: novelty detectors are trained on one machine, without workers")
    args.data = _files(args.data)
    options = reading(args)
    stream = open_data(args, options)
    if stream.peek() is None:
        raise ValueError(f"{stream.name} has no rows")
    task = task_of_run(args, stream, None, {})
    est = build(args, task)
    model_io.to_bytes(est)  # a model that cannot be saved should fail now, not hours later
    notes = {"task": task, "algorithm": args.algorithm, "reader": kept(options, stream)}
    notes["data"] = fingerprint(args.data)
    stream.close()
    started = time.perf_counter()
    with _client(args.dask) as client:
        for module in args.modules:
            client.run(import_parts, module, os.getcwd())
        if not args.quiet and not args.json:
            count = len(client.nthreads())
            print(f"{count} worker{'s' * (count != 1)} of {client.scheduler.address}", file=sys.stderr)
        distributed.fit(est, distributed.files(args.data, targets_for(task), **options), client=client)
    if task != "regression":
        targets_for(task, args.task)(est.classes_)  # no worker sees all labels
    seconds, rows = time.perf_counter() - started, int(est.state_["t"])
    model_io.save(est, args.model, notes | {"rows": rows, "finished": True})
    about = {"algorithm": args.algorithm, "task": task, "finished": True, "rows": rows, "files": len(args.data)}
    about |= {"seconds": seconds, "rows_per_second": rows / seconds}
    report(args, est, about, f"{rows:,} rows of {len(args.data)} files in {seconds:.1f} s")


def _client(address: str) -> Any:
    """A client of a scheduler, or of processes on this machine that end with it, one for each core."""
    with needs("distributed"):
        import distributed
    Client: Any = distributed.Client
    if address != "local":
        return Client(address)
    client = Client(threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL)
    client.run(_carry_on)
    return client


def _carry_on() -> None:
    """On a worker of this machine: ignore control-C, which is for the process of the command."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _files(names: list[str]) -> list[str]:
    """Files for the workers; patterns that the shell has not expanded are expanded here."""
    from ..distributed import files
    from ..streams.bytes import is_pipe

    try:
        found = [part.name for part in files(names)]
    except ValueError as error:
        raise UsageError(f"--dask: {error}") from None
    if not found or found[0].startswith(DATASET) or any(map(is_pipe, found)):
        raise UsageError("--dask: workers read files: name some, or a pattern such as 'part-*.svm'")
    return found
