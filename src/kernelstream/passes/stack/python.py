r"""Combination of learners: second-order recursions on their forecasts, in two levels.

A level turns inputs into a forecast with a weight vector for each of three memories :math:`\gamma` (1, 0.9995, 0.995:
factors by which the past fades with every row), and mixes the three by how well they have predicted, with fixed share
(Herbster, Warmuth 1998). The inputs of the first level are the members' forecasts made before the row; those of the
second level are the first one's forecast and what happened in the last rows: labels or targets, and residuals. The two
levels are mixed in the same way.

Labels, inputs z (N, C) being scores of the classes, a weight for each input:

.. math:: q = \mathrm{softmax}(z'w), \quad A \leftarrow \gamma A + v\, z (\mathrm{diag}\, q - q q') z', \quad
          w \leftarrow w - a (A + \lambda I)^{-1} v\, z (q - e_y)

with v the row's weight; two classes have one score and the logistic function. The factor a is 1 unless the step would
go beyond the minimum, on its way, of the row's loss plus the quadratic that stands for the rows before (an implicit, or
importance-aware, step: Karampatziakis, Langford 2011; :func:`_reach`). Where the forecast was sure and wrong there is
hardly any curvature, and nothing else would bound it. Numbers: the base, an average of the
inputs p with weights 1/(running squared error)^2, leaves residuals of size s; with z = ((p - base)/s, 1)

.. math:: A \leftarrow \gamma A + h z z', \quad b \leftarrow \gamma b + h z (y - base)/s, \quad
          \hat y = base + s\, z'(A + \Lambda)^{-1} b

where h is the row's weight, less for residuals beyond three s (Huber).

A function that ``fit`` learned from a batch is one more input, the last. It is also a fourth memory of the first
level, which is that input alone and learns nothing: what ``fit`` says counts from the first row on, and as long as it
is right. It has no part in the base: if it is suddenly wrong, s must not grow.
The compiled twins are cpp/passes/stack_*.hpp.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.overflow import require_finite
from ...state.nested import State
from .states import LEAST, MEMORY, RECENT, G, shares

LABEL_RIDGE, LABEL_SHARE = 5.0, 0.001
NUMBER_RIDGE, CONSTANT_RIDGE, HUBER, SLOW, QUICK, NUMBER_SHARE = 15.0, 20.0, 3.0, 0.9995, 0.99, 0.01
ROWS_BY_THE_BASE = 10  # first rows, which are predicted by the base alone
CURVED = 1e-4  # probability from which a class counts in the curvature
COUNTED = 1.0 - 1.0 / 16000.0  # factor by which counts of labels fade with every row
ROUNDS, REACHED = 60, 1e-13  # of the search for the length of a step: how many at most, and how exactly
FADES = {2: 0.8, 3: 0.98, 4: 0.5, 5: 0.9, 6: 0.99}  # of the memories of labels


def _weights(w: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Weights (G, M) of the memories, and where there are four of them, (4, M): that of a batch is its input alone."""
    return w if len(logs) == G else np.vstack([w, np.eye(1, w.shape[1], w.shape[1] - 2)])


def mean_weights(state: State, regression: bool) -> np.ndarray:
    """Weights of the members in the forecast now, (N,): of the memories by their shares, with those of the base."""
    logs = state["stack_logs"]
    w = (shares(logs, NUMBER_SHARE if regression else LABEL_SHARE) @ _weights(state["stack_w"], logs))[:-1]
    if regression:
        best = state["stack_loss"].min()
        base = (best / state["stack_loss"]) ** 2 if best > 0 else np.ones(len(state["stack_loss"]))
        w[: len(base)] += base / base.sum() * (1 - w.sum())
    return w


def stack_pass(
    F: np.ndarray,
    y: np.ndarray | None,
    weight: np.ndarray | None,
    state: State,
    spec: tuple[bool, bool],
    notes: tuple[int, int, np.ndarray] | None = None,
) -> np.ndarray:
    """Forecasts (n, C) of the whole from those of the members, made before each row.

    Parameters
    ----------
    F : (N, n, C)
    y : (n,) or None
        Targets, ±1 for two classes, or codes of more; None learns nothing: each row is forecast as the next one.
    weight : (n,) or None
    state : dict
        Entries of :func:`start_stack`; changed in place.
    spec : (regression, recent)
        The second says whether the second level is in use.
    notes : (t, stride, out), optional
        Rows that counted before; out (k, N) receives the weights of the members after every ``stride`` of them.
    """
    regression, recent = spec
    scores = np.empty(F.shape[1:])
    one = _number if regression else _label
    counted = 0 if notes is None else notes[0]
    rows = np.ascontiguousarray(F.swapaxes(0, 1))  # BLAS rounds sums over numbers that lie apart in another order
    for t, row in enumerate(rows):
        importance = 0.0 if y is None else 1.0 if weight is None else float(weight[t])
        target = 0.0 if y is None else float(y[t])
        scores[t] = one(row, target, importance, state, recent)
        if notes is not None and importance > 0:
            counted += 1
            if counted % notes[1] == 0:
                notes[2][counted // notes[1] - notes[0] // notes[1] - 1] = mean_weights(state, regression)
    if y is not None:
        require_finite(scores)
    return scores


# -------------------------------------------------------------------- labels
def _probabilities(f: np.ndarray) -> np.ndarray:
    """From scores (…, C); of one score, that of the second class."""
    if f.shape[-1] == 1:
        with np.errstate(over="ignore"):
            return 1.0 / (1.0 + np.exp(-f))
    p = np.exp(f - f.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def _likelihood(p: np.ndarray, y: float) -> float:
    if len(p) == 1:
        return max(LEAST, float(p[0] if y > 0 else 1 - p[0]))
    return max(LEAST, float(p[int(y)]))


def _scores(p: np.ndarray) -> np.ndarray:
    if len(p) == 1:
        q = np.clip(p, LEAST, 1 - LEAST)
        return np.log(q / (1 - q))
    return np.log(p + 1e-9)


def _centred(f: np.ndarray, most: float) -> np.ndarray:
    return np.clip(f - f.mean(axis=-1, keepdims=True) if f.shape[-1] > 1 else f, -most, most)


def _label(F: np.ndarray, y: float, importance: float, state: State, recent: bool) -> np.ndarray:
    C = F.shape[1]
    z = np.concatenate([_centred(F, 8.0), np.full((1, C), float(C == 1))])
    part = shares(state["stack_logs"], LABEL_SHARE)
    f = _weights(state["stack_w"], part) @ z
    own = _probabilities(f)
    p = part @ own
    out = _scores(p)
    if recent:
        zr = _recent_inputs(_scores(p), state["recent_kept"])
        part_r = shares(state["recent_logs"], LABEL_SHARE)
        f_r = state["recent_w"] @ zr
        own_r = _probabilities(f_r)
        pr = part_r @ own_r
        both = shares(state["level_logs"], LABEL_SHARE)
        out = _scores(both[0] * p + both[1] * pr)
    if importance == 0.0:
        return out
    _label_step(z, y, importance, f, part, state, "stack")
    if recent:
        _label_step(zr, y, importance, f_r, part_r, state, "recent")
        for i, q in enumerate((p, pr)):
            state["level_logs"][i] = math.log(both[i]) + importance * math.log(_likelihood(q, y))
        _remember_label(p, y, state["recent_kept"])
    wrong = (z[:-1, 0] >= 0) != (y > 0) if C == 1 else z[:-1].argmax(axis=1) != int(y)
    _count(state["member_errors"], wrong.astype(float))
    state["label_counts"][:] = COUNTED * state["label_counts"] + (1.0, float(C == 1 and y > 0))
    return out


def _label_step(
    z: np.ndarray, y: float, importance: float, f: np.ndarray, part: np.ndarray, state: State, level: str
) -> None:
    """A row in a level, "stack" or "recent": inputs z (N, C), scores f (G or 4, C) of memories with shares ``part``."""
    A, w, logs = (state[f"{level}_{name}"] for name in ("A", "w", "logs"))
    for k, q in enumerate(_probabilities(f)):
        logs[k] = math.log(part[k]) + importance * math.log(_likelihood(q, y))
        if k == G:  # the function of a batch
            break
        A[k] *= MEMORY[k]
        if len(q) == 1:
            A[k] += importance * q[0] * (1 - q[0]) * np.tril(np.outer(z[:, 0], z[:, 0]))
            g = importance * (q[0] - (y > 0)) * z[:, 0]
        else:
            mean = z @ q
            g = importance * (mean - z[:, int(y)])
            for c in np.flatnonzero(q > CURVED):
                v = z[:, c] - mean
                A[k] += importance * q[c] * np.tril(np.outer(v, v))
        step = _solved(A[k], np.full(len(z), LABEL_RIDGE), g)
        if step is not None:
            w[k] -= _reach(f[k], step @ z, y) * step


def _reach(f: np.ndarray, d: np.ndarray, y: float) -> float:
    r"""Part a of a Newton step that is taken: up to the minimum of its objective, at most all of it.

    Along the step the scores of the row are f - a d, (C,), and with q(a) their probabilities the slope of the objective
    (the row's loss, and the quadratic of the rows before, whose curvature is what the solution of the step says), over
    the row's weight, is

    .. math:: a (D(0) - V(0)) - D(a), \quad D(a) = (q(a) - e_y)'d, \quad V(a) = \mathrm{var}_{q(a)} d.
    """
    truth = float(y > 0) if len(f) == 1 else (np.arange(len(f)) == int(y)).astype(float)

    def at(a: float) -> tuple[float, float]:
        q = _probabilities(f - a * d)
        D = float((q - truth) @ d) if len(f) > 1 else float((q[0] - truth) * d[0])
        if len(f) == 1:
            return D, float(q[0] * (1 - q[0]) * d[0] ** 2)
        return D, float(np.where(q > CURVED, q, 0.0) @ (d - q @ d) ** 2)

    D, V = at(0.0)
    bend = max(D - V, 0.0)
    low, a, high, last = 0.0, 1.0, 1.0, 1.0
    for _ in range(ROUNDS):
        D, V = at(a)
        slope = a * bend - D
        if slope > 0:
            high = a
        elif a == 1.0:
            return 1.0
        else:
            low = a
        step = slope / (bend + V) if bend + V > 0 else math.inf
        inside = low < a - step < high and 2 * abs(step) < last  # else Newton's step on the slope is of no use,
        found = abs(step) <= REACHED * a  # unless it is so short that it may not leave low or high
        new = a - step if inside or found else 0.5 * (low + high)
        last, a = abs(new - a), new
        if last <= REACHED * a:
            break
    return a


def _solved(A: np.ndarray, ridge: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """``(A + diag(ridge))^-1 b`` for a symmetric A given by its lower triangle; None where it is singular."""
    try:
        L = np.linalg.cholesky(A + A.T + np.diag(ridge - A.diagonal()))
    except np.linalg.LinAlgError:
        return None
    return np.linalg.solve(L.T, np.linalg.solve(L, b))


def _recent_inputs(f: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Inputs (RECENT, C) of the second level: scores, the last two labels, recent shares of labels and residuals."""
    z = np.zeros((RECENT, len(f)))
    if len(f) == 1:
        z[:, 0] = [np.clip(f[0], -8, 8), *kept[:4, 0], *(4 * kept[4:7, 0]), 1.0]
        return z
    z[0] = _centred(f, 12.0)
    z[1:3] = kept[:2]
    z[3], z[4] = np.log(kept[2] + 0.01), np.log(kept[3] + 0.001)
    z[5:7] = 4 * kept[4:6]
    z[:7] -= z[:7].mean(axis=1, keepdims=True)
    return z


def _remember_label(p: np.ndarray, y: float, kept: np.ndarray) -> None:
    C = len(p)
    label = np.array([y]) if C == 1 else (np.arange(C) == int(y)).astype(float)
    residual = (float(y > 0) if C == 1 else label) - p
    kept[1], kept[0] = kept[0].copy(), label
    for i, fade in FADES.items():
        kept[i] = fade * kept[i] + (1 - fade) * (label if i < 4 else residual)


def _count(errors: np.ndarray, error: np.ndarray) -> None:
    """Count errors of the members: all of them, and recent ones with the number of rows that they stand for."""
    errors[0] += error
    errors[1] = 0.999 * errors[1] + error
    errors[2] = 0.999 * errors[2] + 1.0


# -------------------------------------------------------------------- numbers
class _NumberLevel:
    """One level, as views of a state; ``prefix`` is "stack" or "recent"."""

    def __init__(self, state: State, prefix: str):
        self.A, self.b, self.w = (state[f"{prefix}_{name}"] for name in ("A", "b", "w"))
        self.logs, self.loss, self.numbers = (state[f"{prefix}_{name}"] for name in ("logs", "loss", "numbers"))
        self.ridge = np.full(self.w.shape[1], NUMBER_RIDGE)
        self.ridge[-1] = CONSTANT_RIDGE

    def forecast(self, p: np.ndarray) -> float:
        rows, mass, squares, count, _, spread = self.numbers
        deviation = math.sqrt(spread / count) if count > 1 else 1.0
        best = self.loss.min()
        part = (best / self.loss) ** 2 if best > 0 else np.ones(len(self.loss))
        self.base = float((part / part.sum()) @ p[: len(part)])
        s = math.sqrt(squares / mass) if mass > 1 else deviation
        self.s = max(s if s > 0 else 1.0, 1e-9 * deviation + 1e-300)
        self.z = np.append(np.clip((p - self.base) / self.s, -20, 20), 1.0)
        if rows < ROWS_BY_THE_BASE:
            self.own = np.full(len(self.logs), self.base)
            return self.base
        self.part = shares(self.logs, NUMBER_SHARE)
        inner = _weights(self.w, self.logs) @ self.z
        self.own = np.clip(self.base + self.s * inner, p.min() - 2 * self.s, p.max() + 2 * self.s)
        return float(self.part @ self.own)

    def learn(self, p: np.ndarray, y: float, importance: float) -> None:
        rows = self.numbers[0]
        miss = abs(y - self.base)
        if rows >= ROWS_BY_THE_BASE:
            target = (y - self.base) / self.s
            for k, own in enumerate(self.own):
                e = target - (own - self.base) / self.s
                self.logs[k] = QUICK * math.log(self.part[k]) - 0.5 * importance * min(e * e, HUBER**2)
                if k == G:  # the function of a batch
                    break
                fade = MEMORY[k]
                h = importance * (HUBER / abs(e) if abs(e) > HUBER else 1.0)
                self.A[k] = fade * self.A[k] + h * np.tril(np.outer(self.z, self.z))
                self.b[k] = fade * self.b[k] + h * self.z * target
                weights = _solved(self.A[k], self.ridge, self.b[k])
                if weights is not None:
                    self.w[k] = weights
            most = math.inf if rows < 2 * ROWS_BY_THE_BASE else 3 * HUBER * self.s
            miss = min(miss, most)
            self.numbers[1] = SLOW * self.numbers[1] + importance
            self.numbers[2] = SLOW * self.numbers[2] + importance * miss * miss
            self.loss[:] = SLOW * self.loss + importance * np.minimum(np.abs(y - p[: len(self.loss)]), 10 * most) ** 2
        elif rows >= 2:
            self.numbers[1:3] += importance, importance * miss * miss
            self.loss += importance * (y - p[: len(self.loss)]) ** 2
        self.numbers[0] += 1
        self._follow(y)

    def _follow(self, y: float) -> None:
        _, _, _, count, mean, spread = self.numbers
        if count >= 30:
            most = 20 * math.sqrt(spread / count)
            y = float(np.clip(y, mean - most, mean + most)) if most > 0 else y
        delta = y - mean
        self.numbers[3] += 1
        self.numbers[4] += delta / self.numbers[3]
        self.numbers[5] += delta * (y - self.numbers[4])


def _number(F: np.ndarray, y: float, importance: float, state: State, recent: bool) -> float:
    p, kept = F[:, 0], state["recent_kept"]
    first = _NumberLevel(state, "stack")
    f = g = first.forecast(p)
    both = np.array([1.0, 0.0])
    if recent:
        last = _recent_numbers(f, kept)
        second = _NumberLevel(state, "recent")
        g = second.forecast(last)
        both = shares(state["level_logs"], NUMBER_SHARE)
    out = float(both @ (f, g))
    if importance == 0.0:
        return out
    if recent:
        for i, q in enumerate((f, g) if first.numbers[3] > 1 else ()):  # one target has no unit
            e2 = min(((y - q) / first.s) ** 2, HUBER**2)
            state["level_logs"][i] = QUICK * math.log(both[i]) - 0.5 * importance * e2
        second.learn(last, y, importance)
        _remember_number(f, y, kept)
    first.learn(p, y, importance)
    _count(state["member_errors"], (y - p) ** 2)
    return out


def _recent_numbers(f: float, kept: np.ndarray) -> np.ndarray:
    """f, the last target, f corrected by the last residual and by running means of them, a running mean of targets."""
    known = kept[5] > 0
    return np.array([f, kept[0] if known else f, f + kept[1], f + kept[2], f + kept[3], kept[4] if known else f])


def _remember_number(f: float, y: float, kept: np.ndarray) -> None:
    e = y - f
    if not kept[5] > 0:
        kept[4] = y
    kept[0], kept[1] = y, e
    for i, fade, value in ((2, 0.8, e), (3, 0.98, e), (4, 0.8, y)):
        kept[i] = fade * kept[i] + (1 - fade) * value
    kept[5] += 1
