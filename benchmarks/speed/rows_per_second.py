"""Rows per second of FOGD against scikit-learn and against the machine, each pair measured in one run.

    python benchmarks/speed/rows_per_second.py [--rows 20000] [--repeat 3]

Rows of ijcnn1 (22 columns), a9a (123 columns, CSR, 14 entries a row) and mnist (784 columns): the data themselves where
KERNELSTREAM_DATA names their folder, else random rows of their shapes. D = 1000 frequencies (2000 features), float32.
All times are those of the clock on the wall, on one thread, so the machine should be idle.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy loads its BLAS

import resource
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

from kernelstream import datasets, settings, zoo

D = 1000
GAMMA = 0.1


def rows_of(name: str, n: int) -> tuple:
    """n rows and labels -1, +1 of a data set, or of its shape."""
    rng = np.random.default_rng(0)
    d = {"ijcnn1": 22, "a9a": 123, "mnist": 784}[name]
    if name in datasets.names():
        data = datasets.load(name)
        order = rng.permutation(len(data.y))[:n]
        X, y = data.X[order], data.y[order]
        if name == "mnist":
            return X / np.float32(255), np.where(y % 2 == 0, 1, -1)
        return X.astype(np.float32), np.where(y > 0, 1, -1)
    if name == "a9a":
        indices = np.sort(np.argsort(rng.random((n, d)), axis=1)[:, :14], axis=1).astype(np.int32).ravel()
        indptr = np.arange(0, 14 * n + 1, 14, dtype=np.int32)
        X = sp.csr_array((np.ones(14 * n, np.float32), indices, indptr), shape=(n, d))
        signal = np.asarray(X[:, :20].sum(axis=1)).ravel() - 2
    else:
        X = (rng.normal(size=(n, d)) / np.sqrt(d)).astype(np.float32)
        signal = X[:, 0] * X[:, 1]
    return X, np.where(signal > 0, 1, -1)


def shapes(n: int) -> dict[str, tuple]:
    """Rows of each shape; fewer of the wide ones."""
    return {name: rows_of(name, n if name != "mnist" else n // 4) for name in ("ijcnn1", "a9a", "mnist")}


def seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ours(X, y, eta):
    model = zoo.make("fogd", n_components=D, gamma=GAMMA, eta=eta, random_state=0)
    model.learn(X[:2], y[:2], classes=[-1, 1])
    return lambda: [model.learn(X[i : i + 4096], y[i : i + 4096]) for i in range(0, X.shape[0], 4096)]


def scikit_learn(X, y):
    sampler = RBFSampler(gamma=GAMMA, n_components=2 * D, random_state=0).fit(X[:256])
    model = SGDClassifier(random_state=0)

    def run():
        for i in range(0, X.shape[0], 256):
            Z = sampler.transform(X[i : i + 256])
            if i:
                model.predict(Z)
            model.partial_fit(Z, y[i : i + 256], classes=[-1, 1])

    return run


def blocks(rows: int, repeat: int) -> Table:
    table = Table(title=f"FOGD, D = {D} ({2 * D} features), float32: rows/s (best of {repeat}, interleaved)")
    for column in (
        "shape",
        "scikit-learn",
        "AdaGrad",
        "ratio",
        "OGD eta 0.5",
        "ratio",
        "time / bare X @ U",
    ):
        table.add_column(column, justify="right")
    for name, (X, y) in shapes(rows).items():
        n = X.shape[0]
        U = np.random.default_rng(1).normal(size=(X.shape[1], D)).astype(np.float32)
        best = dict.fromkeys(("peer", "ada", "ogd", "bare"), np.inf)
        for _ in range(repeat):
            settings.change(threads=1)
            with threadpool_limits(1):
                best["peer"] = min(best["peer"], seconds(scikit_learn(X[: n // 4], y[: n // 4])) * 4)
                best["ada"] = min(best["ada"], seconds(ours(X, y, None)))
                best["ogd"] = min(best["ogd"], seconds(ours(X, y, 0.5)))
                best["bare"] = min(
                    best["bare"],
                    seconds(lambda X=X, U=U: [X[i : i + 4096] @ U for i in range(0, X.shape[0], 4096)]),
                )
        peer = n / best["peer"]
        cells = [f"{peer:,.0f}"]
        for key in ("ada", "ogd"):
            cells += [f"{n / best[key]:,.0f}", f"{n / best[key] / peer:.1f}×"]
        table.add_row(name, *cells, f"{best['ogd'] / best['bare']:.2f}")
    settings.change(threads=None)
    return table


def one_row(repeat: int) -> Table:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 50)).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    table = Table(title="one row a call, d = 50, D = 1000, float32: µs a row")
    for column in ("call", "µs"):
        table.add_column(column, justify="right")
    calls = [(X[i : i + 1], y[i : i + 1]) for i in range(len(X))]
    for eta, label in ((0.5, "OGD"), (None, "AdaGrad")):
        model = zoo.make("fogd", n_components=D, gamma=0.02, eta=eta, random_state=0)
        model.learn(X, y, classes=[-1, 1])
        for method in ("learn", "partial_fit"):
            call = getattr(model, method)
            best = min(seconds(lambda call=call: [call(*row) for row in calls]) for _ in range(repeat))
            table.add_row(f"{method}, {label}", f"{best / len(X) * 1e6:.1f}")
        best = min(seconds(lambda model=model: [model.predict(row[0]) for row in calls]) for _ in range(repeat))
        table.add_row(f"predict, {label}", f"{best / len(X) * 1e6:.1f}", "")
    sampler = RBFSampler(gamma=0.02, n_components=2 * D, random_state=0).fit(X)
    peer = SGDClassifier().partial_fit(sampler.transform(X[:100]), y[:100], classes=[-1, 1])
    best = seconds(lambda: [peer.partial_fit(sampler.transform(X[i : i + 1]), y[i : i + 1]) for i in range(300)]) / 300
    table.add_row("scikit-learn, transform + partial_fit", f"{best * 1e6:.0f}", "")
    return table


FIRST_FIT = """
import time
import numpy as np
from kernelstream import FeatureClassifier
X, y = np.random.rand(256, 20), np.arange(256) % 2
def fit():
    start = time.perf_counter()
    FeatureClassifier().fit(X, y)
    return time.perf_counter() - start
print(fit() / fit())
"""


def imports(repeat: int) -> Table:
    peers = "import numpy, sklearn.base, sklearn.utils.estimator_checks;"

    def run(code: str) -> float:
        return min(seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True)) for _ in range(repeat))

    base = run(peers)
    with_us = run(peers + "import kernelstream; kernelstream.FeatureClassifier")
    first = subprocess.run([sys.executable, "-c", FIRST_FIT], check=True, capture_output=True, text=True).stdout
    table = Table(title="start")
    for column in ("what", "measured"):
        table.add_column(column, justify="right")
    table.add_row("import kernelstream, over numpy + scikit-learn", f"{with_us - base:.2f} s")
    table.add_row("first fit of a process / second fit", f"{float(first):.1f}")
    return table


def memory(rows: int) -> Table:
    rng = np.random.default_rng(0)
    model = zoo.make("fogd", n_components=50, gamma=0.5, random_state=0)
    table = Table(title=f"peak memory over {rows:,} generated rows")
    for column in ("rows", "peak RSS, MB", "rows/s"):
        table.add_column(column, justify="right")
    start = time.perf_counter()
    for done in range(0, rows, 50_000):
        X = rng.normal(size=(50_000, 10)).astype(np.float32)
        model.learn(X, (X[:, 0] * X[:, 1] > 0).astype(int))
        seen = done + 50_000
        if seen in (50_000, rows // 10, rows // 2) or seen >= rows:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            table.add_row(f"{seen:,}", f"{peak:.1f}", f"{seen / (time.perf_counter() - start):,.0f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--stream", type=int, default=10_000_000, help="rows of the memory test; 0 leaves it out")
    args = parser.parse_args()
    console = Console(width=160)
    console.print(blocks(args.rows, args.repeat))
    console.print(one_row(args.repeat))
    console.print(imports(args.repeat))
    if args.stream:
        console.print(memory(args.stream))


if __name__ == "__main__":
    main()
