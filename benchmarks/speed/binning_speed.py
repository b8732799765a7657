"""Speed of random binning: feature generation, the product of conjugate gradients, coordinate descent with threads.

    python benchmarks/speed/binning_speed.py [--rows 1000000] [--threads 2] [--parts features,products,cd] [--out FILE]

Rows are float32. Every ratio is measured in one run on an idle machine, the two sides interleaved, best of several. The
bounds are measured too:

- copy bandwidth: bytes read and written by ``numpy.copyto`` of an array of the size of the index, in as many threads;
- arithmetic: 7 operations (a subtraction and three multiply-adds) for every row, column and grid, at the rate of a
  float32 matrix product in as many threads. Columns that a grid does not cut are skipped, so it is not a strict bound.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.preprocessing import KBinsDiscretizer

from kernelstream import datasets, engine, kernels, losses
from kernelstream.core import grids as _grids
from kernelstream.core.cell_matrix import CellMatrix
from kernelstream.core.cells_native import (
    bucket_cells,
    cell_table,
    cells_times,
    cells_transposed_times,
    find_cells,
    number_cells,
)
from kernelstream.features import RandomBinning
from kernelstream.solvers import CoordinateDescent, Problem

lines: list[str] = []
clock = time.perf_counter


def say(text: str) -> None:
    print(text, flush=True)
    lines.append(text)


def best(functions: dict, repeats: int = 3) -> dict[str, float]:
    """Shortest time of each, taken in turn."""
    times = dict.fromkeys(functions, np.inf)
    for _ in range(repeats):
        for name, function in functions.items():
            start = clock()
            function()
            times[name] = min(times[name], clock() - start)
    return times


def copy_in_threads(source: np.ndarray, target: np.ndarray, threads: int) -> None:
    parts = list(zip(np.array_split(source.ravel(), threads), np.array_split(target.ravel(), threads)))
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), parts))


def rows_of(kind: str, n: int) -> np.ndarray:
    """Rows of width 54: dense uniform ones, or covtype's with its 44 indicator columns."""
    rng = np.random.default_rng(0)
    if kind == "uniform":
        return rng.random((n, 54), dtype=np.float32)
    X = datasets.load("covtype", scale="minmax").X
    return np.ascontiguousarray(X[rng.integers(0, len(X), n)], np.float32)


def flops(threads: int) -> float:
    """Operations a second of a float32 product, in as many threads (BLAS itself should be told to use one)."""
    A = np.ones((768, 768), np.float32)

    def multiply():
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda _: A @ A, range(4 * threads)))

    return 4 * threads * 2 * 768**3 / best({"gemm": multiply}, 5)["gemm"]


def feature_generation(kind: str, gamma: float, n: int, R: int, threads: int, distinct: bool) -> None:
    X = rows_of(kind, n)
    grids = _grids.draw(kernels.Laplacian(gamma), 0, 54, R, np.float32)
    index = np.ones((R, n), np.int32)
    other = np.ones_like(index)
    found: dict = {}

    def number():
        found["cells"] = number_cells(X, grids, threads)

    jobs = {
        "hash": lambda: bucket_cells(X, grids, 10_000, threads),
        "copy": lambda: copy_in_threads(index, other, threads),
    }
    times = best(jobs | ({} if distinct else {"number": number}))
    bandwidth = 2 * index.nbytes / times["copy"]
    memory = (X.nbytes + index.nbytes) / bandwidth  # every row read once, every column number written once
    arithmetic = 7 * n * 54 * R / flops(threads)
    bound = max(memory, arithmetic)
    own = "| - | - | - | - "
    if not distinct:
        table = cell_table(*found["cells"][1:])
        times |= best({"find": lambda: find_cells(X, grids, table, threads)}, 2)
        cells = len(found["cells"][1]) / R
        own = f"| {cells:,.0f} | {times['number']:.2f} | {times['find']:.2f} | {bound / times['number']:.0%} "
    say(f"| {kind} | {gamma:g} | {n:,} | {R} | {memory:.3f} | {arithmetic:.2f} | {times['hash']:.2f} | "
        f"{bound / times['hash']:.0%} {own}|")  # fmt: skip


def against_others(n: int, R: int) -> None:
    """The same one-hot features by scikit-learn's KBinsDiscretizer and by a dictionary of tuples, on fewer rows."""
    X = rows_of("uniform", n)[:, :54]
    binning = RandomBinning(gamma=0.2, n_components=R, random_state=0)
    grids = _grids.draw(kernels.Laplacian(0.2), 0, 54, R, np.float32)

    def dictionary():
        columns: dict = {}
        for r in range(R):
            place = np.rint((X - grids.offset[r]) * grids.inverse[r]).astype(np.int64)
            for row in place:
                columns.setdefault((r, row.tobytes()), len(columns))

    def discretizer():  # its one-hot code, once a grid: one column per coordinate and bin, so even less work per grid
        for _ in range(R):
            KBinsDiscretizer(5, encode="onehot", strategy="uniform", subsample=None).fit_transform(X)

    times = best({"ours": lambda: binning.fit_transform(X), "dict": dictionary, "kbins": discretizer}, 2)
    say(f"\nOne thread, {n:,} rows, R = {R}, `RandomBinning.fit_transform` to a CSR matrix {times['ours']:.3f} s: "
        f"{times['dict'] / times['ours']:.0f} times a dictionary of tuples ({times['dict']:.2f} s), "
        f"{times['kbins'] / times['ours']:.0f} times `KBinsDiscretizer` once a grid "
        f"({times['kbins']:.2f} s).")  # fmt: skip


def products(n: int, R: int, threads: int) -> None:
    """Z'(Z v) of conjugate gradients against the copy of its index traffic (the index is read twice)."""
    say("\n| rows | order | n | R | columns | Z v, s | Z'u, s | copy of the index, s | share of the copy bandwidth |")
    say("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    from kernelstream.estimators.binning.fit import make_features

    for kind, gamma in (("uniform", 0.2), ("covtype", 8.0)):
        X = rows_of(kind, n)
        grids = _grids.draw(kernels.Laplacian(gamma), 0, 54, R, np.float32)
        for order in ("given", "sorted"):
            if order == "sorted":
                Z = make_features(X, grids, engine.get("native"), threads).Z
            else:
                cells, _, starts = number_cells(X, grids, threads)
                Z = CellMatrix(cells, starts, engine.get("native").binning, threads)
            v = np.ones((Z.shape[1], 1), np.float32)
            u = np.ones((n, 1), np.float32)
            other = np.empty_like(Z.cells)
            times = best(
                {
                    "dot": partial(cells_times, Z.cells, Z.starts, v, False, threads),
                    "tdot": partial(cells_transposed_times, Z.cells, Z.starts, u, threads),
                    "copy": partial(copy_in_threads, Z.cells, other, threads),
                },
                4,
            )
            bandwidth = 2 * other.nbytes / times["copy"]
            share = 2 * other.nbytes / (times["dot"] + times["tdot"]) / bandwidth
            say(f"| {kind} | {order} | {n:,} | {R} | {Z.shape[1]:,} | {times['dot']:.3f} | {times['tdot']:.3f} | "
                f"{times['copy']:.3f} | {share:.0%} |")  # fmt: skip


def coordinate_descent(threads: int, rows: int) -> None:
    """L1 on covtype, one thread and several."""
    data = datasets.load("covtype", scale="minmax")
    order = np.random.default_rng(0).permutation(len(data.y))[:rows]
    X, y = np.ascontiguousarray(data.X[order], np.float32), np.where(data.y[order] == 2, 1.0, -1.0)
    say("\n| features | loss | columns | lam | passes | seconds, 1 thread | "
        f"seconds, {threads} threads | speed-up | objective, relative gap |")  # fmt: skip
    say("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    ops = engine.get("native")
    grids = _grids.draw(kernels.Laplacian(8.0), 0, 54, 60, np.float32)
    from kernelstream.estimators.binning.fit import make_features

    made = make_features(X, grids, ops, threads)
    Z, target = made.Z, y[made.order] if made.order is not None else y
    for loss in ("squared_hinge", "squared", "logistic"):
        slopes = losses.get(loss).gradient(target, np.zeros(len(target)))
        lam = 5e-4 * float(np.abs(Z.tdot(slopes[:, None])).max())
        solutions = {}

        def solve(count, loss=loss, lam=lam, solutions=solutions):
            solver = CoordinateDescent(tol=1e-3, max_iter=400)
            problem = Problem(Z, target[:, None], losses.get(loss), lam, ops, threads=count)
            solutions[count] = solver.solve(problem)

        times = best({"one": lambda: solve(1), "many": lambda: solve(threads)}, 2)
        one, many = (solutions[count].history[-1] for count in (1, threads))
        say(f"| binning | {loss} | {Z.shape[1]:,} | {lam:.3g} | {solutions[1].n_iter} / {solutions[threads].n_iter} | "
            f"{times['one']:.2f} | {times['many']:.2f} | {times['one'] / times['many']:.2f} | "
            f"{abs(one - many) / abs(one):.1e} |")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--grids", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cd-rows", type=int, default=120_000)
    parser.add_argument("--parts", default="features,others,products,cd")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    parts = args.parts.split(",")
    if "features" in parts:
        say("| rows | gamma | n | R | memory bound, s | arithmetic bound, s | hashed columns, s | share of the bound | "
            "cells a grid | own columns (`fit`), s | look-up, s | share of the bound, `fit` |")  # fmt: skip
        say("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
        for kind, gamma in (("uniform", 0.2), ("uniform", 2.0), ("covtype", 8.0)):
            feature_generation(kind, gamma, args.rows, args.grids, args.threads, distinct=gamma == 2.0)
    if "others" in parts:
        against_others(20_000, 20)
    if "products" in parts:
        products(args.rows, args.grids, args.threads)
    if "cd" in parts:
        coordinate_descent(args.threads, args.cd_rows)
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
