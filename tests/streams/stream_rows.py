"""A table as text, and a stream as a table: what the tests of the readers share."""

import io

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

rng = np.random.default_rng(0)
DENSE = np.round(rng.standard_normal((500, 7)) * (rng.random((500, 7)) < 0.5), 6)
LABELS = rng.integers(0, 3, 500).astype(float)


def libsvm_bytes(X=DENSE, y=LABELS):
    out = io.BytesIO()
    dump_svmlight_file(X, y, out, zero_based=False)
    return out.getvalue()


def csv_bytes(X=DENSE, y=LABELS, header=True, sep=","):
    lines = [sep.join([*(f"x{j}" for j in range(X.shape[1])), "y"])] if header else []
    lines += [sep.join([*(repr(float(v)) for v in row), f"{label:g}"]) for row, label in zip(X, y, strict=True)]
    return ("\n".join(lines) + "\n").encode()


def whole(stream):
    """All rows of a stream, dense, and the sizes of its blocks."""
    blocks = list(stream)
    width = max(X.shape[1] for X, _ in blocks)
    parts = []
    for X, _ in blocks:
        X = X.toarray() if sp.issparse(X) else X
        parts.append(np.pad(X, ((0, 0), (0, width - X.shape[1]))))
    y = None if blocks[0][1] is None else np.concatenate([y for _, y in blocks])
    return np.concatenate(parts), y, [X.shape[0] for X, _ in blocks]
