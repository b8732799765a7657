"""The torch engine in the families that have passes of their own: doubly stochastic, ridge."""

import numpy as np
import pytest
from torch_cases import CPU, rows, task

import kernelstream as ks
from kernelstream import settings
from kernelstream.estimators import DoublySchedule, DoublyStep
from kernelstream.features import RandomFourier

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("average, precondition", [(True, 0.0), (False, 0.05)])
@pytest.mark.parametrize("max_blocks", [None, 3])
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_doubly_stochastic(kernel, max_blocks, average, precondition):
    """fit in several passes, a stream on top, and prediction, as on the processor."""
    X, y, weight = rows(300)
    args = {
        "kernel": kernel, "gamma": 0.5, "loss": "softmax", "lam": 1e-3, "random_state": 3,
        "step": DoublyStep(2.0, 20.0, average, precondition), "schedule": DoublySchedule(40, 24, max_blocks, 1.5),
    }  # fmt: skip
    want, got = (ks.DoublyStochasticClassifier(**args, engine=engine) for engine in ("auto", CPU))
    for est in (want, got):
        est.fit(X, task("multiclass", y), sample_weight=weight)
        est.partial_fit(X[:90], task("multiclass", y[:90]))
    np.testing.assert_allclose(got.decision_function(X), want.decision_function(X), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(got.state_["alpha"], want.state_["alpha"], rtol=1e-6, atol=1e-8)


def test_doubly_stochastic_in_large_batches():
    """fit with batches of its own, then a stream with smaller ones and stronger damping."""
    X, y, _ = rows(300)
    args = {
        "gamma": 0.5, "loss": "softmax", "random_state": 3,
        "step": DoublyStep(2.0, 20.0, precondition="auto"), "schedule": DoublySchedule(block_size=4),
    }  # fmt: skip
    want, got = (ks.DoublyStochasticClassifier(**args, engine=engine) for engine in ("auto", CPU))
    for est in (want, got):
        est.fit(X, task("multiclass", y)).partial_fit(X, task("multiclass", y))
        assert est.state_["t"] == 150 + 300 // 64  # steps of fit, full batches of the stream
    np.testing.assert_allclose(got.decision_function(X), want.decision_function(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("lam", [1e-4, 0.5])
def test_preconditioning_is_damped_by_the_regulariser(lam):
    """Also where lam eta is more than ``precondition``: the covariance is divided by as much as on the processor."""
    X, y, _ = rows(300)
    args = {
        "gamma": 0.5, "loss": "softmax", "lam": lam, "schedule": DoublySchedule(40, 24, passes=4),
        "step": DoublyStep(2.0, 20.0, True, 0.01), "random_state": 3,
    }  # fmt: skip
    want, got = (
        ks.DoublyStochasticClassifier(**args, engine=engine).fit(X, task("multiclass", y)) for engine in ("python", CPU)
    )
    np.testing.assert_allclose(got.decision_function(X), want.decision_function(X), rtol=1e-6, atol=1e-8)


def test_doubly_stochastic_file_without_torch(tmp_path, monkeypatch):
    """The file holds weights and a seed: a machine without torch makes the same features."""
    X, y, _ = rows(300)
    args = {"gamma": 0.5, "loss": "softmax", "schedule": DoublySchedule(40, 24), "random_state": 3}
    est = ks.DoublyStochasticClassifier(**args, engine=CPU).fit(X, task("multiclass", y))
    expected = est.decision_function(X)
    ks.save(est, tmp_path / "model.ks")
    monkeypatch.setattr("kernelstream.engine.device.has_torch", lambda: False)
    loaded = ks.load(tmp_path / "model.ks")
    np.testing.assert_allclose(loaded.decision_function(X), expected, rtol=1e-8, atol=1e-10)


def test_doubly_stochastic_defaults_and_tensors():
    X, y, _ = rows(400)
    want, got = (
        ks.DoublyStochasticRegressor(schedule=DoublySchedule(block_size=16), random_state=0, engine=engine)
        for engine in ("auto", CPU)
    )
    want.fit(X, y)
    got.fit(torch.from_numpy(X), torch.from_numpy(y))
    np.testing.assert_allclose(got.predict(torch.from_numpy(X)), want.predict(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("forgetting", [1.0, 0.99])
@pytest.mark.parametrize("lam", [0.1, [0.01, 1.0, 100.0]])
@pytest.mark.parametrize("forecaster", ["ridge", "awv"])
def test_ridge(forecaster, lam, forgetting):
    """Predictions before each row, weights and deviations, against the python engine's Sherman-Morrison recursion."""
    X, y, weight = rows(300)
    features = RandomFourier(gamma=0.5, n_components=12, random_state=1)
    args = {"lam": lam, "forecaster": forecaster, "forgetting": forgetting, "intercept": True}
    want, got = (ks.OnlineRidge(features, **args, engine=engine) for engine in ("python", CPU))
    expected = want.learn(X, y, sample_weight=weight)
    cut = [got.learn(X[a:b], y[a:b], sample_weight=weight[a:b]) for a, b in ((0, 1), (1, 7), (7, 200), (200, 300))]
    np.testing.assert_allclose(np.concatenate(cut), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(got.coef_, want.coef_, rtol=1e-5, atol=1e-7)
    for ours, theirs in zip(got.predict(X, return_std=True), want.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)
    for name in ("gram", "b", "yy", "zsum", "mass", "window_c", "window_b"):
        ours, theirs = (np.triu(est.state_[name]) if name == "gram" else est.state_[name] for est in (got, want))
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9, err_msg=name)


def test_ridge_on_one_thread():
    """Where the native engine makes features in its window, the device has a window of its own."""
    X, y, _ = rows(300)
    features = RandomFourier(gamma=0.5, n_components=12, random_state=1)
    want = ks.OnlineRidge(features, engine="python").learn(X, y)
    with settings.using(threads=1):
        np.testing.assert_allclose(ks.OnlineRidge(features, engine=CPU).learn(X, y), want, rtol=1e-6, atol=1e-8)


def test_ridge_classes_files_and_tensors(tmp_path, monkeypatch):
    X, y, _ = rows(300)
    labels = np.where(np.arange(300) < 50, task("binary", y), task("multiclass", y) + 5)
    features = RandomFourier(n_components=12, random_state=1)
    want, got = (ks.OnlineRidgeClassifier(features, engine=engine) for engine in ("python", CPU))
    np.testing.assert_allclose(got.learn(torch.from_numpy(X), labels), want.learn(X, labels), rtol=1e-6, atol=1e-8)
    ks.save(got, tmp_path / "model.ks")
    monkeypatch.setattr("kernelstream.engine.device.has_torch", lambda: False)
    np.testing.assert_allclose(
        ks.load(tmp_path / "model.ks").decision_function(X), want.decision_function(X), rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("forecaster", ["ridge", "awv"])
def test_ridge_predicts_without_factoring_again(forecaster, monkeypatch):
    """Weights and factors are worked out once, however many rows are predicted and in however many blocks."""
    X, y, _ = rows(300)
    features = RandomFourier(gamma=0.5, n_components=12, random_state=1)
    want, got = (ks.OnlineRidge(features, forecaster=forecaster, engine=engine) for engine in ("python", CPU))
    want.learn(X, y)
    got.learn(X, y)
    count, factor = [0], torch.linalg.cholesky_ex

    def counted(*args, **kwargs):
        count[0] += 1
        return factor(*args, **kwargs)

    monkeypatch.setattr(torch.linalg, "cholesky_ex", counted)
    monkeypatch.setattr("kernelstream.engine.torch.SCORED_FEATURES", 0)  # many blocks
    for _ in range(2):
        np.testing.assert_allclose(got.predict(X), want.predict(X), rtol=1e-6, atol=1e-8)
    assert count[0] <= 1
    got.learn(X[:1], y[:1])
    want.learn(X[:1], y[:1])
    np.testing.assert_allclose(got.predict(X), want.predict(X), rtol=1e-6, atol=1e-8)


def test_the_default_learner_streams_on_the_processor():
    """What streams has the same bits; what ``fit`` learns at once is solved by the device."""
    X, y, _ = rows(300)
    want, got = (ks.KernelRegressor(engine=engine, random_state=0) for engine in ("auto", CPU))
    assert np.array_equal(got.learn(X[:200], y[:200]), want.learn(X[:200], y[:200]))
    for est in (want, got):
        est.fit(X[:250], y[:250]).learn(X[250:], y[250:])
    error = np.mean(np.square(want.predict(X[250:]) - y[250:]))
    assert np.mean(np.square(got.predict(X[250:]) - want.predict(X[250:]))) < 0.1 * error
