"""Rows per second of AWV on Taylor features against the literal recursion, one thread each, interleaved in one run on
an idle machine, by the clock.

    python benchmarks/speed/second_order.py [--rows 60000] [--degree 2] [--repeat 5]

The literal recursion is the paper's: one row at a time, NumPy, with the same features (each monomial once). Both must
give the same forecasts. The last line says which fraction of the machine's rate of matrix products (1024 x 1024 GEMM,
measured between the runs) the block form reaches, counting the operations it needs: per row r² to solve with the factor
of A, r² to add the row to A, r³/(3m) to factor A once per window of m rows, and r m for the products within the window.
It also says what the ratio would be at the full rate. Writes second_order.md to --out (default: benchmarks/results).
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

from kernelstream import OnlineRidge, datasets, settings  # noqa: E402
from kernelstream.features import TaylorFeatures  # noqa: E402


class Literal:
    """Algorithm 1 of the paper: A^-1 by Sherman and Morrison, every row a few NumPy calls."""

    def __init__(self, d, degree, sigma=1.0, lam=1.0):
        mapping = TaylorFeatures(degree=degree, gamma=1 / (2 * sigma**2)).fit(np.zeros((1, d))).mapping_
        # one gather per degree: feature j of degree n is x[variable[j]] times feature parent[j]
        self.parents, self.variables = [], []
        for begin, end in zip(mapping.begin, mapping.end):
            self.parents.append(np.concatenate([np.arange(b, end) for b in begin]))
            self.variables.append(np.concatenate([np.full(end - b, i) for i, b in enumerate(begin)]))
        self.coef, self.sigma = mapping.coef, sigma
        r = mapping.n_out
        self.A_inv, self.b = np.eye(r) / lam, np.zeros(r)

    def phi(self, x):
        x = x / self.sigma
        z = np.ones(1)
        for parent, variable in zip(self.parents, self.variables):
            z = np.concatenate([z, z[parent] * x[variable]])
        return z * self.coef * np.exp(-0.5 * x @ x)

    def learn(self, X, y):
        out = np.empty(len(y))
        for t, x in enumerate(X):
            z = self.phi(x)
            v = self.A_inv @ z
            v /= np.sqrt(1 + z @ v)
            self.A_inv -= np.outer(v, v)
            out[t] = z @ (self.A_inv @ self.b)
            self.b += y[t] * z
        return out


def rows(name):
    """The data set, or random rows of the shape of ijcnn1."""
    if name in datasets.names():
        data = datasets.load(name)
        return np.asarray(data.X, dtype=np.float64), np.where(data.y > 0, 1.0, -1.0), name
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (50000, 22)) * 0.4
    return X, np.sign(X[:, 0] + 0.1), "random rows"


def gemm_rate(size=1024):
    A = np.ones((size, size))
    start = time.perf_counter()
    A @ A
    return 2 * size**3 / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=60000)
    parser.add_argument("--literal-rows", type=int, default=1000)
    parser.add_argument("--degree", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results")
    args = parser.parse_args()
    settings.change(threads=1)
    X, y, name = rows("ijcnn1")
    X, y = X[: args.rows], y[: args.rows]
    n, d = X.shape
    model = OnlineRidge(TaylorFeatures(degree=args.degree, gamma=0.5), forecaster="awv")
    part = slice(0, args.literal_rows)
    expected = Literal(d, args.degree).learn(X[part], y[part])
    gap = np.abs(model.learn(X[part], y[part]) - expected).max()
    literal = block = single = np.inf
    gemm = 0.0
    for _ in range(args.repeat):
        gemm = max(gemm, gemm_rate())
        slow = Literal(d, args.degree)
        start = time.perf_counter()
        slow.learn(X[part], y[part])
        literal = min(literal, (time.perf_counter() - start) / args.literal_rows)
        fresh = OnlineRidge(TaylorFeatures(degree=args.degree, gamma=0.5), forecaster="awv")
        start = time.perf_counter()
        fresh.learn(X, y)
        block = min(block, (time.perf_counter() - start) / n)
        start = time.perf_counter()
        for i in range(500):
            fresh.learn(X[i : i + 1], y[i : i + 1])
        single = min(single, (time.perf_counter() - start) / 500)
    m, r = model.state_["window"].shape
    work = 2 * r**2 + r**3 / (3 * m) + r * m
    lines = [
        f"{name}: {d} columns, degree {args.degree}, {r} features, windows of {m} rows, one thread, float64, best of "
        f"{args.repeat}; largest gap between the forecasts {gap:.1e}.\n",
        "| | µs/row | rows/s | ratio |",
        "| --- | ---: | ---: | ---: |",
    ]
    for label, seconds in (("literal NumPy recursion", literal), ("blocks", block), ("blocks, a row a call", single)):
        lines.append(f"| {label} | {1e6 * seconds:.1f} | {1 / seconds:.0f} | {literal / seconds:.1f} |")
    lines.append(
        f"\nGEMM {gemm / 1e9:.1f} Gflop/s, blocks {work / block / 1e9:.1f}: {work / block / gemm:.2f} of it. At the "
        f"full rate the ratio would be {literal * gemm / work:.1f}."
    )
    print("\n".join(lines))
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "second_order.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
