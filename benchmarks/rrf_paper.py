"""The experiments of the paper on learned kernels (Nguyen, Le, Bui, Phung, IJCAI 2017), with this library's defaults.

    KERNELSTREAM_DATA=... python benchmarks/rrf_paper.py [--orders 10] [--parts tables sweep stability ...]

One pass over each data set in random order, every row predicted before it is learned; means and standard deviations
over the orders. Writes tables and the picture of the D-sweep to benchmarks/results/, and copies the tables into
docs/learned_kernels.md, between the marks that name them. Rivals come from this library too:
FOGD with 16 to 40 times the frequencies and NOGD with the paper's budgets, both with AdaGrad steps that need no tuning,
their bandwidth by the median rule or (like the paper's) the best of a grid on a tenth of the rows; and FOGD as the
paper had it, with constant steps, both tuned.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kernelstream import datasets, plots, zoo
from kernelstream.evaluate import prequential
from kernelstream.losses import EpsilonInsensitive
from kernelstream.passes.learned import native as _rrf_native

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parent.parent / "docs" / "learned_kernels.md"

# data set: scaling, task, the paper's budget, D and D of FOGD
SETS: dict[str, Any] = {
    "ijcnn1": (None, "binary", (1000, 100, 4000)),
    "cod-rna": ("standard", "binary", (400, 100, 1600)),
    "poker": ("standard", "multiclass", (1000, 200, 4000)),
    "casp": ("standard", "regression", (400, 100, 2000)),
}
PAPER: dict[str, dict[str, float]] = {
    "ijcnn1": {"RRF hinge": 3.68, "RRF logistic": 4.16, "FOGD": 9.41, "NOGD": 10.43},
    "cod-rna": {"RRF hinge": 4.33, "RRF logistic": 4.37, "FOGD": 7.15, "NOGD": 7.83},
    "poker": {"RRF hinge": 43.39, "RRF logistic": 43.47, "FOGD": 52.28, "NOGD": 44.90},
    "casp": {"RRF epsilon": 0.246, "RRF l1": 0.250, "RRF l2": 0.241, "FOGD": 0.378, "NOGD": 0.251},
}
GAMMAS = [2.0**p for p in (-8, -4, -2, 0, 2, 4, 8)]  # the paper's grids; its steps are for features not scaled by
ETAS = [1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2]  # 1/sqrt(D): ours are D times as large

SWEPT = {"ijcnn1": None, "cod-rna": "standard", "a9a": None, "letter": None}

Maker = Callable[[int], Any]


def rows_of(name: str, scale: str | None) -> tuple[Any, np.ndarray]:
    """Rows and targets; those of regression scaled to [0, 1]."""
    X, y = datasets.load(name, scale=scale, return_X_y=True)
    if y.dtype.kind == "f":
        y = (y - y.min()) / (y.max() - y.min())
    return X, y


def maker(name: str, y: np.ndarray, **params: Any) -> Maker:
    """The learner of a name for targets y, as a function of the seed."""
    task = "regression" if y.dtype.kind == "f" else "binary" if len(np.unique(y)) == 2 else "multiclass"
    return lambda seed: zoo.make(name, task=task, random_state=seed, **params)


def one_pass(make: Maker, X: Any, y: np.ndarray, seed: int, rows: int | None = None) -> tuple[float, float]:
    """Mistakes in percent (or the root mean squared error) and seconds of one pass in order number ``seed``."""
    order = np.random.default_rng(seed).permutation(len(y))[:rows]
    labels = np.unique(y) if y.dtype.kind != "f" else None
    result = prequential(make(seed), X[order], y[order], block_size=4096, classes=labels, progress=False)
    return float(np.sqrt(result.mse)) if labels is None else 100 * result.mistake_rate, result.seconds


def over_orders(make: Maker, X: Any, y: np.ndarray, orders: int) -> np.ndarray:
    """(orders, 2): value and seconds."""
    return np.array([one_pass(make, X, y, seed) for seed in range(orders)])


def mean(make: Maker, X: Any, y: np.ndarray, orders: int) -> float:
    return float(over_orders(make, X, y, orders)[:, 0].mean())


def learners(task: str, sizes: tuple[int, int, int], X: Any, y: np.ndarray) -> dict[str, Maker]:
    """The rows of a table."""
    budget, D, wide = sizes

    def tuned(name: str, etas: list[float] | None = None, **params: Any) -> Maker:
        """Bandwidth (and step) with the fewest errors on a tenth of the rows, in an order none of the others uses."""
        tried = [{"gamma": gamma, **({"eta": eta} if etas else {})} for gamma in GAMMAS for eta in etas or [0.0]]
        rates = [one_pass(maker(name, y, **params, **chosen), X, y, 1000, len(y) // 10)[0] for chosen in tried]
        return maker(name, y, **params, **tried[int(np.argmin(rates))])

    if task == "regression":
        ours = {"RRF epsilon": EpsilonInsensitive(0.05), "RRF l1": "absolute", "RRF l2": "squared"}
    else:
        ours = {"RRF hinge": "hinge", "RRF logistic": "logistic"}
    found = {label: maker("rrf", y, n_components=D, loss=loss) for label, loss in ours.items()}
    found[f"fixed kernel, {D} frequencies"] = maker("rrf", y, n_components=D, eta_g=0.0)
    found[f"FOGD, {wide} frequencies"] = maker("fogd", y, n_components=wide)
    found[f"FOGD, {wide}, bandwidth tuned"] = tuned("fogd", n_components=wide)
    if task == "binary":
        constant = tuned("fogd", [eta * wide for eta in ETAS], n_components=wide)
        found[f"FOGD, {wide}, constant step, both tuned"] = constant
    found[f"NOGD, budget {budget}"] = maker("nogd", y, budget=budget)
    found[f"NOGD, {budget}, bandwidth tuned"] = tuned("nogd", budget=budget)
    return found


def tables(orders: int) -> str:
    """The paper's tables 1 and 2, as far as the data sets are there."""
    text = [f"Mean ± standard deviation over {orders} orders; seconds of the fastest pass.\n"]
    for name, (scale, task, sizes) in SETS.items():
        X, y = rows_of(name, scale)
        unit, digits = ("RMSE", 4) if task == "regression" else ("mistakes %", 2)
        note = " (of the paper's 1,025,010)" if name == "poker" else ""
        text.append(f"\n### {name}: {X.shape[0]:,} rows{note}, {X.shape[1]} columns, D = {sizes[1]}\n")
        text.append(f"| learner | {unit} | seconds | paper |\n| --- | --- | --- | --- |")
        for label, make in learners(task, sizes, X, y).items():
            values, seconds = over_orders(make, X, y, orders).T
            theirs = PAPER[name].get(label.split(",")[0] if "tuned" in label else label, "")  # the paper tuned its own
            figure = f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"
            line = f"| {label} | {figure} | {seconds.min():.2f} | {theirs} |"
            print(name, line, flush=True)
            text.append(line)
    return "\n".join(text) + "\n"


def sweep(orders: int) -> str:
    """Mistakes and time over the number of frequencies, on cod-rna: the paper's figures 1 and 2."""
    X, y = rows_of("cod-rna", "standard")
    sizes = {
        "RRF, widths learned": (10, 20, 50, 100, 150, 200, 400),
        "FOGD, kernel fixed": (50, 100, 200, 400, 800, 1600),
    }
    made, (left, right) = plots.figure(columns=2, width=5.2)
    text = [f"| learner | D | mistakes % ({orders} orders) | seconds |\n| --- | --- | --- | --- |"]
    for colour, offset, (label, Ds) in zip(("#0072b2", "#d55e00"), ((-14, -13), (6, 5)), sizes.items()):
        name = label.split(",")[0].lower()
        runs = np.array([over_orders(maker(name, y, n_components=D), X, y, orders) for D in Ds])  # (sizes, orders, 2)
        value, spread, seconds = runs[..., 0].mean(axis=1), runs[..., 0].std(axis=1, ddof=1), runs[..., 1].min(axis=1)
        left.errorbar(Ds, value, spread, marker="o", markersize=4, capsize=3, color=colour, label=label)
        right.plot(seconds, value, marker="o", markersize=4, color=colour, label=label)
        for k in sorted({0, len(Ds) // 2, len(Ds) - 1}):
            at = (seconds[k], value[k])
            right.annotate(
                f"D = {Ds[k]}",
                at,
                textcoords="offset points",
                xytext=offset if k else (8, -3),
                fontsize=8,
                color=colour,
            )
        text += [f"| {label} | {D} | {v:.2f} ± {s:.2f} | {t:.2f} |" for D, v, s, t in zip(Ds, value, spread, seconds)]
    for ax, words in ((left, "frequencies D"), (right, "seconds for one pass of 331,152 rows")):
        ax.set_xscale("log")
        ax.set_xlabel(words)
        ax.set_ylabel("mistakes, %")
        ax.grid(alpha=0.25)
        ax.legend(frameon=False)
        ax.spines[["top", "right"]].set_visible(False)
    left.set_xticks([10, 20, 50, 100, 200, 400, 800, 1600], ["10", "20", "50", "100", "200", "400", "800", "1600"])
    right.set_xticks([0.1, 0.2, 0.5, 1, 2, 5], ["0.1", "0.2", "0.5", "1", "2", "5"])
    left.minorticks_off()
    right.minorticks_off()
    made.suptitle("cod-rna, one pass")
    plots.save(made, RESULTS / "rrf_d_sweep.png")
    return "\n".join(text) + "\n\n![D-sweep](rrf_d_sweep.png)\n"


def stability(orders: int) -> str:
    """The worst that learning the widths can do, against the same learner with a fixed kernel."""
    etas, etas_g = (1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0), (1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 0.1)
    text = ["| data set | settings | worst change by learning | best change |\n| --- | --- | --- | --- |"]
    for name, scale in SWEPT.items():
        X, y = rows_of(name, scale)
        change = []
        for eta in etas:
            rates = [mean(maker("rrf", y, eta=eta, eta_g=eta_g), X, y, orders) for eta_g in (0.0, *etas_g)]
            change += [rate - rates[0] for rate in rates[1:]]
        text.append(f"| {name} | {len(change)} | {max(change):+.2f} points | {min(change):+.2f} points |")
        print(text[-1], flush=True)
    return "\n".join(text) + "\n"


def guard(orders: int) -> str:
    """What the guard is for: kernel steps far beyond the documented range, with it and without."""
    text = ["| data set | eta_g | worst change, guarded | worst change, unguarded |\n| --- | --- | --- | --- |"]
    for name, scale in SWEPT.items():
        X, y = rows_of(name, scale)
        rows = np.random.default_rng(0).permutation(len(y))[:30_000]
        X, y = X[rows], y[rows]
        for eta_g in (0.1, 0.3, 1.0, 3.0):
            worst = []
            for limit in (3.0, np.inf):
                change = []
                for eta in (1e-3, 0.1, 1.0, 10.0):
                    _rrf_native.GUARD = limit  # no parameter: there is no reason to switch it off but this table
                    learned = mean(maker("rrf", y, eta=eta, eta_g=eta_g), X, y, orders)
                    change.append(learned - mean(maker("rrf", y, eta=eta, eta_g=0.0), X, y, orders))
                worst.append(max(change))
            text.append(f"| {name} | {eta_g} | {worst[0]:+.2f} points | {worst[1]:+.2f} points |")
            print(text[-1], flush=True)
    _rrf_native.GUARD = 3.0
    return "\n".join(text) + "\n"


def grid(orders: int) -> str:
    """The default against the best of 5 × 4 steps."""
    etas, etas_g = (0.1, 0.3, 1.0, 3.0, 10.0), (1e-3, 1e-2, 3e-2, 0.1)
    text = [
        "| data set | default | best of the grid | at eta, eta_g | default / best |\n| --- | --- | --- | --- | --- |"
    ]
    for name, scale in SWEPT.items():
        X, y = rows_of(name, scale)
        tried = {(e, g): mean(maker("rrf", y, eta=e, eta_g=g), X, y, orders) for e in etas for g in etas_g}
        (eta, eta_g), best = min(tried.items(), key=lambda item: item[1])
        default = mean(maker("rrf", y), X, y, orders)
        text.append(f"| {name} | {default:.2f} | {best:.2f} | {eta}, {eta_g} | {default / best:.3f} |")
        print(text[-1], flush=True)
    return "\n".join(text) + "\n"


def spectra(orders: int) -> str:
    """What the other spectra do on the same data, defaults otherwise."""
    columns: dict[str, dict[str, Any]] = {
        "width per input": {}, "mixture of 4": {"n_centres": 4}, "map to 8": {"rank": 8}, "full map": {"rank": 10**6},
    }  # fmt: skip
    text = ["| data set | " + " | ".join(columns) + " |\n|" + " --- |" * (len(columns) + 1)]
    for name, scale in {**SWEPT, "casp": "standard"}.items():
        X, y = rows_of(name, scale)
        digits = 4 if name == "casp" else 2
        values = [over_orders(maker("rrf", y, **params), X, y, orders)[:, 0] for params in columns.values()]
        cells = [f"{v.mean():.{digits}f} ± {v.std(ddof=1):.{digits}f}" for v in values]
        text.append(f"| {name} | " + " | ".join(cells) + " |")
        print(text[-1], flush=True)
    return "\n".join(text) + "\n"


PARTS = {
    "tables": ("The paper's tables", tables),
    "sweep": ("Number of frequencies, cod-rna", sweep),
    "stability": ("eta in [0.001, 10] × eta_g in [0.00001, 0.1], in points against eta_g = 0", stability),
    "guard": ("Beyond the range: worst over eta in {0.001, 0.1, 1, 10}, 30,000 rows", guard),
    "grid": ("The default against the best of a 5 × 4 grid", grid),
    "spectra": ("Other spectra, D = 100", spectra),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    args = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    for name in args.parts:
        title, part = PARTS[name]
        (RESULTS / f"rrf_{name}.md").write_text(f"## {title}\n\n{args.orders} orders.\n\n{part(args.orders)}")
        print((RESULTS / f"rrf_{name}.md").read_text(), flush=True)
    copy_to_docs()


def copy_to_docs() -> None:
    """Replace what stands between ``<!-- NAME -->`` and ``<!-- end -->`` by the tables of NAME."""
    text = DOCS.read_text()
    for name in (*PARTS, "speed"):  # the last by benchmarks/rrf.py
        path = RESULTS / f"rrf_{name}.md"
        if path.exists():
            body = path.read_text().split("\n", 2)[2].replace("](rrf_", "](../benchmarks/results/rrf_")
            text = re.sub(
                rf"(<!-- {name} -->\n).*?(<!-- end -->)",
                lambda m, b=body: f"{m[1]}\n{b}\n{m[2]}",
                text,
                flags=re.DOTALL,
            )
    DOCS.write_text(text)


if __name__ == "__main__":
    main()
