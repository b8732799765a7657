"""A day ahead of half-hourly electricity demand: the forecaster beside naive forecasts and regressors fitted again.

    python benchmarks/forecast.py vic_electricity.csv [--every 48] [--others]

The file has the columns Time (UTC), Demand, Temperature and Holiday (tsibbledata's vic_elec); local time is used. The
last fifth is forecast from midnights. With ``--others``, gradient boosting on the same lags, hour and weekday is fitted
again before each forecast (LightGBM where it is installed, else scikit-learn's).
"""

import argparse
import time

import numpy as np
import pandas as pd

from kernelstream import KernelForecaster, plots
from kernelstream.evaluate import rolling

TEST = 0.2  # part of the rows that is forecast


def load(path):
    frame = pd.read_csv(path)
    local = pd.to_datetime(frame["Time"]).dt.tz_convert("Australia/Melbourne").dt.tz_localize(None)
    frame = pd.DataFrame({"time": local, **{name: frame[name] for name in ("Demand", "Temperature", "Holiday")}})
    return frame.drop_duplicates("time").set_index("time").asfreq("30min").reset_index()


def boosting():
    try:
        from lightgbm import LGBMRegressor

        return {"LightGBM": LGBMRegressor(random_state=0, verbose=-1)}
    except ImportError:
        from sklearn.ensemble import HistGradientBoostingRegressor

        return {"gradient boosting": HistGradientBoostingRegressor(random_state=0)}


def picture(frame, path):
    model = KernelForecaster(48, target="Demand", time="time", known=["Temperature", "Holiday"], random_state=0)
    model.learn(frame.iloc[:-48])
    plots.forecast(frame, model.forecast(future=frame.iloc[-48:]), path, steps=240)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path")
    parser.add_argument("--every", type=int, default=48, help="half hours between two forecasts")
    parser.add_argument("--known", action="store_true", help="temperature and holidays are known in advance")
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--picture", help="draw a forecast of the last day instead")
    args = parser.parse_args()
    frame = load(args.path)
    if args.picture:
        picture(frame.iloc[-10_000:], args.picture)
        return
    start = int((1 - TEST) * len(frame)) // 48 * 48
    known = ["Temperature", "Holiday"] if args.known else None
    model = KernelForecaster(48, target="Demand", time="time", known=known, random_state=0)
    begun = time.process_time()
    result = rolling(model, frame, start, every=args.every, others=boosting() if args.others else None)
    print(f"{result.origins} forecasts, {time.process_time() - begun:.0f} s of processor time")
    print(result)
    quarters = [f"{np.nanmean(part):.3f}" for part in np.array_split(result.held, 4)]
    print("coverage by quarter:", ", ".join(quarters))


if __name__ == "__main__":
    main()
