"""Check an installed wheel: it learns with its compiled core, saves and loads.

python tools/wheel_check.py    # outside the source tree, so that the installed package is used
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np

import kernelstream
from kernelstream import FeatureClassifier, KernelRegressor, engine


def check() -> str:
    if not engine.has_native():
        raise SystemExit("the compiled core is missing")
    if not (Path(kernelstream.__file__).parent / "_core.pyi").exists():
        raise SystemExit("the stub of the compiled core is missing")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    y = X[:, 0] * X[:, 1]
    compiled, readable = (FeatureClassifier(engine=name, random_state=0) for name in ("native", "python"))
    apart = np.abs(compiled.learn(X, y > 0) - readable.learn(X, y > 0)).max()
    if not apart < 1e-9:
        raise SystemExit(f"the engines differ by {apart}")
    model = KernelRegressor(size="small", random_state=0).partial_fit(X, y)
    file = io.BytesIO()
    kernelstream.save(model, file)
    file.seek(0)
    if not np.array_equal(kernelstream.load(file).predict(X[:20]), model.predict(X[:20])):
        raise SystemExit("a model that was saved and loaded forecasts something else")
    return f"kernelstream {kernelstream.__version__} on {sys.platform}: core, engines and files are all right"


if __name__ == "__main__":
    print(check())
