"""What 10^9, 10^10 and 10^12 rows would cost, from constants measured on few rows and a simulated schedule.

    python benchmarks/speed/scale_on_paper.py [--machine "two ARM cores"] [--page]

Measures the seconds of a row of float64 for each way of learning, on an idle machine, the bytes of its model and of
what it sends, and the time of reading a row of text. Then partitions of a million rows are handed to workers as they
become free, with times that vary by a tenth, and what each round sends goes up and down a binary tree of workers.
Writes results/scale_on_paper.json (the constants) and results/scale_on_paper.md (the tables); ``--page`` puts them into
docs/scale.md.
"""

from __future__ import annotations

import argparse
import heapq
import io
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelstream import (
    BinningRegressor,
    FeatureClassifier,
    KernelClassifier,
    OnlineRidge,
    streams,
)
from kernelstream.evaluate import model_bytes
from kernelstream.features import RandomFourier

RESULTS = Path(__file__).parents[1] / "results"
PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
COLUMNS = 20
ROWS = (10**9, 10**10, 10**12)
WORKERS = (1, 16, 256, 4096)
PARTITION = 10**6
NETWORK = 1.25e9  # bytes a second between two workers: ten gigabits
LATENCY = 2e-3  # seconds a message, the scheduler's part included
SPREAD = 0.1  # of the time of a partition
MOST = 20_000  # partitions that are simulated one by one; more are taken together
KEYS = 10**6  # learners, one for each key


@dataclass
class Way:
    """One way of learning.

    Attributes
    ----------
    name : str
    seconds : float
        Those of a row in one round, reading not counted.
    rounds : int
        How often all rows are gone through.
    sent : int
        Bytes to and from a worker in a round.
    memory : int
        Bytes of the model on a worker.
    workers : int
        The most workers that it can use.
    """

    name: str
    seconds: float
    rounds: int
    sent: int
    memory: int
    workers: int


def rate(call: Callable[[], Any], rows: int) -> float:
    """Seconds of a row: the least of three."""
    found = []
    for _ in range(3):
        started = time.perf_counter()
        call()
        found.append((time.perf_counter() - started) / rows)
    return min(found)


def measure() -> tuple[list[Way], float, float]:
    """The ways with their constants; seconds and bytes of a row of text."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, COLUMNS))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=len(X))
    labels = y > 0
    text = io.StringIO()
    np.savetxt(text, np.column_stack([y, X])[:5000], delimiter=",", fmt="%.6g")
    content = ("y," + ",".join(f"x{j}" for j in range(COLUMNS)) + "\n" + text.getvalue()).encode()
    reading = rate(lambda: [None for _ in streams.open(io.BytesIO(content), "csv", target="y")], 5000)

    def streaming(model: Any, target: Any, rows: int) -> tuple[float, int]:
        model.learn(X[:1000], target[:1000])  # what happens once is left out
        return rate(lambda: model.learn(X[:rows], target[:rows]), rows), model_bytes(model)

    features = FeatureClassifier(random_state=0)
    first, first_bytes = streaming(features, labels, 20_000)
    one = KernelClassifier(random_state=0)
    every, every_bytes = streaming(one, labels, 3000)
    ridge = OnlineRidge(RandomFourier(n_components=256), random_state=0)
    second, second_bytes = streaming(ridge, y, 10_000)
    grids = BinningRegressor(n_components=64, gamma=0.5, lam=0.01, random_state=0)
    started = time.perf_counter()
    grids.fit(X[:10_000], y[:10_000])
    rounds = int(grids.n_iter_) + 3
    binning = (time.perf_counter() - started) / 10_000 / rounds
    cells = 8 * grids.coef_.size
    P = 512
    return (
        [
            Way("one learner, features and steps", first, 1, 0, first_bytes, 1),
            Way("one learner, `KernelClassifier`", every, 1, 0, every_bytes, 1),
            Way("ridge, 512 features, exact merge", second, 1, 8 * P * P + 16 * P, second_bytes, max(WORKERS)),
            Way(f"random binning, 64 grids, {rounds} rounds", binning, rounds, 2 * cells, 2 * cells, max(WORKERS)),
            Way("a million keys, a learner each", first, 1, 0, KEYS * first_bytes, max(WORKERS)),
        ],
        reading,
        len(content) / 5000,
    )


def hours(way: Way, n: int, workers: int, reading: float, seed: int = 0) -> float:
    """Hours of the clock: partitions go to workers as they become free, then the round's message goes along a tree."""
    pieces = max(1, n // PARTITION)
    size = n / min(pieces, MOST)
    rng = np.random.default_rng(seed)
    total = 0.0
    for r in range(way.rounds):
        own = way.seconds + (reading if r == 0 else 0.0)  # rows that fit into the workers' memory are read once
        free = [0.0] * workers
        for factor in np.exp(SPREAD * rng.standard_normal(min(pieces, MOST))):
            heapq.heappush(free, heapq.heappop(free) + size * own * factor)
        steps = math.ceil(math.log2(workers)) if workers > 1 else 0
        total += max(free) + (2 * steps * (way.sent / NETWORK + LATENCY) if way.sent else 0.0)
        if r == 2:  # further rounds are like this one
            total += (way.rounds - 3) * (max(free) + 2 * steps * (way.sent / NETWORK + LATENCY))
            break
    return total / 3600


def show(bytes_: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
        if bytes_ < 1000 or unit == "PB":
            return f"{bytes_:.3g} {unit}"
        bytes_ /= 1000
    raise AssertionError


def duration(h: float) -> str:
    if h < 1:
        return f"{60 * h:.0f} min" if h >= 1 / 60 else f"{3600 * h:.1f} s"
    if h < 72:
        return f"{h:.1f} h"
    return f"{h / 24:.0f} days" if h < 24 * 730 else f"{h / 24 / 365:.0f} years"


def tables(ways: list[Way], reading: float, row_bytes: float, machine: str) -> str:
    lines = [f"Measured on {machine}, rows of {COLUMNS} columns. Reading a row of CSV: {1e6 * reading:.2f} µs for"]
    lines += [f"{row_bytes:.0f} bytes. The rest, of a row and round:", ""]
    lines += ["| way | time | rounds | sent by a worker in a round | model on a worker | workers of use |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    for way in ways:
        sent = show(way.sent) if way.sent else "nothing"
        row = [f"{1e6 * way.seconds:.2f} µs", str(way.rounds), sent, show(way.memory), f"{way.workers:,}"]
        lines += [f"| {way.name} | {' | '.join(row)} |"]
    for n in ROWS:
        power = round(math.log10(n))
        lines += ["", f"**10^{power} rows** ({show(n * row_bytes)} of text, {show(4 * n * COLUMNS)} as float32):", ""]
        heads = [f"{k:,} core{'s' if k > 1 else ''}" for k in WORKERS]
        lines += [f"| way | core hours | {' | '.join(heads)} |"]
        lines += ["|---|---:|" + "---:|" * len(WORKERS)]
        for way in ways:
            each = n * (way.rounds * way.seconds + reading) / 3600
            row = [duration(hours(way, n, k, reading)) if k <= way.workers else "" for k in WORKERS]
            lines += [f"| {way.name} | {each:,.0f} | {' | '.join(row)} |"]
    return "\n".join(lines)


def insert(page: str, table: str) -> str:
    """The page with the tables between their markers."""
    start, end = "<!-- tables: written by benchmarks/speed/scale_on_paper.py -->", "<!-- end of tables -->"
    before, found, rest = page.partition(start)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page lacks the lines {start} and {end}")
    return f"{before}{start}\n{table}\n{end}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", help="measure again, on a machine of this name")
    parser.add_argument("--page", action="store_true", help="put the tables into docs/scale.md")
    args = parser.parse_args()
    kept = RESULTS / "scale_on_paper.json"
    if args.machine:
        ways, reading, row_bytes = measure()
        kept.write_text(
            json.dumps(
                {
                    "machine": args.machine,
                    "reading": reading,
                    "row_bytes": row_bytes,
                    "ways": [asdict(way) for way in ways],
                },
                indent=1,
            )
            + "\n"
        )
    found = json.loads(kept.read_text())
    table = tables([Way(**way) for way in found["ways"]], found["reading"], found["row_bytes"], found["machine"])
    (RESULTS / "scale_on_paper.md").write_text(table + "\n")
    if args.page:
        PAGE.write_text(insert(PAGE.read_text(), table))
    print(table)


if __name__ == "__main__":
    main()
