"""python = native for every loss, update and strategy of the registries, on rows that are new in every run.

A failure prints its seed; ``KERNELSTREAM_SEED=... pytest tests -k parity`` runs the same rows again. A part without a
compiled twin is learned by the python engine's pass under either name, and passes.
"""

import os
import secrets
import zlib

import numpy as np
import pytest
import scipy.sparse as sp

import kernelstream as ks
from kernelstream import budgets, engine, losses, updates
from kernelstream.features import RandomFourier
from kernelstream.testing.streaming import assert_same_scores, assert_same_state

pytestmark = pytest.mark.skipif(not engine.has_native(), reason="needs the compiled core")

SEED = int(os.environ.get("KERNELSTREAM_SEED") or secrets.randbits(31))
KINDS = {name: losses.get(name).kind for name in losses.names()}


class Stream:
    """Rows of a random number, width and form, their targets, weights, and a random split into calls.

    No two rows are the same and no two weights: equal coefficients would make ties, which rounding decides.
    """

    def __init__(self, what, kind):
        rng = np.random.default_rng([SEED, zlib.crc32(what.encode())])
        n, d = int(rng.integers(12, 25)), int(rng.integers(1, 5))
        X = rng.normal(size=(n, d))
        f = np.sin(2 * X[:, 0]) + 0.5 * X[:, -1] + 0.3 * rng.normal(size=n)
        self.y = f if kind == "regression" else np.digitize(f, [0.0] if kind == "binary" else [-0.5, 0.4])
        some = (np.abs(X) > 0.3) | (np.arange(d) == 0)
        self.X = sp.csr_array(np.where(some, X, 0.0)) if rng.random() < 0.3 else X
        self.weight = rng.uniform(0.5, 1.5, n) * (rng.random(n) > 0.05)
        self.budget = int(rng.integers(2, 7))
        self.gamma = float(rng.uniform(0.5, 2.0))
        self.cuts = np.sort(rng.choice(np.arange(1, n), rng.integers(0, 4), replace=False))
        self.classes = {} if kind == "regression" else {"classes": np.unique(self.y)}

    def learned(self, est, split):
        parts = np.split(np.arange(len(self.y)), self.cuts if split else [])
        scores = [est.learn(self.X[p], self.y[p], sample_weight=self.weight[p], **self.classes) for p in parts]
        return np.concatenate(scores)


def compare(what, kind, make, rtol=1e-7):
    """Learn with both engines; False where the parts do not go together, which both must say in the same words."""
    stream, results, refusals = Stream(what, kind), [], []
    what = f"{what} (KERNELSTREAM_SEED={SEED})"
    for name in ("python", "native"):
        est = make(stream).set_params(engine=name)
        try:
            scores = stream.learned(est, split=name == "native")
        except ValueError as error:
            refusals.append(str(error))
        else:
            results.append((est, scores))
    if refusals:
        assert not results and refusals[0] == refusals[1], f"{what}: one engine refuses: {refusals}"
        return False
    (one, a), (two, b) = results
    assert np.isfinite(a).all(), what
    if hasattr(one, "learners_"):  # votes of scores next to 0 are rounded up or down; the learners are the same
        score = "predict" if kind == "regression" else "decision_function"
        for learners in zip(one.learners_, two.learners_, strict=True):
            # their functions: coefficients of vectors that nearly depend on each other say more of rounding
            assert_same_scores(*(getattr(learner, score)(stream.X) for learner in learners), rtol, what)
            np.testing.assert_array_equal(*(np.asarray(learner.support_vectors_) for learner in learners), err_msg=what)
        return True
    if max(np.abs(a).max(), np.abs(b).max()) > 1e-12:  # else there is nothing but rounding
        assert_same_scores(a, b, rtol, what)
    if hasattr(one, "dual_coef_"):  # coefficients and their common factor may be split differently: the product counts
        held = [{"alpha": est.dual_coef_, "support": np.asarray(est.support_vectors_)} for est in (one, two)]
        assert_same_state(*held, 100 * rtol, what)
    else:
        assert_same_state(one.state_, two.state_, 100 * rtol, what)
    return True


@pytest.fixture(autouse=True)
def blocks(monkeypatch, request):
    """Rows that the native pass of expansions takes in one go: by lot, too."""
    rng = np.random.default_rng([SEED, zlib.crc32(request.node.name.encode())])
    monkeypatch.setattr(engine.get("native").Expansion, "block", int(rng.integers(1, 30)))


def of_kind(kind, classifier, regressor):
    return regressor if kind == "regression" else classifier


# ---------------------------------------------------------------- the linear pass
def features(loss, update):
    cls = of_kind(KINDS[loss], ks.FeatureClassifier, ks.FeatureRegressor)
    return lambda s: cls(RandomFourier(gamma=s.gamma, n_components=12), loss, update, random_state=0)


def landmarks(loss, update):
    cls = of_kind(KINDS[loss], ks.NystroemClassifier, ks.NystroemRegressor)
    return lambda s: cls(gamma=s.gamma, budget=s.budget, loss=loss, update=update, random_state=0)


@pytest.mark.parametrize("family", [features, landmarks], ids=lambda f: f.__name__)
def test_parity_of_losses_and_updates(family):
    served = {
        (loss, update)
        for loss in losses.names()
        for update in updates.names()
        if compare(f"{family.__name__}, {loss}, {update}", KINDS[loss], family(loss, update))
    }
    assert {loss for loss, _ in served} == set(losses.names()), SEED
    assert family is not features or {update for _, update in served} == set(updates.names()), SEED


# ---------------------------------------------------------------- expansions
@pytest.mark.parametrize("strategy", budgets.names())
def test_parity_of_strategies(strategy):
    """With a quarter of the losses and updates that go with it, others in every run."""
    pairs = [(loss, update) for loss in losses.names() for update in updates.names()]
    order = np.random.default_rng([SEED, zlib.crc32(strategy.encode())]).permutation(len(pairs))
    served = 0
    for tried, (loss, update) in enumerate(pairs[i] for i in order):
        if served and 4 * tried >= len(pairs):
            break
        cls = of_kind(KINDS[loss], ks.BudgetClassifier, ks.BudgetRegressor)
        served += compare(
            f"{strategy}, {loss}, {update}",
            KINDS[loss],
            lambda s, cls=cls, loss=loss, update=update: cls(
                gamma=s.gamma, budget=s.budget, strategy=strategy, loss=loss, update=update, random_state=0
            ),
        )
    assert served, f"{strategy} goes with no loss and update"


@pytest.mark.parametrize("strategy", budgets.names())
def test_parity_of_ensembles(strategy):
    """Several expansions in one pass, where the strategy can be pooled."""
    for kind, loss, cls, multi in (
        ("binary", "hinge", ks.BudgetClassifier, ks.MultiKernelClassifier),
        ("multiclass", "hinge", ks.BudgetClassifier, ks.MultiKernelClassifier),
        ("regression", "epsilon_insensitive", ks.BudgetRegressor, ks.MultiKernelRegressor),
    ):
        compare(
            f"ensemble, {strategy}, {kind}",
            kind,
            lambda s, cls=cls, multi=multi, loss=loss: multi(
                [cls(gamma=g, budget=s.budget, strategy=strategy, loss=loss, update="ogd") for g in (0.3, s.gamma)],
                random_state=0,
            ),
        )


# ---------------------------------------------------------------- passes with a step of their own
def test_parity_of_learned_features_and_newton():
    learned = [
        compare(
            f"learned, {loss}",
            kind,
            lambda s, loss=loss, kind=kind: of_kind(kind, ks.RRFClassifier, ks.RRFRegressor)(
                6, gamma=s.gamma, loss=loss, random_state=0
            ),
        )
        for loss, kind in KINDS.items()
    ]
    newton = [
        compare(
            f"newton, {loss}, {diagonal}",
            kind,
            lambda s, loss=loss, diagonal=diagonal: ks.NewtonClassifier(
                RandomFourier(gamma=s.gamma, n_components=6), loss, diagonal=diagonal, random_state=0
            ),
        )
        for loss, kind in KINDS.items()
        for diagonal in (False, True)
        if kind != "regression"
    ]
    assert any(learned) and any(newton)
