"""Known results on real files, ``golden.json``, and the rows that they belong to."""

import json
from pathlib import Path

import numpy as np
import pytest

from kernelstream import datasets

GAMMA = 1 / 128  # sigma = 8
GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())
TASKS = {name: task for task in ("binary", "multiclass", "regression") for name in GOLDEN[task]}


def rows(name):
    """X (n, d) float64 and y of a file in the first of its orders, scaled as golden.json says."""
    if name not in datasets.names():
        pytest.skip(f"needs {name} in KERNELSTREAM_DATA")
    data = datasets.load(name, split="train" if TASKS[name] == "multiclass" else None)
    X, y = data.X.astype(np.float64), data.y.astype(int if TASKS[name] == "multiclass" else np.float64)
    if name == "housing":
        X, y = (X - X.min(0)) / np.ptp(X, axis=0), (y - y.min()) / np.ptp(y)
    elif name == "satimage":  # over the training rows alone
        X = 2 * (X - X.min(0)) / np.ptp(X, axis=0) - 1
    order = data["perm_train" if "perm_train" in data else "perm"][0]
    return X[order], y[order]
