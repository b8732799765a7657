"""What an average that can be left would bring: predict with the mean of the iterates unless the last one does better.

    python papers/studies/averaging.py [--rows 8000] [--sets german,elec2]

A naive program over random Fourier features (D = 200), for a decision: nothing of it is in the library. While AdaGrad
(or OGD) learns, the mean of its iterates is kept with weights that grow like t^3, so that early ones are forgotten:
m += 4/(t + 3) (w - m). "guarded" predicts with the mean as long as its discounted loss, sum_s 0.995^(t-s) l_s, is not
above that of the iterate itself. Figures as in default_update.py, whose data sets and order are used.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy loads its BLAS

import numpy as np
from default_update import BINARY, DRIFT, MULTICLASS, REGRESSION, load
from rich.console import Console
from rich.progress import track
from rich.table import Table

from kernelstream import losses
from kernelstream.features import RandomFourier
from kernelstream.updates import OGD, AdaGrad, Update

DISCOUNT = 0.995
KINDS = {"binary": "hinge", "multiclass": "crammer_singer", "regression": "squared"}


def run(Z: np.ndarray, y: np.ndarray, task: str, update: Update) -> dict[str, float]:
    """Errors of the last iterate, of the weighted mean and of the guarded choice, for features Z (n, P)."""
    loss = losses.get(KINDS[task])
    many = task == "multiclass"
    C = int(y.max()) + 1 if many else 1
    w, mean, G = np.zeros((C, Z.shape[1])), np.zeros((C, Z.shape[1])), np.zeros((C, Z.shape[1]))
    memory = update.memory(C, Z.shape[1])
    lead, offset = 0.0, 0.0  # discounted loss of the mean minus that of the iterate; mean of the targets
    wrong = np.zeros(3)
    for t, (z, target) in enumerate(zip(Z, y, strict=True), start=1):
        goal = int(target) if many else float(target) - offset
        scores = [f if many else float(f[0]) for f in (w @ z, mean @ z)]
        errors = [_error(task, goal, f) for f in scores]
        wrong += [*errors, errors[1] if lead <= 0 else errors[0]]
        lead = DISCOUNT * lead + float(loss.value(goal, scores[1]) - loss.value(goal, scores[0]))
        step, g = update.step(loss, goal, scores[0], 1.0, t, memory)
        if update.diagonal:
            gradient = np.outer(g, z)
            G += gradient**2
            w -= step * gradient / np.sqrt(G + 1e-12)
        else:
            w = step * w + np.outer(g, z)
        mean += 4 / (t + 3) * (w - mean)
        if task == "regression":
            offset += (float(target) - offset) / t
    unit = len(y) * (np.var(y) if task == "regression" else 1.0)
    return dict(zip(("last", "mean", "guarded"), wrong / unit, strict=True))


def _error(task: str, y, f) -> float:
    if task == "regression":
        return (f - y) ** 2
    return float((np.argmax(f) if task == "multiclass" else (1 if f >= 0 else -1)) != y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--sets", help="names, separated by commas; all by default")
    args = parser.parse_args()
    sets = args.sets.split(",") if args.sets else [*BINARY, DRIFT, *MULTICLASS, *REGRESSION]
    console = Console(width=120)
    rules: dict[str, Update] = {"AdaGrad": AdaGrad(), "OGD, 1": OGD(1.0)}
    table = Table(title="errors before each update; last row: mean change against AdaGrad's last iterate")
    table.add_column("")
    columns = [f"{rule}, {which}" for rule in rules for which in ("last", "mean", "guarded")]
    for column in columns:
        table.add_column(column, justify="right")
    figures = []
    for name in track(sets, console=console, transient=True):
        data = load(name, args.rows)
        y = data.y if data.task == "regression" else np.unique(data.y, return_inverse=True)[1]
        y = 2 * y - 1 if data.task == "binary" else y
        features = RandomFourier(gamma=data.gamma, n_components=200, random_state=0).fit(data.X[:100])
        Z = features.transform(data.X).astype(float)
        row = [value for update in rules.values() for value in run(Z, y, data.task, update).values()]
        figures.append(row)
        table.add_row(name, *(f"{value:.4f}" for value in row))
    change = (np.array(figures) / np.array(figures)[:, :1]).mean(axis=0) - 1
    table.add_row("change", *(f"{value:+.1%}" for value in change))
    console.print(table)


if __name__ == "__main__":
    main()
