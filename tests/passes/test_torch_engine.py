"""The torch engine on the processor: the same scores and models as the row-by-row specification."""

import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch_cases import CPU, EACH_ROW, HELD, UPDATES, model, pairs, rows, task

import kernelstream as ks
from kernelstream import losses, updates
from kernelstream.engine import TorchEngine
from kernelstream.estimators import DoublySchedule, DoublyStep, RRFStep
from kernelstream.features import Nystroem, RandomFourier, RawFeatures, TensorSketch
from kernelstream.features.spectra import LowRank, Mixture
from kernelstream.testing import check_streaming
from kernelstream.updates import OGD, AdaGrad, Averaged, NormAdaGrad

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("kind, loss, update", list(pairs()))
def test_equals_the_row_by_row_loop(kind, loss, update):
    """Every loss with every (decay, tau) update, weighted rows, any split, against the python engine in float64."""
    X, y, weight = rows()
    y = task(kind, y)
    want = model(kind, loss, update, "python")
    expected = want.learn(X, y, sample_weight=weight)
    got = model(kind, loss, update, CPU)
    parts = [got.learn(X[a:b], y[a:b], sample_weight=weight[a:b]) for a, b in ((0, 1), (1, 40), (40, 83))]
    if len({part.ndim for part in parts} | {part.shape[-1] for part in parts if part.ndim == 2}) == 1:
        np.testing.assert_allclose(np.concatenate(parts), expected, rtol=1e-8, atol=1e-9)
    scale = want.state_["scale"][:, None]
    np.testing.assert_allclose(got.state_["w"], want.state_["w"] * scale, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(got.state_["memory"], want.state_["memory"], rtol=1e-8, atol=1e-9)
    assert got.state_["t"] == want.state_["t"]


@pytest.mark.parametrize(
    "features",
    [
        RandomFourier(n_components=6, random_state=1),
        Nystroem(n_components=12, random_state=1),
        Nystroem("laplacian", n_components=12, random_state=1),
        TensorSketch(n_components=16, random_state=1),
    ],
    ids=["fourier", "nystroem", "nystroem_laplacian", "tensor_sketch"],
)
@pytest.mark.parametrize("form", ["dense", "csr", "tensor", "float32"])
def test_maps_and_forms_of_rows(features, form):
    """Data-driven maps with their warm-up; arrays, CSR and tensors."""
    X, y, _ = rows(180)
    y = task("binary", y)
    X = X.astype(np.float32) if form == "float32" else X
    given = {"csr": sp.csr_matrix, "tensor": torch.from_numpy}.get(form, lambda X: X)(X)
    want, got = (model("binary", "logistic", "norm_adagrad", engine, features) for engine in ("python", CPU))
    tolerance = 2e-4 if form == "float32" else 1e-8
    np.testing.assert_allclose(got.learn(given, y), want.learn(X, y), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(got.decision_function(given), want.decision_function(X), rtol=tolerance, atol=tolerance)
    assert (got.predict(given) == want.predict(X)).all()


def test_tensors_of_targets_and_weights():
    X, y, weight = rows()
    want = model("regression", "squared", NormAdaGrad(), "python", standardize=True).fit(X, y, sample_weight=weight)
    got = model("regression", "squared", NormAdaGrad(), CPU, standardize=True)
    got.fit(torch.from_numpy(X), torch.from_numpy(y), sample_weight=torch.from_numpy(weight))
    np.testing.assert_allclose(got.predict(torch.from_numpy(X)), want.predict(X), rtol=1e-8)


@pytest.mark.parametrize("refresh", [None, 30])
def test_nogd(refresh):
    X, y, _ = rows(300)
    for cls, target in ((ks.NystroemRegressor, y), (ks.NystroemClassifier, task("multiclass", y))):
        args = {"gamma": 0.5, "budget": 20, "rank": 8, "refresh": refresh, "random_state": 0}
        want = cls(**args, engine="python").fit(X, target, shuffle=False)
        got = cls(**args, engine=CPU)
        for part in np.array_split(np.arange(300), 7):
            got.partial_fit(X[part], target[part])
        np.testing.assert_allclose(got._scores(X), want._scores(X), rtol=1e-6, atol=1e-8)


def test_labels_that_appear_later():
    X, y, _ = rows(120)
    y = np.where(np.arange(120) < 50, task("binary", y), task("multiclass", y) + 5)
    want = model("multiclass", "hinge", NormAdaGrad(), "python").learn(X, y)
    got = model("multiclass", "hinge", NormAdaGrad(), CPU)
    np.testing.assert_allclose(got.learn(X, y), want, rtol=1e-8, atol=1e-10)


def test_state_files_and_other_machines(tmp_path, monkeypatch):
    """The state is up to date whenever it is looked at; a file predicts where there is no torch."""
    X, y, _ = rows(200)
    half = model("regression", "squared", "auto", CPU).fit(X[:100], y[:100])
    twin = pickle.loads(pickle.dumps(half))
    assert np.abs(half.state_["w"]).sum() > 0
    half.partial_fit(X[100:], y[100:])
    twin.partial_fit(X[100:], y[100:])
    np.testing.assert_allclose(half.state_["w"], twin.state_["w"], rtol=1e-12)
    ks.save(half, tmp_path / "model.ks")
    expected = half.predict(X)
    monkeypatch.setattr("kernelstream.engine.device.has_torch", lambda: False)
    loaded = ks.load(tmp_path / "model.ks")
    np.testing.assert_allclose(loaded.predict(X), expected, rtol=1e-9)
    with pytest.raises(ValueError, match="needs PyTorch"):
        loaded.fit(X, y)


@pytest.mark.parametrize(
    "engine, words",
    [
        (TorchEngine("cpu", precision="half"), "precision must be one of tf32"),
        (TorchEngine("cpu", block=0), "block must be an integer"),
        (TorchEngine("nonsense"), "nonsense"),
        ("pytorch", "engine must be one of auto"),
    ],
)
def test_bad_engines(engine, words):
    X, y, _ = rows(20)
    with pytest.raises(ValueError, match=words):
        model("regression", "squared", "auto", engine).fit(X, y)


@pytest.mark.parametrize("spectrum", ["diagonal", Mixture(2), LowRank(2)], ids=["diagonal", "mixture", "low_rank"])
@pytest.mark.parametrize("batch_size", [1, 12])
@pytest.mark.parametrize("loss", ["hinge", "softmax", "squared"])
def test_learned_kernels(loss, batch_size, spectrum):
    """Mini-batches of RRF on the device, batches that span calls, against the python engine."""
    X, y, weight = rows(150)
    kind = losses.get(loss).kind
    y = task(kind, y)
    cls = ks.RRFRegressor if kind == "regression" else ks.RRFClassifier
    args = {"n_components": 10, "spectrum": spectrum, "loss": loss, "random_state": 0}
    args["step"] = RRFStep(batch_size=batch_size)
    want, got = (cls(**args, engine=engine) for engine in ("python", CPU))
    expected = want.learn(X, y, sample_weight=weight)
    cut = [got.learn(X[a:b], y[a:b], sample_weight=weight[a:b]) for a, b in ((0, 120), (120, 131), (131, 150))]
    np.testing.assert_allclose(np.concatenate(cut), expected, rtol=1e-7, atol=1e-9)
    for name in ("w", "G", "theta", "H", "memory"):
        np.testing.assert_allclose(got.state_[name], want.state_[name], rtol=1e-7, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(got._scores(torch.from_numpy(X)), want._scores(X), rtol=1e-7, atol=1e-9)


def test_bad_tensors_leave_the_model_alone():
    X, y, _ = rows(60)
    est = model("regression", "squared", "auto", CPU).fit(X, y)
    before = est.predict(X)
    bad = torch.from_numpy(X.copy())
    bad[3, 1] = torch.nan
    for rows_, words in ((bad, "NaN"), (torch.zeros(5, 7, dtype=torch.float64), "7 features"),
                         (torch.zeros(5, 3), "float64"), (torch.zeros(5, dtype=torch.float64), "2D")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            est.partial_fit(rows_, np.zeros(len(rows_)))
    with pytest.raises(ValueError):
        est.partial_fit(torch.from_numpy(X), y[:-1])
    assert (est.predict(X) == before).all()


def test_every_update_is_covered():
    assert {updates.get(update).name for update in UPDATES + EACH_ROW[1:]} == set(updates.names())


@pytest.mark.parametrize(
    "program, says",
    [
        ("triton_interpreted.py", "equal"),
        ("triton_interpreted_walk.py", "equal"),  # one program, and three that wait for each other
        pytest.param("triton_compiled.py", "compiled", marks=pytest.mark.slow),
    ],
)
def test_triton_programs(program, says):
    """Right in Triton's interpreter; and they compile for a GPU, which the interpreter does not tell."""
    pytest.importorskip("triton")
    command = [sys.executable, Path(__file__).with_name(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout.strip()
    if "left out" in said:
        pytest.skip(said)  # all other programs were right
    assert said == says, done.stderr


@pytest.mark.parametrize(
    "estimator",
    [
        ks.FeatureClassifier(RandomFourier(n_components=8), update="norm_adagrad", random_state=0),
        ks.FeatureRegressor(RandomFourier(n_components=8), update="norm_adagrad", standardize=True, random_state=0),
        ks.NystroemClassifier(budget=20, update="norm_adagrad", random_state=0),
        ks.OnlineRidge(RandomFourier(n_components=8), random_state=0),
        ks.RRFClassifier(8, step=RRFStep(batch_size=8), random_state=0),
        ks.FeatureClassifier(RandomFourier(n_components=8), random_state=0),
        ks.FeatureRegressor(
            RandomFourier(n_components=8), update=Averaged(AdaGrad()), standardize=True, random_state=0
        ),
        ks.NystroemClassifier(budget=20, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_streaming_contract(estimator):
    X, y, _ = rows(150)
    target = y if isinstance(estimator, (ks.FeatureRegressor, ks.OnlineRidge)) else task("multiclass", y)
    check_streaming(estimator, X, target, engines=("python", CPU), rtol=1e-6)


ORDER = "the model depends on the order of the rows; test_streaming_contract shows that weight 0 is a row skipped"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": ORDER for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [
        ks.FeatureClassifier(RandomFourier(n_components=16), engine=CPU, random_state=0),
        ks.FeatureRegressor(RandomFourier(n_components=16), engine=CPU, random_state=0),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("update", [NormAdaGrad(), "auto", Averaged(AdaGrad())], ids=str)
def test_few_rows_on_a_gpu(update):
    """The short way that GPU models take for a few rows: memory and book travel with the weights."""
    pytest.importorskip("triton")
    from kernelstream.engine.torch.formulas import program
    from kernelstream.engine.torch.walk_pass import WalkPass

    X, y, weight = rows(90)
    want = model("regression", "squared", update, "python").fit(X[:10], y[:10])
    got = pickle.loads(pickle.dumps(want)).set_params(engine=CPU)
    loss, update = got._learner.loss(got._state), got._learner.update
    known, exact = program(loss, updates.unwrap(update)[0]), 1e-9
    held = WalkPass(got._learner.ops, got._learner.mapping(got._state), loss, update, got._state, known)
    scores = [held.learn(X[a:b], y[a:b], weight[a:b]) for a, b in ((10, 11), (11, 90))]
    np.testing.assert_allclose(np.concatenate(scores)[:, 0], want.learn(X[10:], y[10:], weight[10:]), rtol=exact)
    np.testing.assert_allclose(held.score(X)[:, 0], want.predict(X), rtol=exact)
    held.sync()
    for name in set(HELD) & set(want.state_):
        np.testing.assert_allclose(got._state[name], want.state_[name], rtol=exact, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(held.book.numpy(), [want.state_["t"], *want.state_["center"]], rtol=exact)


def test_rows_far_from_zero():
    """Distances in float32 do not cancel where all rows are far away from 0."""
    X, y, _ = rows(200)
    X = (X + 300).astype(np.float32)
    got, want = (ks.NystroemRegressor(gamma=0.5, budget=20, update="norm_adagrad", engine=e) for e in (CPU, "python"))
    got.partial_fit(X, y)
    want.partial_fit(X.astype(np.float64), y)
    np.testing.assert_allclose(got.predict(X), want.predict(X.astype(np.float64)), atol=2e-3)


@pytest.mark.parametrize("offset", [1e3, 1e4])
def test_fourier_features_far_from_zero(offset):
    """A centre is taken off rows of float32: their scores are as exact as those of rows about 0."""
    X, y, _ = rows(200)
    X = (X + offset).astype(np.float32)
    features = RandomFourier(gamma=0.5, n_components=20, random_state=1)
    for make in (
        lambda engine: ks.FeatureRegressor(features, update="norm_adagrad", engine=engine, random_state=0),
        lambda engine: ks.OnlineRidge(features, engine=engine),
    ):
        got, want = make(CPU), make("python")
        np.testing.assert_allclose(got.learn(X, y), want.learn(X.astype(np.float64), y), atol=3e-6)
        np.testing.assert_allclose(got.predict(X), want.predict(X.astype(np.float64)), atol=3e-6)


def test_the_centre_moves_with_the_rows():
    """Features of near and far rows in turn, against the same frequencies in float64."""
    from kernelstream.engine.torch.rrf import Batches
    from kernelstream.features.fourier import FourierMapping

    X, _, _ = rows(60)
    W = np.random.default_rng(1).standard_normal((3, 20)).astype(np.float32)
    features = CPU.ops().device_map(FourierMapping(W))
    learned = SimpleNamespace(W=torch.from_numpy(W), middle=torch.zeros(3))  # all that the angles depend on
    for offset in (0.0, 1e4, -3e3, 0.0):
        near = (X + offset).astype(np.float32)
        features.look(near)
        P = near.astype(np.float64) @ W.astype(np.float64)
        want = np.concatenate([np.cos(P), np.sin(P)], axis=1) / np.sqrt(20)
        np.testing.assert_allclose(features(torch.from_numpy(near)).numpy(), want, atol=1e-6)
        np.testing.assert_allclose(np.cos(Batches._angles(learned, torch.from_numpy(near), 1.0)), np.cos(P), atol=5e-6)


def test_doubly_stochastic_far_from_zero():
    X, y, _ = rows(300)
    X = (X + 1e4).astype(np.float32)
    args = {"gamma": 0.5, "schedule": DoublySchedule(40, 24, passes=3), "step": DoublyStep(0.5), "random_state": 3}
    got = ks.DoublyStochasticRegressor(**args, engine=CPU).fit(X, y)
    # the same weights on features in float64, of the same frequencies
    blocks, A = got._learner.descent(got._state).blocks, got._state["mean"]
    want = np.full((len(X), 1), got._state["offset"])
    for i, weights in enumerate(A):
        P = X.astype(np.float64) @ blocks.random_part(i).astype(np.float64)
        want += np.concatenate([np.cos(P), np.sin(P)], axis=1) @ weights / np.sqrt(P.shape[1])
    np.testing.assert_allclose(got.predict(X), want[:, 0], atol=2e-5)


def test_angles_of_any_size_have_features():
    """Rows as large as are let in: features, scores and forecasts stay finite."""
    X, y, _ = rows(60)
    for dtype, size in ((np.float64, 1e30), (np.float32, 1e14)):
        far = (X * size).astype(dtype)
        est = model("regression", "squared", "norm_adagrad", CPU)
        assert np.isfinite(est.learn(far, y)).all()
        assert np.isfinite(est.predict(far)).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ks.FeatureRegressor(RawFeatures(), update=OGD(0.5), engine=CPU, random_state=0),
        lambda: ks.OnlineRidge(RawFeatures(), engine=CPU),
        lambda: ks.RRFRegressor(8, gamma=1.0, step=RRFStep(batch_size=8), engine=CPU, random_state=0),
        lambda: ks.FeatureRegressor(RawFeatures(), engine=CPU, random_state=0),
        lambda: ks.FeatureRegressor(RawFeatures(), update=Averaged(OGD(0.5)), engine=CPU, random_state=0),
    ],
    ids=["features", "ridge", "rrf", "adagrad", "averaged"],
)
def test_rows_that_lead_beyond_the_range_of_floats(make):
    """Said in words, and the model is as it was, squares and mean too."""
    X, y, _ = rows(120)
    est = make().partial_fit(X[:40], y[:40])
    before, state = est.predict(X), pickle.loads(pickle.dumps(est.state_))
    says = pytest.warns(RuntimeWarning, match="far outside")
    with says, pytest.raises(ValueError, match="beyond the range of floats"):
        est.partial_fit(1e149 * X[40:], 1e149 * y[40:], sample_weight=np.full(80, 1e149))
    np.testing.assert_array_equal(est.predict(X), before)
    for name in HELD:
        if name in state:
            np.testing.assert_array_equal(est.state_[name], state[name])


class Small(type(CPU.ops())):
    """A device to which calls of at most 20 rows are too small, as all small ones are to a GPU."""

    def is_small(self, n, width, columns):
        return n <= 20


@pytest.mark.parametrize("kind", ["features", "nogd", "rrf", "auto", Averaged(OGD(0.5)), Averaged(AdaGrad())], ids=str)
def test_small_calls_by_the_processor(kind, monkeypatch):
    """Weights go to and fro between the processor and the device; the model is that of one engine alone."""
    make = {
        "features": lambda engine: model("multiclass", "softmax", NormAdaGrad(), engine),
        "nogd": lambda engine: ks.NystroemClassifier(gamma=0.5, budget=20, update="norm_adagrad", engine=engine,
                                                  random_state=0),
        "rrf": lambda engine: ks.RRFClassifier(8, loss="softmax", step=RRFStep(batch_size=8), engine=engine,
                                            random_state=0),
    }.get(kind, lambda engine: model("multiclass", "softmax", kind, engine))  # fmt: skip
    X, y, weight = rows(400)
    y = task("multiclass", y)
    ops = Small("cpu", "tf32", 16)
    monkeypatch.setattr("kernelstream.engine.device._ops", lambda *_: ops)
    want, got = make("python"), make(TorchEngine("cpu", block=16))
    labels = {"classes": np.unique(y)}
    expected = want.learn(X, y, **labels, sample_weight=weight)
    cuts = [0, 5, 60, 61, 62, 80, 200, 210, 400]
    scores = []
    for i, (a, b) in enumerate(pairwise(cuts)):
        scores.append(got.learn(X[a:b], y[a:b], **labels, sample_weight=weight[a:b]))
        got.decision_function(X[: 30 if i % 2 else 3])
        bad = y[:30].astype(float)
        with pytest.raises(ValueError, match="NaN"):
            got.partial_fit(np.where(np.arange(30)[:, None] == 29, np.nan, X[:30]), bad)
    np.testing.assert_allclose(np.concatenate(scores), expected, rtol=1e-7, atol=1e-8)
    for part in (X, torch.from_numpy(X[:4]), sp.csr_matrix(X[:4]), sp.csr_matrix(X)):
        of = X[: part.shape[0]]
        np.testing.assert_allclose(got.decision_function(part), want.decision_function(of), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("where", ["processor", "device"])
def test_a_call_that_fails_after_a_move_is_taken_back(where, monkeypatch):
    """Whatever side the weights were on before, and whatever side the call failed on."""
    ops = Small("cpu", "tf32", 16)
    monkeypatch.setattr("kernelstream.engine.device._ops", lambda *_: ops)
    X, y, _ = rows(300)
    est = ks.FeatureRegressor(RawFeatures(), update=OGD(0.5), engine=TorchEngine("cpu", block=16))
    est.partial_fit(X[:100], y[:100])
    if where == "processor":
        est.partial_fit(X[100:110], y[100:110])
    before = est.predict(X)
    for n in (60, 10, 60):
        with pytest.raises(ValueError, match="beyond the range of floats"):
            est.partial_fit(1e149 * X[:n], y[:n], sample_weight=np.full(n, 1e149))
        np.testing.assert_array_equal(est.predict(X), before)
        np.testing.assert_allclose(est.predict(X[:5]), before[:5], rtol=1e-12)  # few rows: on the other side


def test_small_calls_of_a_gpu():
    """The price of a call against the work in it."""
    ops = type(CPU.ops())("cpu", "tf32", 512)
    assert not ops.is_small(1, 2, 2)  # this device is the processor already
    ops.cuda = True
    assert ops.is_small(1, 20_000, 50)
    assert not ops.is_small(4096, 20_000, 50)
    assert not ops.is_small(1, 1 << 20, 784)
