"""Words, dates and gaps on the command line: training, prediction row by row, and what is said about it."""

from __future__ import annotations

import csv
import datetime
import functools
import io
import json
import os
import re
import sys
import threading

import numpy as np
import pytest
from command_line import err, out, run
from sklearn import metrics

import kernelstream
from kernelstream import streams
from kernelstream.columns import Columns, make_stream
from kernelstream.columns.kinds import all_numbers, guess
from kernelstream.evaluate import Tally
from kernelstream.streams.marks import NumberMarks, find_marks
from kernelstream.testing.streaming import assert_same_state

pytestmark = pytest.mark.usefixtures("plain_default")


def flights(n, seed=0):
    rng = np.random.default_rng(seed)
    for i in range(n):
        town, hour = ["Rome", "Oslo", "New York, NY", 'The "Hague"'][rng.integers(4)], int(rng.integers(24))
        late = (town == "Oslo") != (7 <= hour <= 9)
        yield {
            "id": f"f{i}",
            "town": "" if rng.random() < 0.05 else town,
            "hour": hour,
            "temp": "" if rng.random() < 0.1 else round(float(rng.normal(15, 8)), 1),
            "when": f"2024-{1 + i % 12:02d}-{1 + i % 28:02d} {hour:02d}:30",
            "delayed": "yes" if late else "no",
        }


def write(path, rows, names=None):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names or list(rows[0]), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def of_numbers(folder):
    """A table of numbers, and a model of it."""
    (folder / "n.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 7},{i * 1.5}\n" for i in range(50)))
    assert run("train", folder / "n.csv", "--target", "y", "-q", "-m", folder / "n.ks") == 0


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    rows = list(flights(900))
    write(folder / "flights.csv", rows[:700])
    write(folder / "test.csv", rows[700:])
    write(folder / "new.csv", rows[700:], ["when", "extra", "temp", "town", "id", "hour"])
    with open(folder / "flights.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({k: v for k, v in row.items() if v != ""}) + "\n" for row in rows[:700])
    train = ["train", folder / "flights.csv", "--target", "delayed", "--drop", "id", "--loss", "logistic", "-q"]
    assert run(*train, "-m", folder / "m.ks") == 0
    return folder


def test_a_table_of_words_is_learned_as_it_is(home, capsys):
    said = err(capsys, 0, "train", home / "flights.csv", "--target", "delayed", "--drop", "id", "-m", home / "x.ks")
    for name, kind in (("town", "category"), ("hour", "integer"), ("temp", "number"), ("when", "date")):
        assert f"  {name}  {kind}" in said
    # the same as the library does with the same rows
    cells = list(streams.open(home / "flights.csv", target="delayed", drop=["id"], mixed=True))
    model = kernelstream.load(home / "m.ks")
    same = make_stream(Columns(kinds=model.columns.kinds), model.model)
    for rows, y in cells:
        same.learn(rows, y)
    assert_same_state(same.state_, model.state_, 0.0, "library")
    assert model.score(cells[0][0], cells[0][1]) > 0.85


def test_learners_of_all_rows_take_words_too(home, capsys):
    """Several blocks of cells are one table to a learner that needs all rows together."""
    train = ["train", home / "flights.csv", "--target", "delayed", "--drop", "id,when", "-a", "random_binning_ridge"]
    assert run(*train, "--block", "200", "-m", home / "all.ks", "-q") == 0
    answers = out(capsys, "predict", home / "all.ks", home / "test.csv", "-q").split()
    with open(home / "test.csv", newline="", encoding="utf-8") as file:
        truth = [row["delayed"] for row in csv.DictReader(file)]
    assert metrics.accuracy_score(truth, answers) > 0.85


def test_json_lines_are_read_as_tables_are(home, capsys):
    train = ["train", home / "flights.jsonl", "--target", "delayed", "--drop", "id", "--loss", "logistic", "-q"]
    assert run(*train, "-m", home / "j.ks") == 0
    a, b = (out(capsys, "predict", home / name, home / "test.csv", "-q") for name in ("m.ks", "j.ks"))
    same = np.mean(np.array(a.split()) == np.array(b.split()))
    assert len(a.split()) == 200 and same > 0.95  # the kinds are told from other bytes, hence other columns


def test_kinds_can_be_given(home, capsys):
    columns = "hour=category,temp=ignore"
    train = ["train", home / "flights.csv", "--target", "delayed", "--drop", "id", "--columns", columns, "-q"]
    assert run(*train, "--drop", "when", "-m", home / "k.ks") == 0
    assert kernelstream.load(home / "k.ks").columns_.kinds_ == {
        "town": "category",
        "hour": "category",
        "temp": "ignored",
    }
    shown = out(capsys, "info", home / "k.ks")
    assert re.search(r"^features +\d+ \(float64\)$", shown, re.MULTILINE)
    assert "town (category), hour (category), temp (ignored)" in shown
    assert json.loads(out(capsys, "info", home / "k.ks", "--json"))["columns"]["hour"] == "category"
    for wrong, said in (
        ("hour=categry", "kinds are"),
        ("hours=category", "did you mean 'hour'"),
        ("hour", "COLUMN=KIND"),
    ):
        argv = ("train", home / "flights.csv", "--target", "delayed", "-m", home / "no.ks", "--columns", wrong)
        assert said in err(capsys, 2, *argv)


def test_wrong_cells_are_counted_with_their_line_or_errors(home, tmp_path, capsys):
    rows = list(flights(300))
    rows[120]["temp"] = rows[200]["temp"] = "abc"
    write(tmp_path / "t.csv", rows)
    train = ["train", tmp_path / "t.csv", "--target", "delayed", "--drop", "id", "--block", 64, "-m", tmp_path / "t.ks"]
    said = "column 'temp': 2 cells that are not a number, taken as missing, the first in line 122"
    assert said in err(capsys, 0, *train)
    os.remove(tmp_path / "t.ks")
    assert "column 'temp', row" in err(capsys, 1, *train, "--strict")
    assert not (tmp_path / "t.ks").exists()


def test_predictions_have_a_line_for_each_row(home, tmp_path, capsys):
    lines = out(capsys, "predict", home / "m.ks", home / "new.csv", "-q").splitlines()
    truth = [row["delayed"] for row in list(flights(900))[700:]]
    assert len(lines) == 200 and np.mean(np.array(lines) == truth) > 0.85
    table = list(
        csv.DictReader(io.StringIO(out(capsys, "predict", home / "m.ks", home / "new.csv", "--csv", "--id", "id")))
    )
    assert [row["id"] for row in table] == [f"f{i}" for i in range(700, 900)]
    assert [row["prediction"] for row in table] == lines
    for row in table:
        assert float(row["p(no)"]) + float(row["p(yes)"]) == pytest.approx(1)
        assert (float(row["p(yes)"]) >= 0.5) == (row["prediction"] == "yes")
    # a model of numbers, and rows that it cannot read
    (tmp_path / "bad.csv").write_text("id,a,b\nu,1,2\nv,,3\nw,x,5\nx,7,5\n")
    of_numbers(tmp_path)
    lines = out(capsys, "predict", tmp_path / "n.ks", tmp_path / "bad.csv", "--on-error", "skip", "-q").split("\n")
    good = out(capsys, "predict", tmp_path / "n.ks", tmp_path / "n.csv", "-q").split("\n")
    assert [bool(line) for line in lines] == [True, False, False, True, False]
    assert len(good) == 51
    (tmp_path / "good.csv").write_text("id,a,b\nu,1,2\nx,7,5\n")
    table = out(capsys, "predict", tmp_path / "n.ks", tmp_path / "good.csv", "--id", "id").splitlines()
    assert table[0] == "id,prediction" and [line[:2] for line in table[1:]] == ["u,", "x,"]
    values = [float(line[2:]) for line in table[1:]]
    assert values == pytest.approx([float(lines[0]), float(lines[3])], rel=1e-12)
    # the id may be a column that the model uses, too
    table = out(capsys, "predict", tmp_path / "n.ks", tmp_path / "good.csv", "--id", "a").splitlines()
    assert [float(line[2:]) for line in table[1:]] == values
    plain = out(capsys, "predict", home / "m.ks", home / "new.csv", "-q").splitlines()
    table = csv.DictReader(io.StringIO(out(capsys, "predict", home / "m.ks", home / "new.csv", "--id", "town")))
    assert [row["prediction"] for row in table] == plain


class Fed:
    """A pipe that brings the next piece once the last one has been answered."""

    def __init__(self, pieces):
        self.answered = threading.Semaphore(0)
        self.late = False
        read, self.write = os.pipe()
        self.file = os.fdopen(read, "rb")
        self.thread = threading.Thread(target=self._feed, args=(pieces,), daemon=True)
        self.thread.start()

    def _feed(self, pieces):
        with os.fdopen(self.write, "wb", buffering=0) as file:
            for piece, answers in pieces:
                file.write(piece)
                for _ in range(answers):
                    self.late |= not self.answered.acquire(timeout=20)


@pytest.mark.parametrize("kind", ["cells", "json", "csv", "libsvm"])
def test_eager_streams_give_rows_as_they_come(kind):
    texts = {
        "cells": [(b"a,b\n", 0), (b"x,1\ny,2\n", 1), (b"z,", 0), (b"3\n", 1)],
        "json": [(b'{"a": "x"}\n{"a": "y"}\n', 1), (b'{"a"', 0), (b': "z"}\n', 1)],
        "csv": [(b"a,b\n1,2\n2,3\n", 1), (b"4,", 0), (b"5\n", 1)],
        "libsvm": [(b"1 1:2\n1 1:3\n", 1), (b"0 2:", 0), (b"5\n", 1)],
    }
    fed = Fed(texts[kind])
    mixed = functools.partial(streams.CSV, mixed=True)
    makers = {"cells": mixed, "json": streams.JSONLines, "csv": streams.CSV, "libsvm": streams.LibSVM}
    stream = makers[kind](fed.file)
    stream.eager = True
    rows = 0
    for X, _ in stream:
        rows += X.shape[0]
        if rows in (2, 3):
            fed.answered.release()
    fed.thread.join(20)
    assert rows == 3 and not fed.late


def test_predict_answers_a_pipe_row_by_row(home, monkeypatch):
    with open(home / "new.csv", "rb") as file:
        header, first, second = file.readline(), file.readline(), file.readline()
    fed = Fed([(header, 0), (first, 1), (second, 1)])

    class Answers(io.StringIO):
        def write(self, text):
            for _ in range(text.count("\n")):
                fed.answered.release()
            return super().write(text)

    written = Answers()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(fed.file))
    monkeypatch.setattr(sys, "stdout", written)
    monkeypatch.setattr(os, "isatty", lambda fd: False)
    assert run("predict", home / "m.ks", "-", "-q") == 0
    fed.thread.join(20)
    assert len(written.getvalue().split()) == 2 and not fed.late


def test_evaluation_shows_more_than_mistakes(home, capsys):
    shown = json.loads(out(capsys, "evaluate", home / "test.csv", "--model", home / "m.ks", "--json"))
    model = kernelstream.load(home / "m.ks")
    rows, y = streams.open(home / "test.csv", target="delayed", drop=["id"], mixed=True).read()
    p, said = model.predict_proba(rows)[:, 1], model.predict(rows)
    truths = {
        "accuracy": metrics.accuracy_score(y, said), "log_loss": metrics.log_loss(y, p),
        "auc": metrics.roc_auc_score(y, p), "kappa": metrics.cohen_kappa_score(y, said),
        "f1": metrics.f1_score(y, said, pos_label="yes"),
    }  # fmt: skip
    for name, value in truths.items():
        assert shown[name] == pytest.approx(value, abs=1e-12), name
    assert shown["confusion"] == {"labels": ["no", "yes"], "counts": metrics.confusion_matrix(y, said).tolist()}
    assert "label \\ answer" in out(capsys, "evaluate", home / "test.csv", "--model", home / "m.ks")
    text = out(capsys, "evaluate", home / "test.csv", "--target", "delayed", "--loss", "logistic", "-q")
    assert all(word in text for word in ("log loss", "auc", "kappa", "f1", "label \\ answer"))


def test_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, said = rng.integers(0, 12, 500), rng.integers(0, 12, 500)
    tally = Tally("classification")
    for part in np.array_split(np.arange(500), 7):
        tally.add(y[part], said[part])
    found = tally.result()
    assert found["kappa"] == pytest.approx(metrics.cohen_kappa_score(y, said))
    assert found["f1"] == pytest.approx(metrics.f1_score(y, said, average="macro"))
    labels, counts = tally.table()
    assert labels == [str(i) for i in range(12)]
    np.testing.assert_array_equal(counts, metrics.confusion_matrix(y, said))
    p = rng.integers(0, 9, 500) / 8  # with ties
    pair = Tally("classification")
    truth = y % 2
    pair.add(truth, said % 2, np.where(truth == 1, p, 1 - p))
    assert pair.result()["auc"] == pytest.approx(metrics.roc_auc_score(truth, p))
    numbers = Tally("regression")
    for part in np.array_split(np.arange(500), 3):
        numbers.add(y[part] * 1.0, p[part])
    assert numbers.result()["r2"] == pytest.approx(metrics.r2_score(y, p))
    assert numbers.result()["mae"] == pytest.approx(metrics.mean_absolute_error(y, p))


def test_killed_and_resumed_runs_end_alike(home, tmp_path, capsys):
    train = ["train", home / "flights.csv", "--target", "delayed", "--drop", "id", "-q", "--block", "100"]
    assert run(*train, "-m", tmp_path / "whole.ks") == 0
    part = [*train, "--checkpoint", tmp_path / "run", "--every", "100"]
    assert run(*part, "--limit", "300") == 0
    for path in sorted((tmp_path / "run").iterdir())[-1:]:
        assert "300" in path.name
    assert run(*part, "--resume", "-m", tmp_path / "resumed.ks") == 0
    assert_same_state(*(kernelstream.load(tmp_path / f"{n}.ks").state_ for n in ("whole", "resumed")), 0.0, "resumed")
    capsys.readouterr()
    assert run("train", home / "test.csv", "--from", tmp_path / "whole.ks", "-m", tmp_path / "more.ks", "-q") == 0
    assert kernelstream.load(tmp_path / "more.ks").columns_.state_["t"] == 900


def test_numbers_only_are_read_as_ever(home, tmp_path, capsys):
    of_numbers(tmp_path)
    assert isinstance(kernelstream.load(tmp_path / "n.ks"), kernelstream.FeatureRegressor)
    assert run("train", tmp_path / "n.csv", "--target", "y", "-q", "--columns", "auto", "-m", tmp_path / "n.ks") == 0
    assert kernelstream.load(tmp_path / "n.ks").columns_.kinds_ == {"a": "integer", "b": "integer"}


def test_parquet_with_words(home, tmp_path, capsys):
    import pandas as pd

    frame = pd.read_csv(home / "flights.csv").drop(columns="id")
    frame["when"] = pd.to_datetime(frame["when"])
    frame.to_parquet(tmp_path / "f.parquet")
    assert run("train", tmp_path / "f.parquet", "--target", "delayed", "-q", "-m", tmp_path / "p.ks") == 0
    kinds = kernelstream.load(tmp_path / "p.ks").columns_.kinds_
    assert kinds == {"town": "category", "hour": "integer", "temp": "number", "when": "date"}
    assert len(out(capsys, "predict", tmp_path / "p.ks", tmp_path / "f.parquet", "-q").split()) == 700


def test_kinds_are_those_of_most_cells():
    text = "a,b,c,d,e,f\n" + "1,x,2024-01-01,,1.5,7\n2,1,?,,x,8\n3,y,2024-01-02,,2.5,9\n"
    sample = streams.CSV(io.BytesIO(text.encode()), mixed=True).sample()
    kinds = {"a": "integer", "b": "category", "c": "date", "e": "number", "f": "integer"}
    assert guess(sample, list("abcdef")) == kinds
    assert all_numbers(sample, ["a", "f"]) and not all_numbers(sample, ["e"]) and not all_numbers(sample, ["d"])


def test_broken_lines_are_errors_or_left_out():
    text = b'a,b,y\n1,2,3\n1\n1,2,3,4\n"x, y",2,5\n,,\n1,2,word\n'
    stream = streams.CSV(io.BytesIO(text), "y", mixed=True, on_error="skip")
    cells, y = stream.read()
    assert cells.get("a") == ["1", "x, y"] and y.tolist() == [3, 5]
    assert stream.lines == [2, 5] and stream.skipped == 4
    with pytest.raises(streams.BadRowError, match="line 3: 1 fields, but there are 3 columns"):
        streams.CSV(io.BytesIO(text), "y", mixed=True).read()
    lines = streams.JSONLines(io.BytesIO(b'{"y": 1, "a": 2}\n[1]\n{\n{"a": 3}\n\n{"y": 2.5}\n'), "y", on_error="skip")
    rows, y = lines.read()
    assert rows.rows == [{"a": 2}, {}] and y.tolist() == [1, 2.5] and lines.skipped == 3
    with pytest.raises(streams.BadRowError, match="line 2"):
        streams.JSONLines(io.BytesIO(b'{"y": 1}\n[1]\n'), "y").read()


def test_plain_and_odd_lines_are_read_alike():
    """Plain lines are taken many at once, others one by one: rows, lines and positions are the same."""
    rng = np.random.default_rng(0)
    lines = ["a,b,y"]
    for i in range(400):
        odd = rng.random() < 0.1
        kind = rng.integers(6) if odd else -1
        plain = f"{rng.integers(9)}, w{rng.integers(5)} ,{i}"
        lines.append(
            {0: f'"q,{i}",x,{i}', 1: f"1,2,{i},4", 2: "", 3: "1,2,", 4: plain + "\r", 5: "1,2,word"}.get(kind, plain)
        )
    text = ("\n".join(lines) + "\n").encode()

    class ByLine(streams.CSV):
        def _plain_rows(self, n):
            return []

    for block in (7, 64, 1000):
        quick, slow = (
            kind(io.BytesIO(text), "y", block, mixed=True, on_error="skip") for kind in (streams.CSV, ByLine)
        )
        for a, b in zip(quick, slow, strict=True):
            assert a[0].columns == b[0].columns and a[1].tolist() == b[1].tolist()
            assert quick.lines == slow.lines and quick.position == slow.position
        assert quick.skipped == slow.skipped > 0


# ---------------------------------------------------------------------- numbers as people write them
def styled(number, decimal, thousands):
    """A number with a mark between thousands, by Python's own formatting."""
    return f"{number:,.2f}".translate({ord(","): thousands, ord("."): decimal})


STYLES = [(",", "."), (".", ","), (",", " "), (",", "\u00a0"), (".", "'"), (",", "\u202f"), (",", "")]


@pytest.mark.parametrize("decimal, thousands", STYLES)
def test_marks_in_numbers(decimal, thousands):
    rng = np.random.default_rng(0)
    numbers = np.round(rng.normal(0, 1, 50) * 10.0 ** rng.integers(0, 8, 50), 2)
    texts = [styled(number, decimal, thousands) for number in numbers]
    for signed in (texts, [f"€ {text}" for text in texts], [f"{text} %" for text in texts]):
        marks, examples = find_marks({"x": signed, "town": ["Rome"] * 50}, ";")
        assert marks == {"x": decimal} and list(examples) == ["x"]
        np.testing.assert_array_equal([float(NumberMarks(decimal)(text)) for text in signed], numbers)
    assert find_marks({"x": [str(number) for number in numbers], "when": ["01.02.2024"] * 50}, ";")[1] == {}


def test_marks_that_leave_it_open_are_those_of_the_file():
    assert find_marks({"x": ["8,599", "1,200"]}, ",") == ({"x": "."}, {"x": "8,599"})  # quoted, as in America
    assert find_marks({"x": ["8,599", "1,200"]}, ";") == ({"x": ","}, {"x": "8,599"})
    assert find_marks({"x": ["0,599", "8,599"]}, ",") == ({"x": ","}, {"x": "0,599"})
    assert find_marks({"x": ["1.234"], "y": ["2,5"]}, ";")[0] == {"x": ",", "y": ","}
    assert find_marks({"x": ["1.234"], "y": ["2.5"]}, ";") == ({"x": ".", "y": "."}, {})
    for wrong in ("1.23.456", "12,34,567", "1.2345,0", "1.234.5", "a1", ""):
        assert NumberMarks(",").read(wrong) is None
    with pytest.raises(ValueError, match="mark between thousands"):
        NumberMarks(",", ",")


@pytest.mark.parametrize("delimiter, decimal, thousands", [(";", ",", "."), (",", ".", ","), ("\t", ",", " ")])
def test_a_table_with_marks_is_learned_as_the_plain_one(tmp_path, capsys, delimiter, decimal, thousands):
    rng = np.random.default_rng(0)
    rows = [["when", "town", "size", "price"]]
    plain = [rows[0]]
    for i in range(150):
        size, town = round(float(rng.uniform(500, 3000)), 2), ["Rome", "Oslo"][i % 2]
        when, price = f"2024-{1 + i // 28:02d}-{1 + i % 28:02d}", round(3 * size + 1000 * (i % 2), 2)
        rows.append([when, town, styled(size, decimal, thousands), styled(price, decimal, thousands)])
        plain.append([when, town, f"{size:.2f}", f"{price:.2f}"])
    for name, table, mark in (("marked", rows, delimiter), ("plain", plain, ",")):
        with open(tmp_path / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=mark).writerows(table)
    options = ["--target", "price", "-a", "fogd", "--block", "64"]
    said = {}
    for name in ("marked", "plain"):
        said[name] = err(capsys, 0, "train", tmp_path / f"{name}.csv", *options, "-m", tmp_path / f"{name}.ks")
    assert "task: regression" in said["marked"] and "--decimal" not in said["plain"]
    assert f"{rows[1][3]!r} is {plain[1][3]}" in said["marked"]
    states = [kernelstream.load(tmp_path / f"{name}.ks").state_ for name in ("marked", "plain")]
    assert_same_state(*states, 0.0, "marks")
    answers = [out(capsys, "predict", tmp_path / f"{name}.ks", tmp_path / f"{name}.csv", "-q") for name in said]
    assert answers[0] == answers[1] and len(answers[0].split()) == 150
    errors = [out(capsys, "evaluate", tmp_path / f"{name}.csv", "-m", tmp_path / f"{name}.ks") for name in said]
    assert errors[0] == errors[1]
    with open(tmp_path / "few.csv", "w", newline="", encoding="utf-8") as file:  # one row is enough: the model knows
        csv.writer(file, delimiter=delimiter).writerows(rows[:2])
    (alone,) = out(capsys, "predict", tmp_path / "marked.ks", tmp_path / "few.csv", "-q").split()
    assert float(alone) == pytest.approx(
        float(answers[0].split()[0]), rel=1e-12
    )  # sums of one row and of many round apart


def test_marks_can_be_said(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a;t;y\n" + "".join(f"{i % 9 + 1},500;w;{i % 9 + 1},250\n" for i in range(40)))
    for options, first in (([], 1.5), (["--decimal", "."], 1500.0), (["--thousands", ","], 1500.0)):
        train = ["train", tmp_path / "t.csv", "--target", "y", "-a", "fogd", "-q", "-m", tmp_path / "m.ks"]
        assert run(*train, *options) == 0
        notes = kernelstream.model_io.read(tmp_path / "m.ks")[1]["reader"]
        stream = streams.CSV(tmp_path / "t.csv", "y", mixed=True, marks=notes["marks"], thousands=notes["thousands"])
        assert float(stream.read()[0].get("a")[0]) == first
    assert run("train", tmp_path / "t.csv", "--target", "y", "-m", tmp_path / "m.ks", "--decimal", "comma") == 2


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_targets_that_are_all_different_words_are_no_labels(command, tmp_path, capsys):
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(f"{i},{i}.5kg\n" for i in range(60)))
    model = ["-m", tmp_path / "m.ks"] if command == "train" else []
    said = err(capsys, 1, command, tmp_path / "t.csv", "--target", "y", *model)
    assert "60 in the first 60 rows, such as '0.5kg' and '59.5kg'" in said and "--decimal" in said
    assert not (tmp_path / "m.ks").exists()


# ---------------------------------------------------------------------- other tables than were expected
def test_a_table_of_other_columns_is_an_error(home, tmp_path, capsys):
    (tmp_path / "other.csv").write_text("colour,weight\nred,1\n")
    (tmp_path / "other.jsonl").write_text('{"colour": "red", "weight": 1}\n')
    for name in ("other.csv", "other.jsonl"):
        said = err(capsys, 1, "predict", home / "m.ks", tmp_path / name)
        assert all(word in said for word in ("colour", "weight", "town", "hour"))
    of_numbers(tmp_path)
    said = err(capsys, 1, "predict", tmp_path / "n.ks", tmp_path / "other.csv")
    assert "none of the columns a, b: it has colour, weight" in said
    model = kernelstream.load(home / "m.ks")
    with pytest.raises(ValueError, match="none of the columns"):
        model.predict([{"colour": "red"}, {"weight": 3}])
    assert len(model.predict([{}, {"town": "Rome", "colour": "red"}])) == 2  # gaps are no other columns


def test_a_broken_line_is_an_error_unless_asked(home, tmp_path, capsys):
    with open(home / "new.csv", encoding="utf-8") as file:
        lines = file.readlines()[:6]
    (tmp_path / "good.csv").write_text("".join(lines))
    (tmp_path / "broken.csv").write_text("".join([*lines[:3], "2024-01-01,only\n", *lines[3:]]))
    good = out(capsys, "predict", home / "m.ks", tmp_path / "good.csv", "-q").split("\n")
    said = err(capsys, 1, "predict", home / "m.ks", tmp_path / "broken.csv")
    assert "line 4: 2 fields, but there are 6 columns (--on-error skip" in said
    lines = out(capsys, "predict", home / "m.ks", tmp_path / "broken.csv", "--on-error", "skip", "-q").split("\n")
    assert lines == [*good[:2], "", *good[2:]]


def test_columns_of_one_name(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("x,x,x,y\n" + "".join(f"{i % 5},w{i % 3},{i % 2},{i % 2}\n" for i in range(40)))
    train = ["train", tmp_path / "t.csv", "--target", "y", "-a", "fogd", "-m", tmp_path / "m.ks"]
    for options, kinds in (
        ([], {"x": "integer", "x.1": "category", "x.2": "integer"}),
        (["--drop", "x.2"], {"x": "integer", "x.1": "category"}),
        (["--columns", "x.1=ignore"], {"x": "integer", "x.1": "ignored", "x.2": "integer"}),
    ):
        with pytest.warns(UserWarning, match="the second 'x' is 'x.1', 'x' is 'x.2'"):
            assert run("--debug", *train, *options) == 0
        assert kernelstream.load(tmp_path / "m.ks").columns_.kinds_ == kinds


def test_train_says_which_columns_are_odd(tmp_path, capsys):
    when = ["damaged", *(f"2024-01-{1 + i // 24:02d} {i % 24:02d}:00" for i in range(1, 60))]
    rows = [f"{i},k{i},same,w{i % 3},{when[i]},{i * 7 % 60 * 0.7:.2f},{i % 2}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["number,name,constant,word,when,size,y", *rows]) + "\n")
    lines = err(capsys, 0, "train", tmp_path / "t.csv", "--target", "y", "-a", "fogd", "-m", tmp_path / "m.ks")
    said = {line.split()[0]: line for line in lines.splitlines() if line.startswith("  ")}
    assert "looks like a row number" in said["number"] and "looks like an identifier" in said["name"]
    assert "it never changes" in said["constant"]
    assert not any("; " in said[name] for name in ("word", "when", "size"))


@pytest.mark.parametrize("form", ["%d/%m/%Y %H:%M", "%m/%d/%Y %I:%M %p", "%d-%m-%Y"])
def test_dates_with_the_day_or_the_month_first(tmp_path, form, capsys):
    """The model and its predictions are those of the same days with the year first."""
    days = [datetime.datetime(2024, 1, 1) + datetime.timedelta(days=i // 2, hours=i % 2 * 12) for i in range(200)]
    if "%H" not in form and "%I" not in form:
        days = [day.replace(hour=0) for day in days]
    for name, written in (("iso.csv", "%Y-%m-%d %H:%M"), ("own.csv", form)):
        lines = [f"{day.strftime(written)},{i % 7},{day.weekday() + i % 7 / 2}" for i, day in enumerate(days)]
        (tmp_path / name).write_text("\n".join(["when,x,y", *lines]))
        later = [f"{day},{datetime.date(2024, 9, day).strftime(written)}" for day in (1, 2, 3)]
        (tmp_path / f"later-{name}").write_text("\n".join(["x,when", *later]))
        assert run("train", tmp_path / name, "--target", "y", "--model", tmp_path / f"{name}.ks") == 0
    said = capsys.readouterr().err
    assert f"date; {days[0].strftime(form)!r} is 2024-01-01" in said
    one, two = (kernelstream.load(tmp_path / f"{name}.ks").state_ for name in ("iso.csv", "own.csv"))
    assert_same_state(one, two, 0.0, "both ways to write dates")
    answers = []
    for name in ("iso.csv", "own.csv"):  # days that might be months: the model remembers
        answers.append(out(capsys, "predict", tmp_path / f"{name}.ks", tmp_path / f"later-{name}"))
    assert answers[0] == answers[1] and len(answers[0].split()) == 3


def test_dates_that_show_no_order_are_words_with_a_warning(tmp_path, capsys):
    lines = [f"{1 + i % 12}/{1 + i // 12 % 12}/2024,{i}.5" for i in range(100)]
    (tmp_path / "a.csv").write_text("\n".join(["when,y", *lines]))
    said = err(capsys, 0, "train", tmp_path / "a.csv", "--target", "y", "--model", tmp_path / "a.ks")
    assert "when  category" in said and "holds dates like '1/1/2024'" in said
