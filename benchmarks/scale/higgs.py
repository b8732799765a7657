r"""Ten million rows like HIGGS, with a known best score: Falkon, FOGD and the stream learner side by side.

    python benchmarks/scale/higgs.py [--rows 10000000] [--centers 100000] [--seconds 120]   # with a GPU
    python benchmarks/scale/higgs.py --rows 20000 --held-out 5000 --centers 500 --features 256 --engine auto

Rows have the 28 columns of HIGGS (Baldi, Sadowski, Whiteson: Searching for exotic particles in high-energy physics with
deep learning, 2014): momenta of a lepton, of what is missing and of four jets with their tags, 21 numbers, and seven
invariant masses that follow from them,

.. math:: m^2 = \Bigl(\sum_i p_{T,i} \cosh \eta_i\Bigr)^2 - \Bigl|\sum_i \vec p_i\Bigr|^2 .

Momenta are independent. An event belongs to the first process with probability :math:`\sigma(g)`, where g has a peak
(Lorentz's) at the mass of each particle that the process makes, and prefers tagged jets. The two processes then have
the likelihood ratio exp(g) times a constant: no score is better than g, whose AUC and error stand in the first line.
Each learner sees the rows once in their order, or all at once (Falkon). The stream learner is left out where the
library has no compiled core.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from kernelstream import FalkonClassifier, FeatureClassifier, KernelClassifier
from kernelstream.engine import ENGINES, has_native
from kernelstream.features import RandomFourier

RESULTS = Path(__file__).parents[1] / "results"
BLOCK = 1 << 18
CALL = 100_000  # rows of a call of learn
JETS = 4
# particles of each mass: 0 the lepton, 1 what is missing, 2 to 5 the jets; where the peak is, and how high
MASSES = {
    "m_jj": ((4, 5), 80.0, 1.6),
    "m_jjj": ((3, 4, 5), 170.0, 1.2),
    "m_lv": ((0, 1), 80.0, 1.6),
    "m_jlv": ((0, 1, 2), 170.0, 1.2),
    "m_bb": ((2, 3), 125.0, 2.0),
    "m_wbb": ((0, 1, 2, 3), 320.0, 1.2),
    "m_wwbb": ((0, 1, 2, 3, 4, 5), 420.0, 1.2),
}
WIDTH = 0.2  # of a peak, in log m
TAGS, TAGGED, BIAS = 0.35, 0.8, -3.7  # share of tagged jets, what a tag adds to g, and a constant


def mass(pt: np.ndarray, eta: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Invariant mass of massless particles, (n, k) each -> (n,)."""
    energy, along = (pt * np.cosh(eta)).sum(axis=1), (pt * np.sinh(eta)).sum(axis=1)
    across = (pt * np.cos(phi)).sum(axis=1) ** 2 + (pt * np.sin(phi)).sum(axis=1) ** 2
    return np.sqrt(np.maximum(energy**2 - along**2 - across, 0.0))


def events(seed: int, number: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Block ``number`` of n events: rows (n, 28) float32, labels and the best score g."""
    rng = np.random.default_rng([seed, number])
    particles = 2 + JETS
    pt = 20.0 + rng.gamma(2.0, [18.0, 20.0, 40.0, 32.0, 25.0, 20.0], (n, particles))
    eta = np.clip(rng.normal(0.0, 1.0, (n, particles)), -2.5, 2.5)
    eta[:, 1] = 0.0  # what is missing is known across the beam only
    phi = rng.uniform(-np.pi, np.pi, (n, particles))
    tag = (rng.random((n, JETS)) < TAGS).astype(float)
    g, masses = BIAS + TAGGED * tag[:, :2].sum(axis=1) - 0.5 * TAGGED * tag[:, 2:].sum(axis=1), []
    for which, place, height in MASSES.values():
        masses.append(mass(*(a[:, list(which)] for a in (pt, eta, phi))))
        g += height / (1.0 + (np.log(np.maximum(masses[-1], 1.0) / place) / WIDTH) ** 2)
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-g))
    jets = [column for k in range(JETS) for column in (pt[:, 2 + k], eta[:, 2 + k], phi[:, 2 + k], tag[:, k])]
    rows = [pt[:, 0], eta[:, 0], phi[:, 0], pt[:, 1], phi[:, 1], *jets, *masses]
    return np.column_stack(rows).astype(np.float32), y.astype(np.int64), g


def data(rows: int, seed: int) -> tuple[np.ndarray, ...]:
    """Rows, labels and best scores, made by all cores."""
    X, y, g = np.empty((rows, 28), np.float32), np.empty(rows, np.int64), np.empty(rows)

    def fill(start: int) -> None:
        part = slice(start, min(rows, start + BLOCK))
        X[part], y[part], g[part] = events(seed, start // BLOCK, part.stop - start)

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(0, rows, BLOCK)))
    return X, y, g


def stream(model, X: np.ndarray, y: np.ndarray, seconds: float) -> int:
    """Learn rows in their order until they or the seconds end; how many were learned."""
    start = time.perf_counter()
    for first in range(0, len(y), CALL):
        if time.perf_counter() - start > seconds:
            return first
        model.partial_fit(X[first : first + CALL], y[first : first + CALL], classes=[0, 1])
    return len(y)


def learners(centers: int, features: int, engine: str, seconds: float) -> dict:
    """Names, models and how they learn: each returns the number of rows."""

    def at_once(model, X, y):
        model.fit(X, y)
        return len(y)

    def one_pass(model, X, y):
        return stream(model, X, y, seconds)

    fogd = FeatureClassifier(
        RandomFourier(n_components=features // 2), loss="logistic", standardize=True, engine=engine, random_state=0
    )
    return {
        "fogd": (f"FOGD, {features:,} Fourier features", fogd, one_pass),
        "falkon": (
            f"Falkon, {centers:,} centres",
            FalkonClassifier(n_centers=centers, tol=1e-2, engine=engine, random_state=0),
            at_once,
        ),
        "stream": ("KernelClassifier, stream", KernelClassifier(random_state=0), one_pass),
        "small": ('KernelClassifier, stream, "small"', KernelClassifier(size="small", random_state=0), one_pass),
    }


def line(name: str, rows: int, seconds: float, y: np.ndarray, score: np.ndarray) -> str:
    auc, wrong = roc_auc_score(y, score), np.mean((score > 0) != y)
    text = f"| {name} | {rows:,} | {auc:.4f} | {100 * wrong:.2f} | {seconds:.1f} |"
    print(text, flush=True)
    return text


def run(rows: int, held_out: int, centers: int, features: int, engine: str, seconds: float, which: list[str]) -> str:
    """The table."""
    start = time.perf_counter()
    X, y, _ = data(rows, 0)
    A, b, best = data(held_out, 1)
    print(f"{rows:,} rows made in {time.perf_counter() - start:.1f} s, {100 * y.mean():.1f} % of the first process")
    text = [
        f"{rows:,} rows of 28 columns, float32; {held_out:,} held out.\n",
        "| learner | rows learned | AUC | error % | seconds |",
        "| --- | ---: | ---: | ---: | ---: |",
        line("the best score there is", 0, 0.0, b, best),
    ]
    for key, (name, model, learn) in learners(centers, features, engine, seconds).items():
        if key in which and (has_native() or not isinstance(model, KernelClassifier)):
            start = time.perf_counter()
            learned = learn(model, X, y)
            spent = time.perf_counter() - start
            text.append(line(name, learned, spent, b, model.decision_function(A)))
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--held-out", type=int, default=500_000)
    parser.add_argument("--centers", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=8192)
    parser.add_argument("--engine", default="torch", choices=ENGINES)
    parser.add_argument("--seconds", type=float, default=120.0, help="a learner of streams ends its pass after so many")
    parser.add_argument("--learners", default="fogd,falkon,stream,small")
    parser.add_argument("--out", type=Path, default=RESULTS / "higgs.md")
    given = parser.parse_args()
    names = given.learners.split(",")
    found = run(given.rows, given.held_out, given.centers, given.features, given.engine, given.seconds, names)
    given.out.write_text("Written by `python benchmarks/scale/higgs.py`.\n\n" + found)
