"""
How many features a kernel needs
================================

Random features estimate a kernel. The error falls with their number, and it matters how they are drawn. Orthogonal and
quasi-random frequencies beat independent ones, and landmarks from the data (Nyström) beat both on data with few
directions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kernelstream import kernels
from kernelstream.features import Nystroem, RandomFourier

X = load_digits().data[:600] / 16
gamma = 0.05
K = kernels.Gaussian(gamma).pairwise(X, X)
sizes = [16, 32, 64, 128, 256, 512]
maps = {
    "Fourier, independent": lambda D, s: RandomFourier(gamma=gamma, n_components=D, sampling="iid", random_state=s),
    "Fourier, orthogonal": lambda D, s: RandomFourier(
        gamma=gamma, n_components=D, sampling="orthogonal", random_state=s
    ),
    "Fourier, quasi-random": lambda D, s: RandomFourier(gamma=gamma, n_components=D, sampling="qmc", random_state=s),
    "Nyström": lambda D, s: Nystroem(gamma=gamma, n_components=D, random_state=s),
}

fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for name, make in maps.items():
    errors = []
    for D in sizes:
        found = []
        for seed in range(3):
            Z = make(D, seed).fit(X).transform(X)
            found.append(np.sqrt(np.mean((Z @ Z.T - K) ** 2)))
        errors.append(np.mean(found))
    ax.loglog(sizes, errors, marker="o", label=name)
ax.set(xlabel="n_components", ylabel="error of the kernel, root mean square", title="Gaussian kernel, digits")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()
