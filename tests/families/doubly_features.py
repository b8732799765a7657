"""The features of doubly stochastic learners by their formula, for the naive programs of the tests."""

import functools

import numpy as np

from kernelstream.core import philox

SEED = 5


@functools.cache
def numbers(t, d, D, stream):
    return philox.normals(SEED, t, np.arange(d), D, stream).astype(float)


def fourier_block(X, t, D=6, stream=0, gamma=0.7):
    """Block t = 0, 1, … of Gaussian features: [cos XW, sin XW] / sqrt(D), W from the counters of the seed."""
    W = numbers(t, X.shape[1], D, stream) * np.sqrt(2 * gamma)
    return np.concatenate([np.cos(X @ W), np.sin(X @ W)], axis=1) / np.sqrt(D)
