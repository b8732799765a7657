"""Learners made of learners: the members' states in one flat state, and what is done to all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...rows import Rows
from ...state.turns import in_turn
from ..ensemble import members as _members
from .base import State, StreamEstimator
from .classifier import StreamClassifier


class CompositeEstimator(StreamEstimator):
    """Members that are estimators of this library and learn the same rows."""

    _states: list[State]

    # ---------------------------------------------------------------- members
    def _prototypes(self) -> list[Any]:
        """Unfitted copies of the members."""
        raise NotImplementedError

    def _examples(self) -> list[Any]:
        """Unfitted copies of the members, for questions about them; never changed."""
        return self._cached("examples", self._prototypes)

    def _forget_examples(self) -> None:
        """Drop the copies: the parameters may have changed."""
        for name in ("examples", "choosy"):
            self.__dict__.get("_cache", {}).pop(name, None)

    def _size(self, i: int, member: Any) -> None:
        """Give a copy of member i the size that the member has now."""

    @property
    def _learners(self) -> list[Any]:
        def attach() -> list[Any]:
            members = self._prototypes()
            while len(members) < len(self._states):  # one set for every output
                members += self._prototypes()
            for i, (member, state) in enumerate(zip(members, self._states, strict=True)):
                self._size(i, member)
                member._turns = self._turns  # they share the state, so they share the turns
                member.state_ = state
            return members

        return self._cached("learners", attach)

    def _owners(self) -> list[tuple[Any, State]]:
        return [(self, self._state), *((member, member._state) for member in self._learners)]

    def _take_back(self, undo: Any, put_back: Any, at_door: bool = False) -> None:
        members = self._cache.get("learners")
        super()._take_back(undo, put_back, at_door)
        if members is not None and not at_door:  # others may hold a reference to them
            for i, member in enumerate(members):
                self._size(i, member)
                member._cache = {}
                member._remake(member._state)
            self._cache["learners"] = members

    # ---------------------------------------------------------------- state
    @property
    @in_turn
    def state_(self) -> State:
        """Everything learned, flat: the entries of learner i have names that begin with ``m{i}_``."""
        if self.__dict__.get("_state") is None:
            raise AttributeError(f"{type(self).__name__} has no state_ before it has learned a row")
        return _members.flatten(self._state, self._states)

    @state_.setter
    @in_turn
    def state_(self, flat: State) -> None:
        self._state, self._states = _members.split(flat)
        self.n_features_in_ = int(self._state["n_features"])
        self._forget()

    # ---------------------------------------------------------------- hooks
    def _begin(self, state: State) -> None:
        self._state = state
        self._states = [_members.start(member, i, state) for i, member in enumerate(self._examples())]

    def _warm_up_rows(self) -> int:
        return max(member._warm_up_rows() for member in self._examples())

    def _one_width(self) -> bool:
        members = self._examples()
        return any(member._one_width() for member in members) and not any(member._choosy() for member in members)

    def _estimate(self, state: State, X: Rows) -> None:
        for member in self._learners:
            if member._warm_up_rows():
                member._estimate(member._state, X)

    def _end_warm_up(self) -> None:
        super()._end_warm_up()
        for member in self._learners:
            member._end_warm_up()

    def _widen(self, state: State, d: int) -> None:
        own, states = _members.split(state)
        for member, part in zip(self._learners, states, strict=True):
            member._widen(part, d)
        state |= _members.flatten(own, states)

    def _check_rows(self, X: Rows) -> None:
        for member in self._cached("choosy", lambda: tuple(m for m in self._examples() if m._choosy())):
            member._check_rows(X)

    def _check_state(self, trained: bool | None = None) -> None:
        super()._check_state(trained)
        trained = not self._state["warm_rows"] or self._state["warm_count"] > 0
        for i, member in enumerate(self._learners):
            try:
                member._check_state(trained)
            except ValueError as error:
                raise ValueError(f"learner {i}: {error}") from None


class CompositeClassifier(StreamClassifier, CompositeEstimator):
    """Labels of all members; a new label is added to all of them at once."""

    @property
    def classes_(self) -> np.ndarray:
        """Labels known so far, sorted."""
        if self.__dict__.get("_state") is None:
            raise AttributeError(f"{type(self).__name__} has no classes_ before it has learned a row")
        return self._state["classes"]

    def _declare(self, state: State, declared: Any) -> None:
        for member_state in self._states:
            if "classes" not in member_state:
                member_state |= {"classes": declared[0][:0], "class_counts": np.zeros(0), "classes_fixed": 0}
        super()._declare(state, declared)
        for member_state in self._states:
            member_state["classes_fixed"] = state["classes_fixed"]

    def _add_class(self, state: State, label: Any, trained: bool) -> None:
        super()._add_class(state, label, trained)
        self._outputs_changed()
        for member in self._learners:
            member._add_class(member._state, label, trained)

    def _outputs_changed(self) -> None:
        """A label has appeared."""
