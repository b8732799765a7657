"""The compiled functions: few arguments, and no array that leads outside its memory."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.sparse as sp

import kernelstream as ks
from kernelstream import engine, zoo
from kernelstream.columns import Columns, _pass
from kernelstream.estimators import RRFStep
from kernelstream.features import Nystroem, RandomFourier
from kernelstream.trust import Calibrator, IntervalTracker

_core = pytest.importorskip("kernelstream._core")
native = engine.get("native") if _core else None

MOST = 7  # arguments


def functions(home, prefix=""):
    """Every function of the module and method of its classes, with its signatures."""
    for name, value in inspect.getmembers(home):
        if hasattr(value, "__nb_signature__"):
            yield prefix + name, [signature[0] for signature in value.__nb_signature__]
        elif inspect.isclass(value) and value.__module__ == _core.__name__:
            yield from functions(value, f"{name}.")


def arguments(signature):
    """How many arguments a signature such as ``def f(x: ndarray[shape=(*, *)], /) -> int`` has, without self."""
    depth, parts, text = 0, [""], signature[signature.index("(") + 1 :]
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if depth < 0:
            break
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return len([part for part in parts if part.strip() not in ("", "/", "*", "self")])


def test_counting_arguments():
    assert arguments("def f(self) -> None") == 0
    assert arguments("def f(arg0: ndarray[dtype=float32, shape=(*, *)], arg1: tuple[int, float] | None, /) -> int") == 2


def test_no_function_takes_many_arguments():
    found = dict(functions(_core))
    assert {"linear_pass", "budget_pass", "Spec.__init__", "Turns.__enter__"} <= set(found)
    many = {name: arguments(text) for name, texts in found.items() for text in texts if arguments(text) > MOST}
    assert not many


# ---------------------------------------------------------------------- arrays that do not fit
X = np.random.default_rng(0).standard_normal((30, 3))
Y, LABELS = X[:, 0] + 0.1, np.where(X[:, 1] > 0, 1, 0)
SPARSE = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
FOURIER = RandomFourier(n_components=4, gamma=1.0)
NYSTROEM = Nystroem(gamma=1.0, landmarks=X[:5])


def ensemble():
    members = [ks.FeatureClassifier(RandomFourier(n_components=4, gamma=g), random_state=0) for g in (0.5, 1.0)]
    return ks.MultiKernelClassifier(members, random_state=0)


def words():
    cells = [{"a": float(a), "b": "red" if b > 0 else "blue"} for a, b in X[:, :2]]
    Columns().learn_transform(cells, Y)


CALLS = {
    "linear_pass": lambda: ks.FeatureClassifier("taylor", random_state=0).learn(X, LABELS),
    "fourier_pass": lambda: ks.FeatureClassifier(FOURIER, random_state=0).learn(X, LABELS),
    "nystroem_pass": lambda: ks.FeatureClassifier(NYSTROEM, random_state=0).learn(X, LABELS),
    "cells_pass": lambda: ks.CellsClassifier(n_grids=2, random_state=0).learn(np.tile(X, (12, 1)), np.tile(LABELS, 12)),
    "standardize": lambda: ks.FeatureClassifier(FOURIER, standardize=True, random_state=0).learn(X, LABELS),
    "expansion_pass": lambda: zoo.make("perceptron", gamma=1.0, random_state=0).learn(X, LABELS),
    "budget_pass": lambda: zoo.make("bpas", gamma=1.0, budget=5, random_state=0).learn(X, LABELS),
    "gaussian_csr": lambda: zoo.make("bpas", gamma=1.0, budget=5, random_state=0).learn(SPARSE, LABELS),
    "csr_to_slots": lambda: zoo.make("bpas", gamma=1.0, budget=5, random_state=0).learn(SPARSE, LABELS),
    "rrf_pass": lambda: ks.RRFClassifier(4, gamma=1.0, step=RRFStep(batch_size=3), random_state=0).learn(X, LABELS),
    "hedge_pass": lambda: ensemble().learn(X, LABELS),
    "second_order_learn": lambda: ks.AROWClassifier(FOURIER, diagonal=False, random_state=0).learn(X, LABELS),
    "second_order_run": lambda: ks.OnlineRidge(FOURIER, random_state=0).learn(X, Y),
    "diagonal_pass": lambda: ks.AROWClassifier(FOURIER, diagonal=True, random_state=0).learn(X, LABELS),
    "columns_pass": words,
    "calibrate": lambda: Calibrator().learn(Y, LABELS),
    "track": lambda: IntervalTracker().learn(Y, Y + 1),
}

# arguments that may have any number of rows, or are copied if need be
FREE = {
    "standardize": [(1,)],
    "cells_pass": [(0, "tables")],
    "calibrate": [(1,), (2,), (5,)],
    "track": [(1,), (2,), (3,)],
}


def paths(value, path=()):
    """Where the arrays of a call are: the keys that lead to each."""
    if isinstance(value, np.ndarray):
        yield path
    elif isinstance(value, dict):
        for key in value:
            yield from paths(value[key], (*path, key))
    elif isinstance(value, (list, tuple)):
        for key, part in enumerate(value):
            yield from paths(part, (*path, key))


def changed(value, path, change):
    """The same call with another array at a place."""
    if not path:
        return change(value)
    if isinstance(value, dict):
        return value | {path[0]: changed(value[path[0]], path[1:], change)}
    return tuple(changed(part, path[1:], change) if i == path[0] else part for i, part in enumerate(value))


def changed_at(value, path):
    """The array at a place."""
    return changed_at(value[path[0]], path[1:]) if path else value


def copied(value):
    """A call whose arrays are its own; specifications stay."""
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    if isinstance(value, dict):
        return {key: copied(part) for key, part in value.items()}
    return tuple(copied(part) for part in value) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("name", CALLS)
def test_arrays_that_do_not_fit(name, monkeypatch):
    """A real call passes; with any array that it reads of another type or one entry shorter it raises."""
    real, calls = getattr(_core, name), []

    def record(*args):
        calls.append(copied(args))
        return real(*args)

    for home in (_core, native):
        if getattr(home, name, None) is real:
            monkeypatch.setattr(home, name, record)
    _pass.twins.cache_clear()
    CALLS[name]()
    _pass.twins.cache_clear()
    call = max(calls, key=lambda args: sum(part.size for part in args if isinstance(part, np.ndarray)))
    real(*copied(call))

    def refuses(path, change):
        try:
            real(*changed(copied(call), path, change))
        except (TypeError, ValueError):
            return True
        return False

    read = [
        path for path in paths(call) if refuses(path, lambda array: "not an array") and path not in FREE.get(name, [])
    ]
    assert len(read) > 2
    for path in read:
        assert refuses(path, lambda array: array.astype(np.int16)), path
        assert refuses(path, lambda array: array[:-1]) or not len(changed_at(call, path)), path
