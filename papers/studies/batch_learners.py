"""What each learner of all rows at once adds to `fit` of the default learner.

    python papers/studies/batch_learners.py --out papers/studies/results/batch_learners.md [SET ...]

Up to ``--rows`` rows to learn and 5,000 to test: the original parts of a set, or three quarters and a quarter at
random. The members learn once; the learners of all rows are then weighed on the held-out rows: all of them, all without
each in turn, one alone, and none. Accuracy of labels and R² of numbers on the test rows, in percent.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from kernelstream import KernelClassifier, KernelRegressor, datasets
from kernelstream.estimators._contract.state import scaled_rows
from kernelstream.estimators.stack import batch

LABELS = (
    "a9a", "airlines", "cod-rna", "covtype", "dna", "electricity", "german", "ijcnn1", "letter", "nomao", "poker",
    "satimage", "spambase", "susy_11k", "svmguide3", "usps", "w7a",
)  # fmt: skip
NUMBERS = (
    "abalone",
    "ailerons",
    "cadata",
    "california",
    "casp",
    "diamonds",
    "fifa",
    "fried",
    "kings_county",
    "parkinsons",
)
TRAIN, TEST = 6000, 5000


def parts(name: str, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    data = datasets.load(name)
    X = np.asarray(data.X.toarray() if hasattr(data.X, "toarray") else data.X, np.float64)
    y = np.asarray(data.y)
    order = np.random.default_rng(1).permutation(len(y))
    test = getattr(data, "is_test", None)
    test = np.arange(len(y)) >= len(y) * 3 // 4 if test is None else np.asarray(test, bool)[order]
    train, test = order[~test][:rows], order[test][:TEST]
    return X[train], y[train], X[test], y[test]


def score(F: np.ndarray, y: np.ndarray, classes: Any) -> float:
    if classes is None:
        return float(1 - np.mean((F[:, 0] - y) ** 2) / np.var(y))
    return float(np.mean(classes[F.argmax(axis=1) if F.shape[1] > 1 else (F[:, 0] > 0).astype(int)] == y))


def measured(name: str, rows: int) -> dict[str, Any] | None:
    X, y, A, b = parts(name, rows)
    numbers = name in NUMBERS
    caught: dict[str, Any] = {}
    learn = batch.learn
    batch.learn = lambda est, teacher, held, S, rows=0: caught.update(est=est, teacher=teacher, held=held, S=S)
    try:
        (KernelRegressor if numbers else KernelClassifier)(random_state=0).fit(X, y)
    finally:
        batch.learn = learn
    if not caught:
        return None
    est, (_, yH, wH), S = caught["est"], caught["held"], caught["S"]
    state, C = est._state, S.shape[1]
    XA = np.ascontiguousarray(est._learner.ops.squashed(scaled_rows(A.astype(state["dtype"]), state)))
    SA, classes = est._learner.members_score(state, XA, False), getattr(est, "classes_", None)
    H, T, seconds = {}, {}, {}
    for kind in batch.KINDS:
        learner = batch._make(kind, est)
        learner._link_frozen = True
        begin = time.process_time()
        scores = caught["teacher"].teach(learner, caught["held"])
        seconds[kind] = time.process_time() - begin
        H[kind] = batch._spread(learner, scores, C)
        T[kind] = batch._spread(learner, learner._learner.score(learner._state, XA), C)

    def with_(kinds: list[str]) -> float:
        before, w, after = batch._weights(numbers, np.stack([S, *(H[k] for k in kinds)]), yH, wH)
        if not after < batch.GAIN * before:
            return score(SA, b, classes)
        return score(w[0] * SA + sum(u * T[k] for u, k in zip(w[1:], kinds, strict=True)), b, classes)

    row = {"members alone": score(SA, b, classes), "all": with_(list(H))}
    row |= {f"with {kind}": with_([kind]) for kind in H}
    return row | {f"without {kind}": with_([k for k in H if k != kind]) for kind in H} | {"s": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=[*LABELS, *NUMBERS], metavar="SET")
    parser.add_argument("--rows", type=int, default=TRAIN, help="to learn, at most")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    ways = [f"{way} {kind}" for way in ("with", "without") for kind in batch.KINDS]
    columns = ["members alone", "all", *ways]
    lines = [
        "# Learners of all rows at once in `fit` of the default learner",
        "",
        *(" ".join(part.split()) for part in __doc__.split("\n\n")[2:]),
        "",
        "`python papers/studies/batch_learners.py`",
        "",
        "| set | " + " | ".join(columns) + " | seconds: " + ", ".join(batch.KINDS) + " |",
        "| --- " * (len(columns) + 2) + "|",
    ]
    table = []
    for name in track(args.sets, description="sets"):
        row = measured(name, args.rows)
        if row is None:
            continue
        table.append([row.get(c, row["members alone"]) for c in columns])
        seconds = ", ".join(f"{row['s'][k]:.1f}" if k in row["s"] else "–" for k in batch.KINDS)
        lines.append(f"| {name} | " + " | ".join(f"{100 * v:.2f}" for v in table[-1]) + f" | {seconds} |")
        if args.out:
            args.out.write_text("\n".join(lines) + "\n")
    means = np.mean(table, axis=0)
    lines.append("| mean | " + " | ".join(f"{100 * m:.2f}" for m in means) + " | |")
    text = "\n".join(lines) + "\n"
    if args.out:
        args.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
