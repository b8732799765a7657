"""Online multiple kernel learning against a naive program, closed forms and the contract of all learners."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from kernelstream import (
    FeatureClassifier,
    FeatureRegressor,
    MultiKernelClassifier,
    MultiKernelRegressor,
    updates,
)
from kernelstream.estimators._hedge import STREAM
from kernelstream.features import RandomFourier
from kernelstream.random import uniforms

X2, y2 = make_moons(260, noise=0.2, random_state=0)
X4, y4 = make_blobs(260, n_features=3, centers=4, cluster_std=2.0, random_state=1)
yr = np.sin(2 * X2[:, 0]) + 0.1 * X2[:, 1] + 3.0
ENGINES = ["python", "native"]
WIDTHS = (0.01, 1.0, 100.0)


def fogd(gammas=WIDTHS, eta=0.5, loss="hinge"):
    return [FeatureClassifier(RandomFourier(gamma=g, n_components=25), loss, updates.OGD(eta)) for g in gammas]


def regressors(gammas=WIDTHS):
    return [FeatureRegressor(RandomFourier(gamma=g, n_components=25)) for g in gammas]


def naive(X, y, gammas, eta, discount, share, delta=None, seed=0):
    """Ten lines: algorithm 15 of the thesis in plain numpy, with the conventions of SPEC section 9; scores, weights."""
    maps = [RandomFourier(gamma=g, n_components=25, random_state=seed).fit(X) for g in gammas]
    Z = [m.transform(X) for m in maps]
    m, w, theta, scores = len(maps), [np.zeros(50) for _ in maps], np.full(len(maps), 1 / len(maps)), []
    u = uniforms(seed, 0, len(y) * m, STREAM).reshape(len(y), m)
    for t in range(len(y)):
        f = np.array([w[i] @ Z[i][t] for i in range(m)])
        scores.append(theta @ np.sign(f))
        p = np.ones(m) if delta is None else (1 - delta) * theta / theta.max() + delta
        for i in range(m):
            if y[t] * f[i] < 1 and u[t, i] < p[i]:
                w[i] = w[i] + eta * y[t] * Z[i][t]
        theta = theta * discount ** (y[t] * f <= 0)
        theta = (1 - share) * theta / theta.sum() + share / m
    return np.array(scores), theta


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("share", [0.0, 0.02])
@pytest.mark.parametrize("delta", [None, 0.001, 0.3])
def test_equals_the_naive_program(engine, share, delta):
    X, y = np.tile(X2, (3, 1)), np.tile(2 * y2 - 1, 3)
    how = {} if delta is None else {"updates": "stochastic", "smoothing": delta}
    est = MultiKernelClassifier(fogd(), share=share, discount=0.9, **how, engine=engine, random_state=0)
    scores = est.learn(X, y)
    expected, theta = naive(X, y, WIDTHS, 0.5, 0.9, share, delta)
    np.testing.assert_allclose(scores, expected, atol=1e-9)
    np.testing.assert_allclose(est.weights_, theta, rtol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_learners_are_those_that_learn_alone(engine):
    est = MultiKernelClassifier(fogd(), engine=engine, random_state=3).fit(X2, y2)
    for member, alone in zip(est.learners_, fogd(), strict=True):
        alone.set_params(engine=engine, random_state=3).fit(X2, y2)
        np.testing.assert_allclose(member.decision_function(X2), alone.decision_function(X2), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_multiclass_votes(engine):
    """Each learner votes for its best class; its mistakes are those of its own predictions."""
    est = MultiKernelClassifier(fogd(), discount=0.8, engine=engine, random_state=0)
    got = est.learn(X4, y4, classes=np.unique(y4))
    alone = [m.set_params(random_state=0, engine=engine).learn(X4, y4, classes=np.unique(y4)) for m in fogd()]
    theta = np.full(3, 1 / 3)
    for t in range(len(y4)):
        votes = np.zeros(4)
        for w, F in zip(theta, alone, strict=True):
            best = np.flatnonzero(F[t] == F[t].max())
            if len(best) == 1:
                votes[best[0]] += w
        np.testing.assert_allclose(got[t], votes, atol=1e-9)
        wrong = np.array([not np.all(F[t][y4[t]] > np.delete(F[t], y4[t])) for F in alone])
        theta = theta * 0.8**wrong
        theta /= theta.sum()
    np.testing.assert_allclose(est.weights_, theta, rtol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_regression_hedge(engine):
    est = MultiKernelRegressor(regressors(), discount=0.7, engine=engine, random_state=0)
    got = est.learn(X2, yr)
    F = np.array([m.set_params(random_state=0, engine=engine).learn(X2, yr) for m in regressors()])
    theta, low, high = np.full(3, 1 / 3), None, None
    for t, y in enumerate(yr):
        f = F[:, t] if t == 0 else np.clip(F[:, t], low, high)
        np.testing.assert_allclose(got[t], theta @ f, rtol=1e-9)
        low, high = (y, y) if t == 0 else (min(low, y), max(high, y))
        if high > low:
            theta = theta * 0.7 ** (((f - y) / (high - low)) ** 2)
            theta /= theta.sum()
    np.testing.assert_allclose(est.weights_, theta, rtol=1e-9)


def test_regret_of_the_average_is_bounded():
    """Squared loss within 2 R^2 log m of the best learner's, on any sequence: here one made to be hard."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((1500, 2))
    y = np.clip(rng.standard_cauchy(1500), -1, 1)
    y[:2] = -1, 1
    est = MultiKernelRegressor(regressors(), random_state=0)
    loss = np.sum((est.learn(X, y) - y) ** 2)
    best = min(np.sum((np.clip(m.set_params(random_state=0).learn(X, y), -1, 1) - y) ** 2) for m in regressors())
    assert loss <= best + 2 * 2**2 * np.log(3) + 2 * 4  # two rows pass before the range is known


@pytest.mark.parametrize("engine", ENGINES)
def test_uniform_and_scores(engine):
    alone = np.array([m.set_params(random_state=0, engine=engine).learn(X2, y2) for m in fogd()])
    uniform = MultiKernelClassifier(fogd(), "uniform", engine=engine, random_state=0)
    np.testing.assert_allclose(uniform.learn(X2, y2), np.sign(alone).mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(uniform.weights_, 1 / 3)
    added = MultiKernelClassifier(fogd(), "uniform", vote="score", engine=engine, random_state=0)
    np.testing.assert_allclose(added.learn(X2, y2), alone.mean(axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_silent_learner_has_no_vote_and_no_excuse(engine):
    # a perceptron takes f = 0 for +1: while all labels are +1 it never makes a mistake, and never says anything
    silent = FeatureClassifier(RandomFourier(gamma=1.0, n_components=25), update="perceptron")
    loud = FeatureClassifier(RandomFourier(gamma=1.0, n_components=25))
    X, y = np.ones((50, 2)), np.ones(50)
    est = MultiKernelClassifier([silent, loud], engine=engine, random_state=0)
    scores = est.learn(X, y, classes=[-1, 1])
    assert scores[0] == 0  # nobody has said anything
    theta = np.array([0.99**t for t in range(1, 50)])  # of the silent one; the other was wrong in the first row only
    np.testing.assert_allclose(scores[1:], 1 / (1 + theta / theta[0]), rtol=1e-9)
    np.testing.assert_allclose(est.weights_[0] / est.weights_[1], 0.99**49, rtol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_underflows(engine):
    """As after 10^7 mistakes: weights far below the smallest double, still in order and still able to come back."""
    est = MultiKernelClassifier(fogd(), engine=engine, random_state=0).fit(X2, y2)
    state = est.state_
    state["log_theta"] = np.array([-1e5, 0.0, -1.01e5])
    est.state_ = state
    assert est.weights_.tolist() == [0.0, 1.0, 0.0]
    est.learn(X2, y2)
    change = est.state_["log_theta"] - est.state_["log_theta"].max()
    assert np.isfinite(change).all() and change[2] < change[0] < -9e4
    state["log_theta"] = np.array([-1e5, -1e5, -1e5])  # a common factor means nothing
    est.state_ = state
    np.testing.assert_allclose(est.weights_, 1 / 3)


@pytest.mark.parametrize("engine", ENGINES)
def test_history_is_thinned(engine):
    X, y = np.tile(X2, (10, 1)), np.tile(y2, 10)
    est = MultiKernelClassifier(fogd(), engine=engine, random_state=0)
    seen = {}
    for t in range(1, len(y) + 1, 97):
        est.learn(X[t - 1 : t + 96], y[t - 1 : t + 96])
        seen[est.state_["t"]] = est.weights_
    rows, weights = est.weights_history_
    assert len(rows) == len(weights) <= 256 and len(rows) > 128
    assert len(set(np.diff(rows))) == 1 and rows[0] == np.diff(rows)[0]
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-6)
    for t, theta in seen.items():
        if t in rows:
            np.testing.assert_allclose(weights[rows == t][0], theta, rtol=1e-6)


# ------------------------------------------------------------------------------------------------ the contract

MIXED = [
    FeatureClassifier(RandomFourier(gamma=0.1, n_components=20)),
    FeatureClassifier(RandomFourier(gamma="median", n_components=20)),
    FeatureClassifier(RandomFourier(gamma=1.0, n_components=20), "softmax"),
    NystroemClassifier(gamma=1.0, budget=15, rank=6),
    RRFClassifier(n_components=20),
    OnlineRidgeClassifier(RandomFourier(n_components=10, gamma=1.0)),
    BudgetClassifier(gamma=1.0, budget=20, strategy="remove_random", update="perceptron"),
]
MIXED_REGRESSORS = [
    *regressors((0.1, "median")),
    RRFRegressor(n_components=20),
    OnlineRidge(RandomFourier(n_components=10, gamma=1.0), forecaster="awv"),
    BudgetRegressor(gamma=1.0, budget=20),
]


def few(**params):
    return [BudgetClassifier(gamma=g, **params) for g in WIDTHS]


@pytest.mark.parametrize("how", [{}, {"updates": "stochastic"}, {"updates": "stochastic", "share": 0.01}, {"vote": "score"}])
def test_contract_of_fourier_features(how):
    check_streaming(MultiKernelClassifier(fogd(), **how, random_state=0), X2, y2)


@pytest.mark.parametrize("updates", ["deterministic", "stochastic"])
def test_contract_of_all_sorts(updates):
    check_streaming(MultiKernelClassifier(MIXED, updates=updates, random_state=0), X2, y2, rtol=1e-6)
    check_streaming(MultiKernelRegressor(MIXED_REGRESSORS, updates=updates, random_state=0), X2, yr, rtol=1e-6)


def test_contract_with_many_classes():
    check_streaming(MultiKernelClassifier(MIXED[:4], random_state=0), X4, y4)
    order = np.argsort(y4, kind="stable")[::-1]  # the highest label first: lone class, then two, three, four
    check_streaming(MultiKernelClassifier(MIXED[:3], random_state=0), X4[order], y4[order])
    check_streaming(
        MultiKernelClassifier(few(budget=10, strategy="remove_random", update="perceptron"), random_state=0), X4, y4
    )


def test_contract_with_sparse_rows_weights_and_scaling():
    X = sp.csr_array(np.where(np.abs(X4) > 3, X4, 0.0))
    check_streaming(MultiKernelClassifier(fogd(), class_weight="balanced", random_state=0), X, y4)
    check_streaming(MultiKernelClassifier(few(budget=10, strategy="remove_random"), random_state=0), X, y4)
    scaled = X2 * [1.0, 100.0] + [0.0, 1000.0]
    check_streaming(MultiKernelClassifier(fogd(), standardize=True, random_state=0), scaled, y2)


@pytest.mark.parametrize("strategy", ["remove_random", "bogd", "forgetron", "replace", "remove_smallest"])
def test_contract_of_budgets(strategy):
    learners = few(budget=8, strategy=strategy, update=updates.Perceptron(ties=strategy == "forgetron"))
    check_streaming(MultiKernelClassifier(learners, random_state=0), X2, y2)
    check_streaming(MultiKernelClassifier(learners, updates="stochastic", capacity="shared", random_state=0), X2, y2)


@pytest.mark.parametrize("strategy", ["spa", "stop"])
def test_contract_of_support_sets_that_grow(strategy):
    learners = few(budget=None, strategy=strategy, update=updates.OGD(0.5))
    check_streaming(MultiKernelClassifier(learners, updates="stochastic", random_state=0), X2, y2, bounded=False)


def test_contract_of_moving_capacity(monkeypatch):
    monkeypatch.setattr("kernelstream.estimators._multi.PERIOD", 40)
    for learners in (fogd(), few(budget=8, strategy="remove_random"), few(budget=8, strategy="forgetron", update="perceptron")):
        check_streaming(
            MultiKernelClassifier(learners, capacity="weights", discount=0.8, share=0.05, random_state=0), X2, y2, bounded=False
        )


@parametrize_with_checks(
    [
        MultiKernelClassifier(fogd((0.1, 1.0))),
        MultiKernelClassifier([BudgetClassifier(gamma=g, budget=50) for g in (0.1, 1.0)], updates="stochastic"),
        MultiKernelRegressor([FeatureRegressor(RandomFourier(gamma=g)) for g in (0.01, "median")]),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_bad_parameters():
    X, y = X2[:10], y2[:10]
    bad = [
        ({"learners": []}, "learners must be a list"),
        ({"learners": ["fogd"]}, "estimators of this library"),
        ({"learners": [FeatureRegressor()]}, "different things"),
        ({"learners": [FeatureClassifier(standardize=True)]}, "standardize"),
        ({"learners": [FeatureClassifier(class_weight="balanced")]}, "class_weight"),
        ({"learners": [MultiKernelClassifier()]}, "among the learners"),
        ({"learners": [FeatureClassifier(update="nothing")]}, "unknown update"),
        ({"combination": "vote"}, "combination"),
        ({"updates": "all"}, "updates"),
        ({"capacity": "large"}, "capacity"),
        ({"vote": "both"}, "vote"),
        ({"discount": 0.0}, "discount"),
        ({"discount": 1.5}, "discount"),
        ({"smoothing": -0.1}, "smoothing"),
        ({"share": 1.0}, "share"),
        ({"combination": "uniform", "updates": "stochastic"}, "no weights"),
        ({"combination": "uniform", "share": 0.1}, "no weights"),
        ({"capacity": "shared"}, "stochastic"),
        ({"capacity": "weights", "learners": [NystroemClassifier(), FeatureClassifier()]}, "change their size"),
    ]
    for params, message in bad:
        with pytest.raises(ValueError, match=message):
            MultiKernelClassifier(**params).fit(X, y)


# ---------------------------------------------------------------------------------------------------- capacity


@pytest.mark.parametrize("engine", ENGINES)
def test_the_shared_budget_goes_to_those_who_update(engine):
    """Algorithm 18, naively: random removal within a learner once the learners together hold B vectors."""
    X, y, B = np.tile(X2, (2, 1)), np.tile(2 * y2 - 1, 2), 24
    learners = few(budget=B // 3, strategy="remove_random", update="perceptron")
    est = MultiKernelClassifier(learners, updates="stochastic", capacity="shared", engine=engine, random_state=0)
    got = est.learn(X, y)
    seeds = [state["seed"] for state in est._states]
    support, alpha, theta = [[] for _ in WIDTHS], [[] for _ in WIDTHS], np.full(3, 1 / 3)
    u = uniforms(0, 0, len(y) * 3, STREAM).reshape(len(y), 3)
    rows = [0, 0, 0]  # that each learner has learned
    for t in range(len(y)):
        f = np.array([
            sum(a * np.exp(-g * np.sum((s - X[t]) ** 2)) for a, s in zip(alpha[i], support[i], strict=True))
            for i, g in enumerate(WIDTHS)
        ])  # fmt: skip
        assert abs(got[t] - theta @ np.sign(f)) < 1e-9
        p = (1 - 0.001) * theta / theta.max() + 0.001
        for i in range(3):
            full = sum(map(len, support)) == B
            if u[t, i] >= p[i] or (full and not support[i]):
                continue
            lot = uniforms(seeds[i], rows[i], 1, BUDGET_STREAM)[0]
            rows[i] += 1
            if (f[i] >= 0) != (y[t] > 0):
                if full:
                    slot = int(lot * len(support[i]))
                    support[i][slot], alpha[i][slot] = X[t], y[t]
                else:
                    support[i].append(X[t])
                    alpha[i].append(y[t])
        theta = theta * 0.99 ** (y[t] * f <= 0)
        theta /= theta.sum()
    sizes = [member.n_support_ for member in est.learners_]
    assert sizes == list(map(len, support)) and sum(sizes) == B and len(set(sizes)) > 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_learner_that_grows_is_the_same_function(engine):
    for learner in (
        FeatureClassifier(RandomFourier(gamma=1.0, n_components=20), random_state=0),
        FeatureClassifier(RandomFourier(gamma=1.0, n_components=20), update=updates.Averaged("ogd"), random_state=0),
        BudgetClassifier(gamma=1.0, budget=9, strategy="forgetron", update="perceptron", random_state=0),
    ):
        learner.set_params(engine=engine).fit(X2, y2)
        before = learner.decision_function(X2)
        _capacity.resize(learner, 33)
        np.testing.assert_allclose(learner.decision_function(X2), before, rtol=1e-9, atol=1e-12)
        learner.partial_fit(X2, y2)
        _capacity.resize(learner, 5)
        assert learner.partial_fit(X2, y2).score(X2, y2) > 0.6


def test_the_forgetron_stays_in_order_when_it_changes_its_size():
    """Resized or not, the oldest vector goes first."""
    learner = BudgetClassifier(gamma=50.0, budget=6, strategy="forgetron", update="perceptron", engine="python")
    X = np.arange(30.0)[:, None]  # far apart: every row with y = -1 is a mistake, and joins
    learner.fit(X[:10], -np.ones(10), None) if False else learner.learn(X[:10], -np.ones(10), classes=[-1, 1])
    assert sorted(learner.support_vectors_[:, 0]) == [4, 5, 6, 7, 8, 9]
    _capacity.resize(learner, 8)
    learner.learn(X[10:13], -np.ones(3))
    assert sorted(learner.support_vectors_[:, 0]) == [5, 6, 7, 8, 9, 10, 11, 12]
    _capacity.resize(learner, 3)
    assert sorted(learner.support_vectors_[:, 0]) == [10, 11, 12]
    learner.learn(X[13:14], -np.ones(1))
    assert sorted(learner.support_vectors_[:, 0]) == [11, 12, 13]


def test_capacity_follows_the_weights():
    """The width that matters gets most of the features, and the total stays what it was."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 2))
    y = np.where(np.sin(14 * X[:, 0]) * np.sin(14 * X[:, 1]) > 0, 1, -1)
    learners = [FeatureClassifier(RandomFourier(gamma=g, n_components=60)) for g in (0.01, 1.0, 100.0)]
    mistakes = {}
    for capacity in ("fixed", "weights"):
        est = MultiKernelClassifier(learners, capacity=capacity, random_state=0)
        scores = est.learn(X, y)
        mistakes[capacity] = np.mean((scores[3000:] >= 0) != (y[3000:] > 0))
    sizes = est.state_["capacity"]
    assert sizes.argmax() == 2 and sizes[2] > 120 and sizes.sum() <= 180
    assert [member.features.n_components for member in est.learners_] == sizes.tolist()
    assert mistakes["weights"] < 0.8 * mistakes["fixed"]


# ------------------------------------------------------------------------------------------- shared work, files


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shared_distances_give_the_same_learners(dtype):
    X = (X4 * 3 + 50).astype(dtype)  # far from the origin, where differences of norms lose digits
    X[100:130] = X[:30]
    gammas = [10.0**k for k in range(-4, 4)]
    for params in ({"budget": 10, "strategy": "remove_random"}, {"budget": None, "strategy": "stop"}):
        learners = [BudgetClassifier(gamma=g, random_state=1, **params) for g in gammas]
        est = MultiKernelClassifier(learners, engine="native", random_state=0)
        est.learn(X, y4)
        for member, alone in zip(est.learners_, learners, strict=True):
            alone.set_params(engine="native").learn(X, y4)
            tolerance = 1e-9 if dtype == np.float64 else 2e-3
            np.testing.assert_allclose(member.dual_coef_, alone.dual_coef_, rtol=tolerance, atol=tolerance)
            np.testing.assert_array_equal(member.support_vectors_, alone.support_vectors_)


def test_models_in_files(tmp_path):
    for how in ({"learners": MIXED}, {"learners": fogd(), "capacity": "weights"}):
        est = MultiKernelClassifier(**how, random_state=0)
        est.learn(X2[:150], y2[:150])
        kernelstream.save(est, tmp_path / "model.ks")
        again = kernelstream.load(tmp_path / "model.ks")
        np.testing.assert_array_equal(again.learn(X2[150:], y2[150:]), est.learn(X2[150:], y2[150:]))


def test_zoo():
    names = [name for name in zoo.names() if name.startswith("omkl_")]
    assert len(names) == 16
    for name in names:
        for task, y in (("binary", y2), ("multiclass", y4), ("regression", yr)):
            X = X4 if task == "multiclass" else X2
            est = zoo.make(name, task=task, kernels=[kernels.Gaussian(0.5), kernels.Gaussian(5.0)], random_state=0)
            scores = est.learn(X[:120], y[:120])
            assert np.isfinite(scores[60:]).all(), name


def test_plot_of_weights():
    est = MultiKernelClassifier(fogd(), random_state=0).fit(X2, y2)
    figure = plots.kernel_weights(est)
    assert len(figure.axes[0].collections) == 3
