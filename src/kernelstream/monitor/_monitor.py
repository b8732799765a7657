"""All detectors together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._blocks import Detector
from .adwin import Adwin
from .inputs import KernelTwoSample


@dataclass(frozen=True)
class Mark:
    """A change.

    Attributes
    ----------
    row : int
        Rows seen when it was found.
    since : int
        Row at which it seems to have begun.
    what : {"loss", "inputs"}
        Where it showed.
    detector : {"adwin", "kernel"}
        Which one saw it.
    """

    row: int
    since: int
    what: str
    detector: str


class Monitor:
    """Watches the loss of a learner and its inputs, and marks the rows where something has changed.

    Losses are watched by :class:`~kernelstream.monitor.Adwin`, inputs by
    :class:`~kernelstream.monitor.KernelTwoSample`.

    Parameters
    ----------
    inputs : bool, default=True
        Whether inputs are watched beside the loss.
    react : callable (model, mark), optional
        What :func:`~kernelstream.evaluate.prequential` does about a change, at the end of the block in which it was
        found: make the model forget faster, for example, or send a message.

    Attributes
    ----------
    marks : list of Mark
    state : dict of arrays
        Everything the detectors know.
    """

    def __init__(self, inputs: bool = True, react: Callable[[Any, Mark], Any] | None = None):
        self.react = react
        self.detectors: dict[str, Detector] = {"adwin": Adwin()}
        if inputs:
            self.detectors["kernel"] = KernelTwoSample()
        self.marks: list[Mark] = []

    @property
    def state(self) -> dict[str, np.ndarray]:
        """Entries of all detectors, ``adwin_rows`` and so on, and the marks."""
        entries = {
            f"{name}_{key}": value for name, detector in self.detectors.items() for key, value in detector.state.items()
        }
        names = [*self.detectors]
        rows = [[mark.row, mark.since, names.index(mark.detector)] for mark in self.marks]
        return entries | {"marks": np.array(rows, np.int64).reshape(-1, 3)}

    @state.setter
    def state(self, state: dict[str, np.ndarray]) -> None:
        names = [*self.detectors]
        for name, detector in self.detectors.items():
            detector.state = {k[len(name) + 1 :]: np.array(v) for k, v in state.items() if k.startswith(name + "_")}
        self.marks = [Mark(r, s, _what(names[d]), names[d]) for r, s, d in state["marks"].tolist()]

    def learn(self, loss: Any = None, X: Any = None) -> list[Mark]:
        """Take the next rows; returns the changes found in them.

        Parameters
        ----------
        loss : (n,) array of numbers >= 0, optional
            What each forecast cost, before its row was learned: mistakes, squared errors, …
        X : (n, d) array or CSR, optional
            The rows. The two may come at different times: each has a count of its own.

        Returns
        -------
        list of Mark
        """
        given = {"adwin": loss, "kernel": X}
        found = [
            Mark(row, since, _what(name), name)
            for name, detector in self.detectors.items()
            if given[name] is not None
            for row, since in detector.learn(given[name])
        ]
        self.marks += found
        return found


def _what(detector: str) -> str:
    return "inputs" if detector == "kernel" else "loss"
