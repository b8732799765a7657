"""The table of excuses: which case may fail which check, and why. They are strict: one that is not needed fails."""

from cases import LEARNERS, WRAPPERS

ORDER = "the model depends on the order of the rows: a weight of 2 is not two copies among the others"
BATCHES = "rows are drawn in batches: a weight of 2 is not two copies that may fall into different batches"
HELD_OUT = "bandwidth and penalty come from a random cut of the rows, which weights and copies do not survive"
ALONE = "AdaGrad's steps do not depend on the size of gradients: a cell with rows of one class learns it at any weight"
GAP = "it stops at a duality gap that is lost in the rounding of the objective: half of the digits of a score"
OWN = "labels are those of the model inside, probabilities are calibrated: next to 1/2 they may differ"
NEIGHBOURS = "an average of neighbours: it does not pass through its own rows"

# A weight of 2 is two rows: what these minimise, or compute in closed form, does not depend on the order of the rows.
EXACT = {
    "BinningClassifier, given parameters",
    "BinningRegressor",
    "FixedFeatureRegressor",
    "KernelAWV",
    "KernelAWVClassifier",
    "KernelSDCARegressor",
    "OnlineRidge",
    "OnlineRidgeClassifier",
    "WithIntervals",
}

# Rows as they come: words, gaps, dates and columns that nobody has announced are encoded, where scikit-learn's checks
# want them refused.
AS_THEY_COME = {"Columns", "StreamPipeline"}

WHY = {
    "BinningClassifier": HELD_OUT,
    "FixedFeatureClassifier": GAP,
    "KernelSDCAClassifier": GAP,
    **{name: BATCHES for name in LEARNERS if name.startswith(("Doubly", "Density"))},
}

SCIKIT_LEARN: dict[str, dict[str, str]] = {
    name: dict.fromkeys(
        [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")],
        WHY.get(name, ORDER),
    )
    for name in (*LEARNERS, *WRAPPERS)
    if name not in EXACT | AS_THEY_COME
}
SCIKIT_LEARN["BinningClassifier, online"]["check_class_weight_classifiers"] = ALONE
SCIKIT_LEARN["Calibrated"]["check_classifiers_train"] = OWN
SCIKIT_LEARN["WindowRegressor"]["check_regressors_train"] = NEIGHBOURS
del SCIKIT_LEARN["Explained"]["check_sample_weight_equivalence_on_sparse_data"]  # takes dense rows only

# ---------------------------------------------------------------- the streaming kit
# Options of check_streaming that leave a property out (None: the whole kit), the words in which the kit finds it
# missing, and the reason.
STREAMING: dict[str, tuple[dict | None, str, str]] = {
    "Calibrated": (None, "scores of rows of weight 0", "learn gives calibrated scores, decision_function the model's"),
    "KernelClassifier": (None, "accepted NaN", "takes rows as they come, gaps too; it has tests of its own"),
    "KernelRegressor": (None, "accepted NaN", "takes rows as they come, gaps too; it has tests of its own"),
    "BudgetOneClass, no budget": ({"bounded": False}, "state grew", "there is no budget"),
    "KernelAWV": ({"bounded": False}, "state grew", "exact: it keeps all rows"),
    "KernelAWVClassifier": ({"bounded": False}, "state grew", "exact: it keeps all rows"),
    **{
        name: ({"bounded": False, "exact_split": False}, "state grew|differ", "a block of features for every batch")
        for name in LEARNERS
        if name.startswith(("Doubly", "Density"))
    },
}
