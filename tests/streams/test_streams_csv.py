"""CSV: quotes, headers, labels, categories, missing values, bad rows."""

import io
import time

import numpy as np
import pytest
from stream_rows import whole

from kernelstream.streams import CSV, BadRowError


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
    X, y = CSV(io.BytesIO(b"a,1\nb,2\n"), 0, header=False).read()
    assert (X.tolist(), y.tolist()) == ([[1], [2]], ["a", "b"])
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
    for text in (b"a,y\n\n1,cat", b"a,y\n1,\n2,cat"):  # the first label is in a last line without an end
        assert CSV(io.BytesIO(text), "y", on_error="skip").read()[1].tolist() == ["cat"]
    _, y = CSV(io.BytesIO(b"a,y\n1,0\n2,1\n"), "y", labels=True).read()
    assert y.tolist() == ["0", "1"]


@pytest.mark.parametrize("quoted", [False, True])
def test_csv_columns_in_the_order_asked_for(quoted):
    def read(**options):
        stream = CSV(io.BytesIO(b"city,size,rooms,price\nRome,1,3,5\nOslo,0,4,6\n"), **options)
        stream.quoted = stream.quoted or quoted
        return stream, *stream.read()

    stream, X, y = read(target="price", features=["rooms", "size"])
    assert (stream.feature_names, X.tolist(), y.tolist()) == (["rooms", "size"], [[3, 1], [4, 0]], [5, 6])
    assert X.flags.c_contiguous
    stream, X, y = read(target="city", features=["price", 1], dtype="float32")
    assert (X.dtype, X.tolist(), y.tolist()) == (np.float32, [[5, 1], [6, 0]], ["Rome", "Oslo"])
    _, X, y = read(target="size", drop=["city"])
    assert (X.tolist(), y.tolist()) == ([[3, 5], [4, 6]], [1, 0])
    with pytest.raises(
        BadRowError, match=r"line 2: column 'city': 'Rome' is not a number .mixed=True, or --columns auto"
    ):
        read(target="price")


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


@pytest.mark.parametrize("quoted", [False, True])
def test_a_missing_target_is_never_filled(quoted):
    text = b"a,y\n1,5\n,6\n3,\n4,NA\n"
    stream = CSV(io.BytesIO(text), "y", missing=0.0, on_error="skip")
    stream.quoted = stream.quoted or quoted
    X, y = stream.read()
    assert (X.tolist(), y.tolist(), stream.skipped) == ([[1], [0]], [5, 6], 2)
    stream = CSV(io.BytesIO(text), "y", missing=0.0)
    stream.quoted = stream.quoted or quoted
    with pytest.raises(BadRowError, match=r"line 4: column 'y' \(the target\) is missing$"):
        stream.read()


def test_what_is_no_text_is_refused():
    table = "größe,y\n1,2\n"
    latin = CSV(io.BytesIO(table.encode("latin-1")), "y", encoding="latin-1")
    assert latin.feature_names == ["größe"] and latin.read()[0].tolist() == [[1]]
    with pytest.raises(ValueError, match="line 1: this is not UTF-8"):
        CSV(io.BytesIO(table.encode("latin-1")), "y")
    for content in (table.encode("utf-16"), b"\x7fELF\x01\x02,y\n"):
        with pytest.raises(ValueError, match="is not a text in UTF-8"):
            CSV(io.BytesIO(content), "y")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"target": "prise"}, "did you mean 'price'"),
        ({"target": 9}, "no column 9"),
        ({"target": "price", "drop": ["x"]}, "no column 'x'"),
        ({"target": "price", "features": ["price"]}, "cannot be both a feature and the target"),
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


def test_numbers_beyond_use_are_said_to_be():
    with pytest.raises(ValueError, match=r"line 3: column 'y' \(the target\): '2e200' is beyond 1e\+100"):
        CSV(io.BytesIO(b"a,y\nu,1.5\nv,2e200\n"), "y", mixed=True).read()


def test_lines_that_end_as_on_old_computers_are_named():
    with pytest.raises(ValueError, match="carriage return alone"):
        CSV(io.BytesIO(b"a,y\r1,2\r3,4\r"), "y")
    X, _ = CSV(io.BytesIO(b"a,y\r\n1,2\r\n3,4\r\n"), "y").read()
    assert X.tolist() == [[1.0], [3.0]]
