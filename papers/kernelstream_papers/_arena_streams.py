"""Streams of the arena: rows of a data set or of a generator, in their own order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import numpy as np

from kernelstream import datasets

from ._experiment import Data
from ._peers import needed


@dataclass(frozen=True)
class Stream:
    """Rows in their own order.

    Attributes
    ----------
    X : array (n, d)
    y : array (n,)
        Codes 0 … K − 1 of labels, or numbers.
    n_classes : int
        K; 0 for numbers.
    categorical : tuple of int
        Columns whose numbers are codes of categories.
    """

    X: np.ndarray
    y: np.ndarray
    n_classes: int
    categorical: tuple[int, ...] = ()

    @property
    def task(self) -> str:
        return {0: "regression", 2: "binary"}.get(self.n_classes, "multiclass")


def open_stream(data: Data) -> Stream:
    """The rows of a data set, or of a generator."""
    categorical: tuple[int, ...] = ()
    if data.river is not None:
        X, y = _generated(data)
    else:
        bunch = datasets.load(data.name, scale=data.scale)
        X, y, categorical = bunch.X, bunch.y, tuple(int(j) for j in bunch.get("categorical", ()))
    if y.dtype.kind == "f":
        return Stream(X[: data.rows], y[: data.rows].astype(np.float64), 0, categorical)
    labels, codes = np.unique(y, return_inverse=True)
    return Stream(X[: data.rows], codes[: data.rows], len(labels), categorical)


def _generated(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a generator of River; ``variants`` follow each other in parts of equal length, with a seed each."""
    synth = needed("river.datasets.synth", "River")
    arguments = dict(data.values)
    variants, n = arguments.pop("variants", None), data.rows or 50_000
    if variants is None:
        parts, each = [arguments], n
    else:
        seed, each = arguments.pop("seed"), -(-n // len(variants))
        parts = [arguments | {"variant": v, "seed": seed + i} for i, v in enumerate(variants)]
    kind = getattr(synth, str(data.river))
    rows = [row for part in parts for row in islice(iter(kind(**part)), each)][:n]
    y = np.array([target for _, target in rows])
    return np.array([list(x.values()) for x, _ in rows], dtype=np.float32), y.astype(int) if y.dtype == bool else y
