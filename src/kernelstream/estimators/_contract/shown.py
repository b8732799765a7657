"""Attributes of estimators that follow from what was learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...state.turns import in_turn


def shown(answer: Callable[[Any, Any], Any]) -> Any:
    """A property of estimators: what a function of their learner and its state answers, with its docstring."""

    @in_turn
    def get(est: Any) -> Any:
        return answer(est._learner, est.state_)

    return property(get, doc=answer.__doc__)


def entry(name: str, text: str, form: Callable[[Any], Any] = lambda value: value) -> Any:
    """The same of an entry of the state, in another form where one is given."""
    made = shown(lambda learner, state: form(state[name]))
    return property(made.fget, doc=text)
