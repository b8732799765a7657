"""Undo of a failed call: the states become what they were before it, to the last bit.

A state is a dict. The dict itself is copied before a call, and so is the memory of every array that the call may change
in place. Large arrays of which a call changes only a few rows are not copied: code that is about to write to such an
array calls :func:`rows` first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .nested import State

try:
    from .._core import Marks
except ImportError:  # installed without the compiled core

    class Marks:  # type: ignore[no-redef]
        """A snapshot of some states, to go back to.

        ``arrays`` are tuples: position of the state, name of the entry, its array, and an array like it or None.
        """

        def __init__(self, states: list[dict[str, Any]], arrays: list[tuple[int, str, np.ndarray, Any]]):
            self.states, self.arrays = states, arrays
            self.names = [list(state) for state in states]
            self.copied = [(array, copy) for _, _, array, copy in arrays if copy is not None]
            self.before: list[dict[str, Any]] = []

        def save(self) -> bool:
            """Remember the states as they are; if they hold other arrays by now, remember nothing and return False."""
            self.before = []
            if [list(state) for state in self.states] != self.names:
                return False
            if any(self.states[which][name] is not array for which, name, array, _ in self.arrays):
                return False
            for array, copy in self.copied:
                np.copyto(copy, array)
            self.before = [dict(state) for state in self.states]
            return True

        def forget(self) -> None:
            """The call succeeded: drop what was saved."""
            self.before = []

        def restore(self) -> bool:
            """Put the states back as they were saved; False if nothing is saved."""
            if not self.before:
                return False
            for array, copy in self.copied:
                np.copyto(array, copy)
            for state, before in zip(self.states, self.before, strict=True):
                state.clear()
                state.update(before)
            self.before = []
            return True


# Entries that no learner changes in place, by the beginning of their names: feature maps, kernels, rows that are kept.
REPLACED = ("map_", "kernel_", "warm_", "wait_", "classes", "batch_")

Entries = list[tuple[np.ndarray, Any, np.ndarray]]  # arrays, the rows that changed, and what they held
_journals: dict[int, list[Entries]] = {}  # of the arrays that are written to by rows: one for each call that is open


def rows(array: np.ndarray, index: Any) -> None:
    """Some rows of an array are about to change: a slice, or an array of indices.

    Or some entries: a pair of indices. ``slice(None)`` and an array of indices are columns.
    """
    journals = _journals.get(id(array))
    if journals is None:
        return
    if isinstance(index, np.ndarray):
        before = array.take(index, axis=0)
    elif isinstance(index, tuple) and isinstance(index[0], slice):
        before = array.take(index[1], axis=1)
    else:
        before = array[index].copy()
    for journal in journals:
        journal.append((array, index, before))


class Undo:
    """States of a model before a call.

    Parameters
    ----------
    owners : callable () -> list of (estimator, state)
        The states as they are now, states inside others too, and of each what learns into it. Its ``writes(state)``
        names the entries that are not to be copied: those that are never changed in place, and those whose changes are
        announced by :func:`rows`.
    restored : callable (nothing_learned) or None
        What else is to be done when they have been restored.
    """

    def __init__(self, owners: Callable[[], list[tuple[Any, State]]], restored: Callable[[bool], None] | None = None):
        self.owners, self.restored = owners, restored
        self.journaled: list[np.ndarray] = []
        self.journal: Entries = []
        self.marks: Any = None

    def begin(self) -> bool:
        """A call begins. True if a read-only array was replaced by a copy: what is bound to it is out of date."""
        self._close()
        found = self.marks is None or not self.marks.save()
        replaced = self._find_arrays() if found else False
        if found:
            self.marks.save()
        for array in self.journaled:
            _journals.setdefault(id(array), []).append(self.journal)
        return replaced

    def end(self) -> None:
        """It is complete."""
        if self.marks is not None:
            self.marks.forget()
        self._close()

    def take_back(self, nothing_learned: bool = False) -> None:
        """It has failed: the states become what they were; nothing happens if it was complete already."""
        taken = self.marks is not None and self.marks.restore()
        for array, index, before in reversed(self.journal if taken else []):
            array[index] = before
        self._close()
        if taken and self.restored is not None:
            self.restored(nothing_learned)

    def _close(self) -> None:
        for array in self.journaled:
            others = [journal for journal in _journals.pop(id(array), ()) if journal is not self.journal]
            if others:
                _journals[id(array)] = others
        self.journal.clear()

    def _find_arrays(self) -> bool:
        """Find the arrays; they may not be those of the call before. Read-only ones, of a mapped file, are copied."""
        entries: list[tuple[int, str, Any, Any]] = []
        self.journaled, copied = [], False
        owners = self.owners()
        for i, (owner, state) in enumerate(owners):
            replaced, by_row = owner.writes(state)
            for name, value in state.items():
                if isinstance(value, dict):  # another one in its place would have to be found again
                    entries.append((i, name, value, None))
                if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf" or name.startswith(REPLACED):
                    continue
                if not value.flags.writeable:  # those that are replaced too: compiled passes want all that may change
                    value, copied = np.array(value), True
                    state[name] = value
                if name in replaced:
                    continue
                if name in by_row:
                    self.journaled.append(value)
                    entries.append((i, name, value, None))
                else:
                    if not value.flags.forc:
                        value = state[name] = np.ascontiguousarray(value)
                    entries.append((i, name, value, np.empty_like(value)))
        self.marks = Marks([state for _, state in owners], entries)
        return copied


class Call:
    """A call that may change several objects, and what they were before it.

    It is over, for all of them, in a single step: when ``running`` becomes False. Until then :meth:`take_back` undoes
    it. The attribute ``_open`` of an object is the call that it takes part in.

    Parameters
    ----------
    complete : callable () -> bool
        Tells, when the call has failed, that it was complete nevertheless.
    """

    def __init__(self, complete: Callable[[], bool]):
        self.complete = complete
        self.running = True
        self.nothing_learned = True  # as long as no state can have changed
        self.parts: list[tuple[Any, dict[str, Any], list[Any]]] = []  # objects, their attributes, and an undo or none

    def join(self, obj: Any, fresh: bool) -> None:
        """An object takes part; with ``fresh``, a new state will take the place of the one it has."""
        own: dict[str, Any] = vars(obj)
        undos: list[Any] = []
        self.parts.append((obj, {name: value for name, value in own.items() if name != "_open"}, undos))
        own["_open"] = self
        if not fresh:
            undos += obj._begin_call()

    def undo_of(self, obj: Any) -> Any:
        """The undo of an object that has one."""
        return next(undos[0] for one, _, undos in self.parts if one is obj)

    def take_back(self) -> None:
        """It has failed: all objects become what they were, unless it was complete already."""
        if not self.running or self.complete():
            return
        for obj, before, undos in reversed(self.parts):
            own, lasting = vars(obj), (*getattr(obj, "_lasting", ()), "_open")
            for name in [name for name in own if name not in before and name not in lasting]:
                del own[name]
            own |= {name: value for name, value in before.items() if name not in lasting}
            for undo in undos:
                undo.take_back(self.nothing_learned)

    def close(self) -> None:
        """Nothing more can be taken back."""
        self.running = False
        for obj, _, undos in self.parts:
            for undo in undos:
                if isinstance(undo, Undo):
                    undo.end()
            vars(obj).pop("_open", None)


def open_call(obj: Any) -> Call | None:
    """The call that an object takes part in now."""
    call: Call | None = vars(obj).get("_open")
    return call if call is not None and call.running else None


@contextlib.contextmanager
def all_or_nothing(
    obj: Any, *inside: Any, fresh: bool = False, complete: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Context in which an error leaves an object as it was, and with it others inside, however many calls they got.

    The outermost context takes back everything; for an object that has one open already nothing is done.

    Parameters
    ----------
    obj : object
        Its attributes become what they were, but for those named in ``_lasting``, where it has one. ``_begin_call()``
        lists what will undo its state (an :class:`Undo`, or what has its ``take_back``), ``_inside_call()`` the objects
        that go back with it.
    *inside : objects
        Others that go back with it. Those that cannot be undone are left out.
    fresh : bool
        Says that no state is changed inside: a new one takes the place of the old, if there is one.
    complete : callable () -> bool
        Tells, after an error, that the call was complete nevertheless, and is not to be taken back.
    """
    with obj._turns, contextlib.ExitStack() as turns:
        if open_call(obj) is not None:
            yield
            return
        parts = [obj] if fresh else _with_those_inside([obj, *inside])
        for part in parts[1:]:
            turns.enter_context(part._turns)
        call = Call(complete)
        try:
            for part in parts:
                call.join(part, fresh)
            yield
            call.running = False
        except BaseException:
            call.take_back()
            raise
        finally:
            call.close()


def _with_those_inside(objects: list[Any]) -> list[Any]:
    """Objects that can be undone, and those that go back with them, each once."""
    found: list[Any] = []
    while objects:
        obj = objects.pop(0)
        if hasattr(obj, "_begin_call") and not any(obj is one for one in found):
            found.append(obj)
            objects += obj._inside_call()
    return found
