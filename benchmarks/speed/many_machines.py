"""Ridge regression on 1, 2, … single-threaded workers of one machine: seconds, efficiency, bytes moved.

Generated rows (2·10^6, 20 columns), made by the workers themselves from seeds, chunk by chunk; ridge on 1000 Fourier
pairs (2000 features). Efficiency is T1 / (w Tw), the best of interleaved repeats; "by it" is the same for the processor
time of the busiest worker, which other work on the machine disturbs less and which leaves out waiting. Bytes are what
all workers sent, by dask's own count. Writes benchmarks/results/many_machines.md, which docs/distributed.md quotes.

    OPENBLAS_NUM_THREADS=1 python benchmarks/speed/many_machines.py [--rows 2000000] [--workers 1,2] [--repeats 2]
"""

import argparse
import platform
import time
import warnings
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from kernelstream import OnlineRidge, distributed
from kernelstream.features import RandomFourier

COLUMNS = 20
CHUNK = 10_000
PAIRS = 1000
RESULT = Path(__file__).parents[1] / "results" / "many_machines.md"


def rows_of(block_id: tuple[int, ...], chunk: int) -> np.ndarray:
    """Rows of a chunk: the same on any worker."""
    return np.random.Generator(np.random.Philox(key=block_id[0])).random((chunk, COLUMNS), dtype=np.float32)


def generated(n: int) -> tuple[Any, Any]:
    chunks = ((CHUNK,) * (n // CHUNK), (COLUMNS,))
    X = da.map_blocks(
        lambda block_id=None: rows_of(block_id, CHUNK),
        chunks=chunks,
        dtype=np.float32,
        meta=np.empty((0, 0), np.float32),
    )
    y = X.map_blocks(lambda X: np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2], drop_axis=1, dtype=np.float32)
    return X, y


def sent(client: Client) -> int:
    """Bytes that workers have sent, to other workers and to the client."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def busy(client: Client) -> np.ndarray:
    """Seconds of processor time that each worker has used."""
    return np.array([value for _, value in sorted(client.run(time.process_time).items())])


def ridge(n: int, client: Client) -> dict[str, float]:
    X, y = generated(n)
    est = OnlineRidge(RandomFourier(n_components=PAIRS, gamma=0.5), lam=1.0, random_state=0)
    before, worked, start = sent(client), busy(client), time.perf_counter()
    distributed.fit(est, X, y, client=client)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "moved": sent(client) - before, "cpu": float((busy(client) - worked).max())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--repeats", type=int, default=2)
    args = parser.parse_args()
    counts = [int(word) for word in args.workers.split(",")]
    found: dict[int, list[dict[str, float]]] = {count: [] for count in counts}
    warnings.simplefilter("ignore")
    for _ in range(args.repeats):
        for count in counts:
            with (
                LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0") as cluster,
                Client(cluster) as client,
            ):
                ridge(2 * CHUNK, client)  # imports and first allocations
                found[count].append(ridge(args.rows, client))
                print(count, found[count][-1], flush=True)
    best = {count: min(runs, key=lambda run: run["seconds"]) for count, runs in found.items()}
    lines = [
        f"Ridge regression on {2 * PAIRS} Fourier features of {args.rows:,} generated rows of {COLUMNS} columns "
        f"(float32), best of {args.repeats}, single-threaded worker processes on one {platform.machine()} machine. "
        f"`python benchmarks/speed/many_machines.py`.\n",
        "| workers | seconds | rows/s per worker | efficiency | processor s | by it | MB moved |",
        "|---|---|---|---|---|---|---|",
    ]
    one, work = (best[counts[0]][key] * counts[0] for key in ("seconds", "cpu"))
    for count, run in best.items():
        lines.append(
            f"| {count} | {run['seconds']:.2f} | {args.rows / run['seconds'] / count:,.0f} | "
            f"{one / (count * run['seconds']):.2f} | {run['cpu']:.2f} | {work / (count * run['cpu']):.2f} | "
            f"{run['moved'] / 1e6:.2f} |"
        )
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
