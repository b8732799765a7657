"""Life with scikit-learn: searches, pipelines, cross-validation, clones, callbacks."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import make_moons
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kernelstream import BinningClassifier, FeatureClassifier, FeatureRegressor, losses
from kernelstream.features import RandomFourier
from kernelstream.kernels import Gaussian, Laplacian
from kernelstream_papers.rivals import FixedFeatureClassifier, KernelSDCAClassifier

X, y = make_moons(600, noise=0.15, random_state=0)
target = np.sin(2 * X[:, 0]) + X[:, 1]
small = RandomFourier(n_components=60)


def test_grid_search_over_nested_parameters():
    grid = {
        "features__n_components": [5, 60],
        "features__kernel": [Gaussian(0.5), Laplacian(0.5)],
        "loss": ["hinge", losses.Logistic()],
    }
    search = GridSearchCV(FeatureClassifier(RandomFourier(), random_state=0), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    assert search.best_params_["features__n_components"] == 60
    deep = {"features__kernel__gamma": [0.001, 1.0]}
    search = GridSearchCV(FeatureRegressor(RandomFourier(Gaussian(), 60), random_state=0), deep, cv=3).fit(X, target)
    assert search.best_params_ == {"features__kernel__gamma": 1.0}


def test_pipelines():
    model = make_pipeline(StandardScaler(), FeatureClassifier(RandomFourier(gamma=1.0), random_state=0))
    assert cross_val_score(model, X * [1, 1000], y, cv=4).mean() > 0.9
    # the map alone, in front of somebody else's classifier
    model = make_pipeline(StandardScaler(), RandomFourier(gamma=1.0, random_state=0), LogisticRegression())
    assert cross_val_score(model, X, y, cv=4).mean() > 0.9
    assert model.set_params(randomfourier__gamma=3.0).get_params()["randomfourier__gamma"] == 3.0


def test_columns_of_a_frame():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(y, "u", "v")})
    columns = make_column_transformer((StandardScaler(), ["a", "b"]), (OneHotEncoder(sparse_output=False), ["c"]))
    model = make_pipeline(columns, FeatureRegressor(small, random_state=0)).fit(frame, target)
    assert model.score(frame, target) > 0.8


def test_inside_meta_estimators():
    base = FeatureClassifier(small, "logistic", random_state=0)
    three = y + (X[:, 0] > 1.5)
    assert OneVsRestClassifier(base).fit(X, three).score(X, three) > 0.8
    assert BaggingClassifier(base, n_estimators=3, random_state=0).fit(X, y).score(X, y) > 0.9
    voting = VotingClassifier([("a", base), ("b", LogisticRegression())], voting="soft").fit(X, y)
    assert voting.score(X, y) > 0.85
    model = TransformedTargetRegressor(
        FeatureRegressor(small, random_state=0), func=np.sinh, inverse_func=np.arcsinh, check_inverse=False
    )
    assert np.isfinite(model.fit(X, target).predict(X)).all()


# ---------------------------------------------------------------------- callbacks
callback = pytest.importorskip("sklearn.callback")


class Recorder:
    """Counts the parts of a fit, and may stop it."""

    def __init__(self, stop_after=None):
        self.begun, self.ended, self.setups, self.teardowns, self.stop_after, self.scores = 0, 0, 0, 0, stop_after, []

    def setup(self, estimator, context):
        self.setups += 1

    def teardown(self, estimator, context):
        self.teardowns += 1

    def on_fit_task_begin(self, estimator, context):
        self.begun += 1

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.ended += 1
        if fitted_estimator is not None:
            self.scores.append(fitted_estimator.score(X, y))
        return self.stop_after is not None and self.ended >= self.stop_after


def test_callbacks_change_nothing():
    rows, labels = make_moons(3000, noise=0.15, random_state=0)
    plain = FeatureClassifier(small, random_state=0, engine="python").fit(rows, labels)
    recorder = Recorder()
    heard = FeatureClassifier(small, random_state=0, engine="python").set_callbacks(recorder).fit(rows, labels)
    np.testing.assert_array_equal(heard.state_["w"], plain.state_["w"])
    assert (recorder.setups, recorder.teardowns) == (1, 1)
    assert recorder.ended == recorder.begun == 4  # three parts, and the whole
    assert len(recorder.scores) == 3
    assert recorder.scores[-1] > 0.9


@pytest.mark.parametrize("est", [
    FixedFeatureClassifier(small, random_state=0),
    KernelSDCAClassifier(gamma=1.0, tol=0.1, random_state=0),
    BinningClassifier(n_components=20, gamma=1.0, lam=1.0, random_state=0),
], ids=lambda est: type(est).__name__)  # fmt: skip
def test_callbacks_leave_learners_of_all_rows_their_rows(est):
    rows, labels = make_moons(1500, noise=0.15, random_state=0)  # more than the rows between two reports of a stream
    recorder = Recorder()
    heard = clone(est).set_callbacks(recorder).fit(rows, labels)
    assert heard.state_["t"] == 1500
    assert recorder.ended == recorder.begun == 2
    plain = clone(est).fit(rows, labels)
    np.testing.assert_array_equal(heard.decision_function(rows), plain.decision_function(rows))


def test_a_callback_may_stop_a_fit():
    rows, labels = make_moons(5000, noise=0.15, random_state=0)
    est = FeatureClassifier(small, random_state=0).set_callbacks(Recorder(stop_after=2)).fit(rows, labels)
    assert est.state_["t"] == 2000


def test_a_failed_fit_is_torn_down():
    recorder = Recorder()
    est = FeatureClassifier(small, random_state=0).fit(X, y)
    before = est.state_["w"].copy()
    with pytest.raises(ValueError, match="NaN"):
        est.set_callbacks(recorder).fit(np.full((10, 2), np.nan), y[:10])
    assert recorder.setups == recorder.teardowns == 0  # nothing had begun
    recorder.on_fit_task_end = lambda *args, **kwargs: 1 / 0
    with pytest.raises(ZeroDivisionError):
        est.fit(X, y)
    assert recorder.setups == recorder.teardowns == 1
    np.testing.assert_array_equal(est.state_["w"], before)


def test_progress_bar(capsys):
    pytest.importorskip("rich")
    est = FeatureClassifier(small, random_state=0).set_callbacks(callback.ProgressBar())
    est.fit(*make_moons(3000, random_state=0))
    assert est.state_["t"] == 3000
    search = GridSearchCV(FeatureClassifier(small, random_state=0), {"loss": ["hinge", "logistic"]}, cv=2)
    search.set_callbacks(callback.ProgressBar()).fit(X, y)
    assert search.best_score_ > 0.8
