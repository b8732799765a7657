"""What a column is taken for: by all rows of a table, and the first ones of a stream, however cells are written."""

from __future__ import annotations

import io
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

from kernelstream import FeatureRegressor, KernelRegressor, engine
from kernelstream.columns import Columns, make_stream
from kernelstream.columns.dates import seconds
from kernelstream.columns.kinds import DECIDING_CELLS, kind_of, votes_of
from kernelstream.testing.streaming import assert_same_state

ENGINES = ["python", *(["native"] if engine.has_native() else [])]
N = 700
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=N).round(3)
DAYS = pd.Timestamp("2023-01-01") + pd.to_timedelta(np.arange(N), "D")

WRITTEN = {
    "$1,234.5": [f"${abs(x) * 5000:,.2f}" for x in NUMBERS],
    "1.234,5": [f"{x * 5000:,.2f}".translate(str.maketrans(",.", ".,")) for x in NUMBERS],
    "3,141": [f"{x:.3f}".replace(".", ",") for x in NUMBERS],
    "CHF 12.30": [f"CHF {x * 20:.2f}" for x in NUMBERS],
    "12.30 EUR": [f"{x * 20:.2f} EUR" for x in NUMBERS],
    "12.5%": [f"{x:.2f}%" for x in NUMBERS],
}


@pytest.mark.parametrize("form", WRITTEN)
def test_numbers_as_people_write_them_are_those_that_pandas_reads(form):
    """The truth are pandas' columns, read by ``read_csv`` after the unit was cut off."""
    cells = WRITTEN[form]
    text = "\n".join(["x", *(f'"{cell.strip("$%CHFEUR ")}"' for cell in cells)])
    marks = {"decimal": ",", "thousands": "."} if form in ("1.234,5", "3,141") else {"thousands": ","}
    truth = pd.read_csv(io.StringIO(text), **marks)
    assert truth["x"].dtype == float
    for learn in (Columns(scale=False).fit_transform, Columns(scale=False).learn_transform):
        np.testing.assert_array_equal(learn(pd.DataFrame({"x": cells}))[:, 0], truth["x"])
    assert {kind_of(cell) for cell in cells} <= {"number", "integer"}


def test_dates_with_months_in_words_and_the_day_first():
    for form in ("%d %b %Y", "%d-%B-%Y", "%b %d, %Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y %H:%M"):
        enc, truth = Columns(), Columns()
        found = enc.fit_transform(pd.DataFrame({"when": DAYS.strftime(form).astype(object)}))
        np.testing.assert_array_equal(found, truth.fit_transform(pd.DataFrame({"when": DAYS})))
        assert enc.kinds_ == {"when": "date"}
    assert seconds("1 May 2024 13:30") == seconds("2024-05-01 13:30") == seconds("May 1, 2024 1:30 PM")
    assert seconds("Sept. 3, 2024") == seconds("3 sep 2024") == seconds("2024-09-03")
    assert all(math.isnan(seconds(text)) for text in ("3 Mai 2024", "31 Feb 2024", "May 2024", "Foo 1, 2024"))


@pytest.mark.parametrize("gap", ["-", "--", ".", "None", "NULL", "n/a", "#N/A", "<NA>"])
def test_dashes_and_the_like_are_gaps(gap, rng):
    """A table in which some cells are such words is the table in which these are None."""
    places = [0, 5, 300]
    rows = pd.DataFrame({"x": NUMBERS.astype(str), "town": rng.choice(["Rome", "Oslo"], N)}).astype(object)
    rows.loc[places, :], none = gap, rows.copy()
    none.loc[places, :] = None
    y = NUMBERS**2
    for name in ENGINES:
        encoders = [Columns(engine=name), Columns(engine=name)]
        for one, other in zip(*(enc.learn_transform(t, y).T for enc, t in zip(encoders, (rows, none))), strict=True):
            np.testing.assert_array_equal(one, other)
        assert not encoders[0].wrong_


def test_a_word_in_the_first_cell_does_not_make_words_of_numbers():
    """A regression on the column, beside the same with a gap in that cell."""
    y = np.sin(2 * NUMBERS)
    score = {}
    for first in ("sold out", None):
        cells = pd.DataFrame({"x": [first, *NUMBERS[1:].astype(str)]}, dtype=object)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = KernelRegressor(size="small", random_state=0).fit(cells[:500], y[:500])
            learned = KernelRegressor(size="small", random_state=0)
            learned.learn(cells[:500], y[:500])
        said = [str(warning.message) for warning in caught if warning.filename == __file__]
        note = "column 'x' holds cells that are not a number, like 'sold out': they are taken as missing"
        assert said == ([note] * 2 if first else [])
        assert fitted.columns_.kinds_ == learned.columns_.kinds_ == {"x": "number"}
        score[first] = [r2_score(y[500:], model.predict(cells[500:])) for model in (fitted, learned)]
    assert (np.array(score["sold out"]) > np.array(score[None]) - 0.02).all() and min(score[None]) > 0.9


def odd_starts(n):
    """Rows whose first cells are not like the others, in every way, with late and rare columns."""
    rng = np.random.default_rng(1)
    rows = []
    for i in range(n):
        row = {
            "word first": "soon" if i < 2 else f"{rng.normal():.2f}",
            "number first": "7" if i < 3 else f"{rng.integers(9)}{'ab'[rng.integers(2)]}",
            "comma later": "1.234" if i < 5 else f"{rng.normal():.2f}".replace(".", ","),
            "day later": f"{1 + i % (12 if i < 30 else 28)}/{1 + i % 12}/2023",
            "text": f"{'x' * 200} {i}" if i % 3 else "short",
            "none first": None if i < 40 else f"{rng.normal():.1f}" if i > 41 else "starting",
        }
        if i % 50 == 49:
            row["rare"] = ["low", 1.5, 2.5, "3,5"][i // 50 % 4]
        rows.append(row)
    return rows, rng.normal(size=n)


KINDS = {
    "word first": "number",
    "number first": "category",
    "comma later": "number",
    "day later": "date",
    "text": "text",
    "none first": "number",
    "rare": "number",
}


@pytest.mark.filterwarnings("ignore:column .* (holds cells|holds texts):UserWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_the_kinds_of_a_stream_are_those_of_its_rows_however_they_are_cut(engine):
    rows, y = odd_starts(N)
    weight = (np.arange(N) % 7 > 0).astype(float)
    whole = Columns(engine=engine)
    with pytest.warns(UserWarning, match="'day later' holds dates"):
        X = whole.learn_transform(rows, y, weight)
    assert whole.kinds_ == KINDS
    for seed in range(4):
        rng = np.random.default_rng(seed)
        enc, parts, start = Columns(engine=engine), [], 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while start < N:
                stop = min(N, start + int(rng.choice([1, 1, 2, 5, 70])))
                if stop == start + 1 and weight[start] and seed % 2:
                    parts.append(enc.learn_transform(rows[start], y[start]))
                else:
                    parts.append(enc.learn_transform(rows[start:stop], y[start:stop], weight[start:stop]))
                if rng.random() < 0.1:  # killed and resumed
                    state, enc = enc.state_, Columns(engine=engine)
                    enc.state_ = state
                start = stop
        wide = np.concatenate([np.pad(part, ((0, 0), (0, X.shape[1] - part.shape[1]))) for part in parts])
        np.testing.assert_array_equal(wide, X)
        assert_same_state(whole.state_, enc.state_, 0.0, "state")


def test_rows_after_a_change_of_kind_are_those_of_an_encoder_that_knew_it():
    """Categories and means restart with the change: a fresh encoder of the rows from there on encodes them alike."""
    rows, y = odd_starts(N)
    rows = [{"x": row["number first"]} for row in rows]
    enc = Columns(scale=False)
    enc.partial_fit(rows[:8], y[:8])  # the change comes after row 8 at the latest
    assert enc.kinds_ == {"x": "category"}
    fresh = Columns(scale=False, kinds={"x": "category"}).partial_fit(rows[8:], y[8:])
    enc.partial_fit(rows[8:], y[8:])
    own = enc.get_feature_names_out().tolist()
    slots = [name for name in fresh.get_feature_names_out() if "=" in name]
    assert sorted(name for name in own if name.startswith("x=")) == sorted(slots)
    new = enc.transform(rows[-50:])
    assert not new[:, [i for i, name in enumerate(own) if name.startswith("x (as ")]].any()


def test_a_model_that_learns_while_a_kind_changes_is_the_same_however_rows_are_cut():
    rows, y = odd_starts(400)
    rows = [{name: row[name] for name in ("word first", "number first")} for row in rows]
    whole, parts = (make_stream(Columns(), FeatureRegressor(random_state=0)) for _ in range(2))
    whole.learn(rows, y)
    for start, stop in [(0, 1), (1, 3), (3, 4), (4, 90), (90, 400)]:
        parts.learn(rows[start:stop], y[start:stop])
    assert_same_state(whole.state_, parts.state_, 1e-12, "state")
    model = KernelRegressor(size="small", random_state=0)
    for row, target in zip(rows, y, strict=True):
        model.learn(row, target)
    assert model.columns_.kinds_ == {"word first": "number", "number first": "category"}


def test_a_column_is_settled_after_its_first_cells():
    enc = Columns().partial_fit([{"x": i + 0.5} for i in range(DECIDING_CELLS)])
    with pytest.warns(UserWarning, match="not a number, like 'a'"):
        enc.partial_fit([{"x": "a"}] * 2000)
    assert enc.kinds_ == {"x": "number"} and enc.wrong_ == {"x": (2000, DECIDING_CELLS + 1)}
    refused = Columns().partial_fit([{"x": float(i)} for i in range(3)])
    before = refused.state_
    with pytest.raises(ValueError, match="finite"):
        refused.partial_fit([{"x": "a"}] * 30, [math.nan] * 30)
    assert_same_state(refused.state_, before, 0.0, "state")


@pytest.mark.filterwarnings("ignore:column .* holds cells:UserWarning")
@pytest.mark.parametrize("share", [0.6, 0.8])
def test_whole_numbers_among_words_are_codes_and_measured_ones_are_not(share):
    """Codes of products with an effect each, and damaged measurements: as good as with the kind that is true."""
    rng = np.random.default_rng(0)
    codes = rng.choice(9000, 30, replace=False) + 1000
    names = [str(code) if rng.random() < share else f"A{code % 100}" for code in codes]
    product, x, broken = rng.integers(30, size=N), rng.normal(size=N), rng.random(N) > share
    tables = {
        "category": ([names[i] for i in product], rng.normal(size=30)[product]),
        "number": (["sold out" if odd else f"{v:.3f}" for v, odd in zip(x, broken, strict=True)], x * ~broken),
    }
    for kind, (cells, y) in tables.items():
        frame, score = pd.DataFrame({"c": cells}), {}
        for columns in ("auto", {"c": "category"}, {"c": "number"}):
            model = KernelRegressor(size="small", columns=columns, random_state=0).fit(frame[:500], y[:500])
            learned = KernelRegressor(size="small", columns=columns, random_state=0).partial_fit(frame[:500], y[:500])
            if columns == "auto":
                assert model.columns_.kinds_ == learned.columns_.kinds_ == {"c": kind}
            name = columns if columns == "auto" else columns["c"]
            score[name] = np.array([r2_score(y[500:], one.predict(frame[500:])) for one in (model, learned)])
        other = score["number" if kind == "category" else "category"]
        assert (score["auto"] > score[kind] - 0.03).all() and (score["auto"] > other + 0.1).all()


def test_plain_numbers_vote_together_as_they_do_one_by_one():
    pool = [
        "1.234",
        "12",
        "1e5",
        "1.5",
        "-1",
        "+2",
        "1234.5",
        " 7 ",
        "7.",
        ".5",
        "1.234e5",
        "1_000",
        "10000000",
        "1e-3",
    ]
    rng = np.random.default_rng(0)
    for cells in [rng.choice(pool, 3).tolist() for _ in range(300)] + [["inf", "1"], ["1e400", "2"], ["1e200", "2"]]:
        assert votes_of(cells).tolist() == sum(votes_of([cell]) for cell in cells).tolist()
