"""Products of parameters, thinned out for the fast tests."""

import itertools

import pytest


def in_turn(names, first, second):
    """Parametrize: every value of either, in pairs; all other pairs are among the slow tests."""
    turns = {(i % len(first), i % len(second)) for i in range(max(len(first), len(second)))}
    return pytest.mark.parametrize(
        names,
        [
            pytest.param(a, b, marks=[] if (i, j) in turns else pytest.mark.slow, id=f"{a}-{b}".replace("\n", " "))
            for (i, a), (j, b) in itertools.product(enumerate(first), enumerate(second))
        ],
    )
