"""Default steps on Fourier features, and on the same features with their leading directions damped.

    python papers/studies/preconditioned.py letter,ijcnn1 [--frequencies 4000] [--rows 20000] [--ranks 0,auto,64]
    python papers/studies/preconditioned.py plan [--engine torch] [--rows 0]
    python papers/studies/preconditioned.py show

One pass (or ``--passes``) over the first rows of a set in random order, AdaGrad or NormAdaGrad with automatic steps.
Rank 0 is the plain map, "auto" goes by the price of a row. Columns are scaled to [0, 1], gamma is four times the median
rule. Errors are shares of wrong answers, or 1 - R², on up to 10,000 test rows; seconds are those of the processor in
one thread, the least of ``--repeat`` fits that take turns, or with a GPU of the clock on the wall, without the first
rows. ``plan`` takes covtype, letter, casp and ijcnn1 with 4,000 frequencies, and mnist with 8,192 of them (16,384
features) in one pass and in five, all training rows unless ``--rows`` says otherwise. Lines are added to
``papers/studies/results/preconditioned.jsonl``; ``show`` makes the table of it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone

from kernelstream import FeatureClassifier, FeatureRegressor, datasets, settings
from kernelstream.features import Preconditioned, RandomFourier
from kernelstream.kernels import Gaussian

RESULTS = Path(__file__).parent / "results"
LINES = RESULTS / "preconditioned.jsonl"


def load(name: str, rows: int) -> tuple[np.ndarray, ...]:
    """Training rows and targets, test rows and targets."""
    data = datasets.load(name, scale="minmax")
    X, y = np.ascontiguousarray(data.X, np.float32), data.y
    if name == "covtype":
        y = np.where(y == 2, 1, 0)
    test = data.is_test
    order = np.random.default_rng(0).permutation(len(y))
    if test is None:
        test = np.zeros(len(y), bool)
        test[order[: min(len(y) // 5, 10_000)]] = True
    train, tested = order[~test[order]][: rows or None], order[test[order]][:10_000]
    return X[train], y[train], X[tested], y[tested]


PLAN = {"ijcnn1": (4000, (1,)), "letter": (4000, (1,)), "casp": (4000, (1,)), "covtype": (4000, (1,)),
        "mnist": (8192, (1, 5))}  # fmt: skip


def study(
    name: str, D: int, rows: int, passes: int, ranks: list[int | str], update: str, engine: str, repeat: int
) -> None:
    X, y, A, b = load(name, rows)
    gamma = 4 * Gaussian("median").resolve(X[:2000]).gamma
    kind = FeatureRegressor if y.dtype.kind == "f" else FeatureClassifier
    clock = time.perf_counter if engine == "torch" else time.process_time
    seconds: dict[int | str, float] = {}
    errors: dict[int | str, float] = {}
    for turn in range(repeat):
        for rank in ranks:
            features = RandomFourier(n_components=D, gamma=gamma)
            chosen = Preconditioned(features, rank) if rank else features
            model = kind(chosen, update=update, engine=engine, random_state=0)
            if kind is FeatureClassifier and len(np.unique(y)) > 2:
                model.set_params(loss="softmax")
            if engine == "torch" and not turn:  # programs are compiled by the first rows of a process
                clone(model).fit(X[:20_000], y[:20_000])
            start = clock()
            model.fit(X, y, passes=passes)
            seconds[rank] = min(seconds.get(rank, np.inf), clock() - start)
            errors[rank] = 1 - model.score(A, b)
    for rank in ranks:
        line = {"set": name, "rows": len(X), "frequencies": D, "passes": passes, "update": update, "rank": rank,
                "engine": engine, "error": errors[rank], "seconds": seconds[rank]}  # fmt: skip
        if 0 in ranks:
            line["price"] = seconds[rank] / seconds[0]
        print(json.dumps(line), flush=True)
        with LINES.open("a") as file:
            file.write(json.dumps(line) + "\n")


def show() -> None:
    lines = [json.loads(line) for line in LINES.read_text().splitlines()]
    table = [
        "| set | rows | frequencies | passes | update | engine | rank | error | seconds | times plain |",
        "|---|---:|---:|---:|---|---|---:|---:|---:|---:|",
    ]
    lines = [{"engine": "auto"} | line for line in lines]
    keys = ("set", "frequencies", "rows", "passes", "engine", "update")
    order = {"auto": 0.5}  # after the plain map
    for line in sorted(lines, key=lambda line: [*(line[k] for k in keys), order.get(line["rank"], line["rank"])]):
        table.append(
            f"| {line['set']} | {line['rows']:,} | {line['frequencies']:,} | {line['passes']} | {line['update']} | "
            f"{line['engine']} | {line['rank'] or 'plain'} | {100 * line['error']:.2f} % | {line['seconds']:.2f} | "
            f"{format(line['price'], '.2f') if 'price' in line else ''} |"
        )
    table.append(
        "\nErrors on test rows: wrong answers, or 1 - R² for numbers. Seconds of a processor, one thread. "
        "`python papers/studies/preconditioned.py`."
    )
    (RESULTS / "preconditioned.md").write_text("\n".join(table) + "\n")
    print("\n".join(table))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", help="names, with commas between them, 'plan' or 'show'")
    parser.add_argument("--frequencies", type=int, default=1000)
    parser.add_argument("--rows", type=int, help="training rows, 0 for all; 20,000, with 'plan' all")
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--ranks", help="0 is the plain map; 0,8,16,32,64, with 'plan' 0,auto,64")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--updates", default="auto")
    parser.add_argument("--engine", default="auto", choices=("auto", "torch"))
    given = parser.parse_args()
    warnings.filterwarnings("ignore", "update='auto' is NormAdaGrad", UserWarning)
    named = given.ranks or ("0,auto,64" if given.sets == "plan" else "0,8,16,32,64")
    ranks = [rank if rank == "auto" else int(rank) for rank in named.split(",")]
    settings.change(threads=1)
    rows = given.rows if given.rows is not None else 0 if given.sets == "plan" else 20_000
    if given.sets == "show":
        show()
    for update in given.updates.split(",") if given.sets != "show" else []:
        rest = ranks, update, given.engine, given.repeat
        if given.sets == "plan":
            for each, (D, repeats) in PLAN.items():
                for passes in repeats:
                    study(each, D, rows, passes, *rest)
        else:
            for each in given.sets.split(","):
                study(each, given.frequencies, rows, given.passes, *rest)
