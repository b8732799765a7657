"""Ten million rows through an ensemble: weights far below the smallest double, and nothing lost.

    python benchmarks/speed/ten_million_rows.py [--rows 10000000]

Four small FOGD learners of different widths on a synthetic stream: labels by the sign of a sine, one in ten of them
wrong. Two of the widths are hopeless and lose weight for ever. With plain Hedge the logarithm of every weight must be
log(discount) times the mistakes of a learner of the same width that learns alone; fixed share keeps all weights above
its floor. Writes results/ten_million_rows.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from kernelstream import FeatureClassifier, MultiKernelClassifier
from kernelstream.estimators import HedgeWeights
from kernelstream.features import RandomFourier

RESULTS = Path(__file__).parents[1] / "results"
WIDTHS = (1e-4, 0.5, 50.0, 1e6)  # gamma
BLOCK = 100_000


def stream(rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of rows."""
    for start in range(0, rows, BLOCK):
        rng = np.random.default_rng(start)
        X = rng.uniform(-3, 3, (min(BLOCK, rows - start), 1))
        y = np.where(np.sin(1.5 * X[:, 0]) >= 0, 1, -1)
        yield X, np.where(rng.random(len(y)) < 0.1, -y, y)


def learners() -> list[FeatureClassifier]:
    return [FeatureClassifier(RandomFourier(gamma=g, n_components=16)) for g in WIDTHS]


def main(rows: int) -> str:
    ensembles = {
        "plain": MultiKernelClassifier(learners(), random_state=0),
        "fixed share 1e-4": MultiKernelClassifier(learners(), combination=HedgeWeights(share=1e-4), random_state=0),
    }
    alone = [learner.set_params(random_state=0) for learner in learners()]
    mistakes, wrong = np.zeros(len(alone), np.int64), dict.fromkeys(ensembles, 0)
    seconds = dict.fromkeys(ensembles, 0.0)
    for X, y in stream(rows):
        for name, est in ensembles.items():
            before = time.perf_counter()
            scores = est.learn(X, y, classes=[-1, 1])
            seconds[name] += time.perf_counter() - before
            wrong[name] += int(np.sum(np.where(scores >= 0, 1, -1) != y))
        mistakes += [int(np.sum(y * member.learn(X, y, classes=[-1, 1]) <= 0)) for member in alone]
    log_theta = ensembles["plain"].state_["log_theta"]
    expected = np.log(0.99) * (mistakes - mistakes.min())
    apart = np.abs(log_theta - expected).max() / np.abs(expected).max()
    text = [
        f"{rows:,} rows of float64, {len(WIDTHS)} learners.\n",
        "| gamma | mistakes alone | log weight expected | log weight, plain | weight, plain | weight, fixed share |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    weights = [est.weights_ for est in ensembles.values()]
    for g, count, want, have, *theta in zip(WIDTHS, mistakes, expected, log_theta, *weights, strict=True):
        text.append(f"| {g:g} | {count:,} | {want:.3f} | {have:.3f} | {theta[0]:.3g} | {theta[1]:.3g} |")
    text.append(f"\nLargest difference of the logarithms, relative to the largest: {apart:.1e}.\n")
    text += ["| ensemble | µs per row | error % | entries of the history |", "| --- | ---: | ---: | ---: |"]
    for name, est in ensembles.items():
        shown = len(est.weights_history_[0])
        text.append(f"| {name} | {1e6 * seconds[name] / rows:.2f} | {100 * wrong[name] / rows:.3f} | {shown} |")
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    written = main(parser.parse_args().rows)
    print(written)
    (RESULTS / "ten_million_rows.md").write_text(
        "Written by `python benchmarks/speed/ten_million_rows.py`.\n\n" + written
    )
