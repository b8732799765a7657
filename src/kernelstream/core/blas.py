"""BLAS for compiled passes, as scipy ships it."""

from __future__ import annotations

from scipy.linalg import cython_blas

from .. import _core

BLAS = _core.Blas(*(cython_blas.__pyx_capi__[name] for name in ("dgemm", "dsyrk", "dtrsm", "sgemm")))
