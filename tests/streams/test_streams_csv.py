"""CSV: quotes, headers, labels, categories, missing values, bad rows."""

import io
import time

import numpy as np
import pytest
import scipy.sparse as sp
from stream_rows import whole

from kernelstream.streams import CSV, BadRowError, _columns


def test_csv_quotes_blank_lines_and_ends():
    text = '\ufeff"a, b" ;c;"say ""y"""\r\n\r\n1; 2 ;3\r\n"4";"5";"6"\r\n 7;8;9'.encode()
    for python in (False, True):
        stream = CSV(io.BytesIO(text), target="c", block=2)
        stream.quoted = stream.quoted or python
        assert stream.delimiter == ";"
        assert stream.feature_names == ["a, b", 'say "y"']
        X, y, sizes = whole(stream)
        assert X.tolist() == [[1, 3], [4, 6], [7, 9]]
        assert y.tolist() == [2, 5, 8]
        assert sizes == [2, 1]


def test_csv_without_header():
    stream = CSV(io.BytesIO(b"1,2,3\n4,5,6\n"), target=-1)
    X, y = stream.read()
    assert X.tolist() == [[1, 2], [4, 5]]
    assert y.tolist() == [3, 6]
    assert CSV(io.BytesIO(b"a,b\nc,d\n"), hashed=[0, 1], header=False).read()[0].shape == (2, 2048)
    X, y = CSV(io.BytesIO(b"1,2,3\n"), header=False).read()
    assert y is None
    assert CSV(io.BytesIO(b"1,2\n3,4\n"), header=True).read()[0].tolist() == [[3, 4]]


def test_csv_labels():
    text = b"a,y\n1,?\n2,cat\n3,dog\n4,7\n"
    stream = CSV(io.BytesIO(text), "y", on_error="skip")
    _, y = stream.read()
    assert y.tolist() == ["cat", "dog", "7"]
    assert stream.skipped == 1
    assert stream.position["labels"] is True
    _, y = CSV(io.BytesIO(b"a,y\n1,0\n2,1\n"), "y", labels=True).read()
    assert y.tolist() == ["0", "1"]


@pytest.mark.parametrize("quoted", [False, True])
def test_csv_categories(quoted):
    text = b"city,size,colour,price\nRome,1,red,5\nOslo,0,blue,6\nRome,2,blue,7\n"

    def read(**options):
        stream = CSV(io.BytesIO(text), "price", **options)
        stream.quoted = stream.quoted or quoted
        return stream, stream.read()[0]

    stream, X = read(hashed={"city": 50}, one_hot={"colour": ["red", "green", "blue"]})
    assert sp.issparse(X)
    expected = np.zeros((3, 54))
    for row, (city, size, colour) in enumerate([("Rome", 1, 0), ("Oslo", 0, 2), ("Rome", 2, 2)]):
        expected[row, _columns.bucket("city", city, 50)] = 1
        expected[row, 50] = size
        expected[row, 51 + colour] = 1
    np.testing.assert_array_equal(X.toarray(), expected)
    X.check_format(full_check=True)
    assert stream.feature_names[50:] == ["size", "colour=red", "colour=green", "colour=blue"]
    stream, X = read(drop=["city"], one_hot={"colour": ["red", "blue"]})
    assert X.tolist() == [[1, 1, 0], [0, 0, 1], [2, 0, 1]]
    stream, X = read(features=["colour", "size"], one_hot={"colour": ["red", "blue"]})
    assert X.tolist() == [[1, 0, 1], [0, 1, 0], [0, 1, 2]]
    with pytest.raises(
        BadRowError, match=r"line 2: column 'city': 'Rome' is not a number \(if it holds categories, declare it"
    ):
        read()
    with pytest.raises(BadRowError, match="line 3: column 'colour': 'blue' is not one of the values"):
        read(drop=["city"], one_hot={"colour": ["red"]})


def test_hashing_is_the_same_everywhere():
    # printf city=Rome | b2sum -l 64, read as a little-endian number
    assert _columns.bucket("city", "Rome", 2**64) == 0xECD0E7DCAAF7F2D7
    assert _columns.bucket("city", "Rome", 1000) == 0xECD0E7DCAAF7F2D7 % 1000


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1,2", "2 fields, but there are 3 columns"),
        ("1,2,3,4", "4 fields"),
        ("1,x,3", "column 'b': 'x' is not a number"),
        ("1,,3", "column 'b' is missing"),
        ("1,NA,3", "column 'b' is missing"),
        ("1,2,", r"column 'y' \(the target\) is missing"),
        ("1,1e999,3", "column 'b': '1e999' is not finite"),
        ("1,inf,3", "'inf' is not a number"),
        ("1,1_0,3", "'1_0' is not a number"),
        ("1,0x10,3", "'0x10' is not a number"),
        ("1,\u0662,3", "is not a number"),
        ("a" * 300, "1 fields"),
    ],
)
@pytest.mark.parametrize("quoted", [False, True])
def test_csv_bad_rows(line, reason, quoted):
    text = f"a,b,y\n1,2,3\n\n{line}\n4,5,6\n".encode()

    def stream(**options):
        made = CSV(io.BytesIO(text), "y", **options)
        made.quoted = made.quoted or quoted
        return made

    with pytest.raises(BadRowError, match=f"line 4: .*{reason}"):
        list(stream())
    skipping = stream(on_error="skip", block=1)
    X, _, _ = whole(skipping)
    assert X.tolist() == [[1, 2], [4, 5]]
    assert skipping.skipped == 1


def test_csv_missing_values_can_be_filled():
    text = b"a,b,y\n1,,3\n?,NaN,6\nnull,N/A,1\n"
    for quoted in (False, True):
        stream = CSV(io.BytesIO(text), "y", missing=-1.0)
        stream.quoted = stream.quoted or quoted
        assert stream.read()[0].tolist() == [[1, -1], [-1, -1], [-1, -1]]
    with pytest.raises(BadRowError, match="not finite"):
        CSV(io.BytesIO(b"a\n1e300\n"), dtype="float32").read()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"target": "prise"}, "did you mean 'price'"),
        ({"target": 9}, "no column 9"),
        ({"target": "price", "drop": ["x"]}, "no column 'x'"),
        ({"target": "price", "features": ["price"]}, "cannot be a feature and the target"),
        ({"hashed": ["price"], "target": "price"}, "not a feature"),
        ({"hashed": {"size": 0}}, "buckets"),
        ({"hashed": ["size"], "one_hot": {"size": ["1"]}}, "hashed and as one_hot"),
        ({"drop": ["size", "price"]}, "no column left"),
        ({"delimiter": "ab"}, "one ASCII"),
        ({"missing": float("nan")}, "finite"),
        ({"block": 0}, "block"),
        ({"on_error": "ignore"}, "on_error"),
        ({"dtype": "int32"}, "dtype"),
    ],
)
def test_csv_bad_options(options, reason):
    with pytest.raises(ValueError, match=reason):
        CSV(io.BytesIO(b"size,price\n1,2\n"), **options)


@pytest.mark.parametrize("header", ["a,a", "x,y,x,x", "x,x.1,x", "x,x,x.1", "x.1,x,x,x.1", "a,a,a.1,a.2,a"])
def test_columns_of_one_name_are_named_as_in_pandas(header):
    pandas = pytest.importorskip("pandas")
    with pytest.warns(UserWarning, match="columns of the same name"):
        names = CSV(io.BytesIO(f"{header}\n".encode())).feature_names
    assert names == pandas.read_csv(io.StringIO(f"{header}\n")).columns.tolist()


def test_very_many_columns():
    """Names are looked up, not searched for: twice the columns take about twice the time, not four times."""
    names = [f"column number {j}" for j in range(40_000)]
    text = (",".join(names) + "\n" + ",".join("1" * len(names)) + "\n").encode()
    started = time.process_time()
    for features in (None, names[:0:-1]):
        X, _ = CSV(io.BytesIO(text), names[0], features=features).read()
        assert X.shape == (1, len(names) - 1)
    assert time.process_time() - started < 5  # comparing every name with every other one takes over a minute


def test_csv_bad_headers():
    with pytest.raises(ValueError, match="is empty"):
        CSV(io.BytesIO(b""))
    assert CSV(io.BytesIO(b"a,b\n")).read() is None
