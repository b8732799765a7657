"""Seeds and counter-based generators.

Every random number of the library comes from ``Philox(key=seed, counter=(0, 0, 0, stream))``: the numbers of stream
``i`` can be made again, on any machine, from two integers, so nothing random has to be stored or sent.
:class:`Stream` is the table of all streams.
"""

from __future__ import annotations

import enum
import numbers
from typing import Any

import numpy as np


def fresh() -> int:
    """Integer seed in [0, 2**63) from the entropy of the operating system."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))


def seed_from(random_state: Any) -> int:
    """Integer seed in [0, 2**63) from ``None`` (fresh), an int, a ``RandomState`` or a ``Generator``."""
    if random_state is None:
        return fresh()
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must be >= 0, got {random_state}")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63 - 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    raise ValueError(
        f"random_state must be None, a non-negative int, a RandomState or a Generator, got {random_state!r}"
    )


FAMILY = 1 << 32  # streams of a family


@enum.unique
class SeedStream(enum.IntEnum):
    """What the streams of a seed are for. No two uses of a seed may draw the same numbers, so each has its own here.

    A stream may be the first of a family of :data:`FAMILY` streams, one for each column, pass or block; the next entry
    comes after them.
    """

    MAP = 0  # family: what a feature map draws, by column, part of a grid or block; or its landmarks, by row
    GP_OPERATOR = 1 << 32  # family: features of a doubly stochastic Gaussian process, by block
    SOLVER = 4 << 32  # family: the order in which a solver takes rows or coordinates, by pass or output
    NOVELTY_ROWS = (6 << 32) + 1  # rows whose scores give a novelty threshold
    NOVELTY_GRIDS = NOVELTY_ROWS + 1  # directions, frequencies and grids that rows are compared on
    DOUBLY_ROWS = (7 << 32) - 1  # the first rows of a doubly stochastic fit
    DOUBLY_ORDER = 7 << 32  # family: orders of the rows, by pass
    FALKON_TRIALS = 8 << 32  # rows on which Falkon chooses
    FALKON_ROWS = FALKON_TRIALS + 1  # rows that stand for the others in Falkon's preconditioner
    REMOTE_ROWS = FALKON_TRIALS + 2  # rows that workers send for choices to be made on
    GRID_ROWS = FALKON_TRIALS + 3  # rows on which random binning chooses
    STACK_ROWS = FALKON_TRIALS + 4  # rows from which a member learns at once
    LINK_ROWS = FALKON_TRIALS + 5  # rows on which the link is fitted
    WRAPPER_ORDER = FALKON_TRIALS + 7  # the order in which a wrapper's fit takes the rows
    POWER_START = FALKON_TRIALS + 8  # the first vector of a power iteration
    OPPONENT = FALKON_TRIALS + 9  # rows that an adversary looks at
    METRIC_ROWS = FALKON_TRIALS + 10  # rows from which a metric is learned, and those held out meanwhile
    METRIC_LINK = FALKON_TRIALS + 11  # rows left out of a learned metric, whose scores give the link
    ENCODER_ORDER = 9 << 32  # family: the order in which fit encodes rows, by part
    COLUMN_ORDERS = 10 << 32  # family: orders in which columns are taken for their contributions
    CELLS_PLACES = 1 << 58  # places of the rows that grids are drawn from
    CELLS_GRIDS = 1 << 59  # family: grids, by row
    HELD_OUT_ORDER = (1 << 60) - 2
    HELD_OUT_ROWS = (1 << 60) - 1
    FIT_ORDER = 1 << 60  # family: orders of fit, by pass
    MEMBER_SEEDS = 1 << 61  # family: seeds of members
    BUDGET = 1 << 62  # one number a row, for strategies that remove vectors at random
    MEMBER_CHOICE = BUDGET + 1  # which members learn a row
    SPECTRUM_START = (1 << 64) - 2  # the first centres or directions of a learned spectrum
    MAP_SHARED = (1 << 64) - 1  # what all columns of a feature map share


def generator(seed: int, stream: SeedStream, number: int = 0) -> np.random.Generator:
    """Generator of a stream of ``seed``, or of stream ``number`` (modulo :data:`FAMILY`) of a family."""
    counter = np.array([0, 0, 0, stream + number % FAMILY], np.uint64)
    return np.random.Generator(np.random.Philox(key=seed, counter=counter))


class Streams:
    """The streams of a family, one after the other: ten times as fast as a generator for each.

    >>> bool((Streams(7, SeedStream.MAP)(3).random(5) == generator(7, SeedStream.MAP, 3).random(5)).all())
    True
    """

    def __init__(self, seed: int, stream: SeedStream):
        self.stream, self.generator = stream, generator(seed, stream)
        self.start = self.generator.bit_generator.state

    def __call__(self, number: int) -> np.random.Generator:
        """The generator at the beginning of stream ``number``; valid until the next call."""
        self.start["state"]["counter"][3] = self.stream + number
        self.generator.bit_generator.state = self.start
        return self.generator


def uniforms(seed: int, start: int, count: int, stream: SeedStream) -> np.ndarray:
    """Numbers ``start`` to ``start + count - 1`` of an endless sequence of uniform numbers in [0, 1), (count,).

    >>> bool((uniforms(7, 5, 3, SeedStream.BUDGET) == uniforms(7, 0, 8, SeedStream.BUDGET)[5:]).all())
    True
    """
    bits = np.random.Philox(key=seed, counter=np.array([start // 4, 0, 0, stream], np.uint64))
    raw = bits.random_raw(start % 4 + count)[start % 4 :]  # four numbers to a counter
    return (raw >> np.uint64(11)) * 2.0**-53
