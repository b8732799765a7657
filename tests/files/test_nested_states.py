"""States inside states: the flat names of `state_` and of model files, and back."""

import numpy as np
import pytest

from kernelstream import KernelClassifier
from kernelstream.state.nested import flatten, nest, parts
from kernelstream.state.schema import Array, Count, Inside, check

W, V, ERRORS = np.arange(3.0), np.ones(2), np.zeros(4)
NESTED = {
    "n_features": 3,
    "warm_rows": 0,
    "warm_count": 0,
    "watch": {"errors": ERRORS, "adwin": {"rows": 7}},
    "members": [
        {"n_features": 3, "warm_rows": 0, "warm_count": 0, "w": W},
        {"n_features": 3, "warm_rows": 0, "warm_count": 0, "w": V, "t": 2},
    ],
}
FLAT = {
    "n_features": 3,
    "warm_rows": 0,
    "warm_count": 0,
    "watch/errors": ERRORS,
    "watch/adwin/rows": 7,
    "members/0/w": W,
    "members/1/w": V,
    "members/1/t": 2,
}


def test_there_and_back():
    assert flatten(NESTED) == FLAT  # arrays are the same objects
    back = nest(FLAT)
    assert back["watch"] == NESTED["watch"] and back["members"] == NESTED["members"]
    assert flatten(back) == FLAT


def test_flat_states_stay_themselves():
    flat = {"w": W, "t": 3}
    assert flatten(flat) is flat and nest(flat) is flat


@pytest.mark.parametrize(
    "wrong",
    [
        {"watch": 1, "watch/errors": ERRORS},  # an entry and a state of one name
        {"watch/errors": ERRORS, "watch/errors/x": 1},
        {"members/0/w": W, "members/2/w": W},  # a gap
        {"members/0/n_features": 3},  # which all members have in common
        {"members/0": W},
        {"/".join("abcdefghij"): 1},  # too deep
    ],
    ids=["both", "below an array", "gap", "shared", "no state", "deep"],
)
def test_names_that_nobody_makes_are_refused(wrong):
    with pytest.raises(ValueError, match="state_ has"):
        nest(wrong | {"n_features": 3})


def test_members_are_no_parts():
    found = list(parts(NESTED))
    assert [next(iter(part)) for part in found] == ["n_features", "errors", "rows"]


def test_errors_name_the_path():
    schema = {"watch": Inside({"errors": Array((4,)), "adwin": Inside({"rows": Count(0, 5)})})}
    with pytest.raises(ValueError, match="'watch/adwin/rows'"):
        check({"watch": NESTED["watch"]}, schema)
    with pytest.raises(ValueError, match="lacks 'watch/errors'"):
        check({"watch": {"adwin": {"rows": 1}}}, schema)
    with pytest.raises(ValueError, match="must be a state of its own"):
        check({"watch": W}, schema)


def test_a_model_goes_on_from_its_flat_state():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] > X[:, 1] ** 2).astype(int)
    model, other = (KernelClassifier(size="small", random_state=0) for _ in range(2))
    model.learn(X[:200], y[:200])
    other.state_ = {
        name: np.copy(value) if isinstance(value, np.ndarray) else value for name, value in model.state_.items()
    }
    np.testing.assert_array_equal(other.learn(X[200:], y[200:]), model.learn(X[200:], y[200:]))
