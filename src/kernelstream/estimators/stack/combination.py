"""The combination of forecasts: a recursion for every target, and the weights that it has given in the course of time.

Its entries are those of the recursions, ``o0``, ``o1``, … (:mod:`kernelstream.passes.stack.python`), and the history.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...passes.ensemble.python import HISTORY
from ...passes.stack.python import mean_weights
from ...passes.stack.states import start_recent, start_stack, with_batch
from ...state.change import Change
from ...state.nested import State
from ...state.schema import Array, Inside, Schema
from .._contract.composite import history_schema
from .._contract.warm_up import rows_until

STRIDE = 64  # rows between two entries of the history, at first
COMBINED = 512  # rows that are combined at once


class Combination:
    """The recursions of a task.

    Parameters
    ----------
    regression : bool
    ops : engine
    """

    def __init__(self, regression: bool, ops: Any):
        self.regression, self.ops = regression, ops

    # ---------------------------------------------------------------- states
    def start(self, inputs: int, columns: int, outputs: int) -> State:
        """Entries of so many combinations of ``inputs`` forecasts, which have ``columns`` scores each."""
        found: State = {f"o{o}": start_stack(inputs, columns, self.regression) for o in range(outputs)}
        return found | {"history": np.zeros((HISTORY, inputs), np.float32), "history_stride": STRIDE}

    def schema(self, state: State, inputs: int, columns: int) -> Schema:
        """What the entries may be; a function of a batch is one input more."""
        fresh = start_stack(inputs, columns, self.regression)
        fresh = with_batch(fresh, 0.5, 0.0, 0) if "batch" in state else fresh
        own = Inside({name: Array(value.shape) for name, value in fresh.items()})
        found: Schema = {f"o{o}": own for o in range(self.outputs(state))}
        return found | history_schema(state, inputs + ("batch" in state))

    def outputs(self, state: State) -> int:
        """How many combinations, and sets of members, there are: one, or one for every target of a regression."""
        return int(state["n_outputs"]) if self.regression else 1

    def parts(self, state: State) -> list[State]:
        """The entries of each combination."""
        return [state[f"o{o}"] for o in range(self.outputs(state))]

    def weights(self, state: State) -> np.ndarray:
        """Of the inputs, (N,), averaged over the outputs."""
        return np.mean([mean_weights(part, self.regression) for part in self.parts(state)], axis=0)

    # ---------------------------------------------------------------- rows
    def learn(self, state: State, F: np.ndarray, y: np.ndarray, weight: Any, recent: bool, scores: np.ndarray) -> None:
        """Write scores (n, outputs) of a block from forecasts F (k, N, n, C), made before each row; learn the rows.

        The blocks that are combined at once do not depend on the threads: so the bits do not.
        """
        start, n = 0, F.shape[2]
        while start < n:
            t, stride = state["t"], state["history_stride"]
            last = stride * (HISTORY + 1)  # the row whose weights find all places taken
            stop = min(n, (start // COMBINED + 1) * COMBINED)
            if t + stop - start >= last:
                stop = rows_until(weight, start, stop, last - t)
            rows, own = slice(start, stop), None if weight is None else weight[start:stop]
            after = t + (stop - start if own is None else int(np.count_nonzero(own)))
            notes = np.empty((self.outputs(state), after // stride - t // stride, F.shape[1]))
            for o, part in enumerate(self.parts(state)):
                block, target = np.ascontiguousarray(F[o, :, rows]), of_output(y[rows], o)
                how, history = (self.regression, recent), (t, stride, notes[o])
                found = self.ops.stack_pass(block, target, own, part, how, history)
                scores[rows, o : o + found.shape[1]] = found  # all classes, or one of several targets
            state["t"], start = after, stop
            place, weights = t // stride, notes[0] if len(notes) == 1 else notes.mean(axis=0)
            room = HISTORY - place
            state["history"][place : place + len(weights)] = weights[:room]
            if len(weights) > room:  # one more, for which there is no place: every second entry is dropped
                state["history"][: HISTORY // 2] = state["history"][1::2]
                state["history_stride"] *= 2

    def score(self, state: State, F: np.ndarray, recent: bool) -> np.ndarray:
        """Scores (n, outputs) from forecasts F (k, N, n, C); with ``recent``, each row is the next of the stream."""
        scores = np.empty((F.shape[2], state["n_outputs"]))
        for o, part in enumerate(self.parts(state)):
            found = self.ops.stack_pass(F[o], None, None, part, (self.regression, recent))
            scores[:, o : o + found.shape[1]] = found
        return scores

    # ---------------------------------------------------------------- changes
    def mix_outputs(self, state: State, change: Change) -> None:
        """Weights stay; what was known of the last labels is lost. A lone class may change its side."""
        part = state["o0"]
        if not len(change) == change.before == 1:
            part |= start_recent(len(change))
            return
        for name in ("stack_w", "recent_w"):
            part[name][:, -1] *= change.factor[0]  # of the constant
        for name in ("stack_A", "recent_A"):
            part[name][:, -1, :-1] *= change.factor[0]
        part["recent_kept"] *= change.factor[0]
        if change.factor[0] < 0:
            part["label_counts"][1] = part["label_counts"][0] - part["label_counts"][1]


def of_output(y: np.ndarray, o: int) -> np.ndarray:
    """The target of an output, (n,), from y (n,) or (n, k)."""
    return y if y.ndim == 1 else np.ascontiguousarray(y[:, o])
