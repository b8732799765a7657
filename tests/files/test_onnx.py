"""ONNX export: the runtime's answers are the model's."""

import numpy as np
import pytest
from reloaded import reloaded
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.linear_model import LogisticRegression

from kernelstream import FeatureClassifier, FeatureRegressor, NystroemClassifier, NystroemRegressor, updates
from kernelstream.columns import Columns, make_stream
from kernelstream.features import Nystroem, RandomFourier, TensorSketch
from kernelstream.onnx import to_onnx

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

X, y = make_moons(600, noise=0.15, random_state=0)
X4, y4 = make_blobs(600, n_features=3, centers=4, cluster_std=2.0, random_state=1)
target = np.sin(2 * X[:, 0]) + 5.0
names = np.array(["ash", "beech", "cedar", "doum"])


def answers(model, rows):
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    return dict(zip(outputs, session.run(None, {"X": rows}), strict=True))


def exact(est):
    """The same model in float64: a Nyström projection costs a float32 model digits that its graph keeps."""
    wide = reloaded(est)
    state = {k: v.astype(np.float64) if getattr(v, "dtype", None) == np.float32 else v for k, v in est.state_.items()}
    wide.state_ = state | {"dtype": "float64"}
    return wide


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "est",
    [
        FeatureClassifier(random_state=0),
        FeatureClassifier(RandomFourier("laplacian", 100), "logistic", random_state=0),
        FeatureClassifier(
            RandomFourier(n_components=64, sampling="orthogonal"), "hinge", updates.Averaged("ogd"), random_state=0
        ),
        FeatureClassifier(loss="softmax", standardize=True, random_state=0),
        FeatureClassifier(Nystroem(n_components=50), "logistic", random_state=0),
        NystroemClassifier(budget=40, loss="logistic", random_state=0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("task", ["binary", "multiclass", "strings"])
def test_classifiers(est, task, dtype):
    rows, labels = (X, y) if task == "binary" else (X4, y4 if task == "multiclass" else names[y4])
    rows = rows.astype(dtype)
    est = clone(est).fit(rows[:400], labels[:400])
    got = answers(to_onnx(est), rows[400:])
    truth = exact(est) if "map_projection" in est.state_ and dtype == np.float32 else est
    np.testing.assert_allclose(got["score"], truth.decision_function(rows[400:]), rtol=1e-5, atol=1e-5)
    certain = (
        np.abs(got["score"]) > 1e-4 if got["score"].ndim == 1 else np.ptp(np.sort(got["score"])[:, -2:], axis=1) > 1e-4
    )
    np.testing.assert_array_equal(np.asarray(got["label"])[certain], truth.predict(rows[400:])[certain])
    assert ("probability" in got) == (est.link_now() is None)  # a link that is learned is not exported
    if "probability" in got:
        np.testing.assert_allclose(got["probability"], truth.predict_proba(rows[400:]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "est",
    [
        FeatureRegressor(random_state=0),
        FeatureRegressor(standardize=True, center=False, random_state=0),
        NystroemRegressor(budget=50, random_state=0),
    ],
    ids=repr,
)
def test_regressors(est, dtype, tmp_path):
    rows = X.astype(dtype)
    est = clone(est).fit(rows[:400], target[:400])
    model = to_onnx(est, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").read_bytes() == model.SerializeToString()
    got = answers(model, rows[400:])
    assert got["prediction"].dtype == dtype
    truth = exact(est) if "map_projection" in est.state_ and dtype == np.float32 else est
    np.testing.assert_allclose(got["prediction"], truth.predict(rows[400:]), rtol=1e-5)


@pytest.mark.parametrize("est", [FeatureRegressor(random_state=0), NystroemRegressor(budget=50, random_state=0)])
def test_columns_that_the_model_scales(est):
    rows = X * [1e-3, 1e4]
    est = clone(est).fit(rows[:400], target[:400])
    assert "x_count" in est.state_
    np.testing.assert_allclose(answers(to_onnx(est), rows[400:])["prediction"], est.predict(rows[400:]), rtol=1e-5)


def test_one_class_and_float_labels():
    est = FeatureClassifier(random_state=0).fit(X, np.full(600, 3))
    assert set(answers(to_onnx(est), X)["label"]) == {3}
    est = FeatureClassifier(random_state=0).fit(X, y + 0.0)
    np.testing.assert_array_equal(answers(to_onnx(est), X)["label"], est.predict(X))
    est = FeatureClassifier(random_state=0).fit(X, y.astype(bool))
    np.testing.assert_array_equal(answers(to_onnx(est), X)["label"], est.predict(X))


def test_what_has_no_onnx_form():
    with pytest.raises(ValueError, match="has no ONNX form"):
        to_onnx(FeatureClassifier(TensorSketch(n_components=32), random_state=0).fit(X, y))
    words = make_stream(Columns(), FeatureClassifier(loss="logistic", random_state=0))
    words.partial_fit([{"town": "Rome" if i % 2 else "Oslo"} for i in range(200)], [i % 2 for i in range(200)])
    with pytest.raises(ValueError, match="encoder of words"):
        to_onnx(words)
    assert to_onnx(words.model_).graph.output[0].name == "label"  # as the error says
    with pytest.raises(ValueError, match="LogisticRegression has no ONNX form"):
        to_onnx(LogisticRegression())
    with pytest.raises(ValueError, match="warm-up"):
        to_onnx(FeatureClassifier(random_state=0).partial_fit(X[:10], y[:10]))
    with pytest.raises(ValueError, match="kernel expansion"):
        to_onnx(NystroemClassifier(budget=5000, gamma=1.0).fit(X, y))
    with pytest.raises(AttributeError, match="before it has learned"):
        to_onnx(FeatureClassifier())
