"""Stream learners that people use today; each forecasts a row before it learns the row's label.

Each has ``forecasts(X, y)``: for rows in their order, the probabilities (n, K) or the numbers (n,) that it held for a
row before the label of that row or of a later one was shown to it. Defaults everywhere, codes of categories as numbers.
Every package is an extra that is imported when it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._arena_streams import Stream
from ._peers import needed

_PEERS: dict[str, Callable[..., Any]] = {}

FIRST_FIT = 128  # rows before the first fit of a learner that is fitted again at every doubling


def arena_peer(name: str, stream: Stream, settings: dict[str, Any], seed: int) -> Any:
    """A peer by name, for a stream."""
    if name not in _PEERS:
        raise ValueError(f"unknown peer of streams {name!r}: known are {', '.join(sorted(_PEERS))}")
    return _PEERS[name](stream, seed, **settings)


def _enter(kind: Any) -> Any:
    _PEERS[kind.name] = kind
    return kind


class Rows:
    """A learner that takes one row at a time: ``ask(x)`` forecasts (None: not yet), ``tell(x, target)`` learns."""

    def __init__(self, stream: Stream) -> None:
        self.n_classes = stream.n_classes

    def forecasts(self, X: Any, y: np.ndarray) -> np.ndarray:
        out = np.empty((len(y), self.n_classes) if self.n_classes else len(y))
        for i, (x, target) in enumerate(zip(self.rows(X), y.tolist())):
            out[i] = self.read(self.ask(x))
            self.tell(x, target)
        return out

    def rows(self, X: Any) -> Any:
        """The rows as the learner takes them."""
        return X

    def read(self, answer: Any) -> Any:
        """Votes for the labels as probabilities, equal ones where there are none; a number as it is, 0 for none."""
        if not self.n_classes:
            return 0.0 if answer is None else answer
        votes = np.zeros(self.n_classes) if answer is None else np.asarray(answer, dtype=np.float64)
        total = votes.sum()
        return votes / total if total > 0 else np.full(self.n_classes, 1.0 / self.n_classes)

    def ask(self, x: Any) -> Any:
        raise NotImplementedError

    def tell(self, x: Any, target: Any) -> None:
        raise NotImplementedError


@_enter
class Shares(Rows):
    """The shares of the labels so far, or the mean so far."""

    name = "shares"

    def __init__(self, stream: Stream, seed: int) -> None:
        super().__init__(stream)
        self.sums, self.n = np.zeros(max(stream.n_classes, 1)), 0

    def ask(self, x: Any) -> Any:
        return self.sums if self.n_classes else self.sums[0] / max(self.n, 1)

    def tell(self, x: Any, target: Any) -> None:
        self.n += 1
        if self.n_classes:
            self.sums[target] += 1.0
        else:
            self.sums[0] += target


@_enter
class Last(Rows):
    """The last label or number, with certainty."""

    name = "last"

    def __init__(self, stream: Stream, seed: int) -> None:
        super().__init__(stream)
        self.last: Any = None
        self.certain = np.eye(max(stream.n_classes, 1))

    def ask(self, x: Any) -> Any:
        return self.certain[self.last] if self.n_classes and self.last is not None else self.last

    def tell(self, x: Any, target: Any) -> None:
        self.last = target


@_enter
class LastCounts(Rows):
    """P(label | last label), from counts that start at 1: the last label, as far as it is reliable."""

    name = "last_counts"

    def __init__(self, stream: Stream, seed: int) -> None:
        super().__init__(stream)
        self.counts, self.last = np.ones((stream.n_classes, stream.n_classes)), 0

    def ask(self, x: Any) -> Any:
        return self.counts[self.last]

    def tell(self, x: Any, target: Any) -> None:
        self.counts[self.last, target] += 1.0
        self.last = target


@_enter
class FeaturesSGD(Rows):
    """scikit-learn: running standardisation, RBFSampler with gamma 1/d, SGD on the log-loss or the squared error.

    Targets are standardised by those seen so far, since SGD's steps suit numbers near 1.
    """

    name = "rbf_sampler_sgd"

    def __init__(self, stream: Stream, seed: int, n_components: int = 400) -> None:
        from sklearn.kernel_approximation import RBFSampler
        from sklearn.linear_model import SGDClassifier, SGDRegressor
        from sklearn.preprocessing import StandardScaler

        super().__init__(stream)
        d = stream.X.shape[1]
        self.scale, self.target = StandardScaler(), StandardScaler()
        self.features = RBFSampler(gamma=1.0 / d, n_components=n_components, random_state=seed).fit(np.zeros((1, d)))
        self.linear: Any = (
            SGDClassifier(loss="log_loss", random_state=seed) if stream.n_classes else SGDRegressor(random_state=seed)
        )
        self.classes, self.taught = np.arange(stream.n_classes), False

    def rows(self, X: np.ndarray) -> Any:
        return X.astype(np.float64)[:, None, :]  # each row a matrix

    def ask(self, x: Any) -> Any:
        if not self.taught:
            self.scale.partial_fit(x)
        self.z = self.features.transform(self.scale.transform(x))
        if not self.taught:
            return None
        if self.n_classes:
            return self.linear.predict_proba(self.z)[0]
        return self.target.inverse_transform(self.linear.predict(self.z)[:, None])[0, 0]

    def tell(self, x: Any, target: Any) -> None:
        if self.n_classes:
            self.linear.partial_fit(self.z, [target], **({} if self.taught else {"classes": self.classes}))
        else:
            self.linear.partial_fit(self.z, self.target.partial_fit([[target]]).transform([[target]])[0])
        if self.taught:
            self.scale.partial_fit(x)
        self.taught = True


@_enter
class River(Rows):
    """River's adaptive random forest."""

    name = "river_arf"

    def __init__(self, stream: Stream, seed: int, **settings: Any) -> None:
        forest = needed("river.forest", "River")
        super().__init__(stream)
        kind = forest.ARFClassifier if stream.n_classes else forest.ARFRegressor
        self.model, self.labels = kind(**({"seed": seed} | settings)), range(stream.n_classes)

    def rows(self, X: np.ndarray) -> Any:
        names = range(X.shape[1])
        return (dict(zip(names, row)) for row in X.tolist())

    def ask(self, x: Any) -> Any:
        if not self.n_classes:
            return self.model.predict_one(x)
        votes = self.model.predict_proba_one(x)
        return [votes.get(label, 0.0) for label in self.labels]

    def tell(self, x: Any, target: Any) -> None:
        self.model.learn_one(x, target)


@_enter
class CapyMOA(Rows):
    """A learner of CapyMOA (MOA on a Java machine).

    ``classifier`` and ``regressor`` name its classes; ``nominal`` declares the codes of categories as such, which the
    board does not.
    """

    name = "capymoa"

    def __init__(
        self, stream: Stream, seed: int, classifier: str = "", regressor: str = "", nominal: bool = False
    ) -> None:
        core, streams = needed("capymoa.core", "CapyMOA and Java"), needed("capymoa.stream", "CapyMOA and Java")
        super().__init__(stream)
        labels = stream.n_classes > 0
        learners = needed("capymoa.classifier" if labels else "capymoa.regressor", "CapyMOA and Java")
        self.categorical = stream.categorical if nominal else ()
        self.known = [np.unique(stream.X[:, j]) for j in self.categorical]
        categories = {f"x{j}": [str(c) for c in range(len(v))] for j, v in zip(self.categorical, self.known)}
        if labels:
            categories["y"] = [str(c) for c in range(stream.n_classes)]
        names = [f"x{j}" for j in range(stream.X.shape[1])]
        self.schema = streams.Schema.from_custom(features=[*names, "y"], target="y", categories=categories)
        self.row = (core.LabeledInstance if labels else core.RegressionInstance).from_array
        self.model = getattr(learners, classifier if labels else regressor)(schema=self.schema, random_seed=seed)

    def forecasts(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        X = X.astype(np.float64)
        for j, values in zip(self.categorical, self.known):
            X[:, j] = np.searchsorted(values, X[:, j])
        return super().forecasts([self.row(self.schema, x, target) for x, target in zip(X, y.tolist())], y)

    def ask(self, x: Any) -> Any:
        """The row carries its label from the start, as in CapyMOA's own evaluation, but with weight 0.

        SOKNL scores its candidates by the label of the row it forecasts before it picks one of them; errors of weight 0
        are not counted. The other learners do not use the label.
        """
        x.java_instance.setWeight(0.0)
        answer = self.model.predict_proba(x) if self.n_classes else self.model.predict(x)
        x.java_instance.setWeight(1.0)
        return answer

    def tell(self, x: Any, target: Any) -> None:
        self.model.train(x)


@_enter
class LightGBM:
    """LightGBM on all rows so far, fitted again at 128, 256, 512, … rows; before that the shares or the mean."""

    name = "lightgbm_doubling"

    def __init__(self, stream: Stream, seed: int, **settings: Any) -> None:
        lightgbm = needed("lightgbm", "LightGBM")
        kind = lightgbm.LGBMClassifier if stream.n_classes else lightgbm.LGBMRegressor
        self.new: Any = lambda: kind(**{"random_state": seed, "n_jobs": 1, "verbose": -1, **settings})
        self.n_classes, self.start, self.model = stream.n_classes, Shares(stream, seed), None
        self.X: list[np.ndarray] = []
        self.y: list[np.ndarray] = []
        self.seen, self.due = 0, FIRST_FIT

    def forecasts(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        parts, done = [], 0
        while done < len(y):
            rows = slice(done, min(len(y), done + self.due - self.seen))
            parts.append(self.start.forecasts(X[rows], y[rows]) if self.model is None else self._predict(X[rows]))
            self.X.append(X[rows])
            self.y.append(y[rows])
            self.seen, done = self.seen + len(y[rows]), rows.stop
            if self.seen == self.due:
                self._fit()
        return np.concatenate(parts)

    def _fit(self) -> None:
        self.due *= 2
        self.X, self.y = [np.concatenate(self.X)], [np.concatenate(self.y)]
        if not self.n_classes or len(np.unique(self.y[0])) > 1:
            self.model = self.new().fit(self.X[0], self.y[0])

    def _predict(self, X: np.ndarray) -> np.ndarray:
        assert self.model is not None
        if not self.n_classes:
            return self.model.predict(X)
        p = np.zeros((len(X), self.n_classes))
        p[:, self.model.classes_] = self.model.predict_proba(X)
        return p
