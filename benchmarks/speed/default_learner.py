"""Rows per second of the default learner, beside what people use, in one run on one core.

    python benchmarks/speed/default_learner.py [--rows 20000]
    python benchmarks/speed/default_learner.py --four

d = 20 columns of float64, two classes; blocks of 1,000 rows and one by one, by the clock of an idle machine. Peers that
are not installed are left out.
Writes benchmarks/results/default_learner.md. With ``--four`` only "medium" and "small" are measured, in some seconds,
with the time of a first row in a fresh process and the gain from a second thread, and nothing is written.
"""

from __future__ import annotations

import argparse
import copy
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline

from kernelstream import FeatureClassifier, KernelClassifier, settings

HERE = Path(__file__).parents[1] / "results"


def stream(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, 20))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(rows) > 0).astype(int)


def rate(learn, X: np.ndarray, y: np.ndarray, block: int) -> float:
    """Rows per second; test then train."""
    start = time.perf_counter()
    for a in range(0, len(X), block):
        learn(X[a : a + block], y[a : a + block])
    return len(X) / (time.perf_counter() - start)


def best_rate(model, *how) -> float:
    """The best of three, each by a copy of the model: other programs on the machine slow some of them down."""
    return max(rate(copy.deepcopy(model).learn, *how) for _ in range(3))


class Sampled:
    """RBFSampler and SGDClassifier, which predict a block and then learn it."""

    def __init__(self, X: np.ndarray, y: np.ndarray):
        self.pipe = make_pipeline(RBFSampler(n_components=100, random_state=0), SGDClassifier(random_state=0))
        self.pipe.fit(X, y)

    def learn(self, X: np.ndarray, y: np.ndarray) -> None:
        Z = self.pipe[0].transform(X)
        self.pipe[1].predict(Z)
        self.pipe[1].partial_fit(Z, y)


class RiverForest:
    """River's adaptive random forest of ten trees."""

    def __init__(self, X: np.ndarray, y: np.ndarray):
        from river import forest

        self.model = forest.ARFClassifier(seed=0)

    def learn(self, X: np.ndarray, y: np.ndarray) -> None:
        for x, label in zip(X, y, strict=True):
            row = dict(enumerate(x.tolist()))
            self.model.predict_proba_one(row)
            self.model.learn_one(row, int(label))


def main(rows: int) -> str:
    X, y = stream(rows + 5000)
    warm = slice(0, 5000)
    few = slice(5000, 5000 + min(rows, 2000))
    found = {}
    for size in ("small", "medium", "large"):
        model = KernelClassifier(size=size, random_state=0).partial_fit(X[warm], y[warm])
        one = best_rate(model, X[few], y[few], 1)
        megabytes = sum(value.nbytes for value in model.state_.values() if hasattr(value, "nbytes")) / 1e6
        found[f"KernelClassifier, {size}"] = (best_rate(model, X[5000:], y[5000:], 1000), one, megabytes)
    model = FeatureClassifier(random_state=0).partial_fit(X[warm], y[warm])
    found["FeatureClassifier"] = (
        best_rate(model, X[5000:], y[5000:], 1000),
        best_rate(model, X[few], y[few], 1),
        None,
    )
    peer = Sampled(X[warm], y[warm])
    found["RBFSampler + SGDClassifier"] = (
        best_rate(peer, X[5000:], y[5000:], 1000), best_rate(peer, X[few], y[few], 1), None,
    )  # fmt: skip
    try:
        forest = RiverForest(X, y)
        found["River ARF"] = (None, rate(forest.learn, X[few], y[few], 1), None)
    except ImportError:
        pass
    lines = [f"Processor: {platform.machine()}, {_processor()}; one thread, rows of float64.", ""]
    lines += ["| | rows/s, blocks of 1,000 | rows/s, one by one | state, MB |", "|---|---:|---:|---:|"]
    for name, cells in found.items():
        shown = ["" if cell is None else f"{cell:,.0f}" if cell > 100 else f"{cell:.1f}" for cell in cells]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


FIRST = """
import time
start = time.perf_counter()
import numpy as np
from kernelstream import KernelClassifier
ready = time.perf_counter()
model = KernelClassifier(random_state=0)
model.learn(np.random.default_rng(0).standard_normal((1, 20)), np.array([0]))
print(f"{ready - start:.2f} s to import, {time.perf_counter() - ready:.2f} s for the first row")
"""


def four(rows: int) -> str:
    """Rows per second of "medium" and "small", in blocks of 1,000 and one by one."""
    X, y = stream(rows + 5000)
    few = slice(5000, 5000 + min(rows, 3000))
    lines = [f"Processor: {platform.machine()}, {_processor()}"]
    for size in ("medium", "small"):
        model = KernelClassifier(size=size, random_state=0).partial_fit(X[:5000], y[:5000])
        one = best_rate(model, X[few], y[few], 1)
        ask = rate(lambda x, _, model=model: model.predict_proba(x), X[few], y[few], 1)
        blocks = best_rate(model, X[5000:], y[5000:], 1000)
        settings.change(threads=2)
        both = best_rate(model, X[5000:], y[5000:], 1000)
        settings.change(threads=1)
        lines.append(
            f"{size:6}  {blocks:9,.0f} rows/s in blocks of 1,000  {one:9,.0f} one by one  {ask:9,.0f} predict_proba of "
            f"one row  {both / blocks:.2f} times as fast with two threads"
        )
    first = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    return "\n".join([*lines, first.stdout.strip()])


def _processor() -> str:
    try:
        names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    except OSError:
        names = []
    return names[0].partition(":")[2].strip() if names else platform.processor() or "unknown"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--four", action="store_true", help="medium and small only, in some seconds")
    given = parser.parse_args()
    settings.change(threads=1)
    if given.four:
        print(four(given.rows))
        sys.exit()
    text = main(given.rows)
    print(text)
    (HERE / "default_learner.md").write_text(f"# Speed of the default learner\n\n{text}")
