"""Rows per second of the streaming encoder alone: from a data frame, from CSV and one dictionary at a time.

Rows of 15 columns, 6 of them categories (of 2 to 5,000 words) and 9 numbers (float64), with gaps. Each figure stands
beside a yardstick of the same run, on one core of an idle machine, by the clock: what Python's own reader of CSV needs
for the same text, and what filling a dictionary needs.

    python benchmarks/speed/columns.py [rows]
"""

from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Callable

import numpy as np

from kernelstream.columns import Columns
from kernelstream.streams import CSV

WORDS = (2, 5, 12, 50, 400, 5_000)
NUMBERS = 9


def rows_of(n: int, seed: int = 0) -> dict[str, list]:
    """Columns of n rows: words, and numbers of two decimals of which one in a hundred is missing."""
    rng = np.random.default_rng(seed)
    made: dict[str, list] = {}
    for k, size in enumerate(WORDS):
        names = [f"word{i}" for i in range(size)]
        made[f"c{k}"] = [names[i] for i in rng.integers(0, size, n)]
    for k in range(NUMBERS):
        values = np.round(rng.normal(50, 20, n), 2)
        values[rng.random(n) < 0.01] = np.nan
        made[f"x{k}"] = values.tolist()
    return made


def best(job: Callable[[], object], times: int = 5) -> float:
    """Seconds, the least of some tries."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        job()
        found.append(time.perf_counter() - start)
    return min(found)


def main(n: int) -> None:
    import pandas as pd

    table = rows_of(n)
    y = (np.arange(n) % 3 == 0).astype(str)
    frame = pd.DataFrame(table)
    records = [{k: v for k, v in row.items() if v == v} for row in frame.to_dict("records")]
    text = frame.assign(y=y).to_csv(index=False).encode()
    labels = y.tolist()

    def from_frame() -> None:
        encoder = Columns()
        for start in range(0, n, 10_000):
            encoder.learn_transform(frame.iloc[start : start + 10_000], y[start : start + 10_000])

    def from_csv() -> None:
        encoder = Columns()
        stream = CSV(io.BytesIO(text), "y", mixed=True)
        while (block := stream.read()) is not None:
            encoder.learn_transform(*block)

    def by_dictionary() -> None:
        encoder = Columns()
        for row, label in zip(records, labels):
            encoder.learn_transform(row, label)

    def one_learned() -> None:
        for row in records:
            seen.transform(row)

    def plain_csv() -> None:
        for _ in csv.reader(io.StringIO(text.decode())):
            pass

    def dictionaries() -> None:
        for row in records:
            dict(row.items())

    seen = Columns().fit(frame, y)
    yardsticks = {"csv.reader": best(plain_csv), "a copy of a dictionary": best(dictionaries)}
    print(f"{'':24}{'rows/s':>12}{'yardstick':>28}")
    for name, job, beside in (
        ("from a frame", from_frame, "csv.reader"),
        ("from CSV", from_csv, "csv.reader"),
        ("a dictionary, learned", by_dictionary, "a copy of a dictionary"),
        ("a dictionary, encoded", one_learned, "a copy of a dictionary"),
    ):
        seconds = best(job)
        share = yardsticks[beside] / seconds
        print(f"{name:24}{n / seconds:>12,.0f}{share:>16.2f} of {beside}")
    for name, seconds in yardsticks.items():
        print(f"{name:24}{n / seconds:>12,.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
