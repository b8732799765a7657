"""Calls: what they work on, how they are undone where they fail, and the short way of those with plain rows.

Plain rows are such that a single look shows that they need no further checks; all others go by :mod:`.intake`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from ...core.overflow import reword
from ...rows import MODERATE, Rows, is_canonical
from ...state.nested import State
from ...state.undo import all_or_nothing
from . import weights
from .scaling import scales_columns
from .targets import public


@contextlib.contextmanager
def learning(est: Any, fresh: bool = False) -> Iterator[None]:
    """Context of a call, or of several: an error leaves the estimator as it was before. See ``all_or_nothing``."""
    try:
        with all_or_nothing(est, fresh=fresh):
            yield
    except BaseException as error:
        reword(error)
        raise


def bound(est: Any) -> tuple[Any, State]:
    """The layers of a trained estimator and its state, for functions that work on both."""
    layers, state = est._made or est._layers, est._state
    if state is None:
        raise NotFittedError(f"This {type(est).__name__} has not learned any row yet: call fit, partial_fit or learn")
    return layers, state


class Form(NamedTuple):
    """What the plain rows of a model are like, and what learns them."""

    dtype: np.dtype
    width: int
    all_below: Any
    exponent: int  # of the bound of all numbers
    domains: list[Any]  # of the learner, which check rows further
    plain_rows: Any
    single: bool  # whether rows are float32
    scaled: bool  # whether columns are scaled, which makes sparse rows dense
    layers: Any
    rows: Any  # the outermost layer that has something to do

    @classmethod
    def of(cls, layers: Any, state: State) -> Form | None:
        """The form of the rows of a model; None while rows still need a decision."""
        if state["warm_rows"] or layers.targets.weighs or weights.SUMS in state:
            return None
        ops, dtype, scaled = layers.learner.ops, np.dtype(state["dtype"]), scales_columns(state)
        rows = layers.rows if scaled else layers.rows.inner
        bounds = ops.all_below, MODERATE[state["dtype"]], layers.learner.domains(), ops.plain_rows
        return cls(dtype, state["n_features"], *bounds, dtype == np.float32, scaled, layers, rows)

    def learn_plain(self, state: State, X: Rows, y: np.ndarray, call: Any, how: dict[str, Any]) -> np.ndarray:
        """Learn checked rows with encoded targets; returns the scores before each update, in public form.

        They are undone as a whole, by the ``call`` in whose course they come, if there is one.
        """
        layers = self.layers
        if call is not None and call.running:
            call.nothing_learned = False
            return public(layers.learn_believed(state, X, y, self.rows, how))
        if layers.learner.learn_few is not None and not how:  # a short path for few rows
            found = layers.learner.learn_few(state, X, y)
            if found is not None:
                return found[:, 0] if found.shape[1] == 1 else found  # `public`, without a call of Python
        try:
            if layers.marks is None or not layers.marks.save():  # saving the marks is all that most models need
                layers.begin(state)
            if layers.targets.sets_aside:
                scores = layers.learn_believed(state, X, y, self.rows, how)
            else:
                scores = self.rows.learn(state, X, y, None, **how)
            if layers.undo.journaled:
                layers.undo.end()
            else:
                layers.undo.marks.forget()  # the same, without a call of Python
        except BaseException as error:
            if layers.undo is not None:
                layers.undo.take_back()
            reword(error)
            raise
        return scores[:, 0] if scores.shape[1] == 1 else scores


def plain_rows(X: Any, form: Form) -> bool:
    """Whether the rows need neither a conversion nor further checks."""
    if type(X) is np.ndarray:
        return form.plain_rows(X, form.single, form.width, form.exponent)
    if type(X) in (sp.csr_array, sp.csr_matrix) and not form.scaled:
        plain = X.ndim == 2 and X.dtype == form.dtype and X.shape[1] == form.width and X.shape[0] > 0
        return bool(plain and is_canonical(X) and form.all_below(X.data, form.exponent))
    return False
