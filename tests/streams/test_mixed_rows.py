"""The default learner on rows as they come: words, dates, gaps and new columns."""

import importlib.util
import pickle

import numpy as np
import pytest
from reloaded import reloaded

import kernelstream as ks
from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.columns import Columns
from kernelstream.estimators._contract.mixed import is_mixed

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.usefixtures("short_searches")

rng = np.random.default_rng(0)
N = 300
FRAME = pd.DataFrame(
    {
        "town": rng.choice(["Rome", "Oslo", "Paris"], N),
        "x": rng.standard_normal(N),
        "day": pd.date_range("2020-01-01", periods=N, freq="h"),
    }
)
LABELS = np.where((FRAME.town == "Rome") ^ (FRAME.x > 0), "a", "b")
NUMBERS = rng.standard_normal(N)
FRAME.loc[5:9, "x"] = np.nan


def small(**more):
    return KernelClassifier(size="small", random_state=0, **more)


def test_what_is_mixed():
    assert is_mixed(FRAME) and is_mixed([{"a": 1}]) and is_mixed({"a": 1}) and is_mixed(np.array([["a", 1]], object))
    assert not is_mixed(np.array([[1.0, np.nan]])) and is_mixed([[1.0, "a"]]) and is_mixed(np.array([["a", "b"]]))
    assert not is_mixed(FRAME[["x"]][20:]) and not is_mixed(np.ones((2, 2))) and not is_mixed([[1.0, 2.0]])


def test_it_is_the_encoder_and_the_learner():
    """Nothing happens between the two: the same forecasts as with an encoder in front of a model of numbers."""
    mixed, plain, encoder = small(), small(), Columns()
    rows = encoder.learn_transform(FRAME, LABELS)
    assert (mixed.learn(FRAME, LABELS) == plain.learn(rows, LABELS)).all()
    assert (mixed.decision_function(FRAME[:20]) == plain.decision_function(encoder.transform(FRAME[:20]))).all()
    assert mixed.columns_.kinds_ == {"town": "category", "x": "number", "day": "date"}


def test_new_columns_and_unknown_words():
    model = small().partial_fit(FRAME[:150], LABELS[:150])
    width = model.n_features_in_
    model.learn([{"town": "Atlantis", "x": 1.0, "new": "word"}], ["a"])
    assert model.n_features_in_ > width
    model.partial_fit(FRAME[150:], LABELS[150:])
    assert model.predict([{"x": 3.0}]).shape == (1,)


def test_gaps_in_numbers_and_kinds(rng):
    X = rng.standard_normal((300, 3))
    X[::7, 1] = np.nan
    model = KernelRegressor(size="small", random_state=0).fit(X, X[:, 0])
    assert model.score(X, X[:, 0]) > 0.9
    hours = pd.DataFrame({"hour": np.arange(500) % 24})
    y = (np.arange(500) % 24 == 13).astype(int)
    told = small(columns={"hour": "category"}).partial_fit(hours, y)
    assert told.columns_.kinds_ == {"hour": "category"}
    with pytest.raises(ValueError, match="columns"):
        small(columns="all").partial_fit(hours, y)


def test_numbers_meet_no_encoder():
    model = small().partial_fit(FRAME[["x"]][20:], LABELS[20:])
    assert model.feature_names_in_.tolist() == ["x"]
    with pytest.raises(AttributeError, match="numbers"):
        _ = model.columns_
    assert small().fit(FRAME, LABELS).fit(FRAME[["x"]][20:], LABELS[20:])._encoder is None


@pytest.mark.parametrize("rising", ["date", "number", "word"])
def test_fit_does_not_mind_the_order_of_time(rising):
    """Rows in the order of a rising column, and permuted: the same answers, nearly."""
    n = 300
    values = {"date": pd.date_range("2024-01-01", periods=n), "number": np.arange(n) * 1e3}
    frame = pd.DataFrame({"n": np.arange(n) % 17.0, "d": values.get(rising, values["date"]), "w": "a"})
    if rising == "word":
        frame["w"] = np.where(np.arange(n) < n // 2, "early", "late")
    y = frame.n + (frame.w == "late") * 3.0
    order = np.random.default_rng(0).permutation(n)
    in_time = KernelRegressor(size="small", random_state=0).fit(frame, y)
    permuted = KernelRegressor(size="small", random_state=0).fit(frame.iloc[order], y[order])
    assert min(in_time.score(frame, y), permuted.score(frame, y)) > 0.98
    kept = KernelRegressor(size="small", random_state=0).fit(frame, y, shuffle=False)  # the stream's way
    streamed = KernelRegressor(size="small", random_state=0).partial_fit(frame, y)
    assert (kept.predict(frame) == streamed.predict(frame)).all()


def test_numbers_of_any_container_make_the_same_model():
    """pandas' own integers and floats, those of Arrow, and masked arrays, whose masked cells are gaps."""
    n = 150
    frame = pd.DataFrame({"a": np.arange(n) % 13, "b": np.arange(n) % 7.0})
    y = frame.a + frame.b

    def fitted(X):
        return KernelRegressor(size="small", random_state=0).fit(X, y)

    want = fitted(frame).predict(frame)
    kinds = [{"a": "Int64", "b": "Float64"}]
    if importlib.util.find_spec("pyarrow"):
        kinds.append({"a": "int64[pyarrow]", "b": "double[pyarrow]"})
    for dtypes in kinds:
        other = frame.astype(dtypes)
        assert (fitted(other).predict(other) == want).all() and not is_mixed(other)
    masked = np.ma.masked_array(frame.to_numpy(), mask=frame.to_numpy() == 5)
    gaps = masked.filled(np.nan)
    assert (fitted(masked).predict(masked) == fitted(gaps).predict(gaps)).all()
    for X, target in ((masked, y), (frame, np.ma.masked_array(y, y > 9))):
        with pytest.raises(ValueError, match="NaN"):
            ks.FeatureRegressor(random_state=0).fit(X, target)


def test_lists_of_words_are_the_array_of_them():
    rows = FRAME[["town", "x"]].to_numpy()
    one, two = small().fit(rows, LABELS), small().fit(rows.tolist(), LABELS)
    np.testing.assert_array_equal(one.predict_proba(rows), two.predict_proba(rows.tolist()))


@pytest.mark.parametrize("column", ["town", "day"])
def test_learners_of_numbers_say_what_words_need(column):
    said = f"column '{column}' holds .*, which is not a number: "
    with pytest.raises(
        ValueError, match=said + r"words, dates and gaps need an encoder, make_stream\(Columns\(\), Feat"
    ):
        ks.FeatureClassifier().fit(FRAME[["x", column]], LABELS)
    began = small().fit(FRAME[["x"]][20:], LABELS[20:])
    with pytest.raises(ValueError, match=said + r"this KernelClassifier started .* columns=\{\}"):
        began.predict(FRAME[["x", column]])
    ready = small(columns={}).fit(FRAME[["x"]][20:], LABELS[20:])
    assert len(ready.learn(FRAME, LABELS)) == N  # as the sentence says


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ([[np.nan, 1.0]], "Input X contains NaN: column 'x0' has a gap in row 0"),
        ([[1.0, 1.0], [1.0, None]], "Input X contains NaN: column 'x1' has a gap in row 1"),
        (np.array([["u", 1.0]], object), "column 'x0' holds 'u', which is not a number"),
        ({"x0": 1.0, "x1": 2.0}, "got dictionaries"),
        ([{"x0": 1.0, "x1": 2.0}], "got dictionaries"),
    ],
)
def test_models_that_began_with_numbers_say_what_words_and_gaps_need(later, said):
    rows = np.random.default_rng(0).normal(size=(N, 2))
    for model, remedy in ((small(), r"this KernelClassifier .*columns=\{\}"), (ks.FeatureClassifier(), "make_stream")):
        if "NaN" in said and isinstance(model, ks.KernelClassifier):  # which fills gaps
            continue
        model.fit(rows, LABELS)
        for call in (model.predict, lambda X, model=model: model.learn(X, LABELS[: len(X)])):
            with pytest.raises(ValueError, match=f"{said}.*: .*{remedy}"):
                call(later)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (FRAME[["x"]].fillna(0).replace(0.0, np.inf), r"contains infinity: column 'x', row \d"),
        (FRAME[["x"]].to_records(index=False), "array of records: pass a data frame"),
        ([[10**400]], "an integer that is too large for a float"),
    ],
)
def test_what_is_no_number_of_a_float_is_named(rows, said):
    model = ks.FeatureClassifier() if "infinity" in said else small()  # which takes infinity for a gap
    model.fit(FRAME[["x"]].fillna(0), LABELS)
    for call in (model.predict, lambda X: model.learn(X, LABELS[: len(X)])):
        with pytest.raises(ValueError, match=said):
            call(rows)
    for targets in ([10**400], [1.0]), ([1.0], [10**400]):  # as a target, and as a weight
        with pytest.raises(ValueError, match="numbers in the range of floats"):
            ks.KernelRegressor().fit([[1.0]], *targets)


@pytest.mark.parametrize("other", [FRAME.to_numpy(), FRAME.rename(columns=str.upper)])
def test_a_table_of_columns_that_are_all_unknown_is_not_learned(other):
    model = small().fit(FRAME, LABELS)
    before = model.predict_proba(FRAME)
    for call in (model.predict, lambda X: model.learn(X, LABELS)):
        with pytest.raises(ValueError, match=r"none of the columns that the model knows.* it knows town"):
            call(other)
    np.testing.assert_array_equal(model.predict_proba(FRAME), before)
    model.learn({"new": 1.0}, LABELS[:1])  # of dictionaries, names may come at any time
    assert "new" in model.columns_.kinds_


def test_a_series_is_a_row():
    model = small().fit(FRAME, LABELS)
    assert model.predict(FRAME.iloc[0]).tolist() == model.predict(FRAME.iloc[:1]).tolist()


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA])
def test_labels_that_are_missing_are_said_to_be(nothing):
    for rows in (FRAME, FRAME[["x"]].fillna(0)):
        with pytest.raises(ValueError, match="y holds a missing label"):
            small().fit(rows, np.array([nothing, *LABELS[1:]], object))


def test_a_target_may_be_a_frame_of_one_column():
    y = FRAME.x.fillna(0.0)
    one, two = (KernelRegressor(size="small", random_state=0).fit(FRAME, target) for target in (y, y.to_frame()))
    np.testing.assert_array_equal(one.predict(FRAME), two.predict(FRAME))
    one, two = (KernelRegressor(size="small", random_state=0).learn(FRAME, target) for target in (y, y.to_frame()))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("rows", [FRAME, FRAME[["x"]].fillna(0.0)])
def test_truth_values_among_objects_are_scored_as_they_are_learned(rows):
    labels = LABELS == "a"
    plain = small().fit(rows, labels)
    objects = small().fit(rows, labels.astype(object))
    assert (
        objects.score(rows, labels.astype(object))
        == plain.score(rows, labels)
        == (plain.predict(rows) == labels).mean()
    )


def test_names_that_come_twice_and_dates_as_labels_are_refused():
    twice = pd.DataFrame(np.ones((9, 3)), columns=["a", "b", "a"])
    for frame in (twice, twice.assign(w="word")):
        for model in (small(), ks.FeatureClassifier(), Columns()):
            with pytest.raises(ValueError, match=r"more than one column named 'a'.*drop"):
                model.fit(frame, np.arange(9) % 2)
    with pytest.raises(ValueError, match=r"dates, which cannot be labels.*astype"):
        small().fit(FRAME, FRAME.day.to_numpy())


def test_names_and_numbers_of_columns_are_those_of_the_frame():
    frame = FRAME.assign(empty=np.nan, late=np.where(np.arange(N) < 40, np.nan, 1.0))[
        ["late", "x", "empty", "town", "day"]
    ]
    for model in (small().fit(frame, LABELS), small().partial_fit(frame, LABELS)):
        for made in (model, reloaded(model), pickle.loads(pickle.dumps(model))):
            assert made.n_features_in_ == 5 and made.feature_names_in_.tolist() == frame.columns.tolist()
            assert made.columns_.width_ == made.state_["n_features"]
    reasons = model.explain(frame[:3])
    assert model.relevance_.names == tuple(frame.columns) == reasons.contributions.names
    assert model.relevance_[2] == 0.0  # of a column without a value
    assert "town" in str(model.relevance_) and reasons.to_frame().columns.tolist() == frame.columns.tolist()
    np.testing.assert_allclose(reasons.to_frame().sum(axis=1), reasons.score - reasons.base)


def test_very_wide_rows_are_warned_about():
    X = np.random.default_rng(0).normal(size=(30, 1001))
    with pytest.warns(UserWarning, match="made for tables of up to 1,000 columns.*FeatureRegressor"):
        KernelRegressor(size="small", random_state=0).fit(X, X[:, 0])


@pytest.mark.parametrize("targets", [LABELS, NUMBERS], ids=["labels", "numbers"])
def test_a_dictionary_in_a_list_goes_the_short_way(targets, monkeypatch):
    """A list of one dictionary and a list of one target are not slower than the two alone, and teach the same."""
    make = KernelClassifier if targets is LABELS else KernelRegressor
    alone, listed = (make(size="small", random_state=0) for _ in range(2))
    rows = FRAME[["town", "x"]].to_dict("records")[20:]
    for model in (alone, listed):
        model.learn(rows[:200], targets[20:220])
    monkeypatch.setattr(Columns, "_checked", None)  # of the long way
    monkeypatch.setattr(make._targets, "check", None)
    for row, target in zip(rows[200:400], targets[220:420].tolist(), strict=True):
        assert alone.learn(row, target) == listed.learn([row], [target])
    assert alone.predict(rows[0]) == listed.predict(rows[:1])


@pytest.mark.parametrize("what", ["cut", "interval"])
def test_intervals_are_words(what, rng):
    """A column cut into intervals, as ``pandas.cut`` gives it, is the column of their names."""
    x = rng.standard_normal(300)
    x[7] = np.nan
    cut = pd.cut(x, [-9, -1, 0, 1, 9])
    column = cut if what == "cut" else pd.arrays.IntervalArray(np.asarray(cut))
    edges = ((-9, -1), (-1, 0), (0, 1), (1, 9))
    names = [next((f"({low}, {high}]" for low, high in edges if low < value <= high), None) for value in x]
    y = np.where(np.abs(np.nan_to_num(x)) < 1, "in", "out")
    frames = [pd.DataFrame({"x": values, "z": np.arange(300) % 7}) for values in (column, names)]
    first, second = (small().learn(frame, y) for frame in frames)
    assert (first == second).all()
    model = small().fit(frames[0], y)
    assert model.columns_.kinds_["x"] == "category" and model.score(frames[0], y) > 0.95


def test_periods_are_dates():
    when = pd.period_range("2020-01-01", periods=50, freq="D")
    first, second = Columns(), Columns()
    rows = first.learn_transform(pd.DataFrame({"when": when}))
    assert (rows == second.learn_transform(pd.DataFrame({"when": when.to_timestamp()}))).all()
    assert first.kinds_ == {"when": "date"}


def test_a_target_that_is_no_number_is_named():
    y = FRAME["x"].to_numpy()[20:].copy()
    y[5] = np.inf
    for make in (lambda: KernelRegressor(size="small").fit(FRAME[20:], y), lambda: Columns().fit(FRAME[20:], y)):
        with pytest.raises(ValueError, match="y holds inf in row 6"):
            make()
