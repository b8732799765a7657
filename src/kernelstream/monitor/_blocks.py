"""Detectors that look at rows in blocks of a fixed length, however they come."""

from __future__ import annotations

from typing import Any

import numpy as np

BLOCK = 32  # rows


class Detector:
    """Collects rows into blocks of 32; everything it knows is in ``state``, a flat dict of arrays.

    A detector supplies ``_test(block)``, which takes a full block and returns how many rows before its end a change
    began, or None where it finds none.
    """

    state: dict[str, np.ndarray]

    def _test(self, block: np.ndarray) -> int | None:
        raise NotImplementedError

    @property
    def n_rows(self) -> int:
        """Rows seen so far."""
        return int(self.state["rows"][0])

    def learn(self, values: Any) -> list[tuple[int, int]]:
        """Take the next rows.

        Parameters
        ----------
        values : (n,) array, or (n, d) for inputs

        Returns
        -------
        list of (row, since)
            For every change: how many rows had been seen when it was found, and the row where it seems to begin.
        """
        values = self._checked(values)
        found, start = [], 0
        while start < len(values):
            kept = self.state["kept"]
            stop = start + BLOCK - len(kept)
            block = np.concatenate([kept, values[start:stop]]) if len(kept) else values[start:stop]
            self.state["rows"][0] += len(values[start:stop])
            start = stop
            if len(block) < BLOCK:
                self.state["kept"] = np.array(block)
                break
            if kept.shape != block[:0].shape:  # an array of before stays: another one has to be looked for
                self.state["kept"] = block[:0]
            ago = self._test(block)
            if ago is not None:
                found.append((self.n_rows, max(self.n_rows - ago, 0)))
        return found

    def _checked(self, values: Any) -> np.ndarray:
        """Losses as numbers."""
        values = np.asarray(values, np.float64)
        if values.ndim != 1 or not np.isfinite(values).all() or (values < 0).any():
            raise ValueError(f"losses must be finite numbers >= 0 of shape (n,), got shape {values.shape}")
        return values
