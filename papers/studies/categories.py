"""Categories as categories against their codes taken as numbers: the same learner, the same rows, in their own order.

    python papers/studies/categories.py [--rows N] [--forest] [NAME ...]

Needs KERNELSTREAM_DATA. Data sets whose ``categorical`` array says which columns hold codes: once as they are, scaled
by the learner, once through ``Columns``, which is told which columns are categories and scales the numbers.
Prequential: every row is predicted before it is learned. Prints a Markdown table. ``--forest`` adds River's adaptive
random forest behind its one-hot encoder, which takes some minutes for each set.
"""

from __future__ import annotations

import argparse
import math
import warnings
from typing import Any

import numpy as np

from kernelstream import NewtonClassifier, OnlineRidge, datasets
from kernelstream.columns import Columns, make_stream
from kernelstream.evaluate import prequential
from kernelstream.streams import Cells

ROWS = {"adult": None, "airlines": 50_000, "fifa": None, "kings_county": None, "diamonds": None}


def load(name: str, rows: int | None) -> tuple[np.ndarray, np.ndarray, list[str], list[str]]:
    """X, y, the names of the columns, and those of the categories."""
    folder = datasets.folder()
    if folder is None:
        raise SystemExit("set KERNELSTREAM_DATA to the folder that holds the data sets")
    data = np.load(folder / f"{name}.npz")
    n = min(rows or len(data["y"]), ROWS[name] or len(data["y"]))
    names = [str(word) for word in data["feature_names"]]
    return data["X"][:n].astype(np.float64), data["y"][:n], names, [names[j] for j in data["categorical"]]


def as_cells(X: np.ndarray, names: list[str], categories: list[str]) -> Cells:
    """The same rows with words where the codes were."""
    columns: dict[str, Any] = {}
    for j, name in enumerate(names):
        columns[name] = [f"v{code:g}" for code in X[:, j]] if name in categories else X[:, j]
    return Cells(columns, len(X))


def run(est: Any, X: Any, y: np.ndarray, metric: str) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return prequential(est, X, y, metrics=metric, progress=False).metrics


def forest(X: np.ndarray, y: np.ndarray, names: list[str], categories: list[str]) -> dict[str, float]:
    """River's adaptive random forest on the same rows: words through its one-hot encoder, numbers as they are."""
    from river import compose
    from river import forest as forests
    from river import preprocessing as prepare

    labels = y.dtype.kind != "f"
    words = compose.SelectType(str) | prepare.OneHotEncoder()
    model = (words + compose.SelectType(float)) | (
        forests.ARFClassifier(seed=0) if labels else forests.ARFRegressor(seed=0)
    )
    wrong = lost = squares = absolute = 0.0
    for row, target in zip(X.tolist(), y.tolist(), strict=True):
        x = {name: f"v{v:g}" if name in categories else float(v) for name, v in zip(names, row, strict=True)}
        if labels:
            p = model.predict_proba_one(x)
            answer = max(p, key=p.__getitem__) if p else None
            wrong += answer != target
            lost -= math.log(min(max(p.get(target, 0.0), 1e-7), 1.0)) if p else math.log(0.5)
        else:
            error = (model.predict_one(x) or 0.0) - target
            squares, absolute = squares + error**2, absolute + abs(error)
        model.learn_one(x, target)
    n = len(y)
    return {"log_loss": lost / n, "mistake_rate": wrong / n, "rmse": (squares / n) ** 0.5, "mae": absolute / n}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(ROWS))
    parser.add_argument("--rows", type=int, help="at most so many rows of each")
    parser.add_argument("--forest", action="store_true", help="River's adaptive random forest besides")
    args = parser.parse_args()
    print(f"| data | rows | columns, categories | measure | codes as numbers | categories |{' forest |' * args.forest}")
    print("|---|---|---|---|---|---|" + "---|" * args.forest)
    for name in args.names:
        X, y, names, categories = load(name, args.rows)
        labels = y.dtype.kind != "f"
        metric = "log_loss" if labels else "rmse"

        def learner(scaled: bool, labels: bool = labels) -> Any:
            return (NewtonClassifier if labels else OnlineRidge)(standardize=scaled, random_state=0)

        codes = run(learner(True), X, y, metric)
        kinds = dict.fromkeys(categories, "category")
        words = run(make_stream(Columns(kinds), learner(False)), as_cells(X, names, categories), y, metric)
        found = [codes, words] + ([forest(X, y, names, categories)] if args.forest else [])
        size = f"{len(names)}, {len(categories)}"
        for key in ("log_loss", "mistake_rate") if labels else ("rmse", "mae"):
            shown = [f"{value[key]:.4f}" if labels else f"{value[key]:,.0f}" for value in found]
            line = [name, f"{len(y):,}", size, key.replace("_", " "), *shown]
            print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
