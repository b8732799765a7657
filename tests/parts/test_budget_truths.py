"""Budget strategies against small dense truths, by distribution where they draw lots, and engine against engine."""

import warnings
from functools import partial

import numpy as np
import pytest
from coverings import in_turn
from scipy.spatial.distance import cdist

from kernelstream import BudgetClassifier, budgets, kernels, losses, updates, zoo
from kernelstream.estimators.ensemble import capacity

GAMMA = 0.7


def gram(A, B):
    return np.exp(-GAMMA * cdist(A, B, "sqeuclidean"))


def rows(seed, n, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(np.sin(2 * X[:, 0]) + 0.5 * X[:, -1] + 0.3 * rng.normal(size=n) > 0, 1, -1)


def model(strategy, budget, update=None, seed=0, **more):
    update = updates.OGD(0.5) if update is None else update
    return BudgetClassifier("gaussian", GAMMA, budget, strategy, "hinge", update, random_state=seed, **more)


STRATEGIES = {
    "stop": budgets.Stop(),
    "spa": budgets.SPA(1.0, 2.0),
    "oskl": budgets.OSKL(2.5),
    "remove_random": budgets.RemoveRandom(),
    "bogd": budgets.BOGD(0.8),
    "bogd_oldest": budgets.BOGD(oldest=True),
    "forgetron": budgets.Forgetron(),
    "remove_smallest": budgets.RemoveSmallest(),
    "remove_redundant": budgets.RemoveRedundant(),
    "replace": budgets.Replace(),
    "neighbour": budgets.Replace(neighbour=True),
    "projectron": budgets.Projectron(),
    "projectron_pp": budgets.ProjectronPP(),
    "project": budgets.Project(),
    "project_smallest": budgets.Project("smallest"),
    "merge": budgets.Merge(),
    "transfer": budgets.Transfer(8),
}


# ------------------------------------------------------------------------------------------------ least squares
def full(strategy, update=None, budget=6, seed=3):
    """A model with a full budget, the next row that acts, and the function it would have without a budget: vectors and
    coefficients.
    """
    X, y = rows(seed, 400)
    est = model(strategy, budget, update)
    start = 0
    while est.__dict__.get("_state") is None or est.n_support_ < budget:
        est.partial_fit(X[start : start + 1], y[start : start + 1], classes=[-1, 1])
        start += 1
    while True:
        x, label = X[start : start + 1], y[start]
        f = est.decision_function(x)[0]
        tau = (update or updates.OGD(0.5)).step(losses.Hinge(), label, f, 1.0, start + 1, np.zeros((4, 1)))[1]
        if tau:
            vectors = np.concatenate([est.support_vectors_, x])
            return est, x, label, vectors, np.append(est.dual_coef_[0], tau), X
        est.partial_fit(x, [label])
        start += 1


@pytest.mark.parametrize("which", ["python", "native"])
@pytest.mark.parametrize("victim", ["cheapest", "smallest"])
def test_projection_is_least_squares(victim, which):
    """Of all functions on the vectors that stay, the nearest one; BPA-P drops the vector for which it is nearest."""
    est, x, label, V, a, points = full(budgets.Project(victim))
    est.set_params(engine=which).partial_fit(x, [label])
    K, n = gram(V, V), len(V) - 1
    fits = []
    for r in range(n):
        keep = np.delete(np.arange(n + 1), r)
        b = np.linalg.solve(K[np.ix_(keep, keep)], K[keep] @ a)
        gap = np.append(b, 0.0)
        gap = np.insert(b, r, 0.0) - a
        fits.append((gap @ K @ gap, keep, b))
    if victim == "cheapest":
        r = int(np.argmin([cost for cost, _, _ in fits]))
    else:
        r = int(np.argmin(a[:n] ** 2))
        assert a[r] ** 2 <= a[-1] ** 2
    _, keep, b = fits[r]
    np.testing.assert_allclose(est.decision_function(points), gram(points, V[keep]) @ b, atol=1e-9)


@pytest.mark.parametrize("which", ["python", "native"])
def test_projectron_is_least_squares(which):
    est, x, label, V, a, points = full(budgets.Projectron(), updates.Perceptron())
    est.set_params(engine=which).partial_fit(x, [label])
    S, K = V[:-1], gram(V, V)
    d = np.linalg.solve(K[:-1, :-1], K[:-1, -1])
    np.testing.assert_allclose(est.decision_function(points), gram(points, S) @ (a[:-1] + a[-1] * d), atol=1e-8)


@pytest.mark.parametrize("which", ["python", "native"])
def test_replacement_is_least_squares(which):
    """BPA-S: the new row takes over the projection of the vector it replaces, the one for which that loses least."""
    est, x, label, V, a, points = full(budgets.Replace())
    est.set_params(engine=which).partial_fit(x, [label])
    K, n = gram(V, V), len(V) - 1
    losses_ = [a[r] ** 2 * (1 - K[r, n] ** 2) for r in range(n)]
    r = int(np.argmin(losses_))
    b = a.copy()
    b[n] += a[r] * K[r, n]
    b[r] = 0.0
    np.testing.assert_allclose(est.decision_function(points), gram(points, V) @ b, atol=1e-9)


@pytest.mark.parametrize("which", ["python", "native"])
def test_merging_loses_least(which):
    """The smallest vector is merged: a fine search over partners and points between them finds nothing nearer."""
    est, x, label, V, a, _ = full(budgets.Merge())
    est.set_params(engine=which).partial_fit(x, [label])
    all_, b = np.concatenate([V, est.support_vectors_]), np.concatenate([a, -est.dual_coef_[0]])
    lost = b @ gram(all_, all_) @ b
    smallest, best = int(np.argmin(a**2)), np.inf
    for other in np.delete(np.arange(len(V)), smallest):
        for h in np.linspace(0, 1, 2001):
            z = h * V[smallest] + (1 - h) * V[other]
            pair = np.stack([V[smallest], V[other]])
            k = gram(pair, z[None])[:, 0]
            c = a[[smallest, other]]
            best = min(best, c @ gram(pair, pair) @ c - (c @ k) ** 2)
    assert est.n_support_ == len(V) - 1
    assert lost == pytest.approx(best, abs=1e-6)


# ------------------------------------------------------------------------------------------------ by distribution
def far_apart(n):
    """Rows that know nothing of each other: every one of them acts."""
    return 100.0 * np.arange(n, dtype=float)[:, None], np.where(np.arange(n) % 2, 1, -1)


@pytest.mark.parametrize("strategy", [budgets.RemoveRandom(), budgets.BOGD()], ids=["rbp", "bogd"])
def test_removal_is_uniform(strategy):
    """After m removals a vector of the first B is still there with probability (1 - 1/B)^m; a row that came j rows
    before the end, with (1 - 1/B)^j.
    """
    B, n, runs = 10, 40, 400
    X, y = far_apart(n)
    there = np.zeros((runs, n))
    for seed in range(runs):
        kept = model(strategy, B, seed=seed).fit(X, y, shuffle=False).support_vectors_[:, 0]
        assert len(kept) == B
        there[seed, np.rint(kept / 100).astype(int)] = 1.0
    expected = (1 - 1 / B) ** (n - np.maximum(np.arange(n) + 1.0, B))
    error = np.sqrt(expected * (1 - expected) / runs)
    assert (np.abs(there.mean(axis=0) - expected) <= 4.5 * error + 1e-12).all()


@pytest.mark.parametrize("which", ["python", "native"])
@pytest.mark.parametrize("update", [updates.Pegasos(0.1), updates.OGD(2.0)], ids=["pegasos", "ogd"])
def test_of_equal_terms_the_oldest_leaves(update, which):
    """Pegasos on the hinge loss makes all coefficients 1/(lam t), steps of one size make them that size."""
    B, n = 5, 23
    X, y = far_apart(n)
    est = model(budgets.RemoveSmallest(), B, update).set_params(engine=which)
    for i in range(n):
        est.partial_fit(X[i : i + 1], y[i : i + 1], classes=[-1, 1])
        assert sorted(est.support_vectors_[:, 0]) == sorted(X[max(0, i + 1 - B) : i + 1, 0])


def test_of_equal_terms_the_youngest_outlive_a_smaller_budget():
    X, y = far_apart(30)
    est = model(budgets.RemoveSmallest(), 6, updates.OGD(2.0)).fit(X[:20], y[:20], shuffle=False)

    def kept():
        return sorted(np.rint(est.support_vectors_[:, 0] / 100).astype(int))

    def resize(n):
        capacity.resize(est._learner, est._state, n)
        est.set_params(budget=n)

    resize(4)
    assert kept() == [16, 17, 18, 19]
    est.partial_fit(X[20:21], y[20:21])
    assert kept() == [17, 18, 19, 20]
    resize(6)
    est.partial_fit(X[21:25], y[21:25])
    assert kept() == [19, 20, 21, 22, 23, 24]


def test_the_first_rows_do_not_stay_for_ever():
    """Two hills of labels that change places in the middle of the stream: only new vectors know of it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    y[300:] *= -1
    est = zoo.make("bsgd_remove", budget=20, gamma=1.0, random_state=0)
    f = est.learn(X, y, classes=[-1, 1])
    assert np.mean(np.sign(f[500:]) != y[500:]) < 0.15


def test_bogd_keeps_the_function_on_average():
    """The mean over the vectors that may go of f after the step is f with the new row and no budget."""
    B, seeds = 5, range(300)
    X, y = rows(5, 40)
    est = model(budgets.BOGD(), B, update=updates.OGD(0.5))
    used = next(t for t in range(1, 40) if est.fit(X[:t], y[:t], shuffle=False).n_support_ == B)
    step = next(t for t in range(used, 40) if y[t] * est.decision_function(X[t : t + 1])[0] < 1)
    before, slots, after = est.decision_function(X), {}, []
    for seed in seeds:
        other = model(budgets.BOGD(), B, update=updates.OGD(0.5), seed=seed)
        other.fit(X[:used], y[:used], shuffle=False).partial_fit(X[step : step + 1], y[step : step + 1])
        f = other.decision_function(X)
        slots[tuple(np.round(f, 9))] = f
        after.append(f)
    assert len(slots) == B  # every vector goes in some run
    expected = before + 0.5 * y[step] * gram(X, X[step : step + 1])[:, 0]
    np.testing.assert_allclose(np.mean(list(slots.values()), axis=0), expected, atol=1e-9)


@pytest.mark.parametrize("engine", ["python", "native"])
def test_bogd_of_the_author_lets_the_oldest_go(engine):
    """Table 4.8 of Lu's thesis: coefficients decay with every row, and one that joins makes the oldest leave."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(150, 4))
    y = X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=150)
    kept, expected = [], []
    for x, target in zip(X, y, strict=True):
        f = sum(a * np.exp(-((x - s) @ (x - s)) / 128) for s, a in kept)
        expected.append(f)
        kept = [(s, a * (1 - 0.1 * 0.03)) for s, a in kept]
        if abs(target - f) > 0.1:
            kept = [*kept, (x, 0.1 * (target - f))][-30:]
    options = {"gamma": 1 / 128, "budget": 30, "eta": 0.1, "lam": 0.03, "epsilon": 0.1, "oldest": True}
    est = zoo.make("bogd", task="regression", **options).set_params(engine=engine)
    np.testing.assert_allclose(
        np.concatenate([est.learn(X[:70], y[:70]), est.learn(X[70:], y[70:])]), expected, atol=1e-12
    )
    assert est.n_support_ == len(kept) == 30


@pytest.mark.parametrize("alpha, beta", [(1.0, 4.0), (0.5, 2.0), (1.0, 20.0)])
def test_spa_keeps_few(alpha, beta):
    """Row t joins with probability min(alpha, l)/beta <= alpha/beta."""
    X, y = rows(6, 300)
    shares = [model(budgets.SPA(alpha, beta), None, seed=seed).fit(X, y).n_support_ / 300 for seed in range(40)]
    assert np.mean(shares) <= alpha / beta + 4 * np.sqrt(alpha / beta / 300 / 40)
    far, labels = far_apart(300)  # all losses are 1: the bound is met
    shares = [model(budgets.SPA(alpha, beta), None, seed=seed).fit(far, labels).n_support_ / 300 for seed in range(40)]
    assert np.mean(shares) == pytest.approx(min(1.0, alpha) / beta, abs=4 * np.sqrt(alpha / beta / 300 / 40))


def test_spa_from_a_budget_is_spa_with_the_beta_of_the_theorem():
    """beta = alpha T / n (Lu's thesis, after theorem 2): the same model, and no more than n vectors expected."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(600, 3)), rng.choice([-1, 1], 600)
    made = {"gamma": 0.5, "alpha": 0.8, "random_state": 0}
    by_budget = zoo.make("spa", "binary", budget=60, horizon=600, **made).partial_fit(X, y)
    by_beta = zoo.make("spa", "binary", budget=60, beta=0.8 * 600 / 60, **made).partial_fit(X, y)
    np.testing.assert_array_equal(by_budget.decision_function(X), by_beta.decision_function(X))
    sizes = [
        zoo.make("spa", "binary", budget=200, horizon=2000, random_state=seed).partial_fit(X, y).state_["n_support"]
        for seed in range(20)
    ]
    assert np.mean(sizes) <= 60 + 3 * 60**0.5 / 20**0.5  # 600 of 2,000 rows: at most 60 expected
    with pytest.raises(ValueError, match="give budget as well"):
        zoo.make("spa", horizon=100)


@pytest.mark.parametrize("which", ["python", "native"])
@pytest.mark.parametrize("budget", [None, 7])
@pytest.mark.parametrize("kind", [partial(budgets.SPA, 1.0, 2.0), partial(budgets.OSKL, 2.5)], ids=["spa", "oskl"])
def test_the_average_is_the_mean_of_functions(which, budget, kind):
    X, y = rows(7, 60)
    mean = model(kind(average=True), budget, engine=which, seed=2)
    last = model(kind(average=False), budget, engine=which, seed=2)
    held = [np.zeros(len(X))]
    for t in range(len(X)):
        mean.partial_fit(X[t : t + 1], y[t : t + 1], classes=[-1, 1])
        last.partial_fit(X[t : t + 1], y[t : t + 1], classes=[-1, 1])
        np.testing.assert_allclose(mean.decision_function(X), np.mean(held, axis=0), atol=1e-12)
        held.append(last.decision_function(X))
    assert mean.n_support_ == last.n_support_ > 5


# ------------------------------------------------------------------------------------------------ memory, warnings
@in_turn("name, which", sorted(set(STRATEGIES) - {"oskl"}), ["python", "native"])
def test_full_budget_never_reallocates(name, which):
    X, y = rows(8, 90)
    update = updates.Perceptron() if name == "projectron_pp" else updates.OGD(0.3)
    est = model(STRATEGIES[name], 8, update, engine=which).fit(X, y)
    held = {key: (id(value), value.nbytes) for key, value in est.state_.items() if isinstance(value, np.ndarray)}
    in_parts(est, X, y, 40)
    for key in ("support", "alpha", "diag", *(key for key in held if key.startswith("budget_"))):
        assert (id(est.state_[key]), est.state_[key].nbytes) == held[key], key
    assert est.n_support_ <= 8


def in_parts(est, X, y, size):
    for start in range(0, len(y), size):
        est.partial_fit(X[start : start + size], y[start : start + size])


def test_warns_once_when_the_support_set_grows():
    X, y = rows(9, 200)
    est = model(budgets.Stop(warn_at=20), None)
    with pytest.warns(RuntimeWarning, match="has passed 20 vectors and keeps growing") as found:
        in_parts(est, X, y, 10)
    assert len(found) == 1 and est.n_support_ > 40
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(budgets.Stop(warn_at=None), None).fit(X, y)
        model(budgets.Stop(warn_at=20), 30).fit(X, y)


# ------------------------------------------------------------------------------------------------ bad input
class Bare(kernels.Kernel):
    """A kernel with values only."""

    name = "bare"

    def pairwise(self, X, Z):
        return np.asarray(X @ Z.T) + 1.0

    def diag(self, X):
        return np.square(X).sum(axis=1) + 1.0


def test_kernels_a_strategy_cannot_serve():
    """The message names what is missing; strategies that need values only take the kernel as it is."""
    X, y = rows(12, 40)
    with pytest.raises(ValueError, match="random features, which the kernel 'bare' does not have"):
        BudgetClassifier(kernel=Bare(), strategy="transfer", budget=5).fit(X, y)
    for name in set(STRATEGIES) - {"transfer", "projectron_pp"}:
        est = BudgetClassifier(kernel=Bare(), strategy=STRATEGIES[name], budget=5, update=updates.OGD(0.1))
        assert est.fit(X, y).n_support_ <= 5
