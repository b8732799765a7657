"""Readers: the same rows whatever the block size, the packing, and the place one starts from."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from stream_rows import DENSE, LABELS, csv_bytes, libsvm_bytes, whole

from kernelstream import FeatureClassifier, streams
from kernelstream.evaluate import prequential
from kernelstream.streams import CSV, Arrays, Blocks, LibSVM
from kernelstream.streams import bytes as streams_bytes


def zipped(**files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


PACKS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zip": lambda text: zipped(rows=text)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same table in every format."""
    home = tmp_path_factory.mktemp("streams")
    (home / "a.libsvm").write_bytes(libsvm_bytes())
    (home / "a.csv").write_bytes(csv_bytes())
    (home / "a.tsv").write_bytes(csv_bytes(sep="\t"))
    for name, pack in PACKS.items():
        (home / f"a.libsvm{name}").write_bytes(pack(libsvm_bytes()))
        (home / f"a.csv{name}").write_bytes(pack(csv_bytes()))
    np.savez(home / "a.npz", X=DENSE, y=LABELS)
    np.savez_compressed(home / "packed.npz", X=DENSE, y=LABELS)
    csr = sp.csr_matrix(DENSE)
    parts = {"X_data": csr.data, "X_indices": csr.indices, "X_indptr": csr.indptr, "X_shape": np.array(csr.shape)}
    np.savez(home / "csr.npz", y=LABELS, **parts)
    np.savez_compressed(home / "packed_csr.npz", y=LABELS, **parts)
    np.save(home / "a.npy", np.column_stack([DENSE, LABELS]))
    return home


FILES = ["a.libsvm", *(f"a.libsvm{name}" for name in PACKS), "a.csv", "a.tsv", *(f"a.csv{name}" for name in PACKS),
         "a.npz", "packed.npz", "csr.npz", "packed_csr.npz", "a.npy"]  # fmt: skip


def opened(path, **options):
    if path.name.startswith(("a.csv", "a.tsv")):
        options["target"] = "y"
    if path.name == "a.npy":
        options["target"] = -1
    return streams.open(path, **options)


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_table(folder, name):
    for block in (1, 64, 1000):
        with opened(folder / name, block=block) as stream:
            X, y, sizes = whole(stream)
        np.testing.assert_array_equal(X, DENSE)
        np.testing.assert_array_equal(y, LABELS)
        assert sizes[:-1] == [block] * (len(sizes) - 1)
        assert stream.rows == 500


@pytest.mark.parametrize("name", FILES)
def test_going_on_from_a_position(folder, name):
    blocks = list(opened(folder / name, block=70))
    stream = opened(folder / name, block=70)
    positions = [stream.position]
    for _ in stream:
        positions.append(stream.position)
    assert stream.read() is None
    for start in (0, 3, 7, len(blocks)):
        fresh = opened(folder / name, block=70)
        for other in (fresh, stream):  # forwards from the start, and backwards from the end
            other.seek(positions[start])
            assert other.position == positions[start]
            rest = list(other)
            assert len(rest) == len(blocks) - start
            for (X, y), (X0, y0) in zip(rest, blocks[start:], strict=True):
                assert X.shape == X0.shape
                assert (X != X0).sum() == 0
                np.testing.assert_array_equal(y, y0)


def test_zstd(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    packer = zstandard.ZstdCompressor()
    text = libsvm_bytes()
    (tmp_path / "a.svm.zst").write_bytes(packer.compress(text[:5000]) + packer.compress(text[5000:]))  # two frames
    X, y, _ = whole(streams.open(tmp_path / "a.svm.zst", block=99))
    np.testing.assert_array_equal(X, DENSE)
    np.testing.assert_array_equal(y, LABELS)
    (tmp_path / "a.svm.zst").write_bytes(packer.compress(text)[:-100] + bytes(100))
    with pytest.raises(ValueError, match="zstd file is truncated or damaged"):
        list(streams.open(tmp_path / "a.svm.zst"))


@pytest.mark.parametrize("pack", PACKS)
def test_truncated_packed_files(tmp_path, pack):
    (tmp_path / "a.svm").write_bytes(PACKS[pack](libsvm_bytes())[:-30])
    with pytest.raises(ValueError, match=r"a\.svm: .* (truncated or damaged|cannot be read)"):
        list(streams.open(tmp_path / "a.svm"))


@pytest.mark.parametrize("pack", PACKS)
def test_packed_files_with_wrong_bytes(tmp_path, pack):
    """Whatever the library that unpacks them raises, it is an error about the file."""
    whole, rng = PACKS[pack](libsvm_bytes()), np.random.default_rng(3)
    for at in rng.integers(10, len(whole) - 100, 60):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(8))
        (tmp_path / "a.svm").write_bytes(damaged)
        with contextlib.suppress(ValueError):  # a flipped bit may say nothing, as one in a name or a date
            list(streams.open(tmp_path / "a.svm"))


@pytest.mark.parametrize("name", ["packed.npz", "a.npz", "packed_csr.npz", "a.npy", "a.feather", "a.parquet"])
def test_damaged_tables_are_refused_by_name(folder, tmp_path, name):
    """Pieces that are left out, put in or changed; what cannot be told from other numbers is read."""
    options = {"target": -1} if name == "a.npy" else {}
    if name.endswith(("feather", "parquet")):
        pa = pytest.importorskip("pyarrow")
        feather, parquet = (pytest.importorskip(f"pyarrow.{kind}") for kind in ("feather", "parquet"))
        table = pa.table({"word": ["some", "words", "and more"] * 200, "x": np.arange(600.0), "y": np.arange(600.0)})
        write = feather.write_feather if name.endswith("feather") else parquet.write_table
        write(table, folder / name, compression="uncompressed" if name.endswith("feather") else "snappy")
        options = {"target": "y", "mixed": True}
    whole, rng, refused = (folder / name).read_bytes(), np.random.default_rng(7), 0
    for i in range(90):
        at, other = rng.integers(6, len(whole), 2)
        at = min(at, int(rng.integers(10, 400))) if i % 2 else at  # headers are short
        rest = (b"", whole[other : other + 300] + whole[at:], bytes([int(rng.integers(256))]) + whole[at + 1 :])[i % 3]
        (tmp_path / name).write_bytes(whole[:at] + rest)
        try:
            for _ in streams.open(tmp_path / name, **options):
                pass
        except ValueError:
            refused += 1
    assert refused > 30


def test_archives_of_other_things_than_one_table(tmp_path):
    (tmp_path / "a.csv.zip").write_bytes(zipped(**{"a.csv": "x,y\n1,2\n", "__MACOSX/._a.csv": "\0"}))
    assert streams.open(tmp_path / "a.csv.zip", target="y").read()[1].tolist() == [2.0]
    (tmp_path / "b.zip").write_bytes(zipped(**{"a.csv": "x,y\n1,2\n", "b.csv": "x,y\n1,2\n"}))
    with pytest.raises(ValueError, match=r"b\.zip: .*2 files \(a\.csv, b\.csv\)"):
        streams.open(tmp_path / "b.zip", target="y")
    np.savez(tmp_path / "c", X=DENSE, y=LABELS)
    (tmp_path / "c.npz").rename(tmp_path / "c.zip")
    np.testing.assert_array_equal(streams.open(tmp_path / "c.zip").read()[0], DENSE[:1024])


def test_a_json_array_is_not_a_table(tmp_path):
    (tmp_path / "a.json").write_text('[\n {"x": 1, "y": 2}]')
    with pytest.raises(ValueError, match=r"a\.json is a single JSON array.*on a line of its own"):
        streams.open(tmp_path / "a.json", target="y")


def test_files_that_are_no_arrow_are_named(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(b"\xfe\xff\xff\xff" + bytes(2000))
    with pytest.raises(ValueError, match=r"a\.parquet is not a Parquet"):
        streams.open(tmp_path / "a.parquet", target="y")


def test_small_reads_change_nothing(folder, monkeypatch):
    monkeypatch.setattr(streams_bytes, "CHUNK_BYTES", 13)
    for kind, name in ((LibSVM, "a.libsvm"), (lambda text, **kw: CSV(text, "y", **kw), "a.csv.gz")):
        text = streams_bytes.LineBuffer(folder / name, chunk=13)
        X, y, _ = whole(kind(text, block=37))
        np.testing.assert_array_equal(X, DENSE)
        np.testing.assert_array_equal(y, LABELS)


def test_standard_input(folder, monkeypatch):
    def piped(name, target):
        """A stream of the bytes of a file as a shell's pipe hands them over."""
        source, sink = os.pipe()
        with open(sink, "wb") as pipe:
            pipe.write((folder / name).read_bytes())  # fits into the pipe
        monkeypatch.setattr(sys, "stdin", os.fdopen(source))
        return streams.open("-", target=target, block=100)

    for name, target, kind in (("a.libsvm", None, LibSVM), ("a.csv.gz", "y", CSV)):
        stream, rows, position = piped(name, target), 0, None
        assert type(stream) is kind
        for X, y in stream:
            assert X.shape[1] == 7
            rows += len(y)
            position = stream.position if rows == 200 else position
        assert rows == 500
        again = piped(name, target)
        again.seek(position)
        assert sum(len(y) for _, y in again) == 300


def test_open_tells_formats_by_content(folder, tmp_path):
    for name in ("a.libsvm", "a.libsvm.gz", "a.csv", "a.npz", "a.npy"):
        (tmp_path / "data").write_bytes((folder / name).read_bytes())
        kind = {"li": LibSVM, "cs": CSV, "np": Arrays}[name[2:4]]
        assert type(streams.open(tmp_path / "data")) is kind
    (tmp_path / "data").write_bytes(b"")
    with pytest.raises(ValueError, match="empty"):
        streams.open(tmp_path / "data")
    (tmp_path / "data").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    with pytest.raises(ValueError, match="unknown format"):
        streams.open(tmp_path / "data")
    (tmp_path / "data").write_bytes(b'{"a": 1}\n')
    with pytest.raises(ValueError, match=r"data holds JSON lines: mixed=True reads them"):
        streams.open(tmp_path / "data")
    with pytest.raises(ValueError, match="'target' is not an option of LibSVM"):
        streams.open(folder / "a.libsvm", target="y")
    for path, option in ((tmp_path / "data", "missing"), (tmp_path / "data", "dtype"), (folder / "a.csv", "name")):
        with pytest.raises(ValueError, match=f"'{option}' is not an option of (JSONLines|CSV)"):
            streams.open(path, **{option: 0})
    with pytest.raises(ValueError, match="format must be one of"):
        streams.open(folder / "a.csv", format="excel")
    with pytest.raises(FileNotFoundError):
        streams.open(folder / "nothing.csv")
    with pytest.raises(ValueError, match="read from files, not from pipes"):
        streams.open(io.BytesIO((folder / "a.npz").read_bytes()))
    assert isinstance(streams.open((DENSE, LABELS)), Arrays)
    assert isinstance(streams.open(iter([(DENSE, LABELS)])), Blocks)


def test_a_stream_feeds_prequential(folder):
    result = prequential(FeatureClassifier(random_state=0), streams.open(folder / "a.libsvm"), classes=[0, 1, 2])
    assert result.n_rows == 500


def test_memory_is_bounded(tmp_path):
    """A file of 60 MB passes through less than 20 MB more than an empty one."""
    line = b",".join([b"%d.25"] * 30) + b"\n"
    path = tmp_path / "big.csv"
    with open(path, "wb") as file:
        for i in range(250):
            file.write((line % tuple(range(i, i + 30))) * 1200)
    assert os.path.getsize(path) > 45e6
    code = f"""if True:
        import resource
        from kernelstream import streams
        def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        s = streams.open({str(path)!r}, target=0)
        s.read()
        before = peak()
        n = sum(len(y) for X, y in s)
        print(n, peak() - before)
    """
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert int(out[0]) == 250 * 1200 - 1024
    assert int(out[1]) < 20_000  # kilobytes
