"""Model files taken apart and signed again."""

import io
import json
import zipfile

import numpy as np

from kernelstream import model_io


def entries_of(content):
    """The entries of a model file, by name; the first one is the header."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def taken_apart(content):
    """The header of a model file, and its arrays."""
    entries = entries_of(content)
    header = json.loads(entries.pop("kernelstream.json"))
    return header, [np.load(io.BytesIO(entry)) for entry in entries.values()]


def rewritten(content, change):
    """The file after ``change(header, arrays)``, signed; ``change`` may return another header."""
    header, arrays = taken_apart(content)
    header = change(header, arrays) or header
    header["arrays"] = [{"dtype": a.dtype.str, "shape": list(a.shape)} for a in arrays]
    entries = {"kernelstream.json": json.dumps(header).encode()}
    entries |= {f"arrays/{i}.npy": model_io._npy(a) for i, a in enumerate(arrays)}
    return io.BytesIO(model_io._pack(entries))
