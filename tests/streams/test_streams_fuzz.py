"""Texts nobody would write: the parsers agree with their specification, never crash and never hang."""

import io
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kernelstream.engine import has_native
from kernelstream.streams import CSV, LibSVM, _parsers

ROOT = Path(__file__).parents[2]
native = pytest.mark.skipif(not has_native(), reason="needs the compiled core")

TOKENS = """1 -1 +1 0 1: : 2:1 3:0.5 10:1e5 7:-2.5e-3 qid:4 qid: # .5 5. . e5 1e 1e400 -1e-400 1:1e39 2147483646:1
    2147483647:1 99999999999999999999:1 0:1 00001:2 nan inf x 1:1:1 1_0 123456789012345678901234567890
    0.1234567890123456789 \xe9 9007199254740993 1e22 1e23"""
pieces = st.sampled_from([*TOKENS.split(), " ", "  ", "\t", "\r", "\0", "\x0b"])
lines = st.lists(st.one_of(pieces, st.just(" "), st.text(max_size=3)), max_size=12).map("".join)
texts = st.lists(lines, max_size=8).map(lambda parts: "\n".join(parts).encode("utf-8", "surrogatepass"))


def same(a, b):
    for left, right in zip(a[:4], b[:4], strict=True):
        np.testing.assert_array_equal(left, right)
        assert left.dtype == right.dtype
    assert a[4:] == b[4:]


@native
@settings(max_examples=50, deadline=None)
@given(texts, st.integers(0, 5), st.booleans(), st.integers(0, 4), st.booleans())
def test_libsvm_equals_its_specification(text, max_rows, zero_based, n_features, single):
    args = (text + b"\n", 0, max_rows, zero_based, n_features, single)
    same(_parsers._core.libsvm_parse(*args), _parsers.parse_libsvm_python(*args))
    partial = (text, min(2, len(text)), max_rows, zero_based, n_features, single)  # a last line that is not complete
    same(_parsers._core.libsvm_parse(*partial), _parsers.parse_libsvm_python(*partial))


@native
@settings(max_examples=150, deadline=None)
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([repr, "{:.3g}".format, "{:.25e}".format, "{:f}".format]),
)
def test_every_number_is_read_exactly(value, written):
    text = written(value)
    assume(np.isfinite(float(text)))  # rounding may leave the range
    parsed = _parsers._core.libsvm_parse(f"{text} 1:{text}\n".encode(), 0, 9, False, 0, False)
    assert parsed[0][0] == float(text)
    assert parsed[3][0] == float(text)


@settings(max_examples=100, deadline=None)
@given(texts, st.integers(1, 4))
def test_a_stream_of_anything(text, block):
    for kind in (LibSVM, lambda source, **options: CSV(source, header=False, delimiter=" ", **options)):
        try:
            stream = kind(io.BytesIO(text), block=block, on_error="skip")
        except ValueError:  # a CSV without a single field
            continue
        n = sum(X.shape[0] for X, _ in stream)
        assert n == stream.rows
        assert n + stream.skipped <= text.count(b"\n") + 1


field = st.one_of(
    st.sampled_from(["1", "-2.5", " 3e2 ", "", "NA", "?", "x", "é", "1e999", "\x0b4"]), st.text("ab 1.,-", max_size=4)
)
tables = st.lists(st.lists(field, min_size=1, max_size=4).map(",".join), max_size=8).map(
    lambda rows: "\n".join(rows).encode()
)


@native
@settings(max_examples=150, deadline=None)
@given(tables, st.booleans(), st.sampled_from([None, 0.5]), st.booleans())
def test_csv_equals_its_specification(text, labels, missing, crlf):
    text = b"a,b,c\n" + (text.replace(b"\n", b"\r\n") if crlf else text)
    found = []
    for quoted in (False, True):
        stream = CSV(io.BytesIO(text), "c", labels=labels, missing=missing, on_error="skip", block=3)
        stream.quoted = quoted
        blocks = list(stream)
        found.append((blocks, stream.position))
    assert found[0][1] == found[1][1]
    for (X, y), (X0, y0) in zip(found[0][0], found[1][0], strict=True):
        np.testing.assert_array_equal(X, X0)
        np.testing.assert_array_equal(y, y0)


def damaged(n_lines, seed):
    """About n_lines lines of LIBSVM text, a hundredth of whose bytes are random."""
    rng = np.random.default_rng(seed)
    rows = [
        b"%d %s\n" % (i % 3 - 1, b" ".join(b"%d:%g" % (j, i / (j + 1)) for j in range(1 + i % 3, 20, 3)))
        for i in range(500)
    ]
    text = np.frombuffer(b"".join(rows) * (n_lines // 500), np.uint8).copy()
    hit = rng.integers(0, len(text), len(text) // 100)
    text[hit] = rng.integers(0, 256, len(hit))
    return text.tobytes()


@native
def test_many_damaged_lines():
    text = damaged(60_000, 0)
    started = time.perf_counter()
    for stream in (
        LibSVM(io.BytesIO(text), 5000, on_error="skip"),
        CSV(io.BytesIO(text), None, 5000, header=False, on_error="skip"),
    ):
        rows = sum(X.shape[0] for X, _ in stream)
        assert 54_000 < rows + stream.skipped < 78_000
        assert stream.skipped > 6000
    assert time.perf_counter() - started < 20


def test_the_specification_survives_damage_too(monkeypatch):
    monkeypatch.setattr(_parsers, "_core", None)
    stream = LibSVM(io.BytesIO(damaged(2000, 1)), on_error="skip")
    assert sum(len(y) for _, y in stream) > 500
    assert stream.skipped > 500


@pytest.mark.parametrize("seconds, leaks", [("0.5", 0), pytest.param("10", 1, marks=pytest.mark.slow)])
def test_under_the_address_sanitizer(tmp_path, seconds, leaks):
    """No byte is read or written beyond the text; the search for leaks takes longer than all of that."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    program = tmp_path / "fuzz"
    build = [compiler, "-std=c++17", "-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
             f"-I{ROOT / 'cpp'}", str(Path(__file__).with_name("fuzz_parsers.cpp")), "-o", str(program)]  # fmt: skip
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    if done.returncode and "sanitize" in done.stderr:
        pytest.skip("the compiler has no sanitizers")
    assert done.returncode == 0, done.stderr
    environment = {"ASAN_OPTIONS": f"detect_leaks={leaks}"}
    done = subprocess.run(
        [str(program), seconds, "1001"], capture_output=True, text=True, check=False, timeout=60, env=environment
    )
    if "LeakSanitizer has encountered a fatal error" in done.stderr:
        pytest.skip("a search for leaks needs ptrace, which is not allowed here")
    assert done.returncode == 0, done.stderr[-3000:]
    texts, lines, _ = map(int, done.stdout.split())
    assert texts > 1000
    assert lines > 10_000
