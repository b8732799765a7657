"""The rules of the thesis's programs, beside a loop over lists that follows them word by word."""

import numpy as np
import pytest

from kernelstream import datasets
from kernelstream_papers._author import AuthorRules

WIDTHS = [2.0**p for p in range(-6, 7)]


def kernel(i, a, b):
    return float(np.exp(-((a - b) @ (a - b)) / (2 * WIDTHS[i] ** 2))) if i < 13 else float(a @ b) ** (i - 12)


def windows_rand(seed):
    """The first number after srand(seed), of 15 bits: those above the lowest 16 of a state of 32."""
    return (seed * 214013 + 2531011) % 2**32 // 2**16 % 2**15


def by_hand(X, y, rule, budget, drawn, rng, C=0.1, tick=None):
    """Votes of every row; the draws are those of ``rng`` in the same turns."""
    lists, theta, votes = [[] for _ in range(16)], [1 / 16] * 16, []  # of [row, coefficient], the oldest first
    Q, M, start = [0.0] * 16, [0] * 16, rng.random() * 2**31
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        f = [sum(a * kernel(i, X[s], x) for s, a in lists[i]) for i in range(16)]
        vote = sum(w if v >= 0 else -w for w, v in zip(theta, f, strict=True))
        votes.append(vote if vote != 0 else -label)
        u = rng.random(16) if drawn else np.zeros(16)
        chosen = [u[i] < 0.999 * theta[i] / max(theta) + 0.001 for i in range(16)]
        for i in range(16):
            wrong, loss, full = label * f[i] <= 0, 1 - label * f[i], False
            M[i] += wrong
            if not chosen[i]:
                continue
            size = sum(map(len, lists)) if drawn else len(lists[i])
            full = budget is not None and size >= (budget if drawn else budget // 16)
            if rule == "bpas" and loss > 0 and full and lists[i]:
                tau, prices = min(C, loss) * label, []
                for s, a in lists[i]:
                    k = kernel(i, X[s], x)
                    b = a * k + tau
                    left = max(0.0, 1 - label * (f[i] - a * k + b))
                    prices.append((0.5 * (a * a + b * b - 2 * a * b * k) + C * left, b))
                best = min(range(len(prices)), key=lambda j: prices[j][0])
                if prices[best][0] >= 1e6:
                    best, prices = min(1, len(prices) - 1), [(0.0, 1.0)] * len(prices)
                del lists[i][best]
                lists[i].append([t, prices[best][1]])
            elif rule in ("bpas", "pa") and loss > 0 and not full:
                lists[i].append([t, min(C, loss) * label])
            elif rule == "rbp" and wrong:
                lists[i].append([t, label])
                if full:
                    del lists[i][windows_rand(int(start + t / tick)) % max(1, len(lists[i]) - 1)]
            elif rule == "forgetron" and wrong:
                lists[i].append([t, label])
                if full:
                    first, alpha = lists[i][0]
                    mu = y[first] * sum(a * kernel(i, X[s], X[first]) for s, a in lists[i])
                    delta = alpha / y[first]
                    a, b, c = delta**2 - 2 * delta * mu, 2 * delta, Q[i] - 15 / 32 * M[i]
                    roots = np.roots([a, b, c]).real
                    phi = 1.0 if a + b + c <= 0 else max(roots)
                    Q[i] += (delta * phi) ** 2 + 2 * delta * phi * (1 - phi * mu)
                    lists[i] = [[s, phi * alpha] for s, alpha in lists[i]][1:]
            counted = label * f[i] < 0 if rule == "pa" and drawn else wrong
            theta[i] *= 0.99 if counted else 1.0
        theta = [w / sum(theta) for w in theta]
    return np.array(votes), sum(map(len, lists))


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("rule, budget", [("rbp", 48), ("forgetron", 48), ("bpas", 48), ("pa", None)])
def test_the_rules_are_those_of_the_loop(rule, budget, drawn):
    X, y = datasets.load("breast_cancer", scale="minmax-sym", return_X_y=True)
    rows = np.random.default_rng(3).permutation(len(y))[:80]
    X, y = np.asarray(X[rows][:, :6], np.float64), np.where(y[rows] > 0, 1.0, -1.0)
    y[::7] *= -1  # mistakes to the end
    learner = AuthorRules(rule, budget, drawn, clock=15.0, random_state=5)
    votes = np.concatenate([learner.learn(X[:50], y[:50]), learner.learn(X[50:], y[50:])])
    expected, size = by_hand(X, y, rule, budget, drawn, np.random.default_rng(5), tick=15.0)
    np.testing.assert_allclose(votes, expected, atol=1e-9)
    assert learner.size_ == size and (budget is None or size == budget)
