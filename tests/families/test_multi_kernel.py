"""Online multiple kernel learning against a naive program, closed forms and the contract of all learners."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from kernelstream import (
    BudgetClassifier,
    FeatureClassifier,
    FeatureRegressor,
    MultiKernelClassifier,
    MultiKernelRegressor,
    budgets,
    settings,
    updates,
    zoo,
)
from kernelstream import engine as engines
from kernelstream.engine.python import Hedge
from kernelstream.estimators import HedgeWeights, StochasticUpdates
from kernelstream.features import RandomFourier
from kernelstream.kernels import Gaussian, Polynomial
from kernelstream.random import SeedStream, uniforms
from kernelstream.testing.streaming import assert_same_state

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
    """Ten lines: algorithm 15 of the thesis in plain numpy, ties and discounts as documented there; scores, weights."""
    maps = [RandomFourier(gamma=g, n_components=25, random_state=seed).fit(X) for g in gammas]
    Z = [m.transform(X) for m in maps]
    m, w, theta, scores = len(maps), [np.zeros(50) for _ in maps], np.full(len(maps), 1 / len(maps)), []
    u = uniforms(seed, 0, len(y) * m, SeedStream.MEMBER_CHOICE).reshape(len(y), m)
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
@pytest.mark.parametrize("share, delta", [(0.0, None), (0.02, None), (0.02, 0.001), (0.0, 0.3)])
def test_equals_the_naive_program(engine, share, delta):
    X, y = X2, 2 * y2 - 1
    how = {} if delta is None else {"updates": StochasticUpdates(smoothing=delta)}
    est = MultiKernelClassifier(
        fogd(), combination=HedgeWeights(share=share, discount=0.9), **how, engine=engine, random_state=0
    )
    scores = est.learn(X, y)
    expected, theta = naive(X, y, WIDTHS, 0.5, 0.9, share, delta)
    np.testing.assert_allclose(scores, expected, atol=1e-9)
    np.testing.assert_allclose(est.weights_, theta, rtol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_multiclass_votes(engine):
    """Each learner votes for its best class; its mistakes are those of its own predictions."""
    est = MultiKernelClassifier(fogd(), combination=HedgeWeights(discount=0.8), engine=engine, random_state=0)
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
    est = MultiKernelRegressor(regressors(), combination=HedgeWeights(discount=0.7), engine=engine, random_state=0)
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
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_whose_sign_is_rounding_say_nothing(engine, classes):
    """Kernel values below the smallest normal number: what is left of them depends on the order of the products."""
    ops, hedge = engines.get(engine), Hedge(0.1, 0.0, True, False)
    tiny, y = np.array([1e-320, -1e-310, 0.0, 1e-299]), np.ones(4)
    F = np.zeros((2, 4, classes if classes > 2 else 1))
    F[0, :, -1 if classes == 2 else 1] = tiny
    F[1, :, -1 if classes == 2 else 2] = -1.0 if classes == 2 else 1.0
    state = {"t": 0} | ops.start_hedge(2, hedge)
    scores = ops.hedge_pass(F, y, None, state, hedge)
    against = scores[:, 0] if classes == 2 else -scores[:, 2]
    np.testing.assert_allclose(against[:3], -0.5)  # of equal weights, since both are wrong
    np.testing.assert_allclose(scores[3], [0.0] if classes == 2 else [0.0, 0.5, 0.5], atol=1e-12)
    np.testing.assert_allclose(np.diff(state["log_theta"]), -0.1)


def test_engines_agree_where_kernel_values_are_subnormal():
    """A coefficient times a kernel value can be 0 before the common factor of all coefficients is applied."""
    X, y = make_moons(240, noise=0.2, random_state=3)
    kernels = [Gaussian(0.5 / s**2) for s in 2.0 ** np.arange(-6, 7, 2)]
    found = []
    for engine in ENGINES:
        est = zoo.make("omkl_bogd_dd", kernels=[*kernels, Polynomial(2, c=0.0, gamma=1.0)], budget=40, random_state=3)
        found.append(est.set_params(engine=engine).fit(X, y))
    scores = [est.decision_function(X) for est in found]
    np.testing.assert_allclose(*scores, atol=1e-9)
    narrow = [est.learners_[0].decision_function(X) for est in found]
    assert any(((np.abs(f) < 1e-307) & (f != 0)).any() for f in narrow)  # which this is about


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
def test_ten_million_rows_in_closed_form(engine):
    """Learners that are right always, every second time and never; then the first and the last change places."""
    ops, hedge = engines.get(engine), Hedge(-np.log(0.99), 0.0, True, False)
    rows, repeats, weight = (10_000, 100, 10.0) if engine == "native" else (100, 100, 1000.0)  # weights add up alike
    F = np.array([np.ones(rows), np.where(np.arange(rows) % 2, -1.0, 1.0), -np.ones(rows)])[:, :, None]
    y, weights = np.ones(rows), np.full(rows, weight)
    state = {"t": 0} | ops.start_hedge(3, hedge)
    for _ in range(repeats):
        ops.hedge_pass(F, y, weights, state, hedge)
    np.testing.assert_allclose(state["log_theta"], np.log(0.99) * np.array([0, 5e6, 1e7]), rtol=1e-9, atol=0)
    assert ops.theta(state["log_theta"]).tolist() == [1.0, 0.0, 0.0]
    for _ in range(repeats):
        ops.hedge_pass(F[::-1].copy(), y, weights, state, hedge)
    # every learner has now made ten million mistakes, give or take nothing
    np.testing.assert_allclose(state["log_theta"], 0.0, atol=1e-4)
    np.testing.assert_allclose(ops.theta(state["log_theta"]), 1 / 3, rtol=1e-4)
    assert state["t"] == 2 * rows * repeats and np.isfinite(state["history"]).all()


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


@pytest.mark.parametrize("engine", ENGINES)
def test_fixed_share_recovers_where_plain_hedge_does_not(engine):
    """Thirteen forecasters, of which the 3rd is best at first and the 9th after half of the rows."""
    n, rng = 6000, np.random.default_rng(0)
    rates = np.full((13, 2), 0.4)
    rates[3], rates[9] = (0.05, 0.4), (0.4, 0.05)
    wrong = rng.random((13, 2 * n)) < np.repeat(rates, n, axis=1)
    y = rng.choice([-1.0, 1.0], 2 * n)
    F = np.where(wrong, -y, y)[:, :, None]
    ops, late = engines.get(engine), {}
    for share in (1 / n, 0.0):
        hedge = Hedge(-np.log(0.9), share, True, False)
        state = {"t": 0} | ops.start_hedge(13, hedge)
        ops.hedge_pass(np.ascontiguousarray(F[:, :n]), y[:n], None, state, hedge)
        assert ops.theta(state["log_theta"]).argmax() == 3
        late[share] = n
        for start in range(n, 2 * n, 50):
            rows = slice(start, start + 50)
            ops.hedge_pass(np.ascontiguousarray(F[:, rows]), y[rows], None, state, hedge)
            if ops.theta(state["log_theta"])[9] > 0.5:
                late[share] = rows.stop - n
                break
    assert late[1 / n] <= 0.05 * n
    assert late[0.0] > 0.5 * n


def test_picture_of_the_weights(tmp_path):
    pytest.importorskip("matplotlib")
    from kernelstream import plots

    est = MultiKernelClassifier(fogd(), random_state=0).fit(X2, y2)
    made = plots.kernel_weights(est, tmp_path / "weights.png", least=0.4)
    assert (tmp_path / "weights.png").stat().st_size > 0
    labels = [text.get_text() for text in made.axes[0].get_legend().get_texts()]
    assert labels[0].startswith("the other") and any("gaussian" in label for label in labels)
    for wrong in (FeatureClassifier().fit(X2, y2), MultiKernelClassifier(fogd())):
        with pytest.raises(ValueError, match="weights_history_"):
            plots.kernel_weights(wrong)
    with pytest.raises(ValueError, match="least"):
        plots.kernel_weights(est, least=1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_angles_that_were_doubled(dtype):
    """After one row x and a step of 1, a learner's score of z is its kernel estimate: the mean of cos(s (Px - Pz))."""
    sigmas = 2.0 ** np.arange(7, -9, -1)
    learners = [FeatureClassifier(RandomFourier(Gaussian(0.5 / s**2), 50), update=updates.OGD(1.0)) for s in sigmas]
    X = np.random.default_rng(0).normal(size=(200, 4)).astype(dtype)
    first = np.arange(200) == 0
    found = []
    for count in (1, 2):
        with settings.using(threads=count):
            est = MultiKernelClassifier(learners, random_state=0, engine="native")
            est.learn(X, np.ones(200), sample_weight=first.astype(float), classes=[-1, 1])
            found.append([member.state_["w"].copy() for member in est.learners_])
            F = est._learner._member_scores(
                est._state, X, slice(0, 200), est._learner._family(est._state).project(X, "test")
            )[:, :, 0]
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))  # however the learners are shared out
    P = X.astype(float) @ est._learner._family(est._state).W.astype(float)
    for f, sigma in zip(F, sigmas, strict=True):
        truth = np.cos((P - P[0]) / sigma).mean(axis=1)
        rounding = np.finfo(dtype).eps * np.abs(P).mean() / sigma  # of the product alone
        np.testing.assert_allclose(f, truth, rtol=0, atol=4 * np.finfo(dtype).eps + 2 * rounding)


def test_capacity_follows_the_weights():
    """After 1,000 rows a quarter of all places is spread evenly, the rest by weight, however the rows are cut."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (1200, 2))
    y = (np.sin(3 * X[:, 0]) > 0).astype(int)
    learners = [BudgetClassifier(gamma=g, budget=20, strategy="remove_random") for g in (0.001, 2.0)]
    made = [
        MultiKernelClassifier(learners, HedgeWeights(discount=0.97), capacity="weights", random_state=0)
        for _ in range(2)
    ]
    made[0].learn(X[:999], y[:999])
    assert made[0].state_["capacity"].tolist() == [20, 20]
    made[0].learn(X[999:1000], y[999:1000])
    sizes = np.floor(40 / 8 + 0.75 * 40 * made[0].weights_).astype(int)
    assert made[0].state_["capacity"].tolist() == sizes.tolist() and sizes[1] > 30
    assert [member.budget for member in made[0].learners_] == sizes.tolist()
    made[0].learn(X[1000:], y[1000:])
    made[1].learn(X, y)
    assert_same_state(made[0].state_, made[1].state_, 1e-12, "budgets")


def test_the_oldest_leave_where_capacity_moves():
    """A set that is made smaller in the middle of its turn goes on with its oldest vector, in both engines."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (1100, 2))
    y = (np.sin(3 * X[:, 0]) > 0).astype(int)
    oldest = budgets.BOGD(oldest=True)
    learners = [
        BudgetClassifier(Gaussian(g), budget=20, strategy=oldest, update=updates.OGD(0.5)) for g in (0.001, 2.0)
    ]
    made = [
        MultiKernelClassifier(learners, HedgeWeights(0.97), capacity="weights", random_state=0, engine=engine)
        for engine in ENGINES
    ]
    for model in made:
        model.learn(X[:999], y[:999])
        turn = int(model.state_["members/0/budget_memory"][0])
        model.learn(X[999:], y[999:])
        assert model.state_["capacity"][0] < turn
    assert_same_state(made[0].state_, made[1].state_, 1e-9, "the oldest")


@pytest.mark.parametrize("recipe", ["omkl_fogd", "omkl_nogd", "omkl_u"])
def test_no_cut_decides_a_tie_of_scores(recipe):
    """Rows that are mostly zeros: votes may be decided by rounding, added scores only by their last digits."""
    X = (np.random.default_rng(0).random((300, 60)) < 0.05).astype(float)
    y = (X[:, :20].sum(axis=1) > 1).astype(int)
    whole, parts = (zoo.make(recipe, random_state=0).set_params(vote="score") for _ in range(2))
    scores = whole.learn(X, y)
    cut = [parts.learn(X[rows], y[rows]) for rows in (slice(0, 1), slice(1, 38), slice(38, 201), slice(201, 300))]
    np.testing.assert_allclose(np.concatenate(cut), scores, rtol=0, atol=1e-12 * np.abs(scores).max())
