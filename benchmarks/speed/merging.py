"""How close a merged default learner comes to one that has learned all rows.

    KERNELSTREAM_DATA=FOLDER python benchmarks/speed/merging.py [--page] [SET ...]

At most 10,000 rows of each set in random order, a fifth of them for the test; K small learners share the others, and
are merged with 2,500 of these (``kernelstream.merge``). The error is the squared error of numbers and the log-loss of
labels, over that of one learner of all rows. Writes results/merging.json; ``--page`` puts the table into docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from kernelstream import KernelClassifier, KernelRegressor, merge

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "benchmarks" / "results" / "merging.json"
SETS = (
    "abalone", "ailerons", "cadata", "california", "casp", "cpusmall", "diamonds", "fried", "kings_county", "adult",
    "cod-rna", "electricity", "ijcnn1", "letter", "magic04", "nomao", "satimage", "shuttle", "spambase",
)  # fmt: skip
ROWS, SHARED, MODELS = 10_000, 2_500, (2, 4)
LABELS = 30  # whole numbers of at most so many values are labels
GOAL = 1.02


def loaded(name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(Path(os.environ["KERNELSTREAM_DATA"]) / f"{name}.npz", allow_pickle=False) as file:
        if "X" in file:
            X = file["X"]
        else:
            X = sparse.csr_matrix((file["data"], file["indices"], file["indptr"]), tuple(file["shape"])).toarray()
        X, y = np.asarray(X, np.float64), file["y"]
    rows = np.random.default_rng(0).permutation(len(y))[:ROWS]
    return X[rows], y[rows]


def error(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    if isinstance(model, KernelRegressor) or not hasattr(model, "classes_"):
        return float(np.mean((model.predict(X) - y) ** 2))
    P, classes = model.predict_proba(X), model.classes_
    at = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return float(-np.log(np.maximum(np.where(classes[at] == y, P[np.arange(len(y)), at], 0.0), 1e-9)).mean())


def measured(name: str) -> dict[str, float]:
    X, y = loaded(name)
    labels = y.dtype.kind not in "f" or (len(np.unique(y)) <= LABELS and np.array_equal(y, np.rint(y)))
    kind, n = KernelClassifier if labels else KernelRegressor, len(y) * 4 // 5
    pooled = kind(size="small", recent=False, random_state=0)
    pooled.learn(X[:n], y[:n])
    found = {"pooled": error(pooled, X[n:], y[n:])}
    for k in MODELS:
        models = [kind(size="small", recent=False, random_state=i) for i in range(k)]
        for model, rows in zip(models, np.array_split(np.arange(n), k)):
            model.learn(X[rows], y[rows])
        shared = np.random.default_rng(1).permutation(n)[:SHARED]
        merged = merge(models, X[shared], y[shared])
        found[f"best of {k}"] = min(error(model, X[n:], y[n:]) for model in models) / found["pooled"]
        found[f"merged {k}"] = error(merged, X[n:], y[n:]) / found["pooled"]
    return found


def table(record: dict[str, dict[str, float]]) -> str:
    columns = [f"{what} {k}" for k in MODELS for what in ("best of", "merged")]
    lines = [f"| set | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    lines += [f"| {name} | {' | '.join(f'{row[c]:.3f}' for c in columns)} |" for name, row in sorted(record.items())]
    for k in MODELS:
        above = sorted(name for name, row in record.items() if row[f"merged {k}"] > GOAL)
        said = f"above {GOAL}: {', '.join(above)}" if above else f"none above {GOAL}"
        lines += ["", f"{k} models: {len(record) - len(above)} of {len(record)} sets within {GOAL} of pooled, {said}."]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args()
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    for name in args.sets or ([] if args.page else SETS):
        record[name] = measured(name)
        print(name, record[name], flush=True)
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if args.page:
        page = ROOT / "docs" / "scale.md"
        start, end = "<!-- merging: written by benchmarks/speed/merging.py -->", "<!-- end of merging -->"
        before, rest = page.read_text(encoding="utf-8").split(start)
        page.write_text(f"{before}{start}\n{table(record)}\n{end}{rest.split(end)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
