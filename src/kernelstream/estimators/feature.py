r"""Learners on explicit features: ``f(x) = w'z(x)``, a feature map × a loss × a first-order update."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import engine as engines
from .. import features as maps
from .. import losses, updates
from ..features import FeatureMap, Mapping, RandomFourier
from ..features._base import checked
from ..features.fourier import FourierMapping
from ..features.raw import RawFeatures, RawMapping
from ..features.sampling import Draws
from ..passes.linear.each_target import EachTarget
from ..passes.linear.host import LARGE, WIDE
from ..passes.linear.python import SAFE, folded
from ..rows import Rows, padded
from ..state.change import Change
from ..state.nested import renew_under, under
from ..state.schema import Array, Schema, check, prefixed
from ..state.turns import in_turn
from ..updates import AdaGrad, Update, unwrap
from ._contract.base import Shell, State
from ._contract.classifier import StreamClassifier
from ._contract.learner import Learner
from ._contract.regressor import StreamRegressor
from ._contract.state import blank, centres, is_trained, scales
from ._contract.warm_up import WARM_UP
from ._described import described

LinearForm = tuple[Mapping, np.ndarray, np.ndarray]
WEIGHTS = frozenset({"w", "G"})
MAP = "map_"  # prefix of the map's entries in the state


def map_entries(state: State) -> dict[str, Any]:
    """What the feature map keeps in a state."""
    return under(state, MAP)


# AdaGrad's sums of squares fade by this factor with every row, so that steps never vanish (docs/default_update.md).
FORGETTING = 0.9997


def _is_wide(map: FeatureMap, d: int) -> bool:
    """Whether the columns themselves are the features, and so many that sparse rows stay sparse."""
    return isinstance(map, RawFeatures) and d >= WIDE


def _made_of(map: FeatureMap, state: State) -> Any:
    """What the frequencies of independent columns depend on, apart from the number of columns."""
    return repr(map), repr(map_entries(state)), state["dtype"]


class LinearOnFeatures(Learner):
    """A linear function of features that learns by first-order steps."""

    _lasting = ("draws",)  # all bandwidths of the warm-up have the same

    def writes(self, state: State) -> tuple[frozenset[str], frozenset[str]]:
        """Where columns are very many, sparse rows touch few weights, and only these are copied before a call."""
        d = state.get("n_features", 0)
        sparse = d >= LARGE and _is_wide(self.map, d) and not self.ops.on_device
        return self._replaced, self._by_row | (WEIGHTS if sparse else frozenset())

    # ---------------------------------------------------------------- parts
    @cached_property
    def map(self) -> FeatureMap:
        """The feature map."""
        return maps.get(self.parameters["features"])

    @cached_property
    def update(self) -> Update:
        """How a row changes the weights."""
        given = self.parameters["update"]
        return self.auto_update() if given == "auto" else updates.get(given)

    def auto_update(self) -> Update:
        """The update that needs no step size: a step for every weight."""
        return AdaGrad(forgetting=FORGETTING)

    def check_parameters(self) -> None:
        self.update.check(self.context.loss_for(2))

    def mapping(self, state: State, dtype: Any = None) -> Mapping:
        """The map with its random numbers, for rows of a float type, by default that of the model."""
        if dtype is not None and np.dtype(dtype) != state["dtype"]:
            return checked(self.map.build(map_entries(state), state["n_features"], np.dtype(dtype)))
        return self.derived.cached("mapping", lambda: checked(self._build(state)))

    def _build(self, state: State) -> Mapping:
        build: Any = self.map.build
        shape = map_entries(state), state["n_features"], np.dtype(state["dtype"])
        made, known = self.derived.pop("narrower", (None, None))
        if made is not None and made == _made_of(self.map, state):
            return build(*shape, None, known)
        if state["warm_rows"] and type(self.map) is RandomFourier:  # the next bandwidth needs the same numbers
            return build(*shape, self.derived.cached("draws", Draws))
        return build(*shape)

    def linear_form(self, state: State, dtype: Any) -> LinearForm | None:
        """The map for rows of a float type, weights (outputs, r) and offset; None where the model is not linear."""
        if not is_trained(state) or "w" not in state:
            return None
        weights = state["w_mean"] if "w_mean" in state else state["w"] * state["scale"][:, None]
        offset = state["center"][1] if "center" in state else 0.0
        return self.mapping(state, dtype), np.asarray(weights, np.float64), np.full(len(weights), offset, np.float64)

    def domains(self) -> list[Any]:
        return [self.map] if self.map.restricted else []

    # ---------------------------------------------------------------- a state
    def start(self, state: State, before: State | None) -> None:
        if not self.map.needs_data:
            self.estimate(state, None)

    def warm_up_rows(self) -> int:
        return max(WARM_UP, self.map.rows_wanted) if self.map.needs_data else 0

    def one_width(self) -> bool:
        return self.map.takes_width

    def estimate(self, state: State, X: Rows) -> None:
        renew_under(state, MAP, self.map.prepare(X, state["seed"]))

    def reset(self, state: State) -> None:
        outputs, width = state["n_outputs"], self.mapping(state).n_out
        update, average = unwrap(self.update)
        weights = np.zeros((outputs, width), state["dtype"])
        state |= {"w": weights, "scale": np.ones(outputs), "memory": update.memory(outputs, width)}
        if _several_targets(state):  # each has its own scale, as in the first column
            state["memory"] = np.repeat(update.memory(1, width), outputs, axis=1)
        if update.diagonal:
            state["G"] = weights.copy()
        if average:
            state["w_mean"] = weights.copy()
        self._keep_factor(state, state["n_features"])
        state |= blank(centres(self, outputs))

    def _keep_factor(self, state: State, d: int) -> None:
        """Where rows may be sparse, let the sums of squares of many columns fade by one common factor."""
        if "G" in state and "G_scale" not in state and _is_wide(self.map, d):
            state["G_scale"] = np.ones(state["n_outputs"])

    # ---------------------------------------------------------------- rows
    def held(self, state: State) -> Any:
        """The engine's learner for a state, with ``learn``, ``score`` and ``sync``; as long as the outputs stay."""
        held = self.derived.get("held")
        if held is None or held.state is not state or held.outputs != state["n_outputs"]:
            parts = self.mapping(state), self.loss(state), self.update, state
            if _several_targets(state):
                ops = engines.get("auto") if self.ops.on_device else self.ops  # a device learns one target
                held = EachTarget(ops, *parts, self.writes(state)[1])
            else:
                held = self.ops.feature_pass(*parts)
            self.derived["held"] = held
        return held

    def learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        held: Any = self.derived.get("held")
        if held is None or held.state is not state or held.outputs != state["n_outputs"]:
            held = self.held(state)
        return held.learn(X, y, weight)

    def row_learner(self, state: State) -> Any:
        mapping = self.mapping(state)
        W = mapping.W if isinstance(mapping, FourierMapping) else None
        known = (W is not None or isinstance(mapping, RawMapping)) and not self.ops.on_device
        core = self.spec(state).core
        return self.ops.row_learner("linear", self, state, W, mapping.unit, core) if known and core else None

    def fade(self, state: State, keep: float) -> bool:
        if "G" not in state:
            return False
        state["G"] = state["G"] * state["G"].dtype.type(keep)
        return True

    def score(self, state: State, X: Rows) -> np.ndarray:
        return self.held(state).score(X)

    # ---------------------------------------------------------------- changes
    def mix_outputs(self, state: State, change: Change) -> None:
        self.derived.leave_device()
        mix_outputs(state, change, unwrap(self.update)[0])

    def widen(self, state: State, d: int) -> dict[Any, Any] | None:
        if not self.map.extends:
            raise ValueError(
                f"{self.map!r} cannot take more columns once rows have been learned: provide all columns from the start"
            )
        mapping: Any = self.derived.get("mapping")
        known = type(self.map) is RandomFourier and not state["warm_rows"] and mapping is not None
        lasting = {"narrower": (_made_of(self.map, state), mapping.W)} if known else None
        if MAP + "landmarks" in state:
            state[MAP + "landmarks"] = padded(state[MAP + "landmarks"], d)
        entries = map_entries(state)
        if "w" in state and self.map.width(entries, d) > self.map.width(entries, state["n_features"]):
            for name in ("w", "G", "w_mean"):  # there is a feature for every column, and new ones come last
                if name in state:
                    state[name] = padded(state[name], self.map.width(entries, d))
            self._keep_factor(state, d)
        return lasting

    # ---------------------------------------------------------------- schema
    def map_schema(self, state: State, trained: bool) -> tuple[Schema, int]:
        """Entries of the map, which are checked here, and the number of its features; 0 while it waits for rows."""
        if not trained and self.map.needs_data:
            return {}, 0
        entries, d = map_entries(state), state["n_features"]
        schema = self.map.schema(entries, d)
        check(entries, schema)
        return prefixed(MAP, schema), self.map.width(entries, d)

    def schema(self, state: State, trained: bool) -> Schema:
        schema, width = self.map_schema(state, trained)
        if not trained:
            return schema
        update, average = unwrap(self.update)
        shape, dtype = (state["n_outputs"], width), state["dtype"]
        factors = Array(shape[:1], low=SAFE, high=1.0, optional=True)
        return (
            schema
            | ({"G_scale": factors} if _is_wide(self.map, state["n_features"]) else {})
            | {"w": Array(shape, dtype), "scale": scales(state), "memory": Array(update.memory(shape[0]).shape)}
            | {"G": Array(shape, dtype, low=0.0, optional=not update.diagonal)}
            | {"w_mean": Array(shape, dtype, optional=not average)}
            | centres(self, shape[0])
        )


def _several_targets(state: State) -> bool:
    return state["n_outputs"] > 1 and "classes" not in state


def mix_outputs(state: State, change: Change, update: Update) -> None:
    """Change the outputs: weights, squares of gradients and the update's memory follow their output."""
    for name in ("w", "w_mean"):
        if name in state:
            state[name] = change.rows(state[name], state.get("scale") if name == "w" else None)
    if "G" in state:
        state |= folded(state)
        state["G"] = state["G"].take(change.source, axis=0)
        state["G"][change.fresh] = 0
    for name in ("scale", "G_scale"):
        if name in state:
            state[name] = np.ones(len(change))
    state["memory"] = update.carry(state["memory"], change)


@in_turn
def linear_form(est: Shell[LinearOnFeatures], dtype: Any = None) -> LinearForm | None:
    """The model as weights of features: ``f(x) = W z(x) + b``, of rows in the units of the model.

    Parameters
    ----------
    dtype : float type, optional
        Of the features; by default that of the model.

    Returns
    -------
    mapping : Mapping
        z, with its random numbers.
    weights, offset : (outputs, r) and (outputs,) float64 arrays
        None in place of all three where the answers are not linear in the features, or not yet.
    """
    return est._learner.linear_form(est.state_, dtype)


@described()
@dataclass(eq=False, repr=False)
class FeatureClassifier(StreamClassifier):
    r"""Online classifier on explicit features; one pass, bounded memory.

    .. math:: f(x) = w'z(x), \qquad w \leftarrow \delta\, w + \tau\, z(x)

    with :math:`(\delta, \tau)` given by the update for the loss of a row: with random Fourier features [1]_ and
    gradient steps this is FOGD [2]_.

    Parameters
    ----------
    loss : Loss or str, default="hinge"
        Binary losses turn into their multi-class form when a third class appears; "crammer_singer" and "softmax" are
        multi-class from the start. "logistic" and "softmax" provide probabilities themselves.
    update : Update or str, default="auto"
        How a row changes w. "auto" is :class:`~kernelstream.updates.AdaGrad` with sums of squares that fade by a factor
        of 0.9997 per row: it needs no step size and follows changes.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the map's random numbers, unless the map has its own.

    See Also
    --------
    FeatureRegressor : The same for numbers.
    KernelClassifier : A combination of different learners that works without tuning.
    OnlineRidgeClassifier : Second-order steps: fewer rows needed, more time for each.

    Notes
    -----
    Time and memory per row are proportional to the number of features, however many rows have been seen. ``learn``
    returns the scores held before each row: their mistakes are an honest estimate of the error.

    The Gaussian kernel has one width, by default the median distance of the first rows, and first-order steps take very
    long to learn labels that change over much shorter distances: with 24 labels in turn around a circle, 84 % of the
    first 3,000 rows are mistakes. ``RandomFourier("laplacian")``, which has frequencies of all scales, makes 3 %. It is
    not the default: ten of 14 data sets have fewer mistakes with it, but electricity has a quarter more. If only a few
    of many columns tell about the labels, use :class:`KernelClassifier`, which has grids over few columns.

    References
    ----------
    .. [1] Rahimi, Recht: Random features for large-scale kernel machines, NIPS 2007.
    .. [2] Lu, Hoi, Wang, Zhao, Liu: Large scale online kernel learning, JMLR 17 (2016).

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from kernelstream import FeatureClassifier
    >>> X, y = make_circles(2000, noise=0.1, factor=0.5, random_state=0)
    >>> model = FeatureClassifier(random_state=0).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.97
    True
    """

    on_device = True
    linear_form = linear_form

    features: FeatureMap | str = "fourier"
    loss: losses.Loss | str = "hinge"
    update: Update | str = "auto"
    _: KW_ONLY
    standardize: bool | str = "auto"

    _learns = LinearOnFeatures


@described(like=FeatureClassifier)
@dataclass(eq=False, repr=False)
class FeatureRegressor(StreamRegressor):
    r"""Online regression on explicit features; one pass, bounded memory.

    .. math:: f(x) = \bar y + w'z(x), \qquad w \leftarrow \delta\, w + \tau\, z(x)

    with :math:`(\delta, \tau)` given by the update for the loss of a row: with random Fourier features [1]_ and
    gradient steps this is FOGD [2]_. Several targets, y (n, k), each have their own weights on the same features.

    Parameters
    ----------
    update : Update or str, default="auto"
        "auto" is :class:`~kernelstream.updates.AdaGrad` with steps in units of the target's running deviation.
    center : bool, default=True
        Learn the difference from the running mean ybar of the targets seen so far.

    See Also
    --------
    FeatureClassifier : The same for labels.
    KernelRegressor : A combination of different learners that works without tuning.
    OnlineRidge : Second-order steps: fewer rows needed, more time for each.

    Notes
    -----
    Time and memory per row are proportional to the number of features, however many rows have been seen. ``learn``
    returns the scores held before each row: their mistakes are an honest estimate of the error.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelstream import FeatureRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (3000, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = FeatureRegressor(random_state=0).fit(X[:2500], y[:2500])
    >>> model.score(X[2500:], y[2500:]) > 0.97
    True
    """

    on_device = True
    linear_form = linear_form

    _several_targets = True

    features: FeatureMap | str = "fourier"
    loss: losses.Loss | str = "squared"
    update: Update | str = "auto"
    _: KW_ONLY
    center: bool = True
    standardize: bool | str = "auto"

    _learns = LinearOnFeatures
