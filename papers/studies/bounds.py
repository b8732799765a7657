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
- NOGD (chapter 4, theorem 2), with L_t = lam/2 |w|^2 + l_t: ``sum L_t(w_t) - sum L_t(f*) <= |w_N|^2 / (2 eta) + eta
  L^2 T / 2 + |K - K_N|_2 / (2 lam)``, where K_N is the Nyström kernel, w_N its best function and L the largest gradient
  (measured); f* is best for this lam.
- OMKL (chapter 5): mistakes of at most ``(2 log m - 2 log(gamma) M_i) / (1 - gamma)`` for the mistakes M_i of any of
  the m learners (inequality 5.3), and theorem 3, which puts SPA's own bound in the place of M_i.
- RRF (Nguyen, Le, Bui, Phung, lemma 1): an error of the kernel of at least e has at most the probability ``2 exp(-D
  e^2 / 2)``; measured over draws of D frequencies and pairs of rows.

Writes results/bounds.md and results/bounds_{fogd,spa,awv,nogd,omkl,rrf}.png.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kernelstream import KernelAWV, datasets, kernels, plots, zoo
from kernelstream.evaluate import regret, regret_bound
from kernelstream.features import Nystroem, RandomFourier

RESULTS = Path(__file__).parent / "results"
GAMMA, C = 0.1, 0.05
FREQUENCIES, ETA = 4000, 0.3
ALPHA, BETA, STEP, SEEDS = 1.0, 4.0, 0.05, 20
LANDMARKS, DISCOUNT, DELTA = 200, 0.99, 0.001
DRAWN, PAIRS, DRAWS = 100, 40, 200  # frequencies, rows whose pairs are looked at, draws


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


def nogd() -> tuple[str, list[tuple[str, np.ndarray]]]:
    X, y = rows()
    K = kernels.Gaussian(GAMMA).pairwise(X, X)
    lam, a = 1 / (C * len(y)), best(K, y)  # |f|^2 / 2 + C sum l is T C times lam/2 |f|^2 + mean l
    Z = Nystroem(kernels.Gaussian(GAMMA), LANDMARKS, random_state=0).fit_transform(X)  # from the first row on, as there
    est = zoo.make("ogd", "binary", kernel="linear", eta=STEP, lam=lam)
    scores = est.learn(Z, y, classes=[-1.0, 1.0])
    near = Z @ Z.T
    w, norms, steps = np.zeros(Z.shape[1]), [], []  # the same steps again, for the norms that the penalty needs
    for z, label, f in zip(Z, y, scores, strict=True):
        assert abs(w @ z - f) < 1e-6
        norms.append(w @ w)
        slope = lam * w - label * z * (label * f < 1)
        steps.append(float(np.linalg.norm(slope)))
        w = w - STEP * slope
    b = best(near, y)
    T = np.arange(1, len(y) + 1)
    rival = np.cumsum(hinge(y, K @ a)) + lam / 2 * float(a @ K @ a) * T
    gap = float(np.linalg.norm(K - near, 2))
    allowed = rival + float(b @ near @ b) / (2 * STEP) + STEP / 2 * max(steps) ** 2 * T + gap / (2 * lam)
    return f"{LANDMARKS} landmarks, norm of K - K_N {gap:.2f}", [
        ("NOGD", np.cumsum(hinge(y, scores) + lam / 2 * np.array(norms))), ("f*", rival), ("theorem", allowed)
    ]  # fmt: skip


def omkl() -> tuple[str, list[tuple[str, np.ndarray]]]:
    X, y = rows()
    X = X / np.linalg.norm(X, axis=1, keepdims=True)  # k(x, x) = 1 for every kernel
    pool = [kernels.Gaussian(gamma) for gamma in (4.0, 1.0, 0.25, 0.0625)]
    told = {"eta": STEP, "alpha": ALPHA, "beta": BETA}

    def wrong(recipe: str, seed: int, **options: object) -> np.ndarray:
        est = zoo.make(recipe, "binary", random_state=seed, **told, **options)
        return np.cumsum(y * est.learn(X, y, classes=[-1.0, 1.0]) <= 0)

    mixed = np.mean([wrong("omkl_spa", seed, kernels=pool, discount=DISCOUNT) for seed in range(SEEDS)], axis=0)
    each = [np.mean([wrong("spa", seed, kernel=k, average=False) for seed in range(SEEDS)], axis=0) for k in pool]
    one = min(each, key=lambda curve: curve[-1])
    allowed = (2 * np.log(len(pool)) - 2 * np.log(DISCOUNT) * one) / (1 - DISCOUNT)
    bounds = []
    for k in pool:
        K = k.pairwise(X, X)
        a = best(K, y)
        bounds.append(2 * STEP * hinge(y, K @ a).sum() + a @ K @ a)
    front = (2 * np.log(len(pool)) - 2 * np.log(DISCOUNT) * max(1 / STEP, BETA / ALPHA) / DELTA) / (1 - DISCOUNT)
    said = f"mistakes; theorem 3 allows {front * min(bounds):.1e} with delta {DELTA}"
    return said, [
        (f"SPA of four kernels, mean of {SEEDS}", mixed),
        ("the best learner alone", one),
        ("theorem", allowed),
    ]


def rrf() -> tuple[str, list[tuple[str, np.ndarray]]]:
    X, _ = rows(PAIRS)
    K = kernels.Gaussian(GAMMA).pairwise(X, X)[np.triu_indices(PAIRS, 1)]
    errors = []
    for seed in range(DRAWS):
        chosen = RandomFourier(kernels.Gaussian(GAMMA), DRAWN, sampling="iid", random_state=seed)
        Z = chosen.fit_transform(X)
        errors.append(np.abs((Z @ Z.T)[np.triu_indices(PAIRS, 1)] - K))
    at = np.linspace(0.0, 0.5, 201)
    share = 1 - np.searchsorted(np.sort(np.ravel(errors)), at) / np.size(errors)
    return f"{DRAWN} frequencies: how often the error of the kernel is at least e", [
        ("measured", share), ("theorem", np.minimum(1.0, 2 * np.exp(-DRAWN * at**2 / 2)))
    ]  # fmt: skip


def main() -> str:
    text = [
        "Written by `python papers/studies/bounds.py`. Sums over all rows of german (of its first 500 for AWV).",
        "",
    ]
    text += ["| theorem | line | sum at the end (rrf: share at e = 0.2) |", "|---|---|---:|"]
    units = {"awv": "regret", "omkl": "mistakes", "rrf": "share"}
    for measured in (fogd, spa, awv, nogd, omkl, rrf):
        name = measured.__name__
        said, lines = measured()
        made, (ax,) = plots.figure()
        for label, values in lines:
            at = np.linspace(0.0, 0.5, len(values)) if name == "rrf" else np.arange(1, len(values) + 1)
            ax.plot(at, values, label=label, linestyle="--" if label == "theorem" else "-")
        ax.set_xlabel("e" if name == "rrf" else "rows")
        ax.set_ylabel(units.get(name, "sum of the losses"))
        ax.set_title(said, fontsize=9)
        ax.legend(frameon=False)
        plots.save(made, RESULTS / f"bounds_{name}.png")
        last = [f"{values[80]:.5f}" if name == "rrf" else f"{values[-1]:.1f}" for _, values in lines]
        text += [f"| {name} ({said}) | {label} | {value} |" for (label, _), value in zip(lines, last, strict=True)]
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    found = main()
    print(found)
    (RESULTS / "bounds.md").write_text(found, encoding="utf-8")
