"""Falkon's method over partitions: what one machine learns from the same rows."""

import numpy as np
import pytest
from sklearn.base import clone

pytest.importorskip("distributed")
from two_workers import DLABELS, DX, DY, LABELS, N, X, Y, close

import kernelstream as ks
from kernelstream import distributed


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
