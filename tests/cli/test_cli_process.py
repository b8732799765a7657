"""The command as a process: pipes, signals, the progress bar."""

import gzip
import io
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from command_line import err, out, run
from flats import COMMAND, N, process
from waiting import run_until

import kernelstream
from kernelstream import streams

pytestmark = pytest.mark.usefixtures("plain_default")


def test_pipes(home, tmp_path):
    model = tmp_path / "m.ks"
    done = process("train", "-", "-a", "fogd", "-m", model, input=gzip.compress((home / "flats.svm").read_bytes()))
    assert done.returncode == 0, done.stderr
    assert b"rows/s" in done.stdout
    shell = f"set -o pipefail; {' '.join(COMMAND)} predict {model} - < {home / 'flats.svm'} | head -1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, check=False)
    assert done.stderr == b""
    assert done.stdout in (b"1\n", b"-1\n")


def test_a_model_on_standard_output(home, tmp_path):
    command = ["train", str(home / "flats.svm"), "-a", "fogd", "--limit", "500", "--model"]
    assert run(*command, tmp_path / "m.ks", "-q") == 0
    expected = (tmp_path / "m.ks").read_bytes()
    for options in ([], ["--json"]):  # words go elsewhere
        done = subprocess.run([*COMMAND, *command, "/dev/stdout", *options], capture_output=True, check=True)
        assert done.stdout == expected
        assert b"mistake" in done.stderr


def test_interrupted_and_resumed(home, tmp_path):
    big = tmp_path / "big.svm"
    big.write_bytes((home / "flats.svm").read_bytes() * 25)
    plain, model, folder = tmp_path / "plain.ks", tmp_path / "m.ks", tmp_path / "run"
    options = ["-a", "fogd", "--every", "4_000", "--block", "500"]
    assert run("train", big, "-m", plain, "-q", *options) == 0
    command = [*COMMAND, "train", str(big), "-m", str(model), "--checkpoint", str(folder), *options, "--resume"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    run_until(lambda: list(folder.glob("checkpoint-*.ks")))
    child.send_signal(signal.SIGINT)
    shown, errors = child.communicate(timeout=60)
    assert child.returncode == 130, (shown, errors)
    assert "stopped after" in errors
    assert not model.exists()
    rows = int(sorted(folder.glob("*.ks"))[-1].stem.removeprefix("checkpoint-"))
    assert f"stopped after {rows:,} rows" in errors
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"resuming from row {rows:,}" in done.stderr
    assert model.read_bytes() == plain.read_bytes()
    # it is finished: once more changes nothing, and other options are refused
    assert run(*command[3:]) == 0
    assert model.read_bytes() == plain.read_bytes()
    assert run(*command[3:], "--gamma", "3") == 1
    assert run(*command[3:-1]) == 1


@pytest.mark.parametrize("kind", ["npz", "parquet", "arrow"])
def test_tables_edited_behind_their_beginning_are_not_gone_on_with(kind, tmp_path, capsys):
    """A single number of the last row."""
    X = np.random.default_rng(0).standard_normal((3000, 3))
    y = (X[:, 0] > 0).astype(float)

    def write(X):
        at = tmp_path / f"rows.{kind}"
        if kind == "npz":
            np.savez(at, X=X, y=y)
        else:
            pa = pytest.importorskip("pyarrow")
            table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
            if kind == "parquet":
                pytest.importorskip("pyarrow.parquet").write_table(table, at)
            else:
                pytest.importorskip("pyarrow.feather").write_feather(table, str(at), compression="uncompressed")
        return at

    at = write(X)
    target = [] if kind == "npz" else ["--target", "y"]
    command = ["train", at, "-m", tmp_path / "m.ks", "--checkpoint", tmp_path / "run", "-a", "fogd", *target]
    assert run(*command) == 0
    assert run(*command, "--resume") == 0
    X[-1, 1] += 0.5
    write(X)
    assert "data" in err(capsys, 1, *command, "--resume")


def test_without_checkpoints_an_interrupt_keeps_the_model(home, tmp_path, monkeypatch, capsys):
    read, calls = streams.LibSVM._next, []

    def interrupting(self, n):
        calls.append(1)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return read(self, n)

    monkeypatch.setattr(streams.LibSVM, "_next", interrupting)
    assert run("train", home / "flats.svm", "-m", tmp_path / "m.ks", "--block", 500) == 130
    assert "holds what was learned" in capsys.readouterr().err
    assert kernelstream.load(tmp_path / "m.ks").state_["t"] in (1000, 1500)
    assert "(interrupted)" in out(capsys, "info", tmp_path / "m.ks")


SLOW = """
import ctypes
from kernelstream import FeatureClassifier, checkpoint

checkpoint.LONG_BLOCK_SECONDS = -1.0
learn = FeatureClassifier.learn

def slow(self, X, y, **options):
    if getattr(self, "n_features_in_", 0) and self.state_["t"] == 1000:
        print("sleeping", flush=True)
        for _ in range(600):
            ctypes.CDLL(None).usleep(10**5)  # a signal ends it
    return learn(self, X, y, **options)

FeatureClassifier.learn = slow
"""


@pytest.mark.parametrize("stopper, checkpoints", [(signal.SIGTERM, True), (signal.SIGINT, False)])
def test_a_signal_inside_a_long_block(home, tmp_path, stopper, checkpoints):
    """A call that takes long, and does not come back to Python: what was learned before it is kept."""
    (tmp_path / "slow.py").write_text(SLOW)
    kept = ["--checkpoint", str(tmp_path / "run")] if checkpoints else []
    train = ["train", str(home / "flats.svm"), "-a", "fogd", "--block", "500"]
    command = [*COMMAND, *train, "-m", str(tmp_path / "m.ks"), *kept, "--import", "slow"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, **pipes) as slow:
        assert slow.stdout.readline() == "sleeping\n"
        slow.send_signal(stopper)
        _, said = slow.communicate(timeout=50)
    assert slow.returncode == 128 + stopper
    assert stopper.name in said
    (rows,) = re.findall(r"stopped after ([\d,]+) rows, inside a block that takes long", said)
    assert rows in ("500", "1,000")  # copies take a twentieth of the time at most, so not every block has one
    if not checkpoints:
        assert kernelstream.load(tmp_path / "m.ks").state_["t"] == int(rows.replace(",", ""))
        return
    assert run(*train, "-m", tmp_path / "m.ks", *kept, "--resume", "-q") == 0
    assert run(*train, "-m", tmp_path / "whole.ks", "-q") == 0
    assert (tmp_path / "m.ks").read_bytes() == (tmp_path / "whole.ks").read_bytes()


def test_a_signal_while_rows_are_waited_for(home, tmp_path):
    """A pipe that brings nothing more: what was learned is written."""
    command = [*COMMAND, "train", "-", "-a", "fogd", "-m", tmp_path / "m.ks", "--block", "100", "--checkpoint"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([*command, tmp_path / "run", "--every", str(N)], **pipes) as child:
        child.stdin.write((home / "flats.svm").read_bytes() * 2 + b"+1 1:2\n")
        child.stdin.flush()
        run_until((tmp_path / "run" / f"checkpoint-{2 * N:012d}.ks").exists)
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=60) == 143
        assert f"stopped after {2 * N:,} rows by SIGTERM" in child.stderr.read().decode()


WAITS = """
import os, signal, threading, time
from kernelstream.cli._stopping import Awake, Stopping

ends = os.pipe()
class Rows:
    def read(self):
        return os.read(ends[0], 1)

with Stopping(True) as asked:
    other = threading.Thread(target=time.sleep, args=(30,), daemon=True)
    other.start()
    threading.Timer(0.2, signal.pthread_kill, (other.ident, signal.SIGTERM)).start()
    print(Awake(Rows(), asked).read(), asked.number)
"""


def test_a_signal_that_the_wait_for_rows_does_not_see():
    """It came a moment before the wait, or to another thread."""
    done = subprocess.run([sys.executable, "-c", WAITS], capture_output=True, text=True, timeout=30)
    assert done.stdout == f"None {int(signal.SIGTERM)}\n"


def test_help_is_quick_and_short():
    started = time.perf_counter()
    done = process("--help")
    assert done.returncode == 0
    assert time.perf_counter() - started < 20
    code = "import sys, kernelstream.cli; kernelstream.cli._parser(['list']); print('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
    assert max(map(len, done.stdout.decode().splitlines())) <= 100


def test_progress_bar_goes_to_stderr(home, tmp_path, monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("kernelstream.progress.PATIENCE_SECONDS", 0.0)
    assert run("train", home / "flats.svm", "-m", tmp_path / "m.ks", "--block", 100) == 0
    for word in ("fogd", "rows/s", "mistakes"):
        assert word in screen.getvalue()
    assert "rows/s" in capsys.readouterr().out
