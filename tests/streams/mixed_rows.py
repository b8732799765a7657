"""Rows of words, numbers, dates and gaps, and a naive encoder to compare with: a loop that looks at all rows before."""

from __future__ import annotations

import math

import numpy as np

TOWNS = ["Rome", "Oslo", "Bern", "Kyiv", "Lima", "Riga", "Cork", "Metz"]


def rows_and_targets(n, seed=0, towns=8, gaps=0.1):
    """n dictionaries with a number, an integer, two categories, a date and gaps; targets that depend on them."""
    rng = np.random.default_rng(seed)
    rows, y = [], []
    for i in range(n):
        town = TOWNS[rng.integers(min(towns, 8))] if towns <= 8 else f"town {rng.integers(towns)}"
        row = {
            "town": town,
            "size": float(rng.normal(50, 10)),
            "hour": int(rng.integers(24)),
            "open": bool(rng.integers(2)),
            "when": f"2024-{1 + i % 12:02d}-{1 + i % 28:02d} {i % 24:02d}:15",
        }
        for name in list(row):
            if rng.random() < gaps and i:
                row[name] = [None, float("nan"), "", "NA"][rng.integers(4)]
                if rng.random() < 0.5:
                    del row[name]
        rows.append(row)
        y.append((len(town) + 0.1 * (row.get("size") if isinstance(row.get("size"), float) else 0)) * 1.0)
    return rows, np.nan_to_num(np.array(y))


def naive_mean(names, y, i, shrink=10.0):
    """Mean of the target of the rows before i that have the name of row i, shrunk, in deviations of the target."""
    before = np.asarray(y[:i], float)
    if not len(before) or before.std() == 0:
        return 0.0
    mine = before[[name == names[i] for name in names[:i]]]
    p = (mine.sum() + shrink * before.mean()) / (len(mine) + shrink)
    return (p - before.mean()) / before.std()


def naive_scaled(values, i):
    """Number i in deviations from the mean of those up to i; without a gap."""
    seen = np.array([v for v in values[: i + 1] if not math.isnan(v)])
    return 0.0 if seen.std() == 0 else (values[i] - seen.mean()) / seen.std()
