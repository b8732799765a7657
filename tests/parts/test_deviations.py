"""Regression in units of the target's deviation: the same learner on scaled targets, written out."""

import numpy as np
import pytest
from reloaded import reloaded

from kernelstream import BudgetRegressor, MultiKernelRegressor
from kernelstream.kernels import Gaussian
from kernelstream.losses import EpsilonInsensitive
from kernelstream.updates import Perceptron

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (600, 2))
y = 1e4 * (3 + np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(600))


def learner(**parameters):
    parts = {"loss": EpsilonInsensitive(0.1), "update": Perceptron(0.2), "random_state": 0}
    return BudgetRegressor(gamma=1.0, budget=50, **parts, **parameters)


@pytest.mark.parametrize("engine", ["python", "native"])
def test_is_the_learner_on_scaled_targets(engine):
    """After the first 100 rows, which are learned again with the deviation of all of them."""
    unit = y[:100].std()
    model = learner(center="standard", engine=engine)
    forecast = model.learn(X, y)
    plain = learner(center=True, engine=engine)
    expected = plain.learn(X, y / unit) * unit
    np.testing.assert_allclose(forecast[100:], expected[100:], rtol=1e-12)
    np.testing.assert_allclose(model.predict(X), plain.predict(X) * unit, rtol=1e-12)
    assert np.mean((forecast[100:] - y[100:]) ** 2) < 0.5 * y.var()


def test_an_ensemble_scales_for_its_learners():
    """Forecasts, range and weights as those of the ensemble on scaled targets."""
    unit = y[:100].std()
    kernels = [Gaussian(0.3), Gaussian(3.0)]
    made = [
        MultiKernelRegressor(
            [BudgetRegressor(kernel, budget=30, loss=EpsilonInsensitive(0.1), update=Perceptron(0.2), center=center)
             for kernel in kernels], random_state=0,
        )
        for center in ("standard", True)
    ]  # fmt: skip
    forecast, expected = made[0].learn(X, y), made[1].learn(X, y / unit) * unit
    np.testing.assert_allclose(forecast[100:], expected[100:], rtol=1e-9)
    np.testing.assert_allclose(made[0].weights_, made[1].weights_, rtol=1e-9)


def test_constant_targets_glitches_and_files():
    assert (learner(center="standard").fit(X, np.full(600, 7.0)).predict(X) > 6).all()
    odd = y.copy()
    odd[5] = 1e12
    with pytest.warns(RuntimeWarning, match="a target lies far outside the others"):
        model = learner(center="standard").fit(X, odd)
    assert 0.2 * y.std() < model.state_["unit"] < 5 * y.std()
    np.testing.assert_array_equal(reloaded(model).predict(X), model.predict(X))
