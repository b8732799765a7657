"""Readers, writers and what is flushed when."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest
from live_cases import CALLS, crash, logistic, moons, same, taught
from waiting import in_threads, run_until

from kernelstream import KernelClassifier, KernelRegressor, MultiKernelClassifier
from kernelstream.copies import copied
from kernelstream_service import Busy, DurableLearner, readers, writer


# -------------------------------------------------------------------- threads
def test_predictions_never_wait_for_learning(tmp_path):
    """While a call of learn takes its time, predictions are answered by the copy from before."""
    gate, inside = threading.Event(), threading.Event()
    with taught(tmp_path, CALLS, swap_ms=0) as learner:
        X, y = moons(10)
        learner.latest()  # readers have it a moment after the answers
        before = learner.predict(X)
        model = learner.champion.model
        plain = type(model).learn

        def slow(self, *args):
            if self is model:
                with self._turns:
                    inside.set()
                    assert gate.wait(10)
            return plain(self, *args)

        type(model).learn = slow
        try:
            future = learner.learn_soon(X, y)
            assert inside.wait(10)
            assert (learner.predict(X) == before).all() and not future.done()
        finally:
            gate.set()
            future.result(10)
            type(model).learn = plain


def test_many_threads(tmp_path):
    """Calls from many threads share the log; each is learned once, and a replay gives the same model."""
    learner = DurableLearner(tmp_path, logistic(), snapshot_rows=50)
    X, y = moons(200)

    def teach(k):
        for i in range(k, 200, 8):
            learner.learn(X[i : i + 1], y[i : i + 1])
            learner.predict(X[:3])

    in_threads(teach, range(8))
    assert learner.total == 200
    crash(learner)
    with DurableLearner(tmp_path) as again:
        assert same(again.champion.model, learner.champion.model)


def test_the_first_rows_are_there_at_once(tmp_path):
    """Whoever has taught the first rows may ask at once, however seldom readers get a copy."""
    with DurableLearner(tmp_path, logistic(), swap_ms=60_000) as learner:
        learner.learn(*moons(5))
        assert len(learner.predict(moons(3)[0])) == 3


def test_readers_follow(tmp_path):
    with taught(tmp_path, CALLS, swap_ms=1) as learner:
        learner.learn(*moons(5))
        run_until(lambda: learner.view.rows >= learner.total, 5)
        assert same(learner.model, learner.champion.model)


def test_too_many_calls_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "MAX_WAITING_CALLS", 0)
    with DurableLearner(tmp_path, logistic()) as learner, pytest.raises(Busy):
        learner.learn(*moons(5))


def test_an_idle_learner_keeps_no_thread(tmp_path, monkeypatch):
    """A thousand learners may be in memory; the next call begins another one."""
    monkeypatch.setattr(writer, "IDLE_SECONDS", 0.05)
    with taught(tmp_path, CALLS) as learner:
        for _ in range(2):
            run_until(lambda: learner._writer._thread is None, 10)
            assert learner.learn(*moons(5)).learned == 5


@pytest.mark.parametrize("flush", ["request", 2.0])
def test_policies(tmp_path, flush):
    """The disk is forced when it is due, not before every answer."""
    with DurableLearner(tmp_path, logistic(), flush=flush) as learner:
        for _ in range(3):
            learner.learn(*moons(1))
        if flush == "request":
            time.sleep(0.05)
            assert learner.keeper.journal._unforced_since is not None
            learner.flush()
        run_until(lambda: learner.keeper.journal._unforced_since is None, 5)


def test_answers_do_not_wait_for_a_copy(tmp_path, monkeypatch):
    """A call is answered when it is in the log and learned; the copy for the readers, which may take long, follows."""
    X, y = moons(10)
    with taught(tmp_path, CALLS, swap_ms=0) as learner:
        learner.latest()
        gate = threading.Event()
        monkeypatch.setattr(readers, "copied", lambda *args: gate.wait(20) and copied(*args))
        rows = learner.view.rows
        assert learner.learn_soon(X, y).result(10).learned == 10
        assert learner.view.rows == rows
        gate.set()
        assert learner.latest().rows == rows + 10


@pytest.mark.parametrize("kind", [KernelClassifier, KernelRegressor, "mixed", MultiKernelClassifier])
def test_copies_out_of_use_are_freed_at_once(kind):
    """Without the garbage collector, which counts objects and not bytes: hundreds of megabytes would wait for it."""
    X = np.random.default_rng(0).normal(size=(120, 3))
    rows, y = X, (X[:, 0] > 0).astype(int)
    if kind == "mixed":
        rows = [{"a": row[0], "b": "u" if row[1] > 0 else "v"} for row in X.tolist()]
        kind = KernelClassifier
    model = kind(random_state=0)
    model.learn(rows, y)
    gc.collect()
    gc.disable()
    try:
        copy = copied(model, rows[:1])
        np.testing.assert_array_equal(copy.predict(rows[:20]), model.predict(rows[:20]))
        alive = weakref.ref(copy)
        del copy
        assert alive() is None
    finally:
        gc.enable()
    assert model.predict(rows[:1]).shape == (1,)
