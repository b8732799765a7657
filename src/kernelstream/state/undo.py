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
        The states as they are now, states inside others too, and of each the estimator that learns into it. It says
        which entries are not to be copied: ``_replaced``, because they are never changed in place, and ``_by_row``,
        because their changes are announced by :func:`rows`.
    """

    def __init__(self, owners: Callable[[], list[tuple[Any, State]]]):
        self.owners = owners
        self.journaled: list[np.ndarray] = []
        self.journal: Entries = []
        self.marks: Any = None
        self.put_back: Callable[[], Any] | None = None  # what a device holds of the state

    def begin(self) -> None:
        """A call begins."""
        self._close()
        if self.marks is None or not self.marks.save():
            self._find_arrays()
            self.marks.save()
        for array in self.journaled:
            _journals.setdefault(id(array), []).append(self.journal)

    def end(self) -> None:
        """It is complete."""
        self.marks.forget()
        if self.journaled:
            self._close()

    def take_back(self) -> bool:
        """It has failed: the states become what they were. False if it was complete already: then nothing happens."""
        taken = self.marks.restore()
        if taken:
            for array, index, before in reversed(self.journal):
                array[index] = before
        self._close()
        return taken

    def _close(self) -> None:
        for array in self.journaled:
            others = [journal for journal in _journals.pop(id(array), ()) if journal is not self.journal]
            if others:
                _journals[id(array)] = others
        self.journal.clear()

    def _find_arrays(self) -> None:
        """Find the arrays; they may not be those of the call before."""
        entries: list[tuple[int, str, Any, Any]] = []
        self.journaled = []
        owners = self.owners()
        for i, (owner, state) in enumerate(owners):
            replaced, by_row = owner._replaced, owner._by_row
            for name, value in state.items():
                if isinstance(value, dict):  # another one in its place would have to be found again
                    entries.append((i, name, value, None))
                if not isinstance(value, np.ndarray) or name in replaced or name.startswith(REPLACED):
                    continue
                if value.dtype.kind not in "biuf" or not value.flags.writeable:
                    continue
                if name in by_row:
                    self.journaled.append(value)
                    entries.append((i, name, value, None))
                else:
                    if not value.flags.forc:
                        value = state[name] = np.ascontiguousarray(value)
                    entries.append((i, name, value, np.empty_like(value)))
        self.marks = Marks([state for _, state in owners], entries)


@contextlib.contextmanager
def all_or_nothing(obj: Any, *inside: Any, fresh: bool = False) -> Iterator[None]:
    """Context in which an error leaves an object as it was, and with it others inside, however many calls they got.

    The outermost context takes back everything; for an object that has one open already nothing is done.

    Parameters
    ----------
    obj : object
        Its attributes become what they were, but for those named in ``_lasting``, where it has one. Where it has
        ``_begin_call()``, that gives an :class:`Undo` of its state that has begun, or None where there is nothing to
        undo; ``_take_back(undo, nothing_learned)`` ends it. The attribute ``_nothing_learned`` is True as long as
        nothing has been learned.
    *inside : objects
        Those with a method ``_kept`` are kept in the context that it gives.
    fresh : bool
        Says that no state is changed inside: a new one takes the place of the old, if there is one.
    """
    own: dict[str, Any] = vars(obj)
    if "_open" in own:
        yield
        return
    with obj._turns:
        before = dict(own)
        undo = None if fresh or not hasattr(obj, "_begin_call") else obj._begin_call()
        try:
            own |= {"_open": True, "_nothing_learned": True}
            with contextlib.ExitStack() as opened:
                for part in inside:
                    if hasattr(part, "_kept"):
                        opened.enter_context(part._kept())
                yield
            if undo is not None:
                undo.end()
            del own["_open"], own["_nothing_learned"]
        except BaseException:
            nothing_learned = own.get("_nothing_learned", False)
            lasting = getattr(obj, "_lasting", ())
            for name in [name for name in own if name not in before and name not in lasting]:
                del own[name]
            own |= {name: value for name, value in before.items() if name not in lasting}
            if undo is not None:
                obj._take_back(undo, nothing_learned)
            raise
