"""Bytes of files and pipes, packed or not, and the lines in them."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import stat
import sys
import zipfile
import zlib
from typing import Any

from ..checks import few
from ..extras import needs
from . import formats

CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 28  # no line of a table is that long

_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zX": "xz", b"PK\x03\x04": "zip"}
RELATION = b"@relation"  # how an ARFF file begins
SUFFIXES = (".gz", ".bz2", ".zst", ".xz", ".zip")  # of names of packed files


def name_of(source: Any) -> str:
    """A name for messages."""
    if source == "-":
        return "standard input"
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    if isinstance(source, LineBuffer):
        return source.bytes.name
    return str(getattr(source, "name", None) or type(source).__name__)


def is_pipe(source: Any) -> bool:
    """Whether a source can be read only once: standard input, or a path to a pipe, a socket or a terminal."""
    if not isinstance(source, (str, os.PathLike)):
        return False
    try:
        return source == "-" or not stat.S_ISREG(os.stat(source).st_mode)
    except OSError:  # opening it will raise the error
        return False


class Bytes:
    """The content of a path, of ``"-"`` (standard input) or of a binary file object; packed content is unpacked.

    How it is packed (gzip, bzip2, xz, zstd, or as the only file of a zip archive) is inferred from its first bytes, not
    from its name. What is named ``.arff`` or begins with ``@relation`` is read as a CSV. A text in another ``encoding``
    is read as one in UTF-8.
    """

    def __init__(self, source: Any, encoding: str | None = None):
        self.name, self.encoding = name_of(source), _codec(encoding)
        self.own = isinstance(source, (str, os.PathLike)) and source != "-"
        if self.own:
            self.raw: Any = open(source, "rb")  # noqa: SIM115 (closed by close)
            self.size: int | None = os.fstat(self.raw.fileno()).st_size or None  # a pipe or device has none
        else:
            self.raw = sys.stdin.buffer if source == "-" else source
            self.size = None
        if self.size is None:  # a pipe may give a byte at a time, and `peek` of its buffer would not wait for the next
            self.raw = _Peekable(io.BufferedReader(self.raw) if isinstance(self.raw, io.RawIOBase) else self.raw)
        magic = self.raw.peek(4)[:4]
        self.packing = next((kind for start, kind in _PACKED.items() if magic.startswith(start)), None)
        if self.packing == "zip" and not self._is_archive():
            self.packing = None
        stem = next((self.name[: -len(end)] for end in SUFFIXES if self.name.lower().endswith(end)), self.name).lower()
        self.arff = stem.endswith(".arff") or (
            magic[:1] == b"@" and self.raw.peek(len(RELATION))[: len(RELATION)].lower() == RELATION
        )
        self._open()

    def _is_archive(self) -> bool:
        """Whether a zip archive holds a text rather than arrays (npz); not in a pipe, since its index is at the end."""
        if self.size is None:
            return False
        try:
            with zipfile.ZipFile(self.raw) as archive:
                members = _members(archive)
                names = [item.filename for item in members]
                if any(name.endswith(".npy") for name in names):
                    self.raw.seek(0)
                    return False
                if len(members) != 1:
                    raise ValueError(f"it holds {len(members)} files ({few(names)}) instead of one table")
                archive.open(members[0]).close()
        except (ValueError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # damaged, or a password
            self.close()
            raise ValueError(f"{self.name}: the zip archive cannot be read: {error}") from None
        self.raw.seek(0)
        return True

    def _open(self) -> None:
        """Open the content, unpacked, from its start."""
        self.file = _unpacked(self.raw, self.packing)
        self.file = self.file if self.encoding is None else _AsUTF8(self.file, self.encoding)
        self.file = formats.reader(formats.ARFF)(self.file, self.name) if self.arff else self.file
        self.offset = 0

    def read(self, n: int) -> bytes:
        """Up to n bytes; none at the end."""
        try:
            data = self.file.read(n)
        except UnicodeError as error:
            raise ValueError(f"{self.name} is not a text in {self.encoding}: {error}") from None
        except Exception as error:  # every packing has its own classes of errors
            if self.packing is None:
                raise
            raise ValueError(f"{self.name}: the {self.packing} file is truncated or damaged: {error}") from None
        self.offset += len(data)
        return data

    def skip_to(self, offset: int) -> None:
        """Go to an offset of the unpacked content; except in a plain file, by reading up to it."""
        if self.own and self.size is not None and not (self.packing or self.arff or self.encoding):
            if offset > self.size:
                raise ValueError(
                    f"{self.name} has {self.size} bytes, fewer than the position to resume from ({offset})"
                )
            self.file.seek(offset)
            self.offset = offset
            return
        if offset < self.offset:
            if self.size is None:
                raise ValueError(f"{self.name} cannot be read again from an earlier position")
            self.raw.seek(0)
            self._open()
        while self.offset < offset:
            if not self.read(min(CHUNK_BYTES, offset - self.offset)):
                raise ValueError(
                    f"{self.name} ends before the position to resume from ({self.offset} < {offset} bytes)"
                )

    @property
    def fraction(self) -> float | None:
        """Share of a file that was read, packed bytes for a packed one."""
        if not self.size:
            return None
        return min(1.0, (self.raw.tell() if self.packing or self.arff or self.encoding else self.offset) / self.size)

    def close(self) -> None:
        if self.own:
            self.raw.close()


def _members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Files of an archive, without those that macOS adds."""
    return [item for item in archive.infolist() if not (item.is_dir() or item.filename.startswith("__MACOSX/"))]


def _codec(encoding: str | None) -> str | None:
    """The name of an encoding; None for UTF-8, which is read as it is."""
    try:
        name = "utf-8" if encoding is None else codecs.lookup(encoding).name
        "".encode(name)  # not all codecs are of texts
    except LookupError:
        raise ValueError(f"encoding {encoding!r} is not known: give one such as latin-1, cp1252 or utf-16") from None
    return None if name in ("utf-8", "utf-8-sig", "ascii") else name


class _AsUTF8:
    """A text in another encoding as one in UTF-8."""

    def __init__(self, file: Any, encoding: str):
        self.file, self.decoder, self.held = file, codecs.getincrementaldecoder(encoding)(), b""

    def read(self, n: int = -1) -> bytes:
        """Up to n bytes, or the rest; none at the end."""
        while not self.held and (data := self.file.read(n)):
            self.held = self.decoder.decode(data).encode()
        self.held = self.held or self.decoder.decode(b"", True).encode()
        taken, self.held = (self.held, b"") if n < 0 else (self.held[:n], self.held[n:])
        return taken


def decoded(content: bytes) -> str:
    """A piece of a text in UTF-8; ValueError that says what to do about any other."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        found = content[max(0, error.start - 12) : error.start + 12].decode("latin-1")
        raise ValueError(
            f"this is not UTF-8 (in Latin-1 it is {found!r}): set encoding= (--encoding in the shell) to that of the "
            f"file, often latin-1 or cp1252"
        ) from None


class _Peekable:
    """A binary file object with ``peek``, however few bytes it gives at a time."""

    def __init__(self, file: Any):
        self.file, self.held = file, b""

    def peek(self, n: int) -> bytes:
        while len(self.held) < n and (more := self.file.read(n - len(self.held))):
            self.held += more
        return self.held

    def read(self, n: int = -1) -> bytes:
        """Up to n bytes, fewer where the next ones have not been written yet; none at the end."""
        if not self.held:
            return self.file.read1(n) if n > 0 and hasattr(self.file, "read1") else self.file.read(n)
        taken, self.held = (self.held, b"") if n < 0 else (self.held[:n], self.held[n:])
        return taken + (self.file.read() if n < 0 else b"")

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.file.close()


def _unpacked(raw: Any, packing: str | None) -> Any:
    if packing == "gzip":
        return gzip.GzipFile(fileobj=raw, mode="rb")
    if packing == "bzip2":
        return bz2.BZ2File(raw, "rb")
    if packing == "xz":
        return lzma.LZMAFile(raw, "rb")
    if packing == "zip":
        archive = zipfile.ZipFile(raw)
        return archive.open(_members(archive)[0])
    if packing == "zstd":
        try:
            from compression import zstd  # Python 3.14

            return zstd.ZstdFile(raw, "rb")
        except ImportError:
            pass
        with needs("zstd"):
            import zstandard
        return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=False)
    return raw


class LineBuffer:
    """The lines of a source, in a buffer that parsers work on directly.

    Attributes
    ----------
    buffer : bytes
        Content from ``start`` on has not been used yet; after :meth:`fill` it ends with a newline or a partial line.
    line : int
        Lines used so far.

    A position has a checksum (CRC-32) of all content before it, so that a run that resumes from it can tell whether
    the source is still the same.
    """

    def __init__(self, source: Any, chunk: int = CHUNK_BYTES, encoding: str | None = None):
        self.source, self.bytes = source, Bytes(source, encoding)
        self.buffer, self.start, self.line, self.chunk = b"", 0, 0, chunk
        self._before, self._summed = 0, (0, 0)  # checksum of what was before the buffer; a place in it, and that there
        self.ended = False
        self.added = 0  # 1 when the buffer ends with a newline that the source lacks

    @property
    def offset(self) -> int:
        """Where the unused content starts, in the unpacked source."""
        return self.bytes.offset - max(len(self.buffer) - self.start - self.added, 0)

    def fill(self, least: int = 0) -> bool:
        """Read until there is an unused, complete line and ``least`` bytes; False at the end of the source."""
        line, size = self.buffer.find(b"\n", self.start) >= 0, len(self.buffer) - self.start
        if line and size >= least:
            return True
        parts = [self.buffer[self.start :]]
        while not self.ended and not (line and size >= least):
            more = self.bytes.read(self.chunk)
            self.ended = not more
            parts.append(more)
            size += len(more)
            line = line or b"\n" in more
            if not line and size > MAX_LINE_BYTES:
                raise ValueError(
                    f"{self.bytes.name}, line {self.line + 1}: longer than {MAX_LINE_BYTES >> 20} MiB: not a text file"
                )
        self._begin(b"".join(parts), self._checksum())
        if self.ended and self.buffer and not self.buffer.endswith(b"\n"):
            self.buffer += b"\n"
            self.added = 1
        return bool(self.buffer)

    def use(self, consumed: int, lines: int) -> None:
        """Mark bytes and lines as used."""
        self.start += consumed
        self.line += lines

    def readline(self) -> bytes:
        """The next line, with its end; empty at the end of the source."""
        if not self.fill():
            return b""
        stop = self.buffer.index(b"\n", self.start) + 1
        line = self.buffer[self.start : stop]
        self.use(len(line), 1)
        return line

    def _begin(self, buffer: bytes, before: int) -> None:
        """Start with another buffer, where the content before it has a checksum."""
        self.buffer, self.start, self._before, self._summed = buffer, 0, before, (0, before)

    def _checksum(self) -> int:
        """Checksum of the content that was used."""
        place, found = self._summed if self._summed[0] <= self.start else (0, self._before)
        used = min(self.start, len(self.buffer) - self.added)
        if place < used:
            with memoryview(self.buffer) as view:
                found = zlib.crc32(view[place:used], found)
            self._summed = used, found
        return found

    def where(self) -> dict[str, int]:
        return {"byte": self.offset, "line": self.line, "crc": self._checksum()}

    def seek(self, position: dict[str, Any]) -> None:
        target = position["byte"]
        begin = self.bytes.offset - (len(self.buffer) - self.added)
        if begin <= target <= self.bytes.offset:
            self.start = target - begin
            found = self._checksum()
        else:
            found = zlib.crc32(self.buffer, self._before)
            pipe = self.bytes.size is None
            while pipe and self.bytes.offset < target:
                piece = self.bytes.read(min(self.chunk, target - self.bytes.offset))
                found, pipe = zlib.crc32(piece, found), bool(piece)
            found = found if pipe else position.get("crc", 0)
            self._begin(b"", found)
            self.ended, self.added = False, 0
            self.bytes.skip_to(target)
        self._compare(found, position)
        self.line = position["line"]

    def verify(self, position: dict[str, Any]) -> None:
        """Raise ValueError if the content of a file has changed before a position."""
        again = Bytes(self.bytes.name, self.bytes.encoding) if self.bytes.own and self.bytes.size is not None else None
        if again is None or "crc" not in position:
            return
        found, left = 0, position["byte"]
        try:
            while left and (piece := again.read(min(self.chunk, left))):
                found, left = zlib.crc32(piece, found), left - len(piece)
        finally:
            again.close()
        self._compare(None if left else found, position)

    def _compare(self, found: int | None, position: dict[str, Any]) -> None:
        if found != position.get("crc", found):
            raise ValueError(
                f"{self.bytes.name} has changed in its first {position['byte']:,} bytes, which were learned already: "
                f"restore it, or start again with an empty folder for checkpoints"
            )

    @property
    def has_line(self) -> bool:
        """Whether a complete line is in the buffer, so that :meth:`readline` does not wait."""
        return self.ended or self.buffer.find(b"\n", self.start) >= 0

    def peek_bytes(self, n: int) -> bytes:
        """The next n bytes, or all there are, without using them."""
        self.fill(n)
        return self.buffer[self.start : self.start + n]

    def peek(self, n: int = 1 << 16) -> bytes:
        """Unused content at the current place, without using it: at least one line unless the source has ended."""
        self.fill()
        return self.buffer[self.start : self.start + n]
