"""A study: do steps corrected in the leading directions of the features learn more from a row than plain ones?

    python benchmarks/studies/preconditioned.py letter,ijcnn1,casp,covtype --frequencies 4000 [--rows 100000] [--passes 1,5]
    python benchmarks/studies/preconditioned.py show

A row moves the weights of Fourier features z by ``w += tau P z`` with ``P = I - V diag(1 - (s_k/s_j)^power) V'``: V are the
k leading eigenvectors of the features' second moment, s their eigenvalues, estimated from the first rows (up to 4,096
of them, again whenever their number has doubled). tau is NormAdaGrad's with ``k(x, x) = z'Pz``, which makes the steps
longer by as much as the leading directions took; one row after the other, exactly, by Gram matrices of blocks. Beside it
the plain steps of the library: NormAdaGrad (one step size) and AdaGrad (one per weight, the default of wide maps).
Multi-class sets: softmax; two classes: hinge; numbers: half the squared error. Columns are scaled to [0, 1], gamma is 1
or 4 times the median rule. Errors are those of the test rows, after so many passes. "averaged" is the mean of the weights
over the second half of the rows. Runs on a GPU where torch sees one. Results: ``benchmarks/results/preconditioned.md``.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from kernelstream import datasets
from kernelstream.kernels import Gaussian

RESULTS = Path(__file__).parents[1] / "results"
BLOCK = 512
SAMPLE = 4096
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def load(name: str, rows: int) -> tuple[np.ndarray, ...]:
    data = datasets.load(name, scale="minmax")
    X, y = np.ascontiguousarray(data.X, np.float32), data.y
    if name == "covtype":
        y = np.where(y == 2, 1, 0)
    test = data.is_test
    order = np.random.default_rng(0).permutation(len(y))
    if test is None:
        test = np.zeros(len(y), bool)
        test[order[: min(len(y) // 5, 20_000)]] = True
    train = order[~test[order]][:rows]
    return X[train], y[train], X[test], y[test]


class Features:
    """``[cos XW, sin XW] / sqrt(D)`` on the device."""

    def __init__(self, W: np.ndarray):
        self.W = torch.tensor(W, dtype=torch.float32, device=DEVICE)

    def __call__(self, X: np.ndarray) -> torch.Tensor:
        A = torch.tensor(X, device=DEVICE) @ self.W
        return torch.cat([A.cos(), A.sin()], 1) / self.W.shape[1] ** 0.5


class Target:
    """Losses: derivatives (C,) of one row and errors of many."""

    def __init__(self, y: np.ndarray):
        self.numbers = y.dtype.kind == "f"
        self.classes = None if self.numbers else np.unique(y)
        self.C = 1 if self.numbers or len(self.classes) == 2 else len(self.classes)
        self.mean, self.deviation = (y.mean(), y.std()) if self.numbers else (0.0, 1.0)
        self.scale = 0.3 * self.deviation if self.numbers else 1.0

    def encode(self, y: np.ndarray) -> np.ndarray:
        if self.numbers:
            return y - self.mean
        codes = np.searchsorted(self.classes, y)
        return codes if self.C > 1 else 2.0 * codes - 1.0

    def slope(self, y: float, f: np.ndarray) -> np.ndarray:
        if self.numbers:
            return np.clip(f - y, -10 * self.deviation, 10 * self.deviation)
        if self.C == 1:
            return np.where(y * f < 1, -y, 0.0)
        e = np.exp(f - f.max())
        e /= e.sum()
        e[int(y)] -= 1
        return e

    def error(self, F: np.ndarray, y: np.ndarray) -> float:
        if self.numbers:
            return float(np.mean((F[:, 0] - self.encode(y)) ** 2) / np.var(y))
        answers = F.argmax(1) if self.C > 1 else (F[:, 0] >= 0).astype(int)
        return float(np.mean(self.classes[answers] != y))


def leading(Z: torch.Tensor, k: int, power: float) -> tuple[torch.Tensor, torch.Tensor]:
    """k eigenvectors (P, k) of ``Z'Z/n``, and what is taken off in each direction."""
    n = len(Z)
    s, U = torch.linalg.eigh((Z @ Z.T).double() / n)
    s, U = s.flip(0)[: k + 1], U.flip(1)[:, :k]
    V = (Z.T.double() @ U) / (n * s[:k]).sqrt()
    return V.float(), (1 - (s[k] / s[:k]) ** power).float()


def learn(X, y, A, b, features, target, passes, k=0, power=1.0) -> list[tuple[float, float]]:
    """Errors on test rows after every pass, of the last weights and of their averages: NormAdaGrad, preconditioned."""
    P, C = 2 * features.W.shape[1], target.C
    W = torch.zeros((P, C), dtype=torch.float64, device=DEVICE)
    sums, k_sum, count = np.zeros(C), 0.0, 0
    V = taken = None
    kept: list[torch.Tensor] = []
    due, errors, mean, averaged = 2 * k, [], torch.zeros_like(W), 0
    total = max(passes) * len(X)
    for one in range(max(passes)):
        order = np.random.default_rng(one).permutation(len(X))
        for start in range(0, len(X), BLOCK):
            rows = order[start : start + BLOCK]
            Z = features(X[rows])
            if k and count <= SAMPLE:
                kept.append(Z)
                if count >= due or count + BLOCK > SAMPLE:
                    V, taken = leading(torch.cat(kept), k, power)
                    due = 2 * count
            right = Z if V is None else Z - ((Z @ V) * taken) @ V.T
            G = (Z @ right.T).double().cpu().numpy()
            F, T = (Z.double() @ W).cpu().numpy(), np.zeros((len(rows), C))
            for i, code in enumerate(target.encode(y[rows])):
                g = target.slope(code, F[i] + G[i, :i] @ T[:i])
                k_sum, count = k_sum + G[i, i], count + 1
                sums += g * g * G[i, i]
                T[i] = -8.0 * target.scale / np.sqrt(k_sum / count) * g / np.sqrt(sums + 1e-12)
            W += right.T.double() @ torch.tensor(T, device=DEVICE)
            if 2 * count > total:
                averaged += 1
                mean += (W - mean) / averaged
        if one + 1 in passes:
            both = [target.error(scores(features, A, w), b) for w in (W, mean if averaged else W)]
            errors.append(tuple(both))
    return errors


def adagrad(X, y, A, b, features, target, passes) -> list[tuple[float, float]]:
    """The same for AdaGrad's step per weight."""
    P, C = 2 * features.W.shape[1], target.C
    W, S = (torch.zeros((P, C), device=DEVICE) for _ in range(2))
    eta, errors = 14.0 * target.scale / P**0.5, []
    mean, averaged, done, total = torch.zeros_like(W), 0, 0, max(passes) * len(X)
    for one in range(max(passes)):
        order = np.random.default_rng(one).permutation(len(X))
        for start in range(0, len(X), BLOCK):
            rows = order[start : start + BLOCK]
            for z, code in zip(features(X[rows]), target.encode(y[rows])):
                g = torch.tensor(target.slope(code, (z @ W).cpu().numpy().astype(float)), device=DEVICE).float()
                step = z[:, None] * g
                S.addcmul_(step, step)
                W.addcdiv_(step, (S + 1e-12).sqrt_(), value=-eta)
            done += len(rows)
            if 2 * done > total:
                averaged += 1
                mean += (W - mean) / averaged
        if one + 1 in passes:
            errors.append(tuple(target.error(scores(features, A, w), b) for w in (W, mean if averaged else W)))
    return errors


def scores(features: Features, X: np.ndarray, W: torch.Tensor) -> np.ndarray:
    parts = [(features(X[i : i + 4096]).to(W.dtype) @ W).cpu().numpy() for i in range(0, len(X), 4096)]
    return np.concatenate(parts)


def study(name: str, D: int, rows: int, passes: list[int], ks: list[int], path: Path) -> None:
    X, y, A, b = load(name, rows)
    target = Target(y)
    for factor in (1, 4):
        gamma = factor * Gaussian("median").resolve(X[:2000]).gamma
        features = Features(Gaussian(gamma).frequencies(np.random.default_rng(1), X.shape[1], D))
        methods = {"NormAdaGrad": {}, "AdaGrad": None}
        methods |= {f"preconditioned, k = {k}, power {p:g}": {"k": k, "power": p} for k in ks for p in (1.0, 0.5)}
        for method, params in methods.items():
            start = time.perf_counter()
            common = (X, y, A, b, features, target, passes)
            errors = adagrad(*common) if params is None else learn(*common, **params)
            line = {"set": name, "rows": len(X), "features": 2 * D, "gamma": factor, "method": method,
                    "passes": passes, "errors": errors, "seconds": time.perf_counter() - start}  # fmt: skip
            print(json.dumps(line), flush=True)
            with path.open("a") as file:
                file.write(json.dumps(line) + "\n")


def show(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    table = ["| set | rows | features | gamma / median | step | passes | error | averaged |", "|---|---:|---:|---:|---|---:|---:|---:|"]  # fmt: skip
    for line in lines:
        for count, (last, mean) in zip(line["passes"], line["errors"]):
            table.append(
                f"| {line['set']} | {line['rows']:,} | {line['features']:,} | {line['gamma']} | {line['method']} | "
                f"{count} | {100 * last:.2f} % | {100 * mean:.2f} % |"
            )
    table.append(
        "\nErrors on test rows: wrong answers, or 1 - R² for numbers. `python benchmarks/studies/preconditioned.py`."
    )
    (RESULTS / "preconditioned.md").write_text("\n".join(table) + "\n")
    print("\n".join(table))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", help="names, with commas between them, or 'show'")
    parser.add_argument("--frequencies", type=int, default=4000)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--passes", default="1")
    parser.add_argument("--ks", default="64,256")
    parser.add_argument("--json", type=Path, default=RESULTS / "preconditioned.jsonl")
    given = parser.parse_args()
    if given.sets == "show":
        show(given.json)
    else:
        counts = [int(count) for count in given.passes.split(",")]
        for each in given.sets.split(","):
            study(each, given.frequencies, given.rows, counts, [int(k) for k in given.ks.split(",")], given.json)
