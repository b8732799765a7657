"""Forecasts on the command line: what the estimator says of the same frame, as lines of a CSV."""

import csv
import gzip
import io
import os
import signal
import subprocess

import numpy as np
import pytest
from command_line import err, out, run
from flats import COMMAND
from waiting import run_until

import kernelstream
from kernelstream import FeatureClassifier, KernelForecaster, streams
from kernelstream.testing.streaming import assert_same_state

N, AHEAD = 260, 6
rng = np.random.default_rng(0)
TIMES = np.datetime64("2024-03-10T00", "h") + np.arange(N + AHEAD)
WARMTH = np.round(10 + 5 * np.sin(np.arange(N + AHEAD) / 30) + rng.normal(size=N + AHEAD), 3)
LOAD = np.round(50 + 10 * np.sin(2 * np.pi * np.arange(N) / 24) + 2 * WARMTH[:N] + rng.normal(size=N), 3)
SKY = rng.choice(["clear", "clouds"], N + AHEAD)
FRAME = {"date": TIMES[:N], "load": LOAD, "warmth": WARMTH[:N], "sky": SKY[:N].tolist()}
SMALL = ["--size", "small", "--horizon", AHEAD]


def model(**options):
    return KernelForecaster(AHEAD, **{"target": "load", "size": "small", "random_state": 0} | options)


def lines(columns, stop=None):
    cells = [np.datetime_as_string(c, unit="s").tolist() if c.dtype.kind == "M" else c.tolist()
             for c in map(np.asarray, columns.values())]  # fmt: skip
    return [",".join(map(str, row)) for row in list(zip(*cells, strict=True))[:stop]]


def write(path, columns, stop=None):
    path.write_text("\n".join([",".join(columns), *lines(columns, stop)]) + "\n")
    return path


def read(text):
    header, *rows = csv.reader(io.StringIO(text))
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def same(text, ahead):
    """The lines of a forecast, to the last bit."""
    found = read(text)
    assert list(found) == list(ahead)
    for name, cells in ahead.items():
        said = np.array(found[name])
        np.testing.assert_array_equal(said.astype(cells.dtype), cells, err_msg=name)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series")
    write(folder / "load.csv", FRAME)
    write(folder / "first.csv", FRAME, 200)
    write(folder / "weather.csv", {"date": TIMES[N:], "sky": SKY[N:], "warmth": WARMTH[N:]})
    return folder


def test_it_says_what_the_estimator_says(home, tmp_path, capsys, monkeypatch):
    """Of a file, a packed pipe, columns known in advance, all numbers, another coverage; a file gets it too."""
    fitted = model().fit(FRAME)
    same(out(capsys, "forecast", home / "load.csv", "--time", "date", "--target", "load", *SMALL), fitted.forecast())
    packed = io.TextIOWrapper(io.BytesIO(gzip.compress((home / "load.csv").read_bytes())))
    monkeypatch.setattr("sys.stdin", packed)
    to_file = ["--coverage", "0.5", "--output", tmp_path / "next.csv"]
    assert out(capsys, "forecast", "-", "--target", "load", *SMALL, *to_file) == ""
    same((tmp_path / "next.csv").read_text(), fitted.forecast(0.5))
    given = ["--target", "load", "--known", "warmth,sky", "--future", home / "weather.csv", "--seed", "3"]
    informed = model(known=["warmth", "sky"], random_state=3).fit(FRAME)
    future = {"date": TIMES[N:], "warmth": WARMTH[N:], "sky": SKY[N:].tolist()}
    same(out(capsys, "forecast", home / "load.csv", *SMALL, *given), informed.forecast(future=future))
    same(out(capsys, "forecast", home / "load.csv", "--target", "load", *SMALL, "-o", "-"), fitted.forecast())
    both = model(target=None).fit(FRAME).forecast()
    assert list(both) == ["date", *(name + end for name in ("load", "warmth") for end in ("", "_low", "_high"))]
    same(out(capsys, "forecast", home / "load.csv", *SMALL), both)


def test_how_people_write(home, tmp_path, capsys):
    """Days first and decimal commas, in semicolons; JSON lines; gaps in words."""
    fitted = out(capsys, "forecast", home / "load.csv", "--target", "load", *SMALL)
    days = np.datetime_as_string(TIMES[:N], unit="m")
    dates = np.array([f"{day[8:10]}/{day[5:7]}/{day[:4]} {day[11:]}" for day in days])
    rows = [f"{date};{load:.3f}".replace(".", ",") for date, load in zip(dates, LOAD, strict=True)]
    (tmp_path / "local.csv").write_text("\n".join(["date;load", *rows]) + "\n")
    assert out(capsys, "forecast", tmp_path / "local.csv", *SMALL) == fitted
    rows = [f'{{"date": "{day}", "load": {load}}}' for day, load in zip(days, LOAD.tolist(), strict=True)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows) + "\n")
    assert out(capsys, "forecast", tmp_path / "rows.jsonl", *SMALL) == fitted
    gappy = LOAD.astype(str).astype(object)
    gappy[[30, 31, 100]] = "NA"
    gaps = np.where(gappy == "NA", np.nan, LOAD)
    write(tmp_path / "gaps.csv", FRAME | {"load": gappy})
    same(out(capsys, "forecast", tmp_path / "gaps.csv", "--target", "load", *SMALL),
         model().fit(FRAME | {"load": gaps}).forecast())  # fmt: skip


def test_several_series_are_followed(tmp_path, capsys):
    """After each row the forecast of its own series, as repeated calls give it; nothing before it is possible."""
    n = 40
    frame = {"date": np.repeat(TIMES[:n], 2), "town": ["Bern", "Basel"] * n, "load": np.repeat(LOAD[:n], 2)}
    frame["load"] = frame["load"] * np.tile([1.0, 100.0], n)
    write(tmp_path / "towns.csv", frame)
    text = out(capsys, "forecast", tmp_path / "towns.csv", *SMALL, "--by", "town", "--target", "load", "--follow")
    own, said = model(by="town"), []
    for i in range(2 * n):
        own.learn({name: cells[i : i + 1] for name, cells in frame.items()})
        try:
            ahead = own.forecast()
        except ValueError:
            continue
        mine = np.flatnonzero(np.asarray(ahead["town"]) == frame["town"][i])
        said.append({name: np.asarray(cells)[mine] for name, cells in ahead.items()})
    same(text, {name: np.concatenate([ahead[name] for ahead in said]) for name in said[0]})
    assert len(text.splitlines()) == 1 + AHEAD * len(said) and len(said) > 40
    text = out(capsys, "forecast", tmp_path / "towns.csv", *SMALL, "--by", "town", "--target", "load")
    same(text, ahead)


def test_a_model_goes_on(home, tmp_path, capsys):
    """Rows that it knows are passed over; in two runs it is, to the last bit, what it is in one."""
    train = ["--target", "load", *SMALL, "--model", tmp_path / "m.ks"]
    out(capsys, "forecast", home / "first.csv", *train)
    said = out(capsys, "forecast", home / "load.csv", *train)
    whole = model(time="date", target=["load"]).fit(FRAME)
    same(said, whole.forecast())
    assert_same_state(kernelstream.load(tmp_path / "m.ks").state_, whole.state_, 0.0, "two runs and one")
    before = (tmp_path / "m.ks").read_bytes()
    assert run("forecast", home / "load.csv", "--model", tmp_path / "m.ks") == 0  # the options are the model's own
    got = capsys.readouterr()
    assert got.out == said and "0 new rows learned" in got.err
    assert (tmp_path / "m.ks").read_bytes() == before
    for option, value in (("--horizon", 3), ("--target", "warmth"), ("--seed", 9), ("--by", "sky")):
        assert f"{option}: the model in" in err(capsys, 2, "forecast", home / "load.csv", *train[4:], option, value)
    assert "kernelstream forecast" in err(capsys, 2, "predict", tmp_path / "m.ks", home / "load.csv")
    assert "rows learned   260" in out(capsys, "info", tmp_path / "m.ks")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "no data: name a file"),
        (["load.csv", "--target", "lod"], 2, "no column 'lod' (target): did you mean 'load'?"),
        (["load.csv", "--time", "dates"], 2, "did you mean 'date'?"),
        (["load.csv", "--target", "load", "--by", "load"], 2, "must name different columns"),
        (["load.csv", "--target", "load", "--known", "warmth"], 2, "--future, a table of their next values"),
        (["load.csv", "--target", "load", "--future", "weather.csv"], 2, "--future, a table of their next values"),
        (["load.csv", "--known", "sky", "--target", "load", "--future", "late.csv"], 1, "future lacks 1 of the next 6"),
        (["load.csv", "--coverage", "90"], 2, "--coverage must be a number from 0.5 to 0.99, got 90"),
        (["load.csv", "--horizon", "0"], 2, "must be at least 1"),
        (["load.csv", "--horizn", "3"], 2, "did you mean --horizon?"),
        (["load.csv", "--output", "load.csv"], 2, "--output: load.csv is read by this command"),
        (["load.csv", "--model", "load.csv"], 2, "--model: load.csv is read by this command"),
        (["load.csv", "--model", "other.ks"], 2, "other.ks holds no forecaster"),
        (["load.csv", "--model", "no/m.ks"], 2, "no folder no"),
        (["dataset:iris"], 2, "not dataset:NAME"),
        (["missing.csv"], 1, "missing.csv: No such file"),
        (["empty.csv"], 1, "empty.csv has no rows"),
        (["short.csv", "--target", "load"], 1, "5 rows are too few"),
        (["short.csv", "--target", "load", "--follow"], 1, "5 rows are too few"),
        (
            ["word.csv", "--target", "load"],
            1,
            "word.csv, from line 52 on: 'load' is 'x' in row 48: it must be a number",
        ),
        (["word.csv", "--target", "load", "--follow"], 1, "word.csv, from line 100 on: 'load' is 'x'"),
        (["back.csv", "--target", "load"], 1, "goes back to the time 2024-03-10T02:00:00"),
        (["wide.csv", "--target", "load"], 1, "wide.csv, line 100: 6 fields, but there are 4 columns"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_wrong_is_said(words, code, message, home, capsys, monkeypatch):
    monkeypatch.chdir(home)
    if not (home / "wide.csv").exists():
        rows = (home / "load.csv").read_text().splitlines()
        changes = {"word": rows[99].replace(rows[99].split(",")[1], "x"), "back": rows[3], "wide": rows[99] + ",1,2"}
        for name, line in changes.items():
            (home / f"{name}.csv").write_text("\n".join([*rows[:99], line, *rows[100:]]) + "\n")
        (home / "short.csv").write_text("\n".join(rows[:6]) + "\n")
        (home / "empty.csv").write_text(rows[0] + "\n")
        weather = (home / "weather.csv").read_text().splitlines()
        (home / "late.csv").write_text("\n".join([weather[0], *weather[2:]]) + "\n")
        kernelstream.save(FeatureClassifier(), home / "other.ks")
    shown = err(capsys, code, "forecast", *words, *([] if "--horizon" in words else SMALL))
    assert message in shown and "Traceback" not in shown


def test_bad_rows_leave_the_model_as_it_was(home, tmp_path, capsys):
    train = ["--target", "load", *SMALL, "--model", tmp_path / "m.ks"]
    out(capsys, "forecast", home / "first.csv", *train)
    before = (tmp_path / "m.ks").read_bytes()
    rows = (home / "load.csv").read_text().splitlines()
    (tmp_path / "bad.csv").write_text("\n".join([*rows[:255], "soon,1,1,clear", *rows[255:]]) + "\n")
    assert "no time that can be read" in err(capsys, 1, "forecast", tmp_path / "bad.csv", *train)
    assert (tmp_path / "m.ks").read_bytes() == before


def test_an_interrupt_keeps_the_model(home, tmp_path, monkeypatch, capsys):
    """The rows before it are learned, and the next run goes on behind them."""
    following, calls = streams.CSV._next, []

    def interrupting(self, n):
        calls.append(1)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return following(self, n)

    train = ["forecast", home / "load.csv", "--target", "load", *SMALL, "--model", tmp_path / "m.ks"]
    with monkeypatch.context() as patch:
        patch.setattr(streams.CSV, "_next", interrupting)
        assert run(*train) == 130
    got = capsys.readouterr()
    assert "rows by SIGINT" in got.err and "holds what was learned" in got.err and got.out == ""
    assert 0 < kernelstream.load(tmp_path / "m.ks").state_["rows"][0] < N
    same(out(capsys, *train), model().fit(FRAME).forecast())


def test_rows_of_a_pipe_are_followed_as_they_come(home, tmp_path):
    """Each has its forecast before the next one is there; a closed pipe ends the run quietly, and the model is kept."""
    rows = (home / "load.csv").read_bytes().splitlines(keepends=True)
    command = [*COMMAND, "forecast", "-", "--target", "load", "--size", "small", "--horizon", "2", "--follow"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([*map(str, [*command, "--model", tmp_path / "m.ks"])], **pipes) as child:
        child.stdin.write(b"".join(rows[:17]))
        child.stdin.flush()
        said = [child.stdout.readline().split(b",")[0] for _ in range(3)]
        assert said == [b"date", b"2024-03-10T16:00:00", b"2024-03-10T17:00:00"]
        child.stdin.write(rows[17])
        child.stdin.flush()
        assert child.stdout.readline().startswith(b"2024-03-10T17:00:00,")
        child.stdout.close()
        child.stdin.write(rows[18])
        child.stdin.flush()
        run_until((tmp_path / "m.ks").exists)
        child.stdin.close()
        assert child.wait(timeout=60) == 0
        assert b"error" not in child.stderr.read()
    assert kernelstream.load(tmp_path / "m.ks").state_["rows"].tolist() == [18]
