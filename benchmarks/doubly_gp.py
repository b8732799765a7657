"""Gaussian process by doubly stochastic gradients against its closed form: convergence of mean and standard deviation.

2^11 rows of y = cos(pi/2 |x|) exp(-0.1 pi |x|) + noise on [-5, 5]^2, bandwidth 0.2 × median distance, noise variance
0.1, 2^10 further points. Errors are relative: that of the mean to the root mean square of the closed-form mean, that
of the standard deviation to the mean of the closed-form one.

    python benchmarks/doubly_gp.py        # writes benchmarks/results/doubly_gp.md and .png; several minutes
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import pdist

from kernelstream import DoublyStochasticGP
from kernelstream.estimators import DoublyStep
from kernelstream.kernels import Gaussian

RESULTS = Path(__file__).parent / "results"
ROWS, POINTS, NOISE, FRACTION = 2**11, 2**10, 0.1, 0.2
BATCH = 256
STEPS = (4, 16, 50, 150)
MEAN_GOAL, STD_GOAL = 0.1, 0.3
FORMS = {  # name: parameters
    "operator": {},
    "points": {"points": "given"},
    "operator, plain steps": {"step": DoublyStep(theta0=30.0)},
}


def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets of the synthetic function."""
    X = rng.uniform(-5, 5, (n, 2))
    r = np.linalg.norm(X, axis=1)
    return X, np.cos(0.5 * np.pi * r) * np.exp(-0.1 * np.pi * r) + 0.1 * rng.standard_normal(n)


def closed_form(X: np.ndarray, y: np.ndarray, points: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and standard deviation."""
    kernel = Gaussian(gamma)
    factor = cho_factor(kernel.pairwise(X, X) + NOISE * np.eye(len(X)))
    Kx = kernel.pairwise(points, X)
    return Kx @ cho_solve(factor, y), np.sqrt(1 - np.einsum("ij,ji->i", Kx, cho_solve(factor, Kx.T)))


def rms(a: np.ndarray) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(a**2)))


def main() -> None:
    """Run all, write the table and the picture."""
    rng = np.random.default_rng(0)
    X, y = draw(rng, ROWS)
    points, _ = draw(rng, POINTS)
    gamma = 1 / (2 * (FRACTION * np.median(pdist(X))) ** 2)
    start = time.perf_counter()
    mean, std = closed_form(X, y, points, gamma)
    exact = time.perf_counter() - start
    lines = [
        f"{ROWS} rows, {POINTS} points, batches of {BATCH}, blocks of 1024 features, at most 8 of them, float32.",
        f"Closed form: rms of the mean {rms(mean):.4f}, mean standard deviation {std.mean():.4f} ({exact:.1f} s).",
        "",
        "| variance | iterations | error of the mean | error of the standard deviation | s |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    curves: dict[str, list[tuple[int, float, float]]] = {}
    last = None
    for name, params in FORMS.items():
        asked = points[:128] if "points" in params else points
        for steps in STEPS:
            model = DoublyStochasticGP(
                gamma=gamma,
                noise=NOISE,
                batch_size=BATCH,
                passes=steps * BATCH / ROWS,
                random_state=0,
                points=asked.astype(np.float32) if "points" in params else None,
                step=params.get("step", "auto"),
            )
            start = time.perf_counter()
            model.fit(X.astype(np.float32), y)
            seconds = time.perf_counter() - start
            got_mean = model.predict(points.astype(np.float32))
            _, got_std = model.predict(asked.astype(np.float32), return_std=True)
            errors = rms(got_mean - mean) / rms(mean), rms(got_std - std[: len(asked)]) / std[: len(asked)].mean()
            t = model.state_["t"]
            curves.setdefault(name, []).append((t, *errors))
            lines.append(f"| {name} | {t} | {errors[0]:.3f} | {errors[1]:.3f} | {seconds:.1f} |")
            print(lines[-1], flush=True)
        if name == "operator":
            last = got_std, curves[name][-1]
    assert last is not None
    verdict = "reached" if last[1][1] <= MEAN_GOAL and last[1][2] <= STD_GOAL else "not reached"
    lines += [
        "",
        f"Goal: mean {MEAN_GOAL}, standard deviation {STD_GOAL}: {verdict} by the operator.",
    ]
    (RESULTS / "doubly_gp.md").write_text("\n".join(lines) + "\n")
    draw_picture(curves, last[0], std)


def draw_picture(curves: dict[str, list[tuple[int, float, float]]], got: np.ndarray, true: np.ndarray) -> None:
    """Errors against iterations, and the standard deviations of all points."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for k, (title, goal) in enumerate(
        (("error of the mean", MEAN_GOAL), ("error of the standard deviation", STD_GOAL))
    ):
        for (name, curve), style in zip(curves.items(), ("o-", "s--", "^:"), strict=True):
            axes[k].plot([c[0] for c in curve], [c[1 + k] for c in curve], style, label=name, ms=4)
        axes[k].axhline(goal, color="0.6", lw=1)
        axes[k].annotate("goal", (STEPS[0], goal), color="0.4", va="bottom", fontsize=8)
        axes[k].set(xscale="log", yscale="log", xlabel="iterations", title=title)
    axes[0].legend(frameon=False, fontsize=8)
    top = 1.1 * max(got.max(), true.max())
    axes[2].plot([0, top], [0, top], color="0.6", lw=1)
    axes[2].plot(true, got, ".", ms=2)
    axes[2].set(xlabel="closed form", ylabel="operator", title="standard deviation of 1024 points", aspect="equal")
    figure.savefig(RESULTS / "doubly_gp.png", dpi=80)


if __name__ == "__main__":
    main()
