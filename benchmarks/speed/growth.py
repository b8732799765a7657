"""How cost grows with rows, columns, features, classes, budget and members: exponents measured and expected.

    python benchmarks/speed/growth.py [--full [classes,columns]] [--only rows,classes] [--jobs 8] [--out FOLDER]

Rows are generated, float32; seconds are those of the clock of an idle machine, one thread. *rows*: seconds for the
whole stream so far, 10^4 rows up to 10^8 with ``--full`` (as far as five minutes of a learner reach), 3·10^5 without.
The others: seconds a row of learners that have learned some rows already. The exponent is the slope of log(seconds)
over log(size) through the larger half of the sizes, where fixed costs have faded. A law is steep where the exponent is
above the expected one by more than 0.2.

A sparse row costs what its entries cost, but entries in random columns are read from tables that leave the caches of
the processor one after the other as columns are added. What that takes is measured beside the learner, by scipy's
product of the same rows with tables of the same size; the expected exponent is that of a cost which is the same for all
sizes but for this. Writes growth.json (what the page is made of) to benchmarks/results and growth.png to docs.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy loads its BLAS

import platform
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from kernelstream import (
    AROWClassifier,
    CellsClassifier,
    FeatureClassifier,
    KernelClassifier,
    settings,
    zoo,
)
from kernelstream.features import RandomFourier

ROOT = Path(__file__).parents[2]
STEEP = 0.2  # that an exponent may be above the expected one
ENTRIES = 20  # of a sparse row
AXES = ("rows", "columns", "sparse columns", "features", "classes", "budget", "members")


@dataclass(frozen=True)
class Law:
    """How the cost of a learner grows along one axis.

    Attributes
    ----------
    axis : str
    name : str
    build : callable
        Size (of the axis) -> a learner.
    sizes : tuple of int
        The last ones with ``--full`` only.
    expected : float
        Exponent.
    tables : tuple of int
        Numbers for each column in the tables that a sparse row is looked up in, one table after the other.
    rows : int
        That every size learns at least: of a learner that does not do the same at every row.
    """

    axis: str
    name: str
    build: Callable[[int], Any]
    sizes: tuple[int, ...]
    expected: float
    tables: tuple[int, ...] = ()
    rows: int = 0


def make(name: str, **params: Any) -> Any:
    return zoo.make(name, random_state=0, **params)


GAMMA = 0.05
TENS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
WIDE = (100, 1000, 10_000, 30_000, 100_000)
MANY = (2, 10, 30, 100, 300, 1000)
BUDGETS = (50, 100, 200, 400, 800, 1600)
COUNTS = (50, 100, 200, 400, 800, 1600)
LONG = (10_000, 30_000, 100_000, 300_000, 1_000_000, 10_000_000, 100_000_000)
SHORT = (1000, 2000, 4000, 8000, 16_000, 32_000)


def of_kernels(count: int) -> list[Any]:
    from kernelstream.kernels import Gaussian

    return [Gaussian(GAMMA * 2.0 ** (i / count)) for i in range(count)]


LAWS = [
    *(
        Law("rows", name, build, LONG, 1.0)
        for name, build in {
            "FOGD, 50 frequencies": lambda _: make("fogd", n_components=50, gamma=GAMMA),
            "NOGD, 100 landmarks": lambda _: make("nogd", gamma=GAMMA),
            "RBP, 100 vectors": lambda _: make("rbp", gamma=GAMMA),
            "RRF, 50 frequencies": lambda _: make("rrf", n_components=50),
            "ridge, 25 frequencies": lambda _: make("ridge", n_components=25, gamma=GAMMA),
            "cells": lambda _: CellsClassifier(random_state=0),
            "default learner, small": lambda _: KernelClassifier(size="small", random_state=0),
        }.items()
    ),
    Law("rows", "perceptron, no budget", lambda _: make("perceptron", gamma=GAMMA), SHORT, 2.0),
    Law("rows", "doubly SVM, no limit", lambda _: make("doubly_svm", gamma=GAMMA, eta=5.0, lam=1e-6), SHORT, 2.0),
    *(
        Law(axis, name, build, sizes, expected, tables if axis.startswith("sparse") else ())
        for axis, sizes, expected in (("columns", TENS, 1.0), ("sparse columns", WIDE, 0.0))
        for name, build, tables in (
            ("FOGD, 100 frequencies", lambda _: make("fogd", n_components=100, gamma=GAMMA), (100,)),
            ("NOGD, 100 landmarks", lambda _: make("nogd", gamma=GAMMA), (100,)),
            ("RBP, 100 vectors", lambda _: make("rbp", gamma=GAMMA), ()),
            ("linear", lambda _: FeatureClassifier("raw"), (1, 1)),  # weights and squares of gradients
        )
    ),
    Law("columns", "cells", lambda _: CellsClassifier(random_state=0), TENS[:6], 1.0, rows=16_384),
    Law("columns", "default learner, small", lambda _: KernelClassifier(size="small", random_state=0), TENS[:5], 1.0),
    Law("features", "FOGD", lambda D: make("fogd", n_components=D, gamma=GAMMA), COUNTS, 1.0),
    Law("features", "RRF", lambda D: make("rrf", n_components=D), COUNTS, 1.0),
    Law("features", "ridge", lambda D: make("ridge", n_components=D // 2, gamma=GAMMA), COUNTS, 2.0),
    Law(
        "features",
        "AROW",
        lambda D: AROWClassifier(RandomFourier(n_components=D // 2, gamma=GAMMA), random_state=0),
        COUNTS,
        2.0,
    ),
    *(
        Law("classes", name, build, MANY, 1.0)
        for name, build in {
            "FOGD, 100 frequencies": lambda _: make("fogd", task="multiclass", n_components=100, gamma=GAMMA),
            "FOGD, softmax": lambda _: make("fogd", task="multiclass", n_components=100, gamma=GAMMA, loss="softmax"),
            "NOGD, 100 landmarks": lambda _: make("nogd", task="multiclass", gamma=GAMMA),
            "RBP, 100 vectors": lambda _: make("rbp", task="multiclass", gamma=GAMMA),
            "ridge, 50 frequencies": lambda _: make("ridge", task="multiclass", n_components=50, gamma=GAMMA),
            "RRF, 50 frequencies": lambda _: make("rrf", task="multiclass", n_components=50),
            "cells": lambda _: CellsClassifier(random_state=0),
            "default learner, small": lambda _: KernelClassifier(size="small", random_state=0),
        }.items()
    ),
    *(
        Law("budget", name, lambda B, params=params: make(budget=B, gamma=GAMMA, **params), BUDGETS, expected)
        for name, params, expected in (
            ("RBP", {"name": "rbp"}, 1.0),
            ("Forgetron", {"name": "forgetron"}, 1.0),
            ("BOGD", {"name": "bogd"}, 1.0),
            ("BPA-S", {"name": "bpas"}, 1.0),
            ("BSGD, merging", {"name": "bsgd_merge"}, 1.0),
            ("Projectron", {"name": "projectron"}, 2.0),
            ("BPA-P", {"name": "bpap"}, 2.0),
            ("NOGD, rank 20", {"name": "nogd", "rank": 20}, 1.0),
        )
    ),
    Law("members", "FOGD of many widths", lambda m: make("omkl_fogd", kernels=of_kernels(m)), (2, 4, 8, 16, 32), 1.0),
    Law(
        "members",
        "RBP of many widths",
        lambda m: make("omkl_rbp_dd", kernels=of_kernels(m), budget=50 * m),
        (2, 4, 8, 16, 32),
        1.0,
    ),
]


# ------------------------------------------------------------------------------------------------------------ streams
def blocks(rows: int, columns: int, classes: int, sparse: bool) -> Iterator[tuple[Any, np.ndarray]]:
    """Blocks of rows without end; labels follow a product of two columns, a quarter of them is drawn at random."""
    rng = np.random.default_rng(0)
    many = max(16, min(rows, (1 << 22) // (ENTRIES if sparse else columns)))
    while True:
        if sparse:
            place = np.sort(rng.integers(columns, size=(many, ENTRIES)), axis=1).astype(np.int32)
            place += np.arange(ENTRIES, dtype=np.int32)  # no column twice
            starts = np.arange(0, many * ENTRIES + 1, ENTRIES, dtype=np.int32)
            values = rng.standard_normal(many * ENTRIES).astype(np.float32) / np.float32(ENTRIES**0.5)
            X: Any = sp.csr_array((values, place.ravel(), starts), shape=(many, columns + ENTRIES))
            two = values[::ENTRIES], values[1::ENTRIES]
        else:
            X = rng.standard_normal((many, columns), np.float32)
            two = X[:, 0], X[:, 1]
            X *= np.float32((10 / columns) ** 0.5)  # distances of the same size, however many columns
        y = (np.abs(two[0] * two[1]) * 1e4).astype(int) % classes if classes > 2 else (two[0] * two[1] > 0).astype(int)
        drawn = rng.random(many) < 0.25
        y[drawn] = rng.integers(classes, size=int(drawn.sum()))
        yield X, y


def row_seconds(law: Law, size: int, least: float) -> float:
    """Seconds of a row: a warm learner learns ever more rows until that takes ``least`` seconds."""
    columns = size if law.axis.endswith("columns") else 10
    classes = size if law.axis == "classes" else 2
    model = law.build(size)
    source = blocks(512, columns, classes, law.axis == "sparse columns")
    learned = 0
    while learned < max(1024, 8 * size if law.axis == "budget" else 0):  # a budget must be full
        X, y = next(source)
        model.learn(X, y, classes=np.arange(classes))
        learned += len(y)
    spent, learned = 0.0, 0
    while spent < least or learned < law.rows:
        X, y = next(source)
        start = time.perf_counter()
        model.learn(X, y)
        spent += time.perf_counter() - start
        learned += len(y)
    return spent / learned


def table_seconds(law: Law, size: int, least: float) -> float:
    """Seconds of a row that scipy takes for the product of such rows with the tables."""
    tables = [np.ones((size + ENTRIES, width), np.float32) for width in law.tables]
    source = blocks(512, size, 2, True)
    spent, rows = 0.0, -512  # the first block is not counted
    while spent < least:
        X, _ = next(source)
        start = time.perf_counter()
        for table in tables:
            X @ table
        spent += (time.perf_counter() - start) * (rows >= 0)
        rows += X.shape[0]
    return spent / rows


def stream_seconds(law: Law, sizes: tuple[int, ...], most: float) -> list[tuple[int, float]]:
    """Seconds that a learner has taken after so many rows, as far as ``most`` seconds reach."""
    model, found, spent, learned = law.build(0), [], 0.0, 0
    source = blocks(4096, 10, 2, False)
    X, y = next(source)
    at = 0
    for size, following in zip(sizes, (*sizes[1:], 0), strict=True):
        while learned < size:
            if at == len(y):
                (X, y), at = next(source), 0
            end = min(len(y), at + size - learned)
            start = time.perf_counter()
            model.learn(X[at:end], y[at:end], classes=[0, 1])
            spent += time.perf_counter() - start
            learned, at = learned + end - at, end
        found.append((size, spent))
        if len(found) > 2 and spent * following / size > most:
            break
    return found


# ------------------------------------------------------------------------------------------------------------- report
def exponent(found: list[tuple[int, float]]) -> float:
    """Slope of log(seconds) over log(size) through the larger half of the sizes, three at least."""
    part = np.log(np.array(larger_half(found), dtype=float))
    return float(np.polyfit(part[:, 0], part[:, 1], 1)[0])


def larger_half(found: list[Any]) -> list[Any]:
    return found[-max(3, (len(found) + 1) // 2) :]


def with_reading(found: list[tuple[int, float]], reading: list[float]) -> float:
    """Exponent of a cost that is the same for all sizes, but for what reading the tables takes."""
    part, read = larger_half(found), larger_half(reading)
    return exponent([(size, part[0][1] + more - read[0]) for (size, _), more in zip(part, read, strict=True)])


def study(place: int, full: bool) -> dict[str, Any]:
    """One of the laws, measured."""
    law = LAWS[place]
    settings.change(threads=1)
    warnings.simplefilter("ignore")
    row_seconds(law, law.sizes[0], 1e-3)  # what a process does once is no part of a law
    sizes = law.sizes if full else tuple(size for size in law.sizes if size <= 300_000)[: 4 if law.sizes is LONG else 5]
    reading: list[float] = []
    if law.axis == "rows":
        found = stream_seconds(law, sizes, 300.0 if full else 6.0)
    else:
        found, least = [], 0.5 if full else 0.05
        for size in sizes:
            found.append((size, row_seconds(law, size, least)))
            if law.tables:
                reading.append(table_seconds(law, size, least))
    return {
        "axis": law.axis,
        "learner": law.name,
        "sizes": [size for size, _ in found],
        "seconds": [seconds for _, seconds in found],
        "exponent": exponent(found),
        "expected": with_reading(found, reading) if reading else law.expected,
    } | ({"reading": reading} if reading else {})


def shown(seconds: float) -> str:
    return (
        f"{seconds:.3g} s"
        if seconds >= 1
        else f"{1e3 * seconds:.3g} ms"
        if seconds >= 1e-3
        else f"{1e6 * seconds:.3g} µs"
    )


def table(laws: list[dict[str, Any]]) -> dict[str, Any]:
    """What the page shows of the laws."""
    head = ["axis", "learner", "smallest", "largest", "exponent", "expected"]
    rows = []
    for law in laws:
        ends = [f"{law['sizes'][i]:,}: {shown(law['seconds'][i])}" for i in (0, -1)]
        mark = " (steep)" if law["exponent"] > law["expected"] + STEEP else ""
        expected = f"{law['expected']:.2f}, for reading" if "reading" in law else f"{law['expected']:g}"
        rows.append([law["axis"], law["learner"], *ends, f"{law['exponent']:.2f}{mark}", expected])
    return {"head": head, "rows": rows}


def picture(laws: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter

    axes = [axis for axis in AXES if any(law["axis"] == axis for law in laws)]
    figure, panels = plt.subplots(2, (len(axes) + 1) // 2, figsize=(15, 9.5), squeeze=False)
    for panel, axis in zip(panels.flat, axes, strict=False):
        for law in laws:
            if law["axis"] == axis:
                panel.loglog(
                    law["sizes"], law["seconds"], "o-", ms=3, lw=1, label=f"{law['learner']}: {law['exponent']:.2f}"
                )
        panel.set_title(axis)
        panel.set_ylabel("seconds" if axis == "rows" else "seconds a row")
        sizes = sorted({size for law in laws if law["axis"] == axis for size in law["sizes"]})
        if sizes[-1] < 100 * sizes[0]:  # no two powers of ten to write at the axis
            panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.legend(fontsize=7, ncol=2, loc="upper center", bbox_to_anchor=(0.5, -0.08))
    for panel in panels.flat[len(axes) :]:
        panel.axis("off")
    figure.tight_layout()
    figure.savefig(path, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--full",
        nargs="?",
        const=",".join(AXES),
        default="",
        help="axes with larger sizes, longer clocks: up to an hour",
    )
    parser.add_argument("--only", help="axes, with commas between them; nothing is written then")
    parser.add_argument("--jobs", type=int, default=1, help="laws that are measured at once, a core each")
    parser.add_argument("--out", type=Path, help="folder for growth.json and growth.png instead of the usual ones")
    args = parser.parse_args()
    wanted = args.only.split(",") if args.only else AXES
    full = args.full.split(",") if args.full else []
    unknown = sorted({*wanted, *full} - set(AXES))
    if unknown:
        parser.error(f"no such axis: {', '.join(unknown)}; there are {', '.join(AXES)}")
    laws = []
    places = [place for place, law in enumerate(LAWS) if law.axis in wanted]
    # processes begin as copies of this one: what builds the learners cannot be sent to others
    with ProcessPoolExecutor(max(1, args.jobs), multiprocessing.get_context("fork")) as pool:
        for law in pool.map(study, places, [LAWS[place].axis in full for place in places]):
            laws.append(law)
            print(" | ".join(table(laws[-1:])["rows"][0]), flush=True)
    if args.only and not args.out:
        return
    longest = "all axes" if set(full) == set(AXES) else ", ".join(full) or "none"
    machine = f"{platform.machine()}; axes with the largest sizes: {longest}"
    record = {"machine": machine, **table(laws), "laws": laws}
    results, pictures = (args.out, args.out) if args.out else (ROOT / "benchmarks" / "results", ROOT / "docs")
    results.mkdir(parents=True, exist_ok=True)
    (results / "growth.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    picture(laws, pictures / "growth.png")


if __name__ == "__main__":
    main()
