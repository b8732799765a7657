"""Dictionaries of anything: no exception but ValueError, no trace of a refused row, finite numbers, any split."""

from __future__ import annotations

import datetime
import decimal
import math
import warnings

import numpy as np
import pytest

from kernelstream.columns import Columns
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
        before = single.transform(row) if i % 50 == 0 else None
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


@pytest.mark.parametrize("seed", range(2))
def test_rows_of_anything(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        enc = run(4000, seed)
    assert len(enc.kinds_) == 25 and enc.wrong_


def test_blocks_of_anything():
    rng = np.random.default_rng(9)
    enc = Columns(max_categories=200, max_columns=25)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pool = [odd_row(rng) for _ in range(2000)]
        for block in range(100):  # a hundred thousand rows
            rows = [pool[i] for i in rng.integers(0, len(pool), 1000)]
            X = enc.learn_transform(rows, rng.choice(["a", "b", "c", "d", "e", "f", "g"], len(rows)))
            assert np.isfinite(X).all()
            if block % 10 == 0:
                assert np.isfinite(enc.transform(rows)).all()


@pytest.mark.slow
def test_a_million_rows_of_anything():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(1_000_000, 5, check=1000)
