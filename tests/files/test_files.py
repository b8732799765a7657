"""Files that are replaced in one step, whoever writes them, and whatever stands in their place."""

import io
import os
import stat
import subprocess
import sys
import threading
import time
from unittest.mock import Mock

import numpy as np
import pytest
from waiting import in_threads

import kernelstream
from kernelstream import FeatureClassifier, files, model_io, streams
from kernelstream.checkpoint import Checkpoints, train
from kernelstream.features import RandomFourier

posix = pytest.mark.skipif(os.name != "posix", reason="pipes, links and modes are those of POSIX")

X = np.random.default_rng(0).standard_normal((400, 3))
y = (X[:, 0] > 0).astype(int)


def model(seed=0):
    return FeatureClassifier(RandomFourier(n_components=8, gamma=1.0), random_state=seed)


def gone():
    """Number of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


# ---------------------------------------------------------------------- what stands at the path
@posix
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "model.ks"
    for target in (tmp_path / "real" / "a.ks", tmp_path / "real" / "not there yet.ks"):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        kernelstream.save(model().fit(X, y), link)
        assert link.is_symlink()
        assert kernelstream.load(target).state_["t"] == 400
    assert sorted(path.name for path in (tmp_path / "real").iterdir()) == ["a.ks", "not there yet.ks"]
    link.unlink()
    link.symlink_to(tmp_path / "no folder" / "a.ks")
    with pytest.raises(FileNotFoundError, match=r"model\.ks"):  # and not about a file nobody has heard of
        kernelstream.save(model(), link)


@posix
def test_a_pipe_gets_the_model(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    est = model().fit(X, y)
    kernelstream.save(est, pipe)
    reader.join()
    assert got == [model_io.to_bytes(est)]
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)


@posix
def test_devices_and_open_files_are_written_to(tmp_path):
    before = os.stat(os.devnull)
    kernelstream.save(model(), os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert os.stat(os.devnull).st_ino == before.st_ino
    reading, writing = os.pipe()
    files.write_atomic(f"/dev/fd/{writing}", b"content")
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        assert file.read() == b"content"
    script = "from kernelstream.files import write_atomic; print('a'); write_atomic('/dev/stdout', b'b'); print('c')"
    with open(tmp_path / "out", "wb") as out:  # where another descriptor would start at 0 again
        subprocess.run([sys.executable, "-c", script], stdout=out, check=True)
    assert (tmp_path / "out").read_bytes() == b"a\nbc\n"


@posix
def test_permissions(tmp_path):
    path = tmp_path / "model.ks"
    before = os.umask(0o027)
    try:
        kernelstream.save(model(), path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        for mode in (0o600, 0o664, 0o444):
            path.chmod(mode)
            kernelstream.save(model(), path)
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(before)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        kernelstream.save(model(), tmp_path)
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- several writers
def test_threads_that_write_one_path(tmp_path):
    path = tmp_path / "model.ks"
    contents = {model_io.to_bytes(model(seed).fit(X, y)) for seed in range(4)}
    kernelstream.save(model(0).fit(X, y), path)
    failures, stop = [], threading.Event()

    def write(content):
        try:
            for _ in range(40):
                files.write_atomic(path, content)
        except BaseException as error:
            failures.append(error)

    def look():
        while not stop.is_set():
            if path.read_bytes() not in contents:
                failures.append("a partial file")

    watcher = threading.Thread(target=look)
    watcher.start()
    in_threads(write, contents)
    stop.set()
    watcher.join()
    assert failures == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.ks"]


# ---------------------------------------------------------------------- what killed processes leave
def test_leftovers_are_cleared(tmp_path):
    machine = files._MACHINE
    names = {
        f".kernelstream-{machine}-{gone()}-0123456789abcdef.tmp": False,  # its process is gone
        f".kernelstream-{machine}-{os.getpid()}-0123456789abcdef.tmp": True,  # perhaps being written
        f".kernelstream-{machine}-{os.getppid()}-0123456789abcdef.tmp": True,  # by another process
        f".kernelstream-{'0' * 8}-{gone()}-0123456789abcdef.tmp": True,  # of another machine
        f".kernelstream-{'0' * 8}-1-0123456789abcdee.tmp": False,  # the same, a day old
        f"letters.ks.{gone()}.tmp": True,  # anybody's
        f".kernelstream-{machine}-{gone()}.tmp": True,
        "notes.tmp": True,
    }
    for name in names:
        (tmp_path / name).write_bytes(b"half")
    old = time.time() - 2 * files.ABANDONED_SECONDS
    os.utime(tmp_path / f".kernelstream-{'0' * 8}-1-0123456789abcdee.tmp", (old, old))
    kernelstream.save(model(), tmp_path / "model.ks")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {name for name, stays in names.items() if stays} | {"model.ks"}


@posix
def test_a_killed_writer_leaves_nothing_for_long(tmp_path):
    script = (
        "import os, sys; from kernelstream import files\n"
        "files.os.replace = lambda *paths: os.kill(os.getpid(), 9)\n"
        "files.write_atomic(sys.argv[1], b'new')"
    )
    path = tmp_path / "model.ks"
    path.write_bytes(b"old")
    killed = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert killed.returncode == -9
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2
    files.write_atomic(path, b"newer")
    assert list(tmp_path.iterdir()) == [path]


# ---------------------------------------------------------------------- checkpoints
def run(folder, rows, **options):
    stream = streams.Arrays(X, y, 50)
    return train(model(), stream, folder, every=50, stop=lambda: stream.rows >= rows, **options)


def names(folder):
    return [int(path.stem[-12:]) for path in Checkpoints(folder).files()]


@pytest.mark.parametrize("keep", [1, 2])
def test_a_damaged_checkpoint_outranks_none(tmp_path, keep):
    run(tmp_path, 100, keep=keep)
    (tmp_path / "checkpoint-000000000350.ks").write_bytes(b"PK\x03\x04 and so on")
    with pytest.warns(RuntimeWarning, match="skipping a checkpoint"):
        assert run(tmp_path, 200, keep=keep, resume=True).resumed == 100
    assert names(tmp_path) == ([200, 350] if keep == 1 else [150, 200, 350])
    with pytest.warns(RuntimeWarning, match="skipping a checkpoint"):
        assert run(tmp_path, 400, keep=keep, resume=True).resumed == 200
    # once it is among the last ones it has to go, and the good ones stay
    assert names(tmp_path) == ([400] if keep == 1 else [350, 400])
    for path in Checkpoints(tmp_path).files():
        kernelstream.load(path)


def test_unreadable_ones_do_not_count(tmp_path):
    run(tmp_path, 100, keep=2)
    (tmp_path / "checkpoint-000000000120.ks").write_bytes(b"")
    with pytest.warns(RuntimeWarning, match="skipping a checkpoint"):
        run(tmp_path, 200, keep=2, resume=True)
    assert names(tmp_path) == [150, 200]
    (tmp_path / "checkpoint-000000000180.ks").write_bytes(b"")
    (tmp_path / "checkpoint-000000000201.ks").write_bytes(b"")
    kept = Checkpoints(tmp_path, 2)
    with pytest.warns(RuntimeWarning, match="skipping a checkpoint"):
        est, notes = kept.latest()
    kept.save(est, 250, notes)
    assert names(tmp_path) == [200, 201, 250]  # the two good ones, and what is between them


def test_a_plain_model_is_no_checkpoint(tmp_path):
    kernelstream.save(model().fit(X, y), tmp_path / "checkpoint-000000000100.ks")
    with pytest.raises(ValueError, match=r"checkpoint-000000000100\.ks is a model and not a checkpoint.*--from"):
        run(tmp_path, 200, resume=True)
    for position in ({"rows": -1, "skipped": 0}, {"rows": "x"}, {}, 7):
        inside = {"position": position, "total": 0.0, "block": 50, "notes": {}}
        kernelstream.save(model().fit(X, y), tmp_path / "checkpoint-000000000100.ks", inside)
        with pytest.raises(ValueError, match="is a model and not a checkpoint"):
            run(tmp_path, 200, resume=True)


def test_a_position_of_another_stream(tmp_path):
    run(tmp_path, 100)
    text = io.BytesIO(b"".join(b"%d 1:%f\n" % (label, value) for label, value in zip(y, X[:, 0])))
    with pytest.raises(ValueError, match="its position is not in"):
        train(model(), streams.LibSVM(text, 50), tmp_path, resume=True)


# ---------------------------------------------------------------------- columns that nobody has
def test_an_index_beyond_all_columns():
    rows = b"1 1:0.5 2000000000:1\n-1 1:1\n"
    with pytest.raises(streams.BadRowError, match=r"line 1: .*larger than 134,217,728: .*n_features.*on_error='skip'"):
        streams.LibSVM(io.BytesIO(rows)).read()
    stream = streams.LibSVM(io.BytesIO(rows), on_error="skip")
    assert stream.read()[0].shape == (1, 1)
    assert stream.skipped == 1
    wide = streams.LibSVM(io.BytesIO(rows), n_features=2_000_000_000)
    assert wide.read()[0].shape == (2, 2_000_000_000)


def test_a_model_that_does_not_fit_into_memory(monkeypatch):
    full = Mock(side_effect=MemoryError("Unable to allocate 5.82 TiB"))
    monkeypatch.setattr(FeatureClassifier, "learn", full)
    monkeypatch.setattr(FeatureClassifier, "partial_fit", full)
    with pytest.raises(ValueError, match=r"not enough memory for a model of rows with 3 columns \(Unable.*budget"):
        train(model(), streams.Arrays(X, y))
