"""Iterative parameter mixing against one sequential pass: held-out error of FOGD with 4 workers.

Rows standardised, in random order, 80 % learned and 20 % held out; 200 frequencies, gamma = 1/(2 d), everything else
as it comes. Writes benchmarks/results/parameter_mixing.md.

    python benchmarks/parameter_mixing.py [--orders 5] [--workers 4]
"""

import argparse
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from kernelstream import FeatureClassifier, datasets, distributed
from kernelstream.features import RandomFourier

SETTINGS = [("average", 1000), ("add", 100), ("add", 400)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args()
    lines = [
        f"| data | one pass | {' | '.join(f'{way}, {rows}' for way, rows in SETTINGS)} |",
        "|---|---|" + "---|" * len(SETTINGS),
    ]
    cluster = LocalCluster(n_workers=args.workers, threads_per_worker=1, processes=False, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        for name in ("cod-rna", "ijcnn1"):
            lines.append(row(name, args.orders, args.workers, client))
            print(lines[-1], flush=True)
    text = (
        f"Held-out error in %, {args.workers} workers, mean of {args.orders} orders of the rows; in brackets how much "
        "worse than one sequential pass, relative, ± standard error of that mean. Columns: how the models become one, "
        "and `sync_rows`. `python benchmarks/parameter_mixing.py`.\n\n" + "\n".join(lines) + "\n"
    )
    target = Path(__file__).parent / "results" / "parameter_mixing.md"
    target.write_text(text, encoding="utf-8")
    print(text)


def row(name: str, orders: int, workers: int, client: Client) -> str:
    X, y = datasets.load(name, return_X_y=True)
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    errors = np.empty((orders, 1 + len(SETTINGS)))
    for seed in range(orders):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[: int(0.8 * len(y))], order[int(0.8 * len(y)) :]
        features = RandomFourier(n_components=200, gamma=1 / (2 * X.shape[1]))
        alone = FeatureClassifier(features, random_state=seed).fit(X[train], y[train])
        errors[seed, 0] = 1 - alone.score(X[test], y[test])
        size = -(-len(train) // workers)
        rows, labels = da.from_array(X[train], chunks=(size, X.shape[1])), da.from_array(y[train], chunks=size)
        for k, (way, sync_rows) in enumerate(SETTINGS):
            model = FeatureClassifier(features, random_state=seed)
            distributed.fit(model, rows, labels, client=client, sync_rows=sync_rows, aggregate=way)
            errors[seed, 1 + k] = 1 - model.score(X[test], y[test])
        print(name, seed, np.round(100 * errors[seed], 3), flush=True)
    worse = 100 * (errors[:, 1:] / errors[:, :1] - 1)
    middle, spread = worse.mean(axis=0), worse.std(axis=0, ddof=1) / np.sqrt(orders)
    cells = [f"{100 * e:.2f} ({m:+.1f} ± {s:.1f} %)" for e, m, s in zip(errors[:, 1:].mean(axis=0), middle, spread)]
    return f"| {name} | {100 * errors[:, 0].mean():.2f} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
