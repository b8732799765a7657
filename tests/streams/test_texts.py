"""Texts: pieces, scores and columns beside independent computations, and the default learner of frames with texts."""

import itertools
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from kernelstream import KernelClassifier, KernelRegressor, engine, load, save
from kernelstream.columns import Columns, text
from kernelstream.columns._texts import TextColumn, packed, run

ENGINES = ["python", *["native"] * engine.has_native()]
ODD = [
    "Zürich, İstanbul! “quoted” — 東京都\u3000x",
    "",
    "Don't DON'T a",
    "!!!",
    "a" * 50 + " \U0001f600b",
    "\ud800 lone",
]
GOOD, BAD = ["great", "lovely", "excellent", "fine", "superb"], ["awful", "poor", "terrible", "broken", "useless"]
OTHER = ["the", "phone", "case", "arrived", "on", "a", "day", "with", "my", "box", "and", "it", "is", "this", "one"]


def messages(n, seed=0, labels=2):
    """Texts of ten words, of which two tell the label."""
    rng = np.random.default_rng(seed)
    y = rng.integers(labels, size=n)
    told = [GOOD, BAD, ["green", "blue", "red", "yellow", "pink"]]
    texts = [" ".join([*rng.choice(OTHER, 8), *rng.choice(told[label], 2)]) for label in y]
    return texts, y


def native_or_python(name):
    if name == "python":
        return text.text_pieces, text.text_pass
    from kernelstream import _core

    return (lambda characters, ends: _core.text_pieces(characters, ends, text.AMOUNTS)), _core.text_pass


# -------------------------------------------------------------------- pieces
def naive_pieces(value, family):
    """Amounts by place and sign, from strings."""
    if family == 0:
        marks = r"[\0-/:-@\[-`{-\x7f\x80-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\u2000-\u206f\u3000-\u303f]"
        words = [word for word in re.split(marks, value.lower()) if word]
        found = [*words, *map(" ".join, itertools.pairwise(words))]
    else:
        words = [f" {word} " for word in value.lower().split()]
        found = [word[i : i + n] for word in words for n in (3, 4, 5) for i in range(len(word) - n + 1)]
    counts = {}
    for piece in found:
        h = 0xCBF29CE484222325
        for character in piece:
            h = (h ^ ord(character)) * 0x100000001B3 % 2**64
        h = (h ^ (h >> 29)) * 0xBF58476D1CE4E5B9 % 2**64
        key = (h ^ (h >> 32)) % 2**19
        counts[key] = counts.get(key, 0) + 1
    return [(key % 2**18, (-1) ** (key >> 18) * np.log2(1 + count)) for key, count in sorted(counts.items())]


@pytest.mark.parametrize("name", ENGINES)
def test_pieces_are_those_of_strings(name):
    values = [*ODD, *messages(20)[0]]
    pieces, _ = native_or_python(name)
    places, amounts, stops = pieces(*packed(values))
    assert len(stops) == 2 * len(values) and stops[-1] == len(places) == len(amounts)
    start = 0
    for i, stop in enumerate(stops):
        wanted = naive_pieces(values[i // 2], i % 2)
        assert places[start:stop].tolist() == [place for place, _ in wanted]
        np.testing.assert_allclose(amounts[start:stop], [amount for _, amount in wanted], rtol=1e-15)
        start = stop


def test_what_is_behind_the_hundred_thousandth_character_is_not_read():
    long = "word " * 20_000
    assert packed([long + "more"])[1].tolist() == [100_000]
    assert text.pieces_of([ord(c) for c in long], 0)[0][1] in (8.0, -8.0)  # of a piece that comes 255 times or more


# -------------------------------------------------------------------- scores
def scores_of(name, values, Y, numbers=False, weight=None):
    pieces, learn = native_or_python(name)
    places, amounts, stops = pieces(*packed(values))
    made = TextColumn(numbers, Y.shape[1])
    block = {"places": places, "amounts": amounts, "stops": stops, "Y": Y, "weight": weight}
    out, units = np.empty((6, len(values), Y.shape[1])), np.empty((len(values), 2))
    learn(made.state, block, numbers, out, units)
    return out, units, made.state


@pytest.mark.skipif(len(ENGINES) < 2, reason="no compiled core")
@pytest.mark.parametrize("outputs", [0, 1, 3])
def test_engines_agree_to_the_last_bit(outputs, rng):
    texts, y = messages(60, labels=max(outputs, 2))
    texts[7:9], numbers = ODD[:2], outputs == 0
    Y = rng.normal(size=(60, 1)) if numbers else y[:, None].astype(float) if outputs == 1 else np.eye(3)[y]
    weight = rng.integers(3, size=60).astype(float)
    results = [scores_of(name, texts, Y, numbers, weight) for name in ENGINES]
    for a, b in zip(*((r[0], r[1], *r[2].values()) for r in results), strict=True):
        np.testing.assert_array_equal(a, b)


def dense(values, family):
    """Rows of all pieces, (n, places with a sign), of independent amounts."""
    X = np.zeros((len(values), 2**18))
    for row, value in zip(X, values, strict=True):
        for place, amount in naive_pieces(value, family):
            row[place] += amount
    return X[:, X.any(axis=0)]


@pytest.mark.parametrize("name", ENGINES)
def test_the_linear_scores_are_those_of_adagrad(name):
    texts, y = messages(80)
    out, _, _ = scores_of(name, texts, y[:, None].astype(float))
    for family in (0, 1):
        X = dense(texts, family)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        X = np.column_stack([X, np.ones(80)])
        w, G = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        for i, x in enumerate(X):
            assert abs(out[3 * family, i, 0] - x @ w) < 1e-5  # weights are float32
            g = (1 / (1 + np.exp(-x @ w)) - y[i]) * x
            G += g**2
            w -= 0.3 * g / np.sqrt(G + 1e-8)


@pytest.mark.parametrize("name", ENGINES)
def test_the_scores_of_naive_bayes_are_those_of_counts(name):
    texts, y = messages(80, labels=3)
    out, _, _ = scores_of(name, texts, np.eye(3)[y])
    for family in (0, 1):
        X = np.abs(dense(texts, family))
        for i in (1, 5, 79):
            for c in range(3):
                yes, no = X[:i][y[:i] == c].sum(axis=0), X[:i][y[:i] != c].sum(axis=0)
                V = np.count_nonzero(yes + no)
                odds = np.log((yes + 1) / (yes.sum() + V)) - np.log((no + 1) / (no.sum() + V))
                prior = np.log((1 + (y[:i] == c).sum()) / (1 + (y[:i] != c).sum()))
                wanted = min(0.7, 2.1 / np.sqrt(1 + X[i].sum())) * (X[i] @ odds + prior)
                assert abs(out[3 * family + 2, i, c] - np.clip(wanted, -8, 8)) < 1e-5


def test_the_first_label_gets_an_output_of_its_own_with_the_third():
    """Until then it has the opposite scores of the second; then it is as if it had been there from the start."""
    texts, y = messages(60)
    Y = np.stack([y, 1 - y, np.zeros(60)], axis=1).astype(float)
    _, _, three = scores_of(ENGINES[-1], texts, Y)
    grown = TextColumn(False)
    run(grown, texts, ENGINES[-1], y[:, None].astype(float), None, None)
    grown.grow(3)
    kept = slice(0, 11)
    np.testing.assert_allclose(grown.state["table"][:, kept], three["table"][:, kept], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(grown.state["sums"][:, :15], three["sums"][:, :15], atol=1e-9)


# -------------------------------------------------------------------- the encoder
def test_kinds_are_told_by_many_cells():
    texts, _ = messages(300)
    some = ["Not in universe or children", "Child under 18 never married here", "Spouse of householder", "Own"]
    frame = pd.DataFrame(
        {
            "text": ["Yes", *texts[1:]],
            "long": [value * 3 for value in texts],
            "category": [some[i % 4] for i in range(300)],
            "short": [value.split()[-1] for value in texts],
        }
    )
    kinds = {"text": "text", "long": "text", "category": "category", "short": "category"}
    y = np.arange(300) % 2
    assert Columns().fit(frame, y).kinds_ == kinds
    assert Columns().partial_fit(frame, y).kinds_ == kinds
    assert Columns(kinds={"short": "text"}).fit(frame, y).kinds_["short"] == "text"


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("labels", [None, 2, 4])
def test_an_encoder_is_the_same_however_the_rows_are_cut(name, labels, rng):
    n = 150
    texts, y = messages(n)
    y = rng.normal(size=n) if labels is None else np.array(list("abcd"))[rng.integers(labels, size=n)]
    rows = [{"one": text, "two": texts[-i] if i % 5 else None, "x": i % 7} for i, text in enumerate(texts)]
    whole = Columns(engine=name)
    X = whole.learn_transform(rows, y)
    enc, parts, start = Columns(engine=name), [], 0
    while start < n:
        stop = min(n, start + int(rng.choice([1, 1, 2, 40])))
        parts.append(enc.learn_transform(rows[start] if stop == start + 1 else rows[start:stop], y[start:stop]))
        if rng.random() < 0.2:  # killed and resumed
            state, enc = pickle.loads(pickle.dumps(enc.state_)), Columns(engine=name)
            enc.state_ = state
        start = stop
    wide = np.concatenate([np.pad(part, ((0, 0), (0, X.shape[1] - part.shape[1]))) for part in parts])
    np.testing.assert_allclose(wide, X, rtol=0, atol=0 if name == "python" else 1e-11)
    assert enc.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
    for key, value in whole.state_.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(
                enc.state_[key], value, rtol=1e-9, atol=0 if name == "python" else 1e-9, err_msg=key
            )
    np.testing.assert_array_equal(whole.transform(rows[3]), whole.transform(rows[:5])[3:4])
    said = [
        i for i, part in enumerate(whole.get_feature_names_out()) if part.startswith("one:") and part != "one:missing"
    ]
    assert len(said) > 6 and not whole.transform([{"one": None, "x": 1}])[:, said].any()  # a missing text says nothing


def test_a_failed_call_leaves_tables_of_texts_as_they_were():
    texts, y = messages(100)
    enc = Columns(kinds={"x": "number"}, strict=True).partial_fit(_rows(texts), y)
    before = enc.state_
    with pytest.raises(ValueError, match="is not a number"):
        enc.partial_fit([{"t": "great phone that is broken", "x": "word"}], [1])
    model = KernelClassifier(size="small", random_state=0)
    model.learn(_rows(texts), y)
    with pytest.raises(ValueError):
        model.learn(_rows(texts[:3]), [0, 1])
    for key, value in before.items():
        np.testing.assert_array_equal(enc.state_[key], value)


def _rows(texts):
    return [{"t": text, "x": 1.0} for text in texts]


FORGED = {
    "text_pieces": lambda a: a[::-1].copy(),
    "text_sizes": lambda a: a + 1,
    "text_table": lambda a: -a,
    "text_sums": lambda a: np.where(np.arange(a.size).reshape(a.shape) % 9 == 3, 1e9, a),
    "text_target": lambda a: a - 1.0,
    "text_stack_w": lambda a: a[:, :, :-1],
    "text_stack_A": lambda a: a * np.nan,
    "flags": lambda a: a & 15,
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_tables_of_texts_are_refused(name):
    texts, y = messages(60)
    state = Columns().partial_fit(_rows(texts), y).state_
    Columns().state_ = state
    for change in (FORGED[name], lambda a: a[:-1], lambda a: a.astype("float16")):
        with pytest.raises(ValueError):
            Columns().state_ = state | {name: change(state[name])}
    with pytest.raises(ValueError):
        Columns().state_ = {key: value for key, value in state.items() if key != name}
    if name == "text_pieces":
        for value in (-1, 2**19):
            with pytest.raises(ValueError):
                Columns().state_ = state | {name: np.append(state[name][:-1], np.int32(value))}


# -------------------------------------------------------------------- the default learner
@pytest.mark.parametrize("labels", [2, 3])
def test_a_frame_of_nothing_but_texts(labels):
    texts, y = messages(700, labels=labels)
    frame, names = pd.DataFrame({"review": texts}), np.array(["good", "bad", "colour"])[y]
    streamed = KernelClassifier(size="small", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        streamed.learn(frame[:500], names[:500])
        fitted = KernelClassifier(size="small", random_state=0).fit(frame[:500], names[:500])
    for model in (streamed, fitted):
        assert model.score(frame[500:], names[500:]) > 0.97
        assert model.columns_.kinds_ == {"review": "text"}
    assert any(member["name"] == "texts" for member in streamed.members_)


def test_numbers_are_told_from_texts():
    texts, y = messages(600)
    target = 100.0 + 20 * y + np.random.default_rng(1).normal(size=600)
    frame = pd.DataFrame({"review": texts, "size": np.arange(600) % 5})
    for how in ("learn", "fit"):
        model = KernelRegressor(size="small", random_state=0)
        getattr(model, how)(frame[:450], target[:450])
        assert model.score(frame[450:], target[450:]) > 0.9


def test_rows_of_every_kind_are_the_same(tmp_path):
    polars = pytest.importorskip("polars")
    texts, y = messages(300)
    frame = pd.DataFrame({"review": texts, "x": np.arange(300) % 3})
    model = KernelClassifier(size="small", random_state=0)
    model.learn(frame[:200], y[:200])
    wanted = model.predict_proba(frame[200:])
    rows = frame[200:].to_dict("records")
    np.testing.assert_array_equal(model.predict_proba(polars.from_pandas(frame[200:])), wanted)
    np.testing.assert_array_equal(model.predict_proba(rows), wanted)
    np.testing.assert_allclose(model.predict_proba(rows[0]), wanted[:1], rtol=1e-12)
    save(model, tmp_path / "m.ks")
    copies = [load(tmp_path / "m.ks"), pickle.loads(pickle.dumps(model))]
    model.learn(frame[200:], y[200:])
    for copy in copies:
        np.testing.assert_array_equal(copy.predict_proba(frame[200:]), wanted)
        copy.learn(frame[200:], y[200:])
        np.testing.assert_array_equal(copy.predict_proba(frame), model.predict_proba(frame))


@pytest.mark.parametrize("first", ["word", "text"])
def test_the_default_learner_is_the_same_however_rows_are_cut(first, tmp_path, rng):
    n = 260
    texts, y = messages(n, labels=3)
    y[:90] %= 2
    rows = [{"review": text, "x": i % 4} for i, text in enumerate(texts)]
    rows[0]["review"] = "Yes" if first == "word" else texts[0]
    whole = KernelClassifier(size="small", random_state=0)
    F = whole.learn(rows, y)
    model, parts, start = KernelClassifier(size="small", random_state=0), [], 0
    while start < n:
        stop = min(n, start + int(rng.choice([1, 3, 60])))
        one = stop == start + 1
        parts.append(
            np.atleast_1d(model.learn(rows[start] if one else rows[start:stop], y[start] if one else y[start:stop]))
        )
        if rng.random() < 0.1:
            save(model, tmp_path / "m.ks")
            model = load(tmp_path / "m.ks")
        start = stop
    assert [m["name"] for m in model.members_] == [m["name"] for m in whole.members_]
    last = parts[-1].reshape(-1, 3)
    np.testing.assert_allclose(last, F[-len(last) :], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(rows), whole.predict_proba(rows), rtol=1e-7, atol=1e-9)


# -------------------------------------------------------------------- spellings
TOWNS = ["London", "Paris", "Berlin", "Madrid", "Lisbon", "Vienna", "Warsaw", "Amsterdam", "Stockholm"]


def spelt(town, rng):
    """A town as somebody types it."""
    letters = list(town)
    for _ in range(rng.choice([0, 1, 2], p=[0.4, 0.45, 0.15])):
        i, letter = rng.integers(len(letters)), chr(97 + rng.integers(26))
        letters[i : i + 1] = [[], [letter], [letters[i], letter], [letters[i], letters[i]]][rng.integers(4)]
    return ["{}", "{} ", "{}, EU", "{}"][rng.integers(4)].format("".join(letters))


def test_spellings_share_what_is_learned_of_them():
    """Towns of different rates of a label, hardly two of them spelt alike: nearly what the true town tells."""
    rng = np.random.default_rng(2)
    town = rng.integers(9, size=2500)
    rate = np.linspace(0.15, 0.85, 9)[rng.permutation(9)][town]
    y, frame = rng.random(2500) < rate, pd.DataFrame({"town": [spelt(TOWNS[i], rng) for i in town]})
    late = slice(800, None)
    oracle = roc_auc_score(y[late], rate[late])
    model = KernelClassifier(size="small", random_state=0)
    scores = model.learn(frame, y)
    assert (
        model.columns_.kinds_ == {"town": "category"}
        and "town:characters linear" in model.columns_.get_feature_names_out()
    )
    assert roc_auc_score(y[late], scores[late]) > oracle - 0.04
    fitted = KernelClassifier(size="small", random_state=0).fit(frame[:800], y[:800])
    assert roc_auc_score(y[late], fitted.decision_function(frame[late])) > oracle - 0.05


def test_codes_and_clean_words_are_no_spellings():
    letters = ["".join(letters) for letters in itertools.product("abcdefg", "hijklm", "nopq")]
    for words in ([f"customer {i}" for i in range(200)], [f"A-{i}" for i in range(200)], letters):
        frame = pd.DataFrame({"x": words})
        assert not any("linear" in name for name in Columns().fit(frame, np.arange(len(words))).get_feature_names_out())
