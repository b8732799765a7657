"""What a learner must not lose, in one SQLite file: its calls in their order, snapshots, losses, dead letters.

A call is in the file before it is answered (WAL, ``synchronous=FULL``), numbered, and with a checksum. SQLite drops a
transaction that was cut off when its process was killed: it was never acknowledged. What a damaged disk has lost is
known by the numbers: from gaps between them, and at the end by the mark, the number of the call to come. The mark
stands in the file ``lock``, in two places that are written in turn, after the transaction: it may be behind what was
acknowledged, never ahead of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernelstream.checks import few

from .answers import Dead, InUse, StoreError

FORMAT = 2  # of the folder; the number changes when an older version could not read it right
DATABASE, LOCK = "learner.db", "lock"
MAX_DEAD = 100_000  # dead letters that are kept
WAIT_SECONDS = 30.0  # for another process that holds the file for a moment, such as a backup
SCHEMA = (
    "CREATE TABLE calls (number INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, content BLOB NOT NULL)",
    "CREATE TABLE snapshots (number INTEGER PRIMARY KEY, time REAL NOT NULL, checksum INTEGER NOT NULL, "
    "notes TEXT NOT NULL)",
    "CREATE TABLE losses (first INTEGER, last INTEGER, found TEXT NOT NULL, acknowledged TEXT)",
    "CREATE TABLE dead (part TEXT, at, reason TEXT, time REAL, content TEXT, PRIMARY KEY (part, at))",
    f"PRAGMA user_version = {FORMAT}",
)

_MARK = struct.Struct("<QI")

Gap = tuple[int, int | None]


class LogError(OSError):
    """A call could not be written: nothing of it is in the journal."""


def flush_policy(flush: str | float) -> float | None:
    """Milliseconds between two times that the disk is forced: 0 for "each", None for "request", else the number."""
    if flush in ("each", "request"):
        return 0.0 if flush == "each" else None
    if isinstance(flush, bool) or not isinstance(flush, (int, float)) or not 0 < flush < float("inf"):
        raise ValueError(f"flush must be 'each', 'request' or a number of milliseconds above 0, got {flush!r}")
    return float(flush)


class Journal:
    """The file of one learner, for the one process that owns the folder.

    Parameters
    ----------
    folder : path
        It must exist.
    flush : "each", "request" or float
        When calls are forced to the disk: before :meth:`append` returns, when :meth:`flush` is called, or after at most
        this many milliseconds (the writer calls :meth:`flush_if_due`). In all cases they are handed to the operating
        system before :meth:`append` returns, so that a killed process loses none.

    Attributes
    ----------
    next : int
        Number of the call to come.
    commits, commit_seconds : int and float
        Transactions of calls, and how long they took in all.
    """

    def __init__(self, folder: Path, flush: str | float = "each"):
        self.path, self.every = folder / DATABASE, flush_policy(flush)
        self.next, self.commits, self.commit_seconds = 0, 0, 0.0
        self._unforced_since: float | None = None
        self._place = 0  # in the mark
        self._lock = _own(folder)
        self.db: Any = None
        try:
            self.db = _connected(self.path)
            self.db.execute("PRAGMA journal_mode = WAL")
            self.db.execute(f"PRAGMA synchronous = {'FULL' if self.every == 0.0 else 'NORMAL'}")
            if check_format(self.db, self.path) == 0:
                with self._transaction():
                    for statement in SCHEMA:
                        self.db.execute(statement)
        except sqlite3.Error as error:
            self.close()
            raise StoreError(f"{self.path} cannot be opened: {error}") from None
        except BaseException:
            self.close()
            raise

    # ---------------------------------------------------------------- calls
    def append(self, contents: Sequence[bytes], dead: Sequence[Dead] = ()) -> int:
        """Write calls, and the messages left out with them, in one transaction; returns the number of the first.

        Raises
        ------
        LogError
            None of them is in the journal, and none of their numbers is taken.
        """
        first, started = self.next, time.perf_counter()
        rows = [(number, checksum(number, content), content) for number, content in enumerate(contents, first)]
        try:
            with self._transaction():
                self.db.executemany("INSERT INTO calls VALUES (?, ?, ?)", rows)
                if dead:
                    self._bury(dead)
        except sqlite3.Error as error:
            raise LogError(None, f"the journal cannot be written: {_cause(error)}") from None
        self.next += len(rows)
        self.commits, self.commit_seconds = self.commits + 1, self.commit_seconds + time.perf_counter() - started
        if self.every != 0.0 and self._unforced_since is None:
            self._unforced_since = time.monotonic()
        with contextlib.suppress(OSError):  # a mark that is behind does no harm
            self._set_mark()
        return first

    def replace(self, number: int, content: bytes) -> None:
        """Write other content in the place of a call."""
        with contextlib.suppress(sqlite3.Error), self._transaction():
            self.db.execute("UPDATE calls SET checksum = ?, content = ? WHERE number = ?",
                             (checksum(number, content), content, number))  # fmt: skip

    def recover(self, start: int, numbers: Sequence[int]) -> None:
        """Go on after the calls that were read from ``start`` on, of these numbers; note those missing as losses."""
        last = self._one("SELECT max(number) FROM calls")
        end, mark = max(start, 0 if last is None else last + 1), self._read_mark()
        self.next = max(end, mark or 0)
        found = gaps_between(start, [*numbers, self.next])
        if mark is None and end:
            found.append((end, None))
        with self._transaction():
            for gap in found:
                if not self._one("SELECT count(*) FROM losses WHERE first = ? AND last IS ?", *gap):
                    self.db.execute("INSERT INTO losses VALUES (?, ?, ?, NULL)", (*gap, _now()))
        for _ in range(2):
            self._set_mark()

    # ---------------------------------------------------------------- snapshots, losses, dead letters
    def index(self, number: int, notes: dict[str, Any], keep: int) -> int:
        """Note a snapshot that was written; calls before the ``keep`` latest ones go. Returns the oldest that stays."""
        text = json.dumps(notes)
        with self._transaction():
            self.db.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)",
                             (number, time.time(), checksum(number, text.encode()), text))  # fmt: skip
            kept = self.db.execute("SELECT number FROM snapshots ORDER BY number DESC LIMIT ?", (keep,)).fetchall()
            self.db.execute("DELETE FROM snapshots WHERE number < ?", kept[-1])
            self.db.execute("DELETE FROM calls WHERE number < ?", kept[-1])
        if self.every != 0.0:  # what the older snapshots need is removed next
            self._unforced_since = self._unforced_since or time.monotonic()
            self.flush()
        return int(kept[-1][0])

    def acknowledge(self) -> int:
        """Mark all losses as seen by an operator; returns how many calls they are."""
        number = count_lost(losses(self.db))
        with self._transaction():
            self.db.execute("UPDATE losses SET acknowledged = ? WHERE acknowledged IS NULL", (_now(),))
        return number

    def _bury(self, dead: Sequence[Dead]) -> None:
        now = time.time()
        rows = [(one.part, one.at, one.reason, now, one.content.decode(errors="backslashreplace")) for one in dead]
        self.db.executemany("INSERT OR IGNORE INTO dead VALUES (?, ?, ?, ?, ?)", rows)
        self.db.execute("DELETE FROM dead WHERE rowid <= (SELECT max(rowid) FROM dead) - ?", (MAX_DEAD,))

    # ---------------------------------------------------------------- the disk
    def size(self) -> int:
        """Bytes of the file and of its log."""
        paths = (self.path, self.path.with_name(DATABASE + "-wal"))
        return sum(path.stat().st_size for path in paths if path.exists())

    def flush(self) -> None:
        """Force to the disk what has been appended."""
        if self._unforced_since is not None:
            self.db.execute("PRAGMA wal_checkpoint(FULL)")
            self._unforced_since = None

    def due(self) -> float | None:
        """Seconds until :meth:`flush_if_due` has something to do; None if nothing is waiting."""
        if self._unforced_since is None or self.every is None:
            return None
        return max(0.0, self._unforced_since + self.every / 1000 - time.monotonic())

    def flush_if_due(self) -> None:
        """Force to the disk what has waited as long as the policy allows."""
        if self.due() == 0.0:
            self.flush()

    def close(self) -> None:
        """Force everything to the disk, and let go of the folder."""
        if self.db is not None:
            self.db.close()
            self.db = None
        self._lock.close()

    # ---------------------------------------------------------------- pieces
    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                self.db.execute("ROLLBACK")
            raise

    def _one(self, statement: str, *values: Any) -> Any:
        return self.db.execute(statement, values).fetchone()[0]

    def _set_mark(self) -> None:
        self._lock.seek(self._place)
        self._lock.write(_MARK.pack(self.next, zlib.crc32(b"%d" % self.next)))
        self._place = _MARK.size - self._place

    def _read_mark(self) -> int | None:
        self._lock.seek(0)
        content = self._lock.read(2 * _MARK.size)
        places = _MARK.iter_unpack(content[: len(content) // _MARK.size * _MARK.size])
        marks = [(number, i) for i, (number, check) in enumerate(places) if check == zlib.crc32(b"%d" % number)]
        if not marks:
            return None
        number, newest = max(marks)
        self._place = 0 if newest else _MARK.size  # a kill while the other one is written leaves this one
        return number


# -------------------------------------------------------------------- reading, also while another process writes
def opened(path: Path) -> Any:
    """A connection for reading; StoreError where there is no such file, or one of another format.

    Where a kill has left a transaction half written, it is rolled back first, which is to write.
    """
    try:
        for mode in ("ro", "rw"):
            db = _connected(path.resolve(strict=True), f"?mode={mode}")
            try:
                check_format(db, path)
                return db
            except BaseException as error:
                db.close()
                if mode == "rw" or not getattr(error, "sqlite_errorname", "").startswith("SQLITE_READONLY"):
                    raise
    except (FileNotFoundError, sqlite3.Error) as error:
        raise StoreError(f"{path} cannot be opened: {error}") from None


def check_format(db: Any, path: Path) -> int:
    """The format of a file, 0 of a new one; StoreError where it is not that of this version."""
    found = int(db.execute("PRAGMA user_version").fetchone()[0])
    if found not in (0, FORMAT):
        raise StoreError(f"{path} has format {found}, but this version of kernelstream reads format {FORMAT}")
    return found


def calls(db: Any, start: int) -> Iterator[tuple[int, bytes]]:
    """Numbers and contents of the calls from a number on; where the file is damaged, of those that can be read."""
    reached = start
    try:
        for number, check, content in db.execute("SELECT * FROM calls WHERE number >= ? ORDER BY number", (start,)):
            reached = number + 1
            if check == checksum(number, content):
                yield number, content
    except sqlite3.DatabaseError:  # look for each of the others by its number
        last = next(_tolerant(db, "SELECT max(number) FROM calls", ()), (None,))[0]
        for number in range(reached, reached if last is None else last + 1):
            for check, content in _tolerant(db, "SELECT checksum, content FROM calls WHERE number = ?", (number,)):
                if check == checksum(number, content):
                    yield number, content


def snapshots(db: Any) -> list[tuple[int, dict[str, Any] | None, float]]:
    """Numbers, notes (None where they are damaged) and times of the snapshots, the latest first."""
    rows = db.execute("SELECT number, checksum, notes, time FROM snapshots ORDER BY number DESC").fetchall()
    return [(number, json.loads(notes) if check == checksum(number, notes.encode()) else None, at)
            for number, check, notes, at in rows]  # fmt: skip


def losses(db: Any) -> list[Gap]:
    """Losses that no operator has acknowledged yet."""
    found: list[Gap] = db.execute("SELECT first, last FROM losses WHERE acknowledged IS NULL").fetchall()
    return found


def count_lost(gaps: Sequence[Gap]) -> int:
    """How many calls some gaps are, at least."""
    return sum(1 if last is None else last - first + 1 for first, last in gaps)


def told(gaps: Sequence[Gap]) -> str:
    """What some gaps mean to an operator."""
    said = [f"calls {a} to {b}" if b is not None else f"an unknown number of calls from {a} on" for a, b in gaps]
    return f"the journal is damaged: {few(said)} cannot be read, and what they held is lost; all others were used"


def gaps_between(start: int, numbers: Sequence[int]) -> list[Gap]:
    """The numbers that are missing between ``start`` and the last of some numbers in order."""
    before = [start - 1, *numbers]
    return [(a + 1, b - 1) for a, b in zip(before, numbers) if b > a + 1]


def checksum(number: int, content: bytes) -> int:
    """The checksum of a call or of notes; those of another number do not have it."""
    return zlib.crc32(content, number & 0xFFFFFFFF)


def _tolerant(db: Any, statement: str, values: tuple[Any, ...]) -> Iterator[Any]:
    with contextlib.suppress(sqlite3.DatabaseError):
        yield from db.execute(statement, values)


def _connected(path: Path, how: str = "") -> Any:
    address = path.absolute().as_uri() + how
    return sqlite3.connect(address, WAIT_SECONDS, isolation_level=None, check_same_thread=False, uri=True)


def _own(folder: Path) -> Any:
    """The open file whose lock says that this process owns the folder."""
    file = os.fdopen(os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # this system has no such locks
        pass
    except OSError:
        file.close()
        raise InUse(f"{folder} is in use by another process (or another learner of this one)") from None
    return file


def _cause(error: sqlite3.Error) -> str:
    full = "No space left on device" if error.sqlite_errorname == "SQLITE_FULL" else None
    return full or str(error)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
