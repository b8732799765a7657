"""What an operator does with the folder of a store: look at it, check it, back it up, restore it, repair it.

Only :func:`repair` and :func:`restore` write to the store. The others read it while a server is using it: SQLite gives
them the journal of one moment. The models that its snapshots name are files of their own; if newer ones have replaced
them, they start again.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from kernelstream.checks import few
from kernelstream.files import numbered

from . import journal, records
from .answers import StoreError
from .learner import DurableLearner
from .snapshots import MODEL, RIVAL, read_state
from .store import Store

READ_TRIES = 20

Read = TypeVar("Read", bound=Callable[..., Any])


def _settled(read: Read) -> Read:
    """Decorator: a function that reads files starts again when some of them were replaced while it ran."""

    @functools.wraps(read)
    def tried(*args: Any) -> Any:
        for _ in range(READ_TRIES - 1):
            with contextlib.suppress(FileNotFoundError):
                return read(*args)
        return read(*args)

    return cast(Read, tried)


def _reading(folder: Path) -> Any:
    return contextlib.closing(journal.opened(folder / journal.DATABASE))


def folders(store: str | os.PathLike[str]) -> dict[str, Path]:
    """Folders of the learners of a store, by name; StoreError where there are none."""
    if not Path(store).is_dir():
        raise StoreError(f"{os.fspath(store)} is not a folder")
    found = {name: Path(store) / name for name in Store(store).names()}
    if not found:
        raise StoreError(f"{os.fspath(store)} holds no models")
    return found


def look(folder: Path) -> dict[str, Any]:
    """What a learner is: rows and version of its latest snapshot, calls since then, bytes, lost calls."""
    with _reading(folder) as db:
        number, notes, _ = journal.snapshots(db)[0]
        notes = notes or {"total": None, "version": None}
        calls = db.execute("SELECT count(*) FROM calls WHERE number >= ?", (number,)).fetchone()[0]
        dead = db.execute("SELECT count(*) FROM dead").fetchone()[0]
        lost = journal.count_lost(journal.losses(db))
    about = {"rows": notes["total"], "version": notes["version"], "calls": calls}
    return about | {"bytes": sum(entry.stat().st_size for entry in os.scandir(folder)), "lost": lost, "dead": dead}


def dead(folder: Path) -> Iterator[dict[str, Any]]:
    """Messages that a reader of a broker could not use."""
    with _reading(folder) as db:
        names = ("part", "at", "reason", "time", "content")
        for row in db.execute(f"SELECT {', '.join(names)} FROM dead ORDER BY rowid"):
            yield dict(zip(names, row, strict=True))


@_settled
def check(folder: Path) -> list[str]:
    """Errors in the folder of a learner, found by reading everything in it."""
    wrong, whole = [], []
    with _reading(folder) as db:
        try:
            wrong += [f"{journal.DATABASE}: {text}" for (text,) in db.execute("PRAGMA integrity_check") if text != "ok"]
            db.execute("BEGIN")  # all that follows is of one moment
            for number, notes, _ in journal.snapshots(db):
                try:
                    if notes is None:
                        raise ValueError("its notes are damaged")
                    read_state(folder, number)
                    whole.append(number)
                except FileNotFoundError:
                    raise
                except (ValueError, OSError) as error:
                    wrong.append(f"the snapshot of call {number} cannot be read: {error}")
            if not whole:
                return [*wrong, "there is no snapshot that can be read"]
            wrong += _check_calls(db, whole[0])
        except sqlite3.DatabaseError as error:
            wrong.append(f"{journal.DATABASE} cannot be read: {error}")
    return wrong


def _check_calls(db: Any, start: int) -> list[str]:
    wrong, numbers = [], []
    for number, content in journal.calls(db, start):
        numbers.append(number)
        try:
            records.unpack(content)
        except ValueError as error:
            wrong.append(f"call {number} of the journal cannot be used: {error}")
    known, last = journal.losses(db), db.execute("SELECT max(number) FROM calls").fetchone()[0]
    gaps = journal.gaps_between(start, numbers if last is None else [*numbers, last + 1])
    wrong += [f"calls {a} to {b} of the journal are lost" for a, b in gaps if (a, b) not in known]
    return [*wrong, *([journal.told(known)] if known else [])]


def backup(store: str | os.PathLike[str], target: str | os.PathLike[str]) -> list[str]:
    """Copy all learners to a new folder, each in the state of some moment during the copy; returns their names."""
    found, to = folders(store), Path(target)
    if to.exists():
        raise StoreError(f"{to} already exists: a backup needs a new folder")
    beside = to.with_name(f".{to.name}.partial")
    shutil.rmtree(beside, ignore_errors=True)
    for name, folder in found.items():
        _copy(folder, beside / name)
    os.replace(beside, to)
    return list(found)


@_settled
def _copy(folder: Path, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    shutil.copyfile(folder / journal.LOCK, to / journal.LOCK)  # first: its mark is then not ahead of the journal
    target = sqlite3.connect(to / journal.DATABASE)
    try:
        with _reading(folder) as db:
            db.backup(target)
        latest = journal.snapshots(target)[0]
        number = latest[0]
        target.execute("DELETE FROM snapshots WHERE number < ?", (number,))
        target.commit()
    finally:
        target.close()
    _, notes, _ = latest
    first = notes["retired"][0]["version"] if notes and notes["retired"] else 0
    for path in (
        folder / f"{MODEL}-{number:016d}.ks",
        *(path for at, path in numbered(folder, RIVAL) if at == number),
        *(path for version, path in numbered(folder, "version") if version >= first),
    ):
        shutil.copyfile(path, to / path.name)
        with open(to / path.name, "rb+") as file:
            os.fsync(file.fileno())


def restore(source: str | os.PathLike[str], store: str | os.PathLike[str]) -> list[str]:
    """Copy the learners of a backup into a store; none of them may exist there. Returns their names."""
    found = folders(source)
    taken = [name for name in found if (Path(store) / name).exists()]
    if taken:
        raise StoreError(f"{os.fspath(store)} already holds {few(taken)}: move that away first")
    for name, folder in found.items():
        beside = Path(store) / f".{name}.partial"
        _copy(folder, beside)
        os.replace(beside, Path(store) / name)
    return list(found)


def repair(folder: Path) -> int:
    """Recover what can be read, write a snapshot of it, acknowledge what is lost; returns how many calls that is."""
    with DurableLearner(folder) as learner:
        learner.snapshot()
        return learner.acknowledge()
