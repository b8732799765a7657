"""All detectors together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..passes.monitor.python import BLOCK
from ._blocks import Detector
from .adwin import Adwin
from .inputs import KernelTwoSample
from .page_hinkley import PageHinkley

LOSS = ("adwin", "page_hinkley")  # the detectors of losses


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
    detector : {"adwin", "page_hinkley", "kernel"}
        Which one saw it first.
    """

    row: int
    since: int
    what: str
    detector: str


class Monitor:
    """Watches the loss of a learner and its inputs, and marks the rows where something has changed.

    Losses are watched by :class:`~kernelstream.monitor.Adwin` and :class:`~kernelstream.monitor.PageHinkley`, inputs by
    :class:`~kernelstream.monitor.KernelTwoSample`. A change of the loss that both see is one mark.

    Parameters
    ----------
    loss, inputs : bool, default=True
        What to watch.
    react : callable (model, mark), optional
        What :func:`~kernelstream.evaluate.prequential` does about a change, at the end of the block in which it was
        found: make the model forget faster, for example, or send a message.
    random_state : int, default=0
        Of the frequencies for the inputs.
    engine : {"auto", "native", "python"}, default="auto"
        The compiled loops, or their readable specification.

    Attributes
    ----------
    marks : list of Mark
    state : dict of arrays
        Everything the detectors know.
    """

    def __init__(
        self,
        loss: bool = True,
        inputs: bool = True,
        react: Callable[[Any, Mark], Any] | None = None,
        random_state: Any = 0,
        engine: str = "auto",
    ):
        self.react = react
        self.detectors: dict[str, Detector] = {}
        if loss:
            self.detectors |= {"adwin": Adwin(engine=engine), "page_hinkley": PageHinkley(engine=engine)}
        if inputs:
            self.detectors["kernel"] = KernelTwoSample(random_state=random_state, engine=engine)
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
        found = []
        if loss is not None:
            found += self._losses(np.asarray(loss, np.float64))
        if X is not None and "kernel" in self.detectors:
            found += [Mark(row, since, "inputs", "kernel") for row, since in self.detectors["kernel"].learn(X)]
        self.marks += found
        return found

    def _losses(self, loss: np.ndarray) -> list[Mark]:
        """Both detectors, block by block: when one sees a change, the other forgets too."""
        found = []
        pair = [self.detectors[name] for name in LOSS if name in self.detectors]
        start = 0
        while pair and start < len(loss):
            stop = start + BLOCK - pair[0].n_rows % BLOCK
            seen = [detector.learn(loss[start:stop]) for detector in pair]  # at most one change in a block
            found += self._agreed([changes[0] if changes else None for changes in seen])
            start = stop
        return found

    def take(self, loss: np.ndarray, X: np.ndarray) -> list[Mark]:
        """32 losses and rows that are known to be right, where none wait for others: :meth:`learn`, and quicker.

        Parameters
        ----------
        loss : (32,) array
        X : (32, d) array
        """
        found = self._agreed([self.detectors[name].take(loss) for name in LOSS])
        change = self.detectors["kernel"].take(X)
        found += [] if change is None else [Mark(*change, "inputs", "kernel")]
        self.marks += found
        return found

    def _agreed(self, changes: list[tuple[int, int] | None]) -> list[Mark]:
        """What the detectors of losses have found at the end of a block, as one mark: all of them forget."""
        for name, change in zip(LOSS, changes, strict=True):
            if change is not None:
                for other in LOSS:
                    self.detectors[other].reset()  # type: ignore[attr-defined]
                return [Mark(*change, "loss", name)]
        return []


def _what(detector: str) -> str:
    return "inputs" if detector == "kernel" else "loss"
