"""Threads: order, results and settings."""

import threading
import time

import numpy as np
import pytest
from waiting import in_threads, run_until

from kernelstream import FeatureClassifier, settings
from kernelstream.core import threads


@pytest.fixture(autouse=True)
def _default_threads():
    yield
    settings.change(threads=None)


@pytest.mark.parametrize("count", [1, 2])
def test_prefetch_keeps_the_order(count):
    settings.change(threads=count)
    items = list(range(20))
    assert list(threads.prefetch(lambda i: i * i, items, True)) == [(i, i * i) for i in items]


def test_prefetch_works_ahead_of_a_slow_consumer():
    settings.change(threads=2)
    started, workers = [], []

    def work(i):
        started.append(i)
        return threading.get_ident()

    for i, worker in threads.prefetch(work, range(8), True):
        run_until(lambda i=i: max(started) > i or i == 7)
        workers.append(worker)
        assert max(started) <= i + threads.AHEAD  # so many buffers are enough for whoever consumes
    assert sum(worker != threading.get_ident() for worker in workers) >= 6


def test_a_consumer_does_not_wait_for_slow_work():
    """Both threads make items, and each item is made once."""
    settings.change(threads=2)
    workers, started = [], []

    def work(i):
        started.append(i)
        time.sleep(0.01)
        return i, threading.get_ident()

    for i, (made, worker) in threads.prefetch(work, range(12), True):
        assert made == i
        workers.append(worker)
    assert sorted(started) == list(range(12))
    assert 3 <= sum(worker == threading.get_ident() for worker in workers) <= 9


def test_a_consumer_that_stops_leaves_nothing_behind():
    settings.change(threads=2)
    running = []

    def work(i):
        running.append(i)
        time.sleep(0.005)
        running.remove(i)

    for i, _ in threads.prefetch(work, range(20), True):
        if i == 3:
            break
    assert running == []
    assert list(threads.prefetch(lambda i: i, range(5), True)) == [(i, i) for i in range(5)]


def test_prefetch_passes_errors_on():
    settings.change(threads=2)

    def work(i):
        if i == 3:
            raise ValueError("block 3")
        return i

    with pytest.raises(ValueError, match="block 3"):
        list(threads.prefetch(work, range(6), True))


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_bad_counts(count):
    with pytest.raises(ValueError, match="threads must be an integer"):
        settings.change(threads=count)


def test_environment(monkeypatch):
    monkeypatch.delenv("KERNELSTREAM_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.get_num_threads() == 3
    monkeypatch.setenv("KERNELSTREAM_NUM_THREADS", "5")
    assert threads.get_num_threads() == 5


def test_models_used_from_several_threads_do_not_share_buffers():
    settings.change(threads=2)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 5))
    y = X[:, 0] * X[:, 1] > 0
    model = FeatureClassifier(random_state=0).fit(X, y)
    parts = [X[i * 1500 :] for i in range(4)]
    expected = [model.decision_function(part) for part in parts]
    found: list = [None] * 4

    def ask(i):
        found[i] = [model.decision_function(parts[i]) for _ in range(5)]

    in_threads(ask, range(4))
    for answers, truth in zip(found, expected):
        for answer in answers:
            np.testing.assert_array_equal(answer, truth)


def test_a_caller_that_stops_early_leaves_the_helper_free():
    settings.change(threads=2)
    for _ in range(2):
        made = []
        blocks = threads.prefetch(lambda i, made=made: made.append(threading.get_ident()), range(8), True)
        next(blocks)
        run_until(lambda made=made: len(made) > 1)  # the helper works ahead meanwhile
        blocks.close()
        assert set(made) - {threading.get_ident()}


def test_nobody_goes_on_for_a_caller_who_has_given_up():
    settings.change(threads=2)
    done = []

    def work(i):
        if i == 0:
            raise KeyboardInterrupt
        time.sleep(0.05)
        done.append(i)

    with pytest.raises(KeyboardInterrupt):
        threads.each(work, range(2))
    assert done == [1]


def test_a_call_with_little_work_keeps_to_one_thread(monkeypatch):
    """Handing blocks over costs more than a second thread gains; with enough of it both work."""

    class Busy(Exception):
        pass

    def pool():
        raise Busy

    settings.change(threads=2)
    X = np.random.default_rng(0).standard_normal((1000, 5))
    model = FeatureClassifier("fourier", random_state=0).fit(X, X[:, 0] > 0)
    monkeypatch.setattr(threads, "_the_pool", pool)
    model.learn(X, X[:, 0] > 0)
    model.predict(X)
    if model._ops.THREADED:
        monkeypatch.setattr(threads, "WORTH", 0.0)
        with pytest.raises(Busy):
            model.predict(X)


def test_each_inside_each():
    """Work whose threads wait for threads of the same pool would never end."""
    done = []
    settings.change(threads=3)
    threads.each(lambda i: threads.each(lambda j: done.append((i, j)), range(4)), range(8))
    assert sorted(done) == [(i, j) for i in range(8) for j in range(4)]
