"""What a loss says of itself is what solvers go by: no list of names anywhere."""

import numpy as np
import pytest

from kernelstream import BinningClassifier, losses
from kernelstream.solvers import ConjugateGradient, CoordinateDescent, NewtonCG
from kernelstream_papers.rivals import FixedFeatureClassifier
from kernelstream_papers.rivals.solvers import SDCA

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))
LABELS = np.resize([1.0, -1.0], 80)  # as many of each: the constant of least loss is 0, whatever the loss
X[:, 1] = np.abs(X[:, 1]) * LABELS * np.sign(X[:, 0])
SMOOTH = [name for name in losses.names() if losses.get(name).smoothness is not None]


@pytest.mark.parametrize("name", SMOOTH)
def test_curvature_is_the_second_derivative(name, rng):
    loss = losses.get(name)
    y = LABELS if loss.kind == "binary" else rng.normal(size=80)
    f, h = rng.normal(size=80), 1e-6
    away = np.abs(1 - y * f) > 1e-3  # from the kink in the derivative of the squared hinge
    slope = (loss.gradient(y, f + h) - loss.gradient(y, f - h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(y, f)[away], slope[away], atol=1e-8)
    assert loss.curvature(y, f).max() <= loss.smoothness


def test_a_dead_zone_is_not_smooth():
    assert losses.Squared().smoothness == 1.0 and losses.Squared(epsilon=0.1).smoothness is None
    for solver in (ConjugateGradient(), NewtonCG(), CoordinateDescent()):
        with pytest.raises(ValueError, match="dead zone"):
            solver.serves(losses.Squared(epsilon=0.1))
    with pytest.raises(ValueError, match="hinge"):
        NewtonCG().serves(losses.get("hinge"))


class Smooth(losses.Loss):
    """log(1 + exp(-y f)) under another name: a smooth loss that has no compiled sweep."""

    name, kind, smoothness = "smooth_of_a_test", "binary", 0.25

    def _value(self, y, f, xp):
        return xp.logaddexp(0.0, -y * f)

    def _gradient(self, y, f, xp):
        return -y / (1.0 + xp.exp(y * f))

    def curvature(self, y, f):
        p = 1.0 / (1.0 + np.exp(y * np.asarray(f)))
        return p * (1 - p)


@pytest.mark.parametrize("solver", [NewtonCG(1e-10, 200), CoordinateDescent(1e-7, 2000)], ids=lambda one: one.name)
def test_a_smooth_loss_of_ones_own_is_solved(solver, monkeypatch):
    monkeypatch.setitem(losses._base.CATALOGUE.parts, Smooth.name, Smooth)
    own, known = (
        BinningClassifier(gamma=0.5, n_components=8, lam=0.1, solver=solver, loss=loss, random_state=0).fit(X, LABELS)
        for loss in (Smooth(), "logistic")
    )
    np.testing.assert_allclose(own.decision_function(X), known.decision_function(X), atol=1e-5)


def test_dual_steps_serve_losses_that_have_one():
    able = [name for name in losses.names() if losses.get(name).dual() is not None]
    assert {"hinge", "squared", "logistic"} <= set(able)
    for name in losses.names():
        loss = losses.get(name)
        if name in able:
            SDCA().serves(loss)
        else:
            with pytest.raises(ValueError, match="serves"):
                SDCA().serves(loss)
    with pytest.raises(ValueError, match="serves"):
        FixedFeatureClassifier(loss="crammer_singer", solver="sdca").fit(X, LABELS)
