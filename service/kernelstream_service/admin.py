"""What an operator does with the folder of a store: look at it, check it, back it up, restore it, repair it.

Only :func:`repair` and :func:`restore` write to the store. The others read it while a server is using it: files are
only added and removed as a whole, or appended to, so that a mark, then a snapshot, then the log read in this order
belong together as long as the snapshot exists: it is removed before its part of the log. If newer ones have replaced
it, they start again.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from kernelstream import model_io
from kernelstream.checks import few
from kernelstream.files import numbered

from . import records
from .answers import StoreError
from .consume import DEAD_FILE, FORMER_DEAD_FILE
from .learner import DurableLearner
from .log import MARK_FILE, Log
from .losses import LOST_FILE, Losses
from .snapshots import FORMAT_FILE, check_format
from .store import KEY, Store, key_of

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


def folders(store: str | os.PathLike[str]) -> dict[str, Path]:
    """Folders of the learners of a store, by name; StoreError where there are none."""
    if not Path(store).is_dir():
        raise StoreError(f"{os.fspath(store)} is not a folder")
    found = {name: Path(store) / name for name in Store(store).names()}
    if not found:
        raise StoreError(f"{os.fspath(store)} holds no models")
    return found


@_settled
def look(folder: Path) -> dict[str, Any]:
    """What a learner is: key, rows and version of its latest snapshot, calls since then, bytes, lost calls."""
    about: dict[str, Any] = {"key": key_of(folder)}
    number, path = numbered(folder, "snapshot")[-1]
    live = model_io.describe(path)["notes"]["live"]
    about |= {"rows": live["total"], "version": live["version"], "calls": sum(1 for _ in Log(folder).read(number))}
    about |= {"bytes": sum(entry.stat().st_size for entry in os.scandir(folder)), "lost": Losses(folder).calls}
    path.stat()  # raises an error if it is gone
    dead = folder / DEAD_FILE
    return about | {"dead": sum(1 for _ in open(dead, "rb")) if dead.exists() else 0}


@_settled
def check(folder: Path) -> list[str]:
    """Errors in the folder of a learner, found by reading everything in it."""
    check_format(folder)
    wrong, whole, log = [], [], Log(folder)
    for number, path in numbered(folder, "snapshot"):
        try:
            model_io.read(path)
            whole.append((number, path))
        except FileNotFoundError:
            raise
        except (ValueError, OSError) as error:
            wrong.append(f"{path.name} cannot be read: {error}")
    if not whole:
        return [*wrong, "there is no snapshot that can be read"]
    start, latest = whole[-1]
    for number, payload in log.read(start):
        try:
            records.unpack(payload)
        except ValueError as error:
            wrong.append(f"record {number} of the log cannot be used: {error}")
    latest.stat()  # raises an error if it is gone
    losses = Losses(folder)
    known = {(entry["first"], entry["last"]) for entry in losses.entries}
    wrong += [f"records {a} to {b} of the log are lost" for a, b in log.lost if (a, b) not in known]
    if log.marked is None:
        wrong.append("the mark cannot be read: whether the log is complete is not known")
    return [*wrong, *([str(losses)] if losses.open else [])]


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
    for name in (FORMAT_FILE, MARK_FILE, KEY, LOST_FILE, DEAD_FILE, FORMER_DEAD_FILE):
        if (folder / name).exists():
            _copy_file(folder / name, to)
    number, latest = numbered(folder, "snapshot")[-1]
    rival = folder / f"challenger-{number:016d}.ks"
    for path in (latest, *([rival] if rival.exists() else [])):
        _copy_file(path, to)
    files = Log(folder).files()
    for i, (_, path) in enumerate(files):
        if i + 1 == len(files) or files[i + 1][0] > number:
            _copy_file(path, to)
    for _, path in numbered(folder, "version"):
        _copy_file(path, to)
    latest.stat()  # raises an error if it is gone


def _copy_file(path: Path, folder: Path) -> None:
    shutil.copyfile(path, folder / path.name)
    with open(folder / path.name, "rb+") as file:
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
