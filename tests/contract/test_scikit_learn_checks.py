"""scikit-learn's checks on every case."""

import traceback
import warnings
from unittest import SkipTest

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


def excused():
    for name, excuses in SCIKIT_LEARN.items():
        for words, est, check in checks(name):
            if why := excuses.get(check.func.__name__):
                yield pytest.param(est, check, why, id=f"{name}: {words}")


def test_every_public_estimator_has_a_case():
    assert {type(case).__name__ for case in CASES.values()} == public()


def test_excuses_are_of_cases_and_checks_that_there_are():
    for name, excuses in SCIKIT_LEARN.items():
        assert excuses.keys() <= {check.func.__name__ for _, _, check in checks(name)}, name


def run(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def repeats(name, words):
    """Whether a check goes the ways of another one of the same case.

    Rows in sparse matrices and in sparse arrays come in at one door, so each case takes one of the two kinds. Training
    is checked on plain rows and on read-only rows of either type; read-only float32 is left of those.
    """
    other = "matrix" if list(CHECKED).index(name) % 2 else "array"
    return words in (f"check_estimator_sparse_{other}", "check_classifiers_train True", "check_regressors_train True")


def failures(name, wanted):
    """Words and traces of the wanted checks of a case that fail."""
    failed = []
    for words, estimator, check in checks(name):
        if check.func.__name__ in SCIKIT_LEARN.get(name, {}) or not wanted(words):
            continue
        try:
            run(estimator, check)
        except SkipTest:
            pass
        except Exception as error:
            failed.append(f"{words}: {error!r}\n{traceback.format_exc()}")
    return "\n".join(failed)


@pytest.mark.parametrize("name", CHECKED)
def test_checks(name):
    """All of them in one test, of which there would be thousands: what fails is listed."""
    assert not failures(name, lambda words: not repeats(name, words))


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKED)
def test_checks_that_repeat_others(name):
    assert not failures(name, lambda words: repeats(name, words))


@pytest.mark.parametrize("estimator, check, why", list(excused()))
def test_excused(estimator, check, why):
    """What is excused fails; a test that is marked so would spend most of its time on the words of the failure."""
    try:
        run(estimator, check)
    except SkipTest:
        pytest.skip("the check does not concern it")
    except Exception:
        return
    pytest.fail(f"no excuse is needed: {why}")
