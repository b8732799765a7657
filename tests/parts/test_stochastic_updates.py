"""Stochastic updates of many kernels (algorithm 18 of the thesis): who pays for a mistake, and who can still learn."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from kernelstream import MultiKernelClassifier, engine, zoo
from kernelstream.engine.python import Hedge
from kernelstream.estimators import StochasticUpdates
from kernelstream.kernels import Gaussian
from kernelstream.random import SeedStream, uniforms

X, y = make_moons(150, noise=0.25, random_state=0)
first = np.flatnonzero(y)[:6]  # rows of one label at first: a wide kernel needs no second vector
X, y = (np.concatenate([A[first], np.delete(A, first, axis=0)]) for A in (2.0 * X, y))
GAMMAS = (0.002, 0.1, 1.0, 30.0, 300.0)
ENGINES = ["python"] + ["native"] * engine.has_native()
SD = ["omkl_sd", "omkl_sdpa", "omkl_rbp_sd", "omkl_forgetron_sd", "omkl_bogd_sd", "omkl_bpas_sd"]


def naive(rule, budget, counted, seeds, discount, delta, C=0.1, eta=0.2, lam=1e-6, cap=10.0):
    """Algorithm 18 row by row, with one budget for all;
    scores, weights, support vectors of each learner, and how often one was drawn that could not learn."""
    K = [np.exp(-g * ((X[:, None] - X) ** 2).sum(axis=2)) for g in GAMMAS]
    m, label, total = len(K), 2 * y - 1, 0
    theta, scores, refused = np.full(m, 1 / m), [], 0
    sets = [{} for _ in range(m)]  # of every learner: row to coefficient; removals go by place, which dicts keep
    own = np.zeros(m, int)  # rows that each learner has learned from
    u = uniforms(0, 0, len(y) * m, SeedStream.MEMBER_CHOICE).reshape(len(y), m)
    for t in range(len(y)):
        f = np.array([sum(a * K[i][s, t] for s, a in sets[i].items()) for i in range(m)])
        f[np.abs(f) <= 1e-300] = 0.0  # says nothing
        scores.append(theta @ np.sign(f))
        drawn = u[t] < (1 - delta) * theta / theta.max() + delta
        for i in np.flatnonzero(drawn):
            spent, loss = total >= budget, 1 - label[t] * f[i]
            if spent and len(sets[i]) < {"bpas": 1, "bogd": 2}[rule]:
                refused += 1  # it has nothing that it could give for the row
                continue
            own[i] += 1
            if rule == "bogd":
                sets[i] = {s: (1 - eta * lam) * a for s, a in sets[i].items()}
            if loss <= 0 and not (rule == "bogd" and loss == 0):
                continue
            if not spent:
                sets[i][t] = label[t] * (min(C, loss) if rule == "bpas" else eta)
                total += 1
                continue
            places = list(sets[i])
            if rule == "bpas":
                cost = [sets[i][s] ** 2 * (1 - K[i][s, t] ** 2) for s in places]
                r = int(np.argmax(np.array(cost) <= min(cost) + 2e-9))
                new = sets[i][places[r]] * K[i][places[r], t] + label[t] * min(C, loss)
            else:
                n = len(places)
                sets[i] = {s: a * n / (n - 1) for s, a in sets[i].items()}
                r = int(uniforms(seeds[i], own[i] - 1, 1, SeedStream.BUDGET)[0] * n)
                new = label[t] * eta
            sets[i] = {(t if s == places[r] else s): (new if s == places[r] else a) for s, a in sets[i].items()}
            if rule == "bogd":
                largest = max(map(abs, sets[i].values()))
                if largest > eta * cap:
                    sets[i] = {s: a * eta * cap / largest for s, a in sets[i].items()}
        pays = label[t] * f <= 0
        theta = theta * np.where(pays & drawn if counted == "drawn" else pays, discount, 1.0)
        theta /= theta.sum()
    return np.array(scores), theta, [len(s) for s in sets], refused


def make(name, budget, backend, **params):
    kernels = [Gaussian(g) for g in GAMMAS]
    return zoo.make(name, kernels=kernels, budget=budget, engine=backend, random_state=0, **params)


@pytest.mark.parametrize("backend", ENGINES)
@pytest.mark.parametrize("counted", ["drawn", "all"])
@pytest.mark.parametrize(
    ("rule", "budget", "step"), [("bpas", 60, {}), ("bogd", 60, {"eta": 0.2}), ("bogd", 10, {"eta": 2.0})]
)
def test_equals_the_naive_program(backend, counted, rule, budget, step):
    how = {} if counted == "drawn" else {"counted": counted}  # the printed rule is what the recipe does
    est = make(f"omkl_{rule}_sd", budget, backend, discount=0.9, smoothing=0.05, **step, **how)
    scores = est.learn(X, y)
    seeds = [member.state_["seed"] for member in est.learners_]
    # the recipe gives every learner budget // m, and adds that up
    expected, theta, sizes, refused = naive(rule, budget // 5 * 5, counted, seeds, 0.9, 0.05, **step)
    assert (refused > 0) == (budget == 10)
    np.testing.assert_allclose(scores, expected, atol=1e-9)
    np.testing.assert_allclose(est.weights_, theta, rtol=1e-9)
    assert [member.n_support_ for member in est.learners_] == sizes


@pytest.mark.parametrize("backend", ENGINES)
@pytest.mark.parametrize("regression", [False, True])
def test_only_those_drawn_pay(backend, regression):
    """Three learners that are always wrong, drawn in every row, every second and never: in closed form."""
    ops, hedge, n = engine.get(backend), Hedge(0.1, 0.0, not regression, regression), 40
    F = np.zeros((3, n, 1)) if regression else -np.ones((3, n, 1))
    truth = np.where(np.arange(n) % 2, 1.0, 0.0) if regression else np.ones(n)
    drawn = np.stack([np.ones(n), np.arange(n) % 2, np.zeros(n)], axis=1).astype(bool)
    state = {"t": 0} | ops.start_hedge(3, hedge)
    ops.hedge_pass(F, truth, None, state, hedge, drawn)
    # forecasts of 0 cost 1 when the target is 1, which is every second row, that for which the second is drawn too
    lost = np.array([20.0, 20.0, 0.0]) if regression else np.array([40.0, 20.0, 0.0])
    np.testing.assert_allclose(state["log_theta"], -0.1 * lost, rtol=1e-12)


def test_recipes_and_parameters():
    assert all(zoo.make(name).updates.counted == "drawn" for name in SD)
    assert zoo.make("omkl_spa").updates == "stochastic"  # algorithm 14: mistakes count outside of the draw
    assert all(zoo.make(name).updates == "deterministic" for name in ("omkl_dd", "omkl_bpas_dd", "omkl_fogd"))
    assert zoo.make("omkl_bpas_sd", counted="all").updates.counted == "all"
    assert zoo.make("omkl_fogd", discount=0.9, share=0.1).combination.get_params() == {"discount": 0.9, "share": 0.1}
    with pytest.raises(ValueError, match="counted"):
        MultiKernelClassifier(updates=StochasticUpdates(counted="chosen")).fit(X, y)
