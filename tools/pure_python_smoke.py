"""Smoke test of an installation without the compiled core; see pure_python_check.sh."""

import warnings
from importlib.util import find_spec

import numpy as np

import kernelstream
from kernelstream import FeatureClassifier

assert find_spec("kernelstream._core") is None, "the compiled core is installed: this check proves nothing"

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (300, 2))
y = (X[:, 0] * X[:, 1] > 0).astype(int)  # no line separates these classes

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    automatic = FeatureClassifier(random_state=0).fit(X, y)
    FeatureClassifier(random_state=0).partial_fit(X[:50], y[:50]).predict(X[:5])
notices = [str(w.message) for w in caught if "pure Python engine" in str(w.message)]
assert len(notices) == 1, f"expected one notice of the pure Python engine, got {len(notices)}: {notices}"

explicit = FeatureClassifier(engine="python", random_state=0).fit(X, y)
assert (automatic.predict(X) == explicit.predict(X)).all()
accuracy = (explicit.predict(X) == y).mean()
assert accuracy > 0.7, f"accuracy {accuracy} on the training rows, where a coin would have 0.5"
print(f"kernelstream {kernelstream.__version__}, pure Python: accuracy {accuracy:.2f}; {notices[0]}")
