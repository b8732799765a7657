"""Columns of different units: ``standardize="auto"``, families that scale columns themselves, and those that warn."""

import pickle
import statistics
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import kernelstream as ks
from kernelstream import zoo
from kernelstream.estimators import DoublySchedule, DoublyStep
from kernelstream.estimators._contract.scaled import Scaled
from kernelstream.estimators._contract.scaling import APART, WIDE, apart, column_units, units_differ
from kernelstream.features import RandomFourier, TaylorFeatures
from kernelstream.kernels import Gaussian
from kernelstream.testing import check_streaming
from kernelstream_papers import rivals

rng = np.random.default_rng(0)
X = rng.normal(size=(130, 5)) + [0.0, 3.0, -1.0, 0.0, 10.0]
y = np.sin(X[:, 0]) * (X[:, 1] - 3.0) + 0.1 * rng.normal(size=130)
labels = (y > 0).astype(int)
UNITS = np.array([1e-6, 1e-3, 1.0, 1e3, 1e6])
FIRST = 100  # rows by which columns that stay where they are are scaled from then on
FEW = RandomFourier(n_components=20)

STREAMING = {
    "feature": ks.FeatureRegressor(FEW),
    "taylor": ks.FeatureRegressor(TaylorFeatures()),
    "labels": ks.FeatureClassifier(FEW, "logistic"),
    "budget": ks.BudgetRegressor(budget=20),
    "novelty": ks.BudgetOneClass(budget=20),
    "nystroem": ks.NystroemClassifier(budget=20),
    "window": ks.WindowRegressor(rows=50),
    "rrf": ks.RRFClassifier(n_components=10),
    "ridge": ks.OnlineRidge(FEW),
    "arow": ks.AROWClassifier(FEW),
    "newton": ks.NewtonClassifier(FEW),
    "several": ks.MultiKernelClassifier(),
    "several given": ks.MultiKernelRegressor([ks.FeatureRegressor(FEW), ks.BudgetRegressor(budget=10)]),
    "doubly": ks.DoublyStochasticRegressor(gamma="median", step=DoublyStep(eta=0.5), schedule=DoublySchedule(16, 8)),
}


def plain(est):
    """A copy that takes rows as they are."""
    est = clone(est)
    return est.set_params(gamma="median") if "Nystroem" in type(est).__name__ else est.set_params(standardize=False)


def learned(est, rows, n=None):
    """A fitted copy, and its forecasts of the rows before they were learned."""
    model = clone(est).set_params(random_state=0)
    target = labels if hasattr(model, "predict_proba") else y
    classes = {"classes": [0, 1]} if hasattr(model, "predict_proba") else {}
    return model, np.ravel(model.learn(rows[:n], target[:n], **classes))


def by_hand(rows):
    """Deviations of every row from the mean of the first hundred, over theirs."""
    scaled = np.zeros(rows.shape)
    for i, j in np.ndindex(rows.shape):
        seen = [float(v) for v in rows[:FIRST, j]]
        scaled[i, j] = (float(rows[i, j]) - statistics.fmean(seen)) / statistics.pstdev(seen)
    return scaled


HAND = by_hand(X)  # of X * UNITS too


# -------------------------------------------------------------------- the rule
def test_the_rule_is_its_formula(rng):
    rows = rng.normal(size=(41, 6)) * [1.0, 2.0, 0.5, 3.0, 1.0, 0.0]
    rows[:, 4] = rng.random(41) < 0.1  # rare ones
    units = []
    for column in rows.T:
        middle = statistics.median_low(column)
        away = [(v - middle) ** 2 for v in column if v != middle]
        units.append((sum(away) / len(away)) ** 0.5 if away else 0.0)
    assert column_units(rows) == pytest.approx(units, rel=1e-12)
    assert units[4] == 1.0
    assert units[5] == 0.0
    some = units[:5]
    want = statistics.fmean([u * u for u in some]) ** 0.5 / statistics.geometric_mean(some)
    assert apart(np.array(units)) == pytest.approx(want, rel=1e-12)
    assert units_differ(rows) == (want > APART)


def test_the_rule_knows_neither_units_nor_the_kind_of_rows(rng):
    rows = np.where(rng.random((60, 7)) < 0.5, rng.normal(size=(60, 7)), 0.0) * [1, 1, 1, 1, 1, 0, 4]
    assert column_units(sp.csr_array(rows)) == pytest.approx(column_units(rows), rel=1e-15)
    ratio = apart(column_units(rows))
    for size in (1e-200, 1e140):
        assert apart(column_units(rows * size)) == pytest.approx(ratio, rel=1e-9)
    assert apart(np.zeros(3)) == 1.0
    assert not units_differ(np.ones((50, 3)))


def test_one_column_that_outweighs_hundreds_is_seen(rng):
    rows = rng.normal(size=(100, 300))
    assert not units_differ(rows)
    rows[:, 17] *= 1e4
    assert units_differ(rows)


# -------------------------------------------------------------------- what it does
@pytest.mark.parametrize("name", STREAMING)
def test_units_do_not_matter(name):
    """Rows in very different units are learned as rows that were scaled by hand."""
    est = STREAMING[name]
    model, got = learned(est, X * UNITS)
    _, want = learned(plain(est), HAND)
    assert "x_count" in model.state_
    size = 1e-6 * np.abs(want).max()
    assert got[FIRST:] == pytest.approx(want[FIRST:], rel=1e-6, abs=size)


@pytest.mark.parametrize(
    ("name", "engine"), [*((name, "auto") for name in STREAMING), ("labels", "python"), ("window", "python")]
)
def test_columns_of_one_unit_are_left_alone(name, engine):
    est = clone(STREAMING[name]).set_params(engine=engine)
    model, got = learned(est, X)
    other, want = learned(plain(est), X)
    assert np.array_equal(got, want)
    ours, theirs = model.state_, other.state_
    skipped = {key for key in {*ours, *theirs} if "warm" in key}  # where there was nothing else to wait for
    assert ours.keys() - skipped == theirs.keys() - skipped
    assert all(np.array_equal(ours[key], theirs[key]) for key in ours.keys() - skipped)


@pytest.mark.usefixtures("short_warm_up")
@pytest.mark.parametrize("name", ["labels", "budget", "nystroem", "window"])
def test_the_streaming_contract(name):
    est = STREAMING[name]
    target = labels if hasattr(est, "predict_proba") else y
    check_streaming(est, (X * 10.0 ** np.arange(-2, 3))[:40], target[:40], chunks=(7,))


@pytest.mark.parametrize("name", ["feature", "nystroem", "several", "doubly"])
def test_row_by_row_in_single_precision(name):
    est = clone(STREAMING[name]).set_params(random_state=0)
    rows, target = (X * UNITS).astype(np.float32), labels if hasattr(est, "predict_proba") else y
    classes = {"classes": [0, 1]} if hasattr(est, "predict_proba") else {}
    whole, single = clone(est), clone(est)
    want = np.ravel(whole.learn(rows, target, **classes))
    got = [float(np.ravel(single.learn(rows[i : i + 1], target[i : i + 1], **classes))[0]) for i in range(len(rows))]
    assert got == pytest.approx(want, rel=1e-4, abs=1e-5 * np.abs(want).max())
    assert "x_count" in single.state_


def test_the_user_has_the_last_word():
    for forced in (True, False):
        model, _ = learned(ks.FeatureRegressor(FEW, standardize=forced), X * (1.0 if forced else UNITS))
        assert ("x_count" in model.state_) == forced
    with pytest.raises(ValueError, match="standardize must be True, False or 'auto', got 'yes'"):
        learned(ks.BudgetRegressor(standardize="yes"), X)


@pytest.mark.parametrize(
    "est",
    [
        ks.FeatureRegressor(RandomFourier(gamma=1.0)),
        ks.FeatureRegressor("raw"),
        ks.BudgetRegressor(gamma=1.0),
        ks.BudgetRegressor(Gaussian(0.5)),
        ks.RRFRegressor(gamma=1.0),
        ks.MultiKernelRegressor([ks.BudgetRegressor(gamma=1.0)]),
        ks.BudgetRegressor("chi2"),
        ks.MultiKernelRegressor([ks.BudgetRegressor(), ks.BudgetRegressor("chi2")]),
        ks.CellsRegressor(4),
        ks.NystroemRegressor(Gaussian("median")),
    ],
    ids=repr,
)
def test_a_width_that_was_given_means_the_rows_as_they_are(est):
    rows = np.abs(X) * [1.0, 1.0, 1.0, 100.0, 1.0]
    model, got = learned(est, rows)
    _, want = learned(est if isinstance(est, ks.NystroemRegressor) else plain(est), rows)
    assert "x_count" not in model.state_
    assert np.array_equal(got, want)


def test_hashed_grids_are_scaled_always():
    est = ks.CellsRegressor(4, "hashed", random_state=0)
    assert np.array_equal(learned(est, X)[1], learned(clone(est).set_params(standardize=True), X)[1])


def test_the_decision_is_made_once():
    model, _ = learned(ks.FeatureRegressor(FEW), X)
    model.learn(X * UNITS, y)
    assert "x_count" not in model.state_


def test_few_rows_of_fit_decide():
    model = ks.BudgetRegressor(random_state=0).fit(X[:20] * UNITS, y[:20])
    assert "x_count" in model.state_
    assert model.state_["warm_rows"] == 0


def test_a_glitch_among_the_first_rows_decides_nothing():
    rows = X.copy()
    rows[30, 2] = 1e9
    model, _ = learned(ks.FeatureRegressor(FEW), rows)
    assert "x_count" not in model.state_


# -------------------------------------------------------------------- fit of the doubly stochastic learners
QUICK = {"gamma": "median", "step": DoublyStep(eta=0.5), "schedule": DoublySchedule(64, 16), "random_state": 0}


@pytest.mark.parametrize(
    "est",
    [ks.DoublyStochasticClassifier(**QUICK), ks.DoublyStochasticRegressor(**QUICK),
     ks.DoublyStochasticOneClass(**QUICK), ks.DensityRatioEstimator(**QUICK)],
    ids=lambda est: type(est).__name__,
)  # fmt: skip
def test_fit_scales_all_rows_alike(est):
    """Rows learned and rows asked for by one formula: deviations from the mean of the rows of ``fit``, over theirs."""
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    got, want = clone(est).fit(X * UNITS, labels), plain(est).fit(scaled, labels)
    assert got._scores(X[:50] * UNITS) == pytest.approx(want._scores(scaled[:50]), rel=1e-6, abs=1e-8)
    if hasattr(est, "predict_proba"):
        p, q = got.predict_proba(X * UNITS), want.predict_proba(scaled)
        assert p == pytest.approx(q, abs=0.05)  # the model that learns the link scales as well, by its own rows
        sparse = clone(est).fit(sp.csr_array(X * UNITS), labels)
        assert sparse.predict_proba(X[:50] * UNITS) == pytest.approx(got.predict_proba(X[:50] * UNITS), rel=1e-9)


# -------------------------------------------------------------------- sparse rows
@pytest.mark.parametrize("name", ["labels", "budget", "several given", "doubly"])
def test_sparse_rows_are_learned_as_dense_ones(name, rng):
    rows = np.where(rng.random(X.shape) < 0.6, X, 0.0) * UNITS
    model, got = learned(STREAMING[name], sp.csr_array(rows))
    other, want = learned(STREAMING[name], rows)
    assert "x_count" in model.state_
    assert got == pytest.approx(want, rel=1e-9, abs=1e-12)
    assert model._scores(sp.csr_array(rows)) == pytest.approx(other._scores(rows), rel=1e-9, abs=1e-12)


def test_wide_sparse_rows_of_different_units_are_not_made_dense(rng):
    rows = sp.random_array((120, WIDE + 1), density=0.02, rng=rng, format="csr")
    rows.data += 1.0
    target = np.arange(120.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ks.FeatureRegressor(FEW, random_state=0).learn(rows, target)
    rows = sp.csr_array(rows * np.where(np.arange(WIDE + 1) == 7, 1e6, 1.0))
    with pytest.warns(UserWarning, match=r"different units: 7 \(.*MaxAbsScaler"):
        model = ks.FeatureRegressor(FEW, random_state=0).fit(rows, target)
    assert "x_count" not in model.state_


def test_true_still_refuses_sparse_rows():
    with pytest.raises(ValueError, match="would make sparse rows dense"):
        ks.BudgetRegressor(standardize=True).fit(sp.csr_array(X), y)


# -------------------------------------------------------------------- copies, files
@pytest.mark.parametrize("first", [3, 60])
def test_a_call_that_fails_at_the_decision_leaves_the_model_as_it_was(first, monkeypatch):
    est = ks.FeatureRegressor(FEW, random_state=0)
    model, _ = learned(est, X * UNITS, first)
    before = pickle.dumps(model.state_)

    def fail(self, state, X):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Scaled, "warn", fail)
        with pytest.raises(KeyboardInterrupt):
            model.learn(X[first:] * UNITS, y[first:])
    assert pickle.dumps(model.state_) == before
    model.learn(X[first:] * UNITS, y[first:])
    assert np.array_equal(model.predict(X * UNITS), learned(est, X * UNITS)[0].predict(X * UNITS))


def test_models_that_scale_cannot_be_merged():
    def half(rows, target):
        return ks.OnlineRidge(FEW, random_state=0).fit(rows, target)

    with pytest.raises(ValueError, match="scale the columns beforehand"):
        half(X[:80] * UNITS, y[:80]).merge(half(X[80:] * UNITS, y[80:]))


# -------------------------------------------------------------------- members, recipes
def test_members_leave_the_scaling_to_the_whole():
    member = ks.FeatureRegressor(FEW)
    model, _ = learned(ks.MultiKernelRegressor([member]), X * UNITS)
    assert "x_count" in model.state_
    assert "x_count" not in model.learners_[0].state_
    assert not model.learners_[0].standardize
    with pytest.raises(ValueError, match="set standardize of the MultiKernelRegressor"):
        learned(ks.MultiKernelRegressor([clone(member).set_params(standardize=True)]), X)


def test_recipes_of_papers_take_rows_as_they_come():
    ours = {"auto", "column_cells", "random_binning_online", "window"}
    for name in zoo.names():
        recipe = zoo.get(name)
        made = zoo.make(name, recipe.tasks[0])
        if "standardize" in made.get_params(deep=False):
            assert made.standardize == ("auto" if name in ours else False), name
    for value in (True, "auto"):
        assert zoo.make("fogd", standardize=value).standardize == value
    nogd = zoo.make("nogd", "regression", eta=0.1, random_state=0)
    assert (nogd.kernel, nogd.gamma) == ("gaussian", "median")
    assert "x_count" not in nogd.fit(X * UNITS, y).state_


# -------------------------------------------------------------------- families without the parameter
BINARY = 2.0 ** np.array([-20, -10, 0, 10, 20])  # units that change no digit


@pytest.mark.parametrize(
    "est",
    [ks.BinningRegressor(n_components=16, random_state=0),
     ks.FalkonRegressor(n_centers=20, random_state=0), ks.CellsRegressor(8, random_state=0),
     ks.KernelRegressor(size="small", random_state=0)],
    ids=lambda est: type(est).__name__,
)  # fmt: skip
def test_families_that_scale_columns_themselves(est):
    got, want = clone(est).fit(X * BINARY, y), clone(est).fit(X, y)
    assert got.predict(X * BINARY) == pytest.approx(want.predict(X), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(
    "est",
    [ks.KernelAWV(), rivals.ProsNKons(), rivals.KernelSDCARegressor(tol=0.1),
     rivals.FixedFeatureRegressor(FEW),
     ks.BinningRegressor(gamma="median", n_components=8), ks.FalkonRegressor(gamma="median", n_centers=20),
     ks.DoublyStochasticGP(variance_features=8, noise=0.1, **QUICK)],
    ids=lambda est: type(est).__name__,
)  # fmt: skip
def test_the_others_name_the_columns(est):
    with pytest.warns(UserWarning, match=r"different units: 4 \([0-9.]+e\+0[56]\), 3 .* beside 1 .*, 0 \("):
        clone(est).fit(X * UNITS, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(est).fit(X, y)


def test_columns_whose_squares_are_nothing_are_named(rng):
    """Numbers around 1e-300 seem to be constant: a warning says so, and 1e-140 is seen as it is."""
    X = np.c_[rng.standard_normal(300), rng.standard_normal(300)]
    y = (X[:, 0] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ks.FeatureClassifier(random_state=0).fit(X * [1e-140, 1], y).score(X * [1e-140, 1], y) > 0.9
        ks.FeatureClassifier(random_state=0).fit(X * [0.0, 1], y)
    for way in ("fit", "partial_fit"):
        with pytest.warns(UserWarning, match="column 0: numbers that vary by less than"):
            getattr(ks.FeatureClassifier(random_state=0), way)(X * [1e-300, 1], y)
