"""Files that are replaced in one step: whatever happens, a reader finds the old content or the new one, complete."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ABANDONED_SECONDS = 24 * 3600  # seconds after which no process is still writing

_MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
_OURS = re.compile(r"\.kernelstream-([0-9a-f]{8})-(\d+)-[0-9a-f]{16}\.tmp\Z")
_STANDARD = {"stdin": 0, "stdout": 1, "stderr": 2}
_NUMBERED = re.compile(r"/(?:dev|proc/(?:self|\d+))/fd/(\d+)\Z")


def write_atomic(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file in one step.

    A new file gets the permissions that the umask leaves, an existing one keeps its own. A symbolic link stays, and
    what it points to is replaced; pipes and devices (``/dev/stdout``, ``/dev/null``) are written to.
    """
    path = os.fspath(path)
    if not _written_directly(path, content):
        target = os.path.realpath(path)
        try:
            _replace(target, content)
        except OSError as error:  # name the file that was asked for, not the temporary one beside it
            raise type(error)(error.errno, error.strerror or str(error), path) from None
        sweep(os.path.dirname(target))


def descriptor(path: str | os.PathLike[str]) -> int | None:
    """Number of the open file that a name such as ``/dev/stdout`` or ``/dev/fd/3`` stands for, else None."""
    name = os.path.normpath(os.fspath(path))
    folder, _, last = name.rpartition("/")
    if folder == "/dev" and last in _STANDARD:
        return _STANDARD[last]
    numbered = _NUMBERED.fullmatch(name)
    if numbered is None or (name.startswith("/proc/") and name.split("/")[2] not in ("self", str(os.getpid()))):
        return None
    return int(numbered[1])


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether a path must be written to rather than replaced: a pipe, a device, an open file."""
    if descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def numbered(folder: str | os.PathLike[str], stem: str, ending: str = ".ks") -> list[tuple[int, Path]]:
    """Numbers and paths of the files STEM-NUMBER.ENDING in a folder, in the order of the numbers."""
    name = re.compile(rf"{stem}-(\d+){re.escape(ending)}\Z")
    return sorted((int(match[1]), path) for path in Path(folder).iterdir() if (match := name.match(path.name)))


def discard(paths: Iterable[Path]) -> None:
    """Remove files, as far as that is possible."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


def sweep(folder: str | os.PathLike[str]) -> None:
    """Remove half-written files of processes that no longer exist, or from more than a day ago."""
    with contextlib.suppress(OSError), os.scandir(os.fspath(folder)) as entries:
        discard(Path(entry.path) for entry in entries if _abandoned(entry))


def _written_directly(path: str, content: bytes) -> bool:
    """Write directly to a path that cannot be replaced; False if it can."""
    number = descriptor(path)
    if number is not None:  # the open file itself: its offset is shared with other writers
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError, ValueError, OSError):
                stream.flush()
        with os.fdopen(os.dup(number), "wb") as file:
            file.write(content)
        return True
    if not is_special(path):
        return False
    with open(path, "wb") as file:
        file.write(content)
    return True


def _replace(path: str, content: bytes) -> None:
    folder = os.path.dirname(path)
    try:
        before = os.stat(path)
        mode = stat.S_IMODE(before.st_mode)
    except FileNotFoundError:
        before, mode = None, 0o666
    if before is not None and stat.S_ISDIR(before.st_mode):
        raise IsADirectoryError(21, "Is a directory", path)
    name = f".kernelstream-{_MACHINE}-{os.getpid()}-{secrets.token_hex(8)}.tmp"
    temporary = os.path.join(folder, name)
    try:
        with open(temporary, "xb", opener=lambda path, flags: os.open(path, flags, mode & 0o777)) as file:
            number = file.fileno()
            if before is not None and hasattr(os, "fchown"):
                with contextlib.suppress(OSError):
                    os.fchown(number, before.st_uid, before.st_gid)
                with contextlib.suppress(OSError):
                    os.fchmod(number, mode)
            file.write(content)
            file.flush()
            os.fsync(number)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(folder)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Force the names in a folder to the disk, where folders can be synced: a rename must survive a power cut too."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _abandoned(entry: os.DirEntry[str]) -> bool:
    """Whether a file is one of ours that will never be finished."""
    ours = _OURS.fullmatch(entry.name)
    if not ours:
        return False
    if ours[1] == _MACHINE and not _alive(int(ours[2])):
        return True
    try:
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > ABANDONED_SECONDS
    except OSError:
        return False


def _alive(pid: int) -> bool:
    """Whether a process with this number may exist."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    return True


def npy_header(file: Any) -> tuple[tuple[int, ...], bool, Any]:
    """Shape, whether stored by columns, and type of an array in numpy's format; the file is then at its numbers."""
    from numpy.lib import format as formats  # needed only here

    version = formats.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"unsupported version {version} of numpy's array format")
    return (formats.read_array_header_1_0 if version == (1, 0) else formats.read_array_header_2_0)(file)
