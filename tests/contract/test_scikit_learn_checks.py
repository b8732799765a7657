"""scikit-learn's checks on every case."""

import warnings
from unittest import SkipTest

import pytest
from cases import CASES, public
from excuses import AS_THEY_COME, SCIKIT_LEARN
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import estimator_checks_generator

pytestmark = pytest.mark.usefixtures("short_searches", "short_warm_up")

CHECKED = {name: case for name, case in CASES.items() if name not in AS_THEY_COME}
# In which containers rows, targets and weights may come is one door's work: these try it on some of those behind it,
# and either kind of scipy's sparse rows on half of these.
CONTAINERS = {
    "check_array_api_input",
    "check_classifier_data_not_an_array",
    "check_dtype_object",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimators_dtypes",
    "check_f_contiguous_array_estimator",
    "check_readonly_memmap_input",
    "check_regressor_data_not_an_array",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_pandas_series",
}
AT_THE_DOOR = {
    "BinningClassifier", "BudgetClassifier", "BudgetOneClass", "Calibrated", "Delayed", "FalkonClassifier",
    "FeatureClassifier", "KernelClassifier", "MetricClassifier", "Nystroem", "OnlineRidge", "RandomFourier",
}  # fmt: skip


def checks(name):
    """(words, estimator, check) of a case."""
    for est, check in estimator_checks_generator(CHECKED[name]):
        words = [check.func.__name__, *(str(value) for value in check.keywords.values())]
        yield " ".join(words), est, check


def repeats(name, words):
    """Whether a check goes the ways of other tests: the slow ones take them all.

    Of a second case of a class, scikit-learn's interface is that of the first, and of a regressor that of its family's
    classifier, but for what is asked of regressors. Sparse rows, and rows of float32, are compared with dense rows
    of float64 by test_kinds_of_rows.py.
    """
    twin = name.endswith("Regressor") and name.replace("Regressor", "Classifier") in CASES and "regress" not in words
    trains = words.startswith(("check_classifiers_train True", "check_regressors_train True"))
    check, (matrices, arrays) = words.split()[0], (sorted(AT_THE_DOOR)[::2], sorted(AT_THE_DOOR)[1::2])
    tried = {"check_estimator_sparse_matrix": matrices, "check_estimator_sparse_array": arrays}.get(check, AT_THE_DOOR)
    return "," in name or twin or trains or (check in CONTAINERS and name not in tried)


def sorted_out():
    """The checks of all cases as parameters: those that must pass, and those that are excused."""
    required, excused = [], []
    for name in CHECKED:
        for words, est, check in checks(name):
            about = {"id": f"{name}: {words}", "marks": pytest.mark.slow if repeats(name, words) else ()}
            if why := SCIKIT_LEARN.get(name, {}).get(check.func.__name__):
                excused.append(pytest.param(est, check, why, **about))
            else:
                required.append(pytest.param(est, check, **about))
    return required, excused


REQUIRED, EXCUSED = sorted_out()


def test_every_public_estimator_has_a_case():
    assert {type(case).__name__ for case in CASES.values()} == public()


def test_excuses_are_of_cases_and_checks_that_there_are():
    for name, excuses in SCIKIT_LEARN.items():
        assert excuses.keys() <= {check.func.__name__ for _, _, check in checks(name)}, name


def run(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.parametrize("estimator, check", REQUIRED)
def test_check(estimator, check):
    run(estimator, check)


@pytest.mark.parametrize("estimator, check, why", EXCUSED)
def test_excused(estimator, check, why):
    """What is excused fails; a test that is marked so would spend most of its time on the words of the failure."""
    try:
        run(estimator, check)
    except SkipTest:
        pytest.skip("the check does not concern it")
    except AssertionError:
        return
    pytest.fail(f"no excuse is needed: {why}")
