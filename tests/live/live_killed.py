"""Kills a durable learner again and again, and lets another process go on.

Arguments: a folder and either kills and a seed, for kills at any time while it learns; or "steps" and a number of
calls, for a kill at each single operation on a file, from its creation through snapshots, new log files, a challenger,
its promotion and the way back to its end, and a second kill while it recovers from each of these; it prints how many
kills there were in which phase.
No row that was acknowledged may be missing, none may be learned twice, and in the end the model must equal, bit for
bit, one that learned the same calls undisturbed. Run by test_live_recovery.py in a process of its own: it forks before
any thread has been started.
"""

import io
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


PHASES = ("creation", "learning", "snapshot", "challenge", "promotion", "rollback", "end")
VERSION = 10**9  # what is added to the number of a version that is acknowledged


def life(learned):
    """What a learner is asked in a life: (phase, argument), calls, snapshots, and a challenger that comes and goes."""
    for i in range(learned):
        yield "learning", i
        if i % 2 == 0:
            yield "snapshot", None
        if i == learned // 3:
            yield "challenge", None
        if i == 2 * learned // 3:
            yield "promotion", None
    yield "rollback", None
    yield "learning", learned


def short_life(folder, learned, steps, out, real=os.write):
    """Create a learner and do all that is asked of it; nearly every call begins a new log file. Dies at a step."""
    from kernelstream.live import DurableLearner, log

    def tell(value):
        real(out, struct.pack("<q", value))

    log.FILE_BYTES = 100
    count_down(steps)
    tell(-1)
    learner = DurableLearner(folder, make(0))
    given = dict(enumerate(next_calls(learned)))
    for phase, i in life(learned):
        tell(-1 - PHASES.index(phase))
        if phase == "learning":
            tell(learner.learn(*given[i][1:]).total)
        elif phase == "snapshot":
            learner.snapshot()
        elif phase == "challenge":
            learner.challenge(make(1))
        else:
            tell(VERSION + (learner.promote() if phase == "promotion" else learner.rollback()))
    tell(-1 - PHASES.index("end"))
    learner.close()


def next_calls(learned):
    return [call for _, call in zip(range(learned + 1), calls(0))]


def states_of(learned):
    """The champion's bytes by version and rows, from models that learn the same calls by themselves."""
    from kernelstream import model_io

    first, second, states, version, rival = make(0), None, {}, 1, make(1)
    given, total = next_calls(learned), 0
    for phase, i in life(learned):
        if phase == "learning":
            _, X, y = given[i]
            first.learn(X, y)
            if second is not None:
                second.learn(X, y)
            total += len(X)
        elif phase == "challenge":
            second = rival
        elif phase == "promotion":
            retired = model_io.to_bytes(first)
            first, second, version = second, None, 2
        elif phase == "rollback":
            first, second, version = model_io.load(io.BytesIO(retired)), None, 3
        states[version, total] = model_io.to_bytes(first)
    return states


def at_each_step(folder, learned):
    """A kill at every operation on a file; with a second one, at another operation, while the folder is recovered."""
    from kernelstream import model_io
    from kernelstream.live import DurableLearner

    for kind in range(2):
        make(kind).learn(*next(calls(0))[1:])
    states, table = states_of(learned), dict.fromkeys((*PHASES, "recovery"), 0)
    steps = 0
    while True:
        steps += 1
        home = os.path.join(folder, str(steps))
        end, words = lived(lambda out, home=home, steps=steps: short_life(home, learned, steps, out))
        told = struct.unpack(f"<{len(words) // 8}q", words)
        acknowledged = max((word for word in told if 0 <= word < VERSION), default=0)
        version = max((word - VERSION for word in told if word >= VERSION), default=1)
        if end:
            table[PHASES[-1 - [word for word in told if word < 0][-1]]] += 1
            again, _ = lived(lambda out, home=home, steps=steps: recover(home, 1 + steps % 17))
            table["recovery"] += again != 0
        with DurableLearner(home, make(0)) as learner:
            about = (
                f"step {steps}: {acknowledged} rows, version {version} acknowledged; {learner.total}, {learner.version}"
            )
            assert learner.total >= acknowledged and learner.version >= version, about
            assert not learner.problems, f"step {steps}: {learner.problems}"
            if learner.total:
                found = model_io.to_bytes(learner.champion.model)
                assert found == states[learner.version, learner.total], f"{about}: another model"
        if end == 0:
            break
    for phase, kills in table.items():
        print(f"{phase:10} {kills:5} kills", flush=True)
    print("steps", steps - 1)


def recover(home, steps):
    from kernelstream.live import DurableLearner

    count_down(steps)
    DurableLearner(home, make(0)).close()


def lived(task):
    """The end of a process that does a task, 0 or a kill, and what it wrote."""
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            task(sink)
            os._exit(0)
        finally:
            os._exit(99)
    os.close(sink)
    words = b"".join(iter(lambda: os.read(source, 4096), b""))
    os.close(source)
    end = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert end in (0, -signal.SIGKILL), f"the learner ended with {end}"
    return end, words


if __name__ == "__main__":
    if sys.argv[2] == "steps":
        at_each_step(sys.argv[1], int(sys.argv[3]))
    else:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
