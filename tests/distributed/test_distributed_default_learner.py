"""The default learner and Falkon's method over partitions: what one machine learns from the same rows."""

import numpy as np
import pytest
from sklearn.base import clone

pytest.importorskip("distributed")
import dask.array as da
from two_workers import DLABELS, DX, DY, LABELS, N, X, Y, close

import kernelstream as ks
from kernelstream import distributed

# -------------------------------------------------------------------- Falkon's method


@pytest.mark.usefixtures("clean")
def test_falkon_solves_the_normal_equations(client):
    model = distributed.fit(ks.FalkonRegressor(gamma=0.3, n_centers=60, lam=0.2, random_state=1), DX, DY, client=client)
    S = model.centers_
    rows = {row.tobytes() for row in X}
    assert len(S) == 60 and all(row.tobytes() in rows for row in S)

    def kernel(A):
        return np.exp(-0.3 * ((A[:, None] - S[None]) ** 2).sum(axis=2))

    K = kernel(X)
    alpha = np.linalg.solve(K.T @ K + 0.2 * kernel(S), K.T @ (Y - Y.mean()))
    np.testing.assert_allclose(model.predict(X), K @ alpha + Y.mean(), atol=1e-6)
    alone = ks.FalkonRegressor(gamma=0.3, n_centers=60, lam=0.2, tol=1e-10, random_state=1).fit(X, Y)
    assert np.array_equal(alone.centers_, S)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-6)
    assert model.state_["t"] == N


@pytest.mark.usefixtures("clean")
def test_falkon_makes_the_choices_of_one_machine(client):
    est = ks.FalkonClassifier(n_centers=40, tol=1e-9, random_state=2)
    model = distributed.fit(clone(est), DX, DLABELS, client=client)
    est.fit(X, LABELS)
    close(model.width_, est.width_)
    assert model.lam_ == est.lam_ and model.kernel_.get_params() == est.kernel_.get_params()
    np.testing.assert_allclose(model.decision_function(X), est.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), est.predict_proba(X), atol=1e-4)
    with pytest.raises(ValueError, match="on several 'squared'"):
        distributed.fit(ks.FalkonClassifier(loss="logistic"), DX, DLABELS, client=client)


# -------------------------------------------------------------------- the default learner


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    "est",
    [
        ks.KernelRegressor(size="small", random_state=3),
        ks.KernelClassifier(size="small", class_weight={6: 4.0}, random_state=3),
    ],
    ids=["numbers", "labels"],
)
def test_the_model_of_one_machine_whatever_the_partitions(client, est):
    n = 190  # too few for a search of the metric, which follows rounding: workers have fewer threads
    target, given = (LABELS, DLABELS) if isinstance(est, ks.KernelClassifier) else (Y, DY)
    model = distributed.fit(clone(est), DX[:n].rechunk((120, -1)), given[:n].rechunk(120), client=client)
    alone = clone(est).fit(X[:n], target[:n])
    assert model.state_.keys() == alone.state_.keys()
    np.testing.assert_allclose(model.learn(X, target), alone.learn(X, target), rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("clean")
def test_the_metric_of_one_machine_up_to_rounding(client):
    model, alone = ks.KernelRegressor(size="small", random_state=3), ks.KernelRegressor(size="small", random_state=3)
    model = distributed.fit(model, DX[:300].rechunk((120, -1)), DY[:300].rechunk(120), client=client)
    alone.fit(X[:300], Y[:300])
    assert "batch/rows" in model.state_
    assert abs(model.score(X, Y) - alone.score(X, Y)) < 0.01


@pytest.mark.usefixtures("clean")
def test_of_many_rows_a_sample_from_all_partitions_is_learned(client, monkeypatch):
    monkeypatch.setattr("kernelstream.distributed._fit.MOST_ROWS", 600)
    number = da.arange(N, chunks=DX.chunks[0]).astype(float)
    rows = da.concatenate([DX, number[:, None]], axis=1)
    with pytest.warns(UserWarning, match=rf"learns 600 of {N:,} rows"):
        model = distributed.fit(ks.KernelRegressor(size="small", random_state=4), rows, DY, client=client)
    low, high = model.state_["x_low"][-1], model.state_["x_high"][-1]
    assert model.state_["t"] == 600 and low < 0.02 * N and high > 0.98 * N
    assert model.score(rows.compute(), Y) > 0.6


@pytest.mark.usefixtures("clean")
def test_labels_other_than_the_classes_are_named(client):
    with pytest.raises(ValueError, match=r"not in classes: \[7\]"):
        distributed.fit(ks.KernelClassifier(size="small"), DX, DLABELS, client=client, classes=[5, 6])
