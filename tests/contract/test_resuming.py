"""Models that are interrupted between two calls go on to the bit; see resuming.py for what is tried."""

import itertools

import pytest
from resuming import PAIRS, trial

from kernelstream import engine

ENGINES = ["native", "python"] if engine.has_native() else ["python"]
KINDS = [
    (rows, dtype, which) for which, dtype, rows in itertools.product(ENGINES, ("float64", "float32"), ("csr", "dense"))
]


@pytest.mark.parametrize(("name", "task"), PAIRS[::11])
def test_a_sample(name, task):
    """Some recipes, each with one kind of rows: saved, loaded, asked and taught again."""
    i = PAIRS.index((name, task))
    assert trial(name, task, *KINDS[i % len(KINDS)], seed=i, n=48, quick=True) == {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
@pytest.mark.parametrize(("name", "task"), PAIRS)
def test_all(name, task, kind):
    found = trial(name, task, *kind, seed=0, n=80 if kind[2] == "python" else 300)
    assert {way: gaps for way, gaps in found.items() if gaps} == {}
