"""MetaGrad against its paper's two listings, by dense algebra and a general minimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

from kernelstream_papers.rivals import MetaGradClassifier
from kernelstream_papers.rivals.metagrad import nearest

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
y = np.where(X @ [1.0, -2.0, 0.5] + 0.5 * rng.normal(size=120) > 0, 1, -1)


def projected(v, inverse, radius):
    """The nearest point of the ball in the norm of a matrix, by a general method."""
    if np.linalg.norm(v) <= radius:
        return v
    ball = {"type": "ineq", "fun": lambda u: radius**2 - u @ u, "jac": lambda u: -2 * u}
    found = minimize(
        lambda u: (u - v) @ inverse @ (u - v), v * radius / np.linalg.norm(v), method="SLSQP",
        jac=lambda u: 2 * inverse @ (u - v), constraints=[ball], options={"ftol": 1e-16, "maxiter": 500},
    )  # fmt: skip
    return found.x


def listings(X, y, radius, G, T):
    """Algorithms 1 and 2 of van Erven and Koolen, in their letters, with the grid of their equation 8."""
    d, D = X.shape[1], 2 * radius
    last = int(np.ceil(0.5 * np.log2(T)))
    etas = [2.0**-i / (5 * D * G) for i in range(last + 1)]
    pi = np.array([(1 + 1 / (1 + last)) / ((i + 1) * (i + 2)) for i in range(last + 1)])
    slaves, M, forecasts = [np.zeros(d) for _ in etas], np.zeros((d, d)), []
    for x, label in zip(X, y):
        w = sum(p * e * u for p, e, u in zip(pi, etas, slaves)) / sum(p * e for p, e in zip(pi, etas))
        forecasts.append(w @ x)
        g = -label * x if label * (w @ x) < 1 else np.zeros(d)
        Mt = np.diag(g**2)
        M = M + Mt
        surrogate = [-e * (w - u) @ g + e**2 * (u - w) @ Mt @ (u - w) for e, u in zip(etas, slaves)]
        pi = pi * np.exp(-np.array(surrogate))
        pi = pi / pi.sum()
        for k, e in enumerate(etas):
            inverse = np.eye(d) / D**2 + 2 * e**2 * M
            moved = slaves[k] - np.linalg.inv(inverse) @ (e * g + 2 * e**2 * Mt @ (slaves[k] - w))
            slaves[k] = projected(moved, inverse, radius)
    return np.array(forecasts)


@pytest.mark.parametrize("radius", [100.0, 0.05])
def test_listings(radius):
    model = MetaGradClassifier("raw", radius, 3.0, 4096, standardize=False)
    scores = np.concatenate([model.learn(X[i : i + 37], y[i : i + 37], classes=[-1, 1]) for i in range(0, 120, 37)])
    np.testing.assert_allclose(scores, listings(X, y, radius, 3.0, 4096), atol=1e-6)
    norms = np.linalg.norm(model.state_["slaves"][0], axis=1)
    assert norms.max() <= radius * (1 + 1e-12)
    assert (norms.max() > 0.9 * radius) == (radius == 0.05)  # the projection took part, or it did not


def test_nearest_point():
    v, s = np.array([3.0, -1.0, 0.2]), np.array([2.0, 0.1, 5.0])
    np.testing.assert_allclose(nearest(v, s, 1.3), projected(v, np.diag(1 / s), 1.3), atol=1e-6)
    np.testing.assert_array_equal(nearest(v, s, 4.0), v)
