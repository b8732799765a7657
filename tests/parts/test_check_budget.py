"""The check of budget strategies: all of the library's pass it, and each kind of mistake is found."""

import numpy as np
import pytest

from kernelstream import budgets
from kernelstream.testing import check_budget

KINDS = {"binary": "hinge", "multiclass": "crammer_singer", "regression": "epsilon_insensitive"}


@pytest.mark.parametrize("name", budgets.names())
def test_the_strategies_of_the_library(name):
    """With one kind of loss that the strategy serves, another for the next; the slow test tries them all."""
    kinds = budgets.get(name).kinds
    check_budget(name, KINDS[kinds[budgets.names().index(name) % len(kinds)]])


@pytest.mark.slow
@pytest.mark.parametrize("name", budgets.names())
def test_the_strategies_of_the_library_with_all_kinds_of_losses(name):
    check_budget(name)


class Window(budgets.Budget):
    """A window over the rows that acted, done right."""

    name, n_memory = "window", 1

    def slot(self, S):
        turn = S.state["budget_memory"]
        slot = int(turn[0]) if S.full else S.n
        turn[0] = (slot + 1) % S.capacity
        return slot

    def absorb(self, S, row):
        S.place(self.slot(S), row, row.tau)


class Remembers(Window):
    """Its turn is on the object."""

    turn = 0

    def slot(self, S):
        self.turn += 1
        return S.n if not S.full else self.turn % S.capacity


class WritesVectors(Window):
    """Puts the row where it belongs, and tells nobody: later rows of the block still see the vector before."""

    def absorb(self, S, row):
        slot = self.slot(S)
        if slot == S.n:
            S.state["n_support"] += 1
        S.support[slot] = S.X[row.i]
        S.alpha[:, slot] = row.tau / S.scale
        S.diag[slot] = row.k_xx


class WritesDiagonal(Window):
    def absorb(self, S, row):
        slot = self.slot(S)
        S.place(slot, row, row.tau)
        S.diag[slot] = 2.0


class WritesGram(Window):
    gram = True

    def absorb(self, S, row):
        slot = self.slot(S)
        S.place(slot, row, row.tau)
        S.state["budget_gram"][slot, 0] += 0.1


class Divides(Window):
    def absorb(self, S, row):
        super().absorb(S, row)
        with np.errstate(all="ignore"):
            S.alpha[:, 0] /= float(S.n < 4)


class Overfull(Window):
    def absorb(self, S, row):
        super().absorb(S, row)
        S.state["n_support"] += S.full


class Changes(Window):
    def __init__(self, step=0):
        self.step = step

    def absorb(self, S, row):
        super().absorb(S, row)
        self.step += 1


def test_a_strategy_done_right():
    check_budget(Window())


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        (Remembers(), "something is remembered outside the state"),
        (WritesVectors(), "rows in blocks have other scores"),
        (WritesDiagonal(), r"diag is not k\(s, s\)"),
        (WritesGram(), "the Gram matrix is not that of the vectors"),
        (Divides(), "row 3 is not learned: .* beyond the range of floats"),
        (Overfull(), "9 support vectors under a budget of 8"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, budgets.Budget) else "",
)
def test_mistakes_are_found(strategy, said):
    with pytest.raises(AssertionError, match=said):
        check_budget(strategy, "hinge")


def test_parameters_must_stay():
    with pytest.raises(AssertionError, match=r"changed its own parameters|remembered outside"):
        check_budget(Changes(), "hinge")


def test_an_update_that_goes_with_it_is_needed():
    with pytest.raises(AssertionError, match="give one"):
        check_budget("projectron_pp", "logistic")
