"""Atomisation energies of QM7 from random sorted Coulomb matrices (Dai et al. 2014, Figure 7(4): MAE 2.97 kcal/mol).

A molecule with charges Z and places R (in Bohr) has the Coulomb matrix ``M_ii = Z_i^2.4 / 2``, ``M_ij = Z_i Z_j /
|R_i - R_j|``, 23 × 23 numbers in which the order of atoms means nothing. Rows are sorted by their norms plus noise,
several times for every molecule; a forecast is the mean over the copies of a molecule. The paper breaks every entry
into predicates ``M_ij > step`` and takes a Gaussian kernel of them: their squared distance is the number of steps
between two entries, so that for small steps it is the Laplacian kernel of the entries, which is taken here.

KERNELSTREAM_DATA=... python papers/studies/qm7.py [--engine torch] [--lines exact,ridge,doubly]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from kernelstream import DoublyStochasticRegressor, FalkonRegressor, OnlineRidge, kernels
from kernelstream.estimators import DoublySchedule, DoublyStep
from kernelstream.features import RandomFourier

BOHR = 0.529177  # angstrom
TEST, TEST_COPIES = 1420, 20  # a fifth of the molecules, as in the paper


def coulomb(charges: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Coulomb matrices (n, m, m) of molecules with up to m atoms; rows of atoms that are not there are 0."""
    Z = charges.astype(float)
    distance = np.linalg.norm(positions[:, :, None] - positions[:, None], axis=3) / BOHR
    m = np.arange(Z.shape[1])
    distance[:, m, m] = 1.0
    M = Z[:, :, None] * Z[:, None, :] / np.where(distance > 0, distance, np.inf)
    M[:, m, m] = 0.5 * Z**2.4
    return M


def random_sorted(M: np.ndarray, copies: int, rng: np.random.Generator) -> np.ndarray:
    """Upper triangles of ``copies`` sorted matrices of every molecule, (n, copies, m (m + 1) / 2).

    Rows are in the order of their norms plus standard normal noise; those of no atom come last.
    """
    norms = np.linalg.norm(M, axis=2)
    upper = np.triu_indices(M.shape[1])
    found = np.empty((len(M), copies, len(upper[0])), np.float32)
    rows = np.arange(len(M))[:, None, None]
    for copy in range(copies):
        noisy = np.where(norms > 0, norms + rng.standard_normal(norms.shape), -np.inf)
        order = np.argsort(-noisy, axis=1)
        found[:, copy] = M[rows, order[:, :, None], order[:, None, :]][:, *upper]
    return found


def report(name: str, model: Any, rows: Any, y: np.ndarray, test: np.ndarray, y_test: np.ndarray) -> None:
    start = time.perf_counter()
    model.fit(rows, y)
    copies = model.predict(test.reshape(-1, test.shape[2])).reshape(len(test), -1)
    error, spent = np.abs(copies.mean(axis=1) - y_test).mean(), time.perf_counter() - start
    print(f"{name}: MAE {error:.2f} kcal/mol, {len(rows):,} rows, {spent:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--molecules", type=int, default=5681)
    parser.add_argument("--copies", type=int, default=40)
    parser.add_argument("--lines", default="exact,ridge,doubly")
    parser.add_argument("--exact-copies", type=int, default=4)
    parser.add_argument("--frequencies", type=int, default=8192, help="of ridge regression; twice as many features")
    parser.add_argument("--iterations", type=int, default=512)
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--block", type=int, default=1024, help="frequencies of an iteration; twice as many features")
    parser.add_argument("--width", type=float, default=32.0, help="of the kernel, in median distances")
    parser.add_argument("--doubly-width", type=float, default=2.0)
    parser.add_argument("--lam", type=float, default=1e-6)
    parser.add_argument("--precondition", type=float, default=0.0001)
    args = parser.parse_args()
    data = np.load(Path(os.environ["KERNELSTREAM_DATA"]) / "qm7.npz")
    rng = np.random.default_rng(0)
    order = rng.permutation(len(data["y"]))
    train, held = order[TEST : TEST + args.molecules], order[:TEST]
    M = coulomb(data["charges"], data["positions"])
    start = time.perf_counter()
    X, X_test = random_sorted(M[train], args.copies, rng), random_sorted(M[held], TEST_COPIES, rng)
    y, y_test = data["y"][train], data["y"][held]
    rows, targets = X.reshape(-1, X.shape[2]), np.repeat(y, args.copies)
    some = rows[rng.permutation(len(rows))[:500]]
    median = float(np.median(np.abs(some[:250, None] - some[250:]).sum(axis=2)))
    print(f"median distance {median:.0f}, {time.perf_counter() - start:.0f} s", flush=True)
    gamma, lines = 1.0 / (args.width * median), args.lines.split(",")
    if "exact" in lines:
        few = X[:, : args.exact_copies].reshape(-1, X.shape[2])
        model: Any = FalkonRegressor(
            "laplacian", gamma, n_centers=len(few), lam=args.lam, engine=args.engine, random_state=0
        )
        report("exact kernel", model, few, np.repeat(y, args.exact_copies), X_test, y_test)
    if "ridge" in lines:
        features = RandomFourier(kernels.Laplacian(gamma), args.frequencies, random_state=0)
        model = OnlineRidge(features, args.lam, engine=args.engine)
        report(f"ridge, {2 * args.frequencies:,} features", model, rows, targets, X_test, y_test)
    if "doubly" in lines:
        schedule = DoublySchedule(args.batch, args.block, passes=args.iterations * args.batch / len(rows))
        step = DoublyStep(theta0=300.0, precondition=args.precondition)
        model = DoublyStochasticRegressor(
            "laplacian", 1.0 / (args.doubly_width * median), lam=1e-9, step=step, schedule=schedule, standardize=False,
            engine=args.engine, random_state=0,
        )  # fmt: skip
        name = f"doubly stochastic, {2 * args.block * args.iterations:,} features"
        report(name, model, rows, targets, X_test, y_test)


if __name__ == "__main__":
    main()
