"""Few parameters; what few people set lives in a part."""

import inspect

import pytest
from cases import LABELS, LEARNERS, X, instance, public
from sklearn.base import clone

import kernelstream as ks
from kernelstream import baselines, columns, features, trust
from kernelstream.estimators import DoublySchedule

MOST, MOST_USUAL = 10, 8
#: Learners that the first pages of the documentation name.
USUAL = {
    "AROWClassifier", "CellsClassifier", "CellsRegressor", "FeatureClassifier", "FeatureRegressor", "KernelClassifier",
    "KernelRegressor", "NewtonClassifier", "OnlineRidge", "WindowClassifier", "WindowRegressor",
}  # fmt: skip


def class_of(name):
    homes = (baselines, ks, columns, features, trust)
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
        assert [hasattr(cls(), name) for name in ("fit", "learn", "partial_fit")] == [True, not at_once, not at_once]


def test_parts_are_checked():
    wrong = {
        "schedule must be 'auto' or a DoublySchedule": ks.DoublyStochasticClassifier(schedule=3),
        "step must be 'auto' or a DoublyStep": ks.DoublyStochasticClassifier(step=0.5),
        "step must be 'auto' or a RRFStep": ks.RRFClassifier(step=0.5),
        "combination must be 'uniform' or 'hedge' or a HedgeWeights": ks.MultiKernelClassifier(combination="vote"),
        "updates must be 'deterministic' or 'stochastic' or a Stoch": ks.MultiKernelClassifier(updates="seldom"),
        "batch_size must be": ks.DoublyStochasticClassifier(schedule=DoublySchedule(0)),
    }
    for message, model in wrong.items():
        with pytest.raises(ValueError, match=message):
            model.fit(X[:20], LABELS[:20])


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_has_what_it_declares(name):
    """What its class declares without a value is a parameter of the estimator, and has its value."""
    est = instance(name)
    learner = est._learner
    for base in type(learner).__mro__[:-2]:
        for declared in inspect.get_annotations(base).keys() - base.__dict__.keys() - {"est", "solved_by"}:
            assert getattr(learner, declared) == getattr(est, declared), declared


def test_the_signature_of_a_class_is_read_once(monkeypatch):
    model = ks.FeatureClassifier(features.RandomFourier(ks.kernels.Gaussian(0.5), n_components=4), "hinge", "ogd")
    names = model.get_params().keys()

    def never(*args, **kwargs):
        raise AssertionError("a signature is read again")

    monkeypatch.setattr("inspect.signature", never)
    assert clone(model).get_params().keys() == names >= {"features__kernel__gamma", "loss"}


@pytest.mark.parametrize(
    "cls", [ks.AROWClassifier, ks.BudgetClassifier, ks.BinningClassifier, ks.DensityRatioEstimator]
)
def test_families_without_a_torch_engine_say_so(cls):
    with pytest.raises(ValueError, match=f"{cls.__name__} has no torch engine"):
        cls(engine="torch").fit(X, LABELS)
