"""Speed of the pass that learns its kernel, against the two bare products per row that its algebra needs.

    python benchmarks/speed/rrf.py [--rows N] [--repeats R] [--write]

Rows are shaped like ijcnn1 (22 columns), float32, D = 100 frequencies, one thread (``OPENBLAS_NUM_THREADS=1``). The
yardstick is u = E'x and h = E u of all rows at once, by BLAS, in float32 and nothing else. All are interleaved in one
run and the best of each is taken.

* "every row acts": random labels, no zeros in the rows, a loss (logistic) whose gradient is never 0: the most a row can
  cost.
* "hinge, random labels": the hinge is active on most rows.
* "ijcnn1": the real data in random order with the default parameters, where it is there: most rows are right and cost
  only their score, and 9 of the 22 columns are 0.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kernelstream import RRFClassifier, datasets
from kernelstream.features.spectra import Diagonal

D, WIDTH = 100, 22


def learner(X: np.ndarray, y: np.ndarray, loss: str) -> Callable[[], None]:
    """A call that learns all rows, on a model that is past its warm-up."""
    model = RRFClassifier(D, loss=loss, engine="native", random_state=0)
    model.learn(X[:200], y[:200])
    return lambda: model.learn(X, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="keep the table in benchmarks/results")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((args.rows, WIDTH), np.float32)
    y = np.where(rng.random(args.rows) < 0.5, -1, 1)
    E = Diagonal().draw(0, WIDTH, D, np.float32)
    jobs: dict[str, tuple[int, Callable[[], None]]] = {
        "two bare products": (args.rows, lambda: (X @ E) @ E.T),
        "every row acts": (args.rows, learner(X, y, "logistic")),
        "hinge, random labels": (args.rows, learner(X, y, "hinge")),
    }
    if "ijcnn1" in datasets.names():
        rows, labels = datasets.load("ijcnn1", return_X_y=True)
        order = rng.permutation(len(labels))[: args.rows]
        jobs["ijcnn1, defaults"] = (len(order), learner(np.ascontiguousarray(rows[order]), labels[order], "hinge"))
    best = dict.fromkeys(jobs, np.inf)
    for _ in range(args.repeats):
        for name, (n, job) in jobs.items():
            start = time.perf_counter()
            job()
            best[name] = min(best[name], (time.perf_counter() - start) / n)
    base = best["two bare products"]
    lines = ["| one thread, float32 | µs per row | rows per second | ratio |", "| --- | --- | --- | --- |"]
    for name, seconds in best.items():
        lines.append(f"| {name} | {1e6 * seconds:.2f} | {1 / seconds:,.0f} | {seconds / base:.2f} |")
    print("\n".join(lines), "\nrequired: a ratio of at most 6")
    if args.write:
        path = Path(__file__).parents[1] / "results" / "rrf_speed.md"
        path.write_text("## Speed, D = 100, 22 columns\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
