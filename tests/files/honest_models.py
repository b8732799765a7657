"""Small models of every algorithm, task and part, whose files are then forged."""

from __future__ import annotations

import copy
import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp
from archives import taken_apart

from kernelstream import estimators, kernels, losses, model_io, updates, zoo
from kernelstream.estimators import DoublySchedule, DoublyStep, RRFStep
from kernelstream.features import Nystroem, RandomFeatures, RandomFourier, RawFeatures, TaylorFeatures, TensorSketch

COLUMNS = 3

_rng = np.random.default_rng(0)
X = _rng.random((48, COLUMNS))
TARGETS = {
    "binary": (X[:, 0] > 0.5).astype(int),
    "multiclass": np.array(["a", "bb", "c"])[(X[:, 0] * 3).astype(int)],
    "regression": np.sin(3 * X[:, 0]) + X[:, 1],
    "novelty": None,
}
SMALL = {"n_components": 4, "variance_features": 4, "max_iter": 5, "n_columns": 40}


def small(est):
    """The same estimator with fewer of everything, so that a trial is quick."""
    if getattr(est, "learners", None) is not None:
        est.learners = [small(learner) for learner in est.learners[::5]]
    names = est.get_params()
    changes = {name: SMALL[name.split("__")[-1]] for name in names if name.split("__")[-1] in SMALL}
    if "schedule" in names:
        changes |= {"step": DoublyStep(eta=0.5), "schedule": DoublySchedule(5, 4)}
    return est.set_params(**changes)


def taught(est, task, rows=slice(None), how=np.asarray):
    part = how(X[rows])
    y = TARGETS[task]
    est = copy.deepcopy(est)
    if y is None:
        est.partial_fit(part)
    elif hasattr(est, "partial_fit"):
        est.partial_fit(part, y[rows])
    else:
        est.fit(part, y[rows])
    return est


def honest():
    """Name and what makes the model: every algorithm for every task, then other parts and stages."""
    for name in zoo.names():
        recipe = zoo.get(name)
        for task in recipe.tasks:
            options = {"budget": 64 if name.startswith("omkl") else 4} if "budget" in recipe.parameters else {}
            options |= {"n_components": 4} if "n_components" in recipe.parameters else {}
            options |= {"gamma": 1.0} if "gamma" in recipe.parameters else {}
            est = small(zoo.make(name, task, random_state=0, **options))
            yield f"{name} {task}", partial(taught, est, task)
    fourier = RandomFourier(n_components=4, gamma=1.0)
    sparse = sp.csr_array
    short = slice(0, 20)

    def f32(part):
        return part.astype(np.float32)

    others = {
        "averaged": estimators.FeatureClassifier(fourier, "logistic", updates.Averaged("ogd"), random_state=0),
        "standardized": estimators.FeatureClassifier(fourier, standardize=True, class_weight="balanced"),
        "weighted": estimators.FeatureClassifier(fourier, class_weight={0: 2.0, 1: 0.5}, random_state=0),
        "orthogonal": estimators.FeatureClassifier(RandomFourier(n_components=4, gamma=1.0, sampling="orthogonal")),
        "structured": estimators.FeatureClassifier(RandomFourier(n_components=4, gamma=1.0, sampling="structured")),
        "qmc": estimators.FeatureClassifier(RandomFourier("matern", n_components=4, gamma=1.0, sampling="qmc")),
        "nystroem map": estimators.FeatureClassifier(Nystroem(n_components=4, gamma=1.0), random_state=0),
        "landmarks": estimators.FeatureClassifier(Nystroem(landmarks=X[:3], gamma=1.0), random_state=0),
        "sketch": estimators.FeatureClassifier(TensorSketch(n_components=6), random_state=0),
        "random": estimators.FeatureClassifier(RandomFeatures("arc_cosine", 6), random_state=0),
        "composed": estimators.FeatureClassifier(
            RandomFeatures(kernels.Gaussian(1.0) * kernels.Linear() + 0.5 * kernels.Laplacian("median"), 2)
        ),
        "taylor": estimators.OnlineRidgeClassifier(TaylorFeatures(degree=2, gamma=0.5), forecaster="awv"),
        "taylor, growing": estimators.OnlineRidgeClassifier(TaylorFeatures(degree="auto", gamma=0.5)),
        "raw": estimators.NewtonClassifier(RawFeatures(), diagonal=True),
        "arow": estimators.AROWClassifier(fourier, diagonal=True, intercept=True, random_state=0),
        "ridges": estimators.OnlineRidgeClassifier(fourier, lam="auto", forgetting=0.9, intercept=True),
        "moving": estimators.NystroemClassifier(budget=4, gamma=1.0, refresh=6, random_state=0),
        "unfilled": estimators.NystroemClassifier(budget=90, gamma=1.0, random_state=0),
        "unbounded": estimators.BudgetClassifier(gamma=1.0, budget=None),
        "polynomial": estimators.BudgetClassifier(kernels.Polynomial(2), budget=4, strategy="replace"),
        "generator": estimators.FeatureClassifier(fourier, random_state=np.random.default_rng(1)),
        "mixture": estimators.RRFClassifier(4, 1.0, "mixture", random_state=0),
        "low rank": estimators.RRFClassifier(4, 1.0, "low_rank", step=RRFStep(batch_size=7)),
        "binning": estimators.BinningClassifier(n_components=4, lam=0.1, gamma=1.0, solver="cd", random_state=0),
    }
    for name, est in others.items():
        yield name, partial(taught, est, "binary", how=sparse if name in ("weighted", "unbounded") else np.asarray)
    for name in ("averaged", "moving", "unbounded", "polynomial", "mixture", "taylor"):
        yield f"{name}, several classes", partial(taught, others[name], "multiclass", how=f32)
    waiting = {
        "feature": estimators.FeatureClassifier(RandomFourier(n_components=4), random_state=0),
        "budget": estimators.BudgetClassifier(budget=4),
        "nystroem": estimators.NystroemClassifier(budget=4),
        "rrf": estimators.RRFClassifier(4, random_state=0),
        "ensemble": estimators.MultiKernelClassifier(
            [estimators.BudgetClassifier(budget=4), estimators.FeatureClassifier(fourier)], random_state=0
        ),
        "doubly": small(estimators.DoublyStochasticClassifier(gamma="median", random_state=0)),
    }
    for name, est in waiting.items():
        yield f"{name}, waiting", partial(taught, est, "binary", short)
        if name not in ("rrf",):
            yield f"{name}, waiting sparse", partial(taught, est, "binary", short, sparse)
    many = estimators.OnlineRidge(fourier, random_state=0)
    many.partial_fit(X, np.stack([X[:, 0], X[:, 1]], axis=1))
    yield "two targets", lambda: many
    members = [estimators.FeatureRegressor(fourier), estimators.BudgetRegressor(gamma=1.0, budget=4)]
    yield "mixed ensemble", partial(taught, estimators.MultiKernelRegressor(members, standardize=True), "regression")
    points = small(estimators.DoublyStochasticGP(gamma=1.0, noise=0.1, points=X[:3], random_state=0))
    yield "points", partial(taught, points, "regression")
    yield "huber", partial(taught, estimators.FeatureRegressor(fourier, losses.Huber(2.0)), "regression", short)
    yield "unfitted", estimators.FeatureClassifier


class Template:
    """A model file taken apart."""

    def __init__(self, name, content):
        self.name = name
        self.header, self.arrays = taken_apart(content)


def templates(only="", every=1):
    warnings.simplefilter("ignore")
    made = []
    for name, make in list(honest())[::every]:
        if only in name:
            made.append(Template(name, model_io.to_bytes(make(), {"rows": 3, "mean": X.mean(axis=0)})))
    return made
