"""Threads: order, results and settings."""

import math
import threading
import time

import numpy as np
import pytest
from waiting import in_threads, run_until

from kernelstream import FeatureClassifier, _processors, settings
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


@pytest.mark.parametrize(
    "groups, files, granted",
    [
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "200000 100000"}, 2.0),  # version 2; of the group above
        ("0::/", {"cpu.max": "50000 100000"}, 0.5),
        ("0::/", {"cpu.max": "max 100000"}, math.inf),
        ("0::/", {}, math.inf),
        (
            "3:cpuset:/a\n2:cpu,cpuacct:/a\n0::/",
            {"cpu/a/cpu.cfs_quota_us": "300000", "cpu/a/cpu.cfs_period_us": "100000"},
            3.0,
        ),
        (
            "2:cpu:/of/the/host",
            {"cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "100000"},
            1.5,
        ),  # a container
        ("2:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, math.inf),
    ],
)
def test_the_time_that_control_groups_grant(groups, files, granted, tmp_path):
    (tmp_path / "groups").write_text(groups + "\n")
    for name, text in files.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    assert _processors.granted(str(tmp_path / "groups"), str(tmp_path / "root")) == granted


@pytest.mark.parametrize("granted, count", [(0.5, 1), (1.0, 1), (1.5, 2), (3.0, 3), (8.0, 4), (math.inf, 4)])
def test_as_many_threads_as_processors_are_granted(granted, count, monkeypatch):
    for name in ("KERNELSTREAM_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_processors.os, "sched_getaffinity", lambda process: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(_processors, "granted", lambda: granted)
    assert settings.get()["threads"] == count


def test_work_of_each_asks_for_no_more_threads():
    settings.change(threads=2)
    counts = []
    threads.each(lambda i: counts.append(threads.get_num_threads()), range(4))
    assert counts == [1] * 4
    assert threads.get_num_threads() == 2


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
    if model._learner.ops.THREADED:
        monkeypatch.setattr(threads, "WORTH", 0.0)
        with pytest.raises(Busy):
            model.predict(X)


def test_each_inside_each():
    """Work whose threads wait for threads of the same pool would never end."""
    done = []
    settings.change(threads=3)
    threads.each(lambda i: threads.each(lambda j: done.append((i, j)), range(4)), range(8))
    assert sorted(done) == [(i, j) for i in range(8) for j in range(4)]
