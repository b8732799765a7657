"""How many cells a random grid has, and the speed-up that this promises coordinate descent.

    KERNELSTREAM_DATA=... python papers/studies/binning_cells.py

Wu, Yen, Chen, Yan (KDD 2016): nu is the share of the rows in the fullest cell of a grid, kappa the mean of 1/nu over
grids (definition 1, equation 10), a lower bound of the number of cells that hold rows, D/R in the mean. Random binning
needs kappa times fewer grids than other features need draws (theorem 1), and coordinate descent with tau threads is
faster by at least ``tau / (1 + (R - 1)(tau - 1)/(D - 1))`` (equation 29). Columns in [0, 1], 20,000 rows, 64 grids of
the Laplacian kernel, as Figures 3 and 6. Measured speed-ups are those of the runs of Figure 6.

Writes results/binning_cells.md.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import kernelstream_papers as papers
from kernelstream import datasets, kernels
from kernelstream.features import RandomBinning

RESULTS = Path(__file__).parent / "results"
SETS = ("letter", "ijcnn1", "covtype", "cod-rna")
GAMMAS = (0.25, 1.0, 4.0, 16.0)
GRIDS, ROWS, SEED = 64, 20_000, 0
THREADS = (2, 4, 8, 16)


def cells(X: np.ndarray, gamma: float) -> tuple[float, float]:
    """kappa and D/R of a set of rows."""
    grids = RandomBinning(kernels.Laplacian(gamma), GRIDS, random_state=SEED)
    held = grids.fit_transform(X).getnnz(axis=0)
    parts = np.split(held, grids.starts_[1:-1])
    return float(np.mean([len(X) / part.max() for part in parts])), len(held) / GRIDS


def promised(tau: int, per_grid: float) -> float:
    """Equation 29."""
    return tau / (1 + (GRIDS - 1) * (tau - 1) / (GRIDS * per_grid - 1))


def main() -> str:
    text = ["Written by `python papers/studies/binning_cells.py`: kappa, and cells that hold rows, per grid.", ""]
    text += ["| data | " + " | ".join(f"gamma {g:g}" for g in GAMMAS) + " |", "|---" + "|---:" * len(GAMMAS) + "|"]
    laws: dict[str, float] = {}
    for name in SETS:
        X = datasets.load(name, scale="minmax", return_X_y=True)[0]
        X = X[np.random.default_rng(SEED).permutation(len(X))[:ROWS]]
        found = {gamma: cells(X, gamma) for gamma in GAMMAS}
        laws[name] = found[4.0][1]
        text.append(f"| {name} | " + " | ".join(f"{k:.3g}, {d:,.0f}" for k, d in found.values()) + " |")
    text += ["", "Speed-up of coordinate descent, gamma 4: promised by equation 29, and measured (Figure 6).", ""]
    text += [
        "| data, machine | " + " | ".join(f"{t} threads" for t in THREADS) + " |",
        "|---" + "|---:" * len(THREADS) + "|",
    ]
    took: dict[tuple[str, str], dict[int, list[float]]] = {}
    for run in papers.Records(RESULTS.parents[1] / "results", "binning-figure-6"):
        machine = run["environment"]["processor"]
        took.setdefault((run["data"], machine), {}).setdefault(run["point"]["n_jobs"], []).append(run["value"])
    for (name, machine), seconds in took.items():
        if 1 in seconds:  # a speed-up is one of the same machine
            row = [f"{promised(t, laws[name]):.1f}, {min(seconds[1]) / min(seconds[t]):.1f}" if t in seconds else ""
                   for t in THREADS]  # fmt: skip
            text.append(f"| {name}, {machine} | " + " | ".join(row) + " |")
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    found = main()
    print(found)
    (RESULTS / "binning_cells.md").write_text(found, encoding="utf-8")
