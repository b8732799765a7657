"""Training on 1, 2, … single-threaded workers of one machine: seconds, efficiency, bytes moved.

Generated rows (2·10^6, 20 columns), made by the workers themselves from seeds, chunk by chunk; ridge on 1000 Fourier
pairs (2000 features) and conjugate gradients on random binning. Efficiency is T1 / (w Tw), the best of interleaved
repeats; "by it" is the same for the processor time of the busiest worker, which other work on the machine disturbs less
and which leaves out waiting. Bytes are what all workers sent, for ridge by dask's own count, for a round of binning by
the number of its columns: the count drowns in what placing the rows moves. Writes
benchmarks/results/many_machines.md and many_machines.json.

    OPENBLAS_NUM_THREADS=1 python benchmarks/speed/many_machines.py [--rows 2000000] [--workers 1,2] [--repeats 2]
        [--work ridge|binning]    # one of them again; the other figures of the record stay
"""

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from kernelstream import BinningRegressor, OnlineRidge, distributed
from kernelstream.features import RandomFourier
from kernelstream.solvers import ConjugateGradient

COLUMNS = 20
CHUNK = 10_000
PAIRS, GRIDS, ROUNDS = 1000, 64, 60


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


def ridge(n: int, client: Client) -> dict[str, Any]:
    X, y = generated(n)
    est = OnlineRidge(RandomFourier(n_components=PAIRS, gamma=0.5), lam=1.0, random_state=0)
    before, worked, start = sent(client), busy(client), time.perf_counter()
    distributed.fit(est, X, y, client=client)
    seconds = time.perf_counter() - start
    about = {"seconds": seconds, "rounds": 1, "moved": sent(client) - before}
    return about | {"cpu": float((busy(client) - worked).max())}


def binning(n: int, client: Client) -> dict[str, Any]:
    """A fixed number of rounds; the time of a round is what is compared, the pinning before them is given apart."""
    X, y = generated(n)
    found: dict[int, tuple[float, ...]] = {}
    for rounds in (1, 1 + ROUNDS):
        solver = ConjugateGradient(tol=1e-14, max_iter=rounds)
        est = BinningRegressor(gamma=0.3, lam=1.0, n_components=GRIDS, solver=solver, random_state=0)
        worked, start = busy(client), time.perf_counter()
        distributed.fit(est, X, y, client=client)
        found[rounds] = (time.perf_counter() - start, float((busy(client) - worked).max()))
    seconds, cpu = (b - a for a, b in zip(found[1], found[1 + ROUNDS]))
    D = est.state_["n_columns"]
    moved = ROUNDS * D * 4 * len(client.nthreads())  # one float32 a column from each worker
    about = {"seconds": seconds, "rounds": ROUNDS, "moved": moved, "cpu": cpu}
    return about | {"whole": found[1 + ROUNDS][0], "pinning": found[1][0], "columns": D}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--work", choices=("ridge", "binning"), help="only this one")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--out", default=str(Path(__file__).parents[1] / "results"))
    args = parser.parse_args()
    counts = [int(word) for word in args.workers.split(",")]
    best: dict[tuple[str, int], dict[str, Any]] = {}
    import warnings

    warnings.simplefilter("ignore")
    for _ in range(args.repeats):
        for count in counts:
            with (
                LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0") as cluster,
                Client(cluster) as client,
            ):
                for work in (ridge, binning):
                    if args.work not in (None, work.__name__):
                        continue
                    work(2 * CHUNK, client)  # imports and first allocations
                    about = work(args.rows, client) | {"rows": args.rows, "repeats": args.repeats}
                    print(work.__name__, count, about, flush=True)
                    key = (work.__name__, count)
                    if key not in best or about["seconds"] < best[key]["seconds"]:
                        best[key] = about
    write(best, counts, Path(args.out))


def write(best: dict[tuple[str, int], dict[str, Any]], counts: list[int], out: Path) -> None:
    record = out / "many_machines.json"
    if record.exists():
        known = json.loads(record.read_text(encoding="utf-8"))["measured"]
        kept = {(key.split("/")[0], int(key.split("/")[1])): about for key, about in known.items()}
        best = kept | best
    lines = [
        f"Generated rows of {COLUMNS} columns (float32), single-threaded worker processes on one "
        f"{platform.machine()} machine. `python benchmarks/speed/many_machines.py`.\n",
        "| work | rows | workers | best of | seconds | rows/s per worker | efficiency | processor s | by it "
        "| MB a round |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    names = {
        "ridge": f"ridge, {2 * PAIRS} Fourier features",
        "binning": f"binning CG, {GRIDS} grids, {ROUNDS} rounds",
    }
    for name in ("ridge", "binning"):
        one, work = (best[name, counts[0]][key] * counts[0] for key in ("seconds", "cpu"))
        for count in counts:
            about = best[name, count]
            rounds = about["rounds"]
            n = about["rows"]
            rate = n * rounds / about["seconds"] / count
            lines.append(
                f"| {names[name]} | {n:,} | {count} | {about['repeats']} | {about['seconds']:.2f} | {rate:,.0f} | "
                f"{one / (count * about['seconds']):.2f} | {about['cpu']:.2f} | {work / (count * about['cpu']):.2f} | "
                f"{about['moved'] / rounds / 1e6:.2f} |"
            )
    extra = best["binning", counts[-1]]
    lines.append(
        f"\nBinning has {extra['columns']:,} columns; reading, cells and one round take "
        + ", ".join(f"{best['binning', count]['pinning']:.1f} s with {count}" for count in counts)
        + " workers."
    )
    (out / "many_machines.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    measured = {f"{name}/{count}": about for (name, count), about in best.items()}
    rows = {name: best[name, counts[0]]["rows"] for name in ("ridge", "binning")}
    record.write_text(json.dumps({"rows": rows, "measured": measured}, indent=1) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
