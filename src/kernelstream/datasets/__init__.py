"""Named data sets: a few that come with the library or with scikit-learn, and files in your own folder.

electricity (a stream with drift), german, svmguide3, mg and housing come with the library. A folder of further sets is
named by the environment variable ``KERNELSTREAM_DATA`` and holds one ``NAME.npz`` per set. Arrays in it:
``X`` (n, d), or ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape`` of a CSR matrix; ``y`` (n,), integers for classes
and floats for regression; optionally ``is_test`` (n,) and any others. Files are read without pickle.

>>> from kernelstream import datasets
>>> X, y = datasets.load("breast_cancer", scale="standard", return_X_y=True)
>>> X.shape
(569, 30)
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.datasets
from sklearn.utils import Bunch

from ..files import npy_header
from ..registry.names import did_you_mean
from .sources import SOURCES as SOURCES

__all__ = ["SOURCES", "folder", "info", "load", "names"]

_SCALES = ("minmax", "minmax-sym", "standard")
_HERE = Path(__file__).parent / "files"  # sets that come with the library
_SHIPPED = ("breast_cancer", "diabetes", "digits", "iris", "wine")  # with scikit-learn


def folder() -> Path | None:
    """The folder named by ``KERNELSTREAM_DATA``, or None when the variable is not set."""
    value = os.environ.get("KERNELSTREAM_DATA")
    if not value:
        return None
    path = Path(value)
    if not path.is_dir():
        raise ValueError(f"KERNELSTREAM_DATA is {value!r}, which is not a folder")
    return path


def names() -> list[str]:
    """Names that :func:`load` takes now: files in the folder, and what comes with the library and scikit-learn.

    >>> from kernelstream import datasets
    >>> "digits" in datasets.names()
    True
    """
    home = folder()
    files = [] if home is None else [path.stem for path in home.glob("*.npz") if _has_rows(path)]
    return sorted({*files, *_SHIPPED, *(path.stem for path in _HERE.glob("*.npz"))})


def _has_rows(path: Path) -> bool:
    """Whether a file has rows: a folder may hold other arrays, such as those of molecules."""
    try:
        with zipfile.ZipFile(path) as file:
            return not {"X.npy", "X_shape.npy"}.isdisjoint(file.namelist())
    except (zipfile.BadZipFile, OSError):
        return True  # `load` says what is wrong with it


def load(
    name: str,
    scale: str | None = None,
    split: str | None = None,
    *,
    check: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    scale : {"minmax", "minmax-sym", "standard"} or None
        Per column, over all rows (before ``split``): to [0, 1], to [-1, 1], or to mean 0 and variance 1. Columns that
        never change become 0. A CSR matrix stays sparse: the first two divide by the largest absolute value, the
        third by the standard deviation, and nothing is shifted.
    split : {"train", "test"} or None
        The rows of one part, for sets with an original split; None takes all.
    check : bool, default=True
        Verify the checksum of the known benchmark files.
    return_X_y : bool, default=False
        Return ``(X, y)`` only.

    Returns
    -------
    Bunch
        With ``X`` (float32, dense or CSR), ``y``, ``name``, ``task`` ("binary", "multiclass" or "regression"),
        ``is_test`` (bool array or None) and any further arrays of the file, such as ``perm``, the row orders used in
        a publication. A dictionary whose entries are also attributes. Rows are in the order of the file: many are
        sorted by class, so shuffle them before learning online.

    Examples
    --------
    >>> from kernelstream import datasets
    >>> data = datasets.load("digits", scale="minmax")
    >>> data.task, data.X.shape, float(data.X.max())
    ('multiclass', (1797, 64), 1.0)
    """
    if scale not in (None, *_SCALES):
        raise ValueError(f"scale must be None or one of {', '.join(_SCALES)}, got {scale!r}")
    if split not in (None, "train", "test"):
        raise ValueError(f"split must be None, 'train' or 'test', got {split!r}")
    path = _find(name)
    arrays = _shipped(name) if path is None else _read(path, check)
    X, y, is_test = arrays.pop("X"), arrays.pop("y"), arrays.pop("is_test", None)
    if scale is not None:
        X = _scale_sparse(X, scale) if sp.issparse(X) else _scale_dense(X, scale)
    if split is not None:
        if is_test is None:
            raise ValueError(f"data set {name!r} has no train/test split")
        rows = np.flatnonzero(is_test == (split == "test"))
        arrays = {key: a[rows] if len(a) == len(y) else a for key, a in arrays.items()}
        X, y, is_test = X[rows], y[rows], is_test[rows]
    if return_X_y:
        return X, y
    return Bunch(X=X, y=y, task=_task(y), name=name, is_test=is_test, **arrays)


def info(name: str) -> dict[str, Any]:
    """Rows, columns, task and storage of a data set, without reading its matrix.

    >>> from kernelstream import datasets
    >>> datasets.info("wine")["rows"]
    178
    """
    path = _find(name)
    if path is None:
        arrays = _shipped(name)
        shape, y, sparse = arrays["X"].shape, arrays["y"], False
    else:
        with np.load(path, allow_pickle=False) as file:
            sparse = "X" not in file.files
            y = file["y"]
            shape = tuple(int(n) for n in file["X_shape"]) if sparse else _shape_of(path)
    source = "scikit-learn" if path is None else str(path)
    return {"rows": shape[0], "columns": shape[1], "task": _task(y), "sparse": sparse, "source": source}


def _find(name: str) -> Path | None:
    """File of a data set, None for one that scikit-learn ships; ValueError when there is neither."""
    available = names()
    if name in available:
        for home in (folder(), _HERE):
            if home is not None and (home / f"{name}.npz").is_file():
                return home / f"{name}.npz"
        return None
    home = folder()
    if home is None:
        where = "set KERNELSTREAM_DATA to a folder of NAME.npz files to use your own"
    else:
        where = f"files are looked for in {home} (KERNELSTREAM_DATA)"
    what = "missing" if name in SOURCES else "unknown"
    if name in SOURCES:
        where += f"; {name} is at {SOURCES[name].home}"
    raise ValueError(
        f"{what} data set {name!r}: {did_you_mean(name, available)}available are {', '.join(available)}; {where}"
    )


def _read(path: Path, check: bool) -> dict[str, Any]:
    known = SOURCES.get(path.stem)
    if check and known is not None:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
        if found != known.md5:
            raise ValueError(
                f"{path} is damaged or another file: md5 {found}, expected {known.md5} (check=False loads it anyway)"
            )
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    if "X_data" in arrays:
        parts = tuple(arrays.pop(key) for key in ("X_data", "X_indices", "X_indptr"))
        arrays["X"] = sp.csr_matrix(parts, shape=tuple(arrays.pop("X_shape")))
    lacking = [key for key in ("X", "y") if key not in arrays]
    if lacking:
        raise ValueError(f"{path} has no array {' and no array '.join(lacking)}")
    if arrays["X"].shape[0] != len(arrays["y"]):
        raise ValueError(f"{path} has {arrays['X'].shape[0]} rows in X but {len(arrays['y'])} in y")
    return arrays


def _shipped(name: str) -> dict[str, Any]:
    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    return {"X": X.astype(np.float32), "y": y.astype(np.float32) if y.dtype.kind == "f" else y.astype(np.int8)}


def _shape_of(path: Path) -> tuple[int, ...]:
    """Shape of the array X from the first bytes of its entry: decompressing all of it would take seconds."""
    with zipfile.ZipFile(path) as archive, archive.open("X.npy") as entry:
        return npy_header(entry)[0]


def _task(y: np.ndarray) -> str:
    if y.dtype.kind == "f":
        return "regression"
    return "binary" if len(np.unique(y)) <= 2 else "multiclass"


def _scale_dense(X: np.ndarray, scale: str) -> np.ndarray:
    if scale == "standard":
        centre, width = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
        width[np.ptp(X, axis=0) == 0.0] = 0.0  # the rounding of a mean must not become a column
    else:
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
        centre, width = (low, high - low) if scale == "minmax" else ((low + high) / 2, (high - low) / 2)
    fixed = width == 0.0
    scaled = (X - centre) / np.where(fixed, 1.0, width)
    scaled[:, fixed] = 0.0
    return scaled.astype(X.dtype)


def _scale_sparse(X: sp.csr_matrix, scale: str) -> sp.csr_matrix:
    if scale == "standard":
        values = X.astype(np.float64)
        mean = np.asarray(values.mean(axis=0)).ravel()
        width = np.sqrt(np.maximum(np.asarray(values.multiply(values).mean(axis=0)).ravel() - mean**2, 0.0))
    else:
        width = abs(X).max(axis=0).toarray().ravel().astype(np.float64)
    inverse = np.divide(1.0, width, out=np.zeros_like(width), where=width > 0.0)
    scaled = X.copy()
    scaled.data = (X.data * inverse[X.indices]).astype(X.dtype)
    return scaled
