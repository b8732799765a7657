"""Theorems as measurements: what a learner loses beside what its theorem allows it to lose.

    python papers/studies/bounds.py

Rows are those of german, columns in [-1, 1], in one random order, with a Gaussian kernel. The rival f* of the first two
is the best function of a soft-margin SVM without intercept on all rows, found by dual coordinate ascent; the theorems
hold for any function.

- FOGD (Lu's thesis, chapter 4, theorem 1): ``sum l(w_t) - sum l(f*) <= (1 + e) |f*|_1^2 / (2 eta) + eta T / 2 + e T
  |f*|_1``, where e is the largest error of the kernel; here it is measured over all pairs of rows, instead of the value
  that holds with some probability.
- SPA (chapter 3, theorems 1 and 2): ``E sum l(f_t) - sum l(f*) < |f*|^2 / (2 eta) + eta beta T / min(alpha, sqrt(beta
  eta))``, and support vectors of at most ``alpha T / beta``; means over seeds.
- Kernel-AWV (Jézéquel, Gaillard, Rudi, proposition 2.1): regret of at most ``B^2 log det(I + K / lam)`` for the squared
  error of targets in [-B, B]; and Taylor features of degree 1 and 2 beside it.

Writes results/bounds.md and results/bounds_{fogd,spa,awv}.png.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kernelstream import KernelAWV, datasets, kernels, plots, zoo
from kernelstream.evaluate import regret, regret_bound

RESULTS = Path(__file__).parent / "results"
GAMMA, C = 0.1, 0.05
FREQUENCIES, ETA = 4000, 0.3
ALPHA, BETA, STEP, SEEDS = 1.0, 4.0, 0.05, 20


def best(K: np.ndarray, y: np.ndarray, passes: int = 30) -> np.ndarray:
    """Coefficients (n,) that minimise ``|f|^2 / 2 + C sum hinge``, by dual coordinate ascent."""
    a, f = np.zeros(len(y)), np.zeros(len(y))
    rng = np.random.default_rng(0)
    for _ in range(passes):
        for i in rng.permutation(len(y)):
            new = np.clip(a[i] + (1 - y[i] * f[i]) / K[i, i], 0.0, C)
            f += (new - a[i]) * y[i] * K[i]
            a[i] = new
    return a * y


def hinge(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return np.maximum(0.0, 1 - y * f)


def fogd_bound(epsilon: float, l1: float, eta: float, T: np.ndarray) -> np.ndarray:
    """Theorem 1 of chapter 4, with a loss of slope 1."""
    return (1 + epsilon) * l1**2 / (2 * eta) + eta / 2 * T + epsilon * T * l1


def spa_bound(norm2: float, eta: float, alpha: float, beta: float, T: np.ndarray) -> np.ndarray:
    """Theorem 1 of chapter 3."""
    return norm2 / (2 * eta) + eta * beta / min(alpha, np.sqrt(beta * eta)) * T


def rows(n: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    X, y = datasets.load("german", scale="minmax-sym", return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:n]
    return np.asarray(X[order], np.float64), np.where(y[order] > 0, 1.0, -1.0)


def fogd() -> tuple[str, list[tuple[str, np.ndarray]]]:
    X, y = rows()
    K = kernels.Gaussian(GAMMA).pairwise(X, X)
    a = best(K, y)
    est = zoo.make("fogd", "binary", gamma=GAMMA, n_components=FREQUENCIES, eta=ETA, random_state=0)
    scores = est.learn(X, y, classes=[-1.0, 1.0])
    Z = est._learner.mapping(est._state)(X)  # the features of this very model
    epsilon = float(np.abs(Z @ Z.T - K).max())
    T = np.arange(1, len(y) + 1)
    rival = np.cumsum(hinge(y, K @ a))
    allowed = rival + fogd_bound(epsilon, float(np.abs(a).sum()), ETA, T)
    return f"largest error of the kernel {epsilon:.3f}", [
        ("FOGD", np.cumsum(hinge(y, scores))), ("f*", rival), ("theorem", allowed)
    ]  # fmt: skip


def spa() -> tuple[str, list[tuple[str, np.ndarray]]]:
    X, y = rows()
    K = kernels.Gaussian(GAMMA).pairwise(X, X)
    a = best(K, y)
    losses, sizes = [], []
    for seed in range(SEEDS):
        options = {"gamma": GAMMA, "eta": STEP, "alpha": ALPHA, "beta": BETA, "average": False}
        est = zoo.make("spa", "binary", random_state=seed, **options)
        losses.append(np.cumsum(hinge(y, est.learn(X, y, classes=[-1.0, 1.0]))))
        sizes.append(est.n_support_)
    T = np.arange(1, len(y) + 1)
    rival = np.cumsum(hinge(y, K @ a))
    allowed = rival + spa_bound(float(a @ K @ a), STEP, ALPHA, BETA, T)
    said = f"{np.mean(sizes):.0f} support vectors, at most {ALPHA / BETA * len(y):.0f} by theorem 2"
    return said, [(f"SPA, mean of {SEEDS}", np.mean(losses, axis=0)), ("f*", rival), ("theorem", allowed)]


def awv() -> tuple[str, list[tuple[str, np.ndarray]]]:
    X, y = rows(500)
    X = X / np.sqrt(X.shape[1])  # Taylor series are for rows near 0
    kernel = kernels.Gaussian(0.5)
    lines = [("Kernel-AWV", regret(X, y, KernelAWV(kernel).learn(X, y), kernel))]
    for degree in (1, 2):
        est = zoo.make("awv", "regression", gamma=0.5, degree=degree, lam=1.0)
        lines.append((f"Taylor features, degree {degree}", regret(X, y, est.learn(X, y), kernel)))
    return "regret against the best function of the kernel's space", [*lines, ("theorem", regret_bound(X, kernel))]


def main() -> str:
    text = [
        "Written by `python papers/studies/bounds.py`. Sums over all rows of german (of its first 500 for AWV).",
        "",
    ]
    text += ["| theorem | line | sum at the end |", "|---|---|---:|"]
    for name, measured in (("fogd", fogd), ("spa", spa), ("awv", awv)):
        said, lines = measured()
        made, (ax,) = plots.figure()
        for label, values in lines:
            ax.plot(np.arange(1, len(values) + 1), values, label=label, linestyle="--" if label == "theorem" else "-")
        ax.set_xlabel("rows")
        ax.set_ylabel("regret" if name == "awv" else "sum of the losses")
        ax.set_title(said, fontsize=9)
        ax.legend(frameon=False)
        plots.save(made, RESULTS / f"bounds_{name}.png")
        text += [f"| {name} ({said}) | {label} | {values[-1]:.1f} |" for label, values in lines]
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    found = main()
    print(found)
    (RESULTS / "bounds.md").write_text(found, encoding="utf-8")
