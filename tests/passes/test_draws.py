"""Frequencies of a stream whose bandwidth is still being estimated: drawn once, the same to the last bit."""

import itertools
from unittest.mock import Mock

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

from kernelstream import DoublyStochasticRegressor, FeatureClassifier, settings
from kernelstream.estimators import DoublySchedule
from kernelstream.estimators.doubly import base
from kernelstream.features import RandomFourier, sampling
from kernelstream.kernels import Cauchy, Gaussian, Laplacian
from kernelstream.random import SeedStream, generator

LAWS = {
    Gaussian: lambda rng, gamma: rng.normal(scale=np.sqrt(2 * gamma), size=40),
    Laplacian: lambda rng, gamma: gamma * rng.standard_cauchy(40),
    Cauchy: lambda rng, gamma: rng.laplace(scale=gamma, size=40),
}


@pytest.mark.parametrize("many", [1, 1 << 22], ids=["threads", "one thread"])
@pytest.mark.parametrize("kind", LAWS)
def test_kept_numbers_give_the_same_frequencies(kind, many, monkeypatch):
    """Row i is drawn from stream i by the law of the kernel, kept or not, in one thread or in several."""
    monkeypatch.setattr(sampling, "PARALLEL_NUMBERS", many)
    draws = sampling.Draws()
    for gamma, dtype, kept in itertools.product((0.3, 1.7), (np.float64, np.float32), (None, draws)):
        want = np.stack([LAWS[kind](generator(5, SeedStream.MAP, i), gamma) for i in range(6)])
        with settings.using(threads=3):
            got = sampling.frequencies(kind(gamma), 5, 6, 40, "iid", dtype, kept)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, want.astype(dtype))


def test_drawn_once_for_all_bandwidths(monkeypatch):
    drawn = Mock(wraps=sampling._standard)
    monkeypatch.setattr(sampling, "_standard", drawn)
    X = np.random.default_rng(0).standard_normal((300, 4))
    est = FeatureClassifier(RandomFourier(n_components=20), random_state=0)
    est.partial_fit(X[:70], X[:70, 0] > 0)
    assert drawn.call_count == 1
    est.partial_fit(X[70:], X[70:, 0] > 0)
    assert drawn.call_count == 1
    assert "draws" not in est._learner.derived  # and not kept any longer than they are needed


def test_estimates_take_one_blas_thread(monkeypatch):
    """They are made of small products."""
    seen = []
    top_eigenvalue = base.top_eigenvalue

    def looked_at(*args):
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return top_eigenvalue(*args)

    monkeypatch.setattr(base, "top_eigenvalue", looked_at)
    X = np.random.default_rng(0).standard_normal((60, 3))
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        DoublyStochasticRegressor(schedule=DoublySchedule(batch_size=16, block_size=8, passes=1), random_state=0).fit(
            X, X[:, 0]
        )
    assert set(seen) == {1}
