"""Few parameters; what few people set lives in a part. Wrong values are refused by the name of their parameter."""

import gc
import inspect
import types
from unittest.mock import Mock

import numpy as np
import pytest
from cases import CASES, LABELS, LEARNERS, X, instance, public, targets
from sklearn.base import clone, is_classifier

import kernelstream as ks
from kernelstream import budgets, columns, features, kernels, losses, solvers, trust, updates
from kernelstream.estimators import RRFStep
from kernelstream.features.spectra import Mixture
from kernelstream_papers import rivals

MOST, MOST_USUAL = 10, 8
#: Learners that the first pages of the documentation name.
USUAL = {
    "AROWClassifier", "CellsClassifier", "CellsRegressor", "FeatureClassifier", "FeatureRegressor", "KernelClassifier",
    "KernelRegressor", "NewtonClassifier", "OnlineRidge", "WindowClassifier", "WindowRegressor",
}  # fmt: skip


def class_of(name):
    homes = (rivals, ks, columns, features, trust)
    return next(getattr(home, name) for home in homes if hasattr(home, name))


def counted(cls):
    return list(inspect.signature(cls).parameters)


@pytest.mark.parametrize("name", sorted(public()))
def test_few_parameters(name):
    names = counted(class_of(name))
    assert len(names) <= (MOST_USUAL if name in USUAL else MOST), f"{name} has {len(names)}: {', '.join(names)}"


@pytest.mark.parametrize("name", sorted({name.partition(",")[0] for name in LEARNERS}))
def test_few_bases(name):
    """A shell for the task, what all estimators are, and the parameters; those that all share come last."""
    cls = class_of(name)
    own = [base for base in cls.__mro__[1:] if base.__module__.startswith("kernelstream.")]
    assert len(own) <= 3, own
    shared = [each for each in counted(cls) if each in ("standardize", "class_weight", "engine", "random_state")]
    assert counted(cls)[-len(shared) :] == shared
    assert shared == sorted(shared, key=["standardize", "class_weight", "engine", "random_state"].index)


def test_all_rows_at_once_or_row_by_row():
    for cls, at_once in ((ks.FalkonClassifier, True), (ks.BinningRegressor, True), (ks.FeatureClassifier, False)):
        assert hasattr(cls(), "fit")
        assert all(hasattr(cls(), name) != at_once for name in ("learn", "learn_row", "partial_fit"))


# ---------------------------------------------------------------- values that are none
WRONG = ("nonsense", -1, float("nan"), 0, 2.5)
# Names of parameters that may be 0, and of those that need not be whole numbers.
MAY_BE = {
    0: {
        "c", "epsilon", "eta_g", "kernel__order", "one_hot", "precondition", "room", "update__lam",
        "variance_features",
    },
    2.5: {
        "C", "G", "alpha", "beta", "c", "curvature", "delta", "epsilon", "eta", "eta_g", "gamma", "kernel__nu", "lam",
        "length", "limit", "noise", "passes", "precondition", "radius", "rho", "shrink", "theta0", "tol", "warn_at",
    },
}  # fmt: skip
ELSEWHERE = {"engine", "model", "one_hot", "random_state"}
TOLD_AS = {"features": "feature map", "landmarks": "2D array", "points": "2D array"}


def loss_with(name):
    kind = ks.FeatureRegressor if losses.get(name).kind == "regression" else ks.FeatureClassifier
    return kind(loss=losses.get(name))


def solver_with(name):
    kind = rivals.FixedFeatureClassifier if name in SOLVERS else ks.BinningClassifier
    return kind(solver=solvers.get(name))


# An estimator with each part that has a name.
SOLVERS = ("pegasos", "rbcd", "sbmd", "sdca")
PARTS = {
    "kernel": (kernels, lambda name: ks.BudgetClassifier(kernels.get(name))),
    "loss": (losses, loss_with),
    "update": (updates, lambda name: ks.FeatureClassifier(update=updates.get(name))),
    "strategy": (budgets, lambda name: ks.BudgetClassifier(strategy=budgets.get(name))),
    "features": (features, lambda name: ks.FeatureClassifier(features.get(name))),
    "solver": (solvers, solver_with),
}
WITH_PARTS = {f"{kind} {name}": make(name) for kind, (registry, make) in PARTS.items() for name in registry.names()}


def wrong_values(name):
    """(parameter, value) of all parameters of a case, or of a part, that it must refuse."""
    for parameter in instance(name).get_params() if name in CASES else WITH_PARTS[name].get_params():
        last = parameter.rpartition("__")[2]
        for value in WRONG if last not in ELSEWHERE and (name in CASES or "__" in parameter) else ():
            zero_penalty = last == "lam" and value == 0 and name.startswith(("Doubly", "Density", "BudgetOne"))
            if not {last, parameter}.intersection(MAY_BE.get(value, ())) and not zero_penalty:
                yield parameter, value


@pytest.mark.parametrize("name", [*CASES, *WITH_PARTS])
def test_wrong_values_are_named(name):
    """Whatever the parameter, of the estimator or of a part: refused by name, and nothing is left of the attempt."""
    for parameter, value in wrong_values(name):
        est, last = instance(name) if name in CASES else clone(WITH_PARTS[name]), parameter.rpartition("__")[2]
        est.set_params(**{parameter: value})
        with pytest.raises(ValueError) as refused:
            est.fit(X[:20], targets(est)[:20])
        message = str(refused.value)
        assert any(word in message for word in (last, TOLD_AS.get(last, last), "nonsense")), (parameter, value, message)
        assert not hasattr(est, "state_"), (parameter, value)


@pytest.mark.parametrize(
    "model, message",
    [
        (ks.DoublyStochasticClassifier(schedule=3), "schedule must be 'auto' or a DoublySchedule"),
        (ks.RRFClassifier(step=0.5), "step must be 'auto' or 'paper' or a RRFStep"),
        (ks.MultiKernelClassifier(combination="vote"), "combination must be 'uniform' or 'hedge' or a HedgeWeights"),
        (ks.MultiKernelClassifier(updates="seldom"), "updates must be 'deterministic' or 'stochastic' or a Stoch"),
        (ks.RRFClassifier(spectrum="diagnal"), "did you mean 'diagonal'"),
        (ks.RRFClassifier(spectrum=Mixture(200)), "exceeds n_components"),
        (ks.RRFClassifier(step=RRFStep(lam=0.1)), "need a number for eta"),
        (ks.RRFClassifier(step=RRFStep(eta=0.1, lam=-0.1)), "lam"),
        (ks.RRFClassifier(loss="squared"), "squared"),
        (ks.DoublyStochasticClassifier(kernel="chi2"), "needs x >= 0"),
        (ks.DoublyStochasticClassifier(loss="squared"), "squared"),
        (ks.DoublyStochasticOneClass(nu=1), "nu must be"),
        (ks.DoublyStochasticOneClass(nu=True), "nu must be"),
        (ks.FalkonClassifier(loss="hinge"), "logistic"),
        (ks.OnlineRidge(lam=[1.0, -1.0]), "lam"),
        (ks.OnlineRidge(lam=[]), "lam"),
        (ks.OnlineRidge(forgetting=1.1), "forgetting"),
        (ks.CellsClassifier(forgetting=1.5), r"forgetting must be a number in \(0, 1\]"),
        (ks.BinningClassifier(kernel="gaussian"), "pitches"),
        (ks.BinningClassifier(loss="hinge"), "serves"),
        (ks.BinningClassifier(loss="absolute", solver="cd"), "serves"),
        (ks.BudgetClassifier(budget=True), "budget must be an integer >= 1"),
        (ks.BudgetClassifier(budget=None, strategy="forgetron"), "Forgetron needs a budget"),
        (ks.BudgetClassifier(budget=1, strategy="bogd"), "BOGD needs a budget of at least 2"),
        (ks.BudgetClassifier(budget=1, strategy="merge"), "Merge needs a budget of at least 2"),
        (ks.BudgetClassifier(budget=1, strategy=budgets.Replace(neighbour=True)), "needs a budget of at least 2"),
        (ks.BudgetClassifier(strategy="remove_randm"), "did you mean 'remove_random'"),
        (ks.BudgetClassifier(strategy=budgets.SPA(2.0, 1.0)), "alpha <= beta"),
        (ks.BudgetClassifier(strategy="oskl", loss="squared_hinge"), "bounded derivative"),
        (ks.BudgetClassifier(update=updates.AdaGrad()), "explicit features only"),
        (ks.BudgetRegressor(center="scale"), "center must be True, False or 'standard'"),
        (ks.BudgetOneClass(eta=10.0, lam=0.2), "nothing is remembered"),
        (ks.BudgetOneClass(budget=None, strategy="merge"), "needs a budget"),
        (ks.BudgetOneClass(strategy="spa"), "decides by the loss"),
        (ks.BudgetOneClass(strategy="remove_redundant"), "decides by the loss"),
        (ks.NystroemClassifier(budget=10, rank=11), "rank=11 exceeds budget=10"),
        (ks.NystroemClassifier(kernels.Gaussian(1.0), gamma=2.0), "gamma"),
        (ks.NystroemClassifier(update="adagrad"), "explicit features"),
        (ks.NystroemClassifier(update=updates.Averaged()), "explicit features"),
        (ks.FeatureClassifier(features.RandomFourier(kernels.Gaussian(1.0), gamma=2.0)), "gamma"),
        (ks.FeatureClassifier(features.Nystroem(n_components=5, rank=6)), "rank=6 exceeds n_components=5"),
        (ks.FeatureClassifier("forier"), "fourier"),
        (ks.FeatureClassifier(features.RandomFourier("gausian")), "did you mean 'gaussian'"),
        (ks.FeatureClassifier(loss="hing"), "did you mean 'hinge'"),
        (ks.FeatureClassifier(loss="squared"), "squared"),
        (ks.FeatureClassifier(update="adgrad"), "did you mean 'adagrad'"),
        (ks.FeatureClassifier(update=updates.OGD(1.0, "inverse")), "lam"),
        (ks.FeatureClassifier(update=updates.OGD(0.5, "inverse", 0.1)), "eta"),
        (ks.FeatureClassifier(update=updates.Averaged(updates.Averaged())), "twice"),
        (ks.FeatureClassifier(engine="fast"), "engine"),
        (ks.FeatureClassifier(class_weight={0: -1.0}), "class_weight"),
        (ks.FeatureClassifier(class_weight={1: np.nan}), "class_weight"),
        (ks.AROWClassifier(diagonal=1), "diagonal"),
        (ks.MetricRegressor(size="huge"), "size must be one of small, medium, large, got 'huge'"),
        (ks.NewtonClassifier(loss="squared"), "squared"),
        (ks.NewtonClassifier(loss="softmax"), "softmax"),
        (features.TaylorFeatures(degree=9, max_features=100), "max_features"),
        (features.TaylorFeatures("laplacian"), "gaussian"),
        (features.Preconditioned("fouriere"), "fourier"),
        (features.Preconditioned(features.RandomBinning()), "dense"),
        (features.RandomBinning("gaussian"), "Gaussian"),
        (features.RandomBinning(n_components=11, n_columns=10), "n_columns"),
        (trust.Calibrated(ks.OnlineRidge()), "WithIntervals"),
        (trust.WithIntervals(ks.FeatureClassifier()), "Calibrated"),
        (rivals.ConfidenceWeightedClassifier(confidence=0.5), "confidence"),
        (rivals.FixedFeatureClassifier(solver="cg"), "cg"),
        (rivals.FixedFeatureClassifier(solver="rbcd", loss="hinge"), "rbcd"),
        (rivals.GroupSparseClassifier("raw", 4), "equal groups"),
        (rivals.KernelSDCAClassifier(loss="perceptron"), "dual coordinate ascent serves"),
        (rivals.KernelSDCAClassifier(loss="squared"), "squared"),
        (rivals.KernelSDCARegressor(loss="huber"), "dual coordinate ascent serves"),
        (rivals.LargeMarginClassifier(alpha=1.0), "alpha"),
        (rivals.LargeMarginClassifier(rule="alam"), "alma"),
        (rivals.SparseOneClass(alpha=3.0, beta=1.5), "alpha"),
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_go_together_is_named(model, message):
    before = set(vars(model)) if hasattr(model, "predict") else None  # maps say how many columns they were given
    with pytest.raises(ValueError, match=message):
        model.fit(X[:20] - 1.5, LABELS[:20] if is_classifier(model) else X[:20, 0])
    assert before is None or set(vars(model)) == before


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_has_what_it_declares(name):
    """What its class declares without a value is a parameter of the estimator, and has its value."""
    est = instance(name)
    learner = est._learner
    for base in type(learner).__mro__[:-2]:
        for declared in inspect.get_annotations(base).keys() - base.__dict__.keys() - {"solved_by"}:
            assert getattr(learner, declared) == getattr(est, declared), declared


def reached(thing):
    """Everything that an object leads to."""
    seen, waiting = {}, [thing]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen and not isinstance(one, (type, types.ModuleType)):
            seen[id(one)] = one
            if not isinstance(one, types.FunctionType):
                waiting += gc.get_referents(one)
    return seen


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_points_at_no_estimator_around_it(name):
    est = instance(name)
    assert id(est) not in reached(est._learner)


def test_what_a_learner_derives_points_at_no_estimator_around_it():
    model = ks.KernelClassifier(size="small", random_state=0)
    rows = np.random.default_rng(0).normal(size=(110, 3))
    model.learn(rows, rows[:, 0] > 0)
    model.predict(rows[:1])
    assert "learners" in model._learner.derived and id(model) not in reached(model._learner)


def test_the_signature_of_a_class_is_read_once(monkeypatch):
    model = ks.FeatureClassifier(features.RandomFourier(ks.kernels.Gaussian(0.5), n_components=4), "hinge", "ogd")
    names = model.get_params().keys()
    monkeypatch.setattr("inspect.signature", Mock(side_effect=AssertionError("a signature is read again")))
    assert clone(model).get_params().keys() == names >= {"features__kernel__gamma", "loss"}


@pytest.mark.parametrize(
    "cls", [ks.AROWClassifier, ks.BudgetClassifier, ks.BinningClassifier, ks.DensityRatioEstimator]
)
def test_families_without_a_torch_engine_say_so(cls):
    with pytest.raises(ValueError, match=f"{cls.__name__} has no torch engine"):
        cls(engine="torch").fit(X, LABELS)


NINE = features.RandomFourier(n_components=9)


@pytest.mark.parametrize(
    "est, wrong, fine",
    [
        (ks.KernelRegressor(size="small"), {"size": "medium"}, {"recent": False}),
        (ks.FeatureRegressor(features=NINE), {"features__n_components": 5}, {"update__eta": 0.5}),
        (ks.BudgetRegressor(budget=30), {"budget": 10}, {"random_state": 3}),
    ],
)
def test_parameters_set_after_the_first_row(est, wrong, fine, rng):
    """Those that fit what was learned count from now on; others are an error, until fit or until they are set back."""
    X = rng.normal(size=(120, 3))
    before = est.get_params()
    est.set_params(random_state=0).partial_fit(X, X[:, 0])
    est.set_params(**fine).predict(X)
    expected = est.predict(X)
    est.set_params(**wrong)
    for call in (lambda: est.predict(X), lambda: est.partial_fit(X, X[:, 0]), lambda: est.learn_row(X[:1], 0.5)):
        with pytest.raises(ValueError, match="do not fit what this"):
            call()
    back = {name: before[name] for name in wrong}
    np.testing.assert_array_equal(est.set_params(**back).predict(X), expected)
    est.set_params(**wrong).fit(X, X[:, 0]).predict(X)
