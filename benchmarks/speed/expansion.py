# ruff: noqa: E402 - the thread limits must be set before numpy loads its BLAS
"""Speed of the expansion learners on a9a-sized rows, as ratios to a plain NumPy loop over rows.

The loop keeps the support vectors in an array, dense, and makes the kernel values of a row with one BLAS call; nothing
is allocated per row but what NumPy cannot avoid. Both sides run on one thread, take turns, and are judged by the
seconds on the wall of their best run. ``toolbox.py`` compares with the authors' C++ toolbox.

    python benchmarks/speed/expansion.py [--rows N] [--only rbp,forgetron] [--repeats 3]

Without the file a9a in KERNELSTREAM_DATA, rows of the same shape are drawn at random.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "KERNELSTREAM_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import math
import time

import numpy as np
import scipy.sparse as sp

from kernelstream import datasets, zoo

GAMMA, BUDGET, ETA = 0.01, 1000, 0.1
LOOPS = ("rbp", "forgetron", "bogd", "bpas", "spa", "perceptron", "ogd", "projectron")  # have a NumPy loop beside them
SETTINGS = {
    "perceptron": {},
    "ogd": {"eta": ETA},
    "rbp": {"budget": BUDGET},
    "forgetron": {"budget": BUDGET},
    "bogd": {"budget": BUDGET, "eta": ETA, "lam": 1e-6},
    "bpas": {"budget": BUDGET, "C": 1.0},
    "projectron": {"budget": BUDGET},
    "spa": {"eta": ETA, "gamma": 0.4, "average": False},
    "nogd": {"budget": BUDGET, "rank": 200, "eta": ETA},
}


class Loop:
    """The plain NumPy loop: support vectors S, coefficients a, one product per row."""

    def __init__(self, name, d, dtype, gamma, capacity):
        self.act = getattr(self, name)
        self.S = np.zeros((capacity, d), dtype)
        self.norms = np.zeros(capacity, dtype)
        self.a = np.zeros(capacity, dtype)
        self.k = np.zeros(capacity, dtype)
        self.n, self.gamma = 0, dtype(gamma)
        self.capacity = capacity
        self.rng = np.random.default_rng(0)
        self.Q = self.M = self.oldest = 0
        if name == "forgetron":
            self.gram = np.zeros((capacity, capacity), dtype)
        if name == "projectron":
            self.inverse = np.zeros((capacity, capacity))

    def learn(self, X, y):
        scores = np.empty(len(y))
        norms = np.einsum("ij,ij->i", X, X)
        for t in range(len(y)):
            x, n = X[t], self.n
            k = self.k[:n]
            np.dot(self.S[:n], x, out=k)
            k *= -2
            k += self.norms[:n]
            k += norms[t]
            k *= -self.gamma
            np.exp(k, out=k)
            f = float(k @ self.a[:n])
            scores[t] = f
            self.act(x, norms[t], y[t], f, k)
        return scores

    def put(self, slot, x, norm, a):
        self.S[slot], self.norms[slot], self.a[slot] = x, norm, a
        if slot == self.n:
            self.n += 1

    def join(self, x, norm, a):
        if self.n == len(self.S):  # unbounded: double
            for name in ("S", "norms", "a", "k"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        self.put(self.n, x, norm, a)

    def perceptron(self, x, norm, y, f, k):
        if (f >= 0) != (y > 0):
            self.join(x, norm, y)

    def ogd(self, x, norm, y, f, k):
        if y * f < 1:
            self.join(x, norm, ETA * y)

    def spa(self, x, norm, y, f, k):
        loss = 1 - y * f
        if loss > 0:
            rho = min(1.0, loss) / 20
            if self.rng.random() < rho:
                self.join(x, norm, min(ETA / rho, loss) * y)

    def rbp(self, x, norm, y, f, k):
        if (f >= 0) != (y > 0):
            self.put(self.n if self.n < self.capacity else int(self.rng.random() * self.capacity), x, norm, y)

    def bogd(self, x, norm, y, f, k):
        shrink = 1 - 1e-6 * ETA
        if y * f > 1:
            self.a[: self.n] *= shrink
            return
        if self.n < self.capacity:
            self.a[: self.n] *= shrink
            return self.put(self.n, x, norm, ETA * y)
        self.a *= shrink * self.capacity / (self.capacity - 1)
        self.put(int(self.rng.random() * self.capacity), x, norm, ETA * y)
        largest = np.abs(self.a).max()
        if largest > 10 * ETA:
            self.a *= 10 * ETA / largest

    def forgetron(self, x, norm, y, f, k):
        if y * f > 0:
            return
        self.M += 1
        n = self.n
        if n < self.capacity:
            self.gram[n, :n] = self.gram[:n, n] = k
            self.gram[n, n] = 1
            return self.put(n, x, norm, y)
        r = self.oldest
        mu = np.sign(self.a[r]) * (self.gram[r] @ self.a + y * k[r])
        delta = abs(self.a[r])
        a, b, c = delta * delta - 2 * delta * mu, 2 * delta, self.Q - 15 / 32 * self.M
        phi = 1.0 if a + b + c <= 0 else -2 * c / (b + math.sqrt(b * b - 4 * a * c))
        self.Q += (delta * phi) ** 2 + 2 * delta * phi * (1 - phi * mu)
        self.gram[r] = self.gram[:, r] = k
        self.gram[r, r] = 1
        self.put(r, x, norm, y)
        self.a *= phi
        self.oldest = (r + 1) % self.capacity

    def bpas(self, x, norm, y, f, k):
        loss = 1 - y * f
        if loss <= 0:
            return
        tau = min(1.0, loss) * y
        if self.n < self.capacity:
            return self.put(self.n, x, norm, tau)
        cost = self.a * self.a * (1 - k * k)
        r = int(np.argmax(cost <= cost.min() + 2e-9))
        self.put(r, x, norm, self.a[r] * k[r] + tau)

    def projectron(self, x, norm, y, f, k):
        if (f >= 0) == (y > 0):
            return
        n = self.n
        k = k.astype(np.float64)
        d = self.inverse[:n, :n] @ k
        residual = 1 - k @ d
        if n < self.capacity and residual > 1e-10:
            self.inverse[:n, :n] += np.outer(d, d / residual)
            self.inverse[n, :n] = self.inverse[:n, n] = -d / residual
            self.inverse[n, n] = 1 / residual
            self.put(n, x, norm, y)
        else:
            self.a[:n] += y * d


def rows(count):
    """a9a's training rows in their order, or random rows like them; CSR float64 and labels of ±1."""
    try:
        data = datasets.load("a9a", split="train")
        X, y = sp.csr_matrix(data.X, dtype=np.float64), np.where(np.asarray(data.y) > 0, 1.0, -1.0)
    except (ValueError, OSError):
        rng = np.random.default_rng(0)
        columns = np.concatenate([rng.integers(9 * j, 9 * j + 8, (32_561, 1)) for j in range(13)], axis=1)
        X = sp.csr_matrix(
            (np.ones(columns.size), (np.repeat(np.arange(32_561), 13), columns.ravel())), shape=(32_561, 123)
        )
        y = np.where(X @ rng.normal(size=123) + rng.normal(size=32_561) > 0, 1.0, -1.0)
    return X[:count], y[:count]


def timed(work):
    start = time.perf_counter()
    scores = work()
    return time.perf_counter() - start, scores


def compare(name, dtype, X, y, repeats):
    settings = {"gamma": GAMMA, "random_state": 0, **SETTINGS[name]}
    sparse, dense = X.astype(dtype), X.toarray().astype(dtype)
    ours, theirs = math.inf, math.inf
    for _ in range(repeats):
        model = zoo.make(name, **settings)
        seconds, scores = timed(lambda model=model: model.learn(sparse, y))
        ours = min(ours, seconds)
        if name in LOOPS:
            # a residual of 1e-10 is noise in float32: with it the inverse explodes, so both sides project in float64
            own = np.float64 if name == "projectron" else dtype
            loop = Loop(name, X.shape[1], own, settings["gamma"], settings.get("budget", 1024))
            seconds, loop_scores = timed(lambda loop=loop, own=own: loop.learn(dense.astype(own, copy=False), y))
            theirs = min(theirs, seconds)
    right = 100 * np.mean((scores >= 0) == (y > 0))
    loop_right = 100 * np.mean((loop_scores >= 0) == (y > 0)) if name in LOOPS else math.nan
    return ours, theirs, right, loop_right


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=32_561)
    parser.add_argument("--only", default=",".join(SETTINGS))
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    X, y = rows(arguments.rows)
    print(f"{X.shape[0]} rows, {X.shape[1]} columns, {X.nnz / X.shape[0]:.1f} nonzeros a row; budget {BUDGET}\n")
    print(f"{'':12}{'float':>6}{'seconds':>9}{'loop':>9}{'ratio':>7}{'right %':>9}{'loop %':>8}")
    for name in arguments.only.split(","):
        for dtype in (np.float32, np.float64):
            ours, theirs, right, loop_right = compare(name, dtype, X, y, arguments.repeats)
            line = f"{name:12}{np.dtype(dtype).itemsize * 8:>6}{ours:>9.3f}"
            line += f"{theirs:>9.2f}{theirs / ours:>7.1f}" if name in LOOPS else f"{'':16}"
            line += f"{right:>9.2f}" + (f"{loop_right:>8.2f}" if name in LOOPS else f"{'':8}")
            print(line, flush=True)


if __name__ == "__main__":
    main()
