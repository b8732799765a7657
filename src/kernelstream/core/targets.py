r"""The level and the size of a target: which numbers are wild, and when they have moved to another level or unit.

Of every output the range [a, b] of the n numbers so far is kept, and, from one block of ``BLOCK`` numbers to the next,
the usual middle m and deviation s.

* **Wild**: a number more than ``FAR`` widths b - a outside the range raises the doubt by 1, any other lowers it by
  ``FORGIVEN``, down to 0. Until the doubt has reached ``ENOUGH``, rows of such numbers are not learned; then they are
  believed, and the range grows. A second level that one row in twenty comes from is believed after a few hundred rows.
* **Moved**: ``RUN`` numbers in a row lie more than max(1, ``FAR BLOCK``/n) widths outside the range before the first of
  them, unless the target has moved ``OFTEN`` times lately; or ``QUIET`` blocks in a row vary by less than
  s/``SMALLER``, each around the middle of the one before, and the forecasts of these are off by more than that.

With the middle m' and the deviation s' of these numbers, what was learned of the target is then carried over by

.. math:: y \leftarrow m' + r (y - m), \qquad r = s'/s,

where r = 1 unless s' is that of quiet blocks, or more than ``LARGER`` s. So the function that was learned stays what it
was, at the new level and in the new unit, and wrong numbers that came in a row are forgotten when they end: the target
moves back.

The range knows no mean and no deviation, which a wild number would spoil. In a target without wild numbers, however
long its tail, hardly any is far: each new record would have to be about ten times the last. Slow trends widen the range
row by row, and move nothing. The compiled twin of :func:`take` is cpp/base/targets.hpp; moves are rare, and found by
the same code in every engine.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .ranges import ENOUGH, FAR, FORGIVEN, bulk, is_far, lies_outside

RUN = 12  # numbers outside the range, one after the other, that tell a new level
BLOCK = 128  # numbers of a block
QUIET, SMALLER = 4, 6.0  # blocks of a smaller unit, and how many times smaller it is at least
STEADY = 2.0  # deviations by which the middle of a quiet block may differ from that of the one before
LARGER = 4.0  # times the usual deviation from which a run has a new unit
ROOM = 8.0  # deviations on each side of the middle that are the range in a smaller unit
AVERAGED = 8.0  # blocks over which deviations are averaged
OFTEN, CALM = 4.0, 1 / 16  # moves after which a target is known to have several levels; blocks that make up for one

# Rows of what is remembered of each output: numbers learned, their range and doubt; rows set aside (of all outputs, in
# the first column); place of the next number among the last ones (likewise); numbers outside in a row, and the range
# before the first of them; middle and deviation of usual blocks, and how many these are; quiet blocks in a row, and the
# middle of the last block; moves, and moves of late.
COUNT, LOW, HIGH, DOUBT, TOTAL, PLACE, OUTSIDE, BELOW, ABOVE, MIDDLE, USUAL, BLOCKS, STILL, LATEST, MOVES, LATELY = (
    range(16)
)
SIGNED = (LOW, HIGH, BELOW, ABOVE, MIDDLE, LATEST)


class Move(NamedTuple):
    """What was y is now ``to + factor (y - middle)``, with this deviation."""

    middle: float
    to: float
    factor: float
    deviation: float

    def __call__(self, y: Any) -> Any:
        return self.to + self.factor * (y - self.middle)


def no_targets(outputs: int) -> dict[str, np.ndarray]:
    """Entries of a state before the first row: what is remembered of each output, and its last numbers."""
    return {"target_range": np.zeros((LATELY + 1, outputs)), "target_last": np.zeros((BLOCK, outputs))}


def take(
    y: np.ndarray, weight: np.ndarray | None, seen: np.ndarray, last: np.ndarray, out: np.ndarray
) -> tuple[int, bool, int]:
    """Enter targets up to the next one after which :func:`look` is due.

    Parameters
    ----------
    y : (n,) or (n, k) float64
        With several outputs one is enough to set a row aside.
    weight : (n,) or None
        Rows of weight 0 are not looked at.
    seen, last : (16, k) and (BLOCK, k) float64
        From :func:`no_targets`; changed in place.
    out : (n,)
        Receives the weights, 0 for rows whose target is wild.

    Returns
    -------
    (int, bool, int)
        How many rows were entered, whether a look is due, and how many rows were wild.
    """
    count, low, high, doubt, total, place, run, below, above = seen[:MIDDLE]
    found = 0
    for i, row in enumerate(y.reshape(len(y), -1)):
        out[i] = 1.0 if weight is None else weight[i]
        if out[i] == 0:
            continue
        first = run == 0
        below[first], above[first] = low[first], high[first]
        widths = np.maximum(FAR * BLOCK / np.maximum(count, 1.0), 1.0)
        run[:] = np.where((count >= BLOCK) & lies_outside(row, below, above, widths), run + 1, 0.0)
        far = is_far(row, count, low, high)
        wild = far & (doubt < ENOUGH)
        if wild.any():
            doubt[wild] += 1
            total[0] += 1
            found += 1
            out[i] = 0.0
        else:
            low[:] = np.where(count > 0, np.minimum(low, row), row)
            high[:] = np.where(count > 0, np.maximum(high, row), row)
            doubt[:] = np.where(far, 0.0, np.maximum(doubt - FORGIVEN, 0.0))
            count += 1
        last[int(place[0])] = row
        place[0] += 1
        if place[0] == BLOCK or (run >= RUN).any():
            return i + 1, True, found
    return len(y), False, found


def look(seen: np.ndarray, last: np.ndarray) -> list[Move | None]:
    """Which outputs have moved, where a look is due; what is remembered of them moves along.

    A move to a smaller unit is for the learner to judge, which knows its errors: see :func:`stay`.
    """
    place = int(seen[PLACE, 0])
    numbers = np.roll(last, -place, axis=0)  # the latest at the end
    moves = [_look(own, column, place == BLOCK) for own, column in zip(seen.T, numbers.T, strict=True)]
    if place == BLOCK or any(moves):
        seen[PLACE, 0] = 0.0  # a block begins
    return moves


def stay(seen: np.ndarray, before: np.ndarray, o: int) -> None:
    """Take back the move of an output, which was remembered as in ``before``."""
    place = seen[PLACE, 0]
    seen[:, o] = before[:, o]
    seen[PLACE, 0] = place


def deviation(y: np.ndarray) -> float:
    """Standard deviation of targets (n,) without those far outside; 0 where they are all the same."""
    if y.min() == y.max():
        return 0.0  # also where their mean is rounded
    low, high = bulk(y, FAR)
    usual = y[(y >= low) & (y <= high)]
    return float(np.std(usual if 2 * len(usual) > len(y) else y))


def _look(own: np.ndarray, last: np.ndarray, block: bool) -> Move | None:
    """What is remembered of an output, (16,), after its last numbers (BLOCK,), which may be a block."""
    if own[OUTSIDE] >= RUN:
        run, own[OUTSIDE] = last[-RUN:], 0.0
        if own[LATELY] >= OFTEN:
            own[LOW], own[HIGH] = min(own[LOW], run.min()), max(own[HIGH], run.max())
            return None
        factor = deviation(run) / own[USUAL] if own[USUAL] > 0 else 1.0
        return _moved(own, run, factor if factor > LARGER else 1.0, own[[BELOW, ABOVE]])
    if not block:
        return None
    middle, spread, before = float(np.median(last)), deviation(last), own[LATEST]
    own[LATEST] = middle
    own[LATELY] = max(own[LATELY] - CALM, 0.0)
    if 0 < spread < own[USUAL] / SMALLER:
        own[STILL] = own[STILL] + 1 if abs(middle - before) <= STEADY * spread else 1.0
        if own[STILL] < QUIET:
            return None
        room = ROOM * own[USUAL] * np.array([-1.0, 1.0])
        return _moved(own, last, spread / own[USUAL], own[MIDDLE] + room)
    own[STILL] = 0.0
    if spread > 0 or not own[BLOCKS]:
        own[BLOCKS] += 1
        own[USUAL] += ((spread or abs(middle)) - own[USUAL]) / min(own[BLOCKS], AVERAGED)
        own[MIDDLE] = middle
    return None


def _moved(own: np.ndarray, new: np.ndarray, factor: float, ends: np.ndarray) -> Move:
    """The move to new numbers (n,); ``ends`` are those of the range that moves along."""
    move = Move(float(own[MIDDLE]), float(np.median(new)), float(factor), float(own[USUAL] * factor))
    own[[LOW, HIGH]] = move(ends)
    own[USUAL] = move.deviation
    own[[MIDDLE, LATEST]] = move.to
    own[[DOUBT, OUTSIDE, STILL]] = 0.0
    own[BLOCKS] = 1.0
    own[[MOVES, LATELY]] += 1.0
    return move
