"""The state of a forecaster, and what a row changes in it.

Every series (a key) has a ring of its latest steps. A row enters its ring and is forecast from. When a block of rows
has come and, of the last of them, all the horizon, members are judged by these rows, then the rows are learned: for all
series the same sums, members and intervals, in units of each. Intervals are judged by each row: what was said of it has
waited. What a row does depends on the rows before it alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..state import undo
from ..state.nested import State
from ..trust.intervals import LEVELS, between
from . import known, mix, solve, widths
from .lags import Layout

NAIVE = 3  # members that need no learning: the last value, the season before, the longer season before

FAR = 10.0  # times the usual difference that one counts for
SURE = 30  # differences after which that is so
FASTEST = 0.5  # rows since the last solution, as a part of all before
KNOWN = ("known_gram", "known_moment", "known_weights", "known_before")
CHANGED = ("gram", "moment", "weights", "before", "squares", "mixed")
REPLACED = frozenset((*CHANGED, *widths.ENTRIES, *KNOWN))  # by new arrays
RINGS = ("values", "seen", "units", "levels", "known", "serial")
BY_ROW = frozenset((*RINGS, "said", "halves", "ahead"))  # entries whose changes are announced


@dataclass(frozen=True)
class Series:
    """Functions of a state whose clock is known; the parameters and what follows from the clock."""

    layout: Layout
    horizon: int
    targets: int
    known: int  # encoded columns

    @property
    def block(self) -> int:
        """Rows that are learned together."""
        return min(max(self.layout.seasons[0], 7), 24)

    @property
    def ring(self) -> int:
        """Steps of a series that are kept."""
        return self.layout.window + self.horizon + self.block

    @property
    def members(self) -> int:
        """Forecasts that are mixed: those that need no learning, the ridge regressions, and with known columns."""
        return NAIVE + len(self.layout.ends) + bool(self.known)

    @cached_property
    def seasonal(self) -> np.ndarray:
        """Lags of the values that the naive members say, (NAIVE, H)."""
        ahead, (short, long) = np.arange(1, self.horizon + 1), self.layout.seasons
        return np.stack([0 * ahead, *(s * -(-ahead // s) - ahead for s in (short, long))])

    # ---------------------------------------------------------------- a state
    def shared(self) -> dict[str, tuple[int, ...]]:
        """Shapes of what all series have in common."""
        m, H, p, k = self.targets, self.horizon, self.layout.ends[-1], known.count(self.known)
        shapes: dict[str, tuple[int, ...]] = {
            "gram": (m, p, p),
            "moment": (m, p, H),
            "squares": (self.members, H, m),
            "mixed": (m, p, H),
        }
        shapes |= dict.fromkeys(("weights", "before"), (len(self.layout.ends), m, p, H))
        return (
            shapes
            | {name: value.shape for name, value in widths.start(H, m, self.layout.seasons[0]).items()}
            | {"known_gram": (H, k, k)}
            | dict.fromkeys(KNOWN[1:], (H, k, m))
        )

    def start(self) -> State:
        """The entries of a model that knows its clock and no series."""
        state: State = {name: np.zeros(shape) for name, shape in self.shared().items()}
        state |= widths.start(self.horizon, self.targets, self.layout.seasons[0])
        state |= {name: np.zeros((0, *shape), kind) for name, (shape, kind) in self.entries().items()}
        return state | {"absorbed": 0.0, "due": float(self.block), "solved_at": 0}

    def entries(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Shapes and types of what a series has."""
        m, R, H = self.targets, self.ring, self.horizon
        shapes: dict[str, Any] = dict.fromkeys(("values", "seen", "units", "levels"), ((R, m), "float64"))
        shapes |= {"known": ((R, self.known), "float64"), "serial": ((R,), "int64")}
        shapes |= {"count": ((), "int64"), "last_place": ((), "int64"), "last_time": ((), "float64")}
        shapes |= {"said": ((H, H, m), "float64"), "halves": ((H, len(LEVELS), H, m), "float64")}
        shapes |= {"moments": ((4, m), "float64"), "since": ((m,), "int64"), "ahead": ((H, m), "float64")}
        return shapes

    def enter(self, state: State, series: int) -> None:
        """Make room for so many series in all."""
        for name, (shape, kind) in self.entries().items():
            state[name] = np.concatenate([state[name], np.zeros((series - len(state[name]), *shape), kind)])

    # ---------------------------------------------------------------- a row
    def row(self, state: State, k: int, time: float, place: int, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Enter a row of series k, with gaps (NaN) or without, and forecast from it, (H, m)."""
        if state["count"][k]:
            missing = place - int(state["last_place"][k]) - 1
            if missing > self.ring:  # all that is known is too old
                undo.rows(state["seen"], (k, slice(None)))
                state["seen"][k] = 0.0
                state["count"][k] += missing - self.ring
                state["since"][k] += missing - self.ring
            for step in range(-min(missing, self.ring), 0):
                before = self.layout.clock.shifted(time, np.array([step]))[0]
                state["last_place"][k] = place + step
                self._step(state, k, before, np.full(self.targets, np.nan), self._known_before(state, k))
        state["last_place"][k] = place
        return self._step(state, k, time, y, z)

    def _step(self, state: State, k: int, time: float, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        seen = ~np.isnan(y)
        y = np.where(seen, y, self._guess(state, k))
        n = int(state["count"][k])
        self._enter_value(state, k, n, y, seen, z)
        state["t"] += 1
        state["count"][k], state["last_time"][k] = n + 1, time
        short = self.layout.seasons[0]
        self._judge(state, k, n)
        if n + 1 == short and short < self.layout.window:
            self._fill(state, k, short)
        if (n + 1) % self.block == 0 and n + 1 >= short + self.horizon + self.block:
            self._learn_block(state, k, n, time)
        made, slot = self.ahead(state, k, None), (k, n % self.horizon)
        for name, waits in (("said", made), ("halves", self._halves(state, k))):
            undo.rows(state[name], slot)
            state[name][slot] = waits
        state["since"][k] = np.where(seen, 0, state["since"][k] + 1)
        undo.rows(state["ahead"], k)
        state["ahead"][k] = np.where(seen, made, state["ahead"][k])
        return made

    def _guess(self, state: State, k: int) -> np.ndarray:
        """What stands for missing targets (m,): the forecasts made when they were last seen, then the season before."""
        n, since = int(state["count"][k]), state["since"][k]
        if n == 0:
            return np.zeros(self.targets)
        of_row = state["ahead"][k][np.minimum(since, self.horizon - 1), np.arange(self.targets)]
        return np.where(since < self.horizon, of_row, state["values"][k, (n - self.layout.seasons[0]) % self.ring])

    def _enter_value(self, state: State, k: int, n: int, y: np.ndarray, seen: np.ndarray, z: np.ndarray) -> None:
        short, slot = self.layout.seasons[0], n % self.ring
        values, moments = state["values"][k], state["moments"][k]
        if n:
            back = (n - (short if n >= short else 1)) % self.ring
            usual = np.where(moments[0] >= SURE, moments[1] / np.maximum(moments[0], 1), np.inf)
            square = np.minimum((y - values[back]) ** 2, FAR**2 * np.where(usual > 0, usual, np.inf))
            both = seen & (state["seen"][k, back] > 0)
            moments[:2] += both * np.stack([np.ones_like(square), square])
        moments[2:] += seen * np.stack([np.ones_like(y), y])
        for name in RINGS:
            undo.rows(state[name], (k, slot))
        unit = 2 * np.sqrt(moments[1] / np.maximum(moments[0], 1))
        state["values"][k, slot], state["seen"][k, slot] = y, seen
        state["units"][k, slot] = np.where(unit > 0, unit, 1.0)
        state["levels"][k, slot] = moments[3] / np.maximum(moments[2], 1)
        state["known"][k, slot], state["serial"][k, slot] = z, state["t"]

    def _fill(self, state: State, k: int, short: int) -> None:
        """The first season has come: it stands for the seasons before it."""
        before = np.arange(short - self.layout.window, 0)
        for name in ("values", "known"):
            undo.rows(state[name], (k, slice(None)))
            state[name][k, before % self.ring] = state[name][k, before % short]

    def _slots(self, n: Any, lags: np.ndarray) -> np.ndarray:
        """Places in the ring of rows n (r,) and their lags (l,), (r, l)."""
        return (np.atleast_1d(n)[:, None] - lags) % self.ring

    # ---------------------------------------------------------------- forecasts
    def next_times(self, state: State, k: int) -> np.ndarray:
        """The times of the steps after the latest row of series k, (H,)."""
        return self.layout.clock.shifted(float(state["last_time"][k]), np.arange(1, self.horizon + 1))

    def ahead(self, state: State, k: int, z: np.ndarray | None) -> np.ndarray:
        """Forecasts (H, m) from the latest row of series k, with known columns z (H, q) or a guess of them."""
        n = int(state["count"][k]) - 1
        values, slot = state["values"][k], n % self.ring
        unit = state["units"][k, slot]
        if n + 1 < self.layout.seasons[0]:
            return np.repeat(values[slot][None], self.horizon, axis=0)
        Z = self._columns(state, k, np.array([n]), state["last_time"][k : k + 1])[0]
        shares = mix.shares(state["squares"])
        lasting = values[self._slots(n, self.seasonal.ravel())].reshape(NAIVE, self.horizon, -1)
        made = (shares[:NAIVE] * (lasting - lasting[0])).sum(axis=0)
        made += lasting[0] + unit * (Z[:, None] @ state["mixed"])[:, 0].T
        if self.known:
            phi = self._phi(state, k, np.array([n]), state["last_time"][k : k + 1], z)[0]
            made += shares[-1] * unit * (phi[:, None] @ state["known_weights"])[:, 0]
        return made

    def _columns(self, state: State, k: int, n: np.ndarray, times: np.ndarray) -> np.ndarray:
        windows = state["values"][k][self._slots(n, np.arange(self.layout.window))]
        slots = n % self.ring
        return self.layout.columns(windows, state["units"][k, slots], state["levels"][k, slots], times)

    def _known_before(self, state: State, k: int) -> np.ndarray:
        """Known columns a season before the next step, (q,)."""
        return state["known"][k, (state["count"][k] - self.layout.seasons[0]) % self.ring]

    def _phi(self, state: State, k: int, n: np.ndarray, times: np.ndarray, z: np.ndarray | None = None) -> np.ndarray:
        rows = state["known"][k]
        before = rows[self._slots(n, self.seasonal[1])]
        if z is None and len(n) == 1:
            following = before
        else:
            following = rows[self._slots(n, -np.arange(1, self.horizon + 1))] if z is None else z[None]
        then = times[:, None] + np.arange(1, self.horizon + 1) * self.layout.clock.step
        return known.columns(following, before, rows[n % self.ring], then, self.layout.clock)

    # ---------------------------------------------------------------- rows whose horizon has come
    def _judge(self, state: State, k: int, n: int) -> None:
        """Let the intervals follow what was said of row n, by the rows of the horizon before it."""
        ahead, season = np.arange(1, self.horizon + 1), self.layout.seasons[0]
        slots, waiting, now = (n - ahead) % self.ring, (n - ahead) % self.horizon, n % self.ring
        counted = (state["seen"][k, slots] * state["seen"][k, now] > 0) & (n - ahead >= season - 1)[:, None]
        unit = np.where(counted, state["units"][k, slots], 1.0)
        errors = state["values"][k, now] - state["said"][k, waiting, ahead - 1]
        if self.known:  # what was said was made with a guess of them, and they have come
            rows, times = state["known"][k], np.full((self.horizon, 1), state["last_time"][k])
            guess = rows[self._slots(n, season * -(-ahead // season))[0]][:, None]
            both = (rows[[now] * self.horizon][:, None], guess)
            come, said = (known.columns(z, guess, rows[slots], times, self.layout.clock) for z in both)
            new = (state["serial"][k, slots] >= state["solved_at"])[:, None]
            moved = np.where(new, *(((come - said) @ state[name])[:, 0] for name in KNOWN[2:]))
            errors = errors - mix.shares(state["squares"])[-1] * unit * moved
        errors, said = np.abs(errors) / unit, state["halves"][k, waiting, :, ahead - 1].transpose(1, 0, 2)
        place = int(state["last_place"][k])
        widths.judge(state, errors, said, counted, place % season, (place - ahead) % season, len(state["count"]))

    def _learn_block(self, state: State, k: int, latest: int, time: float) -> None:
        """Judge members by a block of rows, then learn it."""
        n = np.arange(latest - self.horizon - self.block + 1, latest - self.horizon + 1)
        slots, times = n % self.ring, self.layout.clock.shifted(time, n - latest)
        last, unit = state["values"][k, slots], state["units"][k, slots]
        after = self._slots(n, -np.arange(1, self.horizon + 1))
        truth, counted = state["values"][k][after], state["seen"][k][after] * state["seen"][k, slots][:, None]
        counted *= (n >= self.layout.seasons[0] - 1)[:, None, None]
        Z = self._columns(state, k, n, times)
        phi = self._phi(state, k, n, times) if self.known else None
        made = self._members(state, k, n, Z, phi, last, unit)
        errors = (truth[:, None] - made) / unit[:, None, None]
        memory = mix.MEMORY * len(state["count"])
        state["squares"] = mix.followed(state["squares"], errors, counted > 0, memory)
        differences = (truth - last[:, None]) / unit[:, None]
        largest = np.maximum(np.abs(Z[..., : self.layout.ends[0]]).max(axis=2), np.abs(differences).max(axis=1))
        trusted = np.minimum(1.0, FAR / largest) * np.minimum(1.0, n / self.layout.window)[:, None]
        weight = counted.mean(axis=1) * trusted**2
        state["gram"], state["moment"] = solve.added(state["gram"], state["moment"], Z, differences, weight)
        if phi is not None:
            state["known_gram"], state["known_moment"] = known.added(
                state["known_gram"], state["known_moment"], phi, errors[:, NAIVE + 1], counted
            )
        state["absorbed"] += float(counted.mean(axis=(1, 2)).sum())
        if state["absorbed"] >= state["due"]:
            self._solve(state)
        shares = mix.shares(state["squares"])
        own = shares[NAIVE : NAIVE + len(self.layout.ends)].copy()
        if self.known:
            own[1] += shares[-1]  # which corrects the second of them
        state["mixed"] = (state["weights"] * own.transpose(0, 2, 1)[:, :, None]).sum(axis=0)

    def _members(
        self, state: State, k: int, n: np.ndarray, Z: np.ndarray, phi: Any, last: np.ndarray, unit: np.ndarray
    ) -> np.ndarray:
        """Forecasts of all members (n, members, H, m), with the weights that there were when the rows came."""
        naive = state["values"][k][self._slots(n, self.seasonal.ravel())].reshape(len(n), NAIVE, self.horizon, -1)
        new = (state["serial"][k, n % self.ring] >= state["solved_at"])[:, None, None, None]
        rows = np.ascontiguousarray(Z.transpose(1, 0, 2))
        now, before = ((rows @ state[name]).transpose(2, 0, 3, 1) for name in ("weights", "before"))
        ridge = last[:, None, None] + unit[:, None, None] * np.where(new, now, before)
        if phi is None:
            return np.concatenate([naive, ridge], axis=1)
        shift = [(phi.transpose(1, 0, 2) @ state[name]).transpose(1, 0, 2) for name in KNOWN[2:]]
        changed = ridge[:, 1] + unit[:, None] * np.where(new[:, 0], *shift)
        return np.concatenate([naive, ridge, changed[:, None]], axis=1)

    def half_widths(self, state: State, k: int, coverage: float) -> np.ndarray:
        """Half of the intervals of the next steps of series k, (H, m)."""
        half = between(LEVELS, coverage, np.moveaxis(self._halves(state, k), 0, -1))
        return np.where(state["judged"] > 0, half, np.inf) * state["units"][k, (state["count"][k] - 1) % self.ring]

    def _halves(self, state: State, k: int) -> np.ndarray:
        """Half-widths (L, H, m) of all coverages from the latest row of series k, in its units."""
        place, season = int(state["last_place"][k]), self.layout.seasons[0]
        return widths.halves(state, (place + np.arange(1, self.horizon + 1)) % season, place % season)

    def _solve(self, state: State) -> None:
        series, block = len(state["count"]), self.horizon + self.block
        state["before"], state["known_before"] = state["weights"], state["known_weights"]
        state["weights"] = solve.solved(state["gram"], state["moment"], self.layout.ends)
        if self.known:
            state["known_weights"] = known.solved(state["known_gram"], state["known_moment"])
        most = max(self.layout.seasons[1], block) * series
        state["due"] = state["absorbed"] + min(max(FASTEST * state["absorbed"], block * series), most)
        state["solved_at"] = state["t"]
