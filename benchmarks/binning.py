"""Random binning against other approximations of the Laplacian kernel.

    python benchmarks/binning.py kernel                    # (a) Z Z' against the kernel
    python benchmarks/binning.py sweep [--sets cadata,...] [--workers N] [--seconds S] [--json FILE]
    python benchmarks/binning.py show --json FILE          # (b) table and plot of a sweep
    python benchmarks/binning.py goals                     # (c) the accuracies and times aimed at
    python benchmarks/binning.py defaults                  # models with no parameter given

Columns are min-max scaled, rows float32. Tables and plots go to ``benchmarks/results``. Exact kernel ridge is solved on
a GPU where there is one; its time then says nothing about the others'.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from _binning_baselines import make

from kernelstream import BinningClassifier, BinningRegressor, datasets, kernels
from kernelstream.features import RandomBinning

RESULTS = Path(__file__).parent / "results"
METHODS = ("binning", "fourier", "nystroem", "blocks", "exact")
COLOURS = dict(zip(METHODS, ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "black")))
NAMES = {"binning": "random binning", "fourier": "Fourier", "nystroem": "Nyström", "blocks": "blocks", "exact": "exact"}
#: gamma and lam of each set: what the search of the estimators finds, or (letter, ijcnn1, covtype) the published trial
SETS = {
    "cadata": (2.0, 0.1),
    "letter": (2.0, 0.1),
    "ijcnn1": (2.0, 0.1),
    "mnist": (0.03125, 0.1),
    "covtype": (8.0, 0.01),
}
GRID = {
    "binning": (4, 8, 16, 32, 64, 128, 256, 512),
    "fourier": (64, 128, 256, 512, 1024, 2048, 4096),
    "nystroem": (64, 128, 256, 512, 1024, 2048),
    "blocks": (16, 64, 256, 1024),
    "exact": (0,),
}
LARGEST = {"covtype": {"binning": 128, "fourier": 1024, "nystroem": 512, "blocks": 256, "exact": -1},
           "mnist": {"binning": 512, "fourier": 4096, "nystroem": 1024, "blocks": 1024}}  # fmt: skip


def load(name: str) -> tuple[np.ndarray, ...]:
    """Training rows and targets, test rows and targets."""
    data = datasets.load(name, scale="minmax")
    X, y = np.ascontiguousarray(data.X, np.float32), data.y
    if name == "covtype":
        y = np.where(y == 2, 1, 0)
    test = data.is_test
    if test is None:
        count = {"covtype": 464_809}.get(name, int(0.8 * len(y)))
        test = np.ones(len(y), bool)
        test[np.random.default_rng(0).permutation(len(y))[:count]] = False
    return X[~test], y[~test], X[test], y[test]


def quality(model, X: np.ndarray, y: np.ndarray) -> float:
    """Accuracy, or R² for numbers."""
    found = model.predict(X)
    if y.dtype.kind == "f":
        return float(1 - np.sum((found - y) ** 2) / np.sum((y - y.mean()) ** 2))
    return float(np.mean(found == y))


# ---------------------------------------------------------------------- (a)
def kernel_rate() -> None:
    rng = np.random.default_rng(0)
    rows = rng.random((60, 5))
    K = kernels.Laplacian(1.0).pairwise(rows, rows)
    off = ~np.eye(60, dtype=bool)
    table = [
        "| R | error of Z Z', root mean square | sqrt(k (1 - k) / R), root mean square | ratio |",
        "|---:|---:|---:|---:|",
    ]
    counts = [2**k for k in range(2, 14)]
    found = []
    for R in counts:
        errors = []
        for seed in range(20):
            Z = RandomBinning(gamma=1.0, n_components=R, random_state=seed).fit_transform(rows)
            errors.append(((Z @ Z.T).toarray() - K)[off])
        error, truth = np.sqrt(np.mean(np.square(errors))), np.sqrt(np.mean((K * (1 - K))[off]) / R)
        found.append((error, truth))
        table.append(f"| {R} | {error:.5f} | {truth:.5f} | {error / truth:.3f} |")
    slope = np.polyfit(np.log(counts), np.log([error for error, _ in found]), 1)[0]
    table.append(f"\nSlope of the error in R: {slope:.3f} (Monte Carlo: -0.5). 60 rows in 5 dimensions, 20 seeds.")
    write("binning_kernel.md", table)
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5.5, 4))
    axes.loglog(counts, [error for error, _ in found], "o", color=COLOURS["binning"], label="Z Z' - K")
    axes.loglog(counts, [truth for _, truth in found], "-", color="gray", label=r"$\sqrt{k(1-k)/R}$")
    axes.set(xlabel="grids R", ylabel="root mean square error", title="Random binning to the Laplacian kernel")
    axes.legend(frameon=False)
    save(figure, "binning_kernel.png")


# ---------------------------------------------------------------------- (b)
def one(name: str, method: str, R: int) -> dict:
    """One model: quality on the test rows and seconds to fit."""
    gamma, lam = SETS[name]
    X, y, A, b = load(name)
    model = make(method, R, gamma, lam, y.dtype.kind == "f")
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    gpu = bool(getattr(model, "gpu", False)) and method == "exact"
    return {"set": name, "method": method, "R": R, "quality": quality(model, A, b), "seconds": seconds, "gpu": gpu}


def sweep(names: list[str], methods: list[str], workers: int, seconds: float, path: Path) -> None:
    jobs = [
        (name, method, R)
        for name in names
        for method in methods
        for R in GRID[method]
        if LARGEST.get(name, {}).get(method, 1 << 30) >= R
    ]
    cost = {"covtype": 8.0, "mnist": 6.0, "ijcnn1": 1.0, "letter": 0.6, "cadata": 0.3}
    # exact models first, then cheap ones: whatever is cut off by the clock is the dearest

    def price(job: tuple[str, str, int]) -> tuple[bool, float]:
        name, method, R = job
        return method != "exact", cost[name] * (R + 50_000 / R if method == "blocks" else R)

    jobs.sort(key=price)
    started = time.perf_counter()
    found: list[dict] = []
    with ProcessPoolExecutor(workers) as pool:
        futures = {pool.submit(one, *job): job for job in jobs}
        try:
            for future in as_completed(futures, timeout=seconds):
                try:
                    found.append(future.result())
                except Exception as error:  # a model that does not fit in memory should not take the others with it
                    print(futures[future], type(error).__name__, error, flush=True)
                    continue
                f = found[-1]
                print(f"{time.perf_counter() - started:6.1f} s  {f['set']:8} {f['method']:9} R {f['R']:5} "
                      f"{f['quality']:.4f}  {f['seconds']:.1f} s", flush=True)  # fmt: skip
                path.write_text(json.dumps(found, indent=0))
        except TimeoutError:
            for process in pool._processes.values():
                process.kill()
    missing = set(jobs) - {(f["set"], f["method"], f["R"]) for f in found}
    print(f"{len(found)} done, not done: {sorted(missing)}", flush=True)


def show(path: Path, note: str) -> None:
    found = json.loads(path.read_text())
    names = [name for name in SETS if any(f["set"] == name for f in found)]
    table = [
        "| set | gamma | lam | exact | " + " | ".join(NAMES[m] for m in METHODS[:4]) + " |",
        "|---|---:|---:|---:|---|---|---|---|",
    ]
    detail = ["| set | method | R | test | fit, s |", "|---|---|---:|---:|---:|"]
    for name in names:
        mine = {
            m: sorted((f["R"], f["quality"], f["seconds"]) for f in found if (f["set"], f["method"]) == (name, m))
            for m in METHODS
        }
        exact = mine["exact"][0][1] if mine["exact"] else None
        goal = exact if exact is not None else max(q for m in METHODS for _, q, _ in mine[m])
        cells = []
        for m in METHODS[:4]:
            near = [(R, s) for R, q, s in mine[m] if q >= goal - 0.01]
            top = max(mine[m], key=lambda f: f[1], default=None)
            cells.append(
                f"R = {near[0][0]} ({near[0][1]:.1f} s)"
                if near
                else f"no: {top[1]:.4f} at R = {top[0]}"
                if top
                else "-"
            )
            detail += [f"| {name} | {NAMES[m]} | {R} | {q:.4f} | {s:.2f} |" for R, q, s in mine[m]]
        shown = f"{exact:.4f}" if exact is not None else f"does not fit (best found {goal:.4f})"
        gamma, lam = SETS[name]
        table.append(f"| {name} | {gamma:g} | {lam:g} | {shown} | " + " | ".join(cells) + " |")
    about = "Least R that comes within 0.01 of exact kernel ridge (accuracy; R² for cadata), and the seconds to fit it"
    write("binning_sweep.md", [f"{about} with one thread. {note}", "", *table, "", *detail])
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, len(names), figsize=(2.7 * len(names), 5), squeeze=False)
    for k, name in enumerate(names):
        for m in METHODS[:4]:
            mine = sorted((f["R"], f["quality"], f["seconds"]) for f in found if (f["set"], f["method"]) == (name, m))
            if mine:
                R, q, s = zip(*mine)
                axes[0, k].semilogx(R, q, "o-", ms=3, color=COLOURS[m], label=NAMES[m])
                axes[1, k].semilogx(s, q, "o-", ms=3, color=COLOURS[m], label=NAMES[m])
        exact = [f["quality"] for f in found if (f["set"], f["method"]) == (name, "exact")]
        values = [f["quality"] for f in found if f["set"] == name]
        for row in axes[:, k]:
            if exact:
                row.axhline(exact[0], color="black", lw=0.8, ls="--", label="exact")
            row.set_ylim(max(min(values), np.percentile(values, 10) - 0.05), max(values) + 0.01)
        axes[0, k].set(title=name, xlabel="R")
        axes[1, k].set(xlabel="seconds to fit")
    for row in axes[:, 0]:
        row.set_ylabel("test accuracy or R²" if names[0] == "cadata" else "test accuracy")
    axes[0, -1].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    save(figure, "binning_sweep.png")


# ---------------------------------------------------------------------- (c) and the defaults
def goals(threads: int, only: list[str]) -> None:
    table = ["| set | R | gamma | lam | test | goal | fit, s |", "|---|---:|---:|---:|---:|---:|---:|"]
    cases = [("covtype", 60, 8.0, 0.01, 0.964), ("covtype", 60, 8.0, 0.1, 0.964), ("covtype", 100, 8.0, 0.1, 0.964),
             ("covtype", 400, 8.0, 0.1, 0.97), ("covtype", 400, 5.0, 0.1, 0.97), ("covtype", 600, 6.0, 0.03, 0.97),
             ("letter", 256, 2.0, 0.1, 0.97), ("ijcnn1", 200, 2.0, 0.1, 0.98),
             ("cadata", 512, 2.0, 0.5, 0.797)]  # fmt: skip
    for name, R, gamma, lam, goal in cases:
        if only and name not in only and f"{name}{R}" not in only:
            continue
        X, y, A, b = load(name)
        model = make("binning", R, gamma, lam, y.dtype.kind == "f", n_jobs=threads)
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        table.append(
            f"| {name} ({len(y):,} / {len(b):,}) | {R} | {gamma:g} | {lam:g} | "
            f"{quality(model, A, b):.4f} | {goal} | {seconds:.1f} |"
        )
        print(table[-1], flush=True)
        if name == "cadata":
            few = np.random.default_rng(1).permutation(len(y))[:5000]
            for g, penalty in ((1.0, 0.1), (2.0, 0.1), (4.0, 0.1)):
                exact = make("exact", 0, g, penalty, True).fit(X[few], y[few])
                table.append(
                    f"| cadata, exact on 5,000 rows | | {g:g} | {penalty:g} | {quality(exact, A, b):.4f} | | |"
                )
    write("binning_goals.md", [*table, "", f"{threads} threads."])


def defaults(only: list[str]) -> None:
    table = [
        "| set | gamma found | lam found | test | fit with search, s | with half of gamma | with twice gamma |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in only or ["cadata", "ijcnn1", "casp", "letter"]:
        X, y, A, b = load(name)
        kind = BinningRegressor if y.dtype.kind == "f" else BinningClassifier
        start = time.perf_counter()
        model = kind(random_state=0).fit(X, y)
        seconds = time.perf_counter() - start
        others = []
        for factor in (0.5, 2.0):
            other = kind(random_state=0, gamma=factor * model.gamma_, lam=model.lam_).fit(X, y)
            others.append(f"{quality(other, A, b):.4f}")
        table.append(
            f"| {name} | {model.gamma_:g} | {model.lam_:g} | {quality(model, A, b):.4f} | {seconds:.1f} | "
            + " | ".join(others)
            + " |"
        )
        write("binning_defaults.md", [*table, "", "128 grids, min-max scaled columns."])


def write(name: str, lines: list[str]) -> None:
    (RESULTS / name).write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def save(figure, name: str) -> None:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    figure.tight_layout()
    figure.savefig(RESULTS / name, dpi=70)


def main() -> None:
    global RESULTS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("kernel", "sweep", "show", "goals", "defaults"))
    parser.add_argument("--sets", type=lambda text: text.split(","), default=None)
    parser.add_argument("--methods", type=lambda text: text.split(","), default=list(METHODS))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the tables and plots")
    parser.add_argument("--json", type=Path, default=RESULTS / "binning_sweep.json")
    parser.add_argument("--note", default="", help="sentence about the machine for the table")
    args = parser.parse_args()
    RESULTS = args.results
    RESULTS.mkdir(exist_ok=True)
    if args.what == "kernel":
        kernel_rate()
    elif args.what == "sweep":
        sweep(args.sets or list(SETS), args.methods, args.workers, args.seconds, args.json)
    elif args.what == "show":
        show(args.json, args.note)
    elif args.what == "goals":
        goals(args.threads, args.sets or [])
    else:
        defaults(args.sets or [])


if __name__ == "__main__":
    main()
