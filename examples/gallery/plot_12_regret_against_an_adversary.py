"""
Regret against an adversary
===========================

An adversary looks at the forecaster and plays, again and again, the row and the target that increase its regret most.
Regret is the loss minus that of the best function in hindsight. Ridge regression pays for every surprise. The
forecaster of Azoury, Warmuth and Vovk includes a row before it predicts it, which shrinks bold forecasts, and pays
less.
"""

import matplotlib.pyplot as plt

from kernelstream import KernelAWV, OnlineRidge, kernels
from kernelstream.features import TaylorFeatures
from kernelstream_papers.regret import greedy_adversary, regret, regret_bound

kernel = kernels.Gaussian(gamma=0.5)
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
features = TaylorFeatures(degree=8, gamma=0.5)
for name, model in {
    "ridge": OnlineRidge(features, lam=1.0),
    "AWV": OnlineRidge(features, lam=1.0, forecaster="awv"),
    "AWV on the kernel itself": KernelAWV(kernel, lam=1.0),
}.items():
    X, y, forecast = greedy_adversary(model, 40, 1, kernel, candidates=40, polish=1, random_state=0)
    ax.plot(range(1, 41), regret(X, y, forecast, kernel), label=name)
    if name == "AWV":
        ax.plot(range(1, 41), regret_bound(X, kernel), "k:", label="bound for AWV on its rows")
ax.set(xlabel="rows", ylabel="regret")
ax.legend(frameon=False)
plt.show()
