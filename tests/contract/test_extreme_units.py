"""Finite input gives finite forecasts, or a clear error and the model unchanged: every recipe and task, odd units."""

import math
import warnings
import zlib
from fractions import Fraction
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp
from recipes import first_of_each_class

from kernelstream import (
    BudgetRegressor,
    FeatureClassifier,
    FeatureRegressor,
    NystroemRegressor,
    OnlineRidge,
    RRFRegressor,
    engine,
    losses,
    zoo,
)
from kernelstream.core import overflow as overflow
from kernelstream.kernels import Gaussian, Laplacian, Linear, Polynomial
from kernelstream.rows import MODERATE
from kernelstream.updates import NORMA, OGD, CoinBetting, NormAdaGrad, PassiveAggressive, Pegasos

pytestmark = pytest.mark.usefixtures("short_searches")

N, D = 30, 3
FIRST = first_of_each_class(zoo.names())
PAIRS = [(name, task) for name in zoo.names() for task in zoo.get(name).tasks]
KERNELS = [Polynomial(1, c=0.0, gamma=1.0), Polynomial(3, c=0.0, gamma=1.0), Gaussian(0.5), Gaussian(100.0)]
# words of parameters that nobody has set here
UNSET = ("gamma", "eta", "lam ", "lam=", "theta", "nan", "budget", "infs or NaNs", "leading minor", "Singular")

LONG = ("doubly", "omkl", "random_binning_lasso")  # in Python
# They differ from doubly_ridge and doubly_svm in nothing but the loss.
ALIKE = ("doubly_huber", "doubly_lad", "doubly_quantile", "doubly_svr")

LINEAR = [
    (name, task)
    for name, task in PAIRS
    if "kernel" in zoo.get(name).parameters and not name.startswith(("doubly", "random_binning", "awv"))
]


def row_huge(X, y, tiny, huge):
    X[N // 2] = 1e160 if X.dtype == np.float64 else 1e37
    return X, y, None


def rows_zero(X, y, tiny, huge):
    X[[0, 1, N // 2, N - 1]] = 0
    return X, y, None


def one_target_huge(X, y, tiny, huge):
    y[N // 2] = 1e308
    return X, y, None


CASES = {  # rows, targets and weights, from plain rows and targets
    "plain": lambda X, y, tiny, huge: (X, y, None),
    "columns_tiny": lambda X, y, tiny, huge: (X * tiny, y, None),
    "columns_huge": lambda X, y, tiny, huge: (X * huge, y, None),
    "columns_apart": lambda X, y, tiny, huge: (X * np.array([tiny, 1.0, huge], X.dtype), y, None),
    "row_huge": row_huge,
    "rows_zero": rows_zero,
    "all_zero": lambda X, y, tiny, huge: (X * 0, y, None),
    "target_huge": lambda X, y, tiny, huge: (X, y * 5e307, None),
    "target_large": lambda X, y, tiny, huge: (X, y * 1e140, None),
    "target_tiny": lambda X, y, tiny, huge: (X, y * 1e-300, None),
    "one_target_huge": one_target_huge,
    "weights_huge": lambda X, y, tiny, huge: (X, y, np.full(N, 1e300)),
    "weights_large": lambda X, y, tiny, huge: (X, y, np.full(N, 1e100)),
    "weights_tiny": lambda X, y, tiny, huge: (X, y, np.full(N, 1e-300)),
}
ROWS = ("plain", "columns_tiny", "columns_apart", "row_huge", "rows_zero")  # cases that concern the rows


def rows_of(task, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    target = {
        "regression": X[:, 0] + 0.1 * rng.standard_normal(N),
        "binary": (X[:, 0] > 0).astype(int),
        "multiclass": np.digitize(X[:, 0], [-0.5, 0.5]),
        "novelty": None,
    }[task]
    return X.astype(dtype), target


def small(name, task, **more):
    """The recipe with little to do: its strategies and features are exercised by thirty rows."""
    known = zoo.get(name).parameters
    own = {"budget": 24 if name.startswith("omkl") else 6, "kernels": KERNELS}
    own |= {"n_components": 8, "n_centers": 8, "iterations": 4}
    own = {key: value for key, value in own.items() if key in known}
    if name.startswith("doubly"):
        own |= {"batch_size": 8, "block_size": 4}
        own |= {"variance_features": 4, "max_blocks": 2} if name == "doubly_gp" else {}
    return zoo.make(name, task=task, random_state=0, **own, **more)


def snapshot(est):
    state = est.__dict__.get("_state")
    return None if state is None else {k: np.copy(v) for k, v in est.state_.items()}


def same(a, b):
    return (a is b) or (
        a is not None and b is not None and a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)
    )


def attempt(est, where, call, *args, **kwargs):
    """What a call returns, finite; None after a clear ValueError that leaves the model alone."""
    before = snapshot(est)
    result, refusal = est, None
    try:
        result = call(*args, **kwargs)
    except ValueError as error:
        refusal = error
    if refusal is not None:
        assert type(refusal) is ValueError, f"{where}: {refusal!r}"
        assert not [word for word in UNSET if word in str(refusal)], f"{where}: {refusal}"
        if str(refusal) != overflow.LEARNING or hasattr(est, "_begin_call"):
            assert same(before, snapshot(est)), f"{where}: changed by a call that was refused: {refusal}"
        return None
    if result is not est:
        assert np.isfinite(result).all(), f"{where}: forecasts are not finite"
    for key, value in (snapshot(est) or {}).items():
        assert value.dtype.kind != "f" or np.isfinite(value).all(), f"{where}: state_[{key!r}] is not finite"
    return result


def try_out(name, task, case, dtype, sparse, **more):
    tiny, huge = (1e-300, 1e150) if dtype == np.float64 else (np.float32(1e-38), np.float32(1e30))
    X, y = rows_of(task, dtype)
    if "target" in case and task != "regression":
        return
    X, y, weight = CASES[case](X, y, tiny, huge)
    X = sp.csr_array(X) if sparse else X
    est, where = small(name, task, **more), f"{name}, {task}, {case}, {np.dtype(dtype)}, {'CSR' if sparse else 'dense'}"
    targets = () if task == "novelty" else (y,)

    def part(rows):
        extra = {} if weight is None else {"sample_weight": weight[rows]}
        return (X[rows], *(target[rows] for target in targets)), extra

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if hasattr(est, "learn"):
            for rows in (slice(0, 20), slice(20, 21), slice(21, N)):
                args, extra = part(rows)
                if task in ("binary", "multiclass"):
                    extra["classes"] = [0, 1, 2][: 2 + (task == "multiclass")]
                attempt(est, where, est.learn, *args, **extra)
        else:
            args, extra = part(slice(None))
            attempt(est, where, est.fit, *args, **extra)
        if est.__dict__.get("_state") is not None:
            forecast = est.predict if task == "regression" else est.decision_function
            attempt(est, where, forecast, X)
            attempt(est, where, forecast, rows_of(task, dtype, seed=1)[0][:1])


def turns(name, task, cases):
    """Those of the cases whose turn it is: each falls to one of the recipe's tasks, another one in the next recipe."""
    tasks = zoo.get(name).tasks
    return [case for i, case in enumerate(cases, zoo.names().index(name)) if tasks[i % len(tasks)] == task]


def of_the_class(name, cases):
    """All cases for the first recipe of a class, every second one for the others."""
    return cases if name in FIRST else list(cases)[zoo.names().index(name) % 2 :: 2]


@pytest.mark.parametrize("name, task", [pair for pair in PAIRS if pair[0] not in ALIKE], ids=lambda value: value)
def test_recipes(name, task):
    """The cases on dense float64 rows; those that concern the rows in turn on these, on float32 and on CSR rows."""
    for i, case in enumerate(turns(name, task, of_the_class(name, CASES)), zoo.names().index(name)):
        kind = i % 3 if case in ROWS else 0
        try_out(name, task, case, np.float32 if kind == 1 else np.float64, sparse=kind == 2)


@pytest.mark.slow
@pytest.mark.parametrize("name, task", PAIRS, ids=lambda value: value)
def test_recipes_in_all_their_tasks(name, task):
    for case in CASES:
        try_out(name, task, case, np.float64, sparse=False)
    for case in ROWS:
        try_out(name, task, case, np.float32, sparse=False)
        try_out(name, task, case, np.float64, sparse=True)
    if (name, task) in LINEAR:
        for case in ("rows_zero", "columns_tiny", "columns_huge"):
            try_out(name, task, case, np.float64, sparse=False, kernel="linear")


@pytest.mark.parametrize("name, task", [pair for pair in PAIRS if not pair[0].startswith(LONG)][::3])
@pytest.mark.slow
def test_recipes_python(name, task):
    """A third of the recipes with the specification, on the cases that overflow."""
    for case in turns(name, task, ("columns_tiny", "columns_huge", "rows_zero", "target_large", "weights_large")):
        try_out(name, task, case, np.float64, sparse=False, engine="python")


@pytest.mark.parametrize("name, task", LINEAR, ids=lambda value: value)
def test_linear_kernel(name, task):
    """k(x, x) is 0 for some rows, and far from 1 for others: in turn, as above."""
    for case in turns(name, task, of_the_class(name, ("rows_zero", "columns_tiny", "columns_huge"))):
        try_out(name, task, case, np.float64, sparse=False, kernel="linear")


@pytest.mark.slow
@pytest.mark.parametrize("name, task", PAIRS, ids=lambda value: value)
def test_random_units(name, task):
    """Columns, rows, targets and weights of random sizes between 1e-300 and 1e300."""
    rng = np.random.default_rng(zlib.crc32(f"{name} {task}".encode()))

    def sizes(n):
        return 10.0 ** (rng.uniform(-300, 300, n) * (rng.random(n) < 0.3))

    for _ in range(20):
        X, y = rows_of(task, seed=int(rng.integers(1000)))
        with np.errstate(over="ignore"):
            X = np.nan_to_num(X * sizes(D) * sizes(N)[:, None])
            y = np.nan_to_num(y * sizes(N)) if task == "regression" else y
        weight = sizes(N) if rng.random() < 0.3 and task != "novelty" else None
        CASES["random"] = lambda *_, made=(X, y, weight): made
        for python in (False, True) if rng.random() < 0.2 else (False,):
            extra = {"engine": "python"} if python else {}
            try_out(name, task, "random", np.float64, sparse=bool(rng.random() < 0.3), **extra)
    del CASES["random"]


# -------------------------------------------------------------------------------------------------- ordinary defaults


def test_pegasos_in_regression():
    """At their defaults, on ordinary rows in ordinary units, next to the best of a grid (and no NaN)."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = (X / X.std(axis=0))[order], y[order]
    for name in ("pegasos", "bsgd_merge", "bsgd_project", "dualsgd"):

        def error(name=name, **parameters):
            forecast = zoo.make(name, task="regression", random_state=0, **parameters).learn(X, y)
            return np.mean((forecast - y) ** 2)

        best = min(error(lam=lam) for lam in (1e-4, 1e-3, 1e-2, 1e-1, 1.0))
        assert error() < 1.2 * best
        assert best < 0.8 * y.var()


GRIDS = {
    "bsgd_remove": ("lam", (1e-5, 1e-4, 1e-3, 1e-2)),
    "oskl": ("eta", (0.03, 0.1, 0.3, 1.0)),
    "norma": ("eta", (0.03, 0.1, 0.3, 1.0)),
    "bogd": ("eta", (0.05, 0.1, 0.2, 0.5)),
}


@pytest.mark.parametrize("name", GRIDS)
def test_steps_for_labels(name):
    """Mistakes at the defaults next to the fewest of a grid, on rows that had no part in the choice of the defaults."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = ((X - X.mean(axis=0)) / X.std(axis=0))[order], y[order]

    def mistakes(**parameters):
        scores = zoo.make(name, random_state=0, **parameters).learn(X, y, classes=[0, 1])
        return np.mean((scores >= 0) != y)

    parameter, values = GRIDS[name]
    assert mistakes() < 1.2 * min(mistakes(**{parameter: value}) for value in values)


IN_UNITS = ("pegasos", "norma", "perceptron", "rbp", "forgetron", "projectron", "pa", "pa1", "pa2", "bpas", "bpann",
             "bpap", "bogd", "spa", "omkl_rbp_dd", "omkl_bpas_dd", "omkl_u")  # fmt: skip


@pytest.mark.parametrize("units", [2.0**-30, 2.0**30])
@pytest.mark.parametrize("name", IN_UNITS)
def test_follows_the_units_of_the_target(name, units):
    X, y = rows_of("regression")
    made = [zoo.make(name, task="regression", random_state=0) for _ in range(2)]
    forecast = [model.learn(X, y * unit) for model, unit in zip(made, (1.0, units), strict=True)]
    np.testing.assert_allclose(forecast[1], forecast[0] * units, rtol=1e-9)
    np.testing.assert_allclose(made[1].predict(X), made[0].predict(X) * units, rtol=1e-9)
    assert np.std(forecast[0]) > 0


@pytest.mark.parametrize(
    "name, instead", [("bsgd_remove", "bsgd_merge"), ("stoptron", "projectron"), ("pros_n_kons", "ridge")]
)
def test_says_what_to_use_instead(name, instead):
    with pytest.raises(ValueError, match=instead):
        zoo.make(name, task="regression", random_state=0)
    assert name not in zoo.names("regression")
    zoo.make(name, task="regression", budget=30)


# ------------------------------------------------------------------------------------------------------------- parts


def test_implicit_step():
    """Pegasos on the squared loss: the derivative is that at the function after the step, decay apart."""
    lam, t, k, y, f = 0.1, 7, 2.0, 3.0, 1.5
    decay, tau = Pegasos(lam).step(losses.get("squared"), y, f, k, t, None)
    eta = 1 / (lam * t)
    assert tau == pytest.approx(-eta * (f + tau * k - y) / 1.0, rel=1e-12)
    assert decay == pytest.approx(1 - lam / (lam * t + k), rel=1e-12)
    assert Pegasos(lam).step(losses.get("hinge"), 1.0, 0.2, k, t, None) == (1 - 1 / t, eta)


@pytest.mark.parametrize("update", [OGD(5.0), NORMA(5.0, 0.0), OGD(1.0, "inverse", 0.2)], ids=repr)
def test_steps_do_not_overshoot(update):
    """Where the derivative has no bound, a step removes the residual and no more; elsewhere it is as long as wanted."""
    k = 4.0
    _, tau = update.step(losses.get("squared"), 3.0, 1.0, k, 1, update.memory(1))
    assert tau * k == pytest.approx(2.0)
    assert update.step(losses.get("absolute"), 3.0, 1.0, k, 1, update.memory(1))[1] == 5.0


def test_passive_aggressive_on_rows_next_to_zero():
    hinge = losses.get("hinge")
    for k in (0.0, 5e-324, 1e-310):
        assert PassiveAggressive(math.inf).step(hinge, 1.0, 0.0, k, 1, None) == (1.0, 0.0)
        assert PassiveAggressive(2.0).step(hinge, 1.0, 0.0, k, 1, None) == (1.0, 2.0)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e140])
def test_coin_betting_in_any_units(unit):
    """The factor of the bets, (L + R)/(L (G + L)), in exact fractions: no product leaves the range of floats."""
    squared, memory = losses.get("squared"), CoinBetting().memory(1)
    L = G = R = Fraction(0)
    for t, (y, f) in enumerate(((1.0, 0.0), (-2.0, 0.3), (0.5, 1.0), (3.0, -0.7)), 1):
        y, f = y * unit, f * unit
        _, tau = CoinBetting().step(squared, y, f, 1.0, t, memory)
        g = Fraction(f - y)
        L, G, R = max(L, abs(g)), G + abs(g), max(R - g * Fraction(f), Fraction(0))
        assert tau == pytest.approx(float(-g * (L + R) / (L * (G + L))), rel=1e-12)


@pytest.mark.parametrize("rule", ["scale", "median"])
@pytest.mark.parametrize("kernel", [Gaussian, Laplacian])
def test_bandwidths_follow_the_units(kernel, rule):
    X = np.random.default_rng(0).standard_normal((50, 4))
    power = 2 if kernel is Gaussian else 1
    usual = kernel(rule).resolve(X).gamma
    for exponent in (-140, -20, 20, 140):
        assert kernel(rule).resolve(X * 10.0**exponent).gamma == pytest.approx(usual * 10.0 ** (-power * exponent))
    for size in (1e-300, 1e300):
        assert 0 < kernel(rule).resolve(X * size).gamma < np.inf
    constant = np.c_[np.full(50, 1e300), X * 1e-300]
    assert 0 < kernel(rule).resolve(constant).gamma < np.inf
    small = kernel(rule).resolve((X * 1e-37).astype(np.float32)).gamma
    assert np.isfinite(np.float32(small)) and np.isfinite(np.float32(math.sqrt(2 * small)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_door(dtype):
    """Numbers whose squares overflow are refused by name, and what is just below is not."""
    X, y = rows_of("regression", dtype)
    most = 2.0 ** MODERATE[dtype]
    for est in (FeatureRegressor(random_state=0), OnlineRidge(random_state=0)):
        est.learn(X, y)
        before = snapshot(est)
        wild = X.copy()
        wild[3, 1] = -most
        weight = np.ones(N)
        weight[5] = most
        for args, what in (((wild, y), "X"), ((X, y * most * 10), "y"), ((X, y, weight), "sample_weight")):
            with pytest.raises(ValueError, match=rf"^{what} holds -?[\d.e+]+: numbers beyond"):
                est.learn(*args)
        with pytest.raises(ValueError, match=r"^X holds"):
            est.predict(wild)
        assert same(before, snapshot(est))
        wild[3, 1] = np.nextafter(np.asarray(most, dtype), np.asarray(0, dtype))
        assert np.isfinite(est.predict(wild)).all()
    est = FeatureClassifier(random_state=0).fit(X, y > 0)
    with pytest.raises(ValueError, match=r"^X holds"):
        est.learn(wild * 4, y > 0)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("name", ["python", *(["native"] if engine.has_native() else [])])
def test_overflow_is_an_error(name):
    """Kernel values of 1e400 and steps without end: the words say what to do, and are those of both engines."""
    X, y = rows_of("regression")
    cubic = BudgetRegressor(Polynomial(3, c=0.0, gamma=1.0), None, 5, loss="absolute", update=OGD(0.1), engine=name)
    linear = FeatureRegressor("raw", update=NormAdaGrad(1e308), engine=name)
    for est, rows in ((cubic, X * 1e80), (linear, X)):
        words = []
        for _ in range(5):
            try:
                est.learn(rows, y)
            except ValueError as error:
                words.append(str(error))
        assert words[0] == overflow.LEARNING


def test_what_lapack_says_becomes_ours(monkeypatch):
    """A factor that fails anywhere in a family, in a long call or a plain one, is a plain ValueError about the rows."""
    X, y = rows_of("regression")
    est = OnlineRidge(random_state=0)
    est.learn(X, y)
    before = snapshot(est)
    singular = np.linalg.LinAlgError("5-th leading minor of the array is not positive definite")
    monkeypatch.setattr(type(est._learner), "learn", Mock(side_effect=singular))
    for call in (lambda: est.learn(X, y), lambda: est.learn(X, y, sample_weight=np.ones(N)), lambda: est.fit(X, y)):
        with pytest.raises(ValueError, match="range of floats") as raised:
            call()
        assert type(raised.value) is ValueError and str(raised.value) == overflow.LEARNING
        assert same(before, snapshot(est))


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_scores_beyond_floats_are_an_error():
    X, y = rows_of("regression")
    est = BudgetRegressor(Linear(), budget=5).fit(X, y)
    est.state_["alpha"][:] = 1e200
    with pytest.raises(ValueError, match="range of floats"):
        est.predict(X * 1e140)


@pytest.mark.parametrize("name", ["python", "native"])
@pytest.mark.parametrize("kind", [BudgetRegressor, FeatureRegressor, NystroemRegressor, RRFRegressor])
def test_targets_far_from_zero_are_learned_as_those_around_it(kind, name):
    """Years, or degrees above absolute zero: the same forecasts, so much higher; of the first row nothing is known."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(300, 3))
    y = np.sin(2 * rows[:, 0]) + 0.1 * rng.normal(size=300)
    near, far = (kind(engine=name, random_state=0).learn(rows, y + shift) - shift for shift in (0.0, 4096.0))
    np.testing.assert_allclose(far[1:], near[1:], atol=1e-9)
