"""A process that is forked while another thread uses a model gets one between two calls, and never waits for ever."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from without_core import without_core

from kernelstream.state import turns

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
SCRIPT = Path(__file__).parents[1] / "forked.py"


def test_a_fork_waits_for_calls_of_other_threads():
    ran = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    told = dict(line.split(", ", 1) for line in ran.stdout.splitlines())
    assert told.pop("a long call") == "refused, between, refused, between, between"
    assert set(told) == {"features", "wrapped", "default", "few rows", "mixed", "fit"}
    assert set(told.values()) == {"between, between, between"}, told


@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_the_lock_in_a_forked_process(kind):
    """The one of a thread that does not exist there never comes; others are free, whoever stood in line."""
    make = turns.Turns if kind == "compiled" else without_core("kernelstream.state.turns").Turns
    free, lost, own, held, over = make(), make(), make(), threading.Event(), threading.Event()

    def hold():
        with lost:
            held.set()
            over.wait(60)

    holder, waiter = threading.Thread(target=hold), threading.Thread(target=lambda: own.take(60.0) and own.leave())
    holder.start()
    held.wait()
    assert not lost.take(0.0)
    assert not lost.take(0.1)
    with own:
        waiter.start()
        pid = os.fork()
        if pid == 0:
            os._exit(in_child(free, lost, own))
        status = os.waitpid(pid, 0)[1]
    over.set()
    holder.join()
    waiter.join()
    assert os.waitstatus_to_exitcode(status) == 0
    for lock in (free, lost, own):
        with lock:
            pass


def in_child(free, lost, own):
    right = [free.forked(), not lost.forked(), own.forked(), not lost.take(0.0)]
    with free:
        own.leave()  # the context of the parent
    right.append(own.take(0.0))
    try:
        with lost:
            return 1
    except RuntimeError as error:
        return 0 if all(right) and "forked" in str(error) else 2
