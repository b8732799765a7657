"""Kills a training process again and again and lets another one go on, until all kills are used up.

Arguments: a folder, kills, a seed. Every run that gets to its end must leave the same model file as one that was never
disturbed. Run by test_checkpoint.py in a process of its own: it forks before any thread has been started.
"""

import contextlib
import importlib
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path


def child(argv, used=None):
    """Run a command in a forked process, which writes the modules it has used to a file; returns its process id."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            from kernelstream import cli

            code = cli.main(argv)
            if used is not None:
                used.write_text("\n".join(sys.modules))
        finally:
            os._exit(code)
    return pid


def wait(pid, seconds=None, sign=lambda: False):
    """Exit status of a process, or None when it takes longer or there is a sign; without a limit, until it ends."""
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, 0 if until is None else os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until or sign():
            return None
        time.sleep(0.0005)


def main(folder, kills, seed):
    rng = random.Random(seed)
    home = Path(folder)
    train = [
        "train",
        str(home / "data.svm"),
        "--block",
        "256",
        "-a",
        "fogd",
        "--n-components",
        "40",
        "--on-error",
        "skip",
        "--quiet",
    ]
    plain, used = home / "plain.ks", home / "modules"
    assert wait(child([*train, "--model", str(plain), "--checkpoint", str(home / "first")], used)) == 0
    for name in used.read_text().splitlines():  # so that forked processes learn from the start, and do not import
        if name.startswith(("kernelstream", "numpy", "scipy", "sklearn", "rich")):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    started = time.monotonic()
    assert wait(child([*train, "--model", str(plain)])) == 0
    whole = time.monotonic() - started
    killed = runs = resumed = 0
    while killed < kills:
        model, kept = home / "model.ks", home / "kept"
        shutil.rmtree(kept, ignore_errors=True)
        model.unlink(missing_ok=True)
        command = [
            *train,
            "--model",
            str(model),
            "--checkpoint",
            str(kept),
            "--every",
            "512",
            "--keep",
            "2",
            "--resume",
        ]
        while True:
            pid = child(command)
            if killed % 2 and killed < kills:  # when there is something to go on from
                status = wait(pid, 100 * whole, lambda folder=kept: any(folder.glob("checkpoint-*.ks")))
            else:  # at any moment
                status = wait(pid, rng.uniform(0, 1.5 * whole) if killed < kills else None)
            if status is not None:
                assert status == 0, f"exit status {status}"
                break
            os.kill(pid, signal.SIGKILL)
            status = wait(pid)
            if status == 0:  # it had ended just before the signal
                break
            assert status == -signal.SIGKILL
            killed += 1
            resumed += any(kept.glob("checkpoint-*.ks"))
        assert model.read_bytes() == plain.read_bytes(), "the resumed run ended with another model"
        assert not list(kept.glob("*.tmp"))
        runs += 1
    print(killed, runs, resumed)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
