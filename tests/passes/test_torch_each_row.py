"""AdaGrad and averaging with the torch engine on the processor: the models of the other engines, in every respect."""

import json
import pickle
from collections import defaultdict
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from torch_cases import CPU, EACH_ROW, model, rows, same, task

import kernelstream
from kernelstream import FeatureRegressor, NystroemRegressor, losses
from kernelstream.engine import TorchEngine
from kernelstream.features import Nystroem, Preconditioned, RandomFourier, RawFeatures, TensorSketch
from kernelstream.losses import Loss
from kernelstream.monitor import forget, restart
from kernelstream.updates import OGD, AdaGrad, Averaged, NormAdaGrad

torch = pytest.importorskip("torch")

LOSSES = [
    ("binary", "hinge"), ("binary", "logistic"), ("binary", "squared_hinge"), ("multiclass", "softmax"),
    ("multiclass", "hinge"), ("multiclass", "crammer_singer"), ("regression", "squared"), ("regression", "absolute"),
    ("regression", "epsilon_insensitive"),
]  # fmt: skip


@pytest.mark.parametrize("update", EACH_ROW, ids=str)
@pytest.mark.parametrize("kind, loss", LOSSES)
def test_equals_the_native_engine(kind, loss, update):
    """Scores and model, with weighted rows, rows of weight 0, labels that appear one after the other, any split."""
    X, y, weight = rows(120)
    y = task(kind, y)
    want, got = model(kind, loss, update, "auto"), model(kind, loss, update, CPU)
    want.partial_fit(X, y, sample_weight=weight)
    for a, b in pairwise((0, 1, 2, 40, 83, 120)):
        got.partial_fit(X[a:b], y[a:b], sample_weight=weight[a:b])
    same(got, want)
    expected, scores = (est.learn(X, y, sample_weight=weight) for est in (want, got))
    np.testing.assert_allclose(scores, expected, rtol=1e-11, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(got._scores(X), want._scores(X), rtol=1e-11, atol=1e-12 * np.abs(expected).max())
    same(got, want)


@pytest.mark.parametrize("kind, loss", [("binary", "logistic"), ("multiclass", "softmax"), ("regression", "squared")])
def test_last_bits_in_float32(kind, loss):
    X, y, _ = rows(200)
    X, y = X.astype(np.float32), task(kind, y)
    engine = TorchEngine("cpu", precision="float32", block=16)
    want, got = (model(kind, loss, "auto", engine).partial_fit(X, y) for engine in ("auto", engine))
    assert got.state_["w"].dtype == np.float32
    same(got, want, 1e-5)


@pytest.mark.parametrize(
    "features",
    [
        Nystroem(n_components=12, random_state=1),
        Nystroem("laplacian", n_components=12, random_state=1),
        TensorSketch(n_components=16, random_state=1),
        RawFeatures(),
        Preconditioned(RandomFourier(gamma=0.5, n_components=20, random_state=1), rank=4),
    ],
    ids=["nystroem", "laplacian", "sketch", "raw", "preconditioned"],
)
@pytest.mark.parametrize("update", ["auto", Averaged(AdaGrad())], ids=str)
def test_maps(features, update):
    X, y, _ = rows(260)
    y = task("multiclass", y)
    want, got = (model("multiclass", "softmax", update, engine, features) for engine in ("auto", CPU))
    want.partial_fit(X, y)
    got.partial_fit(X[:90], y[:90])
    got.partial_fit(X[90:], y[90:])
    np.testing.assert_allclose(got.decision_function(X), want.decision_function(X), rtol=1e-8, atol=1e-8)
    for name in want.state_:
        if name.startswith("map_"):  # a step of its own for every weight depends on the basis: it is the same
            np.testing.assert_array_equal(got.state_[name], want.state_[name])


def test_the_default_update():
    """No warning, and AdaGrad with sums of squares that fade, as with the other engines."""
    X, y, _ = rows(60)
    for make in (FeatureRegressor, NystroemRegressor):
        ours, theirs = (make(engine=engine, random_state=0) for engine in (CPU, "python"))
        assert repr(ours._learner.update) == repr(theirs._learner.update) == "AdaGrad(forgetting=0.9997)"
    got = model("regression", "squared", "auto", CPU)
    assert "G" in got.partial_fit(X, y).state_


@pytest.mark.parametrize("update", [NormAdaGrad(), "auto", Averaged(OGD(0.5, lam=0.01)), Averaged(AdaGrad())], ids=str)
def test_states_go_to_and_fro(update, tmp_path):
    """From engine to engine, by set_params, pickle and file; with averaging the mean goes along."""
    X, y, _ = rows(200)
    y = task("multiclass", y)
    want = model("multiclass", "softmax", update, "auto").partial_fit(X, y)
    got = model("multiclass", "softmax", update, CPU).partial_fit(X[:50], y[:50])
    got.set_params(engine="auto").partial_fit(X[50:90], y[50:90])
    got.set_params(engine=CPU).partial_fit(X[90:120], y[90:120])
    kernelstream.save(got, tmp_path / "model.ks")
    got = kernelstream.load(tmp_path / "model.ks").set_params(engine="python").partial_fit(X[120:150], y[120:150])
    got = pickle.loads(pickle.dumps(got.set_params(engine=CPU).partial_fit(X[150:170], y[150:170])))
    got.partial_fit(X[170:], y[170:])
    same(got, want)
    np.testing.assert_allclose(got.decision_function(X), want.decision_function(X), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("react", [forget(0.1), restart()], ids=["forget", "restart"])
def test_reactions_reach_the_device(react):
    """What is changed in the state between two calls counts for the next one."""
    X, y, _ = rows(160)
    models = []
    for engine in ("python", CPU):
        est = model("regression", "squared", "auto", engine).partial_fit(X[:100], y[:100])
        react(est, None)
        models.append(est.partial_fit(X[100:], y[100:]))
    same(models[1], models[0])


def test_a_loss_of_ones_own():
    class Cubic(Loss):
        name, kind, bound = "cubic_each_row", "regression", None

        def value(self, y, f):
            return abs(f - y) ** 3 / 3

        def gradient(self, y, f):
            return np.sign(f - y) * (f - y) ** 2

    X, y, _ = rows(80)
    losses.register(Cubic)
    try:
        with pytest.warns(RuntimeWarning, match="no compiled version"):
            want, got = (model("regression", Cubic(), "auto", engine).learn(X, y) for engine in ("python", CPU))
    finally:
        del losses._base.CATALOGUE.parts["cubic_each_row"]
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


def test_without_a_gpu_the_compiled_loops_do_it():
    """Asked for a GPU that is not there, by engine="torch"; "cpu" by name is taken at its word."""
    ops = TorchEngine().ops()
    X, y, _ = rows(60)
    est = model("regression", "squared", "auto", TorchEngine()).partial_fit(X, y)
    if ops.cuda:
        pytest.skip("there is a GPU")
    assert est._learner.held(est._state).there is None
    est = model("regression", "squared", "auto", CPU).partial_fit(X, y)
    assert est._learner.held(est._state).there is not None


def test_division_of_the_features():
    """Every feature has a program, none more than there are multiprocessors; tiles are powers of 2."""
    pytest.importorskip("triton")
    from kernelstream.engine.torch import walk

    widths, outputs_, programs_ = (1, 5, 1000, 4096, 5000, 16384, 131072, 10**6), (1, 3, 10, 1000), (None, 1, 7)
    for width, outputs, programs, double in product(widths, outputs_, programs_, (False, True)):
        shape = walk.shape_of(width, outputs, 3, double, 132, programs)
        assert 1 <= shape.programs <= 132
        assert (shape.programs - 1) * shape.share < width <= shape.programs * shape.share
        assert shape.share % shape.block == 0 and shape.block & (shape.block - 1) == 0
        assert shape.warps in (4, 8, 16)
        columns = 1 << (outputs - 1).bit_length()
        words = walk.places_read(shape.programs, columns, shape.warps) * columns
        assert words >= shape.programs * columns and (words == 32 or words >= 32 * shape.warps)
        if shape.share == shape.block:
            assert columns * shape.block * 3 * (1 + double) <= walk.RESIDENT or shape.block == 16


def test_the_chosen_number_of_programs_is_among_the_best_measured():
    """On a GPU of 132 multiprocessors, in float32 (benchmarks/results/gpu.json)."""
    pytest.importorskip("triton")
    from kernelstream.engine.torch import walk

    measured = json.loads((Path(__file__).parents[2] / "benchmarks/results/gpu.json").read_text())["adagrad"]["rows"]
    speeds = defaultdict(dict)
    for width, classes, learner, programs, speed, _ in measured:
        if programs is not None and "AdaGrad" in learner:
            speeds[width, classes][programs] = max(speed, speeds[width, classes].get(programs, 0.0))
    assert len(speeds) == 6
    for (width, classes), found in speeds.items():
        chosen = walk.shape_of(width, 1 if classes == 2 else classes, 2, False, 132).programs
        assert found[chosen] > 0.95 * max(found.values()), (width, classes, chosen, found)
