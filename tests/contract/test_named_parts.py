"""Parameters of parts that are given by name can be set and searched."""

import numpy as np
import pytest

import kernelstream as ks
from kernelstream import features, solvers
from kernelstream.updates import OGD, AdaGrad

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
y = X[:, 0] * X[:, 1] > 0


def test_every_kind_of_part():
    model = ks.FeatureRegressor(loss="huber", update="ogd").set_params(loss__delta=2.0, update__eta=0.25)
    assert model.loss.delta == 2.0 and model.update.eta == 0.25 and isinstance(model.update, OGD)
    assert ks.FeatureClassifier().set_params(update__forgetting=1.0).update.get_params() == AdaGrad().get_params()
    assert ks.BudgetClassifier(kernel="polynomial").set_params(kernel__degree=2).kernel.degree == 2
    assert (
        ks.BinningClassifier().set_params(solver="newton-cg", solver__tol=0.5).solver.get_params()
        == solvers.NewtonCG(tol=0.5).get_params()
    )
    assert ks.OnlineRidge(features="nystroem").set_params(features__n_components=7).features.n_components == 7


def test_a_name_and_its_parameters_at_once():
    model = ks.FeatureClassifier().set_params(features="nystroem", features__n_components=5)
    assert isinstance(model.features, features.Nystroem) and model.features.n_components == 5


def test_errors_name_the_problem():
    with pytest.raises(ValueError, match="Invalid parameter 'n_component' for RandomFourier: did you mean"):
        ks.FeatureClassifier().set_params(features__n_component=5)
    with pytest.raises(ValueError, match="unknown feature map 'furier': did you mean 'fourier'"):
        ks.FeatureClassifier(features="furier").set_params(features__n_components=5)
    model = ks.FeatureClassifier()
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(features__n_component=5)
    assert model.features == "fourier"


@pytest.mark.parametrize(
    "make, meant",
    [
        (lambda: ks.OnlineRidge(C=1.0), "lam"),
        (lambda: ks.KernelClassifier(sise="small"), "size"),
        (lambda: ks.BudgetClassifier(Gamma=1.0), "gamma"),
        (lambda: OGD(learning_rate=0.1), "eta"),
        (lambda: features.RandomFourier(n_component=10), "n_components"),
    ],
)
def test_a_parameter_that_does_not_exist(make, meant):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '.*' for .*: did you mean '{meant}'\\?"):
        make()


def test_names_of_other_libraries():
    with pytest.raises(ValueError, match="unknown loss 'log_loss': did you mean 'logistic'"):
        ks.FeatureClassifier(loss="log_loss").fit(X, y)
    with pytest.raises(ValueError, match="did you mean 'lam'"):
        ks.OnlineRidge().set_params(C=1.0)
