"""Iterative parameter mixing against one sequential pass: held-out error of FOGD on several workers.

Rows standardised, in random order, 80 % learned and 20 % held out; 200 frequencies, gamma = 1/(2 d), everything else
as it comes. A second pass over the learned rows in another order shows how much the error of one pass depends on the
order alone. The rounds are those of ``distributed.fit``, made in this process one shard after the other, which gives
the same numbers as a cluster (checked at the start on a small set) in less time. Writes
papers/studies/results/parameter_mixing.md.

    python papers/studies/parameter_mixing.py [--orders 10]
"""

import argparse
import math
from itertools import pairwise
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.base import clone

from kernelstream import FeatureClassifier, datasets, distributed
from kernelstream.distributed import mixing
from kernelstream.distributed._data import Rows
from kernelstream.distributed.mixing import SYNC_ROWS
from kernelstream.features import RandomFourier

SETTINGS = [(4, SYNC_ROWS), (4, 2 * SYNC_ROWS), (4, 8 * SYNC_ROWS), (16, SYNC_ROWS)]  # workers, sync_rows
PAIRS = 200
FIRST = 100  # seed of the first order: the method was chosen on orders 0 to 9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--out", default=str(Path(__file__).parent / "results"))
    args = parser.parse_args()
    heads = [f"{workers} workers, {rows} rows" for workers, rows in SETTINGS]
    lines = [
        f"| data | rows learned | one pass | in another order | {' | '.join(heads)} |",
        "|---|---|---|---|" + "---|" * len(SETTINGS),
    ]
    check()
    for name in ("cod-rna", "ijcnn1"):
        lines.append(row(name, args.orders))
        print(lines[-1], flush=True)
    text = (
        f"Held-out error in %, mean of {args.orders} orders of the rows; in brackets how much worse than one "
        "sequential pass, relative, mean ± standard deviation over the orders, and the rounds that the weights made. "
        f"{2 * PAIRS} features; a round takes {32 * 2 * PAIRS / 1000:.1f} kB to and from each worker. Columns: workers "
        f"and `sync_rows`, whose default is {SYNC_ROWS}. `python papers/studies/parameter_mixing.py`.\n\n"
    )
    text += "\n".join(lines) + "\n"
    (Path(args.out) / "parameter_mixing.md").write_text(text, encoding="utf-8")
    print(text)


def row(name: str, orders: int) -> str:
    """A line of the table."""
    X, y = datasets.load(name, return_X_y=True)
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    n = int(0.8 * len(y))
    errors = np.empty((orders, 2 + len(SETTINGS)))
    for k in range(orders):
        seed = FIRST + k
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        train, test = order[:n], order[n:]
        est = FeatureClassifier(RandomFourier(n_components=PAIRS, gamma=1 / (2 * X.shape[1])), random_state=seed)
        models = [learned(est, X[rows], y[rows]) for rows in (train, rng.permutation(train))]
        models += [mixed(est, X[train], y[train], *setting) for setting in SETTINGS]
        errors[k] = [1 - model.score(X[test], y[test]) for model in models]
        print(name, seed, np.round(100 * errors[k], 3), flush=True)
    worse = 100 * (errors[:, 1:] / errors[:, :1] - 1)
    rounds = ["", *(f", {math.ceil(math.ceil(n / workers) / rows):,} rounds" for workers, rows in SETTINGS)]
    cells = [
        f"{100 * error:.2f} ({middle:+.1f} ± {spread:.1f} %{words})"
        for error, middle, spread, words in zip(
            errors[:, 1:].mean(axis=0), worse.mean(axis=0), worse.std(axis=0, ddof=1), rounds
        )
    ]
    return f"| {name} | {n:,} | {100 * errors[:, 0].mean():.2f} | {' | '.join(cells)} |"


def learned(est: FeatureClassifier, X: np.ndarray, y: np.ndarray) -> FeatureClassifier:
    """One pass on this machine."""
    return clone(est).fit(X, y, shuffle=False)


def mixed(est: FeatureClassifier, X: np.ndarray, y: np.ndarray, workers: int, sync_rows: int) -> FeatureClassifier:
    """The same as on workers with a partition each, the tasks of a round done here one after the other."""
    model = clone(est).partial_fit(X[:1], y[:1], classes=np.unique(y))
    state = model.state_
    state |= {"t": 0, "class_counts": 0 * state["class_counts"]}
    model._reset(state)
    cuts = parts(len(y), workers)
    shards = [mixing.Shard([Rows(f"shard {k}", X[a:b], y[a:b])]) for k, (a, b) in enumerate(pairwise(cuts))]
    found = mixing.rounds(model, shards, sync_rows, lambda calls: [mixing.advance("", model, *call) for call in calls])
    model.state_ = found
    return model


def parts(n: int, workers: int) -> np.ndarray:
    """Where the partitions begin and end."""
    return np.minimum(np.arange(workers + 1) * -(-n // workers), n)


def check() -> None:
    """The model of a cluster is the one made here."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    est = FeatureClassifier(RandomFourier(n_components=20, gamma=0.1), random_state=0)
    chunks = tuple(np.diff(parts(len(y), 4)).tolist())
    rows, labels = da.from_array(X, chunks=(chunks, 5)), da.from_array(y, chunks=(chunks,))
    cluster = LocalCluster(n_workers=4, threads_per_worker=1, processes=False, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        there = distributed.fit(clone(est), rows, labels, client=client, sync_rows=30)
    if not np.array_equal(there.decision_function(X), mixed(est, X, y, 4, 30).decision_function(X)):
        raise AssertionError("the cluster makes another model")


if __name__ == "__main__":
    main()
