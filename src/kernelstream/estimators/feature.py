r"""Learners on explicit features: ``f(x) = w'z(x)``, a feature map × a loss × a first-order update."""

from __future__ import annotations

import functools
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
from ..passes.linear.host import LARGE, WIDE
from ..passes.linear.python import SAFE, folded
from ..registry.twins import twins
from ..rows import Rows, host
from ..state import undo as _undo
from ..state.change import Change
from ..state.schema import Array, Schema, check, prefixed
from ..updates import AdaGrad, Update, unwrap
from ._contract.base import State, StreamEstimator
from ._contract.classifier import StreamClassifier
from ._contract.regressor import FirstOrderRegressor
from ._contract.state import centres, pad_columns, scales
from ._contract.warm_up import WARM_UP
from ._described import described

MAP = "map_"  # prefix of the map's entries in the state


def map_entries(state: State) -> dict[str, Any]:
    """What the feature map keeps in a state."""
    return {key[len(MAP) :]: value for key, value in state.items() if key.startswith(MAP)}


def renew_map_entries(state: State, entries: dict[str, Any]) -> None:
    """Replace the entries of the map in a state."""
    for key in [key for key in state if key.startswith(MAP)]:
        del state[key]
    state |= {MAP + key: value for key, value in entries.items()}


# AdaGrad's sums of squares fade by this factor with every row, so that steps never vanish (docs/default_update.md).
FORGETTING = 0.9997


class FeatureEstimator(StreamEstimator):
    """What the classifier and the regressor share: everything but the target."""

    features: Any
    update: Any

    _held = "pass"

    @property
    def _by_row(self) -> frozenset[str]:  # type: ignore[override]
        """A sparse row touches few weights; so few are copied before a call that it takes very many to notice."""
        d = (self.__dict__.get("_state") or {}).get("n_features", 0)
        return frozenset({"w", "G"} if d >= LARGE and self._wide(d) and not self._ops.on_device else ())

    def _wide(self, d: int) -> bool:
        """Whether the columns are the features, and so many that sparse rows of them stay sparse."""
        return isinstance(self._map, RawFeatures) and d >= WIDE

    # ---------------------------------------------------------------- components
    @property
    def _map(self) -> FeatureMap:
        return self._cached("map", lambda: maps.get(self.features))

    @property
    def _update(self) -> Update:
        return self._cached("update", self._auto_update if self.update == "auto" else lambda: updates.get(self.update))

    def _auto_update(self) -> Update:
        """The update that needs no step size: a step for every weight."""
        return AdaGrad(forgetting=FORGETTING)

    def _mapping(self, state: State) -> Mapping:
        def build() -> Mapping:
            shape = state["n_features"], np.dtype(state["dtype"])
            made, known = self.__dict__.pop("_narrower", (None, None))
            if made is not None and made == self._made_of(state):
                fourier: Any = self._map
                return checked(fourier.build(map_entries(state), *shape, None, known))
            if state["warm_rows"] and type(self._map) is RandomFourier:  # the next bandwidth needs the same numbers
                draws = self.__dict__.setdefault("_draws", Draws())
                return checked(self._map.build(map_entries(state), *shape, draws))
            return checked(self._map.build(map_entries(state), *shape))

        return self._cached("mapping", build)

    def _made_of(self, state: State) -> Any:
        """What the frequencies of independent columns depend on, but for the number of columns."""
        return repr(self._map), repr(map_entries(state)), state["dtype"]

    def _check_rows(self, X: Rows) -> None:
        if self._choosy():
            self._map.check(host(X))

    def _choosy(self) -> bool:
        return self._cached("domain", lambda: self._map.restricted)

    def _seed_source(self) -> Any:
        own = getattr(self._map, "random_state", None)
        return own if self.random_state is None else self.random_state

    # ---------------------------------------------------------------- hooks
    def _drop_kept(self) -> None:
        super()._drop_kept()
        self.__dict__.pop("_draws", None)

    def _begin(self, state: State) -> None:
        if not self._map.needs_data:
            self._estimate(state, None)

    def _warm_up_rows(self) -> int:
        return max(WARM_UP, self._map.rows_wanted) if self._map.needs_data else 0

    def _one_width(self) -> bool:
        return self._map.takes_width

    def _estimate(self, state: State, X: Rows) -> None:
        renew_map_entries(state, self._map.prepare(X, state["seed"]))

    def _reset(self, state: State) -> None:
        outputs, width = state["n_outputs"], self._mapping(state).n_out
        update, average = unwrap(self._update)
        weights = np.zeros((outputs, width), state["dtype"])
        state |= {"w": weights, "scale": np.ones(outputs), "memory": update.memory(outputs, width)}
        if update.diagonal:
            state["G"] = weights.copy()
        if average:
            state["w_mean"] = weights.copy()
        self._keep_factor(state, state["n_features"])

    def _keep_factor(self, state: State, d: int) -> None:
        """Sums of squares of many columns fade by one factor, where rows may be sparse."""
        if "G" in state and "G_scale" not in state and self._wide(d):
            state["G_scale"] = np.ones(state["n_outputs"])

    def _pass(self, state: State) -> Any:
        """The engine's learner for a state, with ``learn``, ``score`` and ``sync``; as long as the outputs stay."""
        held = self._cache.get("pass")
        if held is None or held.state is not state or held.outputs != state["n_outputs"]:
            held = self._cache["pass"] = self._make_pass(state)
        return held

    def _make_pass(self, state: State) -> Any:
        return self._ops.feature_pass(self._mapping(state), self._loss_now(state), self._update, state)

    def _sync(self) -> None:
        held = self._cache.get("pass")
        if held is not None:
            held.sync()

    def _leave_device(self) -> None:
        """Bring the state up to date and drop the copy on the device, because the state will be changed elsewhere."""
        self._sync()
        self._cache.pop("pass", None)

    def _learn(self, state: State, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        held = self._cache.get("pass")
        if held is None or held.state is not state or held.outputs != state["n_outputs"]:
            held = self._pass(state)
        return held.learn(X, y, weight)

    def _row_learner(self, state: State) -> Any:
        ops, mapping, (update, average) = self._ops, self._mapping(state), unwrap(self._update)
        W = mapping.W if isinstance(mapping, FourierMapping) else None
        known = W is not None or isinstance(mapping, RawMapping)
        parts = twins(self._loss_now(state), update)
        if not known or ops.on_device or parts is None:
            return None
        return ops.row_learner("linear", self, state, W, mapping.unit, average, (*parts[0], *parts[1]))

    def _fade(self, state: State, keep: float) -> bool:
        if "G" not in state:
            return False
        state["G"] = state["G"] * state["G"].dtype.type(keep)
        return True

    def _score(self, state: State, X: Rows) -> np.ndarray:
        return self._pass(state).score(X)

    def _mix_outputs(self, state: State, change: Change) -> None:
        self._leave_device()
        mix_outputs(state, change, unwrap(self._update)[0])

    def _widen(self, state: State, d: int) -> None:
        if not self._map.extends:
            raise ValueError(
                f"{self._map!r} cannot take more columns once rows were learned: say how many there will be beforehand"
            )
        mapping = self._cache.get("mapping")
        if type(self._map) is RandomFourier and not state["warm_rows"] and mapping is not None:
            self._narrower = self._made_of(state), mapping.W
        if MAP + "landmarks" in state:
            state[MAP + "landmarks"] = pad_columns(state[MAP + "landmarks"], d)
        entries = map_entries(state)
        if "w" in state and self._map.width(entries, d) > self._map.width(entries, state["n_features"]):
            for name in ("w", "G", "w_mean"):  # there is a feature for every column, and new ones come last
                if name in state:
                    state[name] = pad_columns(state[name], self._map.width(entries, d))
            self._keep_factor(state, d)

    def _map_schema(self, state: State, trained: bool) -> tuple[Schema, int]:
        """Entries of the map, which are checked, and the number of its features; 0 as long as it waits for rows."""
        if not trained and self._map.needs_data:
            return {}, 0
        entries, d = map_entries(state), state["n_features"]
        schema = self._map.schema(entries, d)
        check(entries, schema)
        return prefixed(MAP, schema), self._map.width(entries, d)

    def _schema(self, state: State, trained: bool) -> Schema:
        schema, width = self._map_schema(state, trained)
        if not trained:
            return schema
        update, average = unwrap(self._update)
        shape, dtype = (state["n_outputs"], width), state["dtype"]
        factors = Array(shape[:1], low=SAFE, high=1.0, optional=True)
        return (
            schema
            | ({"G_scale": factors} if self._wide(state["n_features"]) else {})
            | {"w": Array(shape, dtype), "scale": scales(state), "memory": Array(update.memory(shape[0]).shape)}
            | {"G": Array(shape, dtype, low=0.0, optional=not update.diagonal)}
            | {"w_mean": Array(shape, dtype, optional=not average)}
            | centres(self, 1 if isinstance(self, StreamClassifier) else shape[0])
        )


def mix_outputs(state: State, change: Change, update: Update) -> None:
    """Change the outputs: weights, squares of gradients and the update's memory follow their output."""
    for name in ("w", "w_mean"):
        if name in state:
            state[name] = change.rows(state[name], state["scale"] if name == "w" else None)
    if "G" in state:
        state |= folded(state)
        state["G"] = state["G"][change.source]
        state["G"][change.fresh] = 0
    if "G_scale" in state:
        state["G_scale"] = np.ones(len(change))
    state["scale"] = np.ones(len(change))
    state["memory"] = update.carry(state["memory"], change)


@described()
class FeatureClassifier(StreamClassifier, FeatureEstimator):
    r"""Online classifier on explicit features; one pass, bounded memory.

    .. math:: f(x) = w'z(x), \qquad w \leftarrow \delta\, w + \tau\, z(x)

    with :math:`(\delta, \tau)` given by the update for the loss of a row: with random Fourier features [1]_ and
    gradient steps this is FOGD [2]_.

    Parameters
    ----------
    loss : Loss or str, default="hinge"
        Binary losses turn into their multi-class form when a third class appears; "crammer_singer" and "softmax" are
        multi-class from the start. "logistic" and "softmax" have probabilities of their own.
    update : Update or str, default="auto"
        How a row changes w. "auto" is :class:`~kernelstream.updates.AdaGrad` with sums of squares that fade by 0.9997 a
        row: it needs no step size and follows changes.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the map's random numbers, if the map has none of its own.

    See Also
    --------
    FeatureRegressor : The same for numbers.
    KernelClassifier : A combination of unlike learners that needs no choice.
    OnlineRidgeClassifier : Second-order steps, fewer rows needed, more time for each.

    Notes
    -----
    Time and memory per row are proportional to the number of features, however many rows have been seen. ``learn``
    returns the scores held before each row: their mistakes are an honest estimate of the error.

    The kernel has one width, by default the median distance of the first rows. Labels that change within much less (24
    hours along one column) need a larger ``gamma``, and no width serves where other columns say nothing about them:
    :class:`KernelClassifier` has grids over few columns for that.

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

    def __init__(
        self,
        features: FeatureMap | str = "fourier",
        loss: losses.Loss | str = "hinge",
        update: Update | str = "auto",
        *,
        standardize: bool | str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        engine: Any = "auto",
        random_state: Any = None,
    ):
        self.features = features
        self.loss = loss
        self.update = update
        self.standardize = standardize
        self.class_weight = class_weight
        self.engine = engine
        self.random_state = random_state

    def _check_parameters(self) -> None:
        self._update.check(self._loss_for(2))


@described(like=FeatureClassifier)
class FeatureRegressor(FirstOrderRegressor, FeatureEstimator):
    r"""Online regression on explicit features; one pass, bounded memory.

    .. math:: f(x) = \bar y + w'z(x), \qquad w \leftarrow \delta\, w + \tau\, z(x)

    with :math:`(\delta, \tau)` given by the update for the loss of a row: with random Fourier features [1]_ and
    gradient steps this is FOGD [2]_. Several targets, y (n, k), have weights of their own on the same features.

    Parameters
    ----------
    update : Update or str, default="auto"
        "auto" is :class:`~kernelstream.updates.AdaGrad` with steps in units of the target's running deviation.
    center : bool, default=True
        Learn the difference from the running mean ybar of the targets seen so far.

    See Also
    --------
    FeatureClassifier : The same for labels.
    KernelRegressor : A combination of unlike learners that needs no choice.
    OnlineRidge : Second-order steps, fewer rows needed, more time for each.

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

    _several_targets = True

    def __init__(
        self,
        features: FeatureMap | str = "fourier",
        loss: losses.Loss | str = "squared",
        update: Update | str = "auto",
        *,
        center: bool = True,
        standardize: bool | str = "auto",
        engine: Any = "auto",
        random_state: Any = None,
    ):
        self.features = features
        self.loss = loss
        self.update = update
        self.center = center
        self.standardize = standardize
        self.engine = engine
        self.random_state = random_state

    def _reset(self, state: State) -> None:
        super()._reset(state)
        if state["n_outputs"] > 1:  # each target has a scale of its own, which the first column holds
            alone = unwrap(self._update)[0].memory(1, state["w"].shape[1])
            state["memory"] = np.repeat(alone, state["n_outputs"], axis=1)

    def _make_pass(self, state: State) -> Any:
        if state["n_outputs"] == 1:
            return super()._make_pass(state)
        ops = engines.get("auto") if self._ops.on_device else self._ops  # a device learns one target
        return EachTarget(ops, self._mapping(state), self._loss_now(state), self._update, state, self._by_row)


class EachTarget:
    """Learner of several targets: one of its own for each, on the same features.

    Parameters
    ----------
    ops, mapping, loss, update
        Engine and parts.
    state : dict
        Entries of all targets, the first axis of weights and the last one of memories being theirs; changed in place.
    by_row : set of str
        Entries whose changes are announced to the undo.
    """

    def __init__(
        self, ops: Any, mapping: Mapping, loss: losses.Loss, update: Update, state: State, by_row: frozenset[str]
    ):
        self.state, self.outputs = state, state["n_outputs"]
        self.by_row = by_row
        self.make: Any = functools.partial(ops.feature_pass, mapping, loss, update)

    def learn(self, X: Rows, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Learn rows with targets y (n, k); returns the scores before each update, (n, k)."""
        X, state = host(X), self.state
        for name in self.by_row & state.keys():
            _undo.rows(state[name], slice(None))
        scores, t = np.empty((X.shape[0], self.outputs)), state["t"]
        for o in range(self.outputs):
            alone: State = {
                name: state[name][o : o + 1] for name in ("w", "scale", "G", "G_scale", "w_mean") if name in state
            }
            alone |= {name: state[name][:, o].copy() for name in ("memory", "center") if name in state}
            alone |= {"memory": alone["memory"][:, None], "t": t}
            scores[:, o] = self.make(alone).learn(X, np.ascontiguousarray(y[:, o]), weight)[:, 0]
            state["t"] = alone.pop("t")
            for name, value in alone.items():
                if name in ("memory", "center"):
                    state[name][:, o] = value.reshape(-1)
                else:
                    state[name][o] = value[0]
        return scores

    def score(self, X: Rows) -> np.ndarray:
        """Scores of rows, (n, k)."""
        scores: np.ndarray = self.make(self.state).score(host(X))
        return scores

    def sync(self) -> None:
        """The state is always up to date."""
