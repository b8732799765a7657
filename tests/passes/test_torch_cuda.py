"""The torch engine on a GPU, against the engines of the processor; left out where torch sees none."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import kernelstream as ks
from kernelstream import losses
from kernelstream.core import philox
from kernelstream.engine import TorchEngine
from kernelstream.estimators import DoublySchedule, DoublyStep, RRFStep
from kernelstream.features import RandomFourier
from kernelstream.updates import OGD, AdaGrad, Averaged, NormAdaGrad

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)
import torch_cases  # noqa: E402
from torch_cases import task  # noqa: E402
from triton_interpreted_pairs import PAIRS  # noqa: E402

GPU = TorchEngine("cuda", block=64)


def rows(n=300):
    return torch_cases.rows(n, 5)


def model(loss, update, engine, D=24):
    kind = losses.get(loss).kind
    features = RandomFourier(gamma=0.5, n_components=D, random_state=1)
    cls = ks.FeatureRegressor if kind == "regression" else ks.FeatureClassifier
    return cls(features, loss, update, engine=engine, random_state=0)


@pytest.mark.parametrize("loss, update", PAIRS, ids=str)
def test_equals_the_row_by_row_loop(loss, update):
    """float64, weighted rows, calls that end inside a block."""
    X, y, weight = rows()
    y = task(losses.get(loss).kind, y)
    want, got = model(loss, update, "python"), model(loss, update, GPU)
    expected = want.learn(X, y, sample_weight=weight)
    got.learn(X[:20], y[:20], sample_weight=weight[:20])
    rest = got.learn(X[20:], y[20:], sample_weight=weight[20:])
    np.testing.assert_allclose(rest, expected[20:], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(
        got.state_["w"] * got.state_["scale"][:, None],
        want.state_["w"] * want.state_["scale"][:, None],
        rtol=1e-8,
        atol=1e-9,
    )
    np.testing.assert_allclose(got.state_["memory"], want.state_["memory"], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(got.decision_function(X) if hasattr(got, "classes_") else got.predict(X),
                               want.decision_function(X) if hasattr(want, "classes_") else want.predict(X),
                               rtol=1e-8, atol=1e-9)  # fmt: skip


@pytest.mark.parametrize("precision, tolerance", [("float32", 1e-4), ("tf32", 0.02)])
@pytest.mark.parametrize("loss", ["logistic", "softmax", "squared"])
@pytest.mark.parametrize("form", ["tensor", "array", "csr"])
def test_precisions(precision, tolerance, loss, form):
    """float32 rows, more of them than are brought at once, 600 features: the width is no multiple of a tile."""
    X, y, weight = rows(2 * 32 * 64 + 100)
    X = X.astype(np.float32)
    y = task(losses.get(loss).kind, y)
    given = {"tensor": lambda X: torch.from_numpy(X).cuda(), "array": lambda X: X, "csr": sp.csr_matrix}[form](X)
    want, got = (
        model(loss, NormAdaGrad(), engine, 300) for engine in ("auto", TorchEngine("cuda", precision, block=64))
    )
    expected, scores = (
        est.learn(A, y, sample_weight=weight) for est, A in ((want, X.astype(np.float64)), (got, given))
    )
    known = np.isfinite(expected)  # labels that have not appeared yet have a score of -inf
    assert (np.isfinite(scores) == known).all()
    assert np.abs(scores[known] - expected[known]).max() < tolerance
    np.testing.assert_allclose(got.state_["w"], want.state_["w"] * want.state_["scale"][:, None], atol=tolerance)


@pytest.mark.parametrize("programs", [1, 2, 5, 10, 38])
@pytest.mark.parametrize(
    "loss, update",
    [("hinge", "auto"), ("softmax", "auto"), ("one_vs_rest", AdaGrad(0.5)), ("squared", "auto"),
     ("softmax", Averaged(AdaGrad())), ("logistic", Averaged(OGD(0.5, lam=1e-3)))],
    ids=str,
)  # fmt: skip
def test_row_after_row(loss, update, programs, monkeypatch):
    """One program, and some that wait for each other for every row; weighted rows, calls that end inside a block.

    Words of 10 programs for three outputs, and of 38 for one, are more than a warp reads and fewer than there are
    threads.
    """
    from kernelstream.engine.torch.walk_pass import WalkPass

    monkeypatch.setattr(WalkPass, "programs", programs)
    X, y, weight = rows(1500)
    y = task(losses.get(loss).kind, y)
    want, got = (model(loss, update, engine, 300) for engine in ("auto", GPU))
    want.partial_fit(X, y, sample_weight=weight)
    for a, b in pairwise((0, 500, 1201, 1500)):
        got.partial_fit(X[a:b], y[a:b], sample_weight=weight[a:b])
    assert got._learner.held(got._state).there.walk.shape.programs == programs
    for name in ("w", "G", "w_mean", "memory"):
        if name in want.state_:
            # the last call is small: the processor learns it, and a decay is a factor beside its weights
            found, expected = (
                est.state_[name] * (est.state_["scale"][:, None] if name == "w" else 1.0) for est in (got, want)
            )
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11, err_msg=name)


def test_a_wait_in_vain_ends():
    """An error, and the model as it was."""
    X, y, _ = rows(1500)
    est = model("squared", "auto", GPU, 4000).partial_fit(X, y)
    walk = est._learner.held(est._state).there.walk
    assert walk.shape.programs > 1
    before, walk.waits = est.predict(X), 0
    with pytest.raises(RuntimeError, match="timed out"):
        est.partial_fit(X, y)
    np.testing.assert_array_equal(est.predict(X), before)


def test_blocks_of_other_sizes():
    X, y, _ = rows(700)
    y = task("binary", y)
    want = model("hinge", NormAdaGrad(), "python").learn(X, y)
    for block in (16, 100, 512, 1024):
        got = model("hinge", NormAdaGrad(), TorchEngine("cuda", block=block)).learn(X, y)
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9)


def test_frequencies_agree_to_rounding():
    from kernelstream.engine.torch import philox as device

    out = torch.full((1000, 50), torch.nan, device="cuda")
    device.normals(2**63 + 12345, 17, 50, 1000, 2, 0.37, out)
    want = philox.normals(2**63 + 12345, 17, np.arange(50), 1000, 2, 0.37)
    np.testing.assert_allclose(out.cpu().numpy().T, want, rtol=3e-7, atol=1e-7)


@pytest.mark.parametrize("precondition", [0.0, 0.05])
def test_doubly_stochastic(precondition, tmp_path):
    """The model of the device, and its file on the processor."""
    X, y, _ = rows(600)
    X, y = X.astype(np.float32), task("multiclass", y)
    args = {
        "gamma": 0.5, "loss": "softmax", "lam": 1e-3, "schedule": DoublySchedule(64, 32, passes=2),
        "step": DoublyStep(2.0, 20.0, True, precondition), "random_state": 3,
    }  # fmt: skip
    want, got = (ks.DoublyStochasticClassifier(**args, engine=engine).fit(X, y) for engine in ("auto", GPU))
    np.testing.assert_allclose(got.decision_function(X), want.decision_function(X), atol=0.03)
    ks.save(got, tmp_path / "model.ks")
    there = ks.load(tmp_path / "model.ks").set_params(engine="auto")
    np.testing.assert_allclose(there.decision_function(X), got.decision_function(X), atol=0.01)


def test_ridge_and_nystroem():
    X, y, _ = rows(400)
    features = RandomFourier(gamma=0.5, n_components=12, random_state=1)
    want, got = (ks.OnlineRidge(features, engine=engine).learn(X, y) for engine in ("python", GPU))
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)
    args = {"gamma": 0.5, "budget": 20, "rank": 8, "update": "norm_adagrad", "random_state": 0}
    want, got = (ks.NystroemClassifier(**args, engine=engine).fit(X, y > 0)._scores(X) for engine in ("python", GPU))
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("loss", ["hinge", "softmax", "squared"])
def test_learned_kernels(loss):
    X, y, weight = rows(400)
    y = task(losses.get(loss).kind, y)
    cls = ks.RRFRegressor if loss == "squared" else ks.RRFClassifier
    args = {"n_components": 10, "loss": loss, "step": RRFStep(batch_size=32), "random_state": 0}
    want, got = (cls(**args, engine=engine) for engine in ("python", GPU))
    expected, scores = (est.learn(X, y, sample_weight=weight) for est in (want, got))
    np.testing.assert_allclose(scores, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(got.state_["theta"], want.state_["theta"], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("precision", ["tf32", "float32"])
@pytest.mark.parametrize("offset", [1e3, 1e4])
def test_rows_far_from_zero(precision, offset):
    """As exact as rows about 0: see test_precisions."""
    X, y, _ = rows(2000)
    X = (X + offset).astype(np.float32)
    for given in (X, torch.from_numpy(X).cuda()):
        engines = "auto", TorchEngine("cuda", precision)
        want, got = (model("squared", NormAdaGrad(), engine, 300) for engine in engines)
        expected, scores = want.learn(X.astype(np.float64), y), got.learn(given, y)
        assert np.abs(scores - expected).max() < 0.03
        assert np.abs(got.predict(given) - want.predict(X.astype(np.float64))).max() < 0.03


@pytest.mark.parametrize("size", [1e10, 1e14])
def test_rows_as_large_as_are_let_in(size):
    X, y, _ = rows(1000)
    est = model("squared", NormAdaGrad(), TorchEngine("cuda"), 300)
    X = (size * X).astype(np.float32)
    assert np.isfinite(est.learn(X, y)).all()
    assert np.isfinite(est.predict(X)).all()


def test_small_and_large_calls_in_turn():
    """Small ones by the processor: the weights move, and the program goes on with them."""
    X, y, _ = rows(3000)
    want, got = (model("squared", NormAdaGrad(), engine) for engine in ("python", TorchEngine("cuda", block=16)))
    assert got.engine.ops().is_small(100, 48, 5)
    assert not got.engine.ops().is_small(100_000, 48, 5)
    got.engine.ops().is_small = lambda n, width, columns: n <= 20
    cuts = [0, 1, 700, 701, 720, 1500, 1510, 3000]
    try:
        scores = [got.learn(X[a:b], y[a:b]) for a, b in pairwise(cuts)]
    finally:
        del got.engine.ops().is_small
    np.testing.assert_allclose(np.concatenate(scores), want.learn(X, y), rtol=1e-8, atol=1e-9)
