"""Has the distribution of the rows changed? A kernel two-sample test of the last rows against those before."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import special
from scipy.linalg import lapack

from ..random import SeedStream, generator, seed_from
from ._blocks import BLOCK, Detector

FREQUENCIES = 16  # w; there are twice as many features
FIRST = 8  # blocks from which scales and the width of the kernel are taken
LEAST_BLOCKS = 16  # blocks that a window is compared with, at least
RIDGE = 0.02  # added to variances of at most 1/2: a feature that hardly moves has no normal mean, and must not decide
FALSE_ALARMS_PER_ROW = 1e-9  # false alarms that are allowed per row, by the law of normal means


class KernelTwoSample(Detector):
    r"""Has the distribution of the rows changed? Mean random Fourier features of the last rows and of all before.

    .. math:: T^2 = \frac{n m}{n + m} (\bar z_n - \bar z_m)' S^{-1} (\bar z_n - \bar z_m), \qquad
              z(x) = (\cos w_j'x, \sin w_j'x)_j

    is the kernel two-sample statistic of random features measured in their covariance S (Hotelling's [1]_): under no
    change :math:`T^2 (n + m - k - 1) / (k (n + m - 2))` has an F distribution with k and n + m - k - 1 degrees of
    freedom once the means are normal, whatever the rows are. Columns are in units of their deviation in the first 256
    rows and the kernel is as wide as the median distance there. The last ``window`` rows are compared with all others
    since the last change at the end of every block of 32; the statistic may go wrong once in 10^9 rows by that law,
    which leaves room for tails that are not quite normal. The rows must be independent for that: where they come in
    runs, as in a sorted file, each run is a change. With a row of more columns than before everything is reset.

    Parameters
    ----------
    window : int, default=256
        A multiple of 32.
    random_state : int, default=0
        Seed of the frequencies.

    References
    ----------
    .. [1] Chwialkowski, Ramdas, Sejdinovic, Gretton: Fast two-sample testing with analytic representations of
       probability measures, NeurIPS 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream.monitor import KernelTwoSample
    >>> X = np.random.default_rng(0).normal(size=(4000, 5))
    >>> X[3000:, 2] *= 2
    >>> [(row, since)] = KernelTwoSample().learn(X)
    >>> 3000 < row <= 3300
    True
    """

    def __init__(self, window: int = 256, random_state: Any = 0):
        if window < BLOCK or window % BLOCK:
            raise ValueError(f"window must be a multiple of {BLOCK} rows, got {window!r}")
        self.window = window
        self.seed = seed_from(random_state)
        self.state = {"rows": np.zeros(1, np.int64), "kept": np.zeros((0, 0)), "first": np.zeros((0, 0))}
        self.reset()

    def reset(self) -> None:
        """Forget the rows, as after a change; the kernel stays."""
        k, blocks = 2 * FREQUENCIES, self.window // BLOCK
        # of all rows before the window, and of each block in it, oldest first: number, sums of features and of products
        self.state |= {
            "reference": np.zeros(1 + k + k * k),
            "last": np.zeros((blocks, 1 + k + k * k)),
        }

    def _checked(self, values: Any) -> np.ndarray:
        """Rows (n, d); once the kernel is known, their features."""
        if sp.issparse(values):
            values = values.toarray()
        values = np.ascontiguousarray(values, np.float64)
        if values.ndim != 2 or not np.isfinite(values).all():
            raise ValueError(f"rows must be finite numbers of shape (n, d), got shape {values.shape}")
        width = self.state["kept"].shape[1]
        if values.shape[1] < width:
            raise ValueError(f"rows have {values.shape[1]} columns, but those before had {width}")
        if values.shape[1] > width:  # the first rows, or a stream with more columns than before: start again
            self.state = {"rows": self.state["rows"], "kept": values[:0], "first": values[:0]}
            self.reset()
        return values

    def _test(self, block: np.ndarray) -> int | None:
        state = self.state
        if "W" not in state:
            state["first"] = np.concatenate([state["first"], block])
            if len(state["first"]) == FIRST * BLOCK:
                state["W"] = self._frequencies(state["first"])
                rows, state["first"] = state["first"], state["first"][:0]
                for start in range(0, len(rows), BLOCK):
                    self._compare(rows[start : start + BLOCK])
            return None
        return self._compare(block)

    def _frequencies(self, rows: np.ndarray) -> np.ndarray:
        """(d, FREQUENCIES) normal numbers, in units of the columns and the median distance."""
        deviation = rows.std(axis=0)
        scaled = np.divide(rows, deviation, out=np.zeros_like(rows), where=deviation > 0)
        half = len(rows) // 2
        norms = (scaled**2).sum(axis=1)
        squares = norms[:half, None] + norms[None, half:] - 2 * scaled[:half] @ scaled[half:].T
        width = np.sqrt(max(np.median(squares), 1e-12))
        W = generator(self.seed, SeedStream.MAP).standard_normal((rows.shape[1], FREQUENCIES)) / width
        return np.divide(W, deviation[:, None], out=np.zeros_like(W), where=deviation[:, None] > 0)

    def _compare(self, block: np.ndarray) -> int | None:
        statistic, rest = self._hotelling(block)
        if not statistic or special.fdtrc(2.0 * FREQUENCIES, rest, statistic) > FALSE_ALARMS_PER_ROW * BLOCK:
            return None
        self.reset()
        return self.window

    def _hotelling(self, block: np.ndarray) -> tuple[float, float]:
        """The statistic with a block of rows, as an F, and its second degrees of freedom; 0 while there are too few."""
        W, reference, last = (self.state[name] for name in ("W", "reference", "last"))
        angles, k = block @ W, 2 * FREQUENCIES
        Z = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
        reference += last[0]
        last[:-1] = last[1:].copy()
        last[-1, 0], last[-1, 1 : k + 1], last[-1, k + 1 :] = BLOCK, Z.sum(axis=0), (Z.T @ Z).ravel()
        if last[0, 0] == 0 or reference[0] < LEAST_BLOCKS * BLOCK:
            return 0.0, 0.0
        window = last.sum(axis=0)
        n, m = reference[0], window[0]
        means = np.array([reference[1 : k + 1] / n, window[1 : k + 1] / m])
        S = (reference + window)[k + 1 :].reshape(k, k) - means.T @ (means * [[n], [m]])
        S /= n + m - 2
        S.flat[:: k + 1] += RIDGE
        difference = means[0] - means[1]
        T2 = n * m / (n + m) * difference @ lapack.dposv(S, difference)[1]
        rest = n + m - k - 1
        return float(T2 * rest / (k * (n + m - 2))), float(rest)
