"""An append-only log: numbered records with length and checksum, in files that are never rewritten.

A file ``log-FIRST.bin`` starts with eight bytes that say what it is and the number of its first record; then come the
records::

    length (4 bytes)  CRC-32 (4)  number (8)  payload (length)        little endian; the checksum covers the other three

What is read back is what was appended. A record that was cut off when its process was killed, at the end of a file, was
never acknowledged: it is removed. Where bytes inside a file are damaged, the records after them are found again by
their numbers, and the ones in between are named in :attr:`Log.lost`.

A file ``mark`` holds the number of the record to come and its checksum, in two places that are written in turn. It is
brought up to date after the records are where the policy wants them, and not forced to the disk by itself: it may be
behind what was acknowledged, never ahead of it, so that records it knows and the files do not have are lost.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelstream.files import discard, numbered, sync_folder

MAGIC = b"KSLOG\x00\x01\n"
MARK_FILE = "mark"
MAX_RECORD_BYTES = 1 << 30  # bytes of a record
FILE_BYTES = 64 << 20  # a file that is larger is followed by another

_START = struct.Struct("<8sQ")
_HEAD = struct.Struct("<IIQ")
_MARK = struct.Struct("<QI")
_BINARY = getattr(os, "O_BINARY", 0)
_SEARCH = 4096  # how many records after a damaged one are searched for


class LogError(OSError):
    """A record could not be written: nothing of it is in the log."""


def flush_policy(flush: str | float) -> float | None:
    """Milliseconds between two calls of fsync: 0 for "each", None for "request", else the number given."""
    if flush in ("each", "request"):
        return 0.0 if flush == "each" else None
    if isinstance(flush, bool) or not isinstance(flush, (int, float)) or not 0 < flush < float("inf"):
        raise ValueError(f"flush must be 'each', 'request' or a number of milliseconds above 0, got {flush!r}")
    return float(flush)


class Log:
    """Records in a folder.

    Read everything first (:meth:`read`), then :meth:`open` the log for what comes.

    Parameters
    ----------
    folder : path
        It must exist. The caller ensures that one process uses it at a time.
    flush : "each", "request" or float
        When records are forced to the disk (fsync): before :meth:`append` returns, after at most this many milliseconds
        (the writer calls :meth:`flush_if_due`), or when :meth:`flush` is called. In all cases they are handed to the
        operating system before :meth:`append` returns, so that a killed process loses none.

    Attributes
    ----------
    next : int
        Number of the record to come.
    lost : list of (first, last)
        Numbers of records that were there and cannot be read.
    marked : int or None
        Number of the record to come by the mark; None where there is no mark that can be read.
    torn : int
        Bytes of records cut off at the end of a file.
    syncs, sync_seconds : int and float
        How often something was forced to the disk, and how long that took in all.
    """

    def __init__(self, folder: str | os.PathLike[str], flush: str | float = "each"):
        self.folder, self.every = Path(folder), flush_policy(flush)
        self.next = 0
        self.lost: list[tuple[int, int]] = []
        self.torn = 0
        self.marked: int | None = None
        self._file: int | None = None
        self._mark: int | None = None
        self._place = 0  # in the mark
        self._size = 0
        self._unsynced_since: float | None = None
        self.syncs, self.sync_seconds = 0, 0.0

    # ---------------------------------------------------------------- reading
    def files(self) -> list[tuple[int, Path]]:
        """Number of the first record, and path, of every file, in order."""
        return numbered(self.folder, "log", ".bin")

    def size(self) -> int:
        """Bytes of all files."""
        found = 0
        for _, path in self.files():
            with contextlib.suppress(FileNotFoundError):  # it has just been dropped
                found += path.stat().st_size
        return found

    def read(self, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """Numbers and payloads of all records from number ``start`` on, while another process may be appending."""
        self.marked = self._read_mark()  # before the files: what comes while they are read must not count as lost
        files = self.files()
        self.lost, self.torn = [], 0
        expected = start
        for i, (first, path) in enumerate(files):
            limit = files[i + 1][0] if i + 1 < len(files) else None
            if limit is not None and limit <= start:
                continue
            if first > expected:
                self.lost.append((expected, first - 1))
                expected = first
            for number, payload in self._records(path, first, limit):
                if number < start:
                    continue
                if number > expected:
                    self.lost.append((expected, number - 1))
                yield number, payload
                expected = number + 1
        self.next = max(expected, start)
        if self.marked is not None and self.marked > self.next:
            self.lost.append((self.next, self.marked - 1))
            self.next = self.marked

    def _read_mark(self) -> int | None:
        try:
            content = (self.folder / MARK_FILE).read_bytes()
        except OSError:
            return None
        places = _MARK.iter_unpack(content[: len(content) // _MARK.size * _MARK.size])
        marks = [(number, i) for i, (number, checksum) in enumerate(places) if checksum == zlib.crc32(b"%d" % number)]
        if not marks:
            return None
        number, newest = max(marks)
        self._place = 0 if newest else _MARK.size  # a kill while the other one is written leaves this one
        return number

    def _records(self, path: Path, first: int, limit: int | None) -> Iterator[tuple[int, bytes]]:
        """Records of a file, up to the number with which the next file begins."""
        content = path.read_bytes()
        if content[: _START.size] != _START.pack(MAGIC, first):
            self.torn += len(content)
            if len(content) >= _START.size:  # the beginning is damaged; the records after it may be whole
                yield from self._behind(content, 0, first - 1, limit)
            return
        yield from self._run(content, _START.size, first, limit)

    def _run(self, content: bytes, at: int, number: int, limit: int | None) -> Iterator[tuple[int, bytes]]:
        while at < len(content) and (limit is None or number < limit):
            payload = _record(content, at, number)
            if payload is None:
                yield from self._behind(content, at, number, limit)
                return
            yield number, payload
            at += _HEAD.size + len(payload)
            number += 1

    def _behind(self, content: bytes, at: int, number: int, limit: int | None) -> Iterator[tuple[int, bytes]]:
        """Records after a place that cannot be read."""
        last = number + _SEARCH if limit is None else min(number + _SEARCH, limit - 1)
        for later in range(number + 1, last + 1):
            place = content.find(later.to_bytes(8, "little"), at)
            while place >= 0:
                head = place - 8
                if head >= at and _record(content, head, later) is not None:
                    yield from self._run(content, head, later, limit)
                    return
                place = content.find(later.to_bytes(8, "little"), place + 1)
        self.torn += len(content) - at

    # ---------------------------------------------------------------- writing
    def open(self) -> None:
        """Prepare to append after everything that was read: to a new file, or to the last one if it is undamaged."""
        self._open_file()
        self._mark = os.open(self.folder / MARK_FILE, os.O_RDWR | os.O_CREAT | _BINARY, 0o666)
        for _ in range(2):
            self._set_mark()
        self._sync(self._mark)
        sync_folder(self.folder)

    def _open_file(self) -> None:
        files = self.files()
        if files and not self.torn and not self.lost:
            first, path = files[-1]
            file = os.open(path, os.O_RDWR | _BINARY)
            try:
                size = os.fstat(file).st_size
                if first <= self.next and size < FILE_BYTES and os.read(file, _START.size) == _START.pack(MAGIC, first):
                    self._file, self._size, file = file, size, -1
                    return
            finally:
                if file >= 0:
                    os.close(file)
        self.roll()

    def roll(self) -> None:
        """Start a new file; the current one is forced to the disk."""
        self._leave()
        path = self.folder / f"log-{self.next:016d}.bin"
        # A file of this name holds no whole record from the number on: such records would have been read.
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | _BINARY, 0o666)
        try:
            self._write(file, _START.pack(MAGIC, self.next), 0)
            self._sync(file)
            sync_folder(self.folder)
        except OSError:
            os.close(file)
            discard([path])
            raise
        self._file, self._size, self._unsynced_since = file, _START.size, None

    def append(self, payloads: Sequence[bytes]) -> int:
        """Write records at once, forced to the disk if the policy says "each"; returns the number of the first.

        Raises
        ------
        LogError
            None of them is in the log, and none of their numbers is taken.
        """
        try:
            if self._file is None or self._size > FILE_BYTES:
                self.roll()
            content = b"".join(_packed(payload, self.next + i) for i, payload in enumerate(payloads))
            assert self._file is not None
            self._write(self._file, content, self._size)
            if self.every == 0.0:
                self._sync(self._file)
        except OSError as error:
            self._take_back()
            raise LogError(error.errno, f"the log cannot be written: {error.strerror or error}") from error
        self._size += len(content)
        if self.every != 0.0 and self._unsynced_since is None:
            self._unsynced_since = time.monotonic()
        first, self.next = self.next, self.next + len(payloads)
        with contextlib.suppress(OSError):  # a mark that is behind does no harm
            self._set_mark()
        return first

    def flush(self) -> None:
        """Force to the disk what has been appended."""
        if self._file is not None and self._unsynced_since is not None:
            self._sync(self._file)
            self._unsynced_since = None

    def due(self) -> float | None:
        """Seconds until :meth:`flush_if_due` has something to do; None if nothing is waiting."""
        if self._unsynced_since is None or self.every is None:
            return None
        return max(0.0, self._unsynced_since + self.every / 1000 - time.monotonic())

    def flush_if_due(self) -> None:
        """Force to the disk what has waited as long as the policy allows."""
        if self.due() == 0.0:
            self.flush()

    def drop(self, before: int) -> None:
        """Remove files whose records all come before a number."""
        discard(path for (_, path), (following, _) in itertools.pairwise(self.files()) if following <= before)

    def close(self) -> None:
        """Force everything to the disk and close the files."""
        self._leave()
        if self._mark is not None:
            os.close(self._mark)
            self._mark = None

    # ---------------------------------------------------------------- pieces
    def _set_mark(self) -> None:
        assert self._mark is not None
        self._write(self._mark, _MARK.pack(self.next, zlib.crc32(b"%d" % self.next)), self._place)
        self._place = _MARK.size - self._place

    def _leave(self) -> None:
        if self._file is not None:
            try:
                self.flush()
            finally:
                os.close(self._file)
                self._file = None

    def _take_back(self) -> None:
        """Remove what a failed record has written; if that fails, too, the next record starts a new file."""
        if self._file is None:
            return
        try:
            os.ftruncate(self._file, self._size)
        except OSError:
            os.close(self._file)
            self._file = None

    @staticmethod
    def _write(file: int, content: bytes, at: int) -> None:
        view = memoryview(content)
        os.lseek(file, at, os.SEEK_SET)
        while view:
            view = view[os.write(file, view) :]

    def _sync(self, file: int) -> None:
        started = time.perf_counter()
        getattr(os, "fdatasync", os.fsync)(file)
        self.syncs += 1
        self.sync_seconds += time.perf_counter() - started


def _packed(payload: bytes, number: int) -> bytes:
    if len(payload) > MAX_RECORD_BYTES:
        raise ValueError(f"a record of {len(payload):,} bytes is too large for the log")
    return _HEAD.pack(len(payload), _checksum(payload, number), number) + payload


def _record(content: bytes, at: int, number: int) -> bytes | None:
    """Payload of the record at a place, or None if there is no complete one of this number."""
    if at + _HEAD.size > len(content):
        return None
    length, checksum, found = _HEAD.unpack_from(content, at)
    start = at + _HEAD.size
    if found != number or length > MAX_RECORD_BYTES or start + length > len(content):
        return None
    payload = content[start : start + length]
    return payload if _checksum(payload, number) == checksum else None


def _checksum(payload: bytes, number: int) -> int:
    return zlib.crc32(payload, zlib.crc32(struct.pack("<IQ", len(payload), number)))
