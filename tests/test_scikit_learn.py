"""scikit-learn's own checks on the public feature learners."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelstream import FeatureClassifier, FeatureRegressor, NystroemClassifier, NystroemRegressor
from kernelstream.features import RandomFourier

ORDER = "a learner that sees rows in order cannot treat a weight of 2 as two copies shuffled among the others"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": ORDER,
    "check_sample_weight_equivalence_on_sparse_data": ORDER,
}


@parametrize_with_checks(
    [
        FeatureClassifier(RandomFourier(n_components=100)),
        FeatureClassifier(RandomFourier(n_components=100), loss="logistic", standardize=True),
        FeatureRegressor(RandomFourier(n_components=100)),
        NystroemClassifier(),
        NystroemRegressor(),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn(estimator, check):
    check(estimator)
