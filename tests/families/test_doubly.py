"""Doubly stochastic gradients: the recursion against a naive program, and what the two estimators promise."""

import numpy as np
import pytest
import scipy.sparse as sp
from doubly_features import SEED, fourier_block
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.svm import SVC

import kernelstream
from kernelstream import DoublyStochasticClassifier, DoublyStochasticRegressor, engine, kernels, losses, settings, zoo
from kernelstream.estimators import DoublySchedule, DoublyStep
from kernelstream.passes.doubly.blocks import FeatureBlocks
from kernelstream.passes.doubly.descent import Descent, largest_eigenvalue
from kernelstream.random import SeedStream, generator

X2, y2 = make_moons(260, noise=0.2, random_state=0)
X4, y4 = make_blobs(260, n_features=3, centers=4, cluster_std=2.0, random_state=1)
yr = np.sin(2 * X2[:, 0]) + 0.1 * X2[:, 1] + 3.0


def fixed(kind=DoublyStochasticClassifier, **params):
    """A learner with nothing left to choose, and small."""
    step = DoublyStep(*params.pop("step", (3.0, 7.0)), precondition=0.0)
    schedule = DoublySchedule(16, params.pop("block_size", 6), params.pop("max_blocks", None))
    common = {"gamma": 0.7, "lam": 0.01, "step": step, "schedule": schedule, "random_state": SEED}
    if kind is DoublyStochasticRegressor:
        common["center"] = False
    return kind(**(common | params))


def naive_features(X, t, kernel, D):
    """Block t = 0, 1, … by the formulas."""
    if isinstance(kernel, kernels.Gaussian):
        return fourier_block(X, t, D, gamma=kernel.gamma)
    return kernel.features(X, kernel.draw(generator(SEED, SeedStream.MAP, t), X.shape[1], D))


def naive(X, y, loss, C, kernel, D, b, eta, theta0, lam, max_blocks=None, uniform=False):
    """The recursion, one line at a time: final weights and their average, lists of (features, C)."""
    alpha, mean = [], []
    for t in range(1, len(y) // b + 1):
        rows = slice((t - 1) * b, t * b)
        f = np.zeros((b, C))
        for i, a in enumerate(alpha):
            f += naive_features(X[rows], i, kernel, D) @ a
        gamma = eta * theta0 / (theta0 + t)
        g = loss.gradient(y[rows], f if loss.kind == "multiclass" else f[:, 0]).reshape(b, C)
        block = t - 1 if max_blocks is None else (t - 1) % max_blocks
        new = -gamma / b * naive_features(X[rows], block, kernel, D).T @ g
        alpha = [(1 - gamma * lam) * a for a in alpha]
        if block == len(alpha):
            alpha.append(new)
            mean.append(np.zeros_like(new))
        else:
            alpha[block] = alpha[block] + new
        w = 1 / t if uniform else 4 / (t + 3)
        mean = [(1 - w) * m + w * a for m, a in zip(mean, alpha)]
    return np.array(alpha), np.array(mean)


def codes(loss, y):
    return y.astype(float) if loss.kind == "multiclass" else np.where(y > 0, 1.0, -1.0)


@pytest.mark.parametrize(
    "loss, X, y",
    [(loss, X2, y2) for loss in ("hinge", "squared_hinge", "logistic", "perceptron")]
    + [(loss, X4, y4) for loss in ("softmax", "crammer_singer", "one_vs_rest", "multiclass_perceptron")],
)
def test_classifier_is_the_recursion(loss, X, y):
    truth = losses.get(loss)
    C = len(np.unique(y)) if truth.kind == "multiclass" else 1
    alpha, mean = naive(X, codes(truth, y), truth, C, kernels.Gaussian(0.7), 6, 16, 3.0, 7.0, 0.01)
    scores = sum(naive_features(X, i, kernels.Gaussian(0.7), 6) @ m for i, m in enumerate(mean))
    for name in ("python", "native"):
        model = fixed(loss=loss, engine=name).partial_fit(X, y, classes=np.unique(y))
        found = model.state_["alpha"] * model.state_["shrink"]
        np.testing.assert_allclose(found, alpha, atol=1e-10 * np.abs(alpha).max())
        np.testing.assert_allclose(model.state_["mean"], mean, atol=1e-10 * np.abs(mean).max())
        np.testing.assert_allclose(model.decision_function(X).reshape(len(X), C), scores, atol=1e-9)
        assert model.state_["waiting"] == len(y) % 16


@pytest.mark.parametrize("loss", ["squared", "absolute", "epsilon_insensitive", "huber", "quantile"])
def test_regressor_is_the_recursion(loss):
    model = fixed(DoublyStochasticRegressor, loss=loss).partial_fit(X2, yr)
    _, mean = naive(X2, yr, losses.get(loss), 1, kernels.Gaussian(0.7), 6, 16, 3.0, 7.0, 0.01)
    scores = sum(naive_features(X2, i, kernels.Gaussian(0.7), 6) @ m for i, m in enumerate(mean))
    np.testing.assert_allclose(model.predict(X2), scores[:, 0], atol=1e-9)


@pytest.mark.parametrize("name", kernels.names())
def test_every_kernel_with_features(name):
    kernel = kernels.get(name)
    X = np.abs(X4[:64]) / 10
    kernel = kernel.resolve(X)
    if not kernel.has_features:
        with pytest.raises(ValueError, match="no random features"):
            fixed(kernel=kernel, gamma=None).fit(X, y4[:64])
        return
    model = fixed(kernel=kernel, gamma=None, loss="softmax").partial_fit(X, y4[:64], classes=range(4))
    D = model._learner.descent(model.state_).blocks.draws
    _, mean = naive(X, y4[:64].astype(float), losses.get("softmax"), 4, kernel, D, 16, 3.0, 7.0, 0.01)
    scores = sum(naive_features(X, i, kernel, D) @ m for i, m in enumerate(mean))
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-9 * max(1, np.abs(scores).max()))


@pytest.mark.parametrize("engine", ["python", "native"])
@pytest.mark.parametrize(
    "lam, max_blocks, average", [(0.01, 1, True), (0.01, 3, True), (0.01, None, "uniform"), (0.3, None, False)]
)
def test_variants_of_the_recursion(lam, max_blocks, average, engine):
    """Blocks that are refined in turn; the plain mean of the iterates; no average, and a penalty whose factor, 0.2 at
    first, must be folded.
    """
    step = (3.0, 7.0, average)
    model = fixed(lam=lam, max_blocks=max_blocks, step=step, engine=engine).partial_fit(X2, y2, classes=[0, 1])
    loss, uniform = losses.get("hinge"), average == "uniform"
    alpha, mean = naive(X2, codes(loss, y2), loss, 1, kernels.Gaussian(0.7), 6, 16, 3.0, 7.0, lam, max_blocks, uniform)
    assert model.state_["alpha"].shape[0] == (max_blocks or 16)
    np.testing.assert_allclose(model.state_["alpha"] * model.state_["shrink"], alpha, atol=1e-12)
    if average:
        np.testing.assert_allclose(model.state_["mean"], mean, atol=1e-12)
    assert bool(average) == ("mean" in model.state_)
    scores = sum(naive_features(X2, i, kernels.Gaussian(0.7), 6) @ a for i, a in enumerate(mean if average else alpha))
    np.testing.assert_allclose(model.decision_function(X2), scores[:, 0], atol=1e-9)


def descent(loss="logistic", **params):
    ops = kernelstream.engine.get("auto")
    blocks = FeatureBlocks(kernels.Gaussian(0.7), SEED, 2, 6, np.float64, ops)
    return Descent(blocks, losses.get(loss), **({"eta": 3.0, "theta0": 7.0, "lam": 0.2} | params))


@pytest.mark.parametrize("max_blocks", [None, 4])
def test_kept_scores_are_swept_scores(max_blocks):
    """40 iterations keep the scores of all rows up to date, 40 times one iteration sweeps; lam is folded twice."""
    made, states = descent(max_blocks=max_blocks), []
    y = codes(made.loss, y2)
    order = np.random.default_rng(0).permutation(len(y2))
    for n in (len(y2), 80):  # 40 batches of 16 are more than two passes over 260 rows, and over 80
        state = {"offset": 0.5}
        made.reset(state, 1)
        made.train(state, X2[order[:n]], y[order[:n]], None, 40, 16, seed=1)
        naive_state = {"offset": 0.5}
        made.reset(naive_state, 1)
        from kernelstream.passes.doubly.descent import batches

        for rows in batches(n, 16, 40, 1):
            part = order[:n][rows]
            made.learn_batch(naive_state, X2[part], y[part], None, made.both(naive_state, X2[part])[0])
        np.testing.assert_allclose(state["alpha"] * state["shrink"], naive_state["alpha"] * naive_state["shrink"],
                                   atol=1e-11)  # fmt: skip
        states.append(state)
    assert states[0]["t"] == states[1]["t"] == 40


def test_batches_are_passes():
    from kernelstream.passes.doubly.descent import batches

    seen = np.concatenate(list(batches(30, 7, 13, 3)))
    assert len(seen) == 91
    for k in range(3):
        assert sorted(seen[30 * k : 30 * (k + 1)]) == list(range(30))


@pytest.mark.parametrize("b", [5, 40])
def test_precondition_divides_by_the_covariance(b):
    """Fewer rows than features, and more: the gradient in the features of the block, and that of lam/2 ||f||^2."""
    made = descent(precondition=0.1, lam=0.01, max_blocks=1)
    state = {"offset": 0.0}
    made.reset(state, 1)
    X, y = X2[:b], codes(made.loss, y2[:b])
    w = np.zeros(12)
    Z = naive_features(X, 0, kernels.Gaussian(0.7), 6)
    covariance = Z.T @ Z / b
    top = np.linalg.eigvalsh(covariance).max()
    for t in (1, 2, 3):  # one block only: f = w'z, and the recursion is gradient descent on w
        made.learn_batch(state, X, y, None, made.both(state, X)[0])
        gradient = Z.T @ losses.get("logistic").gradient(y, Z @ w) / b + 0.01 * w
        w = w - made.rate(t) * top * np.linalg.solve(covariance + 0.1 * top * np.eye(12), gradient)
        np.testing.assert_allclose(state["alpha"][0, :, 0] * state["shrink"], w, atol=1e-5 * np.abs(w).max())


def test_largest_eigenvalue():
    A = np.random.default_rng(0).standard_normal((30, 4))
    A -= A.mean(0)  # orthogonal to the vector of ones
    assert largest_eigenvalue(A @ A.T, 200) == pytest.approx(np.linalg.eigvalsh(A @ A.T).max())
    assert largest_eigenvalue(np.zeros((3, 3))) == 0


# -------------------------------------------------------------------- blocks: the same bytes, whatever happens
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "arc_cosine"])
def test_cache_changes_nothing(kernel):
    gamma = None if kernel == "arc_cosine" else 0.7
    states = []
    for cache_bytes in (0, 500, 1 << 20):
        with settings.using(cache_bytes=cache_bytes):
            model = fixed(kernel=kernel, gamma=gamma).partial_fit(X2, y2)
            model.predict(X2)
        blocks = model._learner.descent(model.state_).blocks
        kept = sum(a.nbytes if isinstance(a, np.ndarray) else sum(b.nbytes for b in a.values())
                   for a in blocks._kept.values())  # fmt: skip
        assert kept <= cache_bytes
        states.append(model.state_)
    for state in states[1:]:
        assert state["alpha"].tobytes() == states[0]["alpha"].tobytes()


def test_threads_change_nothing():
    X, y = make_moons(5000, noise=0.2, random_state=1)
    model = fixed(block_size=64).partial_fit(X[:1000], y[:1000])
    scores = []
    for count in (1, 2, 3):
        with settings.using(threads=count):
            scores.append(model.decision_function(X))
    assert np.array_equal(scores[0], scores[1]) and np.array_equal(scores[0], scores[2])


def test_memory_does_not_depend_on_the_width():
    rng = np.random.default_rng(0)
    sizes = []
    for d in (3, 300):
        model = fixed().partial_fit(rng.standard_normal((64, d)), np.arange(64) % 2)
        sizes.append(sum(a.nbytes for a in model.state_.values() if isinstance(a, np.ndarray)))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("engine", ["python", "native"])
def test_sparse_rows_are_dense_rows(engine):
    rng = np.random.default_rng(0)
    X = sp.random_array((96, 4000), density=0.002, rng=rng, format="csr")  # wide: only the columns in use are drawn
    X = sp.csr_array(sp.vstack([X, sp.csr_array((2, 4000))]))  # and rows of zeros
    y = np.arange(98) % 2
    models = [fixed(gamma=1.0, engine=engine).partial_fit(rows, y) for rows in (X, X.toarray())]
    np.testing.assert_allclose(models[0].state_["alpha"], models[1].state_["alpha"], atol=1e-12)
    for rows in (X, X[-2:], X[:1]):
        expected = models[1].decision_function(rows.toarray())
        np.testing.assert_allclose(models[0].decision_function(rows), expected, atol=1e-11)


def test_wider_rows_keep_the_function():
    model = fixed().partial_fit(X2[:250], y2[:250])
    before = model.decision_function(X2)
    model.widen(5)
    wide = np.pad(X2, ((0, 0), (0, 3)))
    np.testing.assert_allclose(model.decision_function(wide), before, atol=1e-12)
    model.partial_fit(wide[250:], y2[250:])
    straight = fixed().partial_fit(wide, y2)
    np.testing.assert_allclose(model.state_["alpha"], straight.state_["alpha"], atol=1e-12)
    with pytest.raises(ValueError, match="more columns"):
        fixed(kernel="laplacian").partial_fit(X2, y2).widen(5)


# -------------------------------------------------------------------- waiting rows
def test_predictions_change_with_complete_batches_only():
    model = fixed().partial_fit(X2[:48], y2[:48], classes=[0, 1])
    before = model.decision_function(X2)
    model.partial_fit(X2[48:63], y2[48:63])
    assert np.array_equal(model.decision_function(X2), before) and model.state_["waiting"] == 15
    model.partial_fit(X2[63:64], y2[63:64])
    assert not np.array_equal(model.decision_function(X2), before) and model.state_["waiting"] == 0


# -------------------------------------------------------------------- automatic choices
@pytest.mark.parametrize("block_size", [64, pytest.param("auto", marks=pytest.mark.slow)])
def test_defaults_do_well(block_size):
    """As well as an SVC, also where the rows come one class after the other."""
    X, y = make_moons(1500, noise=0.2, random_state=3)
    schedule, order = DoublySchedule(block_size=block_size), np.argsort(y[:1000], kind="stable")
    model = DoublyStochasticClassifier(random_state=0, schedule=schedule).fit(X[order], y[order])
    assert model.score(X[1000:], y[1000:]) > SVC().fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
    target = np.sin(3 * X[:, 0]) + 100
    regressor = DoublyStochasticRegressor(random_state=0, schedule=schedule).fit(X[:1000], target[:1000])
    assert regressor.score(X[1000:], target[1000:]) > 0.97


@pytest.mark.parametrize("loss, factor", [("hinge", 8.0), ("squared_hinge", 1.0), ("squared", 1.0), ("absolute", 0.5)])
def test_the_first_batch_gives_bandwidth_and_step(loss, factor):
    """The median distance of its rows; a step for the largest eigenvalue of their K/n and the target's deviation."""
    regression = losses.get(loss).kind == "regression"
    kind, y = (DoublyStochasticRegressor, 3 * yr) if regression else (DoublyStochasticClassifier, y2)
    step, schedule = DoublyStep(precondition=0.0), DoublySchedule(150, 6)
    model = kind(loss=loss, step=step, schedule=schedule, random_state=0).partial_fit(X2[:149], y[:149])
    model.partial_fit(X2[149:200], y[149:200])
    median = np.median(pdist(X2[:150]))
    assert model.kernel_.gamma == pytest.approx(1 / (2 * median**2))
    top = np.linalg.eigvalsh(model.kernel_.pairwise(X2[:150], X2[:150])).max() / 150
    deviation = y[:150].std() if loss == "absolute" else 1.0
    assert model.state_["eta"] == pytest.approx(factor * deviation / top, rel=1e-6)
    assert model.state_["lam"] == pytest.approx(1 / (153_600 * deviation))
    assert model.state_["offset"] == pytest.approx(y[:150].mean() if regression else 0.0)
    assert (model.state_["t"], model.state_["waiting"]) == (1, 50)


@pytest.mark.parametrize("engine", ["python", "native"])
def test_fit_takes_large_batches(engine):
    """Left to choose, 60 rows are one batch, 150 times, damped by 25.6 / 60 of the largest eigenvalue."""
    X, y = X2[:60], y2[:60]
    step = DoublyStep(2.0, 300.0, precondition="auto")
    model = fixed(loss="logistic", lam=0.0, engine=engine).set_params(step=step, schedule=DoublySchedule(block_size=6))
    model.fit(X, y)
    f, mean, target = np.zeros(60), np.zeros(60), np.where(y > 0, 1.0, -1.0)
    for t in range(1, 151):
        Z = naive_features(X, t - 1, kernels.Gaussian(0.7), 6)
        covariance = Z.T @ Z / 60
        top = largest_eigenvalue(covariance)  # a few steps of the power method, not to the last digit
        gradient = -Z.T @ (target / (1 + np.exp(target * f))) / 60
        f = f - 600 / (300 + t) * top * Z @ np.linalg.solve(covariance + 25.6 / 60 * top * np.eye(12), gradient)
        mean = mean + 4 / (t + 3) * (f - mean)
    assert model.state_["t"] == 150
    np.testing.assert_allclose(model.decision_function(X), mean, rtol=1e-5, atol=1e-6)


def test_large_batches_are_for_fit_alone():
    """Given passes have batches of 256 and a stream of 64, or of the size that is given, all damped by 0.1."""
    X, y = make_moons(520, noise=0.2, random_state=0)

    def learned(fit, batch_size="auto", precondition="auto"):
        step, schedule = DoublyStep(2.0, 300.0, precondition=precondition), DoublySchedule(batch_size, 6)
        return fit(fixed(lam="auto").set_params(step=step, schedule=schedule)).state_["mean"]

    for fit, size in (
        (lambda model: model.fit(X, y, passes=2), 256),
        (lambda model: model.partial_fit(X, y), 64),
    ):
        np.testing.assert_array_equal(learned(fit), learned(fit, size, 0.1))
    both = learned(lambda model: model.fit(X[:300], y[:300], passes=1).partial_fit(X[300:], y[300:]))
    assert both.shape[0] == 2 + 220 // 64
    assert learned(lambda model: model.fit(X, y), 256).shape[0] == 300
    most, damped = DoublyStep(precondition="auto").damping(4096), DoublyStep(precondition=0.3).damping(4096)
    assert (most, damped) == (0.01, 0.3)


@pytest.mark.parametrize(
    "loss",
    [
        "absolute",
        *(pytest.param(loss, marks=pytest.mark.slow) for loss in ("epsilon_insensitive", "huber", "quantile")),
    ],
)
def test_steps_follow_the_scale_of_the_target(loss):
    X = np.random.default_rng(0).uniform(-3, 3, (600, 1))
    for scale in (1.0, 1e6):  # the penalty too: it shrinks f by its product with the step
        y = scale * np.sin(X[:, 0])
        schedule = DoublySchedule(block_size=32, passes=10)
        model = DoublyStochasticRegressor(loss=loss, random_state=0, schedule=schedule).fit(X[:400], y[:400])
        assert model.score(X[400:], y[400:]) > 0.8


def test_weights_scale_the_step_away():
    """Weights that are all 1000 must not make the steps 1000 times larger."""
    plain, heavy = (
        DoublyStochasticRegressor(random_state=0, lam=0.0, schedule=DoublySchedule(block_size=32)).fit(X2, yr, weight)
        for weight in (None, np.full(len(yr), 1000.0))
    )
    np.testing.assert_allclose(heavy.predict(X2), plain.predict(X2), rtol=1e-6)


def test_a_recipe_may_have_steps_of_its_own():
    recipe = zoo.make("doubly_svm", eta=3.0, theta0=7.0, average="uniform", precondition=0.0)
    step = fixed(step=(3.0, 7.0, "uniform")).step
    assert recipe.step.get_params() == step.get_params() and zoo.make("doubly_svm").step == "auto"


def test_probabilities_of_a_loss_without():
    """After ``fit`` from held-out rows, on a stream from the scores that rows had before, also in ``partial_fit``."""
    X, y = make_moons(700, noise=0.2, random_state=0)
    model = DoublyStochasticClassifier(schedule=DoublySchedule(64, 64), random_state=0)
    for taught in (clone(model).fit(X[:500], y[:500]), clone(model).partial_fit(X[:500], y[:500])):
        assert -np.log(taught.predict_proba(X[500:])[np.arange(200), y[500:]]).mean() < 0.25  # 0.69 knows nothing


def test_scores_do_not_depend_on_other_outputs():
    """Numbers of the python engine stay the same to the bit when more outputs, or rows, are asked for."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((9, 4))
    for kernel in (kernels.Gaussian(0.3), kernels.Polynomial(gamma=0.2, degree=2)):
        blocks = FeatureBlocks(kernel, 1, 4, 19, "float64", engine.get("python"))
        A = rng.standard_normal((3, blocks.width, 4))
        together = blocks.scores(rows, A)
        for c in range(4):
            np.testing.assert_array_equal(blocks.scores(rows, A[:, :, [c]])[:, 0], together[:, c])
        np.testing.assert_array_equal(blocks.scores(rows[4:5], A)[0], together[4])


def test_tags_say_how_many_rows_an_update_takes():
    assert fixed(schedule=DoublySchedule(batch_size=77)).__sklearn_tags__().rows_per_update == 77
