"""BLAS and LAPACK for compiled passes, as scipy ships them."""

from __future__ import annotations

from typing import Any

from scipy.linalg import cython_blas, cython_lapack

from .. import _core

BLAS = _core.Blas(*(cython_blas.__pyx_capi__[name] for name in ("dgemm", "dsyrk", "dtrsm", "sgemm")))


def _cholesky(make: Any, letter: str) -> Any:
    """Triangular factors of matrices in one type of numbers, with BLAS of that letter."""
    capsules = [cython_blas.__pyx_capi__[letter + name] for name in ("gemm", "syrk", "trsm", "trsv")]
    return make(*capsules, cython_lapack.__pyx_capi__[letter + "potrf"])


CHOLESKY = {"f": _cholesky(_core.CholeskySingle, "s"), "d": _cholesky(_core.CholeskyDouble, "d")}  # by type of numbers
