r"""Ridge regressions of all horizons, several on nested columns, from one factorisation for each target.

.. math:: G = \sum_i w_i z_i z_i', \quad M = \sum_i w_i z_i r_i', \quad G + \lambda I = L L', \quad
          W_k = L_k^{-\top} (L^{-1} M)_k,

with r the differences of the next values to the last one, and k the first columns and rows: those of L factorise the
first columns and rows of G.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

LAM = 30.0  # next to the sum of squares, whose unit is that of the series


def added(
    gram: np.ndarray, moment: np.ndarray, Z: np.ndarray, R: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The sums (m, p, p) and (m, p, H) with rows Z (n, m, p), targets R (n, H, m) and weights (n, m); new arrays."""
    weighted = np.ascontiguousarray((Z * weight[..., None]).transpose(1, 2, 0))
    rows, targets = (np.ascontiguousarray(part.transpose(order)) for part, order in ((Z, (1, 0, 2)), (R, (2, 0, 1))))
    return gram + weighted @ rows, moment + weighted @ targets


def solved(gram: np.ndarray, moment: np.ndarray, ends: tuple[int, ...], lam: float = LAM) -> np.ndarray:
    """Weights (len(ends), m, p, H), 0 from the end of each on."""
    weights = np.zeros((len(ends), *moment.shape))
    for c in range(len(gram)):
        lower = cholesky(gram[c] + lam * np.eye(gram.shape[1]), lower=True, check_finite=False)
        half = solve_triangular(lower, moment[c], lower=True, check_finite=False)
        for k, end in enumerate(ends):
            part = np.ascontiguousarray(lower[:end, :end])
            weights[k, c, :end] = solve_triangular(part, half[:end], trans="T", lower=True, check_finite=False)
    return weights
