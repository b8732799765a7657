"""Small models of every algorithm, task and part, whose files are then forged."""

from __future__ import annotations

import copy
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from archives import taken_apart

from kernelstream import estimators, kernels, model_io, zoo
from kernelstream.estimators import DoublySchedule, DoublyStep
from kernelstream.features import Nystroem, RandomFeatures, RandomFourier, RawFeatures
from kernelstream.features.sampling import SAMPLINGS

sys.path.append(str(Path(__file__).parents[1] / "contract"))
from variants import ROWS, VARIANTS

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


def taught(est, task, how=np.asarray):
    return given(est, how(X), TARGETS[task])


def given(est, rows, y):
    est = copy.deepcopy(est)
    return (est.partial_fit if hasattr(est, "partial_fit") else est.fit)(rows, *([] if y is None else [y]))


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
    for i, (rows, est, *_) in enumerate(VARIANTS):
        yield f"variant {i}", partial(given, est, *ROWS[rows])
        if not hasattr(est, "gamma") or est.gamma is None:  # it waits for more rows
            yield f"variant {i}, waiting", partial(given, est, *(part[:10] for part in ROWS[rows]))
    fourier = RandomFourier(n_components=4, gamma=1.0)
    maps = {sampling: RandomFourier(n_components=4, gamma=1.0, sampling=sampling) for sampling in SAMPLINGS}
    maps |= {"landmarks": Nystroem(landmarks=X[:3], gamma=1.0), "arc cosine": RandomFeatures("arc_cosine", 6)}
    composed = kernels.Gaussian(1.0) * kernels.Linear() + 0.5 * kernels.Laplacian("median")
    others = {name: estimators.FeatureClassifier(made, random_state=0) for name, made in maps.items()} | {
        "composed": estimators.FeatureClassifier(RandomFeatures(composed, 2)),
        "raw": estimators.NewtonClassifier(RawFeatures(), diagonal=True),
        "arow": estimators.AROWClassifier(fourier, diagonal=True, intercept=True, random_state=0),
        "unfilled": estimators.NystroemClassifier(budget=90, gamma=1.0, random_state=0),
        "unbounded": estimators.BudgetClassifier(gamma=1.0, budget=None),
        "polynomial": estimators.BudgetClassifier(kernels.Polynomial(2), budget=4, strategy="replace"),
        "generator": estimators.FeatureClassifier(fourier, random_state=np.random.default_rng(1)),
        "binning": estimators.BinningClassifier(n_components=4, lam=0.1, gamma=1.0, solver="cd", random_state=0),
        "mixed ensemble": estimators.MultiKernelClassifier(
            [estimators.FeatureClassifier(fourier), estimators.BudgetClassifier(gamma=1.0, budget=4)], standardize=True
        ),
    }
    for name, est in others.items():
        yield name, partial(taught, est, "binary")
        yield f"{name}, single precision", partial(taught, est, "multiclass", how=lambda rows: rows.astype(np.float32))
    others["weighted"] = estimators.FeatureClassifier(fourier, class_weight={0: 2.0, 1: 0.5}, random_state=0)
    for name in ("weighted", "unbounded"):
        yield f"{name}, sparse", partial(taught, others[name], "binary", how=sp.csr_array)
    yield "two targets", lambda: estimators.OnlineRidge(fourier, random_state=0).partial_fit(X, X[:, :2])
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
