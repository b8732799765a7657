"""One pass in a stream's own order, every row a test row first: the protocol of the public StreamArena board.

Labels: log-loss −mean ln max(p_y, 10⁻⁷), where a learner that has no forecast yet has 1/K for each of K labels, and
mistakes. Numbers: RMSE, and R² = 1 − Σ(y − f)² / Σ(y − ȳ)². Nothing is shuffled, scaled or tuned beforehand; codes of
categories are numbers, as on the board. A learner knows beforehand which labels there are, and nothing else.
"""

from __future__ import annotations

import hashlib
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from kernelstream import losses, zoo
from kernelstream.evaluate import model_bytes

from ._arena_files import label_metrics, number_metrics
from ._arena_peers import arena_peer
from ._arena_streams import Stream, open_stream
from ._experiment import Algorithm, Data

FLOOR = 1e-7  #: no probability counts as less
BLOCK = 1000  #: rows per call of a learner that answers blocks
POINTS = 60  #: a curve has about so many points at most


# ------------------------------------------------------------------------------------------------------- measures


def label_losses(p: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether each row is a mistake, and −ln max(p_y, 10⁻⁷): p (n, K) probabilities, y (n,) codes."""
    return p.argmax(axis=1) != y, -np.log(np.maximum(p[np.arange(len(y)), y], FLOOR))


def label_figures(wrong: np.ndarray, loss: np.ndarray, at: np.ndarray) -> dict[str, np.ndarray]:
    """Log-loss and mistakes in per cent over the first ``at`` rows, for each of ``at``."""
    return {"log_loss": np.cumsum(loss)[at - 1] / at, "mistakes": 100.0 * np.cumsum(wrong)[at - 1] / at}


def number_figures(y: np.ndarray, forecast: np.ndarray, at: np.ndarray) -> dict[str, np.ndarray]:
    """RMSE and R² over the first ``at`` rows, for each of ``at``; R² is 0 where the targets have not varied yet."""
    error = np.cumsum((y - forecast) ** 2)[at - 1]
    shifted = y - y.mean()  # the spread does not depend on the shift, its rounding does
    spread = np.cumsum(shifted**2)[at - 1] - np.cumsum(shifted)[at - 1] ** 2 / at
    r2 = np.where(spread > 0, 1.0 - error / np.where(spread > 0, spread, 1.0), 0.0)
    return {"rmse": np.sqrt(error / at), "r2": r2}


def curve_rows(n: int) -> np.ndarray:
    """Multiples of a round number of rows, about fifty, and the last row: streams of any length share some."""
    steps = (round(m * 10**k) for k in range(9) for m in (1, 2, 2.5, 5))
    step = next(s for s in steps if s * POINTS >= n)
    return np.unique([*range(step, n + 1, step), n])


# ---------------------------------------------------------------------------------------------------------- a run


def _lacks_log_odds(est: Any) -> bool:
    """Whether the loss of a classifier defines no probabilities, for two classes or for several."""
    loss = losses.get(getattr(est, "loss", "logistic"), "classification")
    forms = (loss, loss.multiclass()) if loss.kind == "binary" else (loss,)
    return not all(hasattr(form, "probability") for form in forms)


class Ours:
    """A learner of this library: ``learn`` returns the forecasts held before each row."""

    def __init__(self, name: str, stream: Stream, settings: dict[str, Any], seed: int) -> None:
        self.est = zoo.make(name, task=stream.task, **({"random_state": seed} | settings))
        self.bare = stream.n_classes > 0 and _lacks_log_odds(self.est)
        if self.bare and "loss" in self.est.get_params():
            self.est.set_params(loss="logistic")  # in place of the default, hinge
            self.bare = _lacks_log_odds(self.est)
        self.n_classes = stream.n_classes
        self.declared: dict[str, Any] = {"classes": np.arange(stream.n_classes)} if stream.n_classes else {}

    def forecasts(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        scores = self.est.learn(X, y, **self.declared)
        self.declared = {}
        return self._probabilities(scores) if self.n_classes else scores

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        """(n, K); a learner of ±1 without probabilities, as ridge, has (1 + f) / 2, cut to [0, 1] and normalised."""
        table = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
        if self.bare:
            p = np.clip((1.0 + table) / 2.0, FLOOR, 1.0)
            return p / p.sum(axis=1, keepdims=True)
        spec: Any = getattr(self.est, "loss", "logistic")  # without a loss: log-odds, or log-probabilities
        if scores.ndim == 1:
            p = losses.get(spec, "classification").probability(scores)
            return np.column_stack([1.0 - p, p])
        loss: Any = losses.get(spec, "classification").multiclass() if hasattr(self.est, "loss") else losses.Softmax()
        return loss.probability(scores)


def run_stream(data: Data, algorithm: Algorithm, settings: dict[str, Any], order: int) -> dict[str, Any]:
    """Figures, curves, seconds and memory of one learner on one stream.

    Seconds and memory are those of asking and teaching alone: the rows are loaded, the libraries imported and a Java
    machine started before. Seconds of the processor count all threads of the process.
    """
    stream = open_stream(data)
    seed, n = order + 1, len(stream.y)  # the board counts its seeds from 1
    if algorithm.zoo is not None:
        learner: Any = Ours(algorithm.zoo, stream, settings, seed)
    else:
        learner = arena_peer(str(algorithm.peer), stream, settings, seed)
    # of each row: mistake and loss, or the forecast; filled, since memory that is not touched is not taken yet
    first, second, guess = np.full(n, np.nan), np.full(n, 0.0), np.full(n, -1)
    wall = cpu = 0.0
    before = forget_peak()
    for start in range(0, n, BLOCK):
        rows = slice(start, start + BLOCK)
        X, y = stream.X[rows], stream.y[rows]
        clocks = time.perf_counter(), time.process_time()
        answer = learner.forecasts(X, y)
        wall, cpu = wall + time.perf_counter() - clocks[0], cpu + time.process_time() - clocks[1]
        if stream.n_classes:
            first[rows], second[rows] = label_losses(answer, y)
            guess[rows] = answer.argmax(axis=1)
        else:
            first[rows] = answer
    whole = peak_mb()
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise FloatingPointError("forecasts that are not finite")
    at = curve_rows(n)
    told = label_figures(first, second, at) if stream.n_classes else number_figures(stream.y, first, at)
    main, *others = told
    board = label_metrics(guess, stream.y, stream.n_classes) if stream.n_classes else number_metrics(first, stream.y)
    return {
        "value": _short(told[main][-1], 8),
        "figures": {name: _short(values[-1], 8) for name, values in told.items()},
        "task": stream.task,
        "board": {name: _short(value, 8) for name, value in board.items()},
        "seconds": round(wall, 5),
        "cpu_seconds": round(cpu, 5),
        "rows": n,
        "peak_mb": round(whole - before, 1),
        "process_mb": round(whole, 1),
        "size": None,
        "bytes": model_bytes(learner.est) if algorithm.zoo is not None else None,
        "fingerprint": hashlib.sha256(stream.X.tobytes() + stream.y.tobytes()).hexdigest()[:16],
        "curve": [at.tolist(), [_short(v) for v in told[main]]],
        "curves": {name: [_short(v) for v in told[name]] for name in others},
    }


def _short(value: float, digits: int = 5) -> float:
    return float(f"{value:.{digits}g}")


# --------------------------------------------------------------------------------------------------------- memory


def forget_peak() -> float:
    """Memory of this process now, in MB, from which its peak counts again (Linux)."""
    with suppress(OSError):  # otherwise the peak includes that of loading
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def peak_mb() -> float:
    """Largest memory of this process since :func:`forget_peak`, in MB; 0 where the system does not tell."""
    return _status("VmHWM")


def _status(field: str) -> float:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return next(float(line.split()[1]) / 1e3 for line in lines if line.startswith(field))
