"""Nearly exact kernel machines (Falkon) on all rows: time and error against the number of centres, beside others.

    python benchmarks/speed/falkon.py centers covtype 500,1000,2000,4000 [--engine torch]  # default settings otherwise
    python benchmarks/speed/falkon.py others covtype binning,trees,svc                      # what stands beside it
    python benchmarks/speed/falkon.py exact mnist
    python benchmarks/speed/falkon.py parts mnist auto --engine torch    # seconds of search, solution and answers
    python benchmarks/speed/falkon.py show                                                  # the table

Every run adds its lines to ``benchmarks/results/falkon.json`` (``--json`` names another file). Rows are float32 as they
are in the files: nothing is scaled beforehand. Errors are shares of wrong answers, or 1 - R², on the test rows; covtype
is class 2 against the others, with 464,809 training rows; sets without a split of their own are cut at random, 80:20.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

from kernelstream import BinningClassifier, BinningRegressor, FalkonClassifier, FalkonRegressor, datasets, engine

RESULTS = Path(__file__).parents[1] / "results"


def load(name: str) -> tuple[np.ndarray, ...]:
    """Training rows and targets, test rows and targets."""
    data = datasets.load(name)
    X = np.ascontiguousarray(data.X.toarray() if hasattr(data.X, "toarray") else data.X, np.float32)
    y = np.where(data.y == 2, 1, 0) if name == "covtype" else data.y
    test = data.is_test
    if test is None:
        count = {"covtype": 464_809}.get(name, int(0.8 * len(y)))
        test = np.ones(len(y), bool)
        test[np.random.default_rng(0).permutation(len(y))[:count]] = False
    return X[~test], y[~test], X[test], y[test]


def error(model, X: np.ndarray, y: np.ndarray) -> float:
    """Share of wrong answers, or 1 - R² for numbers."""
    found = model.predict(X)
    if y.dtype.kind == "f":
        return float(np.sum((found - y) ** 2) / np.sum((y - y.mean()) ** 2))
    return float(np.mean(found != y))


def machine(device: str) -> str:
    """The machine in words."""
    if device == "torch":
        import torch

        if torch.cuda.is_available():
            return torch.cuda.get_device_name()
    return f"{len(os.sched_getaffinity(0))} cores"


def record(path: Path, **line) -> None:
    """Add a line to the file, in the place of an older one of the same run."""
    lines = json.loads(path.read_text()) if path.exists() else []
    keys = ("set", "method", "machine")
    lines = [old for old in lines if any(old[key] != line[key] for key in keys)] + [line]
    path.write_text(json.dumps(lines, indent=0) + "\n")
    print(line, flush=True)


def run(path: Path, name: str, method: str, model, where: str) -> None:
    X, y, A, b = load(name)
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    found = (
        {"kernel": str(model.kernel_), "lam": model.lam_, "n_iter": model.n_iter_} if hasattr(model, "width_") else {}
    )
    record(
        path, set=name, method=method, machine=where, rows=len(y), error=error(model, A, b), seconds=seconds, **found
    )


def centers(path: Path, name: str, counts: list[int], chosen: str, loss: str) -> None:
    kind = FalkonRegressor if datasets.load(name).y.dtype.kind == "f" else FalkonClassifier
    for count in counts:
        model = kind(n_centers=count, random_state=0, engine=chosen)
        if loss != "squared":
            model.set_params(loss=loss)
        method = f"{count} centres" + ("" if loss == "squared" else f", {loss}")
        run(path, name, method, model, machine(chosen))


def parts(path: Path, name: str, counts: list[str], chosen: str) -> None:
    """Seconds of the search, of the solution and of the answers, the first call of the process left out."""
    from kernelstream.estimators.falkon import models

    X, y, A, b = load(name)
    kind = FalkonRegressor if y.dtype.kind == "f" else FalkonClassifier
    seconds: dict[str, float] = {}

    def timed(part: str, work):
        def run(*args, **options):
            start = time.perf_counter()
            try:
                return work(*args, **options)
            finally:
                seconds[part] = seconds.get(part, 0.0) + time.perf_counter() - start

        return run

    models.FalkonSearch.widths_and_kernel = timed("search", models.FalkonSearch.widths_and_kernel)
    models.FalkonSearch.penalty = timed("search", models.FalkonSearch.penalty)
    for solver in ("kernel_ridge", "falkon", "CenterMatrix"):
        setattr(models, solver, timed("solution", getattr(models, solver)))
    kind(n_centers=500, engine=chosen, random_state=0).fit(X[:3000], y[:3000]).predict(A[:100])
    for count in counts:
        seconds.clear()
        model = kind(n_centers=count if count == "auto" else int(count), engine=chosen, random_state=0)
        timed("fit", model.fit)(X, y)
        wrong = timed("answers", error)(model, A, b)
        label = f"{len(model.centers_)} centres ({count})"
        found = {"kernel": str(model.kernel_), "lam": model.lam_, "n_iter": model.n_iter_}
        where = machine(chosen)
        record(path, set=name, method=label, machine=where, rows=len(y), error=wrong, seconds=seconds.pop("fit"),
               parts={part: round(value, 3) for part, value in seconds.items()}, **found)  # fmt: skip


def others(path: Path, name: str, methods: list[str]) -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler
    from sklearn.svm import SVC, SVR

    numbers = datasets.load(name).y.dtype.kind == "f"
    for method in methods:
        if method == "binning":
            label, model = (
                "random binning, 128 grids",
                (BinningRegressor if numbers else BinningClassifier)(random_state=0),
            )
        elif method == "trees":
            label = "gradient boosted trees, scikit-learn"
            model = (HistGradientBoostingRegressor if numbers else HistGradientBoostingClassifier)(random_state=0)
        else:
            label, machine_ = "SVM, grid of 12", SVR() if numbers else SVC()
            prefix = type(machine_).__name__.lower()
            grid = {f"{prefix}__C": [1, 10, 100], f"{prefix}__gamma": [0.25, 1, 4, 16]}
            model = GridSearchCV(make_pipeline(MinMaxScaler(), machine_), grid, cv=3, n_jobs=-1)
        run(path, name, label, model, machine("cpu"))


def exact(path: Path, name: str) -> None:
    """(K + lam I) alpha = y by torch's Cholesky factorisation, with the choices that the default made."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    X, y, A, b = load(name)
    chosen = FalkonClassifier(n_centers=2000, random_state=0).fit(X[:20_000], y[:20_000])
    gamma, lam = chosen.kernel_.gamma, chosen.lam_
    left, right = (torch.tensor(Z / chosen.width_.astype(np.float32), device=device) for Z in (X, A))
    Y = torch.tensor(np.where(y[:, None] == np.unique(y), 1.0, -1.0), device=device, dtype=torch.float32)

    def solve() -> np.ndarray:
        K = torch.cdist(left, left).square_().mul_(-gamma).exp_()
        K.diagonal().add_(lam)
        alpha = torch.cholesky_solve(Y - Y.mean(0), torch.linalg.cholesky(K))
        scores = torch.cdist(right, left).square_().mul_(-gamma).exp_() @ alpha + Y.mean(0)
        return scores.argmax(1).cpu().numpy()

    start = time.perf_counter()
    answers = np.unique(y)[solve()]
    seconds = time.perf_counter() - start
    wrong = float(np.mean(answers != b))
    record(path, set=name, method="exact, torch", machine=machine("torch"), rows=len(y), error=wrong, seconds=seconds)


def show(path: Path) -> None:
    lines = json.loads(path.read_text())
    table = [
        "| set | rows | method | machine | error | seconds | chosen |",
        "|---|---:|---|---|---:|---:|---|",
    ]

    def place(line: dict) -> tuple:
        count = line["method"].split()[0]
        return line["set"], line["machine"], not count.isdigit(), int(count) if count.isdigit() else 0

    for line in sorted(lines, key=place):
        chosen = f"{line['kernel']}, lam {line['lam']:g}, {line['n_iter']} iterations" if "kernel" in line else ""
        table.append(
            f"| {line['set']} | {line['rows']:,} | {line['method']} | {line['machine']} | "
            f"{100 * line['error']:.2f} % | {line['seconds']:.1f} | {chosen} |"
        )
    table.append(
        "\nErrors on test rows: wrong answers, or 1 - R² for numbers. Seconds of `fit`, the choice of scale, bandwidth "
        "and penalty included; the two cores were shared with other work, so theirs are upper bounds. "
        "`python benchmarks/speed/falkon.py`."
    )
    (RESULTS / "falkon.md").write_text("\n".join(table) + "\n")
    print("\n".join(table))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("centers", "others", "exact", "parts", "show"))
    parser.add_argument("name", nargs="?")
    parser.add_argument("values", nargs="?", default="")
    parser.add_argument("--engine", default="auto", choices=engine.ENGINES)
    parser.add_argument("--loss", default="squared")
    parser.add_argument("--json", type=Path, default=RESULTS / "falkon.json")
    given = parser.parse_args()
    if given.what == "centers":
        centers(given.json, given.name, [int(m) for m in given.values.split(",")], given.engine, given.loss)
    elif given.what == "others":
        others(given.json, given.name, given.values.split(","))
    elif given.what == "parts":
        parts(given.json, given.name, (given.values or "auto").split(","), given.engine)
    elif given.what == "exact":
        exact(given.json, given.name)
    else:
        show(given.json)
