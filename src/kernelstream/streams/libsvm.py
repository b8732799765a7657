"""LIBSVM / SVMlight text."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ._parsers import BEYOND, REASONS, parse_libsvm
from ._table import TextStream
from .base import BLOCK_ROWS, Block, Position, check_dtype, joined

MAX_COLUMNS = 2**27  # most columns, unless their number is given
TOO_WIDE = (
    f"the index of a feature is larger than {MAX_COLUMNS:,}: if that is right, give n_features (--n-features); if it "
    f"is one bad row, on_error='skip' (--on-error skip) leaves it out"
)


class LibSVM(TextStream):
    """Rows ``label index:value index:value ...`` of a text, as CSR blocks.

    Indices must ascend within a row. A text may have comments (``# ...``), empty lines and ``qid:n``, which is ignored.

    Parameters
    ----------
    source : path, "-" or binary file
        "-" is standard input. Content packed with gzip, bzip2, xz, zstd or zip is unpacked on the way.
    block : int, default=1024
        Rows per block.
    n_features : int, optional
        Width of the rows; an index beyond it makes a bad row. Without it the width grows when new features appear, up
        to 2^27: models keep numbers for every column, so one damaged index must not exhaust the memory.
    zero_based : bool, default=False
        Whether the first feature has index 0; the format's own convention is 1.
    dtype : float64 or float32
    on_error : {"raise", "skip", "log"}
        What to do with a row that cannot be read.

    Examples
    --------
    >>> import io
    >>> from kernelstream.streams import LibSVM
    >>> X, y = LibSVM(io.BytesIO(b"+1 1:0.5 3:2\\n-1 2:1 # a comment\\n")).read()
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    """

    def __init__(
        self,
        source: Any,
        block: int = BLOCK_ROWS,
        *,
        n_features: int | None = None,
        zero_based: bool = False,
        dtype: Any = np.float64,
        on_error: str = "raise",
    ):
        if n_features is not None and (isinstance(n_features, bool) or not 1 <= int(n_features) < 2**31 - 1):
            raise ValueError(f"n_features must be an integer >= 1, got {n_features!r}")
        self.dtype = check_dtype(dtype)
        super().__init__(source, block, on_error=on_error)
        self.zero_based, self.max_width = bool(zero_based), int(n_features or 0)
        self.n_features = int(n_features or 0)

    def _next(self, n: int) -> Block | None:
        parts = []
        text, wanted, single = self.text, n, self.dtype == np.float32
        while wanted and text.fill():
            most = self.max_width or MAX_COLUMNS
            parsed = parse_libsvm(text.buffer, text.start, wanted, self.zero_based, most, single)
            labels, _, _, _, width, lines, consumed, bad = parsed
            if self.on_error == "skip":
                self.skipped += len(bad)
            else:
                for line, _, column, reason in bad:
                    why = REASONS[reason] if self.max_width or reason != BEYOND else TOO_WIDE
                    self._bad(text.line + line + 1, f"{why} (column {column + 1})")
            text.use(consumed, lines)
            self.n_features = max(self.n_features or 0, width)
            if len(labels):
                parts.append(parsed)
                wanted -= len(labels)
            if self.eager and parts and not text.has_line:
                break
        return joined([_block(part, self.n_features or 1) for part in parts])

    def _where(self) -> Position:
        return {**self.text.where(), "width": self.n_features}

    def _seek(self, position: Position) -> None:
        self.text.seek(position)
        self.n_features = max(self.max_width, position["width"])


def _block(parsed: Any, width: int) -> Block:
    labels, indptr, indices, values = parsed[:4]
    X = sp.csr_array((values, indices, indptr), shape=(len(labels), width))
    X.has_canonical_format = True  # the parser insists on ascending indices
    return X, labels
