"""What the metric that a search on some rows has found leaves to be gained on all rows.

    python papers/studies/metric_candidates.py --jobs 4 --engine torch

`MetricRegressor` and `MetricClassifier` search on a part of the rows and solve on all of them. Here, besides, other
candidates are solved on all rows: other penalties and lengths, the kernel of distances alone, diagonal and full
metrics, more rounds of gradients on all rows, and distances alone in a full metric from the start on (as xRFM has).
Gradients are those of functions that have not seen the rows that are held out, a fifth. Printed are, of every set, the
errors of each candidate on the held-out rows and on the test rows: mean squared error over the variance (numbers) or
the share of mistakes (labels). ``--write FILE`` makes the page results/metric_candidates.md of what was printed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from metric import NUMBERS, parts

from kernelstream import MetricClassifier, MetricRegressor
from kernelstream.engine.torch.metric import DeviceSystems, between
from kernelstream.estimators import _metric_learner as models
from kernelstream.estimators._steepness import labels
from kernelstream.rows import merged
from kernelstream.solvers import metric_search as solver
from kernelstream.solvers.clock import Clock
from kernelstream.solvers.kernel_ridge import addition
from kernelstream.solvers.metric import Systems

SETS = (
    "casp:100000 casp:20000 ijcnn1:20000 shuttle:20000 california:20000 kings_county:20000 parkinsons:20000 "
    "cpusmall:20000 fried:20000 ailerons:20000 madelon:20000 mnist:8000 letter:20000 satimage:20000 cod-rna:20000 "
    "covtype:20000 spambase:20000"
)
BESIDE = {"lam": ("lam/3", "lam*3"), "length": ("near/2", "near*2"), "all": ()}


class Done(Exception):
    """The study has what it wants of a model."""


def study(learner: Any, state: Any, X: Any, Y: np.ndarray, test: tuple[np.ndarray, np.ndarray]) -> dict[str, Any]:
    """Errors of the candidates; the steps are those of ``LearnedMetric.solve``."""
    ops, begin = learner.ops, time.perf_counter()
    held = models._some(len(Y), 0, state["seed"])
    targets, offset, unit = models.scaled_targets(Y, None, learner.regression)
    one, mean, total, _ = merged(X, targets, None)
    state |= models.units_of(X[one], total)
    rows = models.standard_rows(state, X[one], ops)
    state |= dict(zip(models.RANKS, models.rank_knots(rows, total), strict=True))
    effort, order = learner._effort(), learner._searched(held[one], state["seed"])
    found: list[Any] = []

    class Keeping(solver.Trials):
        def of(self, *tried: Any) -> Any:
            new = super().of(*tried)
            found.extend((len(self.systems.a), replace(one, alpha=None)) for one in new)
            return new

    before, solver.Trials = solver.Trials, Keeping  # type: ignore[misc]
    pair = models.pair_of(state, rows, ops)
    metric = solver.learn_metric(pair, mean, total, order, ops, Clock(), effort.searched, effort.fine)
    solver.Trials = before  # type: ignore[misc]
    seconds = time.perf_counter() - begin
    base = next(one for _, one in found[::-1] if one.metric is metric)
    one, mean, total, _ = merged(X, targets, None, also=held)
    last = np.concatenate([np.flatnonzero(~held[one]), np.flatnonzero(held[one])])
    one, mean = one[last], mean[last]
    m, total = int((~held[one]).sum()), None if total is None else total[last]
    own = models.pair_of(state, models.standard_rows(state, X[one], ops), ops)
    asked = models.pair_of(state, models.standard_rows(state, test[0], ops), ops)
    a = np.ones(len(one)) if total is None else total
    systems = DeviceSystems(ops, Systems(ops, (own[0][:m], own[1][:m]), mean[:m].astype(np.float32), a[:m]))
    y = torch.as_tensor(mean, device=systems.Y.device, dtype=torch.float64)

    def solved(tried: Any, penalties: tuple[float, ...] = (1.0,)) -> Iterator[tuple[Any, Any, Any]]:
        """Forecasts of the held-out rows, by the others, and of test rows; and coefficients of the others."""
        Z, T = (tuple(ops.tensor(part, torch.float32) for part in tried.metric.rows(S)) for S in (own, asked))
        K = between(Z, Z, tried.metric.share).double()
        k = between(T, Z, tried.metric.share).double()
        for factor in penalties:
            A = K.clone()
            more = addition(tried.metric.lam * factor, len(one), total)
            A.diagonal().copy_(torch.as_tensor(1 + more, device=A.device))
            L, failed = torch.linalg.cholesky_ex(A)
            del A
            if int(failed):
                yield None, None, None
                continue
            alpha = torch.cholesky_solve(y, L)
            corner = L[m:, m:]
            forecast = y[m:] - corner @ (corner.T @ alpha[m:])
            others = torch.cholesky_solve(y[:m], L[:m, :m]).float()
            yield forecast.cpu().numpy(), (k @ alpha).cpu().numpy(), others

    forecasts: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def enter(name: str, tried: Any, penalties: tuple[float, ...] = (1.0,), names: tuple[str, ...] = ()) -> Any:
        first = None
        for label, (f, g, alpha) in zip((name, *names), solved(tried, penalties), strict=True):
            if f is not None:
                forecasts[label] = f, g
                first = alpha if first is None else first
        return first

    def renewed(tried: Any, alpha: Any) -> Any:
        G, g = systems.gradients(tried.metric, alpha)
        return tried.made(G=G, g=g)

    alpha = enter("base", base, (1.0, 1 / 3, 3.0), ("lam/3", "lam*3"))
    for label, factor in (("near/2", 0.5), ("near*2", 2.0)):
        enter(label, solver._length(0, base, factor) or base)
    enter("distances", base.with_numbers(share=1.0), (1.0, 1 / 3), ("distances, lam/3",))
    enter("share .2", base.with_numbers(share=0.2))
    if base.rho or len(base.g) <= solver.BROAD:
        enter("diagonal", base.made(rho=0.0))
        enter("full", base.made(rho=1.0))
    if alpha is not None:
        again = renewed(base, alpha)
        alpha = enter("round", again, (1.0, 1 / 3), ("round, lam/3",))
        enter("round, distances", again.with_numbers(share=1.0))
        if alpha is not None:
            enter("round 2", renewed(again, alpha))
    if len(base.g) <= solver.BROAD:
        far = solver.plain_start(len(base.g), False).with_numbers(share=1.0, lam=0.01).made(rho=1.0)
        for number in range(4):
            alpha = enter(f"rfm {number}", far, (1.0, 0.1), (f"rfm {number}, lam/10",))
            if alpha is None:
                break
            far = renewed(far, alpha)
    truth, test_y = mean[m:], test[1]

    def error(F: np.ndarray, Y: np.ndarray) -> float:
        if learner.regression:
            return float(np.mean((F - Y) ** 2) / np.var(Y))
        return float(np.mean(labels(F + offset) != labels(Y + offset)))

    held_Y, test_Y = truth, (models.targets_of(test_y, learner, Y) - offset) / unit
    lines = {name: (error(f, held_Y), error(g, test_Y)) for name, (f, g) in forecasts.items()}
    about = f"{base.metric.share} {base.rho} {base.powers} lam {base.metric.lam:.2g} lengths {base.lengths}"
    return {"n": len(one), "base": about, "search": seconds, "all": time.perf_counter() - begin} | {"lines": lines}


TEXT = """# Candidates on all rows, beside the metric that the search has found

Written by `papers/studies/metric_candidates.py --write`, on one H200. Errors on a fifth of the rows beside those
of the metric found by the search ("base": squared error over the variance, or share of mistakes), means of two seeds.
rfm i: distances alone in a full metric after i rounds of gradients on all rows but those held out, penalty 0.01 or a
tenth of it. Last: the base or the rfm of least error on the held-out rows, as `fit` chooses on a GPU (only where there
are more rows than the search has seen).
"""


def page(printed: str) -> str:
    """Tables of what was printed."""
    found: dict[str, list[dict[str, list[float]]]] = {}
    for name, line in re.findall(r"^(\S+ \d+) \d+ n .*\n  (.*)$", printed, re.MULTILINE):
        words = (part.rsplit(" ", 2) for part in line.split("; "))
        found.setdefault(name, []).append({label: [float(a), float(b)] for label, a, b in words})
    labels = list(max((run for runs in found.values() for run in runs), key=len))[1:]
    lines = ["| set | rows | base | " + " | ".join(labels) + " | chosen |", "|---|" + "---:|" * (len(labels) + 3)]
    every: dict[str, list[float]] = {}
    for name, runs in sorted(found.items()):
        base, cells = np.mean([run["base"][1] for run in runs]), []
        for run in runs:
            run["chosen"] = min(
                (e for label, e in run.items() if label == "base" or label[:3] == "rfm"), key=lambda e: e[0]
            )
        for label in [*labels, "chosen"]:
            ratio = np.mean([run[label][1] for run in runs]) / base if all(label in run for run in runs) else np.nan
            every.setdefault(label, []).append(ratio)
            cells.append(f"{ratio:.3f}")
        lines.append(f"| {name.replace(' ', ' | ')} | {base:.4f} | " + " | ".join(cells) + " |")
    means = " | ".join(f"{np.exp(np.nanmean(np.log(ratios))):.3f}" for ratios in every.values())
    return "\n".join([TEXT, *lines, f"| **geometric mean** | | | {means} |", ""])


def measured(name: str, rows: int, seed: int, engine: str) -> dict[str, Any]:
    """The study of one set."""
    warnings.simplefilter("ignore")
    X, y, A, b = parts(name, rows, seed)
    numbers = name in NUMBERS
    model = (MetricRegressor if numbers else MetricClassifier)(engine=engine, random_state=seed)
    found: dict[str, Any] = {}

    def solve(learner: Any, state: Any, rows: Any, Y: np.ndarray, weight: Any) -> None:
        found.update(study(learner, state, np.asarray(rows), Y, (A, b)))
        raise Done

    learning = models.LearnedMetric.solve
    models.LearnedMetric.solve = solve  # type: ignore[method-assign]
    models.targets_of = lambda b, learner, Y: coded(b, y, Y)  # type: ignore[attr-defined]
    try:
        model.fit(X, y)
    except Done:
        pass
    finally:
        models.LearnedMetric.solve = learning  # type: ignore[method-assign]
    return found


def coded(b: np.ndarray, y: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Test targets in the codes Y (n, C) of training targets y."""
    if np.issubdtype(y.dtype, np.floating):
        return b[:, None]
    known, first = np.unique(y, return_index=True)
    return Y[first][np.minimum(np.searchsorted(known, b), len(known) - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=SETS, help="names with numbers of rows")
    parser.add_argument("--seeds", type=int, default=2, help="how many")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    if args.write:
        (Path(__file__).parent / "results" / "metric_candidates.md").write_text(page(args.write.read_text()))
        return
    tasks = [(*task.split(":"), seed) for task in args.sets.split() for seed in range(args.seeds)]
    with ProcessPoolExecutor(args.jobs, multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(measured, n, int(k), s, args.engine): (n, k, s) for n, k, s in tasks}
        for future in as_completed(futures):
            print(*futures[future], end=" ")
            try:
                found = future.result()
            except Exception as error:
                print("failed", repr(error)[:300], flush=True)
                continue
            print(f"n {found['n']} search {found['search']:.1f}s all {found['all']:.1f}s base {found['base']}")
            print("  " + "; ".join(f"{k} {a:.4f} {b:.4f}" for k, (a, b) in found["lines"].items()), flush=True)


if __name__ == "__main__":
    main()
