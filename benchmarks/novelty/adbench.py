"""Unusual rows of the ADBench tables, scored before they are learned: area under the ROC curve.

The rows of a table (at most 20,000) are shuffled with a seed and come in calls of 100. Every method scores the rows of
a call with what it has learned so far, and then learns them; nobody sees a label. River's half-space trees get columns
scaled to [0, 1] by the rows so far, as their documentation asks. LODA is written out here: sparse random projections
and a histogram of each. The isolation forest of scikit-learn is fitted again to all rows whenever these have doubled.

    KERNELSTREAM_DATA=data python benchmarks/novelty/adbench.py --seeds 3

``data/raw`` holds ``adbench_*.npz`` with X and y (1: an anomaly). Needs river and scikit-learn.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from kernelstream import BudgetOneClass, KernelNovelty

ROWS, CALL = 20_000, 100


class HalfSpaceTrees:
    """River's, behind its scaler to [0, 1]."""

    def __init__(self, seed):
        from river.anomaly import HalfSpaceTrees
        from river.preprocessing import MinMaxScaler

        self.scaler, self.trees = MinMaxScaler(), HalfSpaceTrees(n_trees=25, height=8, window_size=250, seed=seed)

    def learn(self, X):
        scores = []
        for x in (dict(enumerate(row)) for row in X.tolist()):
            self.scaler.learn_one(x)
            x = self.scaler.transform_one(x)
            scores.append(self.trees.score_one(x))
            self.trees.learn_one(x)
        return scores


class Loda:
    """Histograms of 100 sparse random projections (Pevný 2016), of width 1/4 of the deviation of the first rows."""

    def __init__(self, seed):
        self.rng, self.W, self.counts, self.n = np.random.default_rng(seed), None, None, 0

    def learn(self, X):
        d, k = X.shape[1], 100
        if self.W is None:
            kept = np.argsort(self.rng.random((k, d)), axis=1) < max(1, round(np.sqrt(d)))
            self.mean, spread = X.mean(axis=0), X.std(axis=0)
            self.W = (self.rng.normal(size=(k, d)) * kept / np.where(spread > 0, spread, 1.0)).T
            unit = ((X - self.mean) @ self.W).std(axis=0)
            self.W /= np.where(unit > 0, unit, 1.0)
            self.counts = np.zeros((k, 82))
        cell = np.clip(np.floor(4 * ((X - self.mean) @ self.W) + 41), 0, 81).astype(int)
        scores = -np.log((self.counts[np.arange(k), cell] + 0.5) / (self.n + 5)).mean(axis=1)
        np.add.at(self.counts, (np.broadcast_to(np.arange(k), cell.shape), cell), 1.0)
        self.n += len(X)
        return scores


class Forest:
    """scikit-learn's isolation forest, fitted again whenever the rows have doubled."""

    def __init__(self, seed):
        self.seed, self.rows, self.n, self.model = seed, [], 0, None

    def learn(self, X):
        scores = np.zeros(len(X)) if self.model is None else -self.model.score_samples(X)
        self.rows.append(X)
        if self.model is None or sum(map(len, self.rows)) >= 2 * self.n:
            rows = np.concatenate(self.rows)
            self.n, self.model = len(rows), IsolationForest(random_state=self.seed).fit(rows)
        return scores


class Minus:
    """Decision values, with larger ones for unusual rows."""

    def __init__(self, model):
        self.model = model

    def learn(self, X):
        return -self.model.learn(X)


METHODS = {
    "KernelNovelty": lambda seed: KernelNovelty(random_state=seed),
    "BudgetOneClass": lambda seed: Minus(BudgetOneClass(random_state=seed)),
    "half-space trees (River)": HalfSpaceTrees,
    "LODA": Loda,
    "isolation forest at doublings": Forest,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1, help="shuffles of each table, whose areas are averaged")
    parser.add_argument("--only", nargs="*", default=list(METHODS), help="methods, by name")
    args = parser.parse_args()
    tables = sorted((Path(os.environ["KERNELSTREAM_DATA"]) / "raw").glob("adbench_*.npz"))
    names = [path.stem.split("_", 2)[2] for path in tables]
    print("| method |", " | ".join(names), "| mean | µs a row |\n|---", "|---" * (len(names) + 2), "|", sep="")
    for method in args.only:
        areas, seconds, rows = [], 0.0, 0
        for path in tables:
            with np.load(path, allow_pickle=True) as table:
                X, y = np.asarray(table["X"], float), np.asarray(table["y"]).astype(bool)
            found = []
            for seed in range(args.seeds):
                order = np.random.default_rng(seed).permutation(len(X))[:ROWS]
                model, shuffled = METHODS[method](seed), X[order]
                start = time.process_time()
                scores = [model.learn(shuffled[i : i + CALL]) for i in range(0, len(order), CALL)]
                seconds, rows = seconds + time.process_time() - start, rows + len(order)
                found.append(roc_auc_score(y[order], np.concatenate(scores)))
            areas.append(np.mean(found))
        cells = [f"{area:.3f}" for area in (*areas, np.mean(areas))]
        print(f"| {method} |", " | ".join(cells), f"| {seconds / rows * 1e6:.0f} |", flush=True)


if __name__ == "__main__":
    main()
