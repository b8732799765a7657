"""The table of excuses: which case may fail which check, and why. They are strict: one that is not needed fails."""

from cases import CASES, LEARNERS, WRAPPERS
from sklearn.utils import get_tags

ORDER = "the model depends on the order of the rows: a weight of 2 is not two copies among the others"
BATCHES = "rows are drawn in batches: a weight of 2 is not two copies that may fall into different batches"
HELD_OUT = "bandwidth and penalty come from a random cut of the rows, which weights and copies do not survive"
LINK = "scores do not depend on the order of the rows, probabilities are learned from the forecasts before each of them"
DRAWN = "centres and held-out rows are drawn among the rows"
GAP = "it stops at a duality gap that is lost in the rounding of the objective: half of the digits of a score"
NO_PRICE = "it makes sure of every row: there is no price that a weight could multiply"
NEIGHBOURS = "an average of neighbours: it does not pass through its own rows"

# A weight of 2 is two rows: what these minimise, or compute in closed form, does not depend on the order of the rows.
EXACT = {
    "BinningClassifier, given parameters",
    "BinningRegressor",
    "FalkonClassifier, logistic",
    "FixedFeatureRegressor",
    "KernelAWV",
    "KernelSDCARegressor",
    "OnlineRidge",
    "WithIntervals",
}

# Rows as they come: words, gaps, dates and columns that nobody has announced are encoded, where scikit-learn's checks
# want them refused.
AS_THEY_COME = {"Columns", "StreamPipeline"}

WHY = {
    "BinningClassifier": HELD_OUT,
    "FalkonClassifier": DRAWN,
    "FalkonRegressor": DRAWN,
    "FixedFeatureClassifier": GAP,
    "KernelAWVClassifier": LINK,
    "KernelSDCAClassifier": GAP,
    "OnlineRidgeClassifier": LINK,
    **{name: BATCHES for name in LEARNERS if name.startswith(("Doubly", "Density"))},
}

SCIKIT_LEARN: dict[str, dict[str, str]] = {
    name: {
        f"check_sample_weight_equivalence_on_{kind}_data": WHY.get(name, ORDER)
        for kind in ("dense", "sparse")
        if kind == "dense" or get_tags(CASES[name]).input_tags.sparse
    }
    for name in (*LEARNERS, *WRAPPERS)
    if name not in EXACT | AS_THEY_COME
}
SCIKIT_LEARN["WindowRegressor"]["check_regressors_train"] = NEIGHBOURS
SCIKIT_LEARN["ConfidenceWeightedClassifier, diagonal"]["check_class_weight_classifiers"] = NO_PRICE

# ---------------------------------------------------------------- the streaming kit
# Options of check_streaming that leave something out (None: the whole kit), what is then missing, and why.
STREAMING: dict[str, tuple[dict | None, str, str]] = {
    "BudgetOneClass, no budget": ({"bounded": False}, "bounded", "there is no budget"),
    "KernelAWV": ({"bounded": False}, "bounded", "exact: it keeps all rows"),
    "KernelAWVClassifier": ({"bounded": False}, "bounded", "exact: it keeps all rows"),
    "KernelClassifier": (None, "bad_input", "takes rows as they come, gaps too; it has tests of its own"),
    "KernelNovelty": (None, "bad_input", "takes rows as they come, gaps too; it has tests of its own"),
    "KernelRegressor": (None, "bad_input", "takes rows as they come, gaps too; it has tests of its own"),
    **{
        name: (
            {"bounded": False, "exact_split": False},
            "split",
            "a block of features a batch; products are rounded by the rows in a call",
        )
        for name in LEARNERS
        if name.startswith(("Doubly", "Density"))
    },
}
