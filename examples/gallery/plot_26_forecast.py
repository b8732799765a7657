"""
The next day, and what the weather does to it
=============================================

``KernelForecaster`` learns half-hourly demand, with temperature as a column whose next values are known in advance. It
then forecasts the same day for the weather that came and for a day that is six degrees colder.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import KernelForecaster, plots

DAY = 48
rng = np.random.default_rng(0)
n = 64 * DAY
times = np.datetime64("2024-01-08", "m") + 30 * np.arange(n)
hour, weekday = np.arange(n) / 2 % 24, np.arange(n) // DAY % 7
weather = np.convolve(rng.normal(size=n + 4 * DAY), 0.97 ** np.arange(4 * DAY + 1), "valid")
warmth = 8 + weather - 3 * np.cos(2 * np.pi * (hour - 3) / 24)
load = 50 - 12 * np.cos(2 * np.pi * (hour - 4) / 24) + 5 * np.sin(4 * np.pi * hour / 24) - 8 * (weekday >= 5)
load = load + 1.5 * np.maximum(18 - warmth, 0) + rng.normal(size=n)

frame = {"date": times, "load": load, "warmth": warmth}
past = {name: cells[:-DAY] for name, cells in frame.items()}
next_day = {name: frame[name][-DAY:] for name in ("date", "warmth")}
model = KernelForecaster(horizon=DAY, target="load", known="warmth", size="small", random_state=0).fit(past)
ahead = model.forecast(coverage=0.9, future=next_day)
colder = model.forecast(coverage=0.9, future=next_day | {"warmth": next_day["warmth"] - 6})

fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
plots.forecast(frame, ahead, steps=3 * DAY, ax=axes[0])
axes[0].set(title="The weather that came: forecast and demand", ylabel="demand")
plots.forecast(past, colder, steps=3 * DAY, ax=axes[1])
axes[1].set(title=f"Six degrees colder: {np.mean(colder['load'] - ahead['load']):.0f} more (truly 9)")
plt.show()
