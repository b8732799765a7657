"""The streaming encoder against naive formulas, under any split, from any container, and after any error."""

from __future__ import annotations

import copy
import datetime
import math
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from mixed_rows import naive_mean, naive_scaled, rows_and_targets
from reloaded import reloaded

from kernelstream import engine
from kernelstream.columns import Columns
from kernelstream.columns.dates import cycles, seconds
from kernelstream.state.undo import all_or_nothing
from kernelstream.testing.streaming import assert_same_state

ENGINES = ["python", *(["native"] if engine.has_native() else [])]
ROWS, Y = rows_and_targets(300)


def column(enc, X, name):
    return X[:, enc.get_feature_names_out().tolist().index(name)]


def same(a, b, bits):
    if bits:
        np.testing.assert_array_equal(a, b)
    else:
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


# -------------------------------------------------------------------- the formulas
@pytest.mark.parametrize("engine", ENGINES)
def test_means_of_categories_know_only_rows_before(engine):
    enc = Columns(engine=engine)
    X = enc.learn_transform(ROWS, Y)
    words = [
        row.get("town") if isinstance(row.get("town"), str) and row["town"] not in ("", "NA") else "" for row in ROWS
    ]
    truth = [naive_mean(words, Y, i) for i in range(len(ROWS))]
    np.testing.assert_allclose(column(enc, X, "town:mean"), truth, atol=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
def test_targets_of_the_future_and_of_the_row_itself_change_nothing(engine):
    for i in (1, 57, 299):
        other = Y.copy()
        other[i:] = 1e6
        a, b = (Columns(engine=engine).learn_transform(ROWS, y)[: i + 1] for y in (Y, other))
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_are_scaled_by_the_numbers_so_far(engine):
    x = np.random.default_rng(1).normal(3, 2, 60)
    x[[4, 20, 21]] = np.nan
    enc = Columns(engine=engine)
    X = enc.learn_transform([{"x": v} for v in x])
    truth = [0.0 if math.isnan(x[i]) else naive_scaled(x, i) for i in range(len(x))]
    np.testing.assert_allclose(column(enc, X, "x"), truth, atol=1e-10)
    np.testing.assert_array_equal(column(enc, X, "x:missing"), np.isnan(x))


def test_unscaled_numbers_and_means_are_as_they_are():
    y = [1.0, 0.0, 1.0, 1.0]
    enc = Columns(scale=False, shrink=2.0)
    X = enc.learn_transform([{"x": 2.5, "a": "u"}, {"x": None, "a": "u"}, {"x": 5.5, "a": "v"}, {"a": "u"}], y)
    assert column(enc, X, "x").tolist() == [2.5, 2.5, 5.5, 4.0]  # gaps hold the running mean
    means = [0, (1 + 2 * 1) / (1 + 2), (0 + 2 * 0.5) / 2, (1 + 2 * 2 / 3) / (2 + 2)]
    np.testing.assert_allclose(column(enc, X, "a:mean"), means)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("value", ["one", 5])
def test_a_column_that_never_changes_is_zero(value, engine):
    """Not what rounding leaves of a difference: learners that scale their columns would make it as large as others."""
    rng = np.random.default_rng(4)
    weight = rng.uniform(0.1, 2, 50)
    enc = Columns(engine=engine)
    X = enc.learn_transform([{"a": value}] * 50, rng.normal(3, 1, 50), weight)
    assert not column(enc, X, "a:mean").any()
    assert not column(enc, enc.transform([{"a": value}]), "a:mean").any()


def test_weights_count_as_repeated_rows_in_the_means():
    rows, y = [{"a": w} for w in "uvuvuu"], [1.0, 2.0, 4.0, 0.0, 3.0, 1.0]
    weight = [1, 2, 3, 1, 1, 1]
    twice = [i for i, w in enumerate(weight) for _ in range(w)]
    a, b = Columns(), Columns()
    X = a.learn_transform(rows, y, weight)
    Z = b.learn_transform([rows[i] for i in twice], [y[i] for i in twice])
    first = [twice.index(i) for i in range(6)]
    np.testing.assert_allclose(column(a, X, "a:mean"), column(b, Z, "a:mean")[first], atol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_labels_have_a_mean_for_each_class_but_the_first(engine):
    rng = np.random.default_rng(2)
    rows = [{"a": "uvw"[rng.integers(3)]} for _ in range(120)]
    y = np.array([["p", "q", "r"][min(2, "uvw".index(row["a"]) + rng.integers(2))] for row in rows])
    y[:2] = ["q", "p"]
    enc = Columns(engine=engine)
    X = enc.learn_transform(rows, y)
    for label in ("p", "r"):  # q came first
        truth = [naive_mean([r["a"] for r in rows], y == label, i) for i in range(120)]
        np.testing.assert_allclose(column(enc, X, f"a:mean({label})"), truth, atol=1e-10)


def test_integers_come_both_ways_while_their_values_are_few():
    rng = np.random.default_rng(0)
    hours = rng.integers(0, 24, 200)
    y = np.where(hours % 2, 1.0, -1.0) + 0.1 * rng.normal(size=200)
    enc = Columns()
    X = enc.learn_transform([{"hour": int(h)} for h in hours], y)
    truth = [naive_mean(hours.tolist(), y, i) for i in range(200)]
    np.testing.assert_allclose(column(enc, X, "hour:mean"), truth, atol=1e-10)
    many = Columns()
    Z = many.learn_transform([{"n": i} for i in range(100)], np.arange(100.0))
    assert (column(many, Z, "n:mean")[64:] == 0).all()  # the 65th value ends it
    half = Columns()
    Z = half.learn_transform([{"n": v} for v in (1, 2, 1, 2.5, 1, 2)], [1.0, 2, 3, 4, 5, 6])
    assert column(half, Z, "n:mean")[2] != 0 and (column(half, Z, "n:mean")[3:] == 0).all()


def test_the_first_categories_have_a_column_each_and_others_three_signs():
    enc = Columns(one_hot=4)
    X = enc.learn_transform([{"a": f"w{i}"} for i in range(40)])
    slots = X[:, 1:]
    np.testing.assert_array_equal(slots[:4], np.eye(4))
    assert ((slots[4:] != 0).sum(axis=1) == 3).all()
    np.testing.assert_allclose((slots**2).sum(axis=1), 1.0)
    assert len(np.unique(slots[4:], axis=0)) > 15
    assert enc.get_feature_names_out().tolist() == ["a:missing", "a=w0", "a=w1", "a=w2", "a=w3"]


def test_dates_turn_with_day_week_and_year():
    day = datetime.datetime(2023, 7, 2, 12)  # a Sunday, noon, half a year
    s = seconds(day)
    assert s == day.replace(tzinfo=datetime.UTC).timestamp()
    turn = cycles(np.array([s]))[0]
    year = 2 * math.pi * 182.5 / 365
    week = 2 * math.pi * 6.5 / 7
    truth = [0, -1, math.sin(week), math.cos(week), math.sin(year), math.cos(year)]
    np.testing.assert_allclose(turn, truth, atol=1e-9)
    for text in (
        "2023-07-02 12:00",
        "2023-07-02T12:00:00Z",
        "2.7.2023 12:00",
        "20230702T120000",
        "2023/07/02 12:00:00.0",
        "2023/7/2 12:00",
        "2023-07-02 12:00 PM",
        "2023-07-02 12:00:00+00",
        "2023-07-02T12:00 UTC",
    ):
        assert seconds(text) == s, text
    assert seconds("2023-07-02 3:05") == seconds("2023-07-02 3:05 am") == s - (9 * 60 - 5) * 60
    assert seconds("2023-07-02 12:30 AM") == s - 11.5 * 3600 and seconds("1:00 PM") == 13 * 3600
    wrong = ("2023-13-01", "20230702", "noon", "25:61", "13:00 PM", "0:10 am", "2023-7-", "7/2/2023")
    assert all(math.isnan(seconds(text)) for text in wrong)


def test_dates_whose_day_may_be_the_month_are_said_to_be_words():
    with pytest.warns(UserWarning, match=r"column 'when' holds dates like '02/07/2023'.*taken as words"):
        Columns().partial_fit([{"when": "02/07/2023", "town": "Rome"}, {"when": "03/07/2023", "town": "1/2"}])


# -------------------------------------------------------------------- splits, containers, files
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("task", ["number", "label"])
def test_any_split_gives_the_same_numbers_and_state(engine, task):
    rows, y = rows_and_targets(400, seed=3, towns=60)
    rows = [{**row, "late": i} if i > 150 else row for i, row in enumerate(rows)]
    y = y if task == "number" else np.array(["low", "mid", "high", "odd"])[np.minimum(np.arange(400) // 90, 3)]
    options = {"engine": engine, "max_categories": 40}
    whole = Columns(**options)
    X = whole.learn_transform(rows, y)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        parts, start, enc = [], 0, Columns(**options)
        while start < 400:
            stop = min(400, start + int(rng.choice([1, 1, 2, 7, 60])))
            part = rows[start] if stop == start + 1 and rng.random() < 0.7 else rows[start:stop]
            parts.append(enc.learn_transform(part, y[start:stop]))
            if rng.random() < 0.1:  # killed and resumed
                enc = reloaded(enc)
            start = stop
        wide = np.concatenate([np.pad(part, ((0, 0), (0, X.shape[1] - part.shape[1]))) for part in parts])
        np.testing.assert_array_equal(wide, X)
        assert_same_state(whole.state_, enc.state_, 0.0, "state")


def test_a_row_is_encoded_as_transform_would_have():
    enc = Columns()
    enc.learn_transform(ROWS[:100], Y[:100])
    for i in range(100, 160):
        before = enc.transform(ROWS[i : i + 1])
        np.testing.assert_array_equal(before, enc.transform(ROWS[i]))
        np.testing.assert_array_equal(before, enc.learn_transform(ROWS[i], Y[i]))


def test_transform_changes_nothing_and_rows_do_not_see_each_other():
    enc = Columns(one_hot=9).fit(ROWS, Y)
    state = enc.state_
    strange = [{"town": name} for name in ("new", "newer", "new", None)]
    X = enc.transform(strange)
    np.testing.assert_array_equal(X, np.concatenate([enc.transform(row) for row in strange]))
    assert column(enc, X, "town:mean")[:3].tolist() == [0.0] * 3
    assert_same_state(enc.state_, state, 0.0, "state")


def test_rows_of_weight_zero_are_encoded_and_otherwise_absent():
    weight = np.random.default_rng(0).integers(0, 2, 300).astype(float)
    weight[0] = 1
    a, b = Columns(), Columns()
    X = a.learn_transform(ROWS, Y, weight)
    keep = weight > 0
    Z = b.learn_transform([row for row, k in zip(ROWS, keep, strict=True) if k], Y[keep])
    np.testing.assert_array_equal(X[keep], Z)
    assert_same_state(a.state_, b.state_, 0.0, "state")


def frames(rows):
    import pandas as pd
    import pyarrow as pa

    names = ["town", "size", "hour", "open"]
    clean = {name: [row.get(name) if row.get(name) not in ("", "NA") else None for row in rows] for name in names}
    clean = {k: [None if v is None or v != v else v for v in values] for k, values in clean.items()}
    frame = pd.DataFrame(clean)
    yield "dictionaries", [{k: clean[k][i] for k in names} for i in range(len(rows))]
    yield "pandas", frame
    yield "nullable", frame.convert_dtypes()
    yield "categorical", frame.assign(town=frame["town"].astype("category"))
    if find_spec("polars"):
        import polars as pl

        yield "polars", pl.DataFrame(clean)
    yield "pyarrow", pa.table(clean)
    yield "batch", pa.table(clean).to_batches()[0]
    yield (
        "records",
        np.array([tuple(v[i] for v in clean.values()) for i in range(len(rows))], [(n, object) for n in names]),
    )


def test_all_containers_give_the_same_numbers():
    results = {name: Columns().learn_transform(frame, Y) for name, frame in frames(ROWS)}
    for name, X in results.items():
        np.testing.assert_array_equal(X, results["dictionaries"], err_msg=name)
    plain = np.array([[row.get("size"), row["hour"]] for row in ROWS if isinstance(row.get("hour"), int)], dtype=object)
    a, b, c = (Columns().learn_transform(rows) for rows in (plain, plain.tolist(), [tuple(row) for row in plain]))
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(a, c)
    numbers = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_array_equal(Columns().learn_transform(numbers), Columns().learn_transform(numbers.tolist()))


def test_columns_go_by_name_and_what_is_amiss_is_said_once():
    import pandas as pd

    frame = pd.DataFrame({"a": ["u", "v", "u"], "b": [1.5, 2.5, 0.5]})
    enc = Columns().fit(frame, [1.0, 2.0, 3.0])
    X = enc.transform(frame)
    np.testing.assert_array_equal(enc.transform(frame[["b", "a"]]), X)
    with pytest.warns(UserWarning, match="never learned are ignored: 'c'"):
        np.testing.assert_array_equal(enc.transform(frame.assign(c=1)), X)
    with pytest.warns(UserWarning, match="taken as missing: 'b'"):
        gap = enc.transform(frame[["a"]])
    assert (column(enc, gap, "b:missing") == 1).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enc.transform(frame[["a"]].assign(c=1))


def test_words_of_any_script_survive_a_file():
    words = ["", "naïve", "日本", "a\x00b\x00", "\ud800", "x" * 1000, "y" * 63 + "\n", '"', "{"]
    enc = Columns(kinds={"w": "category"}).fit([{"w": word} for word in words * 2], np.arange(18.0))
    np.testing.assert_array_equal(
        reloaded(enc).transform([{"w": w} for w in words]), enc.transform([{"w": w} for w in words])
    )


@pytest.mark.parametrize(
    "name", ["names", "kinds", "layout", "moments", "words_ends", "counts", "table_sizes", "target"]
)
def test_forged_states_are_refused(name):
    enc = Columns().fit(ROWS, Y)
    state = enc.state_
    for forged in ({k: v for k, v in state.items() if k != name}, {**state, name: state[name][..., :-1]}):
        with pytest.raises(ValueError):
            Columns().state_ = forged
    bad = state["layout"].copy()
    bad[0], bad[1] = bad[1], bad[1]
    with pytest.raises(ValueError, match="layout"):
        Columns().state_ = {**state, "layout": bad}


# -------------------------------------------------------------------- limits
def test_forgetting_keeps_the_heavy_ones():
    rng = np.random.default_rng(0)
    words = [f"often {i % 30}" if i % 3 else f"once {i}" for i in range(2000)]
    enc = Columns(one_hot=4, max_categories=100)
    enc.learn_transform([{"w": word} for word in words], rng.normal(size=2000))
    kept = list(enc._store.sources[0].table.codes)
    assert len(kept) <= 100
    assert {f"often {i % 30}" for i in range(2000) if i % 3} <= set(kept)
    assert "once 1998" in kept and "once 300" not in kept  # of the light ones the older went
    assert enc._store.size <= 200


def test_the_state_is_bounded_in_columns():
    enc = Columns(max_columns=5)
    with pytest.warns(UserWarning, match="max_columns=5"):
        enc.learn_transform([{f"k{i}": 1.5} for i in range(20)])
    assert list(enc.kinds_) == [f"k{i}" for i in range(5)]


# -------------------------------------------------------------------- kinds and wrong cells
def test_kinds_by_the_first_value_or_as_told():
    rows = [
        {"a": None, "b": "x", "c": 3, "d": 2.5, "e": "2024-01-01", "f": True, "g": "7.5"}
        | {"i": datetime.date(2024, 1, 1)},
        {"a": "late", "b": "y"},
    ]
    enc = Columns(kinds={"c": "category"}).fit(rows)
    kinds = {"b": "category", "c": "category", "d": "number", "e": "date", "f": "category", "g": "number", "i": "date"}
    assert enc.kinds_ == {**kinds, "a": "category"}
    with pytest.warns(UserWarning, match="'t' holds objects"):
        assert Columns().fit([{"t": ["word"], "x": 1.5}]).kinds_ == {"t": "ignored", "x": "number"}
    with pytest.raises(ValueError, match="did you mean 'category'"):
        Columns(kinds={"a": "categry"}).fit(rows)


def test_wrong_cells_are_missing_and_counted_or_errors():
    rows = [{"x": 1.5}, {"x": "abc"}, {"x": "2.5"}, {"x": math.inf}, {"x": 10**400}, {"x": None}, {"x": [1]}]
    enc = Columns()
    with pytest.warns(UserWarning, match="'x' holds cells that are not a number, like 'abc'"):
        X = enc.learn_transform(rows)
    assert column(enc, X, "x:missing").tolist() == [0, 1, 0, 1, 1, 1, 1]
    assert enc.wrong_ == {"x": (4, 2)}
    strict = Columns(strict=True).fit(rows[:1])
    state = strict.state_
    with pytest.raises(ValueError, match=r"column 'x', row 2: 'abc' is not a number"):
        strict.partial_fit([rows[2], rows[1]])
    assert_same_state(strict.state_, state, 0.0, "state")


def test_refused_calls_leave_no_trace():
    enc = Columns(max_categories=40).fit(ROWS, Y)
    state = enc.state_
    new = [{"town": "new", "extra": "e", "hour": 99.5}] * 3
    for y, weight, what in (
        ([1.0, 2.0, math.nan], None, "finite"),
        ([1.0, 2.0], None, "one target"),
        (["a", "b", "c"], None, "numbers"),
        ([1.0, 2.0, 3.0], [1, -1, 1], "sample_weight"),
        (None, None, "all calls"),
    ):
        with pytest.raises(ValueError, match=what):
            enc.learn_transform(new, y, weight)
        assert_same_state(enc.state_, state, 0.0, "state")
    for rows in (3, "abc", [[1, 2], [3]], np.zeros(3), [{"a": 1}, 3]):
        with pytest.raises(ValueError):
            enc.learn_transform(rows, [1.0])
        assert_same_state(enc.state_, state, 0.0, "state")
    wrong = {"one_hot": -1, "shrink": 0, "target": "y", "max_categories": 3, "engine": "fast", "scale": -1, "strict": 2}
    for parameter, value in [*wrong.items(), ("one_hot", "x")]:
        with pytest.raises(ValueError, match=parameter):
            Columns(**{parameter: value}).fit(ROWS, Y)


def test_set_output():
    import pandas as pd

    enc = Columns(one_hot=2).set_output(transform="pandas")
    for made in (enc.fit_transform(ROWS[:9], Y[:9]), enc.learn_transform(ROWS[9:20], Y[9:20]), enc.transform(ROWS[:3])):
        assert isinstance(made, pd.DataFrame)
        assert list(made.columns) == list(enc.get_feature_names_out())


# -------------------------------------------------------------------- tables
@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_is_scaled_by_all_its_rows(engine):
    """In any order: numbers by mean and deviation of all, dates by the latest and the deviation."""
    n = 40
    x, day = np.arange(n) ** 1.5, np.arange("2024-01-01", "2024-02-10", dtype="M8[D]")
    rows = [{"x": float(a), "day": str(b)} for a, b in zip(x, day, strict=True)]
    enc = Columns(engine=engine)
    X = enc.fit_transform(rows)
    np.testing.assert_array_equal(X, enc.transform(rows))
    days = np.arange(n, dtype=float)
    for i in (0, 7, 39):  # each as if it came next
        seen, when = np.append(x, x[i]), np.append(days, days[i])
        assert column(enc, X, "x")[i] == pytest.approx((x[i] - seen.mean()) / seen.std())
        assert column(enc, X, "day")[i] == pytest.approx((days[i] - days.max()) / when.std())
    order = np.random.default_rng(0).permutation(n)
    Z = Columns(engine=engine).fit_transform([rows[i] for i in order])
    np.testing.assert_allclose(Z, X[order], atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_of_a_table_do_not_see_their_own_target(engine):
    """Every row has a word of its own: whatever its target, the mean of the word is that of all rows."""
    rng = np.random.default_rng(0)
    rows, y = [{"id": f"w{i}", "a": "uv"[i % 2]} for i in range(60)], rng.normal(size=60)
    enc = Columns(engine=engine)
    X = enc.fit_transform(rows, y)
    assert np.abs(column(enc, X, "id:mean")).max() < 1e-12
    assert np.abs(column(enc, enc.transform(rows), "id:mean")).max() > 0.1
    last = column(enc, enc.transform(rows), "a:mean")  # of all rows, which the later of a random order come close to
    assert 0 < np.abs(column(enc, X, "a:mean") - last).min() < 0.05
    weight = np.r_[np.zeros(20), np.ones(40)]
    some = Columns(engine=engine)
    some.fit(rows, y, weight)
    assert_same_state(some.state_, Columns(engine=engine).fit(rows[20:], y[20:]).state_, 1e-12, "weights of 0")


@pytest.mark.parametrize("engine", ENGINES)
def test_times_that_come_in_order_are_all_of_now(engine):
    enc = Columns(engine=engine)
    days = [f"2024-{m:02d}-01" for m in range(1, 13)]
    assert (column(enc, enc.learn_transform([{"d": day} for day in days]), "d") == 0).all()
    asked = [{"d": day} for day in ["2024-01-01", "2024-12-01", "2031-01-01"]]
    assert (column(enc, enc.transform(asked), "d") == 0).all()  # no row was late: of other times nothing is known
    enc.partial_fit([{"d": "2024-06-01"}])
    old = column(enc, enc.transform(asked), "d")
    assert old[0] < -2 and (old[1:] == 0).all()  # what lies ahead is of now as well
    np.testing.assert_array_equal([enc.transform(row)[0, 0] for row in asked], old)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_year_turns_once_a_year_was_seen(engine):
    enc = Columns(engine=engine)
    days = np.datetime64("2023-03-01") + np.arange(0, 400, 10)
    X = enc.learn_transform([{"d": str(day)} for day in days])
    angle = 2 * np.pi * np.array([(day - np.datetime64(str(day)[:4])).astype(int) for day in days])
    angle /= np.where(days < np.datetime64("2024"), 365, 366)
    seen = days - days[0] >= np.timedelta64(365, "D")
    for part, wave in (("sin", np.sin), ("cos", np.cos)):
        np.testing.assert_allclose(column(enc, X, f"d:year:{part}"), np.where(seen, wave(angle), 0.0), atol=1e-12)
    table = Columns(engine=engine).fit([{"d": str(day)} for day in days]).transform([{"d": "2023-03-01"}])
    np.testing.assert_allclose(column(enc, table, "d:year:sin"), np.sin(angle[0]), atol=1e-12)


def test_notes_name_columns_that_say_nothing():
    rng = np.random.default_rng(0)
    rows = [
        {"id": i, "key": f"k{i}", "same": 3.5, "word": "a", "x": float(x), "n": int(k)}
        for i, (x, k) in enumerate(zip(rng.normal(size=80), rng.integers(0, 80, 80), strict=True))
    ]
    order = rng.permutation(80)
    for enc in (Columns().fit(rows), Columns().partial_fit([rows[i] for i in order])):
        assert list(enc.notes_) == ["id", "key", "same", "word"]
        assert "row number" in enc.notes_["id"] and "identifier" in enc.notes_["key"]
        assert enc.notes_["same"] == enc.notes_["word"] == "it never changes"


@pytest.mark.parametrize("last", [{}, {"a": "v"}, {"a": None, "b": "w"}])
def test_a_row_that_fails_leaves_every_count(last):
    """Rows without a category, alone or with others; the last entry of the tables counts too."""
    coder = Columns()
    for i in range(64):  # as many categories as the tables have entries
        coder.learn_transform({"a": f"v{i % 4}", "b": f"w{i}", "c": float(i)}, i % 2)
    before = copy.deepcopy(coder.state_)
    with pytest.raises(ValueError, match="math domain"), all_or_nothing(coder):
        math.sqrt(-len(coder._learn({"a": "v1", "c": 1.0} | last, 1, None)))
    assert_same_state(coder.state_, before, 0.0, "state")


@pytest.mark.parametrize("labels", [[1, 0, 1.0, True, np.int64(0)], ["1", "0", np.str_("1"), "0", "1"]])
def test_labels_of_single_rows_are_those_of_a_call(labels):
    rows = [{"a": "uvw"[i % 3], "b": float(i)} for i in range(10)]
    one, whole = Columns(target="label"), Columns(target="label")
    found = [one.learn_transform(row, label) for row, label in zip(rows, 2 * labels, strict=True)]
    kind = str if isinstance(labels[0], str) else int
    np.testing.assert_array_equal(np.concatenate(found), whole.learn_transform(rows, [kind(y) for y in 2 * labels]))


def test_cells_of_no_use_in_rows_to_predict_are_said_once_for_each_column():
    rows = [{"x": float(i), "n": i % 5, "day": f"2024-05-{1 + i % 30:02d}"} for i in range(60)]
    encoder = Columns().partial_fit(rows)
    assert not warnings_of(lambda: encoder.transform(rows))
    odd = [{"x": "2.5kg", "n": 1, "day": "2024-05-01"}, {"x": "3kg", "n": "many", "day": "soon"}]
    said = warnings_of(lambda: [encoder.transform(odd), encoder.transform(odd[0]), encoder.transform(odd[1])])
    assert sorted(said) == [
        "column 'day' holds cells that are not a date, like 'soon': they are taken as missing",
        "column 'n' holds cells that are not a number, like 'many': they are taken as missing",
        "column 'x' holds cells that are not a number, like '2.5kg': they are taken as missing",
    ]
    gaps = [{**row, **dict.fromkeys([name for name, value in row.items() if value in WRONG])} for row in odd]
    np.testing.assert_array_equal(encoder.transform(odd), encoder.transform(gaps))
    assert not encoder.wrong_


WRONG = ("2.5kg", "3kg", "many", "soon")


def warnings_of(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in caught]


# -------------------------------------------------------------------- categories with many values
def many_rows(n=1500, categories=60, seed=0):
    """Rows of customers of very different numbers of rows, targets, and the customer of each row."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, categories + 1) ** 0.3
    who = rng.choice(categories, n, p=share / share.sum())
    y = rng.normal(size=categories)[who] + 0.7 * rng.normal(size=n)
    return [{"who": f"c{i}", "x": float(x)} for i, x in zip(who, rng.normal(size=n), strict=True)], y, who


def naive_recent(who, y, start, labels=False):
    """The shrunk recent mean and log(1 + n) of each row after ``start``, by loops over the rows before."""
    out, means, counts, inside, first = [], {}, {}, [], []
    for i, (c, target) in enumerate(zip(who, y, strict=True)):
        prior, n = (np.mean(y[:i]), counts.get(c, 0)) if i else (0.0, 0)
        if i >= start:
            ratio = 10.0
            if min(len(inside), len(first)) >= 10:
                within, both = np.mean(inside), np.mean(first)
                ratio = within / (both - within) if within < 1000 * (both - within) else 1000.0
            few = min(n, 256)
            difference = few / (few + ratio) * (means[c] - prior) if n else 0.0
            if labels:
                p, q = (min(max(v, 1e-3), 1 - 1e-3) for v in (prior + difference, prior))
                value = math.log(p / (1 - p)) - math.log(q / (1 - q))
            else:
                value = difference / np.std(y[:i])
            out.append((value, math.log(1 + few)))
            if n:
                inside.append((target - means[c]) ** 2 * few / (few + 1))
            else:
                first.append((target - prior) ** 2)
        counts[c] = n + 1
        rate = 1 / min(n + 1, 256) if i >= start else 1 / (n + 1)
        means[c] = means.get(c, 0.0) + rate * (target - means.get(c, 0.0))
    return np.array(out)


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_recent_means_of_many_categories_are_those_of_a_loop(engine, labels):
    rows, y, who = many_rows()
    who[700:1300], rows[700:1300] = 7, [{**row, "who": "c7"} for row in rows[700:1300]]  # more than are remembered
    target = (y > 0.3).astype(float) if labels else y
    enc = Columns(engine=engine, target="label" if labels else "number")
    X = enc.learn_transform(rows, target)
    names = enc.get_feature_names_out().tolist()
    start = 2 ** int(np.log2(np.argmax(X[:, names.index("who:rows")] != 0)))
    share = target if not labels or enc._store.labels[1] == "n1.0" else 1 - target
    truth = naive_recent(who, share, start, labels)
    assert not X[:start, names.index("who:recent") :].any() and names[-2:] == ["who:recent", "who:rows"]
    np.testing.assert_allclose(X[start:, -2:], truth, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_recent_means_know_only_rows_before_and_grow_with_labels(engine):
    rows, y, _ = many_rows(600)
    for targets in (y, np.array(["low", "mid", "high"])[np.searchsorted([-0.5, 0.5], y)]):
        whole = Columns(engine=engine)
        X = whole.learn_transform(rows, targets)
        assert sum(":recent" in name for name in whole.get_feature_names_out()) == (1 if targets is y else 2)
        for i in (40, 300, 599):
            other = targets.copy()
            other[i:] = other[:1]
            Z = Columns(engine=engine).learn_transform(rows, other)
            np.testing.assert_array_equal(Z[: i + 1, : X.shape[1]], X[: i + 1])
        part = Columns(engine=engine)
        pieces = [part.learn_transform(rows[i], targets[i : i + 1]) for i in range(300)]
        part = reloaded(part)
        with pytest.raises(ValueError):
            part.learn_transform([*rows[300:310], 3], targets[300:311])
        pieces += [part.learn_transform(rows[300:], targets[300:])]
        wide = np.concatenate([np.pad(piece, ((0, 0), (0, X.shape[1] - piece.shape[1]))) for piece in pieces])
        np.testing.assert_array_equal(wide, X)
        assert_same_state(whole.state_, part.state_, 0.0, "state")


def test_few_categories_and_rare_ones_beside_a_frequent_one_have_no_recent_mean():
    rows, y, who = many_rows(600)
    few = [{"who": f"c{i % 16}"} for i in who]
    rare = [{"who": f"c{i}" if at % 8 == 0 else "most"} for at, i in enumerate(who)]
    for learn in (Columns.partial_fit, Columns.fit):
        for cells in (few, rare, [{"who": i % 60} for i in range(600)]):
            enc = learn(Columns(), cells, y)
            assert not any(":recent" in name for name in enc.get_feature_names_out())
        assert not any(":recent" in name for name in learn(Columns(), rows).get_feature_names_out())  # without targets


def test_a_table_shows_recent_means_of_other_rows():
    rng = np.random.default_rng(0)
    rows, y = [{"id": f"w{i}"} for i in range(200)], rng.normal(size=200)
    enc = Columns()
    X = enc.fit_transform(rows, y)
    assert np.abs(column(enc, X, "id:recent")).max() == 0
    assert np.abs(column(enc, enc.transform(rows), "id:recent")).max() > 0.1


def test_forged_recent_means_are_refused():
    rows, y, _ = many_rows(600)
    state = Columns().fit(rows, y).state_
    for name in ("recent", "within", "between"):
        for forged in ({k: v for k, v in state.items() if k != name}, {**state, name: state[name][:-1]}):
            with pytest.raises(ValueError, match=name):
                Columns().state_ = forged
    with pytest.raises(ValueError):
        Columns().state_ = {**state, "flags": state["flags"] & 7}


# -------------------------------------------------------------------- seasons
def naive_season(hours, y, i):
    """The season of hour i by the rows before the last row count, a multiple of an eighth, at which it was found."""
    t = max((n for n in range(32, i + 1) if n % 2 ** (int(np.log2(n)) - 3) == 0), default=0)

    def waves(h):
        found = []
        for length in [24, 168] if hours[t - 1] - hours[0] >= 336 else [24]:
            turn = 2 * np.pi * ((h + 3 * 24) % length) / length  # 1970 began on a Thursday
            found += [np.sin(turn), np.cos(turn), np.sin(2 * turn), np.cos(2 * turn)]
        return np.column_stack(found)

    w = waves(hours[:t])
    if t < 10 * (2 + w.shape[1]):
        return 0.0
    H = np.column_stack([np.ones(t), hours[:t] / 8760, w])
    c = np.linalg.solve(H.T @ H + np.diag([0, 0, *np.ones(w.shape[1])]), H.T @ y[:t])[2:]
    return (waves(hours[i : i + 1]) @ c)[0] / y[:t].std()


def seasonal_rows(n=500):
    hours = np.arange(n)
    rng = np.random.default_rng(0)
    y = 5 + 0.01 * hours + np.cos(2 * np.pi * hours / 24) + (hours // 24 % 7 == 2) + 0.3 * rng.normal(size=n)
    times = np.datetime64("1970-01-01T00:00:00") + 3600 * hours
    return hours, [{"when": str(time), "x": float(x)} for time, x in zip(times, rng.normal(size=n), strict=True)], y


@pytest.mark.parametrize("engine", ENGINES)
def test_the_season_is_the_ridge_regression_of_the_rows_before(engine):
    hours, rows, y = seasonal_rows()
    enc = Columns(engine=engine)
    X = enc.learn_transform(rows, y)
    truth = [naive_season(hours, y, i) for i in range(len(rows))]
    np.testing.assert_allclose(column(enc, X, "when:season"), truth, atol=1e-9)
    other = y.copy()
    other[400:] = 1e6
    np.testing.assert_array_equal(Columns(engine=engine).learn_transform(rows, other)[:401], X[:401])
    late = enc.transform([{"when": "1971-12-25T08:00"}, {"when": None}])
    assert abs(column(enc, late, "when:season")[0]) < 3 and column(enc, late, "when:season")[1] == 0


def test_seasons_do_not_depend_on_calls_weights_of_0_or_the_order_of_a_table():
    _, rows, y = seasonal_rows()
    labels = np.array(["low", "mid", "high"])[np.digitize(y, [6, 9])]  # the last comes late
    for targets in (y, labels):
        whole, part = Columns(), Columns()
        X = whole.learn_transform(rows, targets)
        pieces = [part.learn_transform(rows[i], targets[i : i + 1]) for i in range(250)]
        part = reloaded(part)
        pieces += [
            part.learn_transform(rows[250:261], targets[250:261]),
            part.learn_transform(rows[261:], targets[261:]),
        ]
        wide = np.concatenate([np.pad(piece, ((0, 0), (0, X.shape[1] - piece.shape[1]))) for piece in pieces])
        np.testing.assert_array_equal(wide, X)
        assert_same_state(whole.state_, part.state_, 0.0, "state")
    twice = Columns().learn_transform(rows + rows, np.r_[y, y], np.r_[np.ones(500), np.zeros(500)])
    np.testing.assert_array_equal(twice[:500], Columns().learn_transform(rows, y))
    order = np.random.default_rng(0).permutation(len(rows))
    tables = [Columns().fit(rows, y), Columns().fit([rows[i] for i in order], y[order])]
    a, b = (column(enc, enc.transform(rows), "when:season") for enc in tables)
    np.testing.assert_allclose(a, b, atol=1e-9)
    assert np.abs(a).max() > 0.3


def test_forged_seasons_are_refused():
    _, rows, y = seasonal_rows(60)
    state = Columns().fit(rows, y).state_
    for name in ("seasons", "spans"):
        for forged in ({k: v for k, v in state.items() if k != name}, {**state, name: state[name][:-1]}):
            with pytest.raises(ValueError):
                Columns().state_ = forged


# -------------------------------------------------------------------- columns that number the rows, and times
def numbered_rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    day, key, order = np.cumsum(rng.uniform(0.1, 2, n)), rng.permutation(n), rng.permutation(2 * n)[:n]
    rows = [
        {"id": i, "day": float(day[i]), "big": int(1e7) + 3 * i, "order": int(order[i]), "key": f"k{key[i]}"}
        | {"x": float(rng.normal()), "age": int(rng.integers(90)), "word": "uvw"[rng.integers(3)]}
        for i in range(n)
    ]
    return rows, rng.normal(size=n), day


def roles(enc):
    return {source.name: source.role for source in enc._store.sources if source.role}


@pytest.mark.parametrize("engine", ENGINES)
def test_numbers_that_grow_with_a_stream_are_times(engine):
    rows, y, day = numbered_rows()
    enc = Columns(engine=engine)
    X = enc.learn_transform(rows, y)
    assert roles(enc) == dict.fromkeys(["id", "day", "big"], "timed")
    for name in ("id", "day", "big"):
        assert np.abs(column(enc, X, name)[1:16]).min() > 0.5 and not column(enc, X, name)[16:].any()
    plain = Columns(engine=engine).learn_transform([{k: row[k] for k in ("order", "x", "age")} for row in rows], y)
    names = enc.get_feature_names_out().tolist()
    start = names.index("order")
    np.testing.assert_array_equal(X[:, start : start + 3], plain[:, :3])  # others are as they were
    assert column(enc, enc.transform([{**rows[3], "id": 10**6}]), "id") == 0
    enc.partial_fit([{**rows[0], "day": float(day[200])}], y[:1])  # a late row
    old = column(enc, enc.transform([rows[100], {**rows[0], "day": 1e4}]), "day")
    assert old[0] == pytest.approx((day[100] - day[-1]) / np.r_[day, day[200]].std(), rel=0.01) and old[1] == 0
    enc.partial_fit(rows[::-1], y)  # it was no time
    assert "day" not in roles(enc) and abs(column(enc, enc.transform(rows[:1]), "day")[0]) > 1


def test_a_stream_takes_the_same_columns_for_times_however_it_is_cut():
    rows, y, _ = numbered_rows(1100)
    rows = [{name: row[name] for name in ("id", "day", "key", "x")} for row in rows]
    whole, part = Columns(), Columns()
    with pytest.warns(UserWarning, match="'key' only numbers or names the rows") as said:
        X = whole.learn_transform(rows, y)
    assert len(said) == 1 and roles(whole)["key"] == "idle"
    pieces = [part.learn_transform(rows[i], y[i : i + 1]) for i in range(130)]
    part = reloaded(part)
    pieces += [part.learn_transform(rows[130:1023], y[130:1023])]
    with pytest.warns(UserWarning, match="'key'"):
        pieces += [part.learn_transform(rows[1023:1024], y[1023:1024])]
    pieces += [part.learn_transform(row, y[i : i + 1]) for i, row in enumerate(rows[1024:], 1024)]
    wide = np.concatenate([np.pad(piece, ((0, 0), (0, X.shape[1] - piece.shape[1]))) for piece in pieces])
    np.testing.assert_array_equal(wide, X)
    assert_same_state(whole.state_, part.state_, 0.0, "state")
    keyed = [i for i, name in enumerate(whole.get_feature_names_out()) if name.startswith("key")]
    assert X[1023, keyed].any() and not X[1024:, keyed].any() and not whole.transform(rows[:5])[:, keyed].any()
    whole.partial_fit(rows[:948], y[:948])  # its values come again
    assert "key" not in roles(whole) and whole.transform(rows[:5])[:, keyed].any()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_leaves_out_what_numbers_or_names_its_rows(engine):
    rows, y, day = numbered_rows()
    enc = Columns(engine=engine)
    with pytest.warns(UserWarning, match="takes no part") as said:
        X = enc.fit_transform(rows, y)
    assert len(said) == 3
    assert roles(enc) == {"id": "idle", "order": "idle", "key": "idle", "day": "timed", "big": "timed"}
    assert set(enc.notes_) == set(roles(enc)) and "takes no part" in enc.notes_["id"] and "time" in enc.notes_["day"]
    names, new = enc.get_feature_names_out(), [{**rows[3], "id": 77, "day": 1e6}]
    out = [i for i, name in enumerate(names) if name.startswith(("id", "order", "key"))]
    assert not X[:, out].any() and not enc.transform(new)[:, out].any()
    np.testing.assert_allclose(column(enc, X, "day"), (day - day.max()) / day.std(), rtol=0.02)
    assert column(enc, enc.transform(new), "day") == 0  # what lies ahead is of now
    assert_same_state(reloaded(enc).state_, enc.state_, 0.0, "state")
    enc.partial_fit([{**row, "day": float(d)} for row, d in zip(rows, day + 1000, strict=True)], y)
    assert roles(enc)["id"] == "idle" and roles(enc)["day"] == "timed"
    named = Columns({"id": "number", "order": "integer", "key": "category"}, engine=engine).fit(rows, y)
    assert roles(named) == {"day": "timed", "big": "timed"}
    assert not roles(Columns(engine=engine).fit([{"id": i} for i in range(100)]))  # nothing else is left
    assert not roles(Columns(engine=engine).fit(rows[:40], y[:40]))


def test_forged_roles_are_refused():
    rows, y, _ = numbered_rows(100)
    state = Columns().fit([{name: row[name] for name in ("day", "word")} for row in rows], y).state_
    for flags in ([48, 0], [16, 16], [-1, 0], [64, 0]):
        with pytest.raises(ValueError, match="flags"):
            Columns().state_ = {**state, "flags": np.array(flags)}
