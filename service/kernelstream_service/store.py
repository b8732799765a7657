"""Many durable learners in one process: those in use are awake, the others sleep on disk."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kernelstream.checks import whole
from kernelstream.files import write_atomic

from .answers import StoreError
from .learner import DurableLearner
from .losses import Losses

MAX_AWAKE = 256
DELETED = ".deleted-"
KEY = "key"  # file of a learner that holds the text it is for

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


class Store:
    """Learners by name, one folder each.

    Parameters
    ----------
    folder : path
        Created if it does not exist.
    awake : int, default=256
        How many learners may be in memory at a time. When another one is needed, the one that was used least recently
        writes a snapshot and goes to sleep; the next use wakes it.
    **options
        Of :class:`DurableLearner`: ``flush``, ``snapshot_rows``, ``swap_ms``, ``remember``.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from kernelstream import FeatureRegressor
    >>> from kernelstream_service import Store
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Store(folder.name, awake=1) as store:
    ...     for name in ("rome", "oslo"):
    ...         store.create(name, FeatureRegressor(random_state=0))
    ...         with store.use(name) as learner:
    ...             _ = learner.learn(np.ones((3, 2)), np.ones(3))
    ...     store.names(), store.awake()
    (['oslo', 'rome'], ['oslo'])
    >>> folder.cleanup()
    """

    def __init__(self, folder: str | os.PathLike[str], *, awake: int = MAX_AWAKE, **options: Any):
        self.folder, self.limit, self.options = Path(folder), whole("awake", awake), options
        self.folder.mkdir(parents=True, exist_ok=True)
        self._awake: OrderedDict[str, DurableLearner] = OrderedDict()
        self._users: dict[str, int] = {}
        self._going: set[str] = set()  # those that are being deleted
        self._lock = threading.RLock()
        for entry in self.folder.glob(f"{DELETED}*"):  # an unfinished deletion
            shutil.rmtree(entry, ignore_errors=True)
        found = [entry for entry in self.folder.iterdir() if NAME.match(entry.name) and _is_learner(entry)]
        self._names = {entry.name for entry in found}
        self._keys = {entry.name: key for entry in found if (key := key_of(entry)) is not None}
        self._asleep = {entry.name: problems for entry in found if (problems := _lost(Losses(entry)))}

    def names(self) -> list[str]:
        """Names of all learners, in order."""
        with self._lock:
            return sorted(self._names)

    def awake(self) -> list[str]:
        """Names of those in memory, the least recently used first."""
        with self._lock:
            return list(self._awake)

    def learners(self) -> list[tuple[str, DurableLearner]]:
        """Names and learners of those in memory."""
        with self._lock:
            return list(self._awake.items())

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def keys(self) -> dict[str, str]:
        """The keys of the learners that were created with one, by name."""
        with self._lock:
            return dict(self._keys)

    def create(self, name: str, model: Any, columns: Sequence[str] | None = None, key: str | None = None) -> None:
        """Add a learner that starts with a model; ValueError where the name is taken or is not allowed.

        ``key`` is a text, of any characters, that says what the learner is for (:meth:`keys`).
        """
        if not isinstance(name, str) or not NAME.match(name):
            raise ValueError(f"a name is 1 to 64 letters, digits, - and _, a letter or digit first; got {name!r:.80}")
        with self._lock:
            if name in self._names or name in self._going:
                raise ValueError(f"a learner named {name!r} already exists")
            if key is not None:
                (self.folder / name).mkdir(exist_ok=True)
                write_atomic(self.folder / name / KEY, key.encode())
            self._awake[name] = DurableLearner(self.folder / name, model, columns=columns, **self.options)
            self._names.add(name)
            if key is not None:
                self._keys[name] = key
            self._make_room(name)

    def delete(self, name: str) -> None:
        """Remove a learner and its folder permanently, after its pending calls; KeyError for an unknown name."""
        with self._lock:
            self._names.remove(name)
            self._going.add(name)
            learner = self._awake.pop(name, None)
            self._asleep.pop(name, None)
            self._keys.pop(name, None)
        try:
            while name in self._users:
                time.sleep(0.01)
            if learner is not None:
                learner.close()
            gone = self.folder / f"{DELETED}{name}-{time.time_ns()}"  # in one step: half a folder is not a learner
            os.replace(self.folder / name, gone)
            shutil.rmtree(gone, ignore_errors=True)
        finally:
            with self._lock:
                self._going.discard(name)

    @contextlib.contextmanager
    def use(self, name: str) -> Iterator[DurableLearner]:
        """The learner of a name, awake as long as the block runs; KeyError for an unknown name.

        A name is only ever looked up among those that are known: it never becomes part of a path.
        """
        learner = self.acquire(name)
        try:
            yield learner
        finally:
            self.release(name)

    def acquire(self, name: str) -> DurableLearner:
        """The learner of a name; it stays awake until :meth:`release`."""
        with self._lock:
            learner = self._awake.get(name)
            if learner is None:
                if name not in self._names:
                    raise KeyError(name)
                learner = self._awake[name] = DurableLearner(self.folder / name, **self.options)
                self._asleep.pop(name, None)
            self._awake.move_to_end(name)
            self._users[name] = self._users.get(name, 0) + 1
            self._make_room(name)
            return learner

    def release(self, name: str) -> None:
        """Release what :meth:`acquire` returned."""
        with self._lock:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name]

    def health(self, wait: bool = True) -> dict[str, Any] | None:
        """Status, and problems by name. Of learners that sleep it is known what they have lost.

        None, without ``wait``, while the store is busy, for example because a learner wakes.
        """
        if not self._lock.acquire(blocking=wait):
            return None
        try:
            awake = {name: learner.health()["problems"] for name, learner in self._awake.items()}
            found = self._asleep | awake
        finally:
            self._lock.release()
        problems = {name: problem for name, problem in found.items() if problem}
        return {"status": "degraded" if problems else "ok", "problems": problems}

    def close(self) -> None:
        """Write all learners to the disk and close them."""
        with self._lock:
            while self._awake:
                self._awake.popitem()[1].close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def _make_room(self, but: str) -> None:
        idle = [name for name in self._awake if name not in self._users and name != but]
        for name in idle[: max(0, len(self._awake) - self.limit)]:
            learner = self._awake.pop(name)
            learner.close()
            if problems := _lost(learner.losses):
                self._asleep[name] = problems


def key_of(folder: Path) -> str | None:
    """What a learner is for; None where it was created without a key."""
    try:
        return (folder / KEY).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def _lost(losses: Losses) -> dict[str, str]:
    return {"lost": str(losses)} if losses.open else {}


def _is_learner(folder: Path) -> bool:
    try:
        return folder.is_dir() and any(folder.glob("snapshot-*.ks"))
    except OSError as error:
        raise StoreError(f"{folder} cannot be read: {error}") from None
