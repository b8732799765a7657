"""Errors and times of `fit` beside the learned metric alone and other libraries, on many sets.

    python papers/studies/metric.py --learners fit,metric,xrfm,lightgbm --rows 10000 --jobs 16 --out metric.json

Of every set at most ``--rows`` rows at random, 80 % of them to learn and 20 % to test. The measure is the mean squared
error over the variance of the test targets (numbers), or the share of mistakes (labels), with the log-loss beside it.
The sets are the ``.npz`` files of the folder ``KERNELSTREAM_DATA``. Results are added to those in the file; what
is there is not computed again. Other libraries (``lightgbm``, ``catboost``, ``xrfm``, ``boosting`` of scikit-learn) may
be installed in an environment of their own, which needs no kernelstream, and add to the same file. ``--write`` makes
the page ``results/metric.md`` of it. With ``--gpu`` `fit`, metric and xRFM learn on a GPU, which jobs share.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pickle
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # a core for each job

import numpy as np  # noqa: E402

LABELS = (
    "a9a", "adult", "airlines", "cod-rna", "covtype", "dna", "electricity", "german", "ijcnn1", "letter", "madelon",
    "magic04", "mnist", "nomao", "poker", "satimage", "shuttle", "spambase", "susy_11k", "svmguide3", "usps", "w7a",
)  # fmt: skip
NUMBERS = (
    "abalone", "ailerons", "airlines2008_excerpt", "california", "casp", "cpusmall", "diamonds", "fifa", "fried",
    "housing", "kings_county", "mg", "parkinsons",
)  # fmt: skip


def parts(name: str, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows to learn and their targets, rows to test and theirs."""
    with np.load(Path(os.environ["KERNELSTREAM_DATA"]) / f"{name}.npz") as z:
        y = z["y"]
        some = np.random.default_rng(seed).permutation(len(y))[:rows]
        if "X" in z:
            X = z["X"][some]
        else:
            import scipy.sparse as sp

            X = sp.csr_matrix((z["X_data"], z["X_indices"], z["X_indptr"]), shape=tuple(z["X_shape"]))[some].toarray()
    y, cut = y[some], len(some) * 4 // 5
    y = y.astype(np.float64) if name in NUMBERS else np.unique(y, return_inverse=True)[1]
    return np.asarray(X[:cut], np.float64), y[:cut], np.asarray(X[cut:], np.float64), y[cut:]


GPU = "KERNELSTREAM_STUDY_GPU" in os.environ  # set by --gpu, for all jobs


def _fit(numbers: bool, seed: int, size: str) -> Any:
    from kernelstream import KernelClassifier, KernelRegressor

    engine = "torch" if GPU else "auto"
    return (KernelRegressor if numbers else KernelClassifier)(size=size, engine=engine, random_state=seed)


def _metric(numbers: bool, seed: int) -> Any:
    from kernelstream import MetricClassifier, MetricRegressor

    return (MetricRegressor if numbers else MetricClassifier)(engine="torch" if GPU else "auto", random_state=seed)


def _boosting(numbers: bool, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    return (HistGradientBoostingRegressor if numbers else HistGradientBoostingClassifier)(random_state=seed)


class _Trees:
    """2,000 trees, which end where 15 % of the rows gain nothing for 50 trees."""

    def __init__(self, model: Any, **stop: Any):
        self.model, self.stop = model, stop

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        from sklearn.model_selection import train_test_split

        labels = y if y.dtype.kind == "i" and np.bincount(y).min() > 1 else None
        A, B, a, b = train_test_split(X, y, test_size=0.15, random_state=0, stratify=labels)
        self.model.fit(A, a, eval_set=[(B, b)], **self.stop)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


def _lightgbm(numbers: bool, seed: int) -> _Trees:
    import lightgbm

    made = lightgbm.LGBMRegressor if numbers else lightgbm.LGBMClassifier
    model = made(n_estimators=2000, learning_rate=0.04, random_state=seed, verbose=-1, n_jobs=1)
    return _Trees(model, callbacks=[lightgbm.early_stopping(50, verbose=False)])


def _catboost(numbers: bool, seed: int) -> _Trees:
    """The rate is CatBoost's own choice."""
    import catboost

    made = catboost.CatBoostRegressor if numbers else catboost.CatBoostClassifier
    options = {"allow_writing_files": False, "thread_count": 1, "random_seed": seed}
    return _Trees(made(iterations=2000, **options), early_stopping_rounds=50, verbose=False)


class _Xrfm:
    """The defaults of xRFM: columns standardised, 15 % of the rows to choose by."""

    def __init__(self, numbers: bool, seed: int):
        from xrfm import xRFM

        self.numbers, self.seed = numbers, seed
        self.model = xRFM(device="cuda" if GPU else "cpu", tuning_metric="mse" if numbers else "brier")

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        from sklearn.model_selection import train_test_split

        self.mean, self.scale = X.mean(axis=0), np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
        self.middle, self.unit = (y.mean(), y.std()) if self.numbers else (0, 1)
        t = (y - self.middle) / self.unit if self.numbers else y
        A, B, a, b = train_test_split(self._rows(X), t, test_size=0.15, random_state=self.seed)
        self.model.fit(A, a.astype(np.float32) if self.numbers else a, B, b.astype(np.float32) if self.numbers else b)

    def _rows(self, X: np.ndarray) -> np.ndarray:
        return ((X - self.mean) / self.scale).astype(np.float32)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict(self._rows(X))).ravel() * self.unit + self.middle

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict_proba(self._rows(X)))


LEARNERS: dict[str, Callable[[bool, int], Any]] = {
    "fit": lambda numbers, seed: _fit(numbers, seed, "medium"),
    "fit-small": lambda numbers, seed: _fit(numbers, seed, "small"),
    "metric": _metric,
    "boosting": _boosting,
    "lightgbm": _lightgbm,
    "catboost": _catboost,
    "xrfm": _Xrfm,
}


def measured(learner: str, name: str, rows: int, seed: int) -> dict[str, Any]:
    """Errors, times in seconds and the size of the pickled model in bytes."""
    warnings.simplefilter("ignore")
    X, y, A, b = parts(name, rows, seed)
    numbers = name in NUMBERS
    model = LEARNERS[learner](numbers, seed)
    begin = time.perf_counter()
    model.fit(X, y)
    found: dict[str, Any] = {"seconds": time.perf_counter() - begin}
    begin = time.perf_counter()
    if numbers:
        f = model.predict(A)
        found["error"] = float(np.mean((f - b) ** 2) / np.var(b))
    else:
        p = np.clip(model.predict_proba(A), 1e-6, None)
        classes = np.arange(p.shape[1]) if learner == "xrfm" else np.asarray(model.classes_)
        place = np.searchsorted(classes, b)
        known = classes[np.minimum(place, len(classes) - 1)] == b
        found["error"] = float(np.mean(classes[p.argmax(axis=1)] != b))
        chosen = np.where(known, p[np.arange(len(b)), np.minimum(place, len(classes) - 1)], 1e-6)
        found["log_loss"] = float(-np.mean(np.log(chosen / p.sum(axis=1))))
    found["predict"] = time.perf_counter() - begin
    try:
        found["bytes"] = len(pickle.dumps(model))
    except Exception:  # some libraries' models cannot be pickled
        found["bytes"] = None
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join([*LABELS, *NUMBERS]))
    parser.add_argument("--learners", default="fit,metric")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tag", default="", help="added to the names of the learners: another state of the library")
    parser.add_argument("--out", type=Path, default=Path("metric.json"))
    parser.add_argument("--gpu", action="store_true", help="learn on a GPU, but for other libraries than xRFM")
    parser.add_argument("--write", action="store_true", help="write results/metric.md")
    args = parser.parse_args()
    if args.gpu:
        os.environ["KERNELSTREAM_STUDY_GPU"] = "1"
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    tasks = [
        (f"{learner}{args.tag}/{name}/{args.rows}/{seed}", (learner, name, args.rows, seed))
        for seed in range(args.seeds)
        for name in args.sets.split(",")
        for learner in args.learners.split(",")
    ]
    with ProcessPoolExecutor(args.jobs, multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(measured, *task): key for key, task in tasks if key not in done}
        for future in as_completed(futures):
            try:
                found = future.result()
            except Exception as error:
                found = {"failed": repr(error)[:300]}
            print(futures[future], found, flush=True)
            before = json.loads(args.out.read_text()) if args.out.exists() else {}
            args.out.write_text(json.dumps(before | {futures[future]: found}, indent=0, sort_keys=True))
    done = json.loads(args.out.read_text())
    counts = sorted({int(key.split("/")[2]) for key in done})
    found = "\n\n".join(f"## {n:,} rows\n\n{table(done, n, seconds=not args.gpu)}" for n in counts)
    print(found)
    if args.write:
        where = "on one GPU that the jobs share (trees: a core for each)" if args.gpu else "one core for each job"
        about = ABOUT.format(where=where)
        if not args.gpu:
            about += "\nSeconds of `fit` are in brackets.\n"
        (Path(__file__).parent / "results" / "metric.md").write_text(f"{about}\n{found}\n")


ABOUT = """# `fit` of the default learner beside other libraries

Written by `python papers/studies/metric.py`, {where}. Rows are float64, of every set no more than the number above a
table, 80 % of them to learn. Mean squared error over the variance of the test targets (numbers), or share of mistakes
(labels), means over the seeds (three for 20,000 rows, else one). `fit` is that of the default learner, "medium";
metric is `MetricClassifier` or `MetricRegressor`; xRFM has its defaults; LightGBM and CatBoost have 2,000 trees and
early stopping, LightGBM at the rate 0.04. The best of a line is bold; a dash: no result within the time of the study.
On how many rows the metric is searched, from which starts, and which powers are tried was chosen by the errors of
seeds 0 and 1 on these sets.
"""


def table(done: dict[str, Any], rows: int, seconds: bool) -> str:
    """Mean errors over the seeds, and seconds if wanted, a row a set; last on how many sets `fit` is ahead."""
    cells: dict[str, dict[str, list[tuple[float, float, float]]]] = {}
    for key, found in done.items():
        learner, name, n, _ = key.split("/")
        if int(n) == rows and "error" in found:
            figures = found["error"], found["seconds"], found.get("log_loss", np.nan)
            cells.setdefault(name, {}).setdefault(learner, []).append(figures)
    means = {name: {k: np.mean(v, axis=0) for k, v in row.items()} for name, row in cells.items()}
    learners = sorted(
        {k for row in means.values() for k in row}, key=lambda k: (k not in LEARNERS, [*LEARNERS, k].index(k))
    )
    lines = ["| set | " + " | ".join(learners) + " |", "|---|" + "---:|" * len(learners)]
    for name in sorted(means, key=lambda name: (name in NUMBERS, name)):
        row = means[name]
        least = min(error for error, *_ in row.values())
        texts = {k: f"{e:.4f}" if e > least else f"**{e:.4f}**" for k, (e, *_) in row.items()}
        texts = {k: f"{text} ({row[k][1]:.1f})" if seconds else text for k, text in texts.items()}
        shown = (texts.get(k, "–") for k in learners)
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    for peer in (k for k in learners if k != "fit"):
        both = np.array([(row["fit"], row[peer]) for row in means.values() if "fit" in row and peer in row])
        for place, what in ((0, "errors"), (2, "log-losses")):
            ours, theirs = both[~np.isnan(both[:, 0, place])][:, :, place].T
            if not len(ours):
                continue
            ratio = np.exp(np.mean(np.log(np.maximum(ours, 1e-4) / np.maximum(theirs, 1e-4))))
            lines.append(
                f"\n`fit` beside {peer}, {what}: smaller on {np.sum(ours < theirs)} of {len(ours)} sets, equal on "
                f"{np.sum(ours == theirs)}, {ratio:.3f} times as large in the geometric mean."
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
