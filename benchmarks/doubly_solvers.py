"""Doubly stochastic gradients against linear solvers on fixed features, under two stopping rules.

    python benchmarks/doubly_solvers.py [--sets a9a digits] [--features 1024] [--seconds 20] [--out benchmarks/results]

r- are random Fourier features (``--features`` frequencies, twice as many columns), n- Nystroem features (as many
landmarks, uniform); the solvers on them are Pegasos, SDCA, SBMD (stochastic block mirror descent) and RBCD (random
block coordinate descent). Everything minimises the hinge, RBCD the squared hinge. All kernels have the bandwidth that
the doubly stochastic learner chose. The strength of the regulariser is, for every solver and rule, the one of
1, 0.1 and 0.01 (next to the sum of the losses) with the smallest error on a tenth of the training rows.

One pass: every row is seen once (RBCD: every coordinate is moved once). Same time: as many passes as fit into
``--seconds``, judged by the time of the first; features and landmarks included.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from doubly_experiments import learner, pca_digits, split, write

from kernelstream import engine, losses, solvers
from kernelstream.features import Nystroem, RandomFourier
from kernelstream.solvers import DenseMatrix, Problem

SOLVERS = ("pegasos", "sdca", "sbmd", "rbcd")
STRENGTHS = (1.0, 0.1, 0.01)
NEVER = 1e-12  # a tolerance that stops nothing


def error(scores, y):
    return 100.0 * float(np.mean((scores >= 0) != (y > 0)))


def solved(name, Z, y, lam, passes):
    """Weights after so many passes."""
    solver = solvers.get(name).set_params(tol=NEVER, max_iter=passes)
    loss = losses.get("squared_hinge" if name == "rbcd" else "hinge")
    problem = Problem(DenseMatrix(Z), y[:, None], loss, lam, engine.get("auto"), dtype=Z.dtype, seed=1)
    return solver.solve(problem).W[:, 0]


def on_features(name, features, X, y, Xt, yt, seconds):
    """Both rules for one solver on one map: rows of the table."""
    start = time.perf_counter()
    features.fit(X)
    Z = features.transform(X)
    making = time.perf_counter() - start
    Zt = features.transform(Xt)
    held = np.arange(len(y)) % 10 == 9
    kept, left = np.ascontiguousarray(Z[~held]), np.ascontiguousarray(Z[held])
    found = {}
    for rule in ("one pass", "same time"):
        passes = 1
        if rule == "same time":
            one = max(found["one pass"]["seconds"] - making, 1e-3)
            passes = max(1, int((seconds - making) / one))
        trials = {}
        for lam in STRENGTHS:
            trials[lam] = error(left @ solved(name, kept, y[~held], lam, min(passes, 5)), y[held])
        lam = min(trials, key=trials.get)
        start = time.perf_counter()
        w = solved(name, Z, y, lam, passes)
        spent = making + time.perf_counter() - start
        wrong = round(error(Zt @ w, yt), 3)
        found[rule] = {"rule": rule, "error %": wrong, "seconds": round(spent, 2), "passes": passes, "lam": lam}
    return list(found.values())


def doubly(X, y, Xt, yt, seconds):
    """Both rules for the doubly stochastic learner, its automatic choices included; and the chosen kernel."""
    rows = []
    for rule in ("one pass", "same time"):
        passes = 1.0
        if rule == "same time":  # the scores of all rows are kept up to date then: time grows with the iterations
            probe = learner(passes=3.0)
            start = time.perf_counter()
            probe.fit(X, y)
            passes = 3.0 * seconds / (time.perf_counter() - start)
        model = learner(passes=passes)
        start = time.perf_counter()
        model.fit(X, y)
        spent = round(time.perf_counter() - start, 2)
        wrong = error(model.decision_function(Xt), yt)
        rows.append(
            {"rule": rule, "error %": round(wrong, 3), "seconds": spent, "passes": round(passes, 1), "lam": 0.01}
        )
    return rows, model.kernel_


def load(name):
    X, y, Xt, yt = pca_digits((6, 8)) if name == "digits" else split(name)
    return X, np.where(y == y.max(), 1.0, -1.0), Xt, np.where(yt == y.max(), 1.0, -1.0)


def compare(name, args):
    """All learners on one data set: table and picture."""
    sets = load(name)
    found, kernel = doubly(*sets, args.seconds)
    rows = [{"learner": "doubly stochastic", **row} for row in found]
    maps = {
        "r": RandomFourier(kernel, args.features, random_state=0),
        "n": Nystroem(kernel, args.features, random_state=0),
    }
    for letter, features in maps.items():
        for solver in SOLVERS:
            rows += [
                {"learner": f"{letter}-{solver}", **row} for row in on_features(solver, features, *sets, args.seconds)
            ]
    title = f"{name}: hinge on fixed features ({args.features} frequencies or landmarks) and doubly stochastic"
    rows.sort(key=lambda row: (row["rule"], row["error %"]))
    write(args.out, f"doubly_solvers_{name}", title, list(rows[0]), rows)
    bars(args.out, name, rows)


def bars(out, name, rows):
    """Errors of all learners, a bar for each rule."""
    learners = [row["learner"] for row in rows if row["rule"] == "same time"]
    figure, axis = plt.subplots(figsize=(6.4, 3.6))
    for k, rule in enumerate(("one pass", "same time")):
        errors = {row["learner"]: row["error %"] for row in rows if row["rule"] == rule}
        places = np.arange(len(learners)) + 0.4 * (k - 0.5)
        axis.bar(places, [errors[name] for name in learners], 0.38, label=rule)
    axis.set_xticks(range(len(learners)), learners, rotation=30, ha="right")
    axis.set_ylabel("test error, %")
    axis.set_title(name)
    axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(out / f"doubly_solvers_{name}.png", dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sets", nargs="+", default=["a9a", "digits"])
    parser.add_argument("--features", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    for name in args.sets:
        compare(name, args)


if __name__ == "__main__":
    main()
