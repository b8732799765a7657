"""Processes that are killed at operations on files: for scripts, which fork before any thread has been started."""

import os
import signal

OPERATIONS = ("open", "fdopen", "fsync", "fdatasync", "replace", "unlink", "ftruncate", "mkdir")


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
    assert end in (0, -signal.SIGKILL), f"the process ended with {end}"
    return end, words
