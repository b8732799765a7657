"""What sixteen Gaussian kernels cost, against one learner of the same capacity.

    KERNELSTREAM_DATA=... python benchmarks/speed/multi_kernel.py [--rows 20000] [--repeats 3]

Microseconds per row in steady state (the first 2,000 rows are not timed), the best of interleaved repeats, by the clock
of an idle machine; with one thread, and with all threads if there are several. Rows are those of the data sets.
"One learner" is the mean over the sixteen kernels, each learning alone. Widths sigma = 2^-8 … 2^7.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kernelstream import datasets, settings, zoo
from kernelstream.kernels import Gaussian

RESULTS = Path(__file__).parents[1] / "results"
KERNELS = [Gaussian(0.5 / 4.0**k) for k in range(-8, 8)]
WARM = 2000
SETS = {"cod-rna": "standard", "ijcnn1": None, "a9a": None}
LEARNERS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "FOGD, D = 100": ("fogd", {"n_components": 100}, "omkl_fogd", {"n_components": 100}),
    "FOGD, D = 100, constant step": (
        "fogd",
        {"n_components": 100, "eta": 1.0},
        "omkl_fogd",
        {"n_components": 100, "eta": 1.0},
    ),
    "RBP, budget 100": ("rbp", {"budget": 100}, "omkl_rbp_dd", {"budget": 1600}),
    "BOGD, budget 100": ("bogd", {"budget": 100}, "omkl_bogd_dd", {"budget": 1600}),
    "BPA-S, budget 100": ("bpas", {"budget": 100}, "omkl_bpas_dd", {"budget": 1600}),
}


def cost(make: Callable[[], Any], X: Any, y: np.ndarray) -> float:
    """Microseconds per row of one pass."""
    est = make()
    est.learn(X[:WARM], y[:WARM], classes=[-1, 1])
    X, y = X[WARM:], y[WARM:]
    start = time.perf_counter()
    est.learn(X, y)
    return 1e6 * (time.perf_counter() - start) / len(y)


def main(rows: int, repeats: int) -> str:
    available = settings.threads()
    text = [f"{rows:,} rows, best of {repeats}; all threads: {available}.\n"]
    text.append(
        "| rows | learner | one, µs | sixteen, µs | ratio | ratio, all threads |\n| --- | --- | --- | --- | --- | --- |"
    )
    for name, scale in SETS.items():
        X, y = datasets.load(name, scale=scale, return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))[: rows + WARM]
        X, y = X[order], y[order]
        for label, (single, own, many, common) in LEARNERS.items():
            best: dict[tuple[int, str], float] = {}
            for _ in range(repeats):
                for count in {available, 1}:
                    settings.change(threads=count)
                    alone = [cost(partial(zoo.make, single, kernel=k, random_state=0, **own), X, y) for k in KERNELS]
                    joint = cost(partial(zoo.make, many, kernels=KERNELS, random_state=0, **common), X, y)
                    for kind, value in (("one", float(np.mean(alone))), ("all", joint)):
                        best[count, kind] = min(value, best.get((count, kind), np.inf))
            one, sixteen = best[1, "one"], best[1, "all"]
            parallel = f"{best[available, 'all'] / best[available, 'one']:.1f}" if available > 1 else ""
            text.append(
                f"| {name}, {X.dtype} | {label} | {one:.2f} | {sixteen:.2f} | {sixteen / one:.1f} | {parallel} |"
            )
            print(text[-1], flush=True)
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--machine", default="", help="words for the table's head")
    chosen = parser.parse_args()
    written = main(chosen.rows, chosen.repeats)
    head = f"Written by `python benchmarks/speed/multi_kernel.py`. {chosen.machine}".strip()
    (RESULTS / "multi_kernel.md").write_text(head + "\n\n" + written)
