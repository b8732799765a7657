"""Tables 5.2 to 5.6 of Lu's thesis (online multiple kernel learning) on the data sets that are at hand.

    KERNELSTREAM_DATA=... python benchmarks/omkl_tables.py [--orders 10] [--jobs 2] [--sets german svmguide3 ...]
    python benchmarks/omkl_tables.py --write            # tables from the runs so far

Mistakes of one pass in percent, support vectors (or frequencies) of all kernels together, seconds of one thread; mean ±
standard deviation over random orders, beside the printed figures. Settings of the thesis: discount 0.99 (0.999 for FOGD
and NOGD), smoothing 0.001, PA with C = 0.1, SPA with alpha = 1, eta = 0.1 and beta = 3 (10 beyond 100,000 rows), 16
kernels. Every run is a line of benchmarks/results/omkl_runs.jsonl; a run that is there is not repeated.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("KERNELSTREAM_NUM_THREADS", "1")

import numpy as np

from kernelstream import datasets, zoo
from kernelstream.zoo.multi_kernel import pool

RESULTS = Path(__file__).parent / "results"

# data set: scaling, part
SETS: dict[str, tuple[str | None, str | None]] = {
    "german": ("minmax-sym", None),
    "svmguide3": (None, None),
    "madelon": ("standard", "train"),
    "a9a": (None, None),
    "ijcnn1": (None, "train"),
    "cod-rna": ("standard", "test"),
}
SINGLE = {
    "Per(*)": ("perceptron", {}),
    "RBP-single": ("rbp", {"budget": 1600}),
    "BOGD-single": ("bogd", {"budget": 1600}),
}
UNBOUNDED = {label: f"omkl_{label.lower()}" for label in ("U", "DD", "SD", "DDPA", "SDPA")}
BOUNDED = {
    f"{label}-{kind.upper()}": f"omkl_{name}_{kind}"
    for kind in ("dd", "sd")
    for label, name in {"RBP": "rbp", "Forgetron": "forgetron", "BOGD": "bogd", "BPAS": "bpas"}.items()
}
BUDGET_53 = {"ijcnn1": 4384, "cod-rna": 5744, "a9a": 14544}

# table -> data set -> algorithm -> printed error and its deviation
PRINTED: dict[str, dict[str, dict[str, tuple[float, float]]]] = {
    "5.2": {
        "german": {"Per(*)": (31.87, 1.61), "U": (35.75, 1.52), "DD": (30.71, 1.25), "SD": (34.83, 1.54), "DDPA": (28.92, 0.90), "SDPA": (28.88, 0.63), "SPA": (28.57, 0.51)},  # noqa: E501
        "madelon": {"Per(*)": (48.65, 1.57), "U": (50.00, 0.0), "DD": (41.15, 0.50), "SD": (50.00, 0.0), "DDPA": (37.55, 1.00), "SDPA": (50.00, 0.0), "SPA": (39.39, 1.12)},  # noqa: E501
        "a9a": {"Per(*)": (20.43, 0.13), "U": (20.60, 0.10), "DD": (19.20, 0.12), "SD": (18.93, 0.10), "DDPA": (15.82, 0.07), "SDPA": (20.70, 0.48), "SPA": (16.31, 0.11)},  # noqa: E501
        "svmguide3": {"Per(*)": (25.98, 0.51), "U": (28.25, 0.80), "DD": (25.41, 0.95), "SD": (24.65, 0.46), "DDPA": (21.81, 0.21), "SDPA": (21.64, 0.11), "SPA": (22.21, 0.24)},  # noqa: E501
    },
    "5.3": {
        "ijcnn1": {"RBP-DD": (9.23, 0.54), "Forgetron-DD": (9.27, 0.49), "BOGD-DD": (9.71, 0.01), "BPAS-DD": (9.70, 0.01), "RBP-SD": (7.82, 0.18), "Forgetron-SD": (8.21, 0.05), "BOGD-SD": (9.24, 0.04), "BPAS-SD": (9.71, 0.01), "SPA": (7.06, 0.32)},  # noqa: E501
        "cod-rna": {"RBP-DD": (12.44, 0.27), "Forgetron-DD": (13.39, 0.28), "BOGD-DD": (12.59, 0.04), "BPAS-DD": (7.06, 0.15), "RBP-SD": (9.06, 0.29), "Forgetron-SD": (10.24, 0.26), "BOGD-SD": (13.38, 0.17), "BPAS-SD": (10.59, 0.20)},  # noqa: E501
        "a9a": {"RBP-DD": (19.90, 0.49), "Forgetron-DD": (20.03, 0.22), "BOGD-DD": (17.12, 0.08), "BPAS-DD": (16.66, 0.07), "RBP-SD": (18.15, 0.13), "Forgetron-SD": (18.83, 0.14), "BOGD-SD": (17.46, 0.11), "BPAS-SD": (17.01, 0.11), "SPA": (16.31, 0.11)},  # noqa: E501
    },
    "5.4": {
        "german": {"RBP-DD": (31.53, 0.71), "Forgetron-DD": (33.00, 1.13), "BOGD-DD": (30.00, 0.49), "BPAS-DD": (30.08, 0.40), "RBP-SD": (32.02, 1.01), "Forgetron-SD": (33.48, 1.79), "BOGD-SD": (29.34, 0.69), "BPAS-SD": (30.07, 0.56), "FOGD": (30.22, 0.11), "NOGD": (30.24, 0.32)},  # noqa: E501
        "a9a": {"RBP-DD": (22.39, 0.57), "Forgetron-DD": (22.48, 0.37), "BOGD-DD": (20.46, 0.07), "BPAS-DD": (18.73, 0.30), "RBP-SD": (20.62, 0.39), "Forgetron-SD": (21.64, 0.19), "BOGD-SD": (21.52, 0.08), "BPAS-SD": (18.72, 0.21), "FOGD": (16.52, 0.17), "NOGD": (17.24, 0.26)},  # noqa: E501
    },
    "5.5": {
        "cod-rna": {"RBP-DD": (20.71, 0.61), "Forgetron-DD": (21.95, 0.08), "BOGD-DD": (24.29, 0.05), "BPAS-DD": (15.45, 1.09), "RBP-SD": (17.48, 0.51), "Forgetron-SD": (19.45, 0.37), "BOGD-SD": (32.75, 0.03), "BPAS-SD": (21.88, 0.62), "FOGD": (4.33, 0.15), "NOGD": (4.57, 0.04)},  # noqa: E501
        "ijcnn1": {"RBP-DD": (12.54, 0.33), "Forgetron-DD": (13.26, 0.39), "BOGD-DD": (9.71, 0.0), "BPAS-DD": (9.71, 0.0), "RBP-SD": (9.47, 0.18), "Forgetron-SD": (10.28, 0.12), "BOGD-SD": (9.71, 0.0), "BPAS-SD": (9.71, 0.0), "FOGD": (6.36, 0.27), "NOGD": (9.35, 0.45)},  # noqa: E501
    },
    "5.6": {
        "cod-rna": {"RBP-single": (7.58, 0.07), "BOGD-single": (8.19, 0.06), "SPA-100": (10.92, 1.03), "FOGD": (4.33, 0.15), "NOGD": (4.57, 0.04)},  # noqa: E501
        "a9a": {"RBP-single": (21.03, 0.05), "BOGD-single": (17.01, 0.17), "SPA-100": (18.71, 1.35), "FOGD": (16.52, 0.17), "NOGD": (17.24, 0.26)},  # noqa: E501
    },
}  # fmt: skip


NOTES = """
## Where ours differ by more than two standard deviations

- A silent learner (score 0) has no vote here and counts as wrong. The thesis takes sign(0) for +1, which lets narrow
  kernels vote for free: this is why U and SD are better here on german and on madelon (where 50.00 ± 0.00 means that
  one class was always predicted).
- FOGD and NOGD take AdaGrad steps that nobody tuned; the thesis uses constant ones from its chapter 4. Better on
  cod-rna, a9a and german (NOGD), worse on ijcnn1 (FOGD).
- SD on a shared budget: here a learner that is chosen when the budget is spent drops a vector of its own, so everybody
  keeps the share it had when the budget filled up, early in the stream, with weights still nearly equal. That is the
  likely reason why RBP-SD is worse than printed; the thesis does not say whose vector goes.
- BOGD: eta = 0.2 and lambda = 1e-6 throughout; the thesis searched both.
- madelon, cod-rna: the thesis does not say how the columns were scaled; ours have mean 0 and variance 1. That is the
  likely reason why the budgeted learners are better than printed on cod-rna, where raw columns differ a lot in size.
- DDPA and SDPA on svmguide3 are about one point worse than printed; we do not know why.
- "Not run" and small numbers of orders: the script fills the gaps when it is run again.
- Seconds are of one thread of a 2-core Neoverse N1 that had other work to do: upper bounds.
"""


def recipe(table: str, name: str, label: str, kernel: int | None) -> tuple[str, dict[str, Any]]:
    """Name and parameters of an algorithm of a table."""
    if label in SINGLE:
        base, params = SINGLE[label]
        return base, {**params, "kernel": kernel}
    if label.startswith("SPA"):
        own = {"budget": 100, "discount": 0.999} if label == "SPA-100" else {}
        return "omkl_spa", {"beta": 10.0 if name == "cod-rna" else 3.0, **own}
    if label in BOUNDED:
        return BOUNDED[label], {"budget": BUDGET_53[name] if table == "5.3" else 1600}
    return {**UNBOUNDED, "FOGD": "omkl_fogd", "NOGD": "omkl_nogd"}[label], {}


def run(job: tuple[str, str, dict[str, Any], int]) -> dict[str, Any]:
    """One pass over a data set in one order."""
    name, algorithm, params, order = job
    scale, split = SETS[name]
    X, y = datasets.load(name, scale=scale, split=split, check=False, return_X_y=True)
    rows = np.random.default_rng(order).permutation(len(y))
    X, y = X[rows], y[rows]
    own = dict(params)
    if "kernel" in own:
        own["kernel"] = pool()[own["kernel"]]
    est = zoo.make(algorithm, random_state=order, **own)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # unbounded support sets are the point here
        scores = est.learn(X, y, classes=[-1, 1])
    seconds = time.perf_counter() - start
    members = getattr(est, "learners_", [est])
    support = [m.n_support_ if hasattr(m, "n_support_") else 100 for m in members]
    wrong = 100 * float(np.mean(np.where(scores >= 0, 1, -1) != y))
    return {"set": name, "algorithm": algorithm, "params": params, "order": order, "error": wrong, "support": sum(support), "seconds": seconds}  # fmt: skip # noqa: E501


def key(job: Any) -> str:
    """What tells one run from another."""
    if isinstance(job, dict):
        job = (job["set"], job["algorithm"], job["params"], job["order"])
    return json.dumps(job, sort_keys=True)


class Runs:
    """All runs so far, in a file with a line for each."""

    def __init__(self, path: Path, jobs: int):
        self.path, self.jobs = path, jobs
        lines = path.read_text().splitlines() if path.exists() else []
        self.done = {key(found): found for found in map(json.loads, lines)}

    def do(self, wanted: list[Any]) -> None:
        """Make the runs that are missing, the longest first."""
        missing = list({key(job): job for job in wanted if key(job) not in self.done}.values())
        cost = {"a9a": 3, "cod-rna": 2, "ijcnn1": 1}
        missing.sort(key=lambda job: -cost.get(job[0], 0) - (job[1] in UNBOUNDED.values()))
        with multiprocessing.get_context("spawn").Pool(self.jobs) as workers, self.path.open("a") as file:
            for found in workers.imap_unordered(run, missing):
                self.done[key(found)] = found
                file.write(json.dumps(found) + "\n")
                file.flush()
                print(
                    f"{found['set']} {found['algorithm']} {found['params']} {found['order']}: {found['error']:.2f} %, {found['seconds']:.1f} s",  # noqa: E501
                    flush=True,
                )

    def best_kernel(self, name: str, label: str) -> int | None:
        """The kernel with the fewest mistakes in an order that no table uses; None before that is known."""
        base, params = SINGLE[label]
        found = [self.done.get(key((name, base, {**params, "kernel": k}, 1000))) for k in range(len(pool()))]
        return None if None in found else int(np.argmin([one["error"] for one in found if one]))


def searches(sets: list[str]) -> list[Any]:
    """Runs that find the best single kernels."""
    needed = {(name, label) for per in PRINTED.values() for name in per for label in per[name] if label in SINGLE}
    return [
        (name, SINGLE[label][0], {**SINGLE[label][1], "kernel": k}, 1000)
        for name, label in sorted(needed)
        if name in sets
        for k in range(len(pool()))
    ]


def jobs(runs: Runs, table: str, name: str, label: str, orders: int) -> list[Any]:
    """Runs behind one figure."""
    kernel = runs.best_kernel(name, label) if label in SINGLE else None
    if label in SINGLE and kernel is None:
        return []
    algorithm, params = recipe(table, name, label, kernel)
    return [(name, algorithm, params, order) for order in range(orders)]


def tables(runs: Runs, orders: int) -> str:
    """All tables, as far as there are runs."""
    text = []
    for table, per in PRINTED.items():
        text.append(f"\n## Table {table}\n")
        for name, printed in per.items():
            text.append(
                f"\n### {name}\n\n| algorithm | mistakes % | printed | vectors | seconds | orders |\n| --- | --- | --- | --- | --- | --- |"  # noqa: E501
            )
            for label, (theirs, spread) in printed.items():
                found = [runs.done[key(job)] for job in jobs(runs, table, name, label, orders) if key(job) in runs.done]
                if not found:
                    text.append(f"| {label} | not run | {theirs:.2f} ± {spread:.2f} | | | 0 |")
                    continue
                error, support, seconds = (np.array([one[k] for one in found]) for k in ("error", "support", "seconds"))
                deviation = error.std(ddof=1) if len(error) > 1 else 0.0
                around = f" ± {deviation:.2f}" if len(error) > 1 else ""
                apart = error.mean() - theirs
                mark = "" if abs(apart) <= 2 * max(spread, deviation) else (" (better)" if apart < 0 else " (worse)")
                text.append(
                    f"| {label} | {error.mean():.2f}{around}{mark} | {theirs:.2f} ± {spread:.2f} | {support.mean():,.0f} | {seconds.mean():.2f} | {len(found)} |"  # noqa: E501
                )
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--tables", nargs="*", default=list(PRINTED), choices=list(PRINTED))
    parser.add_argument("--only", nargs="*", help="labels of algorithms")
    parser.add_argument("--runs", type=Path, default=RESULTS / "omkl_runs.jsonl")
    parser.add_argument("--write", action="store_true", help="only write the tables")
    chosen = parser.parse_args()
    all_runs = Runs(chosen.runs, chosen.jobs)
    if not chosen.write:
        figures = [
            (table, name, label)
            for table in chosen.tables
            for name, printed in PRINTED[table].items()
            for label in printed
            if name in chosen.sets and (not chosen.only or label in chosen.only)
        ]
        if any(label in SINGLE for *_, label in figures):
            all_runs.do(searches(chosen.sets))
        all_runs.do([job for figure in figures for job in jobs(all_runs, *figure, chosen.orders)])
    written = tables(all_runs, chosen.orders)
    (RESULTS / "omkl_tables.md").write_text(
        'Written by `python benchmarks/omkl_tables.py`. Mean ± standard deviation over random orders; "better" and '
        '"worse" mark\nfigures more than two standard deviations from the printed ones.\n' + written + NOTES
    )
