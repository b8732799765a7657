"""Models that are interrupted between two calls, in every way there is, and go on: what differs?"""

import copy
import io
import pickle
import warnings

import numpy as np
import scipy.sparse as sp

import kernelstream
from kernelstream import zoo
from kernelstream.kernels import Gaussian, Polynomial

PAIRS = [(name, task) for name in zoo.names() for task in zoo.get(name).tasks]
# Small models: parameters of recipes, numbers for what is automatic otherwise, parameters of estimators.
SMALL = {
    "budget": 20,
    "n_components": 24,
    "degree": 1,
    "kernels": [Gaussian(0.1), Gaussian(0.5), Gaussian(2.0), Polynomial(2, c=1.0, gamma=0.3)],
}
AUTOMATIC = {"gamma": 0.3, "lam": 1e-3, "eta": 0.5, "noise": 0.1}
SIZES = {"batch_size": 16, "block_size": 8}
LASSO = 0.05  # with less of it a pass over the cells in Python takes seconds


def rows(rng, n, d=20, density=0.25):
    """Sparse rows as a dense array, none of them empty, labels of three classes and a target, (n, d), (n,), (n,)."""
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    X[:, 0] += ~X.any(axis=1)
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * np.sin(3 * X[:, 3]) + 0.3 * rng.standard_normal(n)
    return X, np.digitize(signal, [-0.4, 0.4]), signal


def target(task, labels, signal):
    """What a recipe learns in a task; nothing for novelties."""
    return {"binary": (labels > 0).astype(int), "multiclass": labels, "regression": signal}.get(task)


def estimator(name, task, engine, **params):
    """A small model of a recipe."""
    known = zoo.get(name).options
    automatic = {key: value for key, value in AUTOMATIC.items() if known.get(key) == "auto"}
    params = {key: value for key, value in (SMALL | SIZES | params).items() if key in known and value is not None}
    if name == "random_binning_lasso":
        params = {"lam": LASSO} | params
    est = zoo.make(name, task=task, random_state=1, **(automatic | params))
    return est.set_params(
        **{key: value for key, value in {"n_columns": 4096, "engine": engine}.items() if key in est.get_params()}
    )


def copies(model):
    """The model by every way that leaves it as it is."""
    file = io.BytesIO()
    kernelstream.save(model, file)
    return {
        "file": kernelstream.load(file),
        "pickle": pickle.loads(pickle.dumps(model)),
        "deepcopy": copy.deepcopy(model),
    }


def dropped(model):
    """The same object without what it has derived."""
    model.state_ = dict(model.state_)
    return model


def forecasts(model, X):
    """Everything that can be asked of a model about rows."""
    found = {}
    for ask in ("predict", "decision_function", "predict_proba", "score_samples"):
        if hasattr(model, ask):
            found[ask] = getattr(model, ask)(X)
    return found


def differs(a, b):
    """None where two values are the same to the bit, else the largest difference relative to the largest value."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.inf
    if np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
        return None
    if a.dtype.kind != "f":
        return np.inf
    scale = max(np.abs(a[np.isfinite(a)]).max(initial=0.0), 1e-300)
    return float(np.nan_to_num(np.abs(a - b), nan=np.inf, posinf=np.inf).max() / scale)


def compare(plain, other):
    """Names of what differs between two runs, with the relative difference; a run is a dict of values."""
    if plain.keys() != other.keys():
        return {"keys " + " ".join(sorted(plain.keys() ^ other.keys())): np.inf}
    return {name: gap for name in plain if (gap := differs(plain[name], other[name])) is not None}


class Run:
    """A stream in calls of given sizes, and how a model gets along with it."""

    def __init__(self, X, y, sizes):
        self.X, self.y = X, y
        self.ends = np.cumsum(sizes)
        self.test = X[: min(40, X.shape[0])]

    def learn(self, model, first, last):
        """Calls first, …, last - 1; the scores they return."""
        out = {}
        for i in range(first, last):
            part = slice(self.ends[i - 1] if i else 0, self.ends[i])
            y = () if self.y is None else (self.y[part],)
            if hasattr(model, "learn"):
                out[f"scores {i}"] = model.learn(self.X[part], *y)
            else:
                model.partial_fit(self.X[part], *y)
        return out

    def result(self, model, first):
        out = self.learn(model, first, len(self.ends))
        out |= forecasts(model, self.test)
        return out | {f"state {name}": value for name, value in model.state_.items()}

    def continuation(self, make, cut):
        """What differs after a file and without caches, {name: gap}: the quick answer."""
        model = make()
        if not hasattr(model, "partial_fit"):
            return {name: gap for gaps in self._once(make).values() for name, gap in gaps.items()}
        self.learn(model, 0, cut)
        file = io.BytesIO()
        kernelstream.save(model, file)
        plain, other = self.result(model, cut), kernelstream.load(file)
        forecasts(other, self.test[: 1 + cut % 7])
        return compare(plain, self.result(other, cut))

    def continuations(self, make, cut):
        """What differs for each way of being interrupted after ``cut`` calls, {way: {name: gap}}."""
        if not hasattr(make(), "partial_fit"):
            return self._once(make)
        model = make()
        self.learn(model, 0, cut)
        plain = self.result(model, cut)
        found = {}
        model = make()
        self.learn(model, 0, cut)
        for way, other in copies(model).items():
            found[way] = compare(plain, self.result(other, cut))
        found["having been copied"] = compare(plain, self.result(model, cut))
        for way in ("predict", "caches dropped", "caches dropped, predict"):
            model = make()
            self.learn(model, 0, cut)
            if "dropped" in way:
                dropped(model)
            if "predict" in way:
                forecasts(model, self.test[: 1 + cut % 7])
                forecasts(model, self.test)
            found[way] = compare(plain, self.result(model, cut))
        return found

    def _once(self, make):
        """For a model that learns all rows at once."""
        model = make().fit(self.X, self.y)
        plain = forecasts(model, self.test) | {f"state {name}": value for name, value in model.state_.items()}
        others = copies(model) | {"caches dropped": dropped(model)}
        return {
            way: compare(plain, forecasts(other, self.test) | {f"state {k}": v for k, v in other.state_.items()})
            for way, other in others.items()
        }


def sizes(rng, n):
    """Random sizes of calls that add up to n, at least two: some of one row, some of many."""
    found, most = [], n // 2
    while n:
        size = min(most, int(rng.choice([1, 2, 7, 30, 150])))
        for _ in range(int(rng.integers(1, 6 if size < 30 else 2))):
            found.append(min(size, n))
            n -= found[-1]
            if not n:
                break
    return found


def trial(name, task, container, dtype, engine, seed, n=300, quick=False, **params):
    """One configuration, drawn from the seed; returns the differences of every way, or of one if it is to be quick."""
    rng = np.random.default_rng([seed, *name.encode()])
    X, labels, signal = rows(rng, n, d=int(rng.choice([5, 40])))
    X = X.astype(dtype)
    X = sp.csr_array(X) if container == "csr" else X
    calls = sizes(rng, n)
    cut = int(rng.integers(1, len(calls)))
    gamma = None if rng.random() < 0.5 else float(rng.choice([0.05, 0.3, 1.0]))
    run = Run(X, target(task, labels, signal), calls)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        find = run.continuation if quick else run.continuations
        return find(lambda: estimator(name, task, engine, gamma=gamma, **params), cut)
