"""The table of cases: small instances of every public estimator.

:func:`public` finds the estimators in the package's own lists, and one without a case fails a test. A family has a
second case where it works in two ways. What a case is excused from stands in ``excuses.py``.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

import kernelstream as ks
from kernelstream.columns import Columns, StreamPipeline
from kernelstream.estimators import DoublySchedule, DoublyStep, RRFStep
from kernelstream.features import (
    Nystroem,
    Preconditioned,
    RandomBinning,
    RandomFeatures,
    RandomFourier,
    RawFeatures,
    TaylorFeatures,
    TensorSketch,
)
from kernelstream.features.spectra import LowRank
from kernelstream.solvers import CoordinateDescent, NewtonCG
from kernelstream.trust import Calibrated, Delayed, Explained, WithIntervals
from kernelstream_papers import rivals
from kernelstream_papers.rivals.solvers import SDCA

BASES = {"FeatureMap", "StreamClassifier", "StreamEstimator", "StreamOutlier", "StreamRegressor"}  # nothing to fit
SERIES = {"KernelForecaster"}  # learns frames of series, not X and y: families/test_forecaster.py has its promises

# Two of scikit-learn's checks ask for accuracy, on rows with a deviation of 1 and of 20: the widths must suit both.
SPREAD = (0.0005, 0.02, 0.5)
DOUBLY = {"gamma": "median", "step": DoublyStep(eta=4.0), "schedule": DoublySchedule(16, 16, passes=20)}
TIGHT = SDCA(tol=1e-30, max_iter=400)  # as far as it goes
FOURIER = RandomFourier(n_components=50)
SEEDED = {"features": FOURIER, "random_state": 0}  # scikit-learn's checks set the seed of an estimator, not of a part
WIDTH = RandomFourier(n_components=30, gamma=0.1)

LEARNERS: dict[str, Any] = {
    "AROWClassifier": ks.AROWClassifier(FOURIER),
    "AROWClassifier, diagonal": ks.AROWClassifier(FOURIER, diagonal=True),
    "BinningClassifier": ks.BinningClassifier(n_components=8),
    "BinningClassifier, given parameters": ks.BinningClassifier(
        n_components=16, solver=NewtonCG(1e-8), loss="logistic", gamma=0.3, lam=0.1
    ),
    "BinningRegressor": ks.BinningRegressor(n_components=16, solver=CoordinateDescent(1e-9, 5000), gamma=0.1, lam=0.02),
    "BudgetClassifier": ks.BudgetClassifier(budget=40),
    "BudgetClassifier, logistic": ks.BudgetClassifier(budget=40, strategy="remove_smallest", loss="logistic"),
    "BudgetOneClass": ks.BudgetOneClass(),
    "BudgetOneClass, no budget": ks.BudgetOneClass(budget=None, nu=0.3),
    "BudgetRegressor": ks.BudgetRegressor(budget=60),
    "CellsClassifier": ks.CellsClassifier(8, random_state=0),
    "CellsRegressor": ks.CellsRegressor(64, "hashed", standardize=True, random_state=0),
    "DensityNovelty": rivals.DensityNovelty(lam=1e-3, **DOUBLY | {"step": DoublyStep(eta=1.0)}),
    "DensityRatioEstimator": ks.DensityRatioEstimator(lam=1e-3, **DOUBLY | {"step": DoublyStep(eta=1.0)}),
    "DoublyStochasticClassifier": ks.DoublyStochasticClassifier(lam=1e-3, **DOUBLY),
    "DoublyStochasticGP": ks.DoublyStochasticGP(noise=0.1, variance_features=16, **DOUBLY),
    "DoublyStochasticOneClass": ks.DoublyStochasticOneClass(
        schedule=DoublySchedule(block_size=32, passes=30)
    ),  # finds all of it by itself
    "DoublyStochasticRegressor": ks.DoublyStochasticRegressor(lam=1e-3, **DOUBLY | {"step": DoublyStep(eta=1.0)}),
    "FalkonClassifier": ks.FalkonClassifier(n_centers=50, random_state=0),
    "FalkonClassifier, logistic": ks.FalkonClassifier("gaussian", 0.5, 50, 1e-4, loss="logistic", random_state=0),
    "FalkonRegressor": ks.FalkonRegressor(gamma=0.1, n_centers=50, random_state=0),
    "FeatureClassifier": ks.FeatureClassifier(FOURIER),
    "FeatureClassifier, standardized": ks.FeatureClassifier(FOURIER, loss="logistic", standardize=True),
    "FeatureRegressor": ks.FeatureRegressor(FOURIER),
    "FixedFeatureClassifier": rivals.FixedFeatureClassifier(random_state=0),
    "FixedFeatureRegressor": rivals.FixedFeatureRegressor(WIDTH, lam=0.5, solver=TIGHT, random_state=0),
    "ConfidenceWeightedClassifier": rivals.ConfidenceWeightedClassifier(FOURIER),
    "ConfidenceWeightedClassifier, diagonal": rivals.ConfidenceWeightedClassifier(FOURIER, "cw", diagonal=True),
    "GroupSparseClassifier": rivals.GroupSparseClassifier(FOURIER, 2, random_state=0),
    "KernelAWV": ks.KernelAWV(gamma=0.1),
    "KernelAWVClassifier": ks.KernelAWVClassifier(gamma=0.02),
    "KernelClassifier": ks.KernelClassifier(size="small", random_state=0),
    "KernelNovelty": ks.KernelNovelty(random_state=0),
    "KernelRegressor": ks.KernelRegressor(size="small", random_state=0),
    "KernelSDCAClassifier": rivals.KernelSDCAClassifier(lam=0.01, random_state=0),
    "LargeMarginClassifier": rivals.LargeMarginClassifier(FOURIER, random_state=0),
    "LargeMarginClassifier, romma": rivals.LargeMarginClassifier(FOURIER, "aggressive_romma", random_state=0),
    "MetaGradClassifier": rivals.MetaGradClassifier(FOURIER, horizon=256, random_state=0),
    "MetricClassifier": ks.MetricClassifier(random_state=0),
    "MetricRegressor": ks.MetricRegressor(random_state=0),
    "MetricWindowClassifier": ks.MetricWindowClassifier(50, random_state=0),
    "MetricWindowRegressor": ks.MetricWindowRegressor(50, random_state=0),
    "KernelSDCARegressor": rivals.KernelSDCARegressor(gamma=0.1, lam=0.01, tol=1e-30, max_iter=400, random_state=0),
    "MultiKernelClassifier": ks.MultiKernelClassifier(random_state=0),
    "MultiKernelClassifier, shared": ks.MultiKernelClassifier(
        [ks.BudgetClassifier(gamma=g, budget=20, strategy="replace") for g in SPREAD],
        updates="stochastic",
        capacity="shared",
        random_state=0,
    ),
    "MultiKernelRegressor": ks.MultiKernelRegressor(random_state=0),
    "NewtonClassifier": ks.NewtonClassifier(FOURIER),
    "NystroemClassifier": ks.NystroemClassifier(budget=40),
    "NystroemRegressor": ks.NystroemRegressor(budget=40),
    "OnlineRidge": ks.OnlineRidge(WIDTH),
    "OnlineRidge, experts": ks.OnlineRidge(TaylorFeatures(degree=1), forecaster="awv", lam="auto"),
    "OnlineRidgeClassifier": ks.OnlineRidgeClassifier(TaylorFeatures(degree=2, gamma=0.1), forecaster="awv"),
    "OperatorGP": rivals.OperatorGP(gamma=0.1, iterations=8, block_size=8, random_state=0),
    "ProsNKons": rivals.ProsNKons(gamma=0.1, C=100.0, budget=8),
    "ProsNKonsClassifier": rivals.ProsNKonsClassifier(gamma=0.02, budget=8),
    "RRFClassifier": ks.RRFClassifier(),
    "RRFClassifier, low rank": ks.RRFClassifier(
        spectrum=LowRank(2), loss="logistic", step=RRFStep(batch_size=3), standardize=True
    ),
    "RRFRegressor": ks.RRFRegressor(),
    "SparseOneClass": rivals.SparseOneClass(),
    "WindowClassifier": ks.WindowClassifier(random_state=0),
    "WindowRegressor": ks.WindowRegressor(random_state=0),
}

WRAPPERS: dict[str, Any] = {
    "Calibrated": Calibrated(ks.FeatureClassifier(**SEEDED)),
    "Delayed": Delayed(ks.FeatureClassifier(**SEEDED)),
    "Explained": Explained(ks.FeatureRegressor(**SEEDED)),
    "StreamPipeline": StreamPipeline(Columns(), ks.FeatureClassifier(**SEEDED)),
    "WithIntervals": WithIntervals(ks.OnlineRidge(WIDTH, random_state=0)),
}

TRANSFORMERS: dict[str, Any] = {
    "Columns": Columns(),
    "Nystroem": Nystroem(n_components=8, random_state=0),
    "Nystroem, rpcholesky": Nystroem("laplacian", n_components=8, landmarks="rpcholesky", random_state=0),
    "Preconditioned": Preconditioned(RandomFourier(n_components=32), rank=4, random_state=0),
    "RandomBinning": RandomBinning(n_components=10),
    "RandomBinning, hashed": RandomBinning(n_components=10, n_columns=100),
    "RandomFeatures": RandomFeatures(n_components=32, random_state=0),
    "RandomFeatures, chi2": RandomFeatures("chi2", n_components=32, random_state=0),
    "RandomFourier": RandomFourier(n_components=32, random_state=0),
    "RandomFourier, orthogonal": RandomFourier("matern", n_components=32, sampling="orthogonal", random_state=0),
    "RawFeatures": RawFeatures(),
    "TaylorFeatures": TaylorFeatures(degree=1),
    "TaylorFeatures, auto": TaylorFeatures(degree="auto"),
    "TensorSketch": TensorSketch(n_components=32, random_state=0),
}

CASES: dict[str, Any] = {**LEARNERS, **WRAPPERS, **TRANSFORMERS}


def public() -> set[str]:
    """Names of the public classes with ``fit``, in the lists of the package, its public modules and the rivals."""
    known = [name for name in ks._MODULES if name != "spark" or find_spec("pyspark")]  # an extra of its own
    modules = [ks, rivals, *(importlib.import_module(f"kernelstream.{name}") for name in known)]
    values = [getattr(module, name) for module in modules for name in getattr(module, "__all__", ())]
    return {value.__name__ for value in values if isinstance(value, type) and hasattr(value, "fit")} - BASES - SERIES


def instance(name: str) -> Any:
    """The case, new, with a seed where it draws random numbers."""
    made = clone(CASES[name])
    return made.set_params(**dict.fromkeys([key for key in made.get_params() if key.endswith("random_state")], 0))


# ---------------------------------------------------------------- rows
RNG = np.random.default_rng(0)
X = RNG.uniform(0, 3, size=(120, 3))  # kernels of histograms take no negative numbers
Y = np.sin(2 * X[:, 0]) + X[:, 1] - 2 + 0.1 * RNG.normal(size=120)
LABELS = np.array(["low", "high"])[(Y > 0).astype(int)]


def targets(est: Any) -> np.ndarray:
    """What the estimator learns from; zeros for one that takes no targets."""
    return LABELS if is_classifier(est) else Y if is_regressor(est) else np.zeros(len(X))


def answers(est: Any, rows: Any) -> np.ndarray:
    """What a fitted estimator says of rows."""
    for method in ("decision_function", "predict", "score_samples", "transform"):
        if hasattr(est, method):
            found = getattr(est, method)(rows)
            return found.toarray() if hasattr(found, "toarray") else np.asarray(found)
    raise AssertionError(f"{est!r} answers nothing")
