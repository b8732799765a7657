"""Named data sets: a few that come with the library or with scikit-learn, and files in a folder of yours.

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

from ..registry.names import did_you_mean
from .sources import SOURCES as SOURCES

__all__ = ["SOURCES", "folder", "info", "load", "names"]

_SCALES = ("minmax", "minmax-sym", "standard")
_HERE = Path(__file__).parent / "files"  # sets that come with the library
_SHIPPED = ("breast_cancer", "diabetes", "digits", "iris", "wine")  # with scikit-learn

# md5 of the benchmark files; a file under one of these names must be that file, or results mean something else
_MD5 = {
    "a9a": "515933b4e89d50e395438ea96dff68e3",
    "abalone": "b0f9071db2fd178e2aa9829b0c4c288e",
    "adult": "02e68b0817723788aee9ac8a7b4b436f",
    "ailerons": "9b59e25ac8f4fbb5fe63aa28bc4c3fbd",
    "airlines": "072dc839ef3f1aacf3cfdb8162c6e126",
    "airlines2008_excerpt": "0bb72e9723698db99af72b418eb728c6",
    "cadata": "4d683e639240a5b4f549ef3eb78ec5df",
    "california": "edb8845ce366eec215e06686043f1847",
    "casp": "1e2bf501a30daefcae9644caf585ede5",
    "cod-rna": "e61465711c508be9766910f6191f3cc5",
    "covtype": "5e29772fc75940fc5f8addc89f87b6e8",
    "diamonds": "8fe16adf3f71d9f511a61225a78bd480",
    "dna": "80e36a241b85d65777fdfbaf8f384ade",
    "elec2": "1a3f379cc26149c6d59838cd744dad7f",
    "electricity": "b7389fe42e247a8ef0f2b865b31c2324",
    "fifa": "d7938fa3fb7008b895ab80d57cffb8a3",
    "fried": "456b42a639dc5b17412cdad989f2b7e2",
    "german": "0850f1531c6df183c973d4502eb35756",
    "housing": "02bb23cf15504a821308d7d84809531a",
    "ijcnn1": "3b7525d9e323045bb9f277050b150d04",
    "kings_county": "8401148053641e3cd93dc61cd5b239e2",
    "letter": "f02243f57c0f91daa149f3b10ecf214b",
    "madelon": "9a99176e41d87fcca81bf6fcaa243e69",
    "mg": "6648b33d14c828c564953254ba01a69e",
    "mnist": "f27f61694437788ee710221a2b4196e9",
    "nomao": "e87a077d2c29944817dd64fa880f675f",
    "parkinsons": "26da60a3104bd27e0eb2c22ed24c0913",
    "poker": "df6afd867f4158361c6c3cd1a2fc98d3",
    "satimage": "5e8e5dcc5a2898842ac54aa0af579a81",
    "spambase": "746b5cc2093e4b89e65daf94b0cc344b",
    "susy_11k": "2e4245c6531a9b84faa04e6af63e04a8",
    "svmguide3": "72c09e3e7e9b90dc655c2a5fcca08203",
    "usps": "e8737725dcbabb7bd63fc6d04ed128dc",
    "w7a": "c8b86a1c08a13f4a830dba60f43eae92",
}


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
    files = [] if home is None else [path.stem for path in home.glob("*.npz")]
    return sorted({*files, *_SHIPPED, *(path.stem for path in _HERE.glob("*.npz"))})


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
    what = "missing" if name in _MD5 else "unknown"
    if name in SOURCES:
        where += f"; {name} is at {SOURCES[name].home}"
    raise ValueError(
        f"{what} data set {name!r}: {did_you_mean(name, available)}available are {', '.join(available)}; {where}"
    )


def _read(path: Path, check: bool) -> dict[str, Any]:
    expected = _MD5.get(path.stem)
    if check and expected is not None:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
        if found != expected:
            raise ValueError(
                f"{path} is damaged or another file: md5 {found}, expected {expected} (check=False loads it anyway)"
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
        version = np.lib.format.read_magic(entry)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        return read(entry)[0]


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
