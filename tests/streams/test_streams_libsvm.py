"""LIBSVM text: its forms, bad rows, width."""

import io
import logging

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from stream_rows import whole

from kernelstream.streams import BadRowError, LibSVM, _parsers
from kernelstream.streams import bytes as streams_bytes


def test_libsvm_like_scikit_learn(tmp_path):
    X = sp.random(300, 50, 0.1, random_state=0, format="csr")
    X.data = np.concatenate([X.data[:100] * 1e-300, X.data[100:200] * 1e250, X.data[200:]])
    y = np.random.default_rng(0).standard_normal(300)
    for zero_based in (False, True):
        dump_svmlight_file(
            X, y, str(tmp_path / "f"), zero_based=zero_based, comment="made by a test", query_id=np.arange(300)
        )
        X0, y0 = load_svmlight_file(str(tmp_path / "f"), zero_based=zero_based, n_features=50)
        for dtype in (np.float64, np.float32):
            stream = LibSVM(tmp_path / "f", 1000, zero_based=zero_based, n_features=50, dtype=dtype, on_error="skip")
            X1, y1 = stream.read()
            assert X1.dtype == dtype
            if dtype == np.float64:
                assert (X1 != X0).nnz == 0
                np.testing.assert_array_equal(y1, y0)
            else:  # 1e250 has no place in float32
                assert stream.skipped > 0


def test_libsvm_forms():
    text = b"# comment\n\n  \t\n+1 1:1\n-1.5e1\t2:.5 3:1. 4:1e-3  # end\r\n0\n3 qid:7 1:2\n1e2 7:+1E+2"
    X, y, _ = whole(LibSVM(io.BytesIO(text)))
    np.testing.assert_array_equal(y, [1, -15, 0, 3, 100])
    expected = np.zeros((5, 7))
    expected[0, 0], expected[1, 1:4], expected[3, 0], expected[4, 6] = 1, [0.5, 1, 1e-3], 2, 100
    np.testing.assert_array_equal(X, expected)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x 1:1", "label is not a number"),
        ("1,2 1:1", "label is not a number"),
        ("1_0 1:1", "label is not a number"),
        ("nan 1:1", "label is not a number"),
        ("1e999 1:1", "label is not finite"),
        ("1 2", "has no value"),
        ("1 a:1", "index of a feature is not a whole"),
        ("1 1.5:1", "index of a feature is not a whole"),
        ("1 -1:1", "index of a feature is not a whole"),
        ("1 :1", "index of a feature is not a whole"),
        ("1 99999999999:1", "larger than 2147483646"),
        ("1 0:1", "indices start at 1"),
        ("1 2:1 1:1", "ascending"),
        ("1 2:1 2:1", "ascending"),
        ("1 1:", "value of a feature is not a number"),
        ("1 1:x", "value of a feature is not a number"),
        ("1 1:1:1", "value of a feature is not a number"),
        ("1 1:inf", "value of a feature is not a number"),
        ("1 1:-1e999", "value of a feature is not finite"),
        ("1 qid:x 1:1", "value of a feature is not a number"),
        ("1 1:1\0", "value of a feature is not a number"),
        ("\xff\xfe", "label is not a number"),
    ],
)
def test_libsvm_bad_rows(line, reason, caplog, tmp_path):
    text = b"1 1:1\n\n" + line.encode("latin-1") + b"\n2 2:2\n"
    path = tmp_path / "bad.svm"
    path.write_bytes(text)
    with pytest.raises(BadRowError, match=rf"bad\.svm, line 3: .*{reason}") as caught:
        list(LibSVM(path))
    assert (caught.value.file, caught.value.line) == (str(path), 3)
    with caplog.at_level(logging.WARNING):
        for policy in ("skip", "log"):
            stream = LibSVM(path, on_error=policy)
            X, y, _ = whole(stream)
            assert y.tolist() == [1, 2]
            assert X.tolist() == [[1, 0], [0, 2]]
            assert stream.skipped == 1
    assert len(caplog.records) == 1
    assert "line 3" in caplog.text
    python = _parsers.parse_libsvm_python(text, 0, 100, False, 0, False)
    assert reason in _parsers.REASONS[python[-1][0][3]]


def test_libsvm_width():
    text = b"1 1:1\n" * 10 + b"1 5:1\n" + b"1 2:1\n" * 10
    stream = LibSVM(io.BytesIO(text), block=5)
    assert [X.shape[1] for X, _ in stream] == [1, 1, 5, 5, 5]
    assert {X.shape[1] for X, _ in LibSVM(io.BytesIO(text), block=5, n_features=9)} == {9}
    with pytest.raises(BadRowError, match=r"line 11: .*larger than n_features"):
        list(LibSVM(io.BytesIO(text), n_features=4))
    with pytest.raises(BadRowError, match="not finite"):
        list(LibSVM(io.BytesIO(b"1 1:1e300\n"), dtype="float32"))


def test_a_line_that_never_ends(monkeypatch):
    monkeypatch.setattr(streams_bytes, "MAX_LINE_BYTES", 1000)
    with pytest.raises(ValueError, match="not a text file"):
        list(LibSVM(streams_bytes.LineBuffer(io.BytesIO(b"1" * 5000), chunk=100)))
