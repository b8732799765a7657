"""What the tests of the torch engine share: rows, targets, models, and the engine on the processor."""

import numpy as np
import pytest

import kernelstream as ks
from kernelstream import losses
from kernelstream.engine import TorchEngine
from kernelstream.features import RandomFourier
from kernelstream.updates import (
    NORMA,
    OGD,
    AdaGrad,
    Averaged,
    CoinBetting,
    NormAdaGrad,
    PassiveAggressive,
    Pegasos,
    Perceptron,
)

torch = pytest.importorskip("torch")


CPU = TorchEngine("cpu", block=16)
UPDATES = [
    OGD(0.5), OGD(0.7, schedule="sqrt", lam=0.01), OGD(schedule="inverse", lam=0.3), Pegasos(0.1), NORMA(0.3, 0.02),
    Perceptron(0.5), Perceptron(1.0, ties=True),
    PassiveAggressive(0.4), PassiveAggressive(0.4, variant=2), PassiveAggressive(np.inf),
    NormAdaGrad(), NormAdaGrad(0.5), CoinBetting(),
]  # fmt: skip
EACH_ROW = [
    "auto", AdaGrad(), AdaGrad(0.5, forgetting=0.9),
    Averaged("ogd"), Averaged(Pegasos(0.1)), Averaged(CoinBetting()), Averaged(AdaGrad(0.4)),
]  # fmt: skip


def rows(n=83, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1], rng.uniform(0, 2, n) * (rng.random(n) < 0.9)


def pairs():
    for kind in ("binary", "multiclass", "regression"):
        for name in losses.names(kind):
            for update in UPDATES:
                try:
                    update.check(losses.get(name))
                except ValueError:
                    continue
                yield pytest.param(kind, name, update, id=f"{name}-{update}")


def task(kind, y):
    if kind == "regression":
        return y
    return (y > 0.2).astype(int) if kind == "binary" else np.digitize(y, [-0.4, 0.3])


def model(kind, loss, update, engine, features=None, **rest):
    features = RandomFourier(gamma=0.5, n_components=8, random_state=1) if features is None else features
    cls = ks.FeatureRegressor if kind == "regression" else ks.FeatureClassifier
    return cls(features, loss, update, engine=engine, random_state=0, **rest)


HELD = ("w", "G", "w_mean", "memory", "center")  # entries of a state that rows change


def same(got, want, tolerance=1e-12):
    """Everything learned, to so much of the largest number of its entry."""
    assert got.state_["t"] == want.state_["t"]
    for name in HELD:
        if name in want.state_:
            a, b = (est.state_[name] for est in (got, want))
            if name == "w":
                a, b = a * got.state_["scale"][:, None], b * want.state_["scale"][:, None]
            np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * (np.abs(b).max(initial=0) + 1), err_msg=name)
