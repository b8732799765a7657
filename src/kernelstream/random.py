"""Seeds and counter-based generators.

Every random number of the library comes from ``Philox(key=seed, counter=(0, 0, 0, stream))``: the numbers of stream
``i`` can be made again, on any machine, from two integers, so nothing random has to be stored or sent.
"""

from __future__ import annotations

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


def generator(seed: int, stream: int = 0) -> np.random.Generator:
    """Generator of stream ``stream`` of ``seed``; streams are independent and never overlap."""
    return np.random.Generator(np.random.Philox(key=seed, counter=np.array([0, 0, 0, stream], np.uint64)))


class Streams:
    """The streams of a seed, one after the other: ten times as fast as a generator for each.

    >>> bool((Streams(7)(3).random(5) == generator(7, 3).random(5)).all())
    True
    """

    def __init__(self, seed: int):
        self.generator = generator(seed)
        self.start = self.generator.bit_generator.state

    def __call__(self, stream: int) -> np.random.Generator:
        """The generator at the beginning of a stream; valid until the next call."""
        self.start["state"]["counter"][3] = stream
        self.generator.bit_generator.state = self.start
        return self.generator


def uniforms(seed: int, start: int, count: int, stream: int) -> np.ndarray:
    """Numbers ``start`` to ``start + count - 1`` of an endless sequence of uniform numbers in [0, 1), (count,).

    >>> bool((uniforms(7, 5, 3, stream=1) == uniforms(7, 0, 8, stream=1)[5:]).all())
    True
    """
    bits = np.random.Philox(key=seed, counter=np.array([start // 4, 0, 0, stream], np.uint64))
    raw = bits.random_raw(start % 4 + count)[start % 4 :]  # four numbers to a counter
    return (raw >> np.uint64(11)) * 2.0**-53
