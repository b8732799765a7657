"""Few parameters, and those that have moved into a part work for one version under their old names."""

import inspect
import pickle
import warnings

import numpy as np
import pytest
from cases import LABELS, X, Y, public
from sklearn.base import clone, is_classifier

import kernelstream as ks
from kernelstream import baselines, columns, features, trust
from kernelstream.estimators import DoublySchedule, DoublyStep, HedgeWeights, RRFStep, StochasticUpdates
from kernelstream.model_io.values import build
from kernelstream.registry.parameters import default_parameters

MOST, MOST_USUAL = 10, 8
#: Learners that the first pages of the documentation name.
USUAL = {
    "AROWClassifier", "CellsClassifier", "CellsRegressor", "FeatureClassifier", "FeatureRegressor", "KernelClassifier",
    "KernelRegressor", "NewtonClassifier", "OnlineRidge", "WindowClassifier", "WindowRegressor",
}  # fmt: skip
#: Estimators with moved parameters: the old spelling and the new one, of a model that is quick to fit.
DOUBLY = {"gamma": 0.7, "step": DoublyStep(eta=2.0), "random_state": 0}
OLD_SIZES = {"batch_size": 16, "block_size": 4, "max_blocks": 3, "passes": 2}
SIZES = {"schedule": DoublySchedule(16, 4, 3, 2)}
LEARNERS = [ks.FeatureClassifier(features.RandomFourier(gamma=gamma, n_components=8)) for gamma in (0.1, 1.0)]
NUMBERS = [ks.FeatureRegressor(features.RandomFourier(gamma=gamma, n_components=8)) for gamma in (0.1, 1.0)]
OLD_CHOICES = {"updates": "stochastic", "discount": 0.8, "share": 0.01, "smoothing": 0.2, "counted": "drawn"}
CHOICES = {"combination": HedgeWeights(0.8, 0.01), "updates": StochasticUpdates(0.2, "drawn")}
OLD_STEP = {"eta": 0.5, "eta_g": 0.02, "batch_size": 3}
SPELLINGS = {
    "DensityRatioEstimator": (DOUBLY | OLD_SIZES, DOUBLY | SIZES),
    "DoublyStochasticClassifier": (DOUBLY | OLD_SIZES, DOUBLY | SIZES),
    "DoublyStochasticGP": (DOUBLY | OLD_SIZES | {"noise": 0.1}, DOUBLY | SIZES | {"noise": 0.1}),
    "DoublyStochasticOneClass": (DOUBLY | OLD_SIZES, DOUBLY | SIZES),
    "DoublyStochasticRegressor": (DOUBLY | OLD_SIZES, DOUBLY | SIZES),
    "MultiKernelClassifier": ({"learners": LEARNERS, "random_state": 0} | OLD_CHOICES,
                              {"learners": LEARNERS, "random_state": 0} | CHOICES),
    "MultiKernelRegressor": ({"learners": NUMBERS, "random_state": 0} | OLD_CHOICES,
                             {"learners": NUMBERS, "random_state": 0} | CHOICES),
    "RRFClassifier": ({"n_components": 8, "random_state": 0} | OLD_STEP,
                      {"n_components": 8, "random_state": 0, "step": RRFStep(0.5, 0.02, 3)}),
    "RRFRegressor": ({"n_components": 8, "random_state": 0} | OLD_STEP,
                     {"n_components": 8, "random_state": 0, "step": RRFStep(0.5, 0.02, 3)}),
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


def test_every_estimator_with_moved_parameters_has_a_case():
    moved = {name for name in public() if getattr(class_of(name), "_moved_parameters", None)}
    assert moved == set(SPELLINGS)


def taught(est):
    y = LABELS if is_classifier(est) else Y
    return est.fit(X[:60], y[:60])


def same(first, second):
    assert str(first.get_params()) == str(second.get_params())
    one, two = taught(first).state_, taught(second).state_
    assert one.keys() == two.keys()
    for key in one:
        np.testing.assert_array_equal(one[key], two[key], err_msg=key)


@pytest.mark.parametrize("name", sorted(SPELLINGS))
def test_the_old_spelling_warns_and_gives_the_same_model(name):
    cls, (old, new) = class_of(name), SPELLINGS[name]
    gone = cls._moved_parameters.keys() & old
    assert gone == cls._moved_parameters.keys()
    with pytest.warns(FutureWarning) as told:
        made = cls(**old)
    assert len(told) == len(gone) and told[0].filename == __file__
    same(made, cls(**new))
    with pytest.warns(FutureWarning, match=f"{name}.*is now"):
        changed = cls(**{key: value for key, value in old.items() if key not in gone}).set_params(
            **{key: old[key] for key in gone}
        )
    assert str(changed.get_params()) == str(made.get_params())
    for key in gone:
        with pytest.warns(FutureWarning, match=f"{name}.{key}"):
            assert getattr(made, key) == old[key]


@pytest.mark.parametrize("name", sorted(SPELLINGS))
def test_files_and_pickles_with_the_old_spelling_load_without_a_word(name):
    cls, (old, new) = class_of(name), SPELLINGS[name]
    defaults = default_parameters(cls)
    parts = set(cls._moved_parameters.values()) - old.keys()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = build(cls, {"standardize": defaults["standardize"], **old} if "standardize" in defaults else old)
        assert str(made.get_params()) == str(cls(**new).get_params())
        former = {**cls(**new).__getstate__(), **defaults, **old}  # what a pickle of the earlier version holds
        loaded = cls.__new__(cls)
        loaded.__setstate__({key: value for key, value in former.items() if key not in parts})
        loaded = pickle.loads(pickle.dumps(loaded))
        assert str(loaded.get_params()) == str(made.get_params())
        clone(made).set_params(**{f"{home}__{key}": old[key] for key, home in cls._moved_parameters.items()})


def test_a_choice_for_which_the_parameter_never_counted_stays():
    with pytest.warns(FutureWarning):
        model = ks.MultiKernelClassifier(LEARNERS, "uniform", "deterministic", discount=0.9, smoothing=0.1)
    assert (model.combination, model.updates) == ("uniform", "deterministic")


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


def test_the_signature_of_a_class_is_read_once(monkeypatch):
    model = ks.FeatureClassifier(features.RandomFourier(ks.kernels.Gaussian(0.5), n_components=4), "hinge", "ogd")
    names = model.get_params().keys()

    def never(*args, **kwargs):
        raise AssertionError("a signature is read again")

    monkeypatch.setattr("inspect.signature", never)
    assert clone(model).get_params().keys() == names >= {"features__kernel__gamma", "loss"}
