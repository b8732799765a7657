"""Rows per second of the River adapter on rows of 20 features, beside River's own models, and on a stream of texts.

Every model sees the same dicts; seconds on the wall, best of several turns in one run on an idle machine. The texts are
twenty words out of 40,000, most of which come for the first time.

    python benchmarks/speed/river_rows.py [--rows 20000] [--repeats 5]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from river import linear_model, tree

from kernelstream.river import RiverClassifier


def rows_like(n: int, d: int = 20) -> tuple[list[dict[str, float]], list[int]]:
    """Dicts of d normal numbers, and whether the first two have the same sign."""
    X = np.random.default_rng(0).standard_normal((n, d))
    names = [f"x{j}" for j in range(d)]
    return [dict(zip(names, row.tolist(), strict=True)) for row in X], (X[:, 0] * X[:, 1] > 0).astype(int).tolist()


def learn(model: Any, rows: list[dict[str, float]], labels: list[int]) -> None:
    for x, y in zip(rows, labels, strict=True):
        model.learn_one(x, y)


def predict(model: Any, rows: list[dict[str, float]], labels: list[int]) -> None:
    for x in rows:
        model.predict_one(x)


def test_then_train(model: Any, rows: list[dict[str, float]], labels: list[int]) -> None:
    for x, y in zip(rows, labels, strict=True):
        model.predict_one(x)
        model.learn_one(x, y)


def learn_many(model: Any, rows: list[dict[str, float]], labels: list[int]) -> None:
    for start in range(0, len(rows), 1000):
        model.learn_many(rows[start : start + 1000], labels[start : start + 1000])


def texts(n: int, words: int = 40_000) -> list[dict[str, float]]:
    """Dicts of twenty words, half of them frequent ones."""
    rng = np.random.default_rng(0)
    draws = np.where(rng.random((n, 20)) < 0.5, rng.zipf(1.3, (n, 20)) % words, rng.integers(0, words, (n, 20)))
    return [dict.fromkeys((f"w{word}" for word in row), 1.0) for row in draws.tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    rows, labels = rows_like(args.rows)
    models = {
        "kernelstream, 512 features": RiverClassifier(seed=0),
        "River logistic regression (linear)": linear_model.LogisticRegression(),
        "River Hoeffding tree": tree.HoeffdingTreeClassifier(),
    }
    for model in models.values():
        learn(model, rows[:200], labels[:200])
    best: dict[tuple[str, str], float] = {}
    for _ in range(args.repeats):
        for name, model in models.items():
            for task in (learn, predict, test_then_train, learn_many):
                if task is learn_many and not isinstance(model, RiverClassifier):
                    continue
                start = time.perf_counter()
                task(model, rows, labels)
                rate = len(rows) / (time.perf_counter() - start)
                best[name, task.__name__] = max(best.get((name, task.__name__), 0.0), rate)
    print("| model | task | rows/s |\n|---|---|---:|")
    for (name, task_name), rate in best.items():
        print(f"| {name} | {task_name} | {rate:,.0f} |")
    documents, model = texts(args.rows), RiverClassifier(seed=0)
    start = time.perf_counter()
    test_then_train(model, documents, [i % 2 for i in range(len(documents))])
    rate = len(documents) / (time.perf_counter() - start)
    print(f"| kernelstream, {len(model.feature_names):,} words | test_then_train | {rate:,.0f} |")


if __name__ == "__main__":
    main()
