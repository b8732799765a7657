"""Learners with other parts than those of the table of cases, and on other rows."""

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_moons

import kernelstream as ks
from kernelstream import budgets
from kernelstream.estimators import DoublySchedule, DoublyStep, HedgeWeights, RRFStep
from kernelstream.features import Nystroem, Preconditioned, RandomFourier, TaylorFeatures, TensorSketch
from kernelstream.features.spectra import LowRank, Mixture
from kernelstream.losses import EpsilonInsensitive
from kernelstream.updates import OGD, Averaged
from kernelstream_papers import rivals

TWO = make_moons(40, noise=0.2, random_state=0)
FOUR = make_blobs(40, n_features=3, centers=4, cluster_std=2.0, random_state=1)
_LATE = np.argsort(FOUR[1], kind="stable")[::-1]  # the highest label first: one class alone, then two, three, four
ROWS = {
    "two": TWO,
    "four": FOUR,
    "late": (FOUR[0][_LATE], FOUR[1][_LATE]),
    "units": (FOUR[0] * [1.0, 100.0, 0.01] + [0.0, 1000.0, 0.0], FOUR[1]),
    "sparse": (sp.csr_array(np.where(np.abs(FOUR[0]) > 3, FOUR[0], 0.0)), FOUR[1]),
    "number": (TWO[0], np.sin(2 * TWO[0][:, 0]) + 0.1 * TWO[0][:, 1] + 3.0),
    "none": (FOUR[0], np.zeros(40)),
    "first": (TWO[0][:12], TWO[1][:12]),  # choices are renewed at 1, 2, 4, … rows
    "first numbers": (TWO[0][:12], TWO[0][:12, 0] + 3.0),
}
KNOWN = RandomFourier(n_components=30, gamma=0.5)  # nothing to wait for: what is left is the pass itself
GROWS = {"bounded": False, "exact_split": False}  # features grow with the rows, and are rounded by the rows of a call
DOUBLY = {"gamma": 0.7, "step": DoublyStep(3.0, 7.0, precondition=0.0), "schedule": DoublySchedule(8, 6)}
THREE_BLOCKS = DOUBLY | {"schedule": DoublySchedule(8, 6, max_blocks=3)}
NOVELTY = DOUBLY | {"step": DoublyStep(0.5, 7.0)}
AUTO = DoublySchedule(batch_size=8, block_size=4)
REFRESHED = {"budget": 12, "rank": 5}
STRATEGIES = [
    budgets.RemoveRandom(), budgets.BOGD(2.0), budgets.Forgetron(), budgets.RemoveSmallest(), budgets.Replace(),
    budgets.Replace(neighbour=True), budgets.Transfer(20), budgets.Stop(), budgets.SPA(1.0, 2.0),
]  # fmt: skip
TASKS = [
    ("two", ks.BudgetClassifier, 1.0, {}),
    ("four", ks.BudgetClassifier, 0.1, {}),
    ("number", ks.BudgetRegressor, 1.0, {"loss": EpsilonInsensitive(0.1)}),
]


def several(kind=ks.BudgetClassifier, strategy="remove_random"):
    return [kind(gamma=g, budget=10, strategy=strategy) for g in (0.05, 0.5, 5.0)]


VARIANTS = [
    *(("two", ks.FeatureClassifier(KNOWN, "hinge", update)) for update in (
        "auto", "ogd", "pegasos", "norma", "perceptron", "passive_aggressive", "norm_adagrad", "coin_betting",
        Averaged(OGD(0.5, "sqrt")), Averaged("adagrad"), OGD(1.0, "inverse", 0.01))),
    *(("four", ks.FeatureClassifier(KNOWN, loss, update)) for loss, update in (
        ("hinge", "auto"), ("squared_hinge", "ogd"), ("logistic", "norm_adagrad"), ("perceptron", "auto"),
        ("crammer_singer", "coin_betting"), ("softmax", Averaged(OGD(0.5))))),
    *(("number", ks.FeatureRegressor(KNOWN, loss, center=center)) for loss, center in (
        ("squared", True), ("squared", False), ("absolute", True), ("epsilon_insensitive", False), ("huber", True),
        ("quantile", True), ("quantile", False))),
    ("two", ks.FeatureClassifier(Nystroem(n_components=20))),
    ("two", ks.FeatureClassifier(TensorSketch(n_components=64))),
    *((task, ks.FeatureClassifier(Preconditioned(features, 1), update=update)) for task, features, update in (
        ("two", KNOWN, "auto"), ("four", KNOWN, "norm_adagrad"),
        ("sparse", RandomFourier(n_components=301, gamma=0.05), Averaged(OGD(0.3))))),  # two halves, and strips
    ("units", ks.FeatureClassifier(RandomFourier(n_components=30), standardize=True, class_weight="balanced")),
    ("late", ks.FeatureClassifier(RandomFourier(n_components=30))),
    ("sparse", ks.FeatureClassifier(RandomFourier(n_components=30))),
    ("four", ks.NystroemClassifier(gamma=1.0, **REFRESHED)),
    ("four", ks.NystroemClassifier(refresh=8, **REFRESHED)),
    ("number", ks.NystroemRegressor(gamma=1.0, refresh=25, **REFRESHED)),
    # ---- cells
    ("two", ks.CellsClassifier(12, "hashed", forgetting=0.99)),
    ("late", ks.CellsClassifier(12, "hashed", class_weight="balanced")),
    ("sparse", ks.CellsClassifier(12, "hashed")),
    # ---- second order
    ("four", ks.AROWClassifier(TaylorFeatures()), {"rtol": 1e-7}),
    ("four", ks.NewtonClassifier(TaylorFeatures(gamma=0.2), "squared_hinge", diagonal=True), {"rtol": 1e-7}),
    ("number", ks.OnlineRidge(TaylorFeatures(), forecaster="awv", standardize=True)),
    ("number", ks.OnlineRidge(RandomFourier(n_components=40), lam="auto")),
    ("number", ks.OnlineRidge(Nystroem(n_components=20), forgetting=0.98)),
    ("number", ks.OnlineRidge("raw", intercept=True)),
    ("number", ks.OnlineRidge(TaylorFeatures(gamma=0.5, degree="auto", max_features=40)), {"bounded": False}),
    ("four", ks.OnlineRidgeClassifier(TaylorFeatures(), lam=[0.1, 10.0])),
    ("late", ks.OnlineRidgeClassifier(TaylorFeatures(), forecaster="awv", class_weight="balanced"), {"rtol": 1e-7}),
    ("four", ks.KernelAWVClassifier(gamma=1.0), {"rtol": 1e-6, "bounded": False}),
    ("four", rivals.ProsNKonsClassifier(gamma=1.0), {"rtol": 1e-6, "bounded": False}),
    ("four", rivals.ConfidenceWeightedClassifier(TaylorFeatures()), {"rtol": 1e-7}),
    ("late", rivals.LargeMarginClassifier(TaylorFeatures(), "ogd")),
    ("sparse", rivals.LargeMarginClassifier(RandomFourier(n_components=30))),
    # ---- learned frequencies
    ("four", ks.RRFClassifier(13, spectrum=Mixture(2))),
    ("two", ks.RRFClassifier(13, spectrum=LowRank(2), loss="logistic")),
    ("units", ks.RRFClassifier(13, step=RRFStep(batch_size=7), standardize=True, class_weight="balanced")),
    ("late", ks.RRFClassifier(9, step=RRFStep(batch_size=6))),
    ("sparse", ks.RRFClassifier(13)),
    ("number", ks.RRFRegressor(13, gamma=0.4, loss="absolute", step=RRFStep(batch_size=16), center=False)),
    # ---- expansions
    *((task, kind(gamma=gamma, budget=12, strategy=strategy, update=OGD(0.3), **more))
      for strategy, (task, kind, gamma, more) in zip(STRATEGIES, TASKS * 3, strict=True)),
    ("sparse", ks.BudgetOneClass(gamma=0.3, budget=20, eta=0.2)),
    # ---- several kernels
    ("two", ks.MultiKernelClassifier(several(), updates="stochastic", capacity="fixed")),
    ("four", ks.MultiKernelClassifier(
        [ks.FeatureClassifier(RandomFourier(gamma=g, n_components=15)) for g in (0.05, 0.5, 5.0)],
        combination=HedgeWeights(share=0.01))),
    ("four", ks.MultiKernelClassifier(several(strategy="replace"))),
    ("number", ks.MultiKernelRegressor(several(ks.BudgetRegressor))),
    # ---- doubly stochastic gradients
    *((task, kind(**params), GROWS) for task, kind, params in (
        ("two", ks.DoublyStochasticClassifier, THREE_BLOCKS | {"loss": "logistic"}),
        ("four", ks.DoublyStochasticClassifier, DOUBLY | {"loss": "softmax"}),
        ("four", ks.DoublyStochasticClassifier, DOUBLY | {"step": DoublyStep(1.0, 7.0, precondition=0.1)}),
        ("late", ks.DoublyStochasticClassifier, DOUBLY | {"class_weight": "balanced"}),
        ("sparse", ks.DoublyStochasticClassifier, DOUBLY),
        ("number", ks.DoublyStochasticRegressor, DOUBLY | {"center": False}),
        ("number", ks.DoublyStochasticGP, NOVELTY | {"points": TWO[0][:5], "noise": 0.1}),
        ("number", ks.DoublyStochasticGP, NOVELTY | {"variance_features": 0, "normalize_y": True, "noise": 0.1}),
        ("none", ks.DoublyStochasticOneClass, NOVELTY | {"schedule": THREE_BLOCKS["schedule"]}),
        ("none", ks.DoublyStochasticOneClass, NOVELTY | {"step": DoublyStep(0.5, 7.0, average=False)}),
        ("two", ks.DensityRatioEstimator, NOVELTY | {"schedule": THREE_BLOCKS["schedule"]}),
        ("first", ks.DoublyStochasticClassifier, {"schedule": AUTO}),
        ("first numbers", ks.DoublyStochasticRegressor, {"gamma": "median", "step": DoublyStep(), "schedule": AUTO}),
        ("first numbers", ks.DoublyStochasticGP, {"schedule": AUTO, "variance_features": 4}),
        ("first", ks.DoublyStochasticOneClass, {"schedule": AUTO}))),
]  # fmt: skip
