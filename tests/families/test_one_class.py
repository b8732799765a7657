"""BudgetOneClass: NORMA's novelty detection against the recursion as it is written down, and its contracts."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import roc_auc_score

from kernelstream import BudgetOneClass, zoo

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(size=(150, 3)), rng.normal(3.0, 0.5, size=(150, 3))])
ENGINES = ["python", "native"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("budget", [None, 15])
def test_recursion(engine, budget):
    gamma, nu, eta, lam = 0.4, 0.2, 0.3, 0.05
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    S, a, rho, expected = [], np.zeros(0), 0.0, []
    for t in range(len(X)):
        f = float(K[t, S] @ a)
        expected.append(f - rho)
        a = (1 - eta * lam) * a
        if f < rho:
            rho -= (1 - nu) * eta
            if budget is None or len(S) < budget:
                S, a = [*S, t], np.append(a, eta)
            else:
                r = int(np.argmin(a))
                S[r], a[r] = t, eta
        else:
            rho += nu * eta
    est = BudgetOneClass("gaussian", gamma, budget, nu=nu, eta=eta, lam=lam, engine=engine)
    np.testing.assert_allclose(est.learn(X), expected, atol=1e-12)
    assert est.offset_ == pytest.approx(rho, abs=1e-12)
    np.testing.assert_allclose(est.decision_function(X), K[:, S] @ a - rho, atol=1e-12)
    np.testing.assert_allclose(est.score_samples(X) - est.offset_, est.decision_function(X))
    assert np.array_equal(est.predict(X) < 0, est.decision_function(X) < 0)


@pytest.mark.parametrize("nu", [0.05, 0.2, 0.5])
def test_share_of_novelties(nu):
    """rho is a walk with steps (nu - [novel]) eta that cannot run away, so its total divided by eta n tends to 0."""
    rows = np.random.default_rng(1).normal(size=(5000, 2))
    est = BudgetOneClass(gamma=0.5, nu=nu, budget=None if nu < 0.5 else 300)
    share = (est.learn(rows) < 0).mean()
    assert share == pytest.approx(nu - est.offset_ / (est.eta * len(rows)), abs=1e-9)
    assert share == pytest.approx(nu, abs=0.02)


def test_finds_outliers():
    rows = np.random.default_rng(2).normal(size=(3000, 4))
    far = np.random.default_rng(3).uniform(-6, 6, size=(300, 4))
    est = BudgetOneClass().fit(rows)
    scores = np.concatenate([est.score_samples(rows), est.score_samples(far)])
    assert roc_auc_score(np.repeat([1, 0], [3000, 300]), scores) > 0.95


def test_forgets_and_learns_again():
    """After a change of scene the old rows become novel, the new ones ordinary."""
    here = np.random.default_rng(4).normal(0, 0.5, size=(3000, 2))
    est = BudgetOneClass(gamma=0.5, eta=0.1, lam=0.05).partial_fit(here)
    assert est.score_samples(here).mean() > est.score_samples(here + 5).mean()
    est.partial_fit(here + 5)
    assert est.score_samples(here).mean() < est.score_samples(here + 5).mean()
    assert (est.predict(here) < 0).mean() > 0.9
    assert est.n_support_ <= 200


@pytest.mark.parametrize(
    "strategy", ["remove_random", "bogd", "forgetron", "replace", "project", "projectron", "merge", "transfer", "stop"]
)
def test_strategies(strategy):
    est = BudgetOneClass(gamma=0.3, budget=15, strategy=strategy, eta=0.2, random_state=0)
    python, native = (est.set_params(engine=engine).fit(X).score_samples(X) for engine in ENGINES)
    np.testing.assert_allclose(python, native, rtol=1e-6, atol=1e-8)
    assert est.n_support_ == 15


def test_zoo():
    est = zoo.make("norma_novelty", nu=0.2)
    assert isinstance(est, BudgetOneClass) and est.nu == 0.2
    assert est.fit_predict(X).shape == (300,)
    with pytest.raises(ValueError, match="serves novelty, not regression"):
        zoo.make("norma_novelty", task="regression")


def test_one_row_at_a_time_by_the_short_way():
    X = np.random.default_rng(0).normal(size=(150, 2))
    one, all_ = BudgetOneClass(random_state=0), BudgetOneClass(random_state=0)
    for row in X:
        one.learn_row(row[None], None)
    all_.partial_fit(X)
    np.testing.assert_array_equal(one.decision_function(X), all_.decision_function(X))
