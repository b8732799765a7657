"""Named pipes, process substitution and standard input: every byte is read, and read once."""

import bz2
import gzip
import io
import os
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from command_line import err, out, run
from sklearn.datasets import dump_svmlight_file

from kernelstream import load, streams
from kernelstream.testing.streaming import assert_same_state

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes"),
    pytest.mark.usefixtures("plain_default"),
]

N = 2000
X = np.random.default_rng(0).normal(size=(N, 3)).round(4)
LABELS = (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.fixture(scope="module")
def texts():
    """The same rows as LIBSVM text and as CSV, each many times the 4096 bytes that tell files apart."""
    svm = io.BytesIO()
    dump_svmlight_file(X, LABELS, svm, zero_based=False)
    csv = io.BytesIO()
    np.savetxt(csv, np.c_[X, LABELS], fmt="%.4f,%.4f,%.4f,%d", header="a,b,c,y", comments="")
    found = {".svm": svm.getvalue(), ".csv": csv.getvalue()}
    assert min(map(len, found.values())) > 4 * 4096
    return found


@contextmanager
def pipe(path, *pieces, wait=0.02):
    """A named pipe that somebody writes the pieces into."""
    os.mkfifo(path)

    def write():
        try:
            with open(path, "wb", buffering=0) as file:
                for piece in pieces:
                    file.write(piece)
                    time.sleep(wait)
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    yield path
    writer.join(10)
    os.remove(path)
    assert not writer.is_alive(), "nobody has read the pipe"


def zstd(content):
    return pytest.importorskip("zstandard").ZstdCompressor().compress(content)


KINDS = {
    "svm": (".svm", lambda content: content),
    "csv": (".csv", lambda content: content),
    "svm gzip": (".svm", gzip.compress),
    "csv bzip2": (".csv", bz2.compress),
    "svm zstd": (".svm", zstd),
}


def options(kind):
    return ("--target", "y") if kind == ".csv" else ()


@pytest.fixture(scope="module")
def trained(texts, tmp_path_factory):
    """Models of the regular files."""
    folder = tmp_path_factory.mktemp("regular")
    models = {}
    for kind, content in texts.items():
        (folder / f"rows{kind}").write_bytes(content)
        assert run("train", folder / f"rows{kind}", *options(kind), "-q", "--model", folder / f"model{kind}.ks") == 0
        models[kind] = folder / f"model{kind}.ks"
    return models


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["rows", "rows{}"])
def test_train_reads_all_of_a_pipe(kind, name, texts, trained, tmp_path):
    """The model is that of the regular file; the name of the pipe may tell the format or not."""
    suffix, pack = KINDS[kind]
    packed = pack(texts[suffix])
    with pipe(tmp_path / name.format(suffix), packed) as path:
        assert run("train", path, *options(suffix), "-q", "--model", tmp_path / "model.ks") == 0
    assert_same_state(load(trained[suffix]).state_, load(tmp_path / "model.ks").state_, 0.0, "file and pipe")


@pytest.mark.parametrize("kind", ["svm gzip", "svm zstd", "csv bzip2", "csv"])
def test_a_pipe_that_gives_a_byte_at_a_time(kind, texts, trained, tmp_path):
    """What a source is packed with is told by its first bytes, which may come one by one."""
    suffix, pack = KINDS[kind]
    packed = pack(texts[suffix])
    with pipe(tmp_path / "rows", packed[:1], packed[1:2], packed[2:3], packed[3:]) as path:
        assert run("train", path, *options(suffix), "-q", "--model", tmp_path / "model.ks") == 0
    assert load(tmp_path / "model.ks").state_["t"] == N


def test_several_pipes(texts, trained, tmp_path):
    lines = texts[".svm"].splitlines(keepends=True)
    halves = [b"".join(lines[: N // 2]), b"".join(lines[N // 2 :])]
    with pipe(tmp_path / "one", halves[0]) as one, pipe(tmp_path / "two", halves[1]) as two:
        assert run("train", one, two, "-q", "--block", "500", "--model", tmp_path / "model.ks") == 0
    assert_same_state(load(trained[".svm"]).state_, load(tmp_path / "model.ks").state_, 1e-12, "a file and two pipes")


def test_a_run_on_a_pipe_goes_on(texts, tmp_path):
    """A pipe with the same rows from the start serves: the rows that were learned are passed over."""
    (tmp_path / "rows.svm").write_bytes(texts[".svm"])
    straight = ("train", "-q", "--block", "500")
    assert run(*straight, tmp_path / "rows.svm", "--model", tmp_path / "whole.ks") == 0
    begun = b"".join(texts[".svm"].splitlines(keepends=True)[:1500])
    more = ("--checkpoint", tmp_path / "run", "--every", "500", "--model", tmp_path / "parts.ks")
    with pipe(tmp_path / "pipe", begun) as path:
        assert run(*straight, path, *more) == 0
    with pipe(tmp_path / "another", texts[".svm"]) as path:
        assert run(*straight, path, *more, "--resume") == 0
    assert_same_state(load(tmp_path / "whole.ks").state_, load(tmp_path / "parts.ks").state_, 0.0, "whole and resumed")


@pytest.mark.parametrize("kind", [".svm", ".csv"])
def test_evaluate_and_predict_read_all_of_a_pipe(kind, texts, trained, tmp_path, capsys):
    regular = trained[kind].parent / f"rows{kind}"
    for command in (("evaluate", "--model", trained[kind]), ("evaluate", *options(kind)), ("predict", trained[kind])):
        expected = out(capsys, *command, regular)
        with pipe(tmp_path / "rows", texts[kind]) as path:
            found = out(capsys, *command, path)
        keep = [line for line in expected.splitlines() if "second" not in line]
        assert [line for line in found.splitlines() if "second" not in line] == keep


@pytest.mark.parametrize("where", ["pipe", "stdin"])
def test_rows_in_another_format_than_the_models_own(where, texts, trained, tmp_path, capsys, monkeypatch):
    """A model of a CSV predicts LIBSVM rows: the options it was trained with do not fit, which is found out by opening
    the pipe, once.
    """
    expected = load(trained[".csv"]).predict(X)
    if where == "stdin":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(texts[".svm"])))
        found = out(capsys, "predict", trained[".csv"], "-")
    else:
        with pipe(tmp_path / "rows", texts[".svm"]) as path:
            found = out(capsys, "predict", trained[".csv"], path)
    assert found.split() == expected.astype(str).tolist()


def test_what_reads_twice_refuses_pipes(texts, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")  # nobody writes: opening it would wait for ever
    assert "can only be read once" in err(capsys, 2, "bench", tmp_path / "pipe", "--algorithms", "fogd")
    os.mkfifo(tmp_path / "table.parquet")
    with pytest.raises(ValueError, match="read from files, not from pipes"):
        streams.open(tmp_path / "table.parquet")


def test_workers_refuse_pipes(tmp_path, capsys):
    pytest.importorskip("dask")
    os.mkfifo(tmp_path / "pipe")
    argv = ("train", tmp_path / "pipe", "--dask", "local", "--model", tmp_path / "model.ks")
    assert "workers read files" in err(capsys, 2, *argv)
