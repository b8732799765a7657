"""The step of a clock: times become whole numbers of steps, and places in the day, the week and the year."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..columns.dates import DAY, WEEK, cycles, twice
from ..registry.caller import warn

MONTH = 30.44 * DAY
UNITS = ("rows", "numbers", "seconds", "months")  # what a step is counted in
REGULAR = 0.5  # share of the differences that are one step, or else the times are irregular


@dataclass(frozen=True)
class StepClock:
    """The step of a clock, in rows without times, numbers, seconds since 1970 by the clock on the wall, or months."""

    unit: str
    step: float
    origin: float

    @staticmethod
    def of(times: np.ndarray, dates: bool) -> StepClock:
        """The clock of times (n,) that rise: its step is the difference that most of them have, or the median."""
        gaps = np.diff(times)
        gaps = gaps[gaps > 0]
        if not len(gaps):
            raise ValueError("all times are the same: the time of each row must be later than the one before it")
        values, counts = np.unique(gaps, return_counts=True)
        step = float(values[counts.argmax()]) if counts.max() >= REGULAR * len(gaps) else float(np.median(gaps))
        if dates and np.median(gaps) >= 0.9 * MONTH:
            return StepClock("months", float(max(1, round(float(np.median(gaps)) / MONTH))), 0.0)
        if counts.max() < REGULAR * len(gaps):
            warn(f"times are irregular: each row counts for the nearest multiple of {step:g}, the usual difference")
        return StepClock("seconds" if dates else "numbers", step, float(times[0]))

    def places(self, times: np.ndarray) -> np.ndarray:
        """Times as whole numbers of steps, int64."""
        if self.unit == "months":
            month = np.floor(times / DAY).astype("int64").astype("datetime64[D]").astype("datetime64[M]")
            return np.floor(month.astype("int64") / self.step).astype("int64")
        return np.rint((times - self.origin) / self.step).astype("int64")

    def shifted(self, time: float, steps: np.ndarray) -> np.ndarray:
        """The times that many steps after one, or before it where they are negative."""
        if self.unit != "months":
            return time + steps * self.step
        day = np.datetime64(int(time // DAY), "D")
        month = day.astype("datetime64[M]") + (steps * self.step).astype("int64")
        end = (month + 1).astype("datetime64[D]") - 1
        days = np.minimum(month.astype("datetime64[D]") + (day - day.astype("datetime64[M]")), end)
        return days.astype("int64") * DAY + time % DAY

    @property
    def seasons(self) -> tuple[int, int]:
        """Steps of the shorter season and of the longer one: day and week, week and month, or a year; 1 for none."""
        if self.unit == "months" and 12 % self.step == 0:
            year = int(12 // self.step)
            return year, max(year + year // 2, 4)
        if self.unit == "seconds":
            day = DAY / self.step
            if 2 <= round(day) <= 1440 and abs(day - round(day)) < 1e-6:
                return round(day), 7 * round(day)
            if self.step == DAY:
                return 7, 28
            if self.step == WEEK:
                return 52, 52
        return 1, 48

    def calendar(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hour, weekday or month of times as columns of 0 and 1; waves of the day and the week; waves of the year."""
        none = np.zeros((len(times), 0))
        if self.unit in ("rows", "numbers"):
            return none, none, none
        waves = cycles(times)
        year = np.concatenate([waves[:, 4:], twice(waves[:, 4:])], axis=1)
        if self.unit == "months":
            month = self.places(times) * int(self.step) % 12
            return np.eye(12)[month], none, year
        days = np.floor(times / DAY)
        marks, kept = [], [waves[:, 2:4]] if self.step < WEEK else []
        if self.step < DAY:
            marks.append(np.eye(24)[((times - days * DAY) // 3600).astype("int64")])
            kept.insert(0, waves[:, :2])
        if self.step < WEEK:
            marks.append(np.eye(7)[(days.astype("int64") + 3) % 7])
        return np.concatenate(marks or [none], axis=1), np.concatenate(kept or [none], axis=1), year


def doubled_hour(time: float, last: float, step: float) -> bool:
    """Whether a time repeats one of the hour before because the clock was put back: early on a Sunday, by an hour."""
    days, within = divmod(time, DAY)
    month = int(np.datetime64(int(days), "D").astype("datetime64[M]").astype("int64")) % 12 + 1
    sunday = (int(days) + 3) % 7 == 6
    return step <= 3600 and last - 3600 < time <= last and sunday and within < 4 * 3600 and month in (3, 4, 9, 10, 11)
