"""AWV on Taylor features against the others on casp, ijcnn1 and cod-rna: average loss and time over the rows.

    python benchmarks/awv_datasets.py [FOLDER] [--sets casp,ijcnn1,cod-rna] [--limit 60] [--jobs 1]

Rows in a random order, predicted before they are learned, sigma = 1, lambda = 1; inputs scaled to [-1, 1] as in the
paper, and ijcnn1 also in its file's own scaling (in [-1, 1]^22 a Gaussian of width 1 sees next to nothing). A learner
stops after --limit CPU seconds and is recorded so far. --jobs learners run at a time, each on one thread; seconds are
CPU seconds. Writes awv_SET.png, awv_SET.csv and awv.md to FOLDER (default: benchmarks/results). Needs
KERNELSTREAM_DATA.
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from kernelstream import datasets, zoo
from kernelstream.core.threads import set_num_threads

BLOCK = 500
KEPT = 8000  # rows of the learner that keeps them all: a Gram matrix of half a gigabyte
GRADIENT = {  # learners whose best step of a grid, found in hindsight, is shown
    "FOGD": ("fogd", {"n_components": 100}),
    "NOGD": ("nogd", {"budget": 100}),
}
SETS = {
    "casp": ("casp", True),
    "ijcnn1": ("ijcnn1", True),
    "ijcnn1-own": ("ijcnn1", False),
    "cod-rna": ("cod-rna", True),
}


def load(name, rescale, rows):
    data = datasets.load(name)
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y, dtype=np.float64)
    if rescale:
        low, high = X.min(axis=0), X.max(axis=0)
        X = 2 * (X - low) / np.where(high > low, high - low, 1.0) - 1
    task = "regression" if len(np.unique(y)) > 2 else "binary"
    if task == "regression":
        y = 2 * (y - y.min()) / (y.max() - y.min()) - 1
    order = np.random.default_rng(0).permutation(len(y))[:rows]
    return X[order], y[order], task


def learners(task, d):
    """Name -> learner, the gradient learners with a grid of steps."""
    common = {"task": task, "gamma": 0.5, "random_state": 0}
    found = {"AWV, M = 2": zoo.make("awv", degree=2, **common)}
    if d < 12:
        found["AWV, M = 3"] = zoo.make("awv", degree=3, **common)
    found["AWV, M = 2, lam auto"] = zoo.make("awv", degree=2, lam="auto", **common)
    for name, (recipe, size) in GRADIENT.items():
        for eta in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0):
            found[f"{name}, eta = {eta}"] = zoo.make(recipe, eta=eta, **size, **common)
        found[f"{name}, untuned"] = zoo.make(recipe, **size, **common)
    found["ridge on 100 frequencies"] = zoo.make("ridge", n_components=100, **common)
    if task == "binary":
        found["AROW on 100 frequencies"] = zoo.make("arow", n_components=100, **common)
    found["PROS-N-KONS"] = zoo.make("pros_n_kons", **common)
    found["PROS-N-KONS, at most 100 rows"] = zoo.make("pros_n_kons", budget=100, **common)
    found["kernel ridge"] = zoo.make("kernel_awv", forecaster="ridge", **common)
    return found


def run(model, X, y, task, limit):
    """Losses of the rows until the limit, and the seconds after every block."""
    losses, seconds, spent = [], [], 0.0
    for i in range(0, len(y), BLOCK):
        rows = slice(i, i + BLOCK)
        start = time.process_time()
        scores = (
            model.learn(X[rows], y[rows]) if task == "regression" else model.learn(X[rows], y[rows], classes=[-1, 1])
        )
        spent += time.process_time() - start
        with np.errstate(over="ignore"):  # steps that are too large
            losses.append((y[rows] - scores) ** 2 if task == "regression" else np.where(scores >= 0, 1, -1) != y[rows])
        seconds.append(spent)
        if spent > limit or (type(model).__name__.startswith("KernelAWV") and rows.stop >= KEPT):
            break
    return np.concatenate(losses).astype(float), np.array(seconds)


def names(label, rows):
    X, _, task = load(*SETS[label], rows)
    return list(learners(task, X.shape[1]))


def job(arguments):
    label, key, rows, limit = arguments
    set_num_threads(1)
    X, y, task = load(*SETS[label], rows)
    model = learners(task, X.shape[1])[key]
    losses, seconds = run(model, X, y, task, limit)
    extra = f"  restarts {model.n_restarts_}" if hasattr(model, "n_restarts_") else ""
    print(
        f"{label:11s} {key:26s} {losses.mean():.5f}  {len(losses):7d} rows {seconds[-1]:7.1f} s{extra}",
        flush=True,
    )
    return losses, seconds


def draw(results, task, title, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.4))
    for i, (name, (losses, seconds)) in enumerate(results.items()):
        average = np.cumsum(losses) / np.arange(1, len(losses) + 1)
        ends = np.minimum(BLOCK * np.arange(1, len(seconds) + 1), len(losses))
        (line,) = left.plot(ends, average[ends - 1], "-" if i < 10 else "--", label=name)  # ten colours
        right.plot(ends, seconds, line.get_linestyle(), color=line.get_color())
        if ends[-1] < max(len(other) for other, _ in results.values()):  # stopped by the limit
            left.plot(ends[-1], average[-1], "x", color=line.get_color())
            right.plot(ends[-1], seconds[-1], "x", color=line.get_color())
    finals = [np.mean(losses) for losses, _ in results.values()]
    left.set(xlabel="rows", ylabel="average squared loss" if task == "regression" else "average error", xscale="log")
    left.set_ylim(0.9 * min(finals), min(2.2 * float(np.median(finals)), 1.5 * max(finals)))
    right.set(xlabel="rows", ylabel="CPU seconds", xscale="log", yscale="log")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.suptitle(title)
    figure.legend(loc="lower center", ncols=4, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0.13, 1, 1))
    figure.savefig(path, dpi=90)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds a learner may take")
    parser.add_argument("--jobs", type=int, default=1, help="learners that run at a time")
    parser.add_argument("--rows", type=int, default=None, help="at most so many rows")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    lines = [
        "One pass, each row predicted before it is learned; sigma = 1, lambda = 1, one thread. `*`: stopped after "
        f"{args.limit:.0f} CPU seconds (kernel ridge, which keeps all rows, after {KEPT} rows): the loss is that of the rows "  # noqa: E501
        "seen.\n"
    ]
    labels = args.sets.split(",")
    tasks = [(label, key, args.rows, args.limit) for label in labels for key in names(label, args.rows)]
    with ProcessPoolExecutor(args.jobs) as pool:
        finished = {task[:2]: result for task, result in zip(tasks, pool.map(job, tasks))}
    for label in labels:
        name, rescale = SETS[label]
        X, y, task = load(name, rescale, args.rows)
        results = {key: result for (where, key), result in finished.items() if where == label}
        shown = results
        for kind in GRADIENT:
            steps = [key for key in results if key.startswith(f"{kind}, eta")]
            best = min(steps, key=lambda key: np.nan_to_num(results[key][0].mean(), nan=np.inf))  # nan: diverged
            shown = {key: value for key, value in shown.items() if key not in steps or key == best}
        scaling = "inputs in [-1, 1]" if rescale else "the file's own scaling"
        title = f"{name}: {len(y)} rows, {X.shape[1]} columns, {scaling}"
        draw(shown, task, title, args.folder / f"awv_{label}.png")
        unit = "mean squared error" if task == "regression" else "error %"
        lines += [
            f"\n### {title}\n",
            f"| learner | {unit} | rows | seconds | rows/s |",
            "| --- | ---: | ---: | ---: | ---: |",
        ]
        for key, (losses, seconds) in shown.items():
            value = f"{losses.mean():.5f}" if task == "regression" else f"{100 * losses.mean():.2f}"
            star = "" if len(losses) == len(y) else "*"
            lines.append(
                f"| {key} | {value}{star} | {len(losses)} | {seconds[-1]:.1f} | {len(losses) / seconds[-1]:.0f} |"
            )
        finals = np.array([[losses.mean(), len(losses), seconds[-1]] for losses, seconds in results.values()])
        with open(args.folder / f"awv_{label}.csv", "w") as file:
            file.write("learner,loss,rows,seconds\n")
            for key, row in zip(results, finals):
                file.write(f'"{key}",{row[0]:.6f},{int(row[1])},{row[2]:.2f}\n')
        (args.folder / "awv.md").write_text("\n".join(lines) + "\n")
    print(f"written: {args.folder / 'awv.md'} and pictures beside it")


if __name__ == "__main__":
    main()
