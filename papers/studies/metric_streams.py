"""Losses of the default learner on streams, with and without the learned metric among its members.

    python papers/studies/metric_streams.py --rows 20000 --jobs 16

Of every set the first ``--rows`` rows in their own order, or in a random order where theirs means nothing. The measure
is the mean loss of the forecasts made before each row was learned: the squared error over the variance (numbers), or
the log-loss (labels). ``--sets`` names some of the ``.npz`` files of the folder ``KERNELSTREAM_DATA``. The table is
written to results/metric_streams.md.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # a core for each job

import numpy as np  # noqa: E402
from metric import LABELS, NUMBERS  # noqa: E402

from kernelstream import KernelClassifier, KernelRegressor, settings  # noqa: E402
from kernelstream.estimators.stack import members  # noqa: E402

TEXT = """Written by `python papers/studies/metric_streams.py`. Mean losses of the forecasts made before each row was
learned, with and without the member *metric*: squared error over the variance (numbers), log-loss (labels). Rows are
float64, in one call, on one thread."""
IN_ORDER = {
    "adult", "ailerons", "airlines", "airlines2008_excerpt", "california", "covtype", "diamonds", "electricity", "fifa",
    "fried", "kings_county", "nomao",
}  # fmt: skip


def stream(name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets."""
    with np.load(Path(os.environ["KERNELSTREAM_DATA"]) / f"{name}.npz") as z:
        y = z["y"]
        some = np.arange(len(y)) if name in IN_ORDER else np.random.default_rng(0).permutation(len(y))
        some = some[:rows]
        if "X" in z:
            X = z["X"][some]
        else:
            import scipy.sparse as sp

            X = sp.csr_matrix((z["X_data"], z["X_indices"], z["X_indptr"]), shape=tuple(z["X_shape"]))[some].toarray()
    return np.asarray(X, np.float64), y[some].astype(np.float64) if name in NUMBERS else y[some]


def run(name: str, rows: int, size: str, metric: bool) -> dict[str, Any]:
    """Loss, loss of the second half and seconds of one set."""
    warnings.simplefilter("ignore")
    settings.change(threads=1)
    X, y = stream(name, rows)
    numbers = name in NUMBERS
    found = [member for label, member in members.chosen(numbers, size, X.shape[1]) if metric or label != "metric"]
    model = (KernelRegressor if numbers else KernelClassifier)(size=size, members=found, random_state=0)
    begin = time.perf_counter()
    scores = model.learn(X, y) if numbers else model.learn(X, y, classes=np.unique(y))
    seconds = time.perf_counter() - begin
    if numbers:
        losses = np.square(scores - y) / np.var(y)
    else:
        F = np.stack([-scores / 2, scores / 2], axis=1) if scores.ndim == 1 else scores
        code = np.searchsorted(np.unique(y), y)
        F = F - F.max(axis=1, keepdims=True)
        losses = np.log(np.exp(F).sum(axis=1)) - F[np.arange(len(y)), code]
    return {
        "loss": float(losses.mean()),
        "late": float(losses[len(y) // 2 :].mean()),
        "seconds": seconds,
        "rows": len(y),
    }


def report(found: dict[tuple[str, bool], dict[str, Any]]) -> Iterator[str]:
    """The lines of a table of all sets."""
    yield "| set | rows | without | with | ratio | ratio, second half | µs a row without | with |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for kind, names in (("numbers", NUMBERS), ("labels", LABELS)):
        ratios = []
        for name in names:
            if (name, True) not in found:
                continue
            a, b = found[name, False], found[name, True]
            ratios.append((b["loss"] / a["loss"], b["late"] / a["late"]))
            each = [f"{1e6 * part['seconds'] / part['rows']:.0f}" for part in (a, b)]
            numbers = [f"{x:.4f}" for x in (a["loss"], b["loss"])] + [f"{x:.3f}" for x in ratios[-1]]
            yield " | ".join(["| " + name, f"{a['rows']:,}", *numbers, *each]) + " |"
        if ratios:
            mean, most = np.exp(np.mean(np.log(ratios), axis=0)), np.max(ratios, axis=0)
            yield f"| **{kind}**, geometric mean | | | | {mean[0]:.3f} | {mean[1]:.3f} | | |"
            yield f"| **{kind}**, largest | | | | {most[0]:.3f} | {most[1]:.3f} | | |"


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--sets", default=",".join(NUMBERS + LABELS))
    parser.add_argument("--sizes", default="medium,large")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "metric_streams.md")
    args = parser.parse_args()
    lines = ["# The learned metric among the members of the default learner", "", TEXT]
    for size in args.sizes.split(","):
        with ProcessPoolExecutor(args.jobs) as pool:
            jobs = {
                pool.submit(run, name, args.rows, size, metric): (name, metric)
                for name in args.sets.split(",")
                for metric in (False, True)
            }
            found = {jobs[job]: job.result() for job in as_completed(jobs)}
        lines += ["", f'## "{size}"', "", *report(found)]
        args.out.write_text("\n".join(lines) + "\n")
    print(args.out.read_text())


if __name__ == "__main__":
    main()
