"""Speed of the compiled vector functions next to numpy and scipy, in one run: ``python benchmarks/speed/vecmath.py``.

Each pair is timed in turns and the best of several rounds counts, so that a busy machine disturbs both alike.
"""

import time

import numpy as np
import scipy.sparse as sp

from kernelstream import _core


def best(*functions, rounds=15, calls=1):
    """Seconds per call of each function, best of interleaved rounds."""
    seconds = [np.inf] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            for _ in range(calls):
                function()
            seconds[i] = min(seconds[i], (time.perf_counter() - start) / calls)
    return seconds


def report(name, dtype, pair, per, unit):
    ours, theirs = (s / per for s in pair)
    print(f"{name:<34} {dtype:<8} {ours:9.3f} {theirs:9.3f} {unit:<11} {theirs / ours:5.1f}x")


def main(m=256, D=1000, d=123, filled=14):
    rng = np.random.default_rng(0)
    print(f"{'':<34} {'':<8} {'ours':>9} {'numpy':>9}")
    for dtype in (np.float32, np.float64):
        name = dtype.__name__
        P = rng.normal(scale=3, size=(m, D)).astype(dtype)
        Z = np.empty((m, 2 * D), dtype)

        def trig(P=P, Z=Z):
            np.cos(P, out=Z[:, :D])
            np.sin(P, out=Z[:, D:])
            np.multiply(Z, Z.dtype.type(1 / np.sqrt(D)), out=Z)

        pair = best(lambda P=P, Z=Z: _core.trig(P, Z, 1 / np.sqrt(D)), trig)
        report("sin and cos of a projection", name, pair, P.size * 1e-9, "ns/element")

        E = np.empty_like(P)
        squares = P * P

        def exponential(E=E, squares=squares):
            np.multiply(squares, squares.dtype.type(-0.5), out=E)
            np.exp(E, out=E)

        def exp_scaled(E=E, squares=squares):
            E[:] = squares
            _core.exp_scaled(E, 0.5)

        report("Gaussian kernel of squared distance", name, best(exp_scaled, exponential), P.size * 1e-9, "ns/element")

        most = np.finfo(dtype).maxexp
        pair = best(lambda P=P, most=most: _core.all_below(P, most), lambda P=P: np.isfinite(P).all())
        report("finite check, block", name, pair, P.size * 1e-9, "ns/element")
        row = np.zeros((1, 50), dtype)
        pair = best(
            lambda row=row, most=most: _core.all_below(row, most), lambda row=row: np.isfinite(row).all(), calls=2000
        )
        report("finite check, one row of 50", name, pair, 1e-6, "us/call")

        columns = np.sort(rng.permuted(np.tile(np.arange(d), (m, 1)), axis=1)[:, :filled], axis=1)
        A = sp.csr_array((np.ones(m * filled, dtype), columns.ravel(), np.arange(m + 1) * filled), shape=(m, d))
        indices, indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
        for width in (D, 1024):
            W = rng.normal(size=(d, width)).astype(dtype)
            out = np.empty((m, width), dtype)
            pair = best(
                lambda A=A, W=W, o=out, i=indices, p=indptr: _core.csr_matmul(A.data, i, p, W, o),
                lambda A=A, W=W: A @ W,
            )
            report(f"CSR product, {filled} of {d}, D = {width}", name, pair, m * 1e-6, "us/row")


if __name__ == "__main__":
    main()
