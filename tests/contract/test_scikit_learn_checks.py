"""scikit-learn's checks on every case."""

import warnings

import pytest
from cases import CASES, public
from excuses import SCIKIT_LEARN
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import estimator_checks_generator


def checks():
    for name, case in CASES.items():
        seen = set()
        for est, check in estimator_checks_generator(case):
            what = check.func.__name__
            marks = []
            if what in SCIKIT_LEARN.get(name, {}):
                marks.append(pytest.mark.xfail(reason=SCIKIT_LEARN[name][what], strict=True))
            label = what.removeprefix("check_") + "".join(f" {v}" for v in check.keywords.values())
            assert label not in seen
            seen.add(label)
            yield pytest.param(est, check, marks=marks, id=f"{name}: {label}")


def test_every_public_estimator_has_a_case():
    assert {type(case).__name__ for case in CASES.values()} == public()


@pytest.mark.parametrize("estimator, check", checks())
def test_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)
