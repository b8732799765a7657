"""Features with damped leading directions: the correction by its formula, and steps on them as preconditioned steps."""

import numpy as np
import pytest
import scipy.sparse as sp
from reloaded import reloaded
from sklearn.datasets import make_moons

from kernelstream import FeatureClassifier, FeatureRegressor
from kernelstream.features import Nystroem, Preconditioned, RandomFourier
from kernelstream.features.preconditioned import leading
from kernelstream.updates import OGD

X, y = make_moons(1500, noise=0.2, random_state=0)
FOURIER = RandomFourier(gamma=2.0, n_components=30, random_state=3)


def square_root(Z, k):
    """P^(1/2) from the eigenvectors of the second moment, with numpy: k directions as large as number 2 k + 1."""
    s, V = np.linalg.eigh(Z.T @ Z / len(Z))
    s, V = s[::-1], V[:, ::-1]
    return np.eye(Z.shape[1]) - (V[:, :k] * (1 - np.sqrt(s[2 * k] / s[:k]))) @ V[:, :k].T, s


@pytest.mark.parametrize("features", [FOURIER, Nystroem(gamma=2.0, n_components=40, random_state=3)])
def test_is_the_root_of_the_preconditioner(features):
    Z = features.fit(X[:400]).transform(X)
    root, s = square_root(Z[:400:2], 6)  # 32 rows for each direction are looked at
    found = Preconditioned(features, 6, random_state=3).fit(X[:400])
    np.testing.assert_allclose(found.transform(X), Z @ root, atol=1e-9)
    # the six leading directions are now as large as the thirteenth
    level = np.linalg.eigvalsh(found.transform(X[:400:2]).T @ found.transform(X[:400:2]) / 200)[::-1]
    np.testing.assert_allclose(level[:6], s[6:12], rtol=1e-6)
    np.testing.assert_allclose(level[6:13], s[12], rtol=1e-6)


@pytest.mark.parametrize("engine", ["python", "native"])
def test_a_plain_step_on_them_is_a_preconditioned_step(engine):
    """w += tau P z on the features themselves, row by row in numpy, after the directions are settled."""
    settled, stop = 192, 500  # 32 rows for each direction
    model = FeatureClassifier(Preconditioned(FOURIER, 6), update=OGD(0.3), random_state=3, engine=engine)
    scores = np.concatenate([model.learn(X[:settled], y[:settled]), model.learn(X[settled:stop], y[settled:stop])])
    Z = FOURIER.fit(X[:settled]).transform(X)
    root, _ = square_root(Z[:settled], 6)
    P, w, signs = root @ root, np.zeros(Z.shape[1]), 2.0 * y - 1
    for i in range(stop):
        f = w @ Z[i]
        if i >= settled:
            np.testing.assert_allclose(scores[i], f, atol=1e-9)
        if signs[i] * f < 1:
            w += 0.3 * signs[i] * P @ Z[i]
    np.testing.assert_allclose(model.decision_function(X), Z @ w, atol=1e-8)


WIDE = RandomFourier(gamma=2.0, n_components=301, random_state=3)  # two halves, and strips that are not full


def test_directions_from_some_of_the_frequencies():
    """What is taken off: the regression of every feature on the eigenfunctions of 64 frequencies, times 1 - damping."""
    k, rows = 2, X[:64]
    Z = WIDE.fit(rows).transform(X)
    some = np.concatenate([Z[:, :64], Z[:, 301 : 301 + 64]], axis=1)
    s, V = np.linalg.eigh(some[:64].T @ some[:64])
    s, V = s[::-1], V[:, ::-1][:, :k]
    psi = some @ V
    c = np.linalg.lstsq(psi[:64], Z[:64], rcond=None)[0]
    expected = Z - (psi * (1 - np.sqrt(s[2 * k] / s[:k]))) @ c
    np.testing.assert_allclose(Preconditioned(WIDE, k, random_state=3).fit(rows).transform(X), expected, atol=1e-9)


def test_many_rows_by_block_power_steps():
    """The leading directions of 600 rows and 602 features, against those of numpy."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((600, 3))
    Z = RandomFourier(gamma=0.05, n_components=301, random_state=3).fit(rows).transform(rows)
    s, U = leading(Z, 8)
    expected, V = np.linalg.eigh(Z @ Z.T)
    np.testing.assert_allclose(s, expected[::-1][:8], rtol=1e-5)
    np.testing.assert_allclose(np.abs((U * V[:, ::-1][:, :8]).sum(axis=0)), 1.0, atol=1e-3)


def test_rank_by_the_price_of_a_row():
    rng = np.random.default_rng(0)
    for columns, k in ((3, 16), (54, 16), (123, 24), (800, 64)):
        found = Preconditioned(RandomFourier(n_components=64), random_state=0).fit(rng.standard_normal((520, columns)))
        assert len(found.entries_["back"]) == k


def test_learns_more_from_a_pass():
    """Gains that the method is there for: a curve of which plain steps learn the coarse part only."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-3, 3, (4000, 2))
    target = np.sin(2 * rows[:, 0]) * np.cos(2 * rows[:, 1])
    errors = []
    for features in (
        RandomFourier(gamma=0.5, n_components=300),
        Preconditioned(RandomFourier(gamma=0.5, n_components=300), rank=64),
    ):
        model = FeatureRegressor(features, random_state=0).fit(rows[:3000], target[:3000])
        errors.append(1 - model.score(rows[3000:], target[3000:]))
    assert errors[1] < 0.1 * errors[0]


def test_model_file_sparse_rows_and_few_rows():
    model = FeatureClassifier(Preconditioned(FOURIER, 6), random_state=0).fit(X[:700], y[:700])
    np.testing.assert_array_equal(reloaded(model).decision_function(X), model.decision_function(X))
    sparse = FeatureClassifier(Preconditioned(FOURIER, 6), random_state=0).fit(sp.csr_array(X[:700]), y[:700])
    np.testing.assert_allclose(sparse.decision_function(X), model.decision_function(X), atol=1e-9)
    assert len(Preconditioned(FOURIER, 6).fit(X[:7]).entries_["back"]) == 0  # too few rows to go by
    np.testing.assert_array_equal(Preconditioned(FOURIER).fit(np.ones((50, 2))).transform(X).shape, (1500, 60))


@pytest.mark.parametrize("features", [FOURIER, WIDE], ids=["all", "some"])
def test_the_device_makes_them_by_itself(features):
    """The same features, and the same learner, from the torch engine on the processor."""
    pytest.importorskip("torch")
    from kernelstream.engine import TorchEngine
    from kernelstream.engine.torch.maps import DevicePreconditioned as OnDevice

    models = [
        FeatureClassifier(Preconditioned(features, 4), update=OGD(0.3), random_state=3, engine=engine).fit(X, y)
        for engine in ("native", TorchEngine("cpu", precision="float32"))
    ]
    np.testing.assert_allclose(models[1].decision_function(X), models[0].decision_function(X), atol=1e-9)
    made = models[1]._learner.ops.device_map(models[1]._learner.mapping(models[1].state_))
    assert isinstance(made, OnDevice)
