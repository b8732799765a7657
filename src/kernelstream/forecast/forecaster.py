"""The forecaster: rows of a series are learned as they come, and the next ones are forecast."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from .. import engine as engines
from ..checks import few, one_of, whole
from ..random import seed_from
from ..registry.caller import warn
from ..registry.parameters import WithParameters
from ..state.nested import State, flatten, nest, parts
from ..state.schema import check
from ..state.turns import OwnTurns, in_turn
from ..state.undo import Undo, all_or_nothing
from ..trust.intervals import check_coverage
from . import arrivals, frames, schemas
from . import known as known_columns
from .clock import StepClock
from .frames import Names
from .lags import Layout
from .series import BY_ROW, REPLACED, Series

SIZES = {"small": 100, "medium": 300, "large": 1000}  # random Fourier features
LONGEST = 100_000  # lags, and steps of a horizon
LEARNED = ("_state", "_encoder", "_said", "_made")  # attributes of a model that has learned rows


@dataclass(eq=False, repr=False)
class KernelForecaster(WithParameters):
    r"""The next rows of a series, or of many, learned row by row.

    Ridge regressions on lags, rolling means and the calendar, with random Fourier features and without, say how each
    target differs from its last value, 1, 2, ..., ``horizon`` steps ahead:

    .. math:: \hat y_{t+h} = y_t + u_t \sum_k w_{k,h} W_{k,h}' z_t,

    all from the same sums of rows, which are solved again as rows come: often at first, then once in the longer season
    (a week of hours). They are mixed with the last value and the values of the seasons before by the errors of each at
    each horizon. What is learned of row i at horizon h is learned when row i + h has come.

    Parameters
    ----------
    horizon : int, default=24
        Steps to forecast.
    target : str or list of str, optional
        Columns to forecast; by default, all columns of numbers that have no other part.
    time : str, optional
        Column of times; by default a DatetimeIndex, or the one column of dates. Rows without times are one step apart.
    by : str or list of str, optional
        Columns whose values together are the key of a series. All series are learned together: each in units of its own
        level and spread.
    known : str or list of str, optional
        Columns whose next values are known in advance (a weather forecast, holidays, a price): numbers, words or gaps.
        They are given to ``forecast(future=...)``.
    lags : int or "auto", default="auto"
        Earlier values that a forecast looks at; by default two of the longer seasons (of hours, two weeks), where many
        of them are averaged in bins.
    size : {"small", "medium", "large"}, default="medium"
        100, 300 or 1,000 random Fourier features.
    random_state : int, Generator, RandomState or None
        Seed of the features.
    engine : {"auto", "native", "python"}, default="auto"
        Engine of the encoder of known columns.

    Attributes
    ----------
    state_ : dict
        Everything learned: arrays, numbers and strings.
    targets_ : list of str
        The columns that are forecast.
    season_ : int
        Steps of the shorter season (a day of hours); 1 where there is none.
    keys_ : list of tuple
        The keys of the series, in the order in which they appeared.

    See Also
    --------
    kernelstream.evaluate.rolling : Errors of a forecaster by horizon, beside those of others.
    kernelstream.plots.forecast : A picture of the latest rows and the forecast.

    Notes
    -----
    Times are taken as the clock on the wall shows them. Steps without a row, and missing targets, count as they were
    forecast, and teach nothing; the hour that a clock shows twice in autumn counts once. The intervals follow, for each
    horizon and target, what became of those that were said (adaptive conformal inference [1]_), in units of each series
    and of the place in the season. The shares of the members follow their discounted squared errors [2]_.

    References
    ----------
    .. [1] Gibbs, Candès: Adaptive conformal inference under distribution shift, NeurIPS 2021.
    .. [2] Stock, Watson: Combination forecasts of output growth in a seven-country data set, Journal of
       Forecasting 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import KernelForecaster
    >>> times = np.datetime64("2024-01-01", "h") + np.arange(2000)
    >>> load = 50 + 10 * np.sin(2 * np.pi * np.arange(2000) / 24)
    >>> model = KernelForecaster(horizon=3, random_state=0)
    >>> model.learn({"date": times, "load": load}).shape  # after each row, three steps of one target
    (2000, 3, 1)
    >>> ahead = model.forecast(coverage=0.9)
    >>> ahead["load"].round(1).tolist(), ahead["date"][0].item().isoformat()
    ([58.7, 57.1, 55.0], '2024-03-24T08:00:00')
    """

    horizon: int = 24
    target: Any = None
    time: str | None = None
    by: Any = None
    known: Any = None
    lags: Any = "auto"
    size: str = "medium"
    random_state: Any = None
    engine: str = "auto"

    _turns = OwnTurns()
    _state: Any = field(default=None, init=False)
    _encoder: Any = field(default=None, init=False)

    # ---------------------------------------------------------------- learning
    def fit(self, frame: Any, y: Any = None) -> KernelForecaster:
        """Forget everything, then learn the rows in order; see :meth:`learn`."""
        with self._turns, all_or_nothing(self, fresh=True):
            for name in LEARNED:
                self.__dict__.pop(name, None)
            self._learn(frame)
        return self

    def partial_fit(self, frame: Any, y: Any = None) -> KernelForecaster:
        """Learn the rows in order; see :meth:`learn`."""
        self.learn(frame)
        return self

    def learn(self, frame: Any) -> np.ndarray:
        """Learn the rows in order; returns what was said after each row about the next ones.

        Parameters
        ----------
        frame : data frame, dictionary of columns, list of dictionaries, or array (n, targets)
            Rows of each series in the order of time.

        Returns
        -------
        (n, horizon, targets) array
            [i, h - 1] is the forecast of row i + h after row i: no later row, and no later value of a known column, has
            a part in it. NaN before the step of the clock is known (16 rows of a series with times).
        """
        with self._turns, all_or_nothing(self):
            return self._learn(frame)

    def _learn(self, frame: Any) -> np.ndarray:
        found, fresh = frames.table(frame), self._state is None
        if fresh:
            self._check_parameters()
        names = frames.named(found, self.target, self.time, self.by, self.known) if fresh else self._names()
        times, values, keys = found.times(names), found.values(names), found.keys(names)
        q = known_columns.width(len(names.known))
        if fresh:
            self._state = arrivals.start(names, seed_from(self.random_state), q)
            self._encoder = known_columns.encoder(self.engine) if names.known else None
            if not names.time:
                self._begin(StepClock("rows", 1.0, 0.0))
        state = self._state
        series = arrivals.series_of(state, keys, self._learner(), enter=True)
        z = (
            known_columns.encoded(self._encoder.learn_transform(found.known(names)), q)
            if q
            else np.zeros((len(keys), 0))
        )
        out = np.full((len(keys), self.horizon, len(names.target)), np.nan)
        for i, k in enumerate(series):
            learner, time = self._learner(), float(state["rows"][k]) if times is None else float(times[i])
            clock = None if learner is None else learner.layout.clock
            if not arrivals.is_next(state, k, time, names, clock, self._say):
                out[i] = np.nan if learner is None else state["ahead"][k]
            elif learner is not None and clock is not None:
                out[i] = learner.row(state, k, time, int(clock.places(np.array([time]))[0]), values[i], z[i])
            elif (clock := arrivals.hold(state, (k, time, values[i], z[i]), names.dates)) is not None:
                out[i] = arrivals.learn_held(state, self._begin(clock))
        return out

    def _begin(self, clock: StepClock) -> Series:
        """The clock is known."""
        self._state |= {"unit": clock.unit, "step": clock.step, "origin": clock.origin}
        learner = self._learner()
        assert learner is not None
        self._state |= learner.start()
        learner.enter(self._state, len(self._state["keys"]))
        return learner

    # ---------------------------------------------------------------- forecasts
    @in_turn
    def forecast(self, coverage: float = 0.9, future: Any = None) -> Any:
        """The next rows of every series, with intervals; nothing is learned.

        Parameters
        ----------
        coverage : float, default=0.9
            Share of the targets that the intervals should hold, 0.5 to 0.99.
        future : data frame or as in :meth:`learn`, optional
            The next values of the columns ``known``, with the times and keys of all rows to forecast.

        Returns
        -------
        data frame, or a dictionary of columns where no frame was learned
            For each series and each of the next ``horizon`` times: the columns ``by``, the time, and of each target
            the forecast and the ends of its interval, ``target_low`` and ``target_high``.
        """
        coverage, state, names = check_coverage(coverage), self._learned(), self._names()
        learner = self._learner()
        if learner is None or state["rows"].max() < self.horizon:
            least = max(self.horizon, arrivals.HELD if names.time else 1)
            seen = int(state["rows"].max(initial=0))
            raise arrivals.TooFewRows(
                f"{seen} rows are too few to forecast {self.horizon} steps: learn at least {least} first"
            )
        z = self._future(future, learner, names)
        columns: dict[str, list[Any]] = {}
        for k in np.flatnonzero(state["count"]).tolist():
            ahead, half = learner.ahead(state, k, None if z is None else z[k]), learner.half_widths(state, k, coverage)
            for name, value in zip(names.by, json.loads(state["keys"][k]), strict=True):
                columns.setdefault(name, []).append([value] * self.horizon)
            columns.setdefault(names.time or frames.STEP, []).append(learner.next_times(state, k))
            for c, name in enumerate(names.target):
                low, high = ahead[:, c] - half[:, c], ahead[:, c] + half[:, c]
                for end, at in (("", ahead[:, c]), ("_low", low), ("_high", high)):
                    columns.setdefault(name + end, []).append(at)
        return frames.made(names, {name: np.concatenate(pieces) for name, pieces in columns.items()})

    def _future(self, future: Any, learner: Series, names: Names) -> list[np.ndarray] | None:
        """The next values of the known columns of every series, encoded, (horizon, q) each."""
        if not names.known and future is None:
            return None
        if not names.known or future is None:
            wrong = "there are no columns known in advance" if not names.known else f"there are {few(names.known)}"
            raise ValueError(f"forecast takes future= where, and only where, columns were named with known=: {wrong}")
        state, found = self._state, frames.table(future)
        series, times = arrivals.series_of(state, found.keys(names), learner, enter=False), found.times(names)
        z = known_columns.encoded(self._encoder.transform(found.known(names)), learner.known)
        clock, out = learner.layout.clock, []
        for k, key in enumerate(state["keys"].tolist()):
            own = np.flatnonzero(series == k)
            wanted = clock.places(learner.next_times(state, k))
            at = dict(zip(wanted.tolist() if times is None else clock.places(times[own]).tolist(), own.tolist()))
            lacking = [place for place in wanted.tolist() if place not in at]
            if lacking and state["count"][k]:
                whose = f" of the series {arrivals.shown_key(key)}" if names.by else ""
                raise ValueError(
                    f"future lacks {len(lacking)} of the next {self.horizon} times{whose}: give all of them"
                )
            out.append(z[:0] if lacking else z[[at[place] for place in wanted.tolist()]])
        return out

    # ---------------------------------------------------------------- what is known
    @property
    def targets_(self) -> list[str]:
        """The columns that are forecast."""
        return list(self._names().target)

    @property
    def season_(self) -> int:
        """Steps of the shorter season; 1 where there is none."""
        learner = self._learner() if self._state is not None else None
        if learner is None:
            raise AttributeError("the step of the clock is not known before 16 rows of a series")
        return learner.layout.seasons[0]

    @property
    def keys_(self) -> list[tuple[Any, ...]]:
        """The keys of the series, in the order in which they appeared."""
        return [tuple(json.loads(key)) for key in self._learned()["keys"].tolist()]

    @property
    @in_turn
    def state_(self) -> State:
        """Everything learned, flat."""
        if self._state is None:
            raise AttributeError(f"{type(self).__name__} has no state_ before it has learned a row")
        return flatten(self._state if self._encoder is None else self._state | {"columns": self._encoder.state_})

    @state_.setter
    @in_turn
    def state_(self, state: State) -> None:
        own, encoder = dict(nest(state)), None
        if isinstance(own.get("columns"), dict):
            encoder = known_columns.encoder(self.engine)
            encoder.state_ = own.pop("columns")
        self._state, self._encoder = own, encoder
        self.__dict__.pop("_made", None)

    @in_turn
    def check_state(self) -> None:
        """Raise ValueError where ``state_``, of a file, say, does not fit the parameters, or itself."""
        self._check_parameters()
        state = self._learned()
        schemas.check_start(state)
        check(state, schemas.schema(state, self._learner()))
        if (self._encoder is None) == bool(len(state["known_names"])):
            raise ValueError("state_ must have an encoder where, and only where, columns are known in advance")

    def __sklearn_is_fitted__(self) -> bool:
        return self._state is not None

    @in_turn
    def __getstate__(self) -> Any:
        return {k: v for k, v in super().__getstate__().items() if k not in ("_turns", "_open", "_made")}

    # ---------------------------------------------------------------- the work
    def _check_parameters(self) -> None:
        one_of("size", self.size, tuple(SIZES))
        engines.check(self.engine, False, type(self).__name__)
        for name in ("horizon", "lags"):
            if (value := getattr(self, name)) != "auto" or name == "horizon":
                whole(name, value)
                if value > LONGEST:
                    raise ValueError(f"{name} must be at most {LONGEST:,}, got {value}")
        if self.time is not None and not isinstance(self.time, str):
            raise ValueError(f"time must be the name of a column, got {self.time!r}")
        for name in ("target", "by", "known"):
            frames.names_of(name, getattr(self, name))

    def _learned(self) -> State:
        if self._state is None:
            raise NotFittedError("This KernelForecaster has not learned any row yet: call fit, partial_fit or learn")
        return self._state

    def _names(self) -> Names:
        return arrivals.names_in(self._learned())

    def _learner(self) -> Series | None:
        """What learns into the state, made once; None as long as there is no clock."""
        state, found = self._state, self.__dict__.get("_made")
        if found is None and "unit" in state:
            clock = StepClock(state["unit"], float(state["step"]), float(state["origin"]))
            lags = None if self.lags == "auto" else int(self.lags)
            layout = Layout(clock, lags, SIZES[self.size], int(state["seed"]))
            q = known_columns.width(len(state["known_names"]))
            found = self._made = Series(layout, int(self.horizon), len(state["target"]), q)
        return found

    def _say(self, what: str, text: str) -> None:
        """Warn, once for each ``what``."""
        said = self.__dict__.get("_said", ())
        if what not in said:
            self._said = (*said, what)
            warn(text)

    # ---------------------------------------------------------------- a failed call
    @staticmethod
    def writes(state: State) -> tuple[frozenset[str], frozenset[str]]:
        """Arrays that are replaced by new ones, and those whose changes are announced."""
        return REPLACED | frozenset(arrivals.WAITING), BY_ROW

    def _begin_call(self) -> list[Undo]:
        if self._state is None:
            return []
        undo = Undo(lambda: [(self, part) for part in parts(self._state)])
        undo.begin()
        return [undo]

    def _inside_call(self) -> list[Any]:
        return [] if self._encoder is None else [self._encoder]
