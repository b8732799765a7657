"""The default learner and Falkon's method over partitions: what one machine learns from the same rows."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

pytest.importorskip("distributed")
import dask.array as da
from two_workers import DLABELS, DX, DY, LABELS, N, X, Y, close, killing, slowly

import kernelstream
from kernelstream import (
    FalkonClassifier,
    FalkonRegressor,
    KernelClassifier,
    KernelRegressor,
    OnlineRidge,
    OnlineRidgeClassifier,
    distributed,
)
from kernelstream.distributed import default_learner
from kernelstream.estimators.second_order.base import targets
from kernelstream.estimators.stack import batch
from kernelstream.estimators.stack.fit import _held_out, prepared

# -------------------------------------------------------------------- Falkon's method


@pytest.mark.usefixtures("clean")
def test_falkon_solves_the_normal_equations(client):
    model = distributed.fit(FalkonRegressor(gamma=0.3, n_centers=60, lam=0.2, random_state=1), DX, DY, client=client)
    S = model.centers_
    rows = {row.tobytes() for row in X}
    assert len(S) == 60 and all(row.tobytes() in rows for row in S)

    def kernel(A):
        return np.exp(-0.3 * ((A[:, None] - S[None]) ** 2).sum(axis=2))

    K = kernel(X)
    alpha = np.linalg.solve(K.T @ K + 0.2 * kernel(S), K.T @ (Y - Y.mean()))
    np.testing.assert_allclose(model.predict(X), K @ alpha + Y.mean(), atol=1e-6)
    alone = FalkonRegressor(gamma=0.3, n_centers=60, lam=0.2, tol=1e-10, random_state=1).fit(X, Y)
    assert np.array_equal(alone.centers_, S)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-6)
    assert model.state_["t"] == N


@pytest.mark.usefixtures("clean")
def test_falkon_makes_the_choices_of_one_machine(client):
    est = FalkonClassifier(n_centers=40, tol=1e-9, random_state=2)
    model = distributed.fit(clone(est), DX, DLABELS, client=client)
    est.fit(X, LABELS)
    close(model.width_, est.width_)
    assert model.lam_ == est.lam_ and model.kernel_.get_params() == est.kernel_.get_params()
    np.testing.assert_allclose(model.decision_function(X), est.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), est.predict_proba(X), atol=1e-4)
    with pytest.raises(ValueError, match="on several 'squared'"):
        distributed.fit(FalkonClassifier(loss="logistic"), DX, DLABELS, client=client)


# -------------------------------------------------------------------- the default learner


@pytest.mark.usefixtures("clean", "short_searches")
@pytest.mark.parametrize("numbers", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_model_of_one_machine_whatever_the_partitions(client, numbers):
    est = KernelRegressor(random_state=3) if numbers else KernelClassifier(random_state=3)
    n = 900
    target, given = (Y[:n], DY[:n]) if numbers else (LABELS[:n], DLABELS[:n])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # nothing is left out
        model = distributed.fit(clone(est), DX[:n].rechunk((250, -1)), given, client=client)
        parts = da.from_array(X[:n], chunks=(400, -1)), da.from_array(target, chunks=400)
        again = distributed.fit(clone(est), *parts, client=client)
    alone = clone(est).fit(X[:n], target)
    assert model.state_.keys() == alone.state_.keys() == again.state_.keys()
    assert batch.present(model._state)
    ask = (lambda m: m.predict(X)) if numbers else (lambda m: m.predict_proba(X))
    unit = np.std(Y) if numbers else 1.0
    np.testing.assert_allclose(ask(model), ask(again), atol=0.01 * unit)  # the solvers' tolerances
    np.testing.assert_allclose(model.weights_, again.weights_, atol=1e-6)
    # on one machine, least squares meets the first rows by the scales of their time
    assert np.abs(ask(model) - ask(alone)).mean() < 0.01 * unit
    for i, (one, two) in enumerate(zip(model.learners_, alone.learners_, strict=True)):
        if not isinstance(one, (OnlineRidge, OnlineRidgeClassifier)):
            assert np.array_equal(one._learner.score(one._state, X), two._learner.score(two._state, X))
            continue
        found = one._learner.score(one._state, X)
        np.testing.assert_allclose(found, normal_equations(model, i, target), rtol=1e-6, atol=1e-6)


def normal_equations(model, i, target):
    """Scores of least squares on the features of member i: all rows, so many times, but those held out once."""
    member, state = model.learners_[i], model._state
    n = len(target)
    held = _held_out(state["seed"], np.arange(n), target)
    seen, y, weight = prepared(model, state, X[:n], target, None, np.arange(n))
    c = np.ones(n) if weight is None else weight.copy()
    passes = (member._state["t"] - len(held)) / (n - len(held))
    assert passes == int(passes) >= 1
    c[np.setdiff1d(np.arange(n), held)] *= passes
    Z = np.concatenate([part for _, part in member._learner.feature_rows(member._state, seen)])
    T = targets(member._state, y)
    w = np.linalg.solve(Z.T @ (c[:, None] * Z) + member.lam * np.eye(Z.shape[1]), Z.T @ (c[:, None] * T))
    return np.concatenate([part for _, part in member._learner.feature_rows(member._state, X)]) @ w


@pytest.mark.usefixtures("clean", "short_searches")
def test_more_rows_than_one_machine_takes(client, monkeypatch, tmp_path):
    monkeypatch.setattr(default_learner, "SAMPLE_ROWS", 600)
    with pytest.warns(UserWarning, match=rf"cells, .*: these members .* 600 of {N:,} rows"):
        model = distributed.fit(KernelClassifier(random_state=4), DX, DLABELS, client=client)
    rows = {line["name"]: line["rows"] for line in model.members_}
    held = 60
    # as often as it paid, and those held out once
    for name, n in {"cells": 600, "linear": N, "learned widths": 600}.items():
        assert rows[name] >= n and (rows[name] - held) % (n - held) == 0
    assert model.state_["batch/rows"] == N - held and model.state_["batch/since"] == 600 - held
    assert model.classes_.tolist() == [5, 6, 7]
    assert model.score(X, LABELS) > 0.8
    assert model.explain(X[:3]).contributions.shape == (3, X.shape[1])
    kernelstream.save(model, tmp_path / "model.ks")
    other = kernelstream.load(tmp_path / "model.ks")
    p = model.predict_proba(X[:100])
    assert np.array_equal(other.predict_proba(X[:100]), p)
    model.learn(X[:50], LABELS[:50])
    later = model.learn(X[50:100], LABELS[50:100])
    np.testing.assert_allclose(other.learn(X[:100], LABELS[:100])[50:], later, rtol=1e-9, atol=1e-9)
    assert np.abs(model.predict_proba(X[:100]) - p).max() > 0
    share = (N - held) / (N - held + 100)  # 100 rows more
    S = model._learner.members_score(model._state, model._ops.squashed(scaled(model, X[:5])), False)
    F = batch.blended(model, model._state, model._ops.squashed(scaled(model, X[:5])), S, model._state["t"])
    young = dict(model._state, t=600 - held)
    whole = batch.blended(model, young, model._ops.squashed(scaled(model, X[:5])), S, 600 - held)
    expected = share * whole + (1 - share) * S
    np.testing.assert_allclose(F - F[:, :1], expected - expected[:, :1], atol=1e-9)


def scaled(model, rows):
    from kernelstream.estimators._contract.state import scaled_rows

    return np.ascontiguousarray(scaled_rows(rows, model._state))


@pytest.mark.slow
@pytest.mark.usefixtures("clean", "short_searches")
def test_a_killed_worker_changes_nothing(client, files, tmp_path):
    est = KernelRegressor(size="small", random_state=5)
    killer = killing(tmp_path)
    given = {"target": "y", "client": client, "block": 200}
    model = distributed.fit(clone(est), str(files / "part-*.csv"), labels=slowly(tmp_path, 0.02), **given)
    killer.join()
    assert (tmp_path / "killed").exists()
    client.wait_for_workers(2, timeout=30)
    calm = distributed.fit(clone(est), str(files / "part-*.csv"), **given)
    np.testing.assert_allclose(model.predict(X), calm.predict(X), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("clean")
def test_what_it_cannot_do_it_says(client):
    with pytest.raises(ValueError, match="balanced"):
        distributed.fit(KernelClassifier(class_weight="balanced"), DX, DLABELS, client=client)
    few = distributed.fit(KernelRegressor(random_state=0), DX[:40], DY[:40], client=client)
    alone = KernelRegressor(random_state=0).fit(X[:40], Y[:40])
    assert np.array_equal(few.predict(X), alone.predict(X))


@pytest.mark.usefixtures("clean", "short_searches")
def test_weights_of_classes(client):
    weights = {5: 1.0, 6: 4.0, 7: 0.5}
    est = KernelClassifier(size="small", class_weight=weights, random_state=6)
    model = distributed.fit(clone(est), DX, DLABELS, client=client)
    linear = next(m for m in model.learners_ if isinstance(m, OnlineRidgeClassifier))
    truth = normal_equations(model, model.learners_.index(linear), LABELS)
    np.testing.assert_allclose(linear._learner.score(linear._state, X), truth, rtol=1e-6, atol=1e-6)
    assert np.abs(model.predict_proba(X) - est.fit(X, LABELS).predict_proba(X)).mean() < 0.01


@pytest.mark.slow
@pytest.mark.usefixtures("clean", "short_searches")
def test_with_its_own_batch_learners(client):
    rng = np.random.default_rng(7)
    A = rng.normal(size=(6000, 5))
    b = np.sin(2 * A[:, 0]) * A[:, 1] + 0.1 * rng.normal(size=6000)
    parts = [da.from_array(values[:5000], chunks=(700, *values.shape[1:])) for values in (A, b)]
    model = distributed.fit(KernelRegressor(random_state=0), *parts, client=client)
    alone = KernelRegressor(random_state=0).fit(A[:5000], b[:5000])
    ours, theirs = (np.mean((m.predict(A[5000:]) - b[5000:]) ** 2) for m in (model, alone))
    assert batch.present(model._state) and abs(ours / theirs - 1) < 0.05
