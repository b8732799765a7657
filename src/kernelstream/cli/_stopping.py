"""Control-C and SIGTERM during a long run: once to stop with what was learned kept, twice to stop at once."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from .base import Around

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SECONDS_TO_BLOCK_END = 0.75  # seconds for which a signal waits for the end of a block
WAKES = signal.SIGURG  # ends a wait for rows, and has no other meaning


class _Woken(BaseException):
    """A signal came while waiting for rows."""


class Stopping:
    """A context in which a first signal is noted, and a second one ends the process wherever it is.

    Python's own handlers run between two of its instructions, and learning a block may be one long call. So a thread
    watches for signals. Where the block does not end within a second, it writes what there was before the block, and
    ends the process: to learn blocks in smaller pieces would make the last bits of a model depend on the clock.

    Parameters
    ----------
    keeps : bool
        Whether the run has something to keep before it is finished; a first signal ends it otherwise.

    Attributes
    ----------
    number : int
        The signal that asked to stop; 0 if none did.
    rescue : callable
        Writes what there was before the current block, and returns a sentence about it.
    """

    def __init__(self, keeps: bool):
        self.keeps, self.number = keeps, 0
        self.rescue: Callable[[], str] = lambda: "stopped inside a long block, before anything was saved"
        self.waiting = self.learning = False

    def __call__(self) -> bool:
        """Whether the run is to stop; asked when a block is done."""
        self.learning = False
        return self.number > 0

    def __enter__(self) -> Stopping:
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        self._fd = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        self._handlers = {number: signal.signal(number, self._note) for number in SIGNALS}
        self._handlers[WAKES] = signal.signal(WAKES, lambda number, frame: None)
        return self

    def __exit__(self, *exc: Any) -> None:
        self.learning = False
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._fd)
        os.close(self._write_end)
        self._watcher.join()
        os.close(self._read_end)

    def _note(self, number: int, frame: Any) -> None:
        self.number = self.number or number
        if self.waiting:
            raise _Woken

    def _watch(self) -> None:
        number = self._signal(None)
        if number is None:
            return
        if not self.keeps:
            self._end(number, "stopped at once: this model learns all rows together, so there is nothing to save yet")
        print(f"kernelstream: {name_of(number)}: stopping (once more stops at once)", file=sys.stderr, flush=True)
        again = self._signal(SECONDS_TO_BLOCK_END)
        if again is None and self.learning:
            self._end(number, self.rescue())
        if again is None and self.waiting:  # it came a moment before the wait began, which does not know of it
            signal.pthread_kill(threading.main_thread().ident or 0, WAKES)
        again = again or self._signal(None)
        if again is not None:
            self._end(again, "stopped at once")

    def _signal(self, seconds: float | None) -> int | None:
        """The next signal to stop; None if none came in time, or none can come any more."""
        while select.select([self._read_end], [], [], seconds)[0] and (got := os.read(self._read_end, 1)):
            if got[0] in SIGNALS:
                return got[0]
        return None

    @staticmethod
    def _end(number: int, said: str) -> None:
        cursor = "\x1b[?25h" if os.isatty(2) else ""  # a progress bar had hidden it
        os.write(2, f"{cursor}kernelstream: {said}\n".encode())
        os._exit(code_of(number))


class Awake(Around):
    """A stream whose wait for rows ends when the run is asked to stop; then it gives None."""

    def __init__(self, stream: Any, stopping: Stopping):
        super().__init__(stream)
        self.stopping = stopping

    def read(self) -> Any:
        try:
            try:
                self.stopping.waiting = True
                return None if self.stopping.number else self.stream.read()
            finally:
                self.stopping.waiting = False
                self.stopping.learning = True
        except _Woken:
            return None


def name_of(number: int) -> str:
    """A signal's name.

    >>> name_of(15)
    'SIGTERM'
    """
    return signal.Signals(number).name


def code_of(number: int) -> int:
    """The exit code of a process that a signal has stopped, as shells have it.

    >>> code_of(15)
    143
    """
    return 128 + int(number)
