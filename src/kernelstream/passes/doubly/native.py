"""Scores of Fourier features without keeping the features, compiled; see :mod:`.python`."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from ... import _core
from ...core.workspace import workspace
from ...rows import Rows

TILE = 128  # rows: a tile of projections stays in the second-level cache until their cosines are taken


def fourier_scores(X: Rows, W: np.ndarray, A: np.ndarray, F: np.ndarray) -> None:
    """``F += [cos XW, sin XW] / sqrt(D) A``: X (m, d) dense or CSR, W (d, D), A (2D, C), F (m, C) float64.

    A single output needs one cosine per frequency, because ``a cos p + b sin p`` is one with an amplitude and a phase.
    """
    m, D = X.shape[0], W.shape[1]
    scale = 1.0 / math.sqrt(D)
    single = A.shape[1] == 1
    if single:
        cosine, sine = A[:D, 0], A[D:, 0]
        amplitude, phase = np.hypot(cosine, sine) * W.dtype.type(scale), np.arctan2(sine, cosine)
    for start in range(0, m, TILE):
        stop = min(m, start + TILE)
        P = workspace("scores_P", (stop - start, D), W.dtype)
        if sp.issparse(X):
            indptr = X.indptr[start : stop + 1]
            _core.csr_matmul(X.data.astype(W.dtype, copy=False), X.indices, indptr, W, P)
        else:
            np.dot(X[start:stop], W, out=P)
        if single:
            _core.cosine_sums(P, amplitude, phase, F[start:stop, 0])
        else:
            Z = workspace("scores_Z", (stop - start, 2 * D), W.dtype)
            _core.trig(P, Z, scale)
            F[start:stop] += Z @ A
