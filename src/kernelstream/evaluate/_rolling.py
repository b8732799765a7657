"""Forecasters over a series: forecast from many of its rows, each with what came before, and compare with what came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from ..checks import fraction, is_whole, whole
from ..forecast.frames import columns_of, table
from ..progress import Bar

Errors = dict[str, dict[str, np.ndarray]]


@dataclass(frozen=True)
class RollingResult:
    """Errors by horizon.

    Attributes
    ----------
    errors : dict of name: dict of measure: (horizon,) array
        "mse", "mae", "mase" (the absolute error, divided by that of the seasonal naive forecast one step ahead in the
        rows before the start), and "coverage" of the model's intervals.
    origins : int
        Rows that were forecast from.
    held : (origins, horizon) array
        Whether targets were in the intervals, their share where there are several.
    """

    errors: Errors
    origins: int
    held: np.ndarray = field(repr=False)

    def __str__(self) -> str:
        lines = [f"{'':16}{'MSE':>12}{'MAE':>12}{'MASE':>10}{'coverage':>10}"]
        for name, own in self.errors.items():
            means = [f"{np.nanmean(own[measure]):.4g}" for measure in ("mse", "mae", "mase")]
            share = f"{np.nanmean(own['coverage']):.3f}" if "coverage" in own else ""
            lines.append(f"{name:16}{means[0]:>12}{means[1]:>12}{means[2]:>10}{share:>10}")
        return "\n".join(lines)


def rolling(
    model: Any,
    frame: Any,
    start: float = 0.7,
    horizon: int | None = None,
    every: int | None = None,
    *,
    season: int | None = None,
    coverage: float = 0.9,
    others: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> RollingResult:
    """Errors of a forecaster by horizon, beside naive forecasts and regressors on lags that are fitted again each time.

    Parameters
    ----------
    model : KernelForecaster
        A copy of it learns; its parameter ``time`` must be given, or found, as in ``learn``.
    frame : data frame, or as in ``learn``
        One series: rows in the order of time, without gaps between them.
    start : float or int, default=0.7
        The part of the rows, or their number, before the first forecast.
    horizon : int, optional
        Steps to forecast; by default those of the model.
    every : int, optional
        Rows between two forecasts; by default a season.
    season : int, optional
        Steps of the seasonal naive forecast; by default what the model has found.
    coverage : float, default=0.9
        Of the intervals.
    others : dict of name: regressor, optional
        Regressors of scikit-learn's kind: one step ahead from the lags of a season and those of six seasons before,
        time of day and weekday, further ones from its own forecasts; fitted to all rows before each forecast.
    progress : bool, optional
        Whether to show a bar; by default on a terminal.

    Returns
    -------
    RollingResult

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import KernelForecaster
    >>> from kernelstream.evaluate import rolling
    >>> y = np.sin(2 * np.pi * np.arange(1200) / 24) + 0.1 * np.random.default_rng(0).normal(size=1200)
    >>> dates = np.datetime64("2024-01-01", "h") + np.arange(1200)
    >>> result = rolling(KernelForecaster(horizon=12, size="small", random_state=0), {"date": dates, "y": y})
    >>> result.origins, bool(result.errors["model"]["mse"].mean() < result.errors["seasonal naive"]["mse"].mean())
    (15, True)
    """
    model = clone(model)
    H = model.horizon if horizon is None else whole("horizon", horizon)
    model.set_params(horizon=H)
    columns = columns_of(frame)
    n = table(columns).cells.n
    first = int(start) if is_whole(start) else int(n * fraction("start", start))
    if not 0 < first < n - H:
        raise ValueError(f"start={start!r} of {n} rows leaves no row to forecast from, or none to learn before")
    model.learn(_rows(columns, 0, first))
    names = model._names()
    if names.by:
        raise ValueError("rolling takes one series: select the rows of a key")
    season = model.season_ if season is None else whole("season", season)
    every = season if every is None else whole("every", every)
    values = table(columns).values(names)
    kinds = {name: _OnLags(est, table(columns).times(names), season) for name, est in (others or {}).items()}
    scale = np.nanmean(np.abs(values[season:first] - values[: first - season]), axis=0)
    origins = range(first, n - H + 1, every)
    said: dict[str, list[np.ndarray]] = {name: [] for name in ("model", "naive", "seasonal naive", *kinds)}
    held = []
    with Bar(progress, "rolling", "forecasts") as bar:
        for done, at in enumerate(origins):
            if done:
                model.learn(_rows(columns, at - every, at))
            future = {name: columns[name][at : at + H] for name in (names.time, *names.known) if name}
            ahead = model.forecast(coverage, future if names.known else None)
            said["model"].append(_stacked(ahead, names.target, ""))
            truth, low, high = values[at : at + H], *(_stacked(ahead, names.target, end) for end in ("_low", "_high"))
            held.append(np.where(np.isnan(truth), np.nan, (low <= truth) & (truth <= high)))
            said["naive"].append(np.repeat(values[at - 1 : at], H, axis=0))
            said["seasonal naive"].append(values[at - season + np.arange(H) % season])
            for name, regressor in kinds.items():
                said[name].append(regressor.forecast(values, at, H))
            bar.update(done + 1, total=len(origins))
    truths = np.stack([values[at : at + H] for at in origins])
    errors = {name: _measured(np.stack(made) - truths, scale) for name, made in said.items()}
    errors["model"]["coverage"] = np.nanmean(held, axis=(0, 2))
    return RollingResult(errors, len(origins), np.nanmean(held, axis=2))


def _rows(columns: dict[str, Any], start: int, stop: int) -> dict[str, Any]:
    return {name: cells[start:stop] for name, cells in columns.items()}


def _stacked(ahead: Any, targets: tuple[str, ...], end: str) -> np.ndarray:
    return np.stack([np.asarray(ahead[name + end], np.float64) for name in targets], axis=1)


def _measured(errors: np.ndarray, scale: np.ndarray) -> dict[str, np.ndarray]:
    """Measures by horizon of errors (origins, H, m)."""
    absolute = np.abs(errors)
    found = {"mse": errors**2, "mae": absolute, "mase": absolute / scale}
    return {name: np.nanmean(each, axis=(0, 2)) for name, each in found.items()}


class _OnLags:
    """A regressor one step ahead on lags, hour and weekday; further steps from its own forecasts."""

    def __init__(self, est: Any, times: np.ndarray | None, season: int):
        self.est, self.times, self.season = est, times, season
        self.lags = np.array([*range(1, season + 1), *(k * season for k in range(2, 8))])

    def _columns(self, y: np.ndarray, at: np.ndarray) -> np.ndarray:
        lags = y[at[:, None] - self.lags]
        if self.times is None:
            return lags
        days, within = np.divmod(self.times[at], 86400.0)
        return np.column_stack([lags, within, (days + 3) % 7])

    def forecast(self, values: np.ndarray, at: int, horizon: int) -> np.ndarray:
        """Fit to the rows before ``at``, and forecast the next ones, (horizon, targets)."""
        out = np.empty((horizon, values.shape[1]))
        for c in range(values.shape[1]):
            y = np.append(values[:at, c], np.zeros(horizon))
            rows = np.arange(self.lags[-1], at)
            X = self._columns(y, rows)
            known = np.isfinite(X).all(axis=1) & np.isfinite(y[rows])
            est = clone(self.est).fit(X[known], y[rows][known])
            for h in range(horizon):
                y[at + h] = est.predict(self._columns(y, np.array([at + h])))[0]
            out[:, c] = y[at:]
        return out
