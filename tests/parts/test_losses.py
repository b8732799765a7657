"""Losses: tables of exact values, the conformance check over the catalogue, and the catalogue itself."""

import math
import pickle
import timeit

import numpy as np
import pytest
from sklearn.base import clone

from kernelstream import losses
from kernelstream.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    OneVsRest,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
)
from kernelstream.testing import check_loss

LOG2 = math.log(2.0)

# loss, y, f, value, gradient; the rows at kinks pin the documented side
NUMBERS = [
    ("hinge", 1, 0.25, 0.75, -1.0),
    ("hinge", -1, 0.25, 1.25, 1.0),
    ("hinge", 1, 1.0, 0.0, 0.0),
    ("hinge", -1, -1.0, 0.0, 0.0),
    ("hinge", 1, 3.0, 0.0, 0.0),
    ("squared_hinge", 1, 0.5, 0.125, -0.5),
    ("squared_hinge", -1, 1.0, 2.0, 2.0),
    ("squared_hinge", 1, 1.0, 0.0, 0.0),
    ("logistic", 1, 0.0, LOG2, -0.5),
    ("logistic", -1, 0.0, LOG2, 0.5),
    ("logistic", 1, LOG2, math.log(1.5), -1.0 / 3.0),
    ("logistic", 1, 800.0, 0.0, 0.0),
    ("logistic", 1, -800.0, 800.0, -1.0),
    ("logistic", -1, 1e308, 1e308, 1.0),
    ("logistic", 1, 40.0, math.exp(-40.0), -math.exp(-40.0)),
    ("perceptron", 1, -0.5, 0.5, -1.0),
    ("perceptron", -1, 0.5, 0.5, 1.0),
    ("perceptron", 1, 0.5, 0.0, 0.0),
    ("perceptron", 1, 0.0, 0.0, 0.0),
    ("perceptron", -1, 0.0, 0.0, 1.0),
    ("squared", 1.0, 3.0, 2.0, 2.0),
    ("squared", 1.0, 1.0, 0.0, 0.0),
    (Squared(epsilon=0.5), 0.0, 0.5, 0.0, 0.0),
    (Squared(epsilon=0.5), 0.0, -1.0, 0.375, -1.0),
    ("absolute", 2.0, -1.0, 3.0, -1.0),
    ("absolute", 2.0, 2.0, 0.0, 0.0),
    ("epsilon_insensitive", 0.0, 1.1, 1.0, 1.0),
    (EpsilonInsensitive(epsilon=0.5), 0.0, -0.5, 0.0, 0.0),
    (EpsilonInsensitive(epsilon=0.5), 0.0, -0.75, 0.25, -1.0),
    ("huber", 0.0, 0.5, 0.125, 0.5),
    ("huber", 0.0, -3.0, 2.5, -1.0),
    (Huber(delta=2.0), 1.0, 3.0, 2.0, 2.0),
    (Huber(delta=2.0), 1.0, 5.0, 6.0, 2.0),
    ("quantile", 0.0, 2.0, 1.0, 0.5),
    (Quantile(tau=0.75), 0.0, 2.0, 0.5, 0.25),
    (Quantile(tau=0.75), 0.0, -2.0, 1.5, -0.75),
    (Quantile(tau=0.75), 1.0, 1.0, 0.0, 0.25),
]

# loss, y, row of scores, value, gradient
ROWS = [
    ("crammer_singer", 0, [0.0, 0.0, 0.0], 1.0, [-1, 1, 0]),
    ("crammer_singer", 1, [0.0, 0.0, 0.0], 1.0, [1, -1, 0]),
    ("crammer_singer", 2, [0.5, 0.75, 1.5], 0.25, [0, 1, -1]),
    ("crammer_singer", 2, [0.5, 0.5, 1.5], 0.0, [0, 0, 0]),
    ("crammer_singer", 0, [3.0, 0.0, 1.0], 0.0, [0, 0, 0]),
    ("multiclass_perceptron", 0, [0.0, 0.0, 0.0], 0.0, [0, 0, 0]),
    ("multiclass_perceptron", 1, [0.0, 0.0, 0.0], 0.0, [1, -1, 0]),
    ("multiclass_perceptron", 2, [0.0, 2.0, 1.5], 0.5, [0, 1, -1]),
    ("multiclass_perceptron", 1, [0.0, 2.0, 1.5], 0.0, [0, 0, 0]),
    ("softmax", 0, [0.0, 0.0], LOG2, [-0.5, 0.5]),
    ("softmax", 1, [0.0, LOG2, 0.0], LOG2, [0.25, -0.5, 0.25]),
    ("softmax", 0, [-800.0, 800.0], 1600.0, [-1, 1]),
    ("one_vs_rest", 0, [0.5, -1.0, 0.0], 1.5, [-1, 0, 1]),
    (OneVsRest("squared_hinge"), 0, [0.5, -1.0, 0.0], 0.625, [-0.5, 0, 1]),
    (OneVsRest("perceptron"), 1, [0.0, 0.0], 0.0, [1, 0]),
]


@pytest.mark.parametrize(("loss", "y", "f", "value", "gradient"), NUMBERS)
def test_exact_numbers(loss, y, f, value, gradient):
    loss = losses.get(loss)
    assert loss.value(y, f) == pytest.approx(value, rel=1e-14, abs=1e-300)
    assert loss.gradient(y, f) == pytest.approx(gradient, rel=1e-14, abs=1e-300)
    assert loss.value(np.array([y]), np.array([f]))[0] == pytest.approx(value, rel=1e-14, abs=1e-300)
    assert loss.gradient(np.array([y]), np.array([f]))[0] == pytest.approx(gradient, rel=1e-14, abs=1e-300)


@pytest.mark.parametrize(("loss", "y", "f", "value", "gradient"), ROWS)
def test_exact_rows(loss, y, f, value, gradient):
    loss = losses.get(loss)
    assert loss.value(y, f) == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(loss.gradient(y, f), gradient, rtol=1e-14)
    np.testing.assert_allclose(loss.value([y, y], [f, f]), [value, value], rtol=1e-14)
    np.testing.assert_allclose(loss.gradient([y, y], [f, f]), [gradient, gradient], rtol=1e-14)


OTHERS = [
    Squared(epsilon=0.5),
    EpsilonInsensitive(epsilon=0.0),
    Huber(delta=0.5),
    Quantile(tau=0.9),
    OneVsRest("logistic"),
    OneVsRest("perceptron"),
    OneVsRest(SquaredHinge()),
]


@pytest.mark.parametrize("loss", [*losses.names(), *OTHERS], ids=str)
def test_conforms(loss):
    name = losses.get(loss).name
    table = ROWS if losses.get(loss).kind == "multiclass" else NUMBERS
    kinks = [(y, f, g) for spec, y, f, _, g in table if spec == loss == name]
    check_loss(loss, kinks=kinks)


class _Broken(Hinge):
    """A hinge whose gradient has the wrong sign."""

    name = "broken"

    def _gradient(self, y, f, xp):
        return -super()._gradient(y, f, xp)


class _Concave(Hinge):
    """Bounded above, hence not convex."""

    name = "concave"

    def _value(self, y, f, xp):
        return xp.minimum(1.0, super()._value(y, f, xp))


@pytest.mark.parametrize(("loss", "message"), [(_Broken(), "gradient at"), (_Concave(), "not convex")])
def test_the_check_finds_faults(loss, message):
    with pytest.raises(AssertionError, match=message):
        check_loss(loss)


def test_the_check_pins_the_side_of_a_kink():
    with pytest.raises(AssertionError, match="gradient at y=1"):
        check_loss("hinge", kinks=[(1, 1.0, -1.0)])


def test_catalogue():
    by_kind = {kind: losses.names(kind) for kind in ("binary", "regression", "multiclass")}
    assert {name: kind for kind, names in by_kind.items() for name in names} == {
        name: losses.get(name).kind for name in losses.names()
    }
    assert sum(map(len, by_kind.values())) == len(losses.names())
    assert "hinge" in by_kind["binary"] and "huber" in by_kind["regression"] and "softmax" in by_kind["multiclass"]


@pytest.mark.parametrize(
    ("spec", "task", "message"),
    [
        ("hing", None, "unknown loss 'hing': did you mean 'hinge'"),
        ("Huber", None, "did you mean 'huber'"),
        ("zzz", None, "known are absolute"),
        (3, None, "loss must be a name"),
        ("hinge", "regression", "'hinge' is for binary targets, not for regression"),
        ("squared", "binary", "'squared' is for regression targets, not for binary"),
        ("squared", "classification", "'squared' is for regression targets, not for classification"),
        ("squared", "multiclass", "not for multiclass"),
        ("softmax", "binary", "'softmax' is for multiclass targets"),
        (Quantile(tau=1.0), None, r"tau must be a number in \(0, 1\)"),
        (OneVsRest("squared"), None, "'squared' is for regression"),
    ],
)
def test_errors_name_the_problem(spec, task, message):
    with pytest.raises(ValueError, match=message):
        losses.get(spec, task)


def test_regression_has_no_multiclass_counterpart():
    with pytest.raises(ValueError, match="no multi-class counterpart"):
        Squared().multiclass()


@pytest.mark.parametrize(
    ("loss", "counterpart"),
    [
        ("hinge", "crammer_singer"),
        ("logistic", "softmax"),
        ("perceptron", "multiclass_perceptron"),
        ("squared_hinge", "one_vs_rest"),
        ("softmax", "softmax"),
    ],
)
def test_multiclass_counterparts(loss, counterpart):
    assert losses.get(loss).multiclass().name == counterpart
    assert losses.get(loss, task="multiclass").name == counterpart


def test_one_vs_rest_keeps_the_loss_it_wraps():
    wrapped = SquaredHinge()
    assert wrapped.multiclass().inner is wrapped


@pytest.mark.parametrize("name", losses.names())
def test_parameters_clone_and_pickle(name):
    loss = losses.get(name)
    assert repr(clone(loss)) == repr(loss) == repr(pickle.loads(pickle.dumps(loss)))
    assert loss.native()[0].startswith(name)


def test_native_parameters():
    assert Huber(delta=2).native() == ("huber", [2.0])
    assert Hinge().native() == ("hinge", [0.0])
    assert OneVsRest("logistic").native() == ("one_vs_rest:logistic", [])


def test_bounds():
    bounds = {name: losses.get(name).bound for name in losses.names()}
    assert {name for name, bound in bounds.items() if bound is None} == {"squared", "squared_hinge"}
    assert Huber(delta=3.0).bound == 3.0
    assert Quantile(tau=0.9).bound == 0.9
    assert OneVsRest("squared_hinge").bound is None


def test_probabilities():
    assert {name for name in losses.names() if hasattr(losses.get(name), "probability")} == {"logistic", "softmax"}
    assert Logistic().probability(LOG2) == pytest.approx(2 / 3)
    f = np.array([-1.5, 0.0, 2.0])
    two = np.column_stack([-f / 2, f / 2])
    np.testing.assert_allclose(Softmax().probability(two)[:, 1], Logistic().probability(f), rtol=1e-14)
    np.testing.assert_allclose(Softmax().value([1, 1, 1], two), Logistic().value(np.ones(3), f), rtol=1e-13)
    np.testing.assert_allclose(OneVsRest("logistic").probability([[0.0, 0.0, 0.0]]), 1 / 3)
    np.testing.assert_allclose(
        OneVsRest("logistic").probability([[-800.0, -801.0]]), Softmax().probability([[1.0, 0.0]])
    )


def test_broadcasting_and_integers():
    assert Hinge().value([1, -1], 0.0).tolist() == [1.0, 1.0]
    assert Hinge().gradient(np.array([1, -1], dtype=np.int8), np.zeros(2, dtype=int)).tolist() == [-1.0, 1.0]
    assert type(Hinge().gradient(np.int8(1), np.float64(0.5))) is np.float64
    assert Hinge().gradient(1, np.float64(0.5)) == -1.0


@pytest.mark.parametrize("name", [*losses.names("binary"), *losses.names("regression")])
def test_a_number_costs_less_than_an_array(name):
    """About a tenth, where nothing else runs: a pass in Python asks for one number after the other."""
    loss, y, f = losses.get(name), np.array([1.0]), np.array([0.3])
    number, array = (
        min(timeit.repeat(call, number=300, repeat=7))
        for call in (lambda: loss.gradient(1.0, 0.3), lambda: loss.gradient(y, f))
    )
    assert number < 0.6 * array
