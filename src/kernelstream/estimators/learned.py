r"""Learned kernels: random features whose frequencies are learned with the weights (RRF).

Nguyen, Le, Bui, Phung: Large-scale online kernel learning with random feature reparameterization, IJCAI 2017.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .. import kernels, losses
from ..checks import positive, whole
from ..features import spectra
from ..features.fourier import FourierMapping
from ..features.spectra import GUARD, Spectrum
from ..passes.learned.python import Learned
from ..registry.parameters import WithParameters, named_part
from ..rows import Rows
from ..state.change import Change
from ..state.schema import POSITIVE, Array, Number, Schema
from ..updates import AdaGrad, check_auto
from ._contract.base import State
from ._contract.classifier import StreamClassifier
from ._contract.learner import Learner
from ._contract.regressor import StreamRegressor
from ._contract.shown import shown
from ._contract.state import blank, centres
from ._contract.warm_up import WARM_UP
from ._described import described
from .feature import mix_outputs


@dataclass(eq=False, repr=False)
class RRFStep(WithParameters):
    r"""Step sizes of a learner that learns its kernel, and the number of rows per step.

    Parameters
    ----------
    eta : float or "auto", default="auto"
        Step size of the weights (AdaGrad); "auto" means that of :class:`~kernelstream.updates.AdaGrad`, close to 1 for
        100 frequencies. Anything in [0.001, 10] is safe.
    eta_g : float, default=0.1
        Step size of the kernel's parameters (AdaGrad); 0 keeps the kernel. Anything in [0.00001, 0.1] is safe.
    batch_size : int, default=1
        Rows whose mean gradient makes one step. A batch may span calls; it ends early if a class appears, and at the
        end of ``fit``.
    lam : float or None, default=None
        If a number, take the steps of the paper's algorithm 1 as printed, one row at a time in the python engine:
        ``w <- w - eta (l' z + lam w)`` and ``log sigma`` along its plain gradient, with a number for ``eta`` and no
        guard. They diverge if the steps are too large; the paper starts with ``gamma=0.5``.

    Examples
    --------
    >>> from kernelstream import RRFClassifier
    >>> from kernelstream.estimators import RRFStep
    >>> RRFClassifier(step=RRFStep(eta_g=0.01))
    RRFClassifier(step=RRFStep(eta_g=0.01))
    """

    eta: float | str = "auto"
    eta_g: float = 0.1
    batch_size: int = 1
    lam: float | None = None

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        check_auto(self.eta)
        positive("eta_g", self.eta_g, zero=True)
        whole("batch_size", self.batch_size)
        if self.lam is not None:
            positive("lam", self.lam, zero=True)
            if self.eta == "auto" or self.batch_size != 1:
                raise ValueError("plain steps (lam) need a number for eta and batch_size=1")


# The largest step of the grid that the paper searches, and a penalty from the middle of its range.
STEPS = {"step": {"auto": RRFStep, "paper": lambda: RRFStep(eta=0.01, eta_g=0.01, lam=1e-5)}}


class PlainSteps(AdaGrad):
    """The derivative of the loss as it is, for steps whose size does not change."""

    name = "plain_steps"

    def __init__(self, eta: float, lam: float):
        super().__init__(eta)
        self.lam = lam

    def native(self) -> Any:
        return None


class LearnedFeatures(Learner):
    """Weights of features and the parameters of the kernel whose features they are."""

    n_components: int
    gamma: float | str

    @cached_property
    def spectrum(self) -> Spectrum:
        """What is learned of the kernel."""
        return spectra.get(self.parameters["spectrum"])

    @cached_property
    def step(self) -> RRFStep:
        """The step sizes."""
        return named_part(self.context.kind, "step", self.parameters["step"])

    @cached_property
    def update(self) -> AdaGrad:
        """How a row changes the weights."""
        if self.step.lam is None:
            return AdaGrad(self.step.eta)
        return PlainSteps(float(self.step.eta), float(self.step.lam))

    def _base(self, state: State) -> np.ndarray:
        """The random part of the frequencies, made again from the seed."""
        shape = state["n_features"], self.n_components, state["dtype"]
        return self.derived.cached("E", lambda: self.spectrum.draw(state["seed"], *shape))

    def check_parameters(self) -> None:
        n_components = whole("n_components", self.n_components)
        kernels.get("gaussian", self.gamma)
        self.spectrum.check(n_components)
        self.step.check()
        self.update.check(self.context.loss_for(2))

    # ---------------------------------------------------------------- a state
    def start(self, state: State, before: State | None) -> None:
        if not self.warm_up_rows():
            self.estimate(state, None)

    def warm_up_rows(self) -> int:
        return WARM_UP if self.one_width() else 0

    def one_width(self) -> bool:
        return isinstance(self.gamma, str)

    def estimate(self, state: State, X: Rows) -> None:
        kernel = kernels.get("gaussian", self.gamma)
        gamma = kernel.gamma if X is None else kernel.resolve(X).gamma
        state["inverse_length"] = math.sqrt(2.0 * gamma)

    def reset(self, state: State) -> None:
        theta = self.spectrum.start(state["seed"], state["n_features"]).astype(state["dtype"])
        memory = self.update.memory(state["n_outputs"], 2 * self.n_components)
        state |= blank(self._arrays(state)) | {"theta": theta, "theta0": theta.copy(), "memory": memory}
        state |= blank(centres(self))

    def _arrays(self, state: State) -> Schema:
        """Weights and what is learned of the kernel, with their sums."""
        theta, weights = self.spectrum.shape(state["n_features"]), (state["n_outputs"], 2 * self.n_components)
        dtype = state["dtype"]
        schema: Schema = {"theta": Array(theta, dtype), "theta0": Array(theta, dtype), "w": Array(weights, dtype)}
        schema |= {"G": Array(weights, dtype, low=0.0), "H": Array(theta, dtype, low=0.0)}
        if self.step.batch_size > 1:
            schema |= {"sum_w": Array(weights, dtype), "sum_theta": Array(theta, dtype)}
            schema |= {"pending": Array((2,), low=0.0)}
        return schema

    def schema(self, state: State, trained: bool) -> Schema:
        length: Schema = {"inverse_length": Number(POSITIVE)}
        if not trained:
            return {} if self.warm_up_rows() else length
        memory: Schema = {"memory": Array(self.update.memory(state["n_outputs"]).shape)}
        return length | self._arrays(state) | memory | centres(self)

    # ---------------------------------------------------------------- rows
    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        learned = Learned(self.spectrum, self._base(state), self.step.eta_g, self.step.batch_size)
        return self.ops.rrf_pass(X, y, weight, state, self.spec(state), learned)

    def row_learner(self, state: State) -> Any:
        core = None if self.ops.on_device else self.spec(state).core
        if self.step.batch_size > 1 or self.spectrum.native() != ("diagonal", 1) or core is None:
            return None
        return self.ops.row_learner("learned_widths", self, state, self._base(state), self.step.eta_g, GUARD, core)

    def score(self, state: State, X: Rows) -> np.ndarray:
        W = self.spectrum.frequencies(state["theta"], self._base(state))
        mapping = FourierMapping(W * W.dtype.type(state["inverse_length"]))
        scores = self.ops.map_times(mapping, X, np.ascontiguousarray(state["w"].T))
        return scores + state["center"][1] if "center" in state else scores

    def relevance(self, state: State) -> np.ndarray:
        """Width per input, (d,): how fast the model can vary along each column, 0 for a column that it ignores.

        The root mean square of the frequencies: ``sigma`` of the diagonal spectrum. Its unit is the inverse of that of
        the column, so compare only columns on the same scale.
        """
        if "theta" not in state:
            raise AttributeError(f"{self.context.name} has no relevance_ before it has learned a row")
        return self.spectrum.relevance(state["theta"]) * state["inverse_length"]

    def mix_outputs(self, state: State, change: Change) -> None:
        # waiting gradients belong to the old outputs, so a batch ends where the outputs change
        self._finish_batch(state)
        mix_outputs(state, change, self.update)
        if self.step.batch_size > 1:
            state["sum_w"] = np.zeros_like(state["w"])

    def _finish_batch(self, state: State) -> None:
        if self.step.batch_size > 1:
            self.ops.rrf_finish(state, self.step.eta_g)

    def end_warm_up(self, state: State) -> None:
        self._finish_batch(state)


@described()
@dataclass(eq=False, repr=False)
class RRFClassifier(StreamClassifier):
    r"""Online classifier that learns its kernel: a width for every input, together with the weights.

    .. math:: f(x) = \frac{1}{\sqrt D} \sum_j a_j \cos(w_j'x) + b_j \sin(w_j'x), \qquad
        w_j = \sigma \circ e_j,\; e_j \sim N(0, I)

    with e drawn once: features of the kernel ``exp(-|sigma * (x - x')|^2 / 2)``. Every row moves a, b and ``log sigma``
    along their gradients [1]_.

    Parameters
    ----------
    n_components : int, default=100
        Number D of frequencies; there are 2D weights per output.
    gamma : float, "median" or "scale", default="median"
        The kernel at the start: ``exp(-gamma |x - x'|^2)``, that is ``sigma = sqrt(2 gamma)`` for every input. "median"
        and "scale" are estimated from the first rows.
    spectrum : {"diagonal", "mixture", "low_rank"} or Spectrum, default="diagonal"
        What is learned: a width per input; several centres and their widths (``Mixture(n_centres=4)``); or a linear map
        of the input to few dimensions (``LowRank(rank=8)``). Objects are in ``kernelstream.features.spectra``.
    step : RRFStep, "auto" or "paper", default="auto"
        Step sizes of the weights and of the kernel's parameters, and rows per step. "auto" needs no tuning; "paper"
        takes the plain steps of algorithm 1, ``RRFStep(eta=0.01, eta_g=0.01, lam=1e-5)``, which need some.
    engine : {"auto", "native", "python", "torch"} or TorchEngine, default="auto"
        "torch" learns mini-batches on a device (docs/gpu.md).
    random_state : int, Generator, RandomState or None, default=None
        Seed of the e_j.

    Attributes
    ----------
    relevance_ : (d,) array
        The learned widths.

    See Also
    --------
    RRFRegressor : The same for numbers.
    FeatureClassifier : A kernel whose width is given.
    kernelstream.estimators.RRFStep : Step sizes.

    Notes
    -----
    Only the widths of the frequencies are learned, one for every input. A width changes at most by a factor of 20
    (docs/learned_kernels.md).

    References
    ----------
    .. [1] Nguyen, Le, Bui, Phung: Large-scale online kernel learning with random feature reparameterization, IJCAI
       2017, algorithm 1; steps and guard are those of docs/learned_kernels.md.

    Examples
    --------
    Two of six inputs matter; their widths show it.

    >>> import numpy as np
    >>> from kernelstream import RRFClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, (4000, 6))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> model = RRFClassifier(random_state=0).fit(X[:3000], y[:3000])
    >>> model.score(X[3000:], y[3000:]) > 0.95
    True
    >>> np.sort(np.argsort(model.relevance_)[-2:]).tolist()
    [0, 1]
    """

    on_device = True
    _named_parts: ClassVar = STEPS
    relevance_ = shown(LearnedFeatures.relevance)

    n_components: int = 100
    gamma: float | str = "median"
    spectrum: Spectrum | str = "diagonal"
    loss: losses.Loss | str = "hinge"
    step: RRFStep | str = "auto"
    _: KW_ONLY
    standardize: bool | str = "auto"

    _learns = LearnedFeatures


@described(like=RRFClassifier)
@dataclass(eq=False, repr=False)
class RRFRegressor(StreamRegressor):
    r"""Online regression that learns its kernel: a width for every input, together with the weights.

    .. math:: f(x) = \bar y + \frac{1}{\sqrt D} \sum_j a_j \cos(w_j'x) + b_j \sin(w_j'x), \qquad
        w_j = \sigma \circ e_j,\; e_j \sim N(0, I)

    with e drawn once: features of the kernel ``exp(-|sigma * (x - x')|^2 / 2)``. Every row moves a, b and ``log sigma``
    along their gradients [1]_.

    Parameters
    ----------
    step : RRFStep, "auto" or "paper", default="auto"
        Step sizes of the weights and of the kernel's parameters, and rows per step; the automatic step size of the
        weights is that of the classifier times 0.3 × the running standard deviation of the target.
    center : bool, default=True
        Learn the difference from the running mean of the targets seen so far.

    See Also
    --------
    RRFClassifier : The same for labels.
    FeatureRegressor : A kernel whose width is given.
    kernelstream.estimators.RRFStep : Step sizes.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import RRFRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (4000, 6))
    >>> y = np.sin(4 * X[:, 0]) + X[:, 1]
    >>> model = RRFRegressor(random_state=0).fit(X[:3000], y[:3000])
    >>> model.score(X[3000:], y[3000:]) > 0.95
    True
    >>> int(model.relevance_.argmax())
    0
    """

    on_device = True
    _named_parts: ClassVar = STEPS
    relevance_ = shown(LearnedFeatures.relevance)

    n_components: int = 100
    gamma: float | str = "median"
    spectrum: Spectrum | str = "diagonal"
    loss: losses.Loss | str = "squared"
    step: RRFStep | str = "auto"
    _: KW_ONLY
    center: bool = True
    standardize: bool | str = "auto"

    _learns = LearnedFeatures
