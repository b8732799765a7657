"""What the tests of live learners share: rows, models, and a crash."""

import shutil

import numpy as np

from kernelstream import FeatureClassifier, model_io
from kernelstream.features import RandomFourier
from kernelstream_service import DurableLearner


def moons(n=300, seed=0, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1, 0)


def logistic(**options):
    return FeatureClassifier(loss="logistic", features=RandomFourier(n_components=20), random_state=0, **options)


def same(a, b):
    return model_io.to_bytes(a) == model_io.to_bytes(b)


def crash(learner):
    """Let go of the folder as a killed process would: nothing is written any more."""
    learner._writer.close()
    learner.keeper.journal.close()


def killed(learner, folder):
    """Copy what a killed process would leave, then let go."""
    shutil.copytree(learner.folder, folder)
    crash(learner)


def taught(folder, calls, model=None, **options):
    learner = DurableLearner(folder, model or logistic(), **options)
    for X, y in calls:
        learner.learn(X, y)
    return learner


CALLS = [moons(n, seed=n) for n in (1, 7, 50, 1, 33, 120, 2)]
