"""Kernel ridge in a learned metric by its formulas, for the naive programs of the tests."""

import math

import numpy as np


def drawn_in(z):
    """A number of deviations, of which those beyond 3 count by their logarithm."""
    return math.copysign(3 + math.log1p(abs(z) - 3), z) if abs(z) > 3 else z


def standard(rows, all_rows, weight=None):
    """Columns in deviations from their means over all rows, one number after the other."""
    middle = np.average(all_rows, axis=0, weights=weight)
    unit = np.sqrt(np.average((all_rows - middle) ** 2, axis=0, weights=weight))
    unit[unit == 0] = 1.0
    return np.array([[drawn_in(z) for z in (x - middle) / unit] for x in rows])


def mixture(share, Z, T, U, V):
    """share exp(-|z - t|) + (1 - share) exp(-|u - v|_1), of all pairs of rows."""
    near = np.exp(-np.linalg.norm(Z[:, None].astype(float) - T, axis=2))
    return share * near + (1 - share) * np.exp(-np.abs(U[:, None].astype(float) - V).sum(axis=2))
