"""Arrays that know the names of their columns."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

SHOWN = 10  # rows, and columns of each, that are printed


class Named(np.ndarray):
    """Numbers about columns, (d,) or (n, d): an array that prints with the names, and can be drawn.

    Attributes
    ----------
    names : tuple of str
        Names of the d columns; empty for what is computed from such an array.

    Examples
    --------
    >>> from kernelstream.named import Named
    >>> Named([0.25, 0.75], ["size", "town"])
    town 0.75, size 0.25
    """

    names: tuple[str, ...]

    def __new__(cls, values: Any, names: Any) -> Named:
        made = np.array(values, np.float64).view(cls)
        made.names = tuple(map(str, names))
        return made

    def __array_finalize__(self, other: Any) -> None:
        self.names = ()

    def __repr__(self) -> str:
        if not self.names:
            return repr(np.asarray(self))
        rows = np.asarray(self).reshape(-1, len(self.names))
        lines = []
        for row in rows[:SHOWN]:
            order = np.argsort(-np.abs(row), kind="stable")
            cells = [f"{self.names[j]} {row[j]:.3g}" for j in order[:SHOWN]]
            lines.append(", ".join(cells + ["..."] * (len(order) > SHOWN)))
        return "\n".join(lines + ["..."] * (len(rows) > SHOWN))

    def __str__(self) -> str:
        return repr(self) if self.names else str(np.asarray(self))

    def to_frame(self) -> Any:
        """A pandas data frame with a column for each name, and a row for each row."""
        import pandas as pd

        return pd.DataFrame(np.asarray(self).reshape(-1, len(self.names)), columns=list(self.names))

    def plot(self, path: Any = None) -> Any:
        """Draw a bar for each column, of several rows the mean of their sizes; see :func:`kernelstream.plots.bars`."""
        values = np.asarray(self)
        values = np.abs(values).mean(axis=0) if values.ndim == 2 and len(values) > 1 else values.reshape(-1)
        plots: Any = import_module("kernelstream.plots")  # which draws models, and knows this module
        return plots.bars(values, self.names, path)


def named(values: np.ndarray, model: Any) -> Named:
    """Numbers about the columns of a model's rows, with their names, or x0, x1, ... where they have none."""
    names = getattr(model, "feature_names_in_", None)
    return Named(values, [f"x{j}" for j in range(values.shape[-1])] if names is None else names)
