"""Texts that are not what they seem: other encodings, quotes without an end, huge fields and numbers, binary files."""

from __future__ import annotations

import csv
import io
import json

import pandas as pd
import pytest

from kernelstream import streams
from kernelstream.cli import main
from kernelstream.streams import CSV, JSONLines
from kernelstream.streams.base import BadRowError

TOWNS = ["Bern", "Zürich", "Zörich", "Genève", "Lima"] * 60
TABLE = pd.DataFrame({"town": TOWNS, "size": range(300), "open": ["ja", "nein", "nö"] * 100})


def written(encoding):
    return TABLE.to_csv(index=False).encode(encoding)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8"])
@pytest.mark.parametrize("target", ["size", "open"])
def test_texts_in_other_encodings_are_what_pandas_reads(encoding, target, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(written(encoding))
    truth = pd.read_csv(path, encoding=encoding)
    stream = streams.open(path, target=target, mixed=True, encoding=encoding, block=70)
    first, _ = stream.read()
    place = stream.position
    again = CSV(path, target, mixed=True, encoding=encoding, block=70)
    again.seek(place)
    again.verify(place)
    found = [first, *(cells for cells, _ in again)]
    assert [town for cells in found for town in cells.get("town")] == truth["town"].tolist() == TOWNS
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in TABLE.to_dict("records"))
    objects = JSONLines(io.BytesIO(lines.encode(encoding)), "open", encoding=encoding, block=300)
    assert objects.read()[1].tolist() == truth["open"].tolist()


def test_what_is_not_utf8_is_refused_with_its_line():
    for mixed, target in ((True, "size"), (True, None), (False, "town")):
        dropped = {} if mixed else {"drop": ["open"]}
        with pytest.raises(BadRowError, match=r"line 3: .*not UTF-8.*'Zürich.*encoding= \(--encoding in the shell\)"):
            CSV(io.BytesIO(written("latin-1")), target, mixed=mixed, **dropped).read()
        left = CSV(io.BytesIO(written("latin-1")), target, mixed=mixed, on_error="skip", block=300, **dropped)
        assert left.read()[0].shape[0] == 300 - left.skipped == (80 if mixed else 120)
    with pytest.raises(ValueError, match="line 1: this is not UTF-8"):
        CSV(io.BytesIO("größe,y\n1,2\n".encode("latin-1")))
    with pytest.raises(BadRowError, match="line 2: this is not UTF-8"):
        JSONLines(io.BytesIO('{"y": 1}\n{"y": 1, "a": "ü"}\n'.encode("latin-1")), "y").read()
    with pytest.raises(ValueError, match="encoding 'latin-55' is not known"):
        CSV(io.BytesIO(b"a,y\n1,2\n"), encoding="latin-55")
    with pytest.raises(ValueError, match="not a text in utf-16"):
        CSV(io.BytesIO(b"a,y\n1,2\n3"), encoding="utf-16").read()


def test_train_and_predict_take_an_encoding(tmp_path, capsys):
    path, model = tmp_path / "t.csv", tmp_path / "t.ks"
    path.write_bytes(written("latin-1"))
    train = ["train", str(path), "--target", "open", "-m", str(model), "-q"]
    assert main(train) == 1
    assert "line 3" in (said := capsys.readouterr().err) and "--encoding" in said
    assert main([*train, "--encoding", "latin-1"]) == 0
    capsys.readouterr()
    assert main(["predict", str(model), str(path), "-q"]) == 1  # another file may be in another encoding
    assert "--encoding" in capsys.readouterr().err
    assert main(["predict", str(model), str(path), "-q", "--encoding", "latin-1"]) == 0
    read = capsys.readouterr()
    assert len(read.out.split()) == 300 and "nö" in read.out and not read.err


@pytest.fixture(params=[131_072, 1 << 31], ids=["limit of Python", "limit raised by another library"])
def field_size_limit(request):
    """The longest field of Python's reader is one number for the whole process, which other libraries raise."""
    before = csv.field_size_limit(request.param)
    yield
    csv.field_size_limit(before)


@pytest.mark.usefixtures("field_size_limit")
@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize(("more", "rows"), [(3, 2), (50_000, 1), (400_000, 1)])
def test_a_quote_without_an_end_is_named_with_the_line_where_it_opens(mixed, more, rows):
    """In a short rest of the file, and in one beyond the longest field of Python's reader."""
    text = b'a,b\n1,2\n3,"4\n' + b"5,6\n" * more
    with pytest.raises(BadRowError, match="line 3: a quote that opens here is not closed"):
        CSV(io.BytesIO(text), "a", mixed=mixed).read()
    closed = b'a,b\n1,2\n3,"4\n5"\n6,7\n8,"9\n"'
    cells, y = CSV(io.BytesIO(closed), "a", mixed=True).read()
    truth = pd.read_csv(io.BytesIO(closed), dtype=str)
    assert cells.get("b") == truth["b"].tolist() and y.tolist() == [1, 3, 6, 8]


@pytest.mark.usefixtures("field_size_limit")
@pytest.mark.parametrize("mixed", [True, False])
def test_a_field_that_is_too_long_is_named_with_its_line(mixed):
    long = b"x" * 140_000
    for text in (b"a,b,c\n1,2,3\n4," + long + b",5\n6,7,8\n", b'a,b,c\n1,2,"3"\n4,"' + long + b'",5\n6,7,8\n'):
        if mixed or b'"' in text:
            with pytest.raises(BadRowError, match=r"line 3: a field has more than 131,072 characters"):
                CSV(io.BytesIO(text), "a", mixed=mixed).read()
        left = CSV(io.BytesIO(text), "a", mixed=mixed, on_error="skip")
        assert left.read()[1].tolist() == [1, 6] and left.skipped == 1


@pytest.mark.parametrize("number", ["1e400", "-1e999", "Infinity", "1" + "0" * 400])
def test_targets_of_json_that_are_too_large_are_named_with_their_line(number):
    text = f'{{"a": 1, "y": 1.5}}\n{{"a": 2, "y": {number}}}\n{{"a": 3, "y": 3}}\n'.encode()
    for content in (text, b"\n" + text.split(b"\n", 1)[1]):
        with pytest.raises(BadRowError, match=r"line 2: column 'y' \(the target\): .* is beyond 1e\+100"):
            JSONLines(io.BytesIO(content), "y").read()
    assert JSONLines(io.BytesIO(text), "y", on_error="skip").read()[1].tolist() == [1.5, 3.0]


@pytest.mark.parametrize("start", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\x1f\x00\x01,\x02\n", b"\xff\xfea\0"])
def test_a_binary_file_is_said_to_be_no_text(start, tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_bytes(start + bytes(range(256)) * 4)
    assert main(["train", str(path), "--target", "y", "-m", str(tmp_path / "m.ks")]) == 1
    said = capsys.readouterr().err
    assert "is not a text" in said and said.rstrip("\n").isprintable()


def test_dashes_are_gaps_in_tables_of_numbers_and_labels_among_labels():
    text = b"x,y\n1,+\n-,-\n3,-\n.,+\n"
    X, y = CSV(io.BytesIO(text), "y", missing=9.0).read()
    assert X.tolist() == [[1], [9], [3], [9]] and y.tolist() == ["+", "-", "-", "+"]
    X, y = CSV(io.BytesIO(text), "y", mixed=True).read()
    assert y.tolist() == ["+", "-", "-", "+"]
    sorted_by_label = b"x,y\n" + b"1,-\n" * 30_000 + b"1,+\n" * 9
    parts = [y for _, y in CSV(io.BytesIO(sorted_by_label), "y")]
    assert sum(map(len, parts)) == 30_009 and parts[-1][-1] == "+"
