r"""Sufficient statistics of second-order learning, as entries of a flat state.

``A = ridge I + sum_t c_t z_t z_t'`` and ``b = sum_t beta_t z_t`` are what is stored, and nothing else: ``A^-1`` and
``w = A^-1 b`` are derived, so they cannot drift away. The latest rows wait in a window and join A and b together, when
it is full: at the same row however the stream is cut into calls.

Entries, for r features, k outputs, G matrices (1, or one per output) and J values of the ridge (1 unless G > 1):
``gram`` (G, r, r) upper triangles of A without its ridge, ``b`` (k, r), ``ridge`` (J,), ``yy`` (k,) = sum beta²/c,
``zsum`` (r,) = sum c z of the first matrix, ``mass`` = sum c; ``window`` (m, r), ``window_c`` (m, G),
``window_b`` (m, k), ``n_window``.

Forgetting mu replaces ``A <- A + ...`` by ``A <- mu A + ...``, and b likewise. Inside the window row j counts mu^-j
times instead, and everything is multiplied by mu^m when it joins A and b: the same w.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import blas

from ..core import threads
from ..core.overflow import LEARNING, require_finite
from ..core.triangular import factorise
from ..state import undo as _undo
from ..state.nested import State
from ..state.schema import Array, Count, Number, Schema, length

GROWTH = 1e6  # a row at the end of the window counts at most this many times as much as one at its start
FLOOR = 1e-13  # of the trace: the ridge fades no further, or A would become singular


def window_rows(r: int, forgetting: float) -> int:
    """Rows that wait together: about r/2, where factoring A costs as much as the products with the waiting rows."""
    rows = min(max(32 * math.ceil(r / 64), 64), 512)
    return rows if forgetting == 1 else max(1, min(rows, int(math.log(GROWTH) / -math.log(forgetting))))


def start(state: State, r: int, outputs: int, matrices: int, ridge: np.ndarray, forgetting: float) -> None:
    """Enter the statistics before the first row."""
    m = window_rows(r, forgetting)
    state |= {
        "gram": np.zeros((matrices, r, r)),
        "b": np.zeros((outputs, r)),
        "ridge": np.array(ridge, dtype=np.float64),
        "yy": np.zeros(outputs),
        "zsum": np.zeros(r),
        "mass": 0.0,
        "window": np.zeros((m, r)),
        "window_c": np.zeros((m, matrices)),
        "window_b": np.zeros((m, outputs)),
        "n_window": 0,
    }


def schema(state: State, r: int, outputs: int, matrices: int, ridges: int) -> Schema:
    """What the entries may be, for r features; the window has as many rows as it was made with."""
    m = max(1, length(state, "window"))
    return {
        "gram": Array((matrices, r, r)),
        "b": Array((outputs, r)),
        "ridge": Array((ridges,), low=0.0),
        "yy": Array((outputs,)),
        "zsum": Array((r,)),
        "mass": Number(0.0),
        "window": Array((m, r)),
        "window_c": Array((m, matrices), low=0.0),
        "window_b": Array((m, outputs)),
        "n_window": Count(0, m - 1),  # a full window is emptied at once
    }


def totals(state: State, forgetting: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """``b``, ``yy``, ``zsum`` and ``mass`` with the rows of the window."""
    n = state["n_window"]
    Z, c, beta = state["window"][:n], state["window_c"][:n], state["window_b"][:n]
    fade = forgetting**n
    sums = np.concatenate([beta, c[:, :1]], axis=1).T @ Z  # in one go through the window
    b, zsum = fade * (state["b"] + sums[:-1]), fade * (state["zsum"] + sums[-1])
    counts = np.where(c > 0, c, np.inf)  # a row with c = 0 adds nothing
    yy = fade * (state["yy"] + (beta * (beta / counts)).sum(axis=0))
    return b, yy, zsum, float(fade * (state["mass"] + c[:, 0].sum()))


def flush(state: State, forgetting: float) -> None:
    """Add the rows of the window to A and b."""
    n = state["n_window"]
    if not n:
        return
    state["b"], state["yy"], state["zsum"], state["mass"] = totals(state, forgetting)
    gram, Z = state["gram"].copy(), state["window"][:n]  # a copy, so that a call that fails later can be undone
    for g, c in enumerate(state["window_c"][:n].T):
        # c is seldom anything but 1; a column of zeros is a class that learned none of these rows
        rows = Z if (c == 1).all() else np.sqrt(c)[:, None] * Z
        if c.any():
            _add_products(gram, g, rows)
    require_finite(state["b"], np.einsum("gii->gi", gram))  # which bounds the rest of the matrices
    state["gram"], state["n_window"] = gram, 0
    if forgetting < 1:
        fade = forgetting**n
        gram *= fade
        # Where no row ever points, A is only its ridge; a ridge that fades without end would leave nothing to invert.
        trace = float(np.trace(gram[0]))
        state["ridge"] = np.maximum(state["ridge"] * fade, FLOOR * trace)


#: Entries that are never changed in place, and those that are written to by rows, see :func:`announce`.
REPLACED, BY_ROW = frozenset({"gram", "b", "yy", "zsum", "ridge"}), frozenset({"window", "window_c", "window_b"})


def announce(state: State, n: int) -> None:
    """Tell the undo log which part of the window the next n rows may write to."""
    start, room = state["n_window"], len(state["window"])
    written = slice(start, start + n) if start + n <= room else slice(0, room)
    for name in BY_ROW:
        _undo.rows(state[name], written)


def append(state: State, Z: np.ndarray, c: np.ndarray, y: np.ndarray) -> None:
    """Put rows Z (n, r) with weights c (n,) and targets y (n, k) into the window of least squares, without forgetting.

    Nothing else needs to be learned as long as no weights are needed in between.
    """
    counted = c > 0
    if not counted.all():
        Z, c, y = Z[counted], c[counted], y[counted]
    start = 0
    while start < len(Z):
        n = state["n_window"]
        rows = slice(start, min(len(Z), start + len(state["window"]) - n))
        here = slice(n, n + rows.stop - start)
        state["window"][here], state["window_c"][here] = Z[rows], c[rows, None]
        state["window_b"][here] = c[rows, None] * y[rows]
        state["n_window"] = here.stop
        if here.stop == len(state["window"]):
            flush(state, 1.0)
        start = rows.stop


def _add_products(gram: np.ndarray, g: int, rows: np.ndarray) -> None:
    """``gram[g] += rows' rows``, upper triangle; to Fortran it is the lower one of the transpose."""
    view = gram[g].T
    out = blas.dsyrk(1.0, rows.T, beta=1.0, c=view, lower=1, overwrite_c=1)
    if not np.shares_memory(out, gram):
        gram[g] = out.T


def factor(state: State, g: int, j: int) -> np.ndarray:
    """Lower Cholesky factor R of ``A = gram_g + ridge_j I``, (r, r) Fortran order; the other triangle is undefined."""
    gram, extra = state["gram"][g], float(state["ridge"][j])
    while True:
        A = np.array(gram, order="C")
        if factorise(A, gram.diagonal() + extra):
            return A.T
        extra = more_ridge(gram, extra)


def more_ridge(A: np.ndarray, ridge: float) -> float:
    """The next ridge to try where ``A + ridge I`` is singular to rounding; ValueError where none would help."""
    size = float(np.abs(A.diagonal()).max()) * len(A)
    more = max(10 * ridge, 1e-15 * size, 1e-300)
    if not np.isfinite(more) or not np.isfinite(A).all():
        raise ValueError(LEARNING)
    if ridge > max(10 * size, 1e-290):  # enough for any sum of products z z'
        raise ValueError("state_['gram'] is not a sum of products of features: it has no inverse")
    return more


def widen(state: State, r: int, forgetting: float) -> None:
    """More features: all earlier rows count as 0 in the new ones, which come last."""
    flush(state, forgetting)
    old = state["b"].shape[1]
    m = window_rows(r, forgetting)
    extra = r - old
    state["gram"] = np.pad(state["gram"], ((0, 0), (0, extra), (0, extra)))
    state["b"] = np.pad(state["b"], ((0, 0), (0, extra)))
    state["zsum"] = np.pad(state["zsum"], (0, extra))
    state["window"] = np.zeros((m, r))
    for name in ("window_c", "window_b"):
        state[name] = np.zeros((m, state[name].shape[1]))


def window_cuts(state: State, n: int) -> list[slice]:
    """Cuts of n rows where the window will be full."""
    room = len(state["window"])
    return threads.cuts(n, room, room - state["n_window"])
