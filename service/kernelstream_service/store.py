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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelstream.checks import whole

from .answers import StoreError
from .journal import DATABASE, losses, opened, told
from .learner import DurableLearner

MAX_AWAKE = 128  # four open files each
DELETED = ".deleted-"

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


@dataclass(eq=False)
class Seat:
    """A learner, awake or not; who wakes it or puts it to sleep holds the lock."""

    learner: DurableLearner | None = None
    users: int = 0
    problems: dict[str, str] = field(default_factory=dict)  # while it sleeps
    lock: threading.Lock = field(default_factory=threading.Lock)


class Store:
    """Learners by name, one folder each.

    Waking a learner, and putting one to sleep, keeps only those waiting that want the same one.

    Parameters
    ----------
    folder : path
        Created if it does not exist.
    awake : int, default=128
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
        self._lock = threading.Lock()  # of the two below; nothing that takes time is done under it
        self._seats = OrderedDict[str, Seat]()  # the least recently used first
        self._going: set[str] = set()  # those that are being deleted
        for entry in self.folder.glob(f"{DELETED}*"):  # an unfinished deletion
            shutil.rmtree(entry, ignore_errors=True)
        for entry in sorted(self.folder.iterdir()):
            if NAME.match(entry.name) and (problems := _found(entry)) is not None:
                self._seats[entry.name] = Seat(problems=problems)

    def names(self) -> list[str]:
        """Names of all learners, in order."""
        with self._lock:
            return sorted(self._seats)

    def awake(self) -> list[str]:
        """Names of those in memory, the least recently used first."""
        return [name for name, _ in self.learners()]

    def learners(self) -> list[tuple[str, DurableLearner]]:
        """Names and learners of those in memory."""
        with self._lock:
            return [(name, seat.learner) for name, seat in self._seats.items() if seat.learner is not None]

    def __contains__(self, name: object) -> bool:
        return name in self._seats

    def create(self, name: str, model: Any, columns: Sequence[str] | None = None) -> None:
        """Add a learner that starts with a model; ValueError where the name is taken or is not allowed."""
        check_name(name)
        seat = Seat(users=1)
        with seat.lock:
            with self._lock:
                if name in self._seats or name in self._going:
                    raise ValueError(f"a learner named {name!r} already exists")
                self._seats[name] = seat
            try:
                seat.learner = DurableLearner(self.folder / name, model, columns=columns, **self.options)
            except BaseException:
                with self._lock:
                    del self._seats[name]
                raise
        self._leave(seat)
        self._make_room()

    def delete(self, name: str) -> None:
        """Remove a learner and its folder permanently, after its pending calls; KeyError for an unknown name."""
        with self._lock:
            seat = self._seats.pop(name)
            self._going.add(name)
        try:
            while seat.users:
                time.sleep(0.01)
            if seat.learner is not None:
                seat.learner.close()
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
        with self._lock:
            seat = self._seats[name]
            self._seats.move_to_end(name)
            seat.users += 1
        try:
            with seat.lock:
                if seat.learner is None:
                    if name not in self._seats:  # its creation has failed
                        raise KeyError(name)
                    seat.learner = DurableLearner(self.folder / name, **self.options)
                learner = seat.learner
            self._make_room()
            yield learner
        finally:
            self._leave(seat)

    def now(self, name: str) -> DurableLearner | None:
        """The learner of a name, at once; None where it sleeps, or wakes. KeyError for an unknown name."""
        with self._lock:
            self._seats.move_to_end(name)
            return self._seats[name].learner

    def _leave(self, seat: Seat) -> None:
        with self._lock:
            seat.users -= 1

    def health(self) -> dict[str, Any]:
        """Status, and problems by name. Of learners that sleep it is known what they have lost."""
        with self._lock:
            seats = list(self._seats.items())
        found = {
            name: seat.problems if seat.learner is None else dict(seat.learner.keeper.problems) for name, seat in seats
        }
        problems = {name: problem for name, problem in found.items() if problem}
        return {"status": "degraded" if problems else "ok", "problems": problems}

    def close(self) -> None:
        """Write all learners to the disk and close them."""
        with self._lock:
            seats = list(self._seats.values())
            self._seats.clear()
        for seat in seats:
            with seat.lock:
                if seat.learner is not None:
                    seat.learner.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def _make_room(self) -> None:
        """Put those that were used least recently to sleep, where too many are awake."""
        with self._lock:
            awake = [seat for seat in self._seats.values() if seat.learner is not None]
            idle = [seat for seat in awake if not seat.users]
        for seat in idle[: max(0, len(awake) - self.limit)]:
            with seat.lock:
                with self._lock:
                    learner = None if seat.users else seat.learner
                    if learner is not None:
                        seat.learner = None
                        seat.problems = {key: text for key, text in learner.keeper.problems.items() if key == "lost"}
                if learner is not None:
                    learner.close()


def check_name(name: Any) -> None:
    """ValueError for what is not allowed as the name of a learner."""
    if not isinstance(name, str) or not NAME.match(name):
        raise ValueError(f"a name is 1 to 64 letters, digits, - and _, a letter or digit first; got {name!r:.80}")


def _found(folder: Path) -> dict[str, str] | None:
    """What a learner in a folder has lost; None where there is none."""
    try:
        if not (folder / DATABASE).exists():
            return None
        with contextlib.closing(opened(folder / DATABASE)) as db:
            tables = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'snapshots'").fetchone()[0]
            if not tables or not db.execute("SELECT count(*) FROM snapshots").fetchone()[0]:
                return None
            gaps = losses(db)
    except StoreError:
        raise
    except Exception as error:
        raise StoreError(f"{folder} cannot be read: {error}") from None
    return {"lost": told(gaps)} if gaps else {}
