"""Kills a durable learner again and again, and lets another process go on.

Arguments: a folder and either kills and a seed, for kills at any time while it learns; or "steps" and a number of
calls, for a kill at each single operation on a file, from its creation through snapshots and new log files to its end.
No row that was acknowledged may be missing, none may be learned twice, and in the end the model must equal, bit for
bit, one that learned the same calls undisturbed. Run by test_live_recovery.py in a process of its own: it forks before
any thread has been started.
"""

import os
import random
import select
import signal
import struct
import sys
import time

import numpy as np

FLUSH = ("each", "request", 3.0)


def calls(start):
    """Calls of `learn` from row ``start`` on, always cut at the same rows: (first row, X, y)."""
    first = 0
    for number in range(10**9):
        rng = np.random.default_rng(number)
        n = int(rng.integers(1, 8))
        if first >= start:
            X = rng.normal(size=(n, 4))
            yield first, X, np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
        first += n


def make(which):
    from kernelstream import BudgetClassifier, FeatureClassifier, OnlineRidgeClassifier
    from kernelstream.features import RandomFourier

    return [
        FeatureClassifier(loss="logistic", features=RandomFourier(n_components=30), random_state=1),
        BudgetClassifier(budget=20, random_state=1),
        OnlineRidgeClassifier(features=RandomFourier(n_components=20), random_state=1),
    ][which % 3]


def child(folder, which, out):
    from kernelstream.live import DurableLearner

    learner = DurableLearner(folder, make(which), flush=FLUSH[which % 3], snapshot_rows=100, swap_ms=1)
    os.write(out, struct.pack("<q", -1 - learner.total))
    for _, X, y in calls(learner.total):
        answer = learner.learn(X, y)
        os.write(out, struct.pack("<q", answer.total))


def main(folder, kills, seed):
    from kernelstream import model_io
    from kernelstream.live import DurableLearner

    rng = random.Random(seed)
    for model in range(3):  # so that the forked processes start quickly
        make(model).learn(*next(calls(0))[1:])
    killed, which = 0, 0
    while killed < kills:
        home = os.path.join(folder, str(which))
        acknowledged = 0
        for _ in range(min(10, kills - killed)):
            acknowledged = until_killed(home, which, acknowledged, rng)
            killed += 1
        learner = DurableLearner(home)
        assert learner.total >= acknowledged, f"{acknowledged} rows were acknowledged, {learner.total} are there"
        assert not learner.problems, learner.problems
        undisturbed = make(which)
        for first, X, y in calls(0):
            if first == learner.total:
                break
            undisturbed.learn(X, y)
        assert model_io.to_bytes(learner.champion.model) == model_io.to_bytes(undisturbed), "another model"
        assert learner.champion.scores.rows == learner.total
        learner.close()
        assert not [name for name in os.listdir(home) if name.endswith(".tmp")]
        print(which, learner.total, flush=True)
        which += 1
    print("kills", killed)


def until_killed(home, which, acknowledged, rng):
    """One life of a learner; returns the rows acknowledged until its end."""
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(source)
            child(home, which, sink)
        finally:
            os._exit(99)
    os.close(sink)
    end = None
    while True:
        left = None if end is None else max(0.0, end - time.monotonic())
        ready, _, _ = select.select([source], [], [], left)
        if not ready:
            break
        word = os.read(source, 8)
        assert word, "the learner ended by itself"
        (value,) = struct.unpack("<q", word)
        if value < 0:  # it has started, with so many rows
            found = -1 - value
            assert found >= acknowledged, f"{acknowledged} rows were acknowledged, {found} are there after a kill"
            end = time.monotonic() + rng.uniform(0.0, 0.25)
        else:
            acknowledged = value
        if end is not None and time.monotonic() >= end:
            break
    os.kill(pid, signal.SIGKILL)
    while word := os.read(source, 8):  # answers that were under way
        acknowledged = max(acknowledged, struct.unpack("<q", word)[0])
    os.close(source)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    return acknowledged


OPERATIONS = ("open", "fsync", "fdatasync", "replace", "unlink", "ftruncate", "mkdir")


def count_down(steps):
    """Let this process be killed at an operation on a file, the number of which is given; a write is two of them."""
    left = steps

    def step():
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(real):
        def operation(*args, **kwargs):
            step()
            return real(*args, **kwargs)

        return operation

    def write(file, content, real=os.write):
        step()
        half = real(file, content[: len(content) // 2])
        step()
        return half + real(file, content[half:])

    for name in OPERATIONS:
        setattr(os, name, counted(getattr(os, name)))
    os.write = write


def short_life(folder, learned, steps, out, real=os.write):
    """Create a learner, learn, take snapshots, begin new log files, end; dies at an operation."""
    from kernelstream.live import DurableLearner, log

    log.FILE_BYTES = 100  # nearly every call begins a new file
    count_down(steps)
    learner = DurableLearner(folder, make(0))
    for i, (_, X, y) in zip(range(learned), calls(0)):
        real(out, struct.pack("<q", learner.learn(X, y).total))
        if i % 2 == 0:
            learner.snapshot()
    learner.close()


def at_each_step(folder, learned):
    from kernelstream import model_io
    from kernelstream.live import DurableLearner

    make(0).learn(*next(calls(0))[1:])
    undisturbed, states = make(0), {}
    for i, (first, X, y) in zip(range(learned + 1), calls(0)):
        states[first] = model_io.to_bytes(undisturbed) if i else None
        undisturbed.learn(X, y)
    steps = 0
    while True:
        steps += 1
        home = os.path.join(folder, str(steps))
        source, sink = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                short_life(home, learned, steps, sink)
                os._exit(0)
            finally:
                os._exit(99)
        os.close(sink)
        words = b"".join(iter(lambda source=source: os.read(source, 4096), b""))
        os.close(source)
        end = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert end in (0, -signal.SIGKILL), f"step {steps}: the learner ended with {end}"
        acknowledged = struct.unpack("<q", words[-8:])[0] if words else 0
        with DurableLearner(home, make(0)) as learner:
            assert learner.total >= acknowledged, (
                f"step {steps}: {acknowledged} acknowledged, {learner.total} are there"
            )
            assert not learner.problems, f"step {steps}: {learner.problems}"
            if learner.total:
                assert model_io.to_bytes(learner.champion.model) == states[learner.total], (
                    f"step {steps}: another model"
                )
        if end == 0:
            break
    print("steps", steps - 1)


if __name__ == "__main__":
    if sys.argv[2] == "steps":
        at_each_step(sys.argv[1], int(sys.argv[3]))
    else:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
