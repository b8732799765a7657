r"""What a series looks like from one of its rows: lags, rolling means and the calendar, in units of the series.

.. math:: x_t = \left(\frac{\bar y_{t-B} - y_t}{u_t}\ \text{for the bins } B \text{ of lags},\
          \frac{y_t - \bar y_t}{u_t},\ \text{hour, weekday},\ 1\right), \qquad
          z_t = (x_t,\ \cos(\Omega's_t + b),\ \text{year}),

where s are the lags of one season, the level and the waves of day and week. A ridge regression on the first columns of
z is one on fewer of them: without the year, or without the random Fourier features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..random import SeedStream, generator
from .clock import StepClock

MAX_BINS = 336  # bins of lags where these are chosen; two weeks of hours
MAX_SINGLE = 48  # lags that have a bin of their own whatever the step
NO_SEASON = 24  # lags that the Fourier features see where there is no season
WIDTH, AMPLITUDE = 0.4, 4.0  # of the Fourier features: frequencies and the root of their sum of squares


@dataclass(frozen=True)
class Layout:
    """The columns of a clock, for so many Fourier features and lags (None: found)."""

    clock: StepClock
    lags: int | None
    components: int
    seed: int

    @cached_property
    def seasons(self) -> tuple[int, int]:
        """Steps of the two seasons; no longer than the window."""
        short, long = self.clock.seasons
        most = long if self.lags is None else self.lags
        return min(short, most), min(long, most)

    @cached_property
    def edges(self) -> np.ndarray:
        """Lags at which bins start, the first one is 0, and the length of the window at the end."""
        short, long = self.seasons
        if self.lags is not None:
            return np.arange(self.lags + 2)
        length = 2 * long
        width = -(-length // MAX_BINS)
        single = length if width == 1 else min(short, MAX_SINGLE) + 1
        return np.unique(np.append(np.arange(single), [*range(single, length, width), length]))

    @property
    def window(self) -> int:
        """Rows that a forecast looks at."""
        return int(self.edges[-1])

    @cached_property
    def near(self) -> int:
        """Bins that the Fourier features see: those of one season."""
        short = self.seasons[0] if self.seasons[0] > 1 else NO_SEASON
        return int(np.searchsorted(self.edges[1:-1], short, side="right"))

    @cached_property
    def ends(self) -> tuple[int, int, int]:
        """Columns of the three ridge regressions, one inside the other."""
        marks, _, year = self.clock.calendar(np.zeros(1))
        linear = len(self.edges) - 2 + 1 + marks.shape[1] + 1
        return linear, linear + self.components, linear + self.components + year.shape[1]

    @cached_property
    def fourier(self) -> tuple[np.ndarray, np.ndarray]:
        """Frequencies and phases."""
        rng = generator(self.seed, SeedStream.MAP)
        d = self.near + 1 + self.clock.calendar(np.zeros(1))[1].shape[1]
        frequencies = WIDTH * rng.normal(size=(d, self.components))
        frequencies[: self.near] *= np.sqrt(3 / max(self.near, 1))
        return frequencies, rng.uniform(0, 2 * np.pi, self.components)

    def columns(self, windows: np.ndarray, unit: np.ndarray, level: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The columns z of rows.

        Parameters
        ----------
        windows : (n, window, m) array
            The values of m targets by lag; 0 is the row itself.
        unit, level : (n, m) arrays
            The usual seasonal difference and the mean so far.
        times : (n,) array

        Returns
        -------
        (n, m, p) array
        """
        n, _, m = windows.shape
        marks, waves, year = self.clock.calendar(times)
        means = np.add.reduceat(windows[:, 1:], self.edges[1:-1] - 1, axis=1) / np.diff(self.edges[1:])[:, None]
        last = windows[:, 0]
        lags = ((means - last[:, None]) / unit[:, None]).transpose(0, 2, 1)
        high = ((last - level) / unit)[..., None]
        frequencies, phases = self.fourier
        seen = np.concatenate([lags[..., : self.near], high, _each(waves, m)], axis=2)
        cosines = np.cos(seen.reshape(n * m, -1) @ frequencies + phases).reshape(n, m, -1)
        cosines *= AMPLITUDE * np.sqrt(2 / max(self.components, 1))
        return np.concatenate([lags, high, _each(marks, m), np.ones((n, m, 1)), cosines, _each(year, m)], axis=2)


def _each(rows: np.ndarray, m: int) -> np.ndarray:
    """Columns (n, c) of a row for each of m targets, (n, m, c)."""
    return np.broadcast_to(rows[:, None], (len(rows), m, rows.shape[1]))
