"""What weights of rows mean: a row of weight 2 is two rows, or weights count relative to their mean."""

import copy
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from cases import CASES
from excuses import EXACT
from reloaded import reloaded

import kernelstream as ks
from kernelstream.testing.streaming import assert_same_state

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (400, 2))
TARGET = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=400)
MODELS = {
    "budget": (ks.BudgetRegressor(budget=50, random_state=0), TARGET),
    "budget, labels": (ks.BudgetClassifier(budget=50, random_state=0), TARGET > 0),
    "landmarks": (ks.NystroemRegressor(budget=60, random_state=0), TARGET),
    "landmarks, labels": (ks.NystroemClassifier(budget=60, random_state=0), TARGET > 0),
    "cells": (ks.CellsRegressor(16, random_state=0), TARGET),
    "many kernels": (
        ks.MultiKernelRegressor([ks.BudgetRegressor(gamma=g, budget=50) for g in (0.1, 1.0)], random_state=0), TARGET
    ),
    "stack": (ks.KernelRegressor(size="small", random_state=0), TARGET),
}  # fmt: skip


def learned(est, target, weight, cuts=(0, 400)):
    model = copy.deepcopy(est)
    for start, stop in itertools.pairwise(cuts):
        model.learn(X[start:stop], target[start:stop], sample_weight=None if weight is None else weight[start:stop])
    return model


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("engine", ["python", "native"])
@pytest.mark.parametrize("unit", [100.0, 0.25])
def test_the_unit_of_weights_does_not_matter(name, engine, unit, rng):
    """Each row stands for a hundred: the mean weight so far is 100 as well, and they count as one."""
    if name == "stack" and (engine, unit) != ("native", 100.0):
        pytest.skip("slow, and the same")
    if engine == "native":
        pytest.importorskip("kernelstream._core")
    est, target = MODELS[name]
    est = copy.deepcopy(est).set_params(engine=engine)
    ask = "decision_function" if hasattr(est, "decision_function") else "predict"
    plain, weighed = learned(est, target, None), learned(est, target, np.full(400, unit))
    np.testing.assert_array_equal(getattr(weighed, ask)(X), getattr(plain, ask)(X))
    assert_same_state(learned(est, target, np.ones(400)).state_, plain.state_, 0.0, name)
    w = rng.uniform(0.5, 2.0, 400)
    np.testing.assert_allclose(
        getattr(learned(est, target, unit * w), ask)(X), getattr(learned(est, target, w), ask)(X), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("name", MODELS)
def test_weights_however_the_rows_are_cut(name, rng):
    """Rows without a weight among them, and a file in between."""
    est, target = MODELS[name]
    w = rng.uniform(0.0, 50.0, 400)
    w[rng.random(400) < 0.2] = 0.0
    whole = learned(est, target, w)
    assert_same_state(learned(est, target, w, (0, 1, 37, 100, 101, 280, 400)).state_, whole.state_, 1e-12, name)
    first = copy.deepcopy(est)
    first.learn(X[:200], target[:200], sample_weight=w[:200])
    first = reloaded(first)
    first.learn(X[200:], target[200:], sample_weight=w[200:])
    assert_same_state(first.state_, whole.state_, 1e-12, name)
    # from now on a row without a weight has one of 1, however it is learned
    whole.learn(X[:1], target[:1])
    first.learn(X[:1], target[:1], sample_weight=[1.0])
    assert_same_state(first.state_, whole.state_, 1e-12, name)


@pytest.mark.parametrize("class_weight", ["balanced", {False: 0.0, True: 3.0}, {False: 0.5, True: 20.0}])
@pytest.mark.parametrize("name", ["budget, labels", "landmarks, labels"])
def test_weights_of_classes_multiply_relative_weights(name, class_weight, rng):
    """The unit of sample weights does not matter beside class weights, and the cuts do not either."""
    est, target = copy.deepcopy(MODELS[name][0]).set_params(class_weight=class_weight), TARGET > 0
    plain = learned(est, target, None)
    np.testing.assert_array_equal(
        learned(est, target, np.full(400, 4.0)).decision_function(X), plain.decision_function(X)
    )
    assert "weight_sums" not in plain.state_
    w = rng.uniform(0.0, 50.0, 400)
    w[:150], w[200:250] = 1.0, 0.0
    whole = learned(est, target, w)
    assert_same_state(learned(est, target, w, (0, 1, 37, 100, 101, 280, 400)).state_, whole.state_, 1e-12, name)
    counted = (w > 0) & (target | (class_weight == "balanced" or class_weight[False] > 0))
    np.testing.assert_allclose(whole.state_["weight_sums"], [counted.sum(), w[counted].sum()])


def test_the_guide_says_what_a_weight_means():
    """Its table against what scikit-learn's checks of repeated rows find, and against what the learners declare."""
    guide = (Path(__file__).parents[2] / "docs/guide.md").read_text(encoding="utf-8")
    repeated, relative, others = re.findall(r"^\| (.*) \| .* \|$", guide.split("## What a weight means")[1], re.M)[1:4]
    exact = {type(CASES[name]).__name__ for name in EXACT if name in CASES}
    assert set(re.findall(r"`(\w+)`", repeated)) == {name for name in exact if hasattr(ks, name)}
    declared = {
        type(case).__name__ for case in CASES.values() if getattr(getattr(case, "_learner", 0), "relative_weights", 0)
    }
    assert set(re.findall(r"`(\w+)`", relative)) == {name for name in declared if hasattr(ks, name)}
    assert others == "all others"
