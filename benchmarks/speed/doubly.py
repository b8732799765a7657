"""Doubly stochastic gradients: which fraction of the machine's rate of matrix products training and prediction reach.

    python benchmarks/speed/doubly.py [--batch 1024] [--block 1024] [--d 50] [--blocks 24] [--repeat 5]

One thread, float32, nothing cached: every block of frequencies is made again whenever it is used. The work that counts
is the product of a batch with a block's frequencies, ``2 batch block d`` operations for each pair of batch and block
(and, with C outputs, the ``4 batch block C`` of the features times their weights); making the random numbers, cosines
and all the rest are overhead. Its rate is divided by that of the bare products of the same shapes, measured between
the runs, by the clock of an idle machine. Training is a stream (``partial_fit``): iteration t scores its batch on t - 1
blocks and makes a new one.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402

from kernelstream import DoublyStochasticClassifier, settings  # noqa: E402
from kernelstream.core import philox  # noqa: E402
from kernelstream.engine import get  # noqa: E402
from kernelstream.estimators import DoublyStep  # noqa: E402


def seconds(work, *args):
    start = time.perf_counter()
    work(*args)
    return time.perf_counter() - start


settings.change(cache_bytes=0)


def model(args, C):
    """A learner whose every choice is given, so that only iterations are timed."""
    loss = "hinge" if C == 1 else "softmax"
    sizes = {"batch_size": args.batch, "block_size": args.block}
    step = DoublyStep(eta=1.0, precondition=0.0)  # solving with the covariance is work of its own
    return DoublyStochasticClassifier("gaussian", 0.1, loss, step=step, random_state=0, **sizes)


def measure(args, C, rng):
    """Best seconds of (training, prediction, the products of each), interleaved."""
    b, D, d, T = args.batch, args.block, args.d, args.blocks
    X = rng.standard_normal((b * T, d)).astype(np.float32)
    y = rng.integers(0, max(C, 2), b * T)
    W, A = rng.standard_normal((d, D)).astype(np.float32), rng.standard_normal((2 * D, C)).astype(np.float32)
    Z = rng.standard_normal((b, 2 * D)).astype(np.float32)
    P, F = np.empty((b, D), np.float32), np.empty((b, C), np.float32)
    best = dict.fromkeys(("train", "predict", "product"), np.inf)

    def products():
        for _ in range(T):
            np.dot(X[:b], W, out=P)
            if C > 1:
                np.dot(Z, A, out=F)

    for _ in range(args.repeat):
        best["product"] = min(best["product"], seconds(products) / T)
        est = model(args, C)
        est.partial_fit(X[:b], y[:b], classes=np.arange(max(C, 2)))
        best["train"] = min(best["train"], seconds(est.partial_fit, X[b:], y[b:]))
        best["predict"] = min(best["predict"], seconds(est.decision_function, X[: 4 * b]))
    pairs = {"train": sum(range(1, T)) + T - 1, "predict": 4 * T}
    return {name: best["product"] * pairs[name] / best[name] for name in pairs}, best["product"]


def generation(args):
    """Nanoseconds for a normal number: compiled, and NumPy's own generator."""
    rows = np.arange(args.d)
    rng = np.random.Generator(np.random.Philox(0))
    normals = get("native").normals
    ours = min(seconds(lambda: [normals(0, i, rows, args.block) for i in range(20)]) for _ in range(args.repeat))
    numpys = min(
        seconds(lambda: [rng.standard_normal((args.d, args.block), np.float32) for _ in range(20)])
        for _ in range(args.repeat)
    )
    assert (normals(5, 1, rows, args.block) == philox.normals(5, 1, rows, args.block)).all()
    return [1e9 * t / (20 * args.d * args.block) for t in (ours, numpys)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--block", type=int, default=1024)
    parser.add_argument("--d", type=int, default=50)
    parser.add_argument("--blocks", type=int, default=24)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    settings.change(threads=1)
    rng = np.random.default_rng(0)
    ours, numpys = generation(args)
    print(f"normal numbers: {ours:.2f} ns each, NumPy's Philox {numpys:.2f}\n")
    print("| outputs | product, ms | Gflop/s | training, fraction | prediction, fraction |\n|---:|---:|---:|---:|---:|")
    for C in (1, 10):
        fraction, product = measure(args, C, rng)
        work = args.batch * args.block * (2 * args.d + (4 * C if C > 1 else 0))
        print(
            f"| {C} | {1e3 * product:.2f} | {work / product / 1e9:.1f} | {fraction['train']:.2f} "
            f"| {fraction['predict']:.2f} |"
        )


if __name__ == "__main__":
    main()
