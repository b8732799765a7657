"""A Series of pandas is a row where its index names the columns of the model; any other Series is refused in words."""

import numpy as np
import pytest

import kernelstream as ks

pd = pytest.importorskip("pandas")
frame = pd.DataFrame(np.random.default_rng(0).normal(size=(150, 3)), columns=list("abc"))
target = (2 * frame.a + frame.b).to_numpy()


@pytest.mark.parametrize("est", [ks.FeatureRegressor(random_state=0), ks.KernelRegressor(size="small", random_state=0)])
@pytest.mark.parametrize("words", [False, True])
def test_a_series_is_a_row(est, words):
    rows = frame.assign(d=["x", "y", "z"] * 50) if words and est.columns is not None else frame
    by_series, by_frame = (type(est)(**est.get_params(deep=False)) for _ in range(2))
    for model in (by_series, by_frame):
        model.learn(rows[:120], target[:120])
    np.testing.assert_array_equal(by_series.predict(rows.iloc[130]), by_frame.predict(rows.iloc[130:131]))
    by_series.learn(rows.iloc[131], target[131])
    by_frame.learn(rows.iloc[131:132], target[131:132])
    np.testing.assert_array_equal(by_series.predict(rows), by_frame.predict(rows))


def test_any_other_series_is_refused():
    model = ks.FeatureRegressor(random_state=0)
    with pytest.raises(ValueError, match=r"learned none by name.*to_frame"):
        model.learn(frame.iloc[0], 1.0)
    model.learn(frame, target)
    for series in (frame["a"], frame.iloc[3][:2]):
        with pytest.raises(ValueError, match=r"a, b, c\): pass a data frame"):
            model.predict(series)
