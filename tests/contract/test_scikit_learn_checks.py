"""scikit-learn's checks on every case."""

import warnings

import pytest
from cases import CASES, public
from excuses import AS_THEY_COME, SCIKIT_LEARN
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import estimator_checks_generator

CHECKED = {name: case for name, case in CASES.items() if name not in AS_THEY_COME}


def checks(name):
    """(words, estimator, check) of a case."""
    for est, check in estimator_checks_generator(CHECKED[name]):
        words = [check.func.__name__, *(str(value) for value in check.keywords.values())]
        yield " ".join(words), est, check


def params():
    for name in CHECKED:
        excuses = SCIKIT_LEARN.get(name, {})
        for words, est, check in checks(name):
            why = excuses.get(check.func.__name__)
            marks = [] if why is None else [pytest.mark.xfail(reason=why, strict=True)]
            yield pytest.param(est, check, marks=marks, id=f"{name}: {words.removeprefix('check_')}")


def test_every_public_estimator_has_a_case():
    assert {type(case).__name__ for case in CASES.values()} == public()


def test_excuses_are_of_cases_and_checks_that_there_are():
    for name, excuses in SCIKIT_LEARN.items():
        assert excuses.keys() <= {check.func.__name__ for _, _, check in checks(name)}, name


@pytest.mark.parametrize("estimator, check", list(params()))
def test_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)
