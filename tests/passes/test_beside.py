"""Work beside the rows: who asks for its result gets it, whoever computed it."""

import os
import threading
import time

import pytest
from forked import in_child

from kernelstream import settings
from kernelstream.core import threads
from kernelstream.core.beside import Beside


def test_a_result_is_that_of_the_thread_or_of_the_caller():
    def where():
        return threading.current_thread().name, threads.get_num_threads()

    begun = Beside(where)
    while not begun.future.done():
        time.sleep(0.001)
    name, count = begun.result()
    assert name.startswith("kernelstream-beside")
    assert count == 1  # the others are for the rows
    with settings.using(background=0):
        assert Beside(where).result()[0] == threading.current_thread().name


def test_what_was_not_begun_is_computed_by_the_caller_or_not_at_all():
    go, ran = threading.Event(), []
    first = Beside(go.wait)
    second, third = Beside(lambda: ran.append(2)), Beside(lambda: ran.append(3))
    del third  # nobody will ask
    second.result()
    assert ran == [2]
    go.set()
    assert first.result()
    Beside(lambda: None).result()
    assert ran == [2]


def test_an_error_is_raised_where_the_result_is_wanted():
    def work():
        ran.append(threading.current_thread())
        raise ValueError("wrong")

    ran = []
    begun = Beside(work)
    with pytest.raises(ValueError, match="wrong"):
        begun.result()
    assert ran[-1] is threading.current_thread()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_waits_for_the_work_and_the_child_computes_its_own():
    started, ended = threading.Event(), []

    def work():
        started.set()
        time.sleep(0.2)
        ended.append(os.getpid())
        return os.getpid()

    begun, waiting = Beside(work), Beside(os.getpid)
    started.wait(60)
    told = in_child(lambda: repr((len(ended), begun.result() == os.getpid(), waiting.result() == os.getpid())))
    assert told == "(1, True, True)"
    assert begun.result() == os.getpid()
    assert in_child(lambda: str(Beside(os.getpid).result() == os.getpid())) == "True"


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="this system has no batch threads")
def test_rows_that_come_go_before_it():
    begun = Beside(lambda: os.sched_getscheduler(0))
    while not begun.future.done():
        time.sleep(0.001)
    assert begun.result() == os.SCHED_BATCH
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
