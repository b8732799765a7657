"""
A model without the library
===========================

``to_onnx`` writes a trained feature learner as a graph that any ONNX runtime can evaluate, in many languages. The graph
gives the answers of the model, up to rounding. A model of float32 rows becomes a float32 graph.
"""

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime

from kernelstream import FeatureRegressor
from kernelstream.onnx import to_onnx

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (5000, 2))
y = np.sin(X[:, 0]) * X[:, 1]
model = FeatureRegressor(standardize=True, random_state=0).fit(X, y, passes=3)

session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
asked = rng.uniform(-3, 3, (1000, 2))
graph = session.run(None, {session.get_inputs()[0].name: asked})[0].ravel()
ours = model.predict(asked)
print("largest difference:", np.abs(graph - ours).max())

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot(ours, graph, ".", ms=3)
left.set(xlabel="model.predict", ylabel="ONNX runtime", title="1,000 forecasts")
right.hist(np.log10(np.abs(graph - ours) + 1e-18), bins=40, color="C0")
right.set(xlabel="log10 of the difference", ylabel="rows")
plt.show()
