"""Dictionaries of anything: no exception but ValueError, no trace of a refused row, finite numbers, any split."""

from __future__ import annotations

import datetime
import decimal
import math
import warnings

import numpy as np
import pytest

from kernelstream.columns import Columns
from kernelstream.streams.cells import number, numbers
from kernelstream.testing.streaming import assert_same_state

ODD = [
    None, math.nan, math.inf, -math.inf, 1e308, -1e308, 10**400, -(10**30), 0, -0.0, 1, 2.5, True, False, "", " ",
    "NA", "?", "abc", "1", "1e5", "inf", "nan", "0x10", "1_000", "2024-05-01", "2024-13-45", "12:30", "\ud800", "\x00",
    "é" * 200, b"bytes", b"\xff", [], {}, (1,), {1}, object(), np.float32(1.5), np.int8(3), np.nan, np.bool_(True),
    np.datetime64("2020-01-01"), np.datetime64("NaT"), np.timedelta64(5, "s"), datetime.date(2020, 1, 1),
    datetime.datetime.max, datetime.time(3),
    datetime.timedelta(1), decimal.Decimal("1.5"), decimal.Decimal("sNaN"), decimal.Decimal("Infinity"), 1j, np.ones(3),
    np.str_("x"), range(3),
]  # fmt: skip
WORDS = [f"w{i}" for i in range(300)]


def odd_row(rng):
    keys = [f"k{i}" for i in rng.integers(0, 12, rng.integers(0, 8))] + (
        [int(rng.integers(30))] if rng.random() < 0.05 else []
    )
    row = {}
    for key in keys:
        draw = rng.random()
        row[key] = (
            WORDS[rng.integers(300)] if draw < 0.4 else float(rng.normal()) if draw < 0.7
            else int(rng.integers(9)) if draw < 0.8 else ODD[rng.integers(len(ODD))]
        )  # fmt: skip
    return row


def run(n, seed, check=20):
    """Learn n odd rows one at a time and in blocks, some with odd targets; every refusal must leave no trace."""
    rng = np.random.default_rng(seed)
    pool = [odd_row(rng) for _ in range(min(n, 20_000))]  # making rows takes longer than learning them
    single = Columns(max_categories=60, max_columns=25)
    blocks = Columns(max_categories=60, max_columns=25)
    single.fit([{"k0": "w0"}], [0.0])
    blocks.fit([{"k0": "w0"}], [0.0])
    held, refused = ([], []), 0
    for i in range(n):
        row, y = pool[rng.integers(len(pool))], float(rng.normal())
        if rng.random() < 0.02:
            state = single.state_ if refused % check == 0 else None
            wrong = [math.nan, math.inf, "word", None, [1.0, 2.0], [[1.0]], object()][rng.integers(7)]
            with pytest.raises(ValueError):
                single.learn_transform(row, wrong)
            refused += 1
            if state is not None:
                assert_same_state(single.state_, state, 0.0, "refused")
        known = not row or not single.kinds_.keys().isdisjoint(map(str, row))  # other rows are refused
        before = single.transform(row) if i % 50 == 0 and known else None
        X = single.learn_transform(row, y)
        assert np.isfinite(X).all()
        if before is not None:
            np.testing.assert_array_equal(before, X[:, : before.shape[1]])
        held[0].append(row)
        held[1].append(y)
        if rng.random() < 0.02:
            blocks.learn_transform(*held)
            held = ([], [])
    blocks.partial_fit(*held)
    assert_same_state(single.state_, blocks.state_, 0.0, "split")
    assert refused
    return single


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_rows_of_anything(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        enc = run(2500, seed)
    assert len(enc.kinds_) == 25 and enc.wrong_


def test_both_readers_of_dictionaries():
    """The compiled reader of single dictionaries and the road of blocks: same numbers and state, whatever the cells."""
    rng = np.random.default_rng(3)
    rows = [odd_row(rng) for _ in range(400)]
    one, other = (Columns(max_categories=60, max_columns=25, engine=engine) for engine in ("native", "python"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, row in enumerate(rows):
            np.testing.assert_allclose(one.learn_transform(row, i % 3), other.learn_transform(row, i % 3), atol=1e-12)
            if rows[-i] and not set(map(str, rows[-i])) & one.kinds_.keys():
                for columns in (one, other):
                    with pytest.raises(ValueError, match="none of the columns"):
                        columns.transform(rows[-i])
                continue
            np.testing.assert_allclose(one.transform(rows[-i]), other.transform(rows[-i]), atol=1e-12)
    assert one.kinds_ == other.kinds_ and one.wrong_ == other.wrong_
    assert_same_state(one.state_, other.state_, 1e-12, "engines")


def test_texts_as_numbers():
    """A column of texts, read at once, is what Python's float makes of each; gaps are NaN, the rest is wrong."""
    rng = np.random.default_rng(0)
    tokens = ["", "0", "-0", "+1", ".5", "5.", "1e3", "1E-400", "1e999", "1_0", " 7 ", "0x1", "nan", "NA", "٣", "1,5",
              "123456789012345678901234567890", "2.2250738585072011e-308", "--1", "1e", "\x00", "1\x00"]  # fmt: skip
    for _ in range(300):
        cells = [repr(float(x)) for x in rng.normal(size=3) * 10.0 ** rng.integers(-30, 30, 3)]
        cells += [tokens[i] for i in rng.integers(0, len(tokens), rng.integers(0, 3))]
        found, wrong = numbers(cells)
        truth = [number(cell) for cell in cells]
        assert wrong == [i for i, x in enumerate(truth) if x is None]
        np.testing.assert_array_equal(found, [math.nan if x is None else x for x in truth])


@pytest.mark.slow
def test_a_million_rows_of_anything():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(1_000_000, 5, check=1000)
