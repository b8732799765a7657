"""Names of columns, on every case: they are remembered, and rows with others are refused."""

import numpy as np
import pytest
from cases import CASES, X, answers, instance, targets
from excuses import AS_THEY_COME

pytestmark = pytest.mark.usefixtures("short_searches")

pandas = pytest.importorskip("pandas")
FRAME = pandas.DataFrame(X, columns=["a", "b", "c"])


@pytest.mark.parametrize("name", CASES)
def test_names(name):
    est = instance(name)
    y = targets(est)
    est.fit(FRAME[:30], y[:30])
    nameless = instance(name).fit(X[:30], y[:30])
    np.testing.assert_allclose(answers(est, FRAME[:5]), answers(nameless, X[:5]), rtol=1e-9, atol=1e-12)
    turned = FRAME[["b", "a", "c"]]
    if name in AS_THEY_COME:  # they find columns by their names, in any order
        np.testing.assert_allclose(answers(est, turned), answers(est, FRAME))
        return
    assert list(est.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        answers(est, turned)
    if hasattr(est, "partial_fit"):
        before = answers(est, FRAME)
        with pytest.raises(ValueError, match="feature names"):
            est.partial_fit(turned, y)
        np.testing.assert_array_equal(answers(est, FRAME), before)
        assert list(instance(name).partial_fit(FRAME[:30], y[:30]).feature_names_in_) == ["a", "b", "c"]


def test_a_call_refused_at_the_door_keeps_what_was_derived():
    """A factor made anew may differ in its last bits, and answers with it; nothing was learned, so nothing is."""
    est = instance("ProsNKons")
    y = targets(est)
    est.fit(FRAME[:30], y[:30])
    answers(est, FRAME)
    held = est._learner.derived["held"]
    with pytest.raises(ValueError, match="feature names"):
        est.partial_fit(FRAME[["b", "a", "c"]], y)
    assert est._learner.derived["held"] is held
    assert "_nothing_learned" not in vars(est)
