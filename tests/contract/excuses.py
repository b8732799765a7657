"""The table of excuses: which case may fail which check, and why. They are strict: one that is not needed fails."""

from cases import CASES, LEARNERS

ORDER = "the model depends on the order of the rows: a weight of 2 is not two copies among the others"
BATCHES = "rows are drawn in batches: a weight of 2 is not two copies that may fall into different batches"
HELD_OUT = "bandwidth and penalty come from a random cut of the rows, which weights and copies do not survive"
ALONE = "AdaGrad's steps do not depend on the size of gradients: a cell with rows of one class learns it at any weight"
NEIGHBOURS = "an average of neighbours: it does not pass through its own rows"

# A weight of 2 is two rows: what these minimise, or compute in closed form, does not depend on the order of the rows.
EXACT = {
    "BinningClassifier, given parameters",
    "BinningRegressor",
    "FixedFeatureClassifier",
    "FixedFeatureRegressor",
    "KernelAWV",
    "KernelAWVClassifier",
    "KernelSDCAClassifier",
    "KernelSDCARegressor",
    "OnlineRidge",
    "OnlineRidgeClassifier",
}

WEIGHTS = {
    "BinningClassifier": HELD_OUT,
    **{name: BATCHES for name in LEARNERS if name.startswith(("Doubly", "DensityRatio"))},
}

SCIKIT_LEARN: dict[str, dict[str, str]] = {
    name: dict.fromkeys(
        [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")], WEIGHTS.get(name, ORDER)
    )
    for name in LEARNERS
    if name not in EXACT
}
SCIKIT_LEARN["BinningClassifier, online"]["check_class_weight_classifiers"] = ALONE
SCIKIT_LEARN["WindowRegressor"]["check_regressors_train"] = NEIGHBOURS
