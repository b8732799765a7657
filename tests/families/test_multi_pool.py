"""Kernel expansions that share a pool of support vectors: the same learners as those that learn alone."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

import kernelstream as ks
from kernelstream import zoo
from kernelstream.features import RandomFourier
from kernelstream.kernels import Gaussian, Laplacian, Polynomial

X2, y2 = make_moons(240, noise=0.2, random_state=0)
X4, y4 = make_blobs(240, n_features=3, centers=4, cluster_std=2.0, random_state=1)
X4 *= 0.3  # so that narrow kernels see something
yr = np.sin(2 * X2[:, 0]) + 0.1 * X2[:, 1] + 3.0
KERNELS = [
    Gaussian(0.01),
    Gaussian(1.0),
    Gaussian(5.0),
    Polynomial(2, c=1.0, gamma=0.5),
    Polynomial(4, c=0.5, gamma=0.3),
]
STRATEGIES = [
    *[(name, 10) for name in ("remove_random", "bogd", "forgetron", "remove_smallest", "remove_redundant", "replace")],
    *[("stop", None), ("stop", 15), ("oskl", None), ("spa", None)],
]
TASKS = {"binary": (X2, y2), "multiclass": (X4, y4), "regression": (X2, yr)}
NAMES = [name for name in zoo.names() if name.startswith("omkl")]


def learners(task, strategy, budget, kernels=KERNELS):
    kind = ks.BudgetRegressor if task == "regression" else ks.BudgetClassifier
    loss = {"loss": "absolute"} if task == "regression" else {}
    return [
        kind(kernel, None, budget, strategy, update="ogd" if strategy == "bogd" else "auto", random_state=i, **loss)
        for i, kernel in enumerate(kernels)
    ]


def whole(task, members, **params):
    kind = ks.MultiKernelRegressor if task == "regression" else ks.MultiKernelClassifier
    return kind(members, random_state=0, **params)


@pytest.mark.parametrize("strategy, budget, task", [(*s, t) for s, t in zip(STRATEGIES, itertools.cycle(TASKS))])
def test_learners_are_those_that_learn_alone(strategy, budget, task):
    X, y = (part[:60] for part in TASKS[task])
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], len(y))
    est = whole(task, learners(task, strategy, budget))
    for start, stop in [(0, 40), (40, 41), (41, len(y))]:
        est.partial_fit(X[start:stop], y[start:stop], sample_weight=weight[start:stop])
    assert len(est._learner._expansions(est._state).where) == len(KERNELS)
    for member, alone in zip(est.learners_, learners(task, strategy, budget), strict=True):
        alone.set_params(engine="python").fit(X, y, sample_weight=weight, shuffle=False)
        score = "predict" if task == "regression" else "decision_function"
        np.testing.assert_allclose(getattr(member, score)(X), getattr(alone, score)(X), rtol=1e-8, atol=1e-10)
        assert member.n_support_ == alone.n_support_


@pytest.mark.parametrize("name, task", list(zip(NAMES, itertools.cycle(TASKS))))
def test_engines_agree(name, task):
    X, y = TASKS[task]
    bounded = any(word in name for word in ("rbp", "forgetron", "bogd", "bpas"))
    params = {"budget": 24} if bounded else {}
    classes = {} if task == "regression" else {"classes": np.unique(y)}
    kernels = KERNELS[:3] if "fogd" in name else KERNELS[1:4]
    found = {}
    for engine in ("python", "native"):
        est = zoo.make(name, task=task, kernels=kernels, random_state=0, engine=engine, **params)
        found[engine] = est.learn(X[:40], y[:40], **classes), est.weights_, est.predict(X[60:100])
        if bounded and name.endswith("_sd"):
            assert sum(learner.n_support_ for learner in est.learners_) <= 24
    for ours, theirs in zip(found["native"], found["python"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("updates", ["deterministic", "stochastic"])
def test_some_learners_share_and_others_do_not(updates):
    """Gaussians in a pool, Fourier features in a family, and a kernel that has neither."""

    def members():
        fourier = [ks.FeatureClassifier(RandomFourier(gamma=g, n_components=20), random_state=5) for g in (0.5, 2.0)]
        return [*fourier, *learners("binary", "replace", 15, [*KERNELS[:3], Laplacian(1.0)])]

    found = [whole("binary", members(), updates=updates, engine=engine) for engine in ("native", "python")]
    scores = [est.learn(X2, y2, classes=[0, 1]) for est in found]
    first, state = found[0]._learner, found[0]._state
    assert len(first._expansions(state).where) == 3 and len(first._family(state).where) == 2
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-9, atol=1e-9)


def test_a_class_that_appears_later_and_a_learner_taught_on_its_own():
    members = learners("multiclass", "remove_random", 15)
    found = []
    for engine in ("native", "python"):
        est = whole("multiclass", members, engine=engine)
        late = np.argsort(y4 > 1, kind="stable")  # two classes first
        est.partial_fit(X4[late[:150]], y4[late[:150]])
        est.learners_[1].partial_fit(X4[:20], y4[:20])
        est.partial_fit(X4[late[150:]], y4[late[150:]])
        found.append(est.decision_function(X4))
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["omkl_rbp_dd", "omkl_bpas_sd", "omkl_nogd"])
@pytest.mark.parametrize("budget", [0, 15, 40.0])
def test_budgets_that_are_none(name, budget):
    with pytest.raises(ValueError, match="budget"):
        zoo.make(name, budget=budget)


def test_close_rows_far_from_the_origin():
    """Distances come from products; where those lose all digits, the coordinates are consulted."""
    rng = np.random.default_rng(0)
    X = 1e4 + rng.standard_normal((200, 3))
    y = np.sign(np.sin(3 * X[:, 0]))
    found = []
    for engine in ("native", "python"):
        est = whole(
            "binary", learners("binary", "stop", None, [Gaussian(1.0), Gaussian(3.0)]), vote="score", engine=engine
        )
        found.append(est.learn(X, y))
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-10)
