"""Waiting for what others do: until something is so, and for threads."""

import threading
import time


def run_until(condition, seconds=60):
    """Return when it is so; an error after so many seconds."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.005)


def in_threads(work, arguments):
    """Call it once for each argument, in a thread each, and wait for all of them."""
    threads = [threading.Thread(target=work, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
