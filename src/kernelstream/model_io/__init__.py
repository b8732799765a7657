"""Model files: everything an estimator has learned, without pickle.

A model file (``.ks``) is an uncompressed zip archive::

    kernelstream.json   format, version of the library, class, parameters, state, notes; shape and type of every array
    arrays/0.npy ...    the arrays, in numpy's own format

whose comment, the last 64 bytes of the file, is the SHA-256 of all bytes before it;
``unzip -p model.ks kernelstream.json`` shows what is in it. Loading runs nothing that a file could bring along: it
builds objects of this library's public classes, checks every array against its declared shape and type, and finally
every entry of the state against what the model itself expects (:mod:`kernelstream.state.schema`). Time and
memory are bounded by the size of the file, at 64 bytes for each of its bytes (zeros of arrays that are mostly zeros are
stored as bits): random numbers are drawn from the seed only when the model is first used.
The same model always gives the same bytes.

Parts that a user has registered (a loss of one's own, say) are named together with their module. Loading does not
import it: where the part is not known yet, the error says which import it takes.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from .. import __version__
from ..files import npy_header, write_atomic
from ..registry import plugins as _plugins
from ..state.turns import turns_of
from .values import KINDS, build, component_class, component_name, decode, encode, missing_parts, outline, own_parts

FORMAT = "kernelstream model"
VERSION = 1  # of the format; a reader accepts its own and older ones

_HEADER = "kernelstream.json"
_DIGEST = 64  # length of a SHA-256 in hexadecimal
_START = b"PK\x03\x04"
_NAME_AT = 30  # where the first entry's name starts in a zip archive

Source = str | os.PathLike[str] | IO[bytes]


class ModelFileError(ValueError):
    """A file that is not a model file, is damaged, or was written by a newer version."""


def save(est: Any, target: Source, notes: dict[str, Any] | None = None) -> None:
    """Write an estimator of this library to a file.

    Parameters
    ----------
    est : estimator
        Any public streaming estimator, fitted or not. A generator given as ``random_state`` is not stored: a fitted
        model goes on from its own seed, and another ``fit`` of a loaded one draws a fresh one.
    target : path or binary file
        A path is replaced in one step: whatever happens, and however many processes write it, it holds a complete file.
        An existing file keeps its permissions, a symbolic link stays one, pipes and devices are written to.
    notes : dict, optional
        Anything else worth keeping (numbers, strings, lists, dicts, arrays);
        :func:`~kernelstream.model_io.read` gives it back.

    Examples
    --------
    >>> import io, kernelstream
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(200, random_state=0)
    >>> file = io.BytesIO()
    >>> kernelstream.save(kernelstream.FeatureClassifier(random_state=0).fit(X, y), file)
    >>> kernelstream.load(file).score(X, y) > 0.9
    True
    """
    content = to_bytes(est, notes)
    if isinstance(target, (str, os.PathLike)):
        write_atomic(target, content)
    else:
        target.write(content)


def load(source: Source) -> Any:
    """The estimator that :func:`save` wrote.

    Parameters
    ----------
    source : path or binary file
        A file object is read from its start.

    Raises
    ------
    ModelFileError
        A ValueError that says whether the file is foreign, truncated, damaged, too new, or inconsistent.
    """
    return read(source)[0]


def read(source: Source) -> tuple[Any, dict[str, Any]]:
    """The estimator and the notes of a model file."""
    name, header, arrays = _open(source)
    if _plugins.serve_files and missing_parts(header.get("parts")):
        _plugins.load()
    with _blame(name), _plugins.left_alone():
        lacking = missing_parts(header.get("parts"))
        if lacking:
            raise ModelFileError(lacking)
        est = _estimator(header, arrays)
        notes = decode(header.get("notes"), arrays) or {}
    return est, notes


def describe(source: Source) -> dict[str, Any]:
    """What a model file says about itself, without building the model.

    Returns
    -------
    dict
        "format_version", "library_version", "class", "parameters" (as readable text), "parts" (components that their
        user registered, and their modules), "notes", "entries": a dict from entry of the state to its shape and type or
        its value.
    """
    name, header, arrays = _open(source)
    with _blame(name):
        params = {key: _shown(value, arrays) for key, value in header["parameters"].items()}
        state = {key: decode(value, arrays) for key, value in (header["state"] or {}).items()}
        return {
            "format_version": header["version"],
            "library_version": header["library"],
            "class": header["class"],
            "parameters": params,
            "parts": dict(header.get("parts") or {}),
            "notes": decode(header.get("notes"), arrays) or {},
            "feature_names": header.get("feature_names"),
            "entries": {
                key: {"shape": list(value.shape), "dtype": str(value.dtype)} if isinstance(value, np.ndarray) else value
                for key, value in state.items()
            },
            "state": state,
        }


def to_bytes(est: Any, notes: dict[str, Any] | None = None) -> bytes:
    """The content of a model file."""
    with turns_of(est):  # another thread may be learning
        return _content(est, notes)


def _content(est: Any, notes: dict[str, Any] | None) -> bytes:
    if isinstance(est, type) or not hasattr(type(est), "state_"):
        raise ValueError(
            f"{type(est).__name__} keeps no state_ and cannot be saved this way; only kernelstream's streaming "
            f"estimators can (joblib.dump saves any estimator)"
        )
    arrays: list[np.ndarray] = []
    state = getattr(est, "state_", None)
    if state is not None:
        est.check_state()  # what load checks: a file that is written can be read
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "library": __version__,
        "class": component_name(type(est), "the estimator"),
        "parameters": {k: encode(v, arrays, f"parameter {k}") for k, v in est.get_params(deep=False).items()},
        "state": None if state is None else {k: encode(v, arrays, f"state_[{k!r}]") for k, v in state.items()},
        "feature_names": [str(n) for n in est.feature_names_in_] if hasattr(est, "feature_names_in_") else None,
        "notes": encode(notes or {}, arrays, "notes"),
        "arrays": [{"dtype": array.dtype.str, "shape": list(array.shape)} for array in arrays],
    }
    parts = own_parts([header["class"].partition(":")[2], *header["parameters"].values()])
    if parts:
        header["parts"] = parts
    entries = {_HEADER: json.dumps(header, allow_nan=False).encode()}
    for i, array in enumerate(arrays):
        entries[_entry(i)] = _npy(array)
    return _pack(entries)


# -------------------------------------------------------------------- reading
def _open(source: Source) -> tuple[str, dict[str, Any], list[np.ndarray]]:
    """Name of the file, its header and its arrays, all checked against each other."""
    if isinstance(source, (str, os.PathLike)):
        name, content = os.fspath(source), Path(source).read_bytes()
    else:
        source.seek(0)
        name, content = str(getattr(source, "name", None) or "the file"), source.read()
    with _blame(name):
        return name, *_parse(content)


@contextlib.contextmanager
def _blame(name: str) -> Iterator[None]:
    """Errors in the content of a file, with its name in front."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error}") from None
    except MemoryError:
        raise
    except Exception as error:  # whatever a part of the library says about values that it never wrote
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ModelFileError(f"{name}: not a valid model file: {reason}") from None


def _parse(content: bytes) -> tuple[dict[str, Any], list[np.ndarray]]:
    if not content:
        raise ModelFileError("the file is empty")
    named = content[_NAME_AT : _NAME_AT + len(_HEADER)]
    if not content.startswith(_START[: len(content)]) or not _HEADER.encode().startswith(named):
        raise ModelFileError("this is not a kernelstream model file")
    body, digest = content[:-_DIGEST], content[-_DIGEST:]
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ModelFileError("the file is truncated, damaged or was edited: its checksum does not match")
    entries = _entries(content)
    header = json.loads(entries.pop(_HEADER, b""), parse_constant=_no_constant)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError("this is not a kernelstream model file")
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise ModelFileError(f"impossible format version {version!r}")
    if version > VERSION:
        raise ModelFileError(
            f"written by kernelstream {header.get('library')} in format {version}; this version ({__version__}) reads "
            f"formats up to {VERSION}: upgrade it"
        )
    specs = header.get("arrays")
    if not isinstance(specs, list) or not all(isinstance(spec, dict) for spec in specs):
        raise ModelFileError("the file does not say which arrays it holds")
    if list(entries) != [_entry(i) for i in range(len(specs))]:
        raise ModelFileError(f"{len(specs)} arrays are declared, but the file holds {', '.join(entries) or 'none'}")
    return header, [_read_array(entries[_entry(i)], spec, i) for i, spec in enumerate(specs)]


def _entries(content: bytes) -> dict[str, bytes]:
    """Every entry of the archive. Nothing is compressed, so no entry can be larger than the file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            found = archive.infolist()
            if any(info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 for info in found):
                raise ModelFileError("a model file is neither compressed nor encrypted")
            if sum(info.file_size for info in found) > len(content):
                raise ModelFileError("the entries of the archive overlap")
            if len({info.filename for info in found}) < len(found):
                raise ModelFileError("the archive holds an entry twice")
            return {info.filename: archive.read(info) for info in found}
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError) as error:
        raise ModelFileError(f"the archive is damaged ({str(error).rstrip('.')})") from None


def _read_array(content: bytes, spec: dict[str, Any], i: int) -> np.ndarray:
    file = io.BytesIO(content)
    shape, fortran, dtype = npy_header(file)
    if dtype.kind not in KINDS:
        raise ModelFileError(f"array {i} holds {dtype}")
    if dtype.str != spec.get("dtype") or list(shape) != spec.get("shape"):
        raise ModelFileError(
            f"array {i} is declared as {spec.get('dtype')} of shape {spec.get('shape')}, "
            f"but is {dtype.str} of shape {shape}"
        )
    data, size = file.read(), math.prod(shape)
    if len(data) != size * dtype.itemsize or size > max(1, len(data)):
        raise ModelFileError(f"array {i} of shape {shape} and type {dtype} does not have {len(data)} bytes")
    array = np.ndarray(shape, dtype, data, order="F" if fortran else "C").copy(order="K")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _estimator(header: dict[str, Any], arrays: list[np.ndarray]) -> Any:
    cls = component_class(header["class"])
    if not hasattr(cls, "state_"):
        raise ModelFileError(f"{header['class']} is not an estimator")
    est = build(cls, {key: decode(value, arrays) for key, value in header["parameters"].items()})
    if header["state"] is None:
        return est
    est.state_ = {key: decode(value, arrays) for key, value in header["state"].items()}
    est.check_state()
    names = header.get("feature_names")
    if names is not None and not hasattr(est, "feature_names_in_"):  # an encoder of columns has them in its state
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ModelFileError(f"feature_names must be a list of names, got {names!r:.80}")
        if len(names) != est.n_features_in_:
            raise ModelFileError(f"{len(names)} names for {est.n_features_in_} features")
        est.feature_names_in_ = np.array(names, dtype=object)
    return est


def _no_constant(name: str) -> Any:
    raise ModelFileError(f"the header holds {name}, which is not JSON")


# -------------------------------------------------------------------- pieces of the format
def _entry(i: int) -> str:
    return f"arrays/{i}.npy"


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, allow_pickle=False)
    return out.getvalue()


def _pack(entries: dict[str, bytes]) -> bytes:
    """The archive of the entries, with its checksum."""
    out = io.BytesIO()
    archive = zipfile.ZipFile(out, "w", zipfile.ZIP_STORED)
    try:
        for name, content in entries.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # no clock: equal models are equal files
            info.create_system = 3
            archive.writestr(info, content)
        archive.comment = bytes(_DIGEST)
        archive.close()
    except BaseException:
        archive.fp = None  # closed in the middle of an entry, it would raise a ValueError in place of this error
        raise
    body = out.getvalue()[:-_DIGEST]
    return body + hashlib.sha256(body).hexdigest().encode()


def _shown(encoded: Any, arrays: list[np.ndarray]) -> Any:
    """A parameter for people: numbers and strings as they are, all else as text."""
    try:
        value = decode(encoded, arrays)
    except ValueError:
        return outline(encoded)
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
