"""The learners against programs of a few lines, written from the formulas alone."""

import copy

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.preprocessing import StandardScaler

from kernelstream import FeatureClassifier, FeatureRegressor, NystroemClassifier, NystroemRegressor, engine, updates
from kernelstream.features import RandomFourier

ENGINES = ["python"] + ["native"] * engine.has_native()

X2, y2 = make_moons(400, noise=0.25, random_state=0)
X4, y4 = make_blobs(400, n_features=3, centers=4, cluster_std=3.0, random_state=1)
X4 = StandardScaler().fit_transform(X4)
yr = np.sin(2 * X2[:, 0]) + 0.1 * X2[:, 1] + 3.0
FOURIER = RandomFourier(n_components=40, gamma=0.7, random_state=3)
WIDER = RandomFourier(n_components=90, gamma=0.7, random_state=3)  # 64 angles at a time where compiled, and a rest


def features(X, fourier=FOURIER):
    """[cos XW, sin XW] / sqrt(D) with the frequencies of a map above."""
    W = fourier.fit(X).mapping_.W
    return np.hstack([np.cos(X @ W), np.sin(X @ W)]) / np.sqrt(W.shape[1])


# -------------------------------------------------------------------- FOGD
def fogd_binary(Z, y, eta):
    """``eta`` is the step of all rows, or of each."""
    w, scores = np.zeros(Z.shape[1]), []
    for z, label, rate in zip(Z, y, np.broadcast_to(eta, len(y))):
        scores.append(w @ z)
        if label * scores[-1] < 1:
            w += rate * label * z
    return np.array(scores)


def fogd_multiclass(Z, y, eta):
    W, scores = np.zeros((y.max() + 1, Z.shape[1])), []
    for z, label in zip(Z, y):
        f = W @ z
        scores.append(f)
        best_wrong = max((c for c in range(len(W)) if c != label), key=lambda c: f[c])
        if 1 - f[label] + f[best_wrong] > 0:
            W[label] += eta * z
            W[best_wrong] -= eta * z
    return np.array(scores)


def fogd_regression(Z, y, eta):
    w, scores = np.zeros(Z.shape[1]), []
    for z, target in zip(Z, y):
        scores.append(w @ z)
        w += eta * (target - scores[-1]) * z
    return np.array(scores)


@pytest.mark.parametrize("fourier", [FOURIER, WIDER], ids=["few", "more"])
@pytest.mark.parametrize("engine", ENGINES)
def test_fogd(engine, fourier):
    update = updates.OGD(0.6)
    binary = FeatureClassifier(fourier, "hinge", update, engine=engine).learn(X2, y2, classes=[0, 1])
    np.testing.assert_allclose(binary, fogd_binary(features(X2, fourier), 2 * y2 - 1, 0.6), rtol=1e-9, atol=1e-12)
    several = FeatureClassifier(fourier, "hinge", update, engine=engine).learn(X4, y4, classes=range(4))
    np.testing.assert_allclose(several, fogd_multiclass(features(X4, fourier), y4, 0.6), rtol=1e-9, atol=1e-12)
    real = FeatureRegressor(fourier, "squared", update, center=False, engine=engine).learn(X2, yr)
    np.testing.assert_allclose(real, fogd_regression(features(X2, fourier), yr, 0.6), rtol=1e-9, atol=1e-12)


SEEN = np.arange(1, 401)
RARE = (SEEN % 5 == 1).astype(int)
WEIGHT = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.0], 400)
OF_CLASS = np.where(RARE == 1, np.cumsum(RARE), SEEN - np.cumsum(RARE))  # rows of this class so far, this row included


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "class_weight, weight, factor",
    [
        (None, WEIGHT, WEIGHT),
        ({0: 0.5, 1: 3.0}, None, np.where(RARE == 1, 3.0, 0.5)),
        ("balanced", np.full(400, 1.5), 1.5 * SEEN / (2 * OF_CLASS)),
    ],
    ids=["of rows", "of classes", "balanced"],
)
def test_weights_scale_the_gradient(engine, class_weight, weight, factor):
    model = FeatureClassifier(FOURIER, update=updates.OGD(0.4), class_weight=class_weight, engine=engine)
    expected = fogd_binary(features(X2), 2 * RARE - 1, 0.4 * factor)
    np.testing.assert_allclose(model.learn(X2, RARE, [0, 1], weight), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_fogd_of_far_rows(engine):
    """Angles of 10⁶ are not for the fast sine; rows with them stand between others, whose steps are still due."""
    X = X2.copy()
    X[::7] *= 1e6
    far = FeatureClassifier(WIDER, "hinge", updates.OGD(0.6), engine=engine).learn(X, y2, classes=[0, 1])
    np.testing.assert_allclose(far, fogd_binary(features(X, WIDER), 2 * y2 - 1, 0.6), rtol=1e-7, atol=1e-8)


# -------------------------------------------------------------------- AdaGrad
def ada_grad(Z, y, gradient, eta):
    """``eta(y so far)`` is the step; one output."""
    w, G, scores = np.zeros(Z.shape[1]), np.zeros(Z.shape[1]), []
    for t, z in enumerate(Z):
        scores.append(w @ z)
        g = gradient(y[t], scores[-1]) * z
        G += g**2
        w -= eta(y[: t + 1]) * g / np.sqrt(G + 1e-12)
    return np.array(scores)


def hinge(y, f):
    return -y if y * f < 1 else 0.0


@pytest.mark.parametrize("engine", ENGINES)
def test_ada_grad(engine):
    """A given step, and the automatic one: 14/sqrt(P), times 0.3 std(y so far) in regression."""
    sign, P = 2 * y2 - 1, 80
    fixed = FeatureClassifier(FOURIER, "hinge", updates.AdaGrad(0.7), engine=engine).learn(X2, y2, classes=[0, 1])
    np.testing.assert_allclose(fixed, ada_grad(features(X2), sign, hinge, lambda _: 0.7), rtol=1e-8, atol=1e-9)
    auto = FeatureClassifier(FOURIER, "hinge", updates.AdaGrad(), engine=engine).learn(X2, y2, classes=[0, 1])
    expected = ada_grad(features(X2), sign, hinge, lambda _: 14 / np.sqrt(P))
    np.testing.assert_allclose(auto, expected, rtol=1e-8, atol=1e-9)
    real = FeatureRegressor(FOURIER, "squared", updates.AdaGrad(), center=False, engine=engine).learn(X2, yr)
    expected = ada_grad(features(X2), yr, lambda y, f: f - y, lambda y: 14 / np.sqrt(P) * 0.3 * np.std(y))
    np.testing.assert_allclose(real, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_centred_target(engine):
    """With center=True the model learns y minus the mean of the targets before it, and adds that mean to its answer."""
    w, expected, Z = np.zeros(80), [], features(X2)
    for t, z in enumerate(Z):
        mean = yr[:t].mean() if t else 0.0
        expected.append(w @ z + mean)
        w += 0.6 * (yr[t] - expected[-1]) * z
    real = FeatureRegressor(FOURIER, "squared", updates.OGD(0.6), engine=engine)
    np.testing.assert_allclose(real.learn(X2, yr), expected, rtol=1e-9)
    np.testing.assert_allclose(real.predict(X2[:5]), Z[:5] @ w + yr.mean(), rtol=1e-9)


# -------------------------------------------------------------------- averaging
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("inner", [updates.OGD(0.6), updates.OGD(1.0, "inverse", 0.01)], ids=str)
def test_averaged(engine, inner):
    """Predictions come from the mean of all iterates, one per row learned; learning does not."""
    Z, sign = features(X2), 2 * y2 - 1
    w, iterates, expected = np.zeros(80), [], []
    for t, (z, label) in enumerate(zip(Z, sign), start=1):
        expected.append(np.mean(iterates, axis=0) @ z if iterates else 0.0)
        eta = inner.rate(t)
        step = eta * label * z if label * (w @ z) < 1 else 0.0
        w = (1 - eta * inner.lam) * w + step
        iterates.append(w)
    est = FeatureClassifier(FOURIER, "hinge", updates.Averaged(inner), engine=engine)
    np.testing.assert_allclose(est.learn(X2, y2, classes=[0, 1]), expected, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(est.decision_function(X2[:5]), Z[:5] @ np.mean(iterates, axis=0), rtol=1e-7)


# -------------------------------------------------------------------- NOGD
def gaussian(X, Z, gamma):
    return np.exp(-gamma * ((X[:, None] - Z[None]) ** 2).sum(axis=2))


def nogd(X, y, gradient, n_outputs, gamma, budget, rank, eta):
    """Kernel OGD until ``budget`` support vectors, then OGD on z(x) = D^-1/2 V' k_S(x) from w = D^1/2 V' alpha."""
    S, alpha, scores = [], [], []
    w = D = V = None
    for x, target in zip(X, y):
        if w is None:
            k = gaussian(x[None], np.array(S), gamma)[0] if S else np.zeros(0)
            f = k @ np.array(alpha) if S else np.zeros(n_outputs)
        else:
            z = (V / np.sqrt(D)).T @ gaussian(x[None], np.array(S), gamma)[0]
            f = w @ z
        scores.append(f)
        g = gradient(target, f)
        if w is not None:
            w -= eta * np.outer(g, z)
        elif np.any(g):
            S.append(x)
            alpha.append(-eta * g)
            if len(S) == budget:
                D, V = np.linalg.eigh(gaussian(np.array(S), np.array(S), gamma))
                D, V = D[-rank:], V[:, -rank:]
                w = (np.sqrt(D)[:, None] * (V.T @ np.array(alpha))).T
    return np.array(scores)


def crammer_singer(label, f):
    g = np.zeros(len(f))
    wrong = max((c for c in range(len(f)) if c != label), key=lambda c: f[c])
    if 1 - f[label] + f[wrong] > 0:
        g[label], g[wrong] = -1.0, 1.0
    return g


@pytest.mark.parametrize("engine", ENGINES)
def test_nogd(engine):
    settings = {"gamma": 0.7, "budget": 25, "rank": 10}
    common = {**settings, "update": updates.OGD(0.4), "engine": engine}
    binary = NystroemClassifier(**common).learn(X2, y2, classes=[0, 1])
    expected = nogd(X2, 2 * y2 - 1, lambda y, f: np.array([hinge(y, f[0])]), 1, **settings, eta=0.4)
    np.testing.assert_allclose(binary, expected[:, 0], rtol=1e-8, atol=1e-9)
    several = NystroemClassifier(**common).learn(X4, y4, classes=range(4))
    expected = nogd(X4, y4, crammer_singer, 4, **settings, eta=0.4)
    np.testing.assert_allclose(several, expected, rtol=1e-8, atol=1e-9)
    real = NystroemRegressor(**common, center=False).learn(X2, yr)
    expected = nogd(X2, yr, lambda y, f: f - y, 1, **settings, eta=0.4)
    np.testing.assert_allclose(real, expected[:, 0], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_nogd_without_a_step_size(engine):
    """NormAdaGrad in the expansion, AdaGrad after the switch; the squared gradients are shared out by the features."""
    gamma, budget, rank = 0.7, 25, 10
    S, alpha, expected, norms, total = [], [], [], [], 0.0
    w = P = G = None
    for x, label in zip(X2, 2 * y2 - 1):
        k = gaussian(x[None], np.array(S), gamma)[0] if S else np.zeros(0)
        z = None if w is None else P.T @ k
        f = float(k @ alpha if w is None else w @ z)
        expected.append(f)
        norms.append(1.0 if w is None else z @ z)
        if label * f >= 1:
            continue
        if w is not None:
            G = 0.9997 * G + z**2  # which fade by default
            w += 14 / np.sqrt(rank * np.mean(norms)) * label * z / np.sqrt(G)
            continue
        total += 1.0
        S.append(x)
        alpha.append(8 * label / np.sqrt(total))
        if len(S) == budget:
            K = gaussian(np.array(S), np.array(S), gamma)
            D, V = np.linalg.eigh(K)
            P = V[:, -rank:] / np.sqrt(D[-rank:])
            squares = np.square(K @ P).sum(axis=0)
            w, G = P.T @ K @ alpha, total * squares / squares.sum()
    scores = NystroemClassifier("gaussian", gamma, budget, rank, engine=engine).learn(X2, y2, classes=[0, 1])
    np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-9)


def test_moving_landmarks_keep_the_function():
    """At full rank the function has the same values on the new landmarks before and after the move."""
    est = NystroemRegressor(gamma=2.0, budget=15, rank=15, update=updates.OGD(0.3), refresh=50, random_state=0)
    est.learn(X2[:49], yr[:49])
    stays = copy.deepcopy(est).set_params(refresh=None).partial_fit(X2[49:50], yr[49:50])
    est.partial_fit(X2[49:50], yr[49:50])
    landmarks = est.state_["map_landmarks"]
    assert not np.array_equal(landmarks, stays.state_["map_landmarks"])
    np.testing.assert_allclose(est.predict(landmarks), stays.predict(landmarks), rtol=1e-6)
