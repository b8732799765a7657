"""Learned kernels with other spectra: a width per input, a mixture, a low-rank and a full linear map.

    KERNELSTREAM_DATA=... python papers/studies/learned_spectra.py [--orders 3]

One pass in random order, defaults otherwise, D = 100; mistakes in percent, RMSE for casp. Writes
papers/studies/results/rrf_spectra.md, and the same table into docs/learned_kernels.md.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from kernelstream import datasets, zoo
from kernelstream.evaluate import prequential

ROOT = Path(__file__).parents[2]
COLUMNS: dict[str, dict[str, Any]] = {
    "width per input": {}, "mixture of 4": {"n_centres": 4}, "map to 8": {"rank": 8}, "full map": {"rank": 10**6},
}  # fmt: skip
SETS = ("ijcnn1", "cod-rna", "a9a", "letter", "casp")


def rows_of(name: str) -> tuple[Any, np.ndarray]:
    """All rows of a set, columns scaled where they are numbers of many units; targets of casp to [0, 1]."""
    X, y = datasets.load(name, return_X_y=True)
    if name == "casp":
        return StandardScaler().fit_transform(X), MinMaxScaler().fit_transform(np.reshape(y, (-1, 1))).ravel()
    return (StandardScaler().fit_transform(X) if name in ("cod-rna", "letter") else X), y


def values(name: str, params: dict[str, Any], orders: int) -> np.ndarray:
    """The measure of every order."""
    X, y = rows_of(name)
    task = "regression" if name == "casp" else "multiclass" if len(np.unique(y)) > 2 else "binary"
    measure = "rmse" if name == "casp" else "mistake_rate"
    found = []
    for seed in range(orders):
        order = np.random.default_rng(seed).permutation(len(y))
        model = zoo.make("rrf", task=task, random_state=seed, **params)
        found.append(prequential(model, X[order], y[order], metrics=measure, progress=False).metrics[measure])
    return np.array(found) * (1 if name == "casp" else 100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orders", type=int, default=3)
    orders = parser.parse_args().orders
    lines = [f"{orders} orders.\n", "| data set | " + " | ".join(COLUMNS) + " |", "|" + " --- |" * (len(COLUMNS) + 1)]
    for name in SETS:
        digits = 4 if name == "casp" else 2
        cells = [values(name, params, orders) for params in COLUMNS.values()]
        shown = [f"{v.mean():.{digits}f} ± {v.std(ddof=1):.{digits}f}" for v in cells]
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
        print(lines[-1], flush=True)
    table = "\n".join(lines) + "\n"
    (ROOT / "benchmarks" / "results" / "rrf_spectra.md").write_text(table)
    page = ROOT / "docs" / "learned_kernels.md"
    text = re.sub(
        r"(<!-- spectra -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}\n{table}\n{m[2]}", page.read_text(), flags=re.S
    )
    page.write_text(text)


if __name__ == "__main__":
    main()
