"""The log: what is appended is read back; torn and damaged files lose no more than they must."""

import errno
import json
import os
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp

from kernelstream_service import Log, LogError, records

PAYLOADS = [bytes([i]) * (3 * i + 1) for i in range(20)]


def filled(folder, payloads=PAYLOADS, **options):
    log = Log(folder, **options)
    list(log.read())
    log.open()
    for payload in payloads:
        log.append([payload])
    log.close()
    return log


def read(folder, start=0):
    log = Log(folder)
    return list(log.read(start)), log


def only_file(folder):
    [path] = folder.glob("log-*.bin")
    return path


@pytest.mark.parametrize("flush", ["each", "request", 5.0])
def test_records_come_back(tmp_path, flush):
    filled(tmp_path, flush=flush)
    found, log = read(tmp_path)
    assert found == list(enumerate(PAYLOADS)) and log.next == 20 and not log.lost and not log.torn
    assert read(tmp_path, 13)[0] == list(enumerate(PAYLOADS))[13:]


def test_several_records_in_one_go(tmp_path):
    log = Log(tmp_path)
    log.open()
    assert log.append(PAYLOADS[:5]) == 0 and log.append(PAYLOADS[5:]) == 5
    log.roll()
    assert log.append([b"later"]) == 20
    log.close()
    assert read(tmp_path)[0] == [*enumerate(PAYLOADS), (20, b"later")]


def test_a_file_cut_anywhere_keeps_all_whole_records(tmp_path, monkeypatch):
    """Every length of the file that a kill could leave: records before the cut are there, and it can be gone on."""
    for sync in ("fsync", "fdatasync"):  # nobody cuts the power
        monkeypatch.setattr(os, sync, lambda file: None, raising=False)
    whole = tmp_path / "whole"
    whole.mkdir()
    filled(whole, PAYLOADS[:6])
    content = only_file(whole).read_bytes()
    ends = np.cumsum([16, *(16 + len(payload) for payload in PAYLOADS[:6])])
    for length in range(len(content)):
        folder = tmp_path / str(length)
        folder.mkdir()
        (folder / only_file(whole).name).write_bytes(content[:length])
        kept = int(np.searchsorted(ends, length, side="right")) - 1 if length >= 16 else 0
        found, log = read(folder)
        assert found == list(enumerate(PAYLOADS[:kept])) and not log.lost
        log.open()
        log.append([b"new"])
        log.close()
        assert read(folder)[0] == [*enumerate(PAYLOADS[:kept]), (kept, b"new")]


def test_damage_loses_the_record_it_hits_and_no_other(tmp_path):
    """A byte changed anywhere in the middle, header or payload."""
    filled(tmp_path, PAYLOADS[:8])
    path = only_file(tmp_path)
    content = path.read_bytes()
    ends = np.cumsum([16, *(16 + len(payload) for payload in PAYLOADS[:8])])
    for at in range(16, ends[-2]):
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        path.write_bytes(bytes(damaged))
        hit = int(np.searchsorted(ends, at, side="right")) - 1
        found, log = read(tmp_path)
        assert found == [(i, payload) for i, payload in enumerate(PAYLOADS[:8]) if i != hit]
        assert log.lost == [(hit, hit)] and log.next == 8


def test_zeros_at_the_end_are_no_records(tmp_path):
    """Some file systems leave them after a power cut."""
    filled(tmp_path, PAYLOADS[:3])
    with open(only_file(tmp_path), "ab") as file:
        file.write(bytes(100))
    found, log = read(tmp_path)
    assert [number for number, _ in found] == [0, 1, 2] and log.torn == 100


def test_a_missing_file_is_said(tmp_path):
    log = Log(tmp_path)
    log.open()
    for payload in PAYLOADS[:3]:
        log.append([payload])
        log.roll()
    log.close()
    (tmp_path / f"log-{1:016d}.bin").unlink()
    found, log = read(tmp_path)
    assert [number for number, _ in found] == [0, 2] and log.lost == [(1, 1)]


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    log = Log(tmp_path)
    log.open()
    log.append([b"first"])
    real = os.write

    def full(file, content):
        if len(content) > 3:
            return real(file, content[:3])  # a part, then nothing more
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(LogError, match="No space left") as failure:
        log.append([b"second"])
    assert failure.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert log.append([b"third"]) == 1
    log.close()
    assert read(tmp_path)[0] == [(0, b"first"), (1, b"third")]


@pytest.mark.parametrize("records", [4, 5])
def test_a_mark_that_is_cut_off_again_and_again_can_be_read(tmp_path, monkeypatch, records):
    """Killed in the middle of the mark, and once more there by each recovery: the other place always holds."""
    log = Log(tmp_path)
    log.open()
    for payload in PAYLOADS[:records]:
        log.append([payload])
    real = Log._write

    def killed(file, content, at):
        of_mark = len(content) == 12
        real(file, content[: 6 if of_mark else None], at)
        if of_mark:
            raise KeyboardInterrupt

    monkeypatch.setattr(Log, "_write", staticmethod(killed))
    with pytest.raises(KeyboardInterrupt):
        log.append([b"one more"])
    for _ in range(3):
        found, again = read(tmp_path)
        assert len(found) == records + 1 and again.marked == records and not again.lost
        with pytest.raises(KeyboardInterrupt):
            again.open()


def test_a_record_that_could_not_even_be_taken_back_is_replaced(tmp_path, monkeypatch):
    """fsync and ftruncate fail: the record may be whole on the disk, but its number is given to the next one."""
    log = Log(tmp_path)
    log.open()
    log.append([b"first"])
    broken = Mock(side_effect=OSError(errno.EIO, "Input/output error"))
    monkeypatch.setattr(Log, "_sync", staticmethod(broken))
    monkeypatch.setattr(os, "ftruncate", broken)
    with pytest.raises(LogError, match="Input/output"):
        log.append([b"never acknowledged"])
    monkeypatch.undo()
    log.append([b"second"])
    log.close()
    found, log = read(tmp_path)
    assert found == [(0, b"first"), (1, b"second")] and not log.lost


def test_files_that_are_no_longer_needed_go(tmp_path):
    log = Log(tmp_path)
    log.open()
    for i in range(5):
        log.append([bytes([i])])
        log.roll()
    log.drop(3)
    assert [first for first, _ in log.files()] == [3, 4, 5]
    assert read(tmp_path, 3)[0] == [(3, b"\x03"), (4, b"\x04")]


@pytest.mark.parametrize("flush", ["now", 0, -1, True, float("inf"), None])
def test_policies_that_there_are_not(tmp_path, flush):
    with pytest.raises(ValueError, match="flush must be"):
        Log(tmp_path, flush)


# -------------------------------------------------------------------- records
ROWS = [
    np.array([[0.1, 1e-300], [np.pi, -0.0]]),
    np.array([[1, 2]], dtype=np.float32),
    sp.csr_array(np.array([[0.0, 3.5, 0.0], [1.0, 0.0, 0.0]])),
    [{"size": 12.5, "city": "Rome", "gap": None}, {"size": 0.1, "city": "Oslo", "gap": 3}],
]


@pytest.mark.parametrize("X", ROWS, ids=["float64", "float32", "sparse", "dictionaries"])
@pytest.mark.parametrize("y", [np.array([1.5, 0.1]), np.array(["a", "bcd"]), np.array([True, False]), None])
def test_calls_come_back(X, y):
    kind, header, content = records.unpack(records.pack_learn(X, y, ["i", 2]))
    X2, y2, ids = records.unpack_learn(header, content)
    assert kind == records.LEARN and ids == ["i", 2]
    if isinstance(X, list):
        assert X2 == X
    else:
        dense, again = (sp.csr_array(M).toarray() if sp.issparse(M) else M for M in (X, X2))
        assert type(X2) is type(X) and again.dtype == dense.dtype and again.tobytes() == dense.tobytes()
    assert (y is None and y2 is None) or (y2.dtype == y.dtype and (y2 == y).all())


def test_long_headers_are_written_in_steps(monkeypatch):
    """The same bytes as at once, and no step writes more than a few rows."""
    rows = [{"town": "Röm", "size": i / 7, "gap": None} for i in range(records.ROWS_PER_STEP * 3 + 5)]
    header = {"X": {"json": rows}, "y": None, "ids": list(range(len(rows))), "positions": {"a": 1}}
    expected, sizes, plain = json.dumps(header, separators=(",", ":")), [], json.dumps
    monkeypatch.setattr(json, "dumps", lambda value, **how: sizes.append(value) or plain(value, **how))
    content = records.pack(records.LEARN, header)
    assert content[5:].decode() == expected
    assert max(len(value) for value in sizes if isinstance(value, list)) == records.ROWS_PER_STEP
