"""Seconds of ``fit`` of the default learner by rows, columns and threads, alone and beside busy processes.

    python benchmarks/speed/fit_times.py [--rows 12000,32000] [--columns 8,30] [--threads 1,2,4] [--busy 4] [--repeat 1]

Every run is a process of its own; wall time and processor time are the least of the runs. The target is a function of
four columns with noise. Nothing is written.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys

from busy import beside

TIMED = """
import time
import numpy as np
from kernelstream import KernelRegressor, settings
settings.change(threads={threads})
rng = np.random.default_rng(0)
X = rng.normal(size=({rows}, {columns}))
y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + abs(X[:, 3]) + 0.3 * rng.normal(size={rows})
KernelRegressor(size="small").fit(X[:300], y[:300])  # what is made only once
wall, processor = time.perf_counter(), time.process_time()
KernelRegressor(random_state=0).fit(X, y)
print(time.perf_counter() - wall, time.process_time() - processor)
"""


def seconds(rows: int, columns: int, threads: int, repeat: int) -> tuple[float, float]:
    """Wall time and processor time of ``fit``, the least of some runs."""
    code, environment = TIMED.format(rows=rows, columns=columns, threads=threads), os.environ | {"OMP_NUM_THREADS": "1"}
    runs = []
    for _ in range(repeat):
        found = subprocess.run(
            [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
        )
        runs.append([float(number) for number in found.stdout.split()])
    wall, processor = (min(column) for column in zip(*runs, strict=True))
    return wall, processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("rows", "12000,32000"), ("columns", "8,30"), ("threads", "1,2,4")):
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--busy", type=int, default=4, help="busy processes")
    parser.add_argument("--repeat", type=int, default=1)
    given = parser.parse_args()
    print("| rows | columns | threads | busy processes | seconds | of processors |\n|---:|---:|---:|---:|---:|---:|")
    lists = ([int(number) for number in text.split(",")] for text in (given.rows, given.columns, given.threads))
    for rows, columns, threads in itertools.product(*lists):
        for count in dict.fromkeys((0, given.busy)):
            with beside(count):
                wall, processor = seconds(rows, columns, threads, given.repeat)
            print(f"| {rows:,} | {columns} | {threads} | {count} | {wall:.2f} | {processor:.2f} |", flush=True)


if __name__ == "__main__":
    main()
