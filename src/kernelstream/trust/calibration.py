"""Probabilities from scores, learned row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import engine as engines
from .. import losses
from ..checks import whole
from ..passes.trust.python import PRIOR
from ..state.schema import Array, Schema

KEEP = 1.0 - 1.0 / np.array([500.0, 5000.0, np.inf])  # share of its past that each answer keeps with every row


class Calibrator:
    r"""Turns scores into calibrated probabilities, row by row: of rows with probability p, a share p comes true.

    .. math:: P(y = 1 \mid s) = \sum_e v_e\, \sigma(a_e \log(1 + e^s) - b_e \log(1 + e^{-s}) + c_e \tanh s + d_e)

    for two classes and a softmax of :math:`a_{ec} s_c + b_{ec}` for several: beta calibration and vector scaling with
    three memories (500 rows, 5000, all), learned by online Newton steps from the identity and mixed with the raw scores
    by likelihood with a fixed share. The sum of the log-losses of n rows is at most that of the raw scores plus
    ``log 4 + n / 10000`` (``kernelstream.passes.trust.python`` has the formulas and the references).

    Parameters
    ----------
    n_classes : int, default=2
    own : bool, default=True
        Whether the scores are log-odds already (logarithms of probabilities, up to a constant, for several classes).
        Scores of a hinge are not: they are divided by their running size first.
    engine : {"auto", "native", "python"}
    state : dict of arrays, optional
        What another calibrator has learned, to continue from.

    Attributes
    ----------
    state : dict of arrays
        Everything learned.

    Examples
    --------
    Scores that are three times too large.

    >>> import numpy as np
    >>> from kernelstream.trust import Calibrator
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=5000)
    >>> y = rng.random(5000) < 1 / (1 + np.exp(-truth))
    >>> calibrator = Calibrator()
    >>> _ = calibrator.learn(3 * truth, y)
    >>> bool(abs(calibrator.transform(np.array([3.0]))[0] - 1) < 0.2)
    True
    """

    def __init__(
        self, n_classes: int = 2, own: bool = True, engine: str = "auto", state: dict[str, np.ndarray] | None = None
    ):
        self.own, self.engine = bool(own), engine
        self.state = self._start(whole("n_classes", n_classes, least=2)) if state is None else state

    @staticmethod
    def _start(n: int, keep: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """The identity."""
        E = len(KEEP if keep is None else keep)
        theta = np.tile([1.0, 1.0, 0.0, 0.0], (E, 1)) if n == 2 else np.tile([1.0, 0.0], (E, n, 1))
        k = theta.shape[-1]
        return {
            "size": np.zeros(3),
            "weights": np.full(E + 1, 1.0 / (E + 1)),
            "theta": theta,
            "curvature": PRIOR * np.tile(np.eye(k)[np.tril_indices(k)], (*theta.shape[:-1], 1)),
        }

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        theta = self.state["theta"]
        return 2 if theta.ndim == 2 else theta.shape[1]

    @staticmethod
    def schema(n_classes: int) -> Schema:
        """What the entries of the state may be."""
        start = Calibrator._start(max(n_classes, 2))
        return {
            "size": Array((3,), low=0.0),
            "weights": Array(start["weights"].shape, low=0.0, high=1.0),
            "theta": Array(start["theta"].shape),
            "curvature": Array(start["curvature"].shape),
        }

    def learn(self, scores: Any, y: Any, weight: Any = None) -> np.ndarray:
        """Learn rows in order; returns what :meth:`transform` gave for each before it was learned.

        Parameters
        ----------
        scores : (n,) array for two classes, else (n, n_classes)
        y : (n,) array
            Numbers of the classes, from 0.
        weight : (n,) array, optional
            Factors of each row's log-loss, next to their mean so far: the unit does not matter. A row of weight 0 is
            answered and skipped.

        Returns
        -------
        (n,) array of log-odds of class 1, or (n, n_classes) array of logarithms of probabilities
        """
        scores = self._checked(scores)
        y = np.ascontiguousarray(y, np.float64)
        if y.shape != scores.shape[:1]:
            raise ValueError(f"y must have one entry for each of {len(scores)} rows, got shape {y.shape}")
        if not np.isin(y, np.arange(self.n_classes)).all():
            raise ValueError(f"y must hold numbers of classes, 0 to {self.n_classes - 1}")
        if weight is not None:
            weight = np.ascontiguousarray(weight, np.float64)
            if weight.shape != y.shape or not np.isfinite(weight).all() or (weight < 0).any():
                raise ValueError("weight must have one finite number >= 0 for each row")
        return self._pass(scores, y, weight, self.state)

    def transform(self, scores: Any) -> np.ndarray:
        """Log-odds of class 1, (n,), or logarithms of probabilities, (n, n_classes); see :meth:`learn`."""
        # arrays of a mapped file cannot be written to, and the pass asks for arrays that can
        state = {key: part if part.flags.writeable else part.copy() for key, part in self.state.items()}
        return self._pass(self._checked(scores), None, None, state)

    @staticmethod
    def grown(old: dict[str, np.ndarray], kept: np.ndarray, n_classes: int, keep: Any = None) -> dict[str, np.ndarray]:
        """The state to go on with for more classes; class i so far becomes class ``kept[i]``.

        What was learned for two classes is dropped when a third comes: the scores then have another form.
        """
        new = Calibrator._start(n_classes, keep)
        if old["theta"].ndim == 2:  # s has become -s/2, s/2 and 0
            return new | {"size": old["size"] * [1.0, 1.0 / 6.0, 1.0]}
        new["theta"][:, kept] = old["theta"]
        new["curvature"][:, kept] = old["curvature"]
        return new | {"size": old["size"], "weights": old["weights"]}

    def _checked(self, scores: Any) -> np.ndarray:
        scores = np.ascontiguousarray(scores, np.float64)
        wanted = "(n,)" if self.n_classes == 2 else f"(n, {self.n_classes})"
        if scores.ndim != 1 + (self.n_classes > 2) or scores.shape[1:] not in ((), (self.n_classes,)):
            raise ValueError(f"scores of {self.n_classes} classes must have shape {wanted}, got {scores.shape}")
        if not np.isfinite(scores).all():
            raise ValueError("scores contains NaN or infinity")
        return scores

    def _pass(self, scores: np.ndarray, y: Any, weight: Any, state: dict[str, np.ndarray]) -> np.ndarray:
        out = np.empty_like(scores)
        engines.get(self.engine).calibrate(state, scores, y, weight, self.own, KEEP, out)
        return out


def loss_of(model: Any, task: str) -> Any:
    """The loss of a model, if it makes probabilities of scores; else None."""
    spec = getattr(model, "loss", None)
    if not isinstance(spec, (str, losses.Loss)):
        return None
    loss: Any = losses.get(spec, task)
    return loss if hasattr(loss, "probability") else None


def probabilities(answers: np.ndarray) -> np.ndarray:
    """What a calibrator says, (n,) log-odds or (n, C) logarithms, as probabilities (n, C)."""
    if answers.ndim == 2:
        return np.exp(answers)
    e = np.exp(-np.abs(answers))
    large, small = 1.0 / (1.0 + e), e / (1.0 + e)
    yes = answers >= 0
    return np.stack([np.where(yes, small, large), np.where(yes, large, small)], axis=1)
