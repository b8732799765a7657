"""The parsers of the compiled core, and their readable specification for installations without one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

try:
    from .. import _core as _core
except ImportError:  # installed without a compiler
    _core = None  # type: ignore[assignment, unused-ignore]

LARGEST_INDEX = 2**31 - 2  # index of a feature

# Why a row is left out, by the numbers the compiled parser gives them.
REASONS = (
    "the label is not a number",
    "the label is not finite",
    "a feature has no value: write index:value",
    "the index of a feature is not a whole number",
    f"the index of a feature is larger than {LARGEST_INDEX}",
    "index 0, but indices start at 1 (zero_based=True, or --zero-based in the shell, allows it)",
    "the indices of a row must be different and ascending",
    "the index of a feature is larger than n_features",
    "the value of a feature is not a number",
    "the value of a feature is not finite",
)
BAD_LABEL, INFINITE_LABEL, NO_COLON, BAD_INDEX, LARGE_INDEX, ZERO_INDEX, UNSORTED, BEYOND, BAD_VALUE, INFINITE = range(
    10
)

# labels (n,), indptr (n + 1,), indices (nnz,), values (nnz,), largest index from 1, lines, bytes, bad rows
Parsed = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int, int, int, list[tuple[int, int, int, int]]]

_SPACE = b" \t\r\v\f"
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_TOKEN = re.compile(rb"[^ \t\r\v\f]+")


def parse_libsvm(data: bytes, start: int, max_rows: int, zero_based: bool, n_features: int, single: bool) -> Parsed:
    """Rows of the complete lines of ``data[start:]``; see :func:`parse_libsvm_python`."""
    parse = parse_libsvm_python if _core is None else _core.libsvm_parse
    return parse(data, start, max_rows, zero_based, n_features, single)


def parse_libsvm_python(
    data: bytes, start: int, max_rows: int, zero_based: bool, n_features: int, single: bool
) -> Parsed:
    """At most ``max_rows`` good rows in CSR form.

    Parameters
    ----------
    data : bytes
    start : int
        Where to begin.
    max_rows : int
    zero_based : bool
        Whether the first feature has index 0 instead of 1.
    n_features : int
        Number of features; 0 for any.
    single : bool
        Values in float32.

    Returns
    -------
    labels, indptr, indices, values, width, lines, consumed, bad
        ``bad`` has (line, byte where the line starts, byte in the line, reason) for each row left out, from ``start``.
    """
    first = 0 if zero_based else 1
    last = n_features + first - 1 if n_features else LARGEST_INDEX
    dtype = np.float32 if single else np.float64
    labels: list[float] = []
    indptr, indices, values = [0], [], []
    bad = []
    width = lines = 0
    at = start
    while len(labels) < max_rows and (stop := data.find(b"\n", at)) >= 0:
        line = data[at:stop]
        content = line.split(b"#", 1)[0]
        if content.strip(_SPACE):
            row = _row(content, first, last, dtype)
            if isinstance(row, tuple):
                bad.append((lines, at - start, *row))
            else:
                labels.append(row[0])
                indices += row[1]
                values += row[2]
                indptr.append(len(indices))
                width = max(width, row[1][-1] + 1 if row[1] else 0)
        lines += 1
        at = stop + 1
    return (
        np.array(labels, np.float64),
        np.array(indptr, np.int32),
        np.array(indices, np.int32),
        np.array(values, dtype),
        width,
        lines,
        at - start,
        bad,
    )


def _row(content: bytes, first: int, last: int, dtype: Any) -> list[Any] | tuple[int, int]:
    """Label, indices and values of a row, or place and reason of an error in it."""
    tokens = list(_TOKEN.finditer(content))
    label = _number(tokens[0][0], np.float64)
    if label is None:
        return tokens[0].start(), BAD_LABEL
    if not np.isfinite(label):
        return tokens[0].start(), INFINITE_LABEL
    pairs = tokens[1:]
    if pairs and pairs[0][0].startswith(b"qid:"):
        if not pairs[0][0][4:].isdigit():
            return pairs[0].start(), BAD_VALUE
        pairs = pairs[1:]
    indices: list[int] = []
    values = []
    previous = first - 1
    for pair in pairs:
        text, colon, value = pair[0].partition(b":")
        if not text.isdigit():
            return pair.start(), BAD_INDEX
        if not colon:
            return pair.start(), NO_COLON
        index = int(text) if len(text.lstrip(b"0")) < 11 else LARGEST_INDEX + 1
        reasons = ((index > LARGEST_INDEX, LARGE_INDEX), (index < first, ZERO_INDEX), (index > last, BEYOND))
        for wrong, reason in (*reasons, (index <= previous, UNSORTED)):
            if wrong:
                return pair.start(), reason
        number = _number(value, dtype)
        if number is None:
            return pair.start(), BAD_VALUE
        if not np.isfinite(number):
            return pair.start(), INFINITE
        indices.append(index - first)
        values.append(number)
        previous = index
    return [label, indices, values]


def _number(text: bytes, dtype: Any) -> Any:
    if not _NUMBER.match(text):
        return None
    with np.errstate(over="ignore"):
        return dtype(float(text))
