"""Known results of the expansion learners on real files, which a naive program found row by row."""

import numpy as np
import pytest
from golden_rows import GAMMA, GOLDEN, TASKS, rows

from kernelstream import engine, zoo

SETTINGS = {
    task: {
        "budget": found["budget"],
        "eta": found.get("eta", found.get("ogd_eta")),
        **({"epsilon": found["epsilon"]} if task == "regression" else {"C": found["bpas_C"]}),
    }
    for task, found in GOLDEN["settings"].items()
    if task in TASKS.values()
}
# mistakes or mean squared error, and support vectors, of a naive row-by-row program; rows in the order perm[0]
KNOWN = {
    (task, name): {
        algorithm.replace("++", "pp"): (found.get("mistakes", found.get("mse")), found["support"])
        for algorithm, found in GOLDEN[task][name].items()
    }
    for name, task in TASKS.items()
}
# the 30 support vectors of mg span what is numerically a plane of lower dimension: rounding decides which join
TOLERANCE = {("mg", "projectron"): GOLDEN["regression"]["mg"]["projectron"]["tolerance"]}

CASES = list(KNOWN)


def model(task, algorithm, engine):
    settings = {"gamma": GAMMA, "engine": engine, **SETTINGS[task]}
    if algorithm in ("perceptron", "ogd"):
        del settings["budget"]
    if algorithm != "bpas":
        settings.pop("C", None)
    if algorithm != "ogd" and task != "regression":
        del settings["eta"]
    return zoo.make(algorithm, task=task, **settings)


def learn(task, algorithm, engine, X, y, chunk):
    """Metric and number of support vectors after one pass, ``chunk`` rows a call."""
    est = model(task, algorithm, engine)
    extra = {} if task == "regression" else {"classes": np.unique(y)}
    scores = np.concatenate([est.learn(X[i : i + chunk], y[i : i + chunk], **extra) for i in range(0, len(y), chunk)])
    return metric(task, scores, y), est.n_support_


def metric(task, scores, y):
    if task == "regression":
        return float(np.mean((scores - y) ** 2))
    if task == "binary":
        return int(np.sum((scores >= 0) != (y > 0)))
    return int(np.sum(np.unique(y)[scores.argmax(axis=1)] != y))


def assert_known(task, name, algorithm, got, known):
    where = f"{name}, {algorithm}"
    assert got[1] == known[1], where
    if task == "regression":
        assert got[0] == pytest.approx(known[0], rel=TOLERANCE.get((name, algorithm), 1e-6)), where
    else:
        assert got[0] == known[0], where


def check(task, name, engine, chunk, algorithms=None):
    """Every algorithm, or some, ends with the numbers that are known."""
    X, y = rows(name)
    for algorithm in algorithms or KNOWN[task, name]:
        got = learn(task, algorithm, engine, X, y, chunk)
        assert_known(task, name, algorithm, got, KNOWN[task, name][algorithm])


# rows per internal block: all of them on one small file of each task, on the others one each
OF_BLOCKS = {"german": (1, 7, 64, 10_000), "dna": (1, 64), "housing": (1, 7, 64, 10_000)}
BLOCKS = [(*case, block) for case in CASES for block in OF_BLOCKS.get(case[1], (64,))]
LARGE = {"dna": ("forgetron", "projectronpp")}  # the algorithms that are not left to the slow tests


@pytest.mark.parametrize("task, name, block", BLOCKS, ids=str)
def test_native(task, name, block, monkeypatch):
    """Rows per call and rows per internal block change nothing."""
    monkeypatch.setattr(engine.get("native").Expansion, "block", block)
    algorithms = LARGE.get(name) if block == 1 else None
    check(task, name, "native", {1: 64, 7: 7, 64: 10_000, 10_000: 10_000}[block], algorithms)


PYTHON = {("multiclass", "dna"): 1, ("binary", "german"): 64, ("regression", "housing"): 1, ("regression", "mg"): 64}


@pytest.mark.parametrize("task, name", PYTHON)
def test_python(task, name, monkeypatch):
    """Blocks of one row, and of 64."""
    monkeypatch.setattr(engine.get("python").Expansion, "block", PYTHON[task, name])
    check(task, name, "python", 10_000, LARGE.get(name))


@pytest.mark.slow
@pytest.mark.parametrize("task, name", CASES)
@pytest.mark.parametrize("block", [1, 64])
def test_python_on_all(task, name, block, monkeypatch):
    monkeypatch.setattr(engine.get("python").Expansion, "block", block)
    check(task, name, "python", 10_000)


@pytest.mark.parametrize(
    "task, name, algorithms",
    [
        ("binary", "german", ("projectronpp", "bpas")),
        pytest.param("multiclass", "dna", ("projectronpp",), marks=pytest.mark.slow),
        ("regression", "housing", ("perceptron", "ogd", "forgetron", "projectron")),
    ],
    ids=["two classes", "several classes", "numbers"],
)
def test_one_row_a_call(task, name, algorithms):
    check(task, name, "native", 1, algorithms)
