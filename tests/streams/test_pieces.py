"""The default learner where columns appear late or change their kind: any split into calls is the same model."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.columns import Columns
from kernelstream.estimators._contract.first_rows import FirstRows
from kernelstream.testing.streaming import assert_same_state

N = 420
CHANGES = (4, 8, 16, 32, 64, 128, 256)  # rows after which a column turns out to be of another kind
TO_NUMBERS = {
    f"number after {at}": lambda i, rng, at=at: "soon" if i < 3 * at // 8 else f"{rng.normal():.2f}" for at in CHANGES
}
pytestmark = pytest.mark.filterwarnings("ignore:column .* holds:UserWarning")


def late_columns(seed):
    """Words, dates, gaps, columns that come late, and kinds that change after 4, 8, ..., 256 rows."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(N):
        row = {
            "town": ["Rome", "Oslo", "Paris"][rng.integers(3)],
            "x": rng.normal(),
            "day": f"2024-05-{1 + i % 31:02d}",
        }
        row["gaps"] = None if i < 23 or rng.random() < 0.1 else rng.normal()
        row |= {name: cell(i, rng) for name, cell in TO_NUMBERS.items()}
        row["words after 128"] = "7" if i < 100 and i % 2 else f"{rng.integers(9)}{'ab'[rng.integers(2)]}"
        if i >= 37:
            row["late"] = rng.normal()
        if i >= 201:
            row["later"] = "uvw"[rng.integers(3)]
        rows.append(row)
    signal = np.array([row["x"] + (row["town"] == "Oslo") - row.get("late", 0.0) for row in rows])
    return rows, signal + 0.1 * rng.normal(size=N)


TARGETS = {
    "numbers": lambda s: s,
    "two labels": lambda s: np.where(s > 0, "yes", "no"),
    "four labels": lambda s: np.where(
        np.arange(N) < 150, np.where(s > 0, "c", "a"), np.array(list("dbca"))[np.digitize(s, (-1, 0, 1))]
    ),
}


def cuts(seed):
    """Places where the rows are cut into calls: single rows, and runs of any length."""
    rng = np.random.default_rng(seed)
    lengths = rng.choice([1, 1, 2, 5, 40, 150], N) if seed else np.ones(N, int)
    return [0, *[int(at) for at in np.cumsum(lengths) if at < N], N]


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 12), marks=pytest.mark.slow)], ids=["few", "more"])
@pytest.mark.parametrize("target", TARGETS)
def test_any_split_of_rows_with_late_columns_is_the_same_model(target, seeds):
    rows, signal = late_columns(0)
    y, make = TARGETS[target](signal), KernelRegressor if target == "numbers" else KernelClassifier
    weight = np.where(np.arange(N) % 9, 1.0, 0.0) if target == "two labels" else np.ones(N)
    whole = make(size="small", random_state=0)
    scores = whole.learn(rows, y, sample_weight=weight)
    assert set(whole.columns_.kinds_) == set(rows[-1])
    assert all(whole.columns_.kinds_[name] == "number" for name in TO_NUMBERS)
    assert whole.columns_.kinds_["words after 128"] == "category"
    state, expected = whole.state_, whole.decision_function(rows) if target != "numbers" else whole.predict(rows)
    for seed in seeds:
        at = cuts(seed)
        model = make(size="small", random_state=0)
        for start, stop in pairwise(at):
            found = model.learn(rows[start:stop], y[start:stop], sample_weight=weight[start:stop])
            if found.ndim == scores.ndim and found.shape[1:] == scores.shape[1:]:  # all labels are known
                np.testing.assert_allclose(found, scores[start:stop], rtol=1e-9, atol=1e-11)
        assert_same_state(model.state_, state, 1e-8, "state")
        answers = model.decision_function(rows) if target != "numbers" else model.predict(rows)
        np.testing.assert_allclose(answers, expected, rtol=1e-9, atol=1e-11)


def test_a_frame_is_its_rows():
    """A table in one call and as dictionaries; its cells are gaps where a column has not begun."""
    rows, y = late_columns(1)
    frame = pd.DataFrame(rows)
    whole, single = (KernelRegressor(size="small", random_state=0) for _ in range(2))
    scores = whole.learn(frame, y)
    for start, stop in ((0, 10), (10, 37), (37, 38), (38, 202), (202, N)):
        found = single.learn(frame[start:stop], pd.Series(y[start:stop], index=range(7, 7 + stop - start)))
        np.testing.assert_allclose(found, scores[start:stop], rtol=1e-9, atol=1e-11)
    assert whole.n_features_in_ == single.n_features_in_ == frame.shape[1]


def test_the_answers_follow_a_change_of_kind_at_once():
    """The row after which a kind changes is the last of a call: the model has the encoder's columns."""
    rows = [{"x": "soon"}, {"x": "1.5"}, {"x": "2.5"}, {"x": "3.5"}]
    model = KernelRegressor(size="small", random_state=0)
    model.learn(rows, [0.0, 1.0, 2.0, 3.0])
    assert model.columns_.kinds_ == {"x": "number"} and model.columns_.width_ == model.state_["n_features"]
    assert np.isfinite(model.predict(rows)).all()


def test_a_call_that_fails_in_a_later_piece_leaves_no_trace(monkeypatch):
    rows, signal = late_columns(2)
    for y, make in ((signal, KernelRegressor), (TARGETS["two labels"](signal), KernelClassifier)):
        for begun in (0, 150):
            model, twin = (make(size="small", random_state=0) for _ in range(2))
            if begun:
                model.learn(rows[:begun], y[:begun])
                twin.learn(rows[:begun], y[:begun])
            widths, learn = set(), FirstRows.learn

            def failing(self, state, X, *args, widths=widths, learn=learn):
                widths.add(X.shape[1])
                if len(widths) == 3:
                    raise MemoryError
                return learn(self, state, X, *args)

            monkeypatch.setattr(FirstRows, "learn", failing)
            with pytest.raises(MemoryError):
                model.learn(rows[begun:], y[begun:])
            monkeypatch.undo()
            assert len(widths) == 3
            if begun:
                assert_same_state(model.state_, twin.state_, 0.0, "state")
            else:
                assert not hasattr(model, "state_") and not hasattr(model, "columns_")
            again, expected = (one.learn(rows[begun:300], y[begun:300]) for one in (model, twin))
            np.testing.assert_array_equal(again, expected)


def test_the_rows_of_a_call_are_those_of_the_encoder():
    """Each piece is encoded as the same rows of an encoder alone, whose columns it names."""
    rows, y = late_columns(3)
    whole, single = Columns(), Columns()
    X, widths = whole._learn(rows, y, None)
    for i, row in enumerate(rows):
        one = single.learn_transform(row, y[i])
        np.testing.assert_array_equal(X[i, : one.shape[1]], one[0])
        own = [width for start, width in widths if start <= i]
        assert not X[i, own[-1] :].any() and not one[0, own[-1] :].any()
