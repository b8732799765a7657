"""Updates: their defining inequality, and closed forms of single steps."""

import math

import numpy as np
import pytest

from kernelstream import BudgetClassifier, FeatureRegressor, losses, updates
from kernelstream.kernels import Polynomial
from kernelstream.state.change import Change
from kernelstream.testing import check_update

LOSSES = ["hinge", "logistic", "squared_hinge", "squared", "epsilon_insensitive", "crammer_singer", "softmax"]


@pytest.mark.parametrize("name", updates.names())
@pytest.mark.parametrize("loss", LOSSES)
def test_conformance(name, loss):
    update, loss = updates.get(name), losses.get(loss)
    if name == "passive_aggressive" and not loss.piecewise_linear:
        with pytest.raises(ValueError, match="piecewise linear"):
            update.check(loss)
        return
    if name == "averaged":
        update = updates.Averaged(updates.OGD(0.1))
    check_update(update, loss)


def step(update, loss, y, f, k_xx=1.0, t=1, memory=None):
    loss = losses.get(loss)
    if memory is None:
        memory = update.memory(np.size(f))
    return update.step(loss, y, f, k_xx, t, memory)


def test_ogd_schedules():
    assert step(updates.OGD(0.5), "hinge", 1.0, 0.0, t=4) == (1.0, 0.5)
    assert step(updates.OGD(0.5, "sqrt"), "hinge", 1.0, 0.0, t=4) == (1.0, 0.25)
    decay, tau = step(updates.OGD(1.0, "inverse", lam=0.1), "hinge", 1.0, 0.0, t=4)
    assert tau == pytest.approx(1 / 0.4)
    assert decay == pytest.approx(1 - 1 / 4)
    assert step(updates.Pegasos(0.1), "hinge", 1.0, 0.0, t=4) == pytest.approx((decay, tau))


@pytest.mark.parametrize("k_xx", [0.5, 1.0, 3.0])
def test_passive_aggressive_removes_the_loss(k_xx):
    """PA without limit: the loss of the row is zero after the step, and not more than zero margin beyond."""
    pa = updates.PassiveAggressive(C=math.inf)
    for y, f in [(1.0, -0.3), (-1.0, 0.2), (1.0, 0.99)]:
        _, tau = step(pa, "hinge", y, f, k_xx)
        assert y * (f + tau * k_xx) == pytest.approx(1.0)
    _, tau = step(pa, losses.EpsilonInsensitive(0.1), 2.0, 0.5, k_xx)
    assert 0.5 + tau * k_xx == pytest.approx(1.9)
    f = np.array([0.2, 0.5, -1.0])
    _, tau = step(pa, "crammer_singer", 0, f, k_xx)
    after = f + tau * k_xx
    assert after[0] - after[1] == pytest.approx(1.0)
    assert tau[2] == 0


def test_passive_aggressive_variants():
    """PA-I caps at C; PA-II is the minimiser of tau^2 k/2 + C (l - tau k)^2."""
    assert step(updates.PassiveAggressive(0.1), "hinge", 1.0, -1.0)[1] == pytest.approx(0.1)
    k, C, loss = 2.0, 0.7, 2.0
    tau = step(updates.PassiveAggressive(C, 2), "hinge", 1.0, 1.0 - loss, k)[1]
    taus = np.linspace(0, 2, 200001)
    objective = 0.5 * taus**2 * k + C * (loss - taus * k) ** 2
    assert tau == pytest.approx(taus[np.argmin(objective)], abs=1e-5)


def test_norma_tube():
    """Outside the tube widens by (1 - nu) eta, inside narrows by nu eta, never below zero."""
    norma = updates.NORMA(eta=0.1, lam=0.0, nu=0.2)
    loss, memory = losses.EpsilonInsensitive(0.05), norma.memory(1)
    assert norma.step(loss, 1.0, 0.0, 1.0, 1, memory) == (1.0, 0.1)
    assert memory[0, 0] == pytest.approx(0.05 + 0.08)
    assert norma.step(loss, 0.0, 0.1, 1.0, 2, memory) == (1.0, 0.0)
    assert memory[0, 0] == pytest.approx(0.13 - 0.02)
    for _ in range(20):
        norma.step(loss, 0.0, 0.0, 1.0, 3, memory)
    assert memory[0, 0] == 0.0


def test_norm_adagrad_sums_squares():
    update = updates.NormAdaGrad(eta=2.0)
    memory = update.memory(1)
    k = [0.5, 1.0, 2.0]
    taus = [update.step(losses.get("squared"), 0.0, f, kx, 1, memory)[1] for f, kx in zip([1.0, 2.0, -3.0], k)]
    sums = np.cumsum([1.0 * 0.5, 4.0 * 1.0, 9.0 * 2.0])
    np.testing.assert_allclose(taus, -2.0 * np.array([1.0, 2.0, -3.0]) / np.sqrt(sums), rtol=1e-10)


def test_auto_rate_follows_the_units():
    """14/sqrt(P m) with P weights and mean k(x, x) = m; in regression times 0.3 x the deviation of the targets."""
    rng = np.random.default_rng(0)
    y, k = rng.normal(5.0, 3.0, 200), rng.uniform(1.0, 9.0, 200)
    for update, n_weights, factor in [(updates.AdaGrad(), 49, 2.0), (updates.NormAdaGrad(), 1, 8.0)]:
        memory, labels = update.memory(1, n_weights), update.memory(3, n_weights)
        for value, k_xx in zip(y, k):
            target = float(value)
            first, second = update.step(losses.get("squared"), target, target - 1.0, float(k_xx), 1, memory)
            many = update.step(losses.get("crammer_singer"), 0, np.zeros(3), float(k_xx), 1, labels)
        if update.diagonal:
            rate, rate_many = first, many[0]
        else:  # every gradient is -1 here, so the sum of their squares is that of k(x, x)
            rate, rate_many = second * math.sqrt(k.sum()), many[1][0] * math.sqrt(k.sum())
        assert rate == pytest.approx(factor * 0.3 * y.std() / math.sqrt(k.mean()), rel=1e-9)
        assert rate_many == pytest.approx(factor / math.sqrt(k.mean()), rel=1e-9)


@pytest.mark.parametrize("name", ["adagrad", "norm_adagrad"])
def test_memory_follows_the_outputs(name):
    """What all outputs share survives when a new class takes column 0."""
    update = updates.get(name)
    memory = update.memory(2, 49)
    for k_xx in (1.0, 2.0, 6.0):
        update.step(losses.get("crammer_singer"), 0, np.zeros(2), k_xx, 1, memory)
    carried = update.carry(memory, Change.added(0, 2, 0))
    assert carried[0, 0] == 3 and carried[3, 0] == pytest.approx(3.0)
    if name == "adagrad":
        assert carried[4, 0] == 49
    else:
        np.testing.assert_allclose(carried[4], [0.0, 9.0, 9.0])


@pytest.mark.parametrize("engine", ["python", "native"])
def test_a_kernel_expansion_keeps_what_outputs_share(engine):
    """Also where the class that appears comes before the others."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), np.repeat([[1, 2], [2, 3], [0, 3]], 15, axis=0).ravel()
    kernel = Polynomial(2, c=1.0, gamma=1.0)
    model = BudgetClassifier(kernel, budget=30, standardize=False, engine=engine).partial_fit(X, y)
    memory = model.state_["memory"]
    assert memory[0, 0] == len(y) and memory[3, 0] == pytest.approx(kernel.diag(X).mean())


def test_coin_betting_is_scale_free():
    """Multiplying all gradients by a constant changes nothing but the units: f stays the same."""

    def run(unit):
        update, memory, w = updates.CoinBetting(), updates.CoinBetting().memory(1), np.zeros(2)
        rng = np.random.default_rng(1)
        for t in range(1, 200):
            z = rng.normal(size=2)
            z /= np.linalg.norm(z)
            y = z @ [2.0, -1.0]
            loss = losses.get("absolute")

            class Scaled(type(loss)):
                def gradient(self, y, f):
                    return unit * super().gradient(y, f)

            decay, tau = update.step(Scaled(), float(y), float(w @ z), 1.0, t, memory)
            w = decay * w + tau * z
        return w

    one = run(1.0)
    np.testing.assert_allclose(run(1000.0), one, rtol=1e-8)
    assert np.linalg.norm(one - [2.0, -1.0]) < 0.5


@pytest.mark.parametrize("engine", ["python", "native"])
def test_adagrad_forgets(engine):
    """``G <- mu G + (g z)^2``, ``w -= eta g z / sqrt(G)``, written out."""
    rows = np.random.default_rng(0).standard_normal((40, 3))
    y = rows @ [1.0, -2.0, 0.5]
    model = FeatureRegressor("raw", update=updates.AdaGrad(0.3, forgetting=0.9), center=False, engine=engine)
    got = model.learn(rows, y)
    w, G, want = np.zeros(3), np.zeros(3), []
    for x, target in zip(rows, y, strict=True):
        want.append(w @ x)
        g = (w @ x - target) * x
        G = 0.9 * G + g * g
        w = w - 0.3 * g / np.sqrt(G + 1e-12)
    assert np.abs(got - want).max() < 1e-9
    with pytest.raises(ValueError, match="forgetting"):
        FeatureRegressor(update=updates.AdaGrad(forgetting=0.0)).fit(rows, y)
