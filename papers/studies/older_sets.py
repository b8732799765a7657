"""The default learner on 24 data sets in random order, beside its best member and Fourier features with AdaGrad.

    KERNELSTREAM_DATA=... python papers/studies/older_sets.py [--rows 20000] [--jobs 2] [--forgetting]

One pass, untuned; mistakes, or the mean squared error over the variance of the target. ``--forgetting`` asks another
question of the same sets and of whole streams in their own order: how fast should AdaGrad's sums of squares fade?
Writes papers/studies/results/older_sets.md, or forgetting.md.
"""

from __future__ import annotations

import argparse
import os
import re
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy loads its BLAS

import numpy as np
from default_update import BINARY, DRIFT, MULTICLASS, REGRESSION, Data, load, score

from kernelstream import FeatureClassifier, FeatureRegressor, KernelClassifier, KernelRegressor, datasets, drift
from kernelstream.updates import AdaGrad

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[2] / "docs" / "default_update.md"
STREAMS = ("electricity", "elec2", "nomao", "adult", "airlines", "covtype",
           "ailerons", "california", "fifa", "fried", "diamonds", "kings_county")  # fmt: skip
CHANGES = "moving hills, 67 changes"
FORGETTING = (1.0, 0.99999, 0.9999, 0.9997, 0.999, 0.997)
MOST = 200_000  # rows of a stream


def stack(name: str, rows: int) -> tuple[str, float, float, str, float]:
    """Name, error of the default learner, of its best member, who that is, and of Fourier features."""
    warnings.simplefilter("ignore")
    data = load(name, rows)
    number = data.task == "regression"
    model = (KernelRegressor if number else KernelClassifier)(random_state=0)
    own = score(model, data)
    best = min(model.members_, key=lambda member: member["error"])
    alone = best["error"] ** 2 / np.var(data.y) if number else best["error"]
    kind = FeatureRegressor if number else FeatureClassifier
    plain = score(kind(standardize=False, random_state=0), data)  # they are scaled already
    return name, own, float(alone), best["name"], plain


def stream(name: str, rows: int) -> Data:
    """A set of the study, or a whole stream in its own order, columns standardised."""
    if name == CHANGES:
        blocks = list(drift.generate(MOST, kind="abrupt", n_concepts=68, random_state=0))
        X, y = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return Data(X, y, "binary", gamma=0.5)
    if name.startswith("whole "):
        data = datasets.load(name[6:], scale="standard")
        return Data(data.X[:MOST], data.y[:MOST], data.task)
    return load(name, rows)


def forgetting(name: str, rows: int) -> tuple[str, list[float]]:
    """Name, and the error for every forgetting."""
    warnings.simplefilter("ignore")
    data = stream(name, rows)
    kind = FeatureRegressor if data.task == "regression" else FeatureClassifier
    return name, [
        score(kind(update=AdaGrad(forgetting=f), standardize=False, random_state=0), data) for f in FORGETTING
    ]


def stack_table(found: list[Any]) -> str:
    lines = ["| data set | the default learner | best member | who | ratio | Fourier features, AdaGrad | ratio |",
             "|---|---:|---:|---|---:|---:|---:|"]  # fmt: skip
    lines += [
        f"| {name} | {own:.4f} | {best:.4f} | {who} | {own / best:.3f} | {plain:.4f} | {own / plain:.3f} |"
        for name, own, best, who, plain in found
    ]
    ratios = np.array([own / best for _, own, best, _, _ in found])
    plain = np.array([own / plain for _, own, _, _, plain in found])
    lines.append(
        f"\nAt most the error of the best member on {np.sum(ratios <= 1.0)} of {len(ratios)} sets, at worst "
        f"{ratios.max():.3f} of it; {1 - np.exp(np.log(plain).mean()):.0%} below Fourier features in the mean."
    )
    return "\n".join(lines)


def forgetting_table(found: list[Any]) -> str:
    lines = [f"| stream | {' | '.join(map(str, FORGETTING))} |", "|---|" + "---:|" * len(FORGETTING)]
    lines += [f"| {name} | {' | '.join(f'{error:.4f}' for error in errors)} |" for name, errors in found]
    logs = np.log(np.array([errors for _, errors in found]))
    for what, rows in {
        "random order": [n in SETS for n, _ in found],
        "own order": [n not in SETS for n, _ in found],
    }.items():
        part = logs[np.array(rows)]
        mean = np.exp((part - part[:, :1]).mean(axis=0)) if len(part) else np.full(len(FORGETTING), np.nan)
        lines.append(f"| **{what}, mean ratio to no forgetting** | {' | '.join(f'{m:.3f}' for m in mean)} |")
    return "\n".join(lines)


SETS = [*BINARY, *MULTICLASS, *REGRESSION]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--forgetting", action="store_true")
    args = parser.parse_args()
    here = [name for name in SETS if name in datasets.names()]
    if args.forgetting:
        work, names, table = (
            forgetting,
            [*here, *(f"whole {s}" for s in STREAMS if s in datasets.names())],
            forgetting_table,
        )
        names += [DRIFT, CHANGES]
    else:
        work, names, table = stack, here, stack_table
    with ProcessPoolExecutor(args.jobs) as pool:
        found = list(pool.map(work, names, [args.rows] * len(names)))
    text = f"Written by `python papers/studies/older_sets.py{' --forgetting' * args.forgetting}`.\n\n{table(found)}\n"
    print(text)
    (RESULTS / ("forgetting.md" if args.forgetting else "older_sets.md")).write_text(text)
    if args.forgetting:
        body = re.compile(r"\| stream \|.*?(?=\n<!-- end of forgetting)", re.DOTALL)
        PAGE.write_text(body.sub(lambda _: table(found), PAGE.read_text()))


if __name__ == "__main__":
    main()
