"""Search by trials: cuts of the rows, the walk downhill, paths of penalties."""

import numpy as np
import pytest
import scipy.sparse as sp

from kernelstream.solvers.search import Sample, Tried, downhill, folds, least, path, tried


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weight", [None, np.arange(10.0)])
def test_each_of_few_rows_is_held_out_once(form, weight):
    X, Y, order = np.arange(10.0)[:, None], -np.arange(10.0)[:, None], np.random.default_rng(0).permutation(10)
    cut = folds(Sample(form(X), Y, weight), order, 11, 0)
    held = [fold.held.Y.ravel() for fold in cut]
    assert sorted(np.concatenate(held)) == sorted(Y.ravel()) and len(cut) == 4
    for learned, part in cut:
        assert not set(learned.Y.ravel()) & set(part.Y.ravel()) and len(learned.Y) + len(part.Y) == 10
        for some in (learned, part):
            np.testing.assert_array_equal(np.asarray(some.X.sum(axis=1)).ravel(), -some.Y.ravel())
            assert (some.weight is None) == (weight is None)
            assert weight is None or np.array_equal(some.weight, -some.Y.ravel())


def test_many_rows_are_cut_once():
    order = np.random.default_rng(0).permutation(10)
    [(learned, held)] = folds(Sample(np.eye(10), np.arange(10.0)[:, None], None), order, 10, 7)
    np.testing.assert_array_equal(learned.Y.ravel(), order[:7])
    np.testing.assert_array_equal(held.Y.ravel(), order[7:])


@pytest.mark.parametrize("patience, best, tries", [(1, 3.0, 2), (2, 1.0, 5)])
def test_the_walk_ends_when_nothing_is_better(patience, best, tries):
    errors = dict(enumerate([3.0, 4.0, 1.0, 2.0, 2.0, 0.0]))
    seen = []

    def trial(value):
        seen.append(value)
        return Tried(value, errors[value], 0, None)

    assert downhill(trial, errors, patience=patience).error == best and len(seen) == tries
    start = Tried(None, 0.5, 0, None)
    assert downhill(trial, errors, start) is start  # what loses to the start is not taken


def test_errors_of_the_trials_add_up():
    found = tried("value", [(np.array([1.0, 3.0, 2.0]), "first"), (np.array([4.0, 1.0, 4.0]), "second")])
    assert found == Tried("value", 4.0, 1, "first")
    assert least([found, Tried("equal", 4.0, 0, None)]) is found


def test_solutions_begin_at_the_last():
    errors, last = path([3.0, 2.0, 1.0], lambda penalty, start: ([*(start or []), penalty], penalty / 2))
    assert last == [3.0, 2.0, 1.0]
    np.testing.assert_array_equal(errors, [1.5, 1.0, 0.5])
