"""The tools people use today, behind the interface that the evaluation expects.

Every peer is an extra: it is imported when it is used.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler

from ._author import AuthorRules
from ._unbounded import Unbounded

_PEERS: dict[str, Callable[[str, dict[str, Any], int], Any]] = {}


def _enter(build: Callable[[str, dict[str, Any], int], Any]) -> Callable[[str, dict[str, Any], int], Any]:
    _PEERS[build.__name__.strip("_")] = build
    return build


def peer(name: str, task: str, settings: dict[str, Any], seed: int) -> Any:
    """A peer by name, for a task."""
    if name not in _PEERS:
        raise ValueError(f"unknown peer {name!r}: known are {', '.join(sorted(_PEERS))}")
    return _PEERS[name](task, dict(settings), seed)


def needed(name: str, package: str) -> Any:
    """A module of a package that comes with the extra."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"this comparison needs {package}: pip install './papers[peers]'") from None


class _Constant:
    """The same answer to every row, without the columns: what a learner must beat."""

    def __init__(self, task: str) -> None:
        self.task = task
        self._estimator_type = "regressor" if task == "regression" else "classifier"
        self.answer: Any = 0

    def __sklearn_tags__(self) -> Any:
        from sklearn.dummy import DummyClassifier, DummyRegressor

        return (DummyRegressor() if self.task == "regression" else DummyClassifier()).__sklearn_tags__()

    def partial_fit(self, X: Any, y: np.ndarray, classes: Any = None) -> _Constant:
        raise NotImplementedError

    def fit(self, X: Any, y: np.ndarray) -> _Constant:
        return self.partial_fit(X, y)

    def predict(self, X: Any) -> np.ndarray:
        return np.full(X.shape[0], self.answer)


class _Usual(_Constant):
    """The most frequent label so far (the first of several), or the mean."""

    def __init__(self, task: str) -> None:
        super().__init__(task)
        self.counts: dict[Any, int] = {}
        self.n, self.mean = 0, 0.0

    def partial_fit(self, X: Any, y: np.ndarray, classes: Any = None) -> _Usual:
        for target in y.tolist():
            if self.task == "regression":
                self.n += 1
                self.mean += (target - self.mean) / self.n
            else:
                self.counts[target] = self.counts.get(target, 0) + 1
        self.answer = self.mean if self.task == "regression" else max(self.counts, key=lambda label: self.counts[label])
        return self


class _Last(_Constant):
    """The label or the number of the row before."""

    def partial_fit(self, X: Any, y: np.ndarray, classes: Any = None) -> _Last:
        self.answer = y[-1]
        return self


_PEERS |= {
    "usual": lambda task, settings, seed: _Usual(task),
    "last": lambda task, settings, seed: _Last(task),
    "unbounded": lambda task, settings, seed: Unbounded(**settings),
}


class _Mapped:
    """A scikit-learn feature map fitted to the first rows, then a linear model that learns block by block."""

    def __init__(self, features: Any, linear: Any, first: int) -> None:
        self.features, self.linear, self.first = features, linear, first
        self.fitted = False
        self._estimator_type = linear._estimator_type if hasattr(linear, "_estimator_type") else None

    def __sklearn_tags__(self) -> Any:
        return self.linear.__sklearn_tags__()

    def partial_fit(self, X: Any, y: np.ndarray, classes: Any = None) -> _Mapped:
        if not self.fitted:
            self.features.fit(X[: self.first])
            self.fitted = True
        Z = self.features.transform(X)
        if classes is None:
            self.linear.partial_fit(Z, y)
        else:
            self.linear.partial_fit(Z, y, classes=classes)
        return self

    def fit(self, X: Any, y: np.ndarray) -> _Mapped:
        self.features.fit(X[: max(self.first, 10_000)])
        self.fitted = True
        self.linear.fit(self.features.transform(X), y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.linear.predict(self.features.transform(X))

    @property
    def size_(self) -> int:
        return int(self.linear.coef_.shape[-1])


def _linear(task: str, settings: dict[str, Any], seed: int) -> Any:
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    options: dict[str, Any] = {k: settings[k] for k in ("alpha", "eta0", "learning_rate") if k in settings}
    options["random_state"] = seed
    return SGDRegressor(**options) if task == "regression" else SGDClassifier(loss="hinge", **options)


@_enter
def _rbf_sampler_sgd(task: str, settings: dict[str, Any], seed: int) -> Any:
    """scikit-learn's RBFSampler + SGD."""
    from sklearn.kernel_approximation import RBFSampler

    gamma = settings.get("gamma", "scale")
    return _Mapped(
        RBFSampler(gamma=gamma, n_components=settings.get("n_components", 200), random_state=seed),
        _linear(task, settings, seed),
        256,
    )


@_enter
def _nystroem_sgd(task: str, settings: dict[str, Any], seed: int) -> Any:
    """scikit-learn's Nystroem + SGD; the landmarks come from the first block."""
    from sklearn.kernel_approximation import Nystroem

    count = settings.get("n_components", 200)
    return _Mapped(
        Nystroem(gamma=settings.get("gamma"), n_components=count, random_state=seed),
        _linear(task, settings, seed),
        max(256, count),
    )


@_enter
def _svc(task: str, settings: dict[str, Any], seed: int) -> Any:
    """scikit-learn's SVC or SVR (LIBSVM); ``scaled`` standardises columns, and the numbers to be forecast."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC, SVR

    scaled = settings.pop("scaled", False)
    model = SVR(**settings) if task == "regression" else SVC(**settings)
    if not scaled:
        return model
    if task == "regression":
        model = TransformedTargetRegressor(model, transformer=StandardScaler())
    return make_pipeline(_Scaled(), model)


class _Scaled(TransformerMixin, BaseEstimator):
    """Standardised columns; sparse ones are not centred, so that they stay sparse."""

    def fit(self, X: Any, y: Any = None) -> _Scaled:
        self.scaler_ = StandardScaler(with_mean=not issparse(X)).fit(X)
        return self

    def transform(self, X: Any) -> Any:
        return self.scaler_.transform(X)


@_enter
def _kernel_ridge(task: str, settings: dict[str, Any], seed: int) -> Any:
    """scikit-learn's exact kernel ridge regression; labels are coded one against the rest."""
    from sklearn.kernel_ridge import KernelRidge

    if task == "regression":
        return KernelRidge(**{"kernel": "rbf", **settings})
    return _Coded(KernelRidge(**{"kernel": "rbf", **settings}))


@_enter
def _kernel_ridge_part(task: str, settings: dict[str, Any], seed: int) -> Any:
    """Exact kernel ridge on as many rows as it can take."""
    return _Part(_kernel_ridge(task, {k: v for k, v in settings.items() if k != "rows"}, seed), settings["rows"])


class _Part:
    """A model of the first rows only."""

    def __init__(self, model: Any, rows: int) -> None:
        self.model, self.rows = model, rows

    def fit(self, X: Any, y: np.ndarray) -> _Part:
        self.model.fit(X[: self.rows], y[: self.rows])
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.model.predict(X)


class _Blocks:
    """Kernel ridge regression with a kernel matrix of independent blocks, ``k(x, z) = 0`` between two clusters of rows.

    Clusters have about so many ``rows``; of one with more than four times as many the others are left out.
    """

    def __init__(self, rows: int, gamma: float, lam: float, seed: int) -> None:
        self.rows, self.gamma, self.lam, self.seed = rows, gamma, lam, seed

    def fit(self, X: Any, y: np.ndarray) -> _Blocks:
        from sklearn.cluster import MiniBatchKMeans
        from sklearn.kernel_ridge import KernelRidge

        count = max(1, round(len(X) / self.rows))
        start = np.random.default_rng(self.seed).permutation(len(X))[:count]
        self.means = MiniBatchKMeans(count, init=X[start], n_init=1, max_iter=3, batch_size=4096, random_state=0)
        cluster = self.means.fit_predict(X)
        self.offset = y.mean(axis=0)
        self.models: dict[int, Any] = {}
        for c in np.unique(cluster).tolist():
            rows = np.flatnonzero(cluster == c)[: 4 * self.rows]
            model = KernelRidge(kernel="laplacian", gamma=self.gamma, alpha=self.lam)
            self.models[c] = model.fit(X[rows], y[rows] - self.offset)
        return self

    def predict(self, X: Any) -> np.ndarray:
        cluster = self.means.predict(X)
        answers = np.zeros((len(X), *np.shape(self.offset))) + self.offset
        for c in np.unique(cluster).tolist():
            rows = np.flatnonzero(cluster == c)
            if c in self.models:
                answers[rows] += self.models[c].predict(X[rows])
        return answers


@_enter
def _blocks(task: str, settings: dict[str, Any], seed: int) -> Any:
    """Independent blocks of the Laplacian kernel."""
    model = _Blocks(**settings, seed=seed)
    return model if task == "regression" else _Coded(model)


class _Coded:
    """A regressor that classifies."""

    def __init__(self, regressor: Any) -> None:
        self.regressor = regressor

    def fit(self, X: Any, y: np.ndarray) -> _Coded:
        self.classes = np.unique(y)
        self.regressor.fit(X, 2.0 * (y[:, None] == self.classes) - 1.0)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.classes[self.regressor.predict(X).argmax(axis=1)]


@_enter
def _author(task: str, settings: dict[str, Any], seed: int) -> Any:
    """The rules of the thesis's own programs."""
    if task != "binary":
        raise ValueError("the author's rules are for two classes here")
    return AuthorRules(**{"random_state": seed, **settings})


@_enter
def _lightgbm(task: str, settings: dict[str, Any], seed: int) -> Any:
    """Gradient-boosted trees: not a kernel method, but a common choice."""
    lightgbm = needed("lightgbm", "LightGBM")
    kind = lightgbm.LGBMRegressor if task == "regression" else lightgbm.LGBMClassifier
    return kind(**{"random_state": seed, "n_jobs": 1, "verbose": -1, **settings})


class _River:
    """A River model that learns row by row."""

    def __init__(self, model: Any, task: str) -> None:
        self.model, self.task = model, task
        self._estimator_type = "regressor" if task == "regression" else "classifier"

    def __sklearn_tags__(self) -> Any:
        from sklearn.linear_model import SGDClassifier, SGDRegressor

        return (SGDRegressor() if self.task == "regression" else SGDClassifier()).__sklearn_tags__()

    def _rows(self, X: Any) -> Any:
        X = X.toarray() if hasattr(X, "toarray") else X
        names = range(X.shape[1])
        return (dict(zip(names, row)) for row in X.tolist())

    def partial_fit(self, X: Any, y: np.ndarray, classes: Any = None) -> _River:
        targets = (y > 0).tolist() if self.task == "binary" else y.tolist()  # River's two classes are False and True
        for x, target in zip(self._rows(X), targets):
            self.model.learn_one(x, target)
        return self

    def fit(self, X: Any, y: np.ndarray) -> _River:
        return self.partial_fit(X, y)

    def predict(self, X: Any) -> np.ndarray:
        answers = [self.model.predict_one(x) for x in self._rows(X)]
        known = np.array([0 if answer is None else answer for answer in answers])
        return np.where(known, 1, -1) if self.task == "binary" else known


@_enter
def _river_linear(task: str, settings: dict[str, Any], seed: int) -> Any:
    """River: running standardisation and a linear model."""
    river = needed("river.linear_model", "River")
    scale = needed("river.preprocessing", "River").StandardScaler()
    if task == "regression":
        return _River(scale | river.LinearRegression(), task)
    if task == "binary":
        return _River(scale | river.LogisticRegression(), task)
    return _River(scale | river.SoftmaxRegression(), task)


@_enter
def _river_tree(task: str, settings: dict[str, Any], seed: int) -> Any:
    """River: a Hoeffding tree."""
    river = needed("river.tree", "River")
    return _River(river.HoeffdingTreeRegressor() if task == "regression" else river.HoeffdingTreeClassifier(), task)


class _VowpalWabbit:
    """Vowpal Wabbit's online kernel SVM on text rows."""

    def __init__(self, settings: dict[str, Any], seed: int) -> None:
        vw = needed("vowpalwabbit", "Vowpal Wabbit")
        gamma = settings.get("gamma", 1.0)
        self.model = vw.Workspace(f"--ksvm --kernel rbf --bandwidth {gamma} --quiet --random_seed {seed}")

    def __sklearn_tags__(self) -> Any:
        from sklearn.linear_model import SGDClassifier

        return SGDClassifier().__sklearn_tags__()

    @staticmethod
    def _lines(X: Any) -> Any:
        X = X.toarray() if hasattr(X, "toarray") else X
        for row in X:
            kept = np.flatnonzero(row)
            yield "| " + " ".join(f"{j}:{row[j]:.6g}" for j in kept)

    def partial_fit(self, X: Any, y: np.ndarray, classes: Any = None) -> _VowpalWabbit:
        if classes is not None and len(classes) != 2:
            raise ValueError("--ksvm knows two classes")
        for line, label in zip(self._lines(X), y.tolist()):
            self.model.learn(f"{1 if label > 0 else -1} {line}")
        return self

    def fit(self, X: Any, y: np.ndarray) -> _VowpalWabbit:
        return self.partial_fit(X, y)

    def predict(self, X: Any) -> np.ndarray:
        return np.array([1 if self.model.predict(line) > 0 else -1 for line in self._lines(X)])


@_enter
def _vw_ksvm(task: str, settings: dict[str, Any], seed: int) -> Any:
    """Vowpal Wabbit's --ksvm."""
    if task != "binary":
        raise ValueError("--ksvm knows two classes")
    return _VowpalWabbit(settings, seed)


@_enter
def _thundersvm(task: str, settings: dict[str, Any], seed: int) -> Any:
    """ThunderSVM on the processor."""
    thundersvm = needed("thundersvm", "thundersvm-cpu")
    return thundersvm.SVR(**settings) if task == "regression" else thundersvm.SVC(**settings)
