"""The torch engine on a GPU: rows per second beside the floor, precision, peers, and 2^20 random features.

Usage::

    python benchmarks/gpu.py                      # everything, a few minutes on one GPU; says so and ends without one
    python benchmarks/gpu.py speed parts          # some of: ceilings, speed, parts, precision, peers, doubly
    python benchmarks/gpu.py --device cpu --small # the same code on the processor, to see that it runs

Tables go to the screen and, as Markdown, to ``benchmarks/results/gpu.md``. mnist is read from ``KERNELSTREAM_DATA``;
without it the parts that need it are left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn reads it when it is imported

import numpy as np
from sklearn.decomposition import PCA

import kernelstream
from kernelstream import DoublyStochasticClassifier, FeatureClassifier, datasets
from kernelstream.engine import TorchEngine
from kernelstream.estimators import DoublyStep
from kernelstream.features import RandomFourier

RESULTS = Path(__file__).parent / "results" / "gpu.md"
RATE, BANDWIDTH = 400e12, 4.3e12  # products in tf32 per second × 2; bytes per second: what a floor is counted with
WIDTH, BLOCK = 784, 512
PARTS = ("ceilings", "speed", "parts", "precision", "peers", "doubly")


class Report:
    """Markdown tables, collected and written."""

    def __init__(self) -> None:
        self.text: list[str] = []

    def table(self, title: str, head: list[str], rows: list[list[object]]) -> None:
        lines = [f"### {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(f"{c:.4g}" if isinstance(c, float) else str(c) for c in row) + " |" for row in rows]
        print("\n".join([*lines, ""]), flush=True)
        self.text += [*lines, ""]

    def write(self, path: Path, machine: str) -> None:
        path.write_text("\n".join([f"# `python benchmarks/gpu.py`, {machine}", "", *self.text]))


class Bench:
    def __init__(self, device: str, small: bool):
        import torch

        self.torch, self.device, self.small, self.report = torch, device, small, Report()

    def wait(self) -> None:
        if self.device != "cpu":
            self.torch.cuda.synchronize()

    def seconds(self, work, repeat: int = 5) -> float:
        """Median time of a call, after one that is not counted."""
        work()
        times = []
        for _ in range(repeat):
            self.wait()
            start = time.perf_counter()
            work()
            self.wait()
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    def model(self, D: int, precision: str = "tf32", loss: str = "hinge", **rest) -> FeatureClassifier:
        features = RandomFourier(gamma=rest.pop("gamma", 1 / (2 * WIDTH)), n_components=D, random_state=0)
        engine = TorchEngine(self.device, precision, BLOCK)
        return FeatureClassifier(features, loss, "norm_ada_grad", engine=engine, random_state=0, **rest)

    def rows(self, n: int):
        rng = self.torch.Generator(self.device).manual_seed(0)
        X = self.torch.randn(n, WIDTH, device=self.device, generator=rng)
        return X, (X[:, 0] * X[:, 1] > 0).cpu().numpy().astype(int)

    # ---------------------------------------------------------------- what the machine can do
    def ceilings(self) -> None:
        torch, n = self.torch, 512 if self.small else 8192
        A = torch.randn(n, n, device=self.device)
        B = A.bfloat16()
        torch.backends.cuda.matmul.allow_tf32 = True
        big = torch.empty(1 << (20 if self.small else 30), device=self.device)
        other = torch.empty_like(big)
        rows = [
            ["tf32 product, TFLOP/s", 2 * n**3 / self.seconds(lambda: A @ A) / 1e12],
            ["bf16 product, TFLOP/s", 2 * n**3 / self.seconds(lambda: B @ B) / 1e12],
            ["copy, TB/s read and written", 8 * big.numel() / self.seconds(lambda: other.copy_(big)) / 1e12],
        ]
        self.report.table("Ceilings", ["what", "measured"], rows)

    # ---------------------------------------------------------------- rows per second
    def speed(self) -> None:
        n = 3000 if self.small else 131072
        X, y = self.rows(n)
        rows: list[list[object]] = []
        for D in (64,) if self.small else (8192, 65536):
            for precision in ("tf32", "bf16", "float32"):
                for host in (False, True):
                    given = X.cpu().numpy() if host else X
                    est = self.model(D, precision).partial_fit(given, y)
                    t = self.seconds(lambda est=est, given=given: est.partial_fit(given, y), 3)
                    rows.append([2 * D, precision, "arrays" if host else "tensors", n / t / 1e6])
        self.report.table(f"Rows learned per second, hinge, d = {WIDTH}, blocks of {BLOCK}",
                          ["features", "precision", "rows are", "million rows/s"], rows)  # fmt: skip

    def parts(self) -> None:
        """Each part of a block by itself, beside its floor: the larger of products and bytes."""
        if self.device == "cpu":
            return
        X, y = self.rows(64 * BLOCK)
        rows: list[list[object]] = []
        for D in (1024,) if self.small else (8192, 65536):
            est = self.model(D).partial_fit(X, y)
            held = est._device(est._state)
            b, m, P = held.blocks, BLOCK, 2 * D
            block, F, ones = held.rows_in[:m], held.F[:m].clone(), self.torch.ones(m, device=self.device)
            Z = 4 * m * P
            with held.ops.products():
                work = {
                    "features": (lambda b=b, block=block: b.features(block, 0), 2 * m * WIDTH * D, 4 * WIDTH * D + Z),
                    "Gram matrix": (lambda b=b: b.products(0), m * m * P, Z),
                    "scores": (lambda b=b, F=F: b.scores(0, F), 0, Z),
                    "recursion": (lambda b=b, F=F, ones=ones: b.recursion(0, F, ones, ones), 0, 4 * m * m),
                    "weights": (lambda b=b: b.absorb(0), 0, Z),
                }
                for name, (call, products, moved) in work.items():
                    floor = max(products / RATE, moved / BANDWIDTH)
                    took = self.graphed(call)
                    rows.append([P, name, 1e3 * took, 1e3 * floor, took / floor])
            whole = len(X) / self.seconds(lambda est=est: est.partial_fit(X, y), 3)
            rows.append([P, "a block in the pipeline", 1e3 * m / whole, "", ""])
        self.report.table(f"Parts of a block of {BLOCK} rows, tf32, ms; floor: 400 TFLOP/s, 4.3 TB/s",
                          ["features", "part", "measured", "floor", "ratio"], rows)  # fmt: skip

    def graphed(self, call, inside: int = 20) -> float:
        """Seconds of a call among many in a CUDA graph: without the time to launch it."""
        torch = self.torch
        call()
        self.wait()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(inside):
                call()
        return self.seconds(graph.replay) / inside

    # ---------------------------------------------------------------- what rounding costs
    def precision(self) -> None:
        """Scores and mistakes in one pass over mnist, even against odd digits, against float64."""
        data = mnist()
        if data is None:
            return
        X, y = data[0][: 500 if self.small else 20000], data[1] % 2
        y = y[: len(X)]
        rows: list[list[object]] = []
        exact = None
        for name, dtype in (
            ("float64", np.float64),
            ("float32", np.float32),
            ("tf32", np.float32),
            ("bf16", np.float32),
        ):
            est = self.model(
                256 if self.small else 2048, "float32" if name == "float64" else name, "logistic", gamma=0.02
            )
            F = est.learn(X.astype(dtype), y)
            exact = F if exact is None else exact
            gap = np.abs(F - exact)
            rows.append([name, float(np.median(gap)), float(gap.max()), 100 * float(np.mean((F >= 0) != (y > 0)))])
        self.report.table("Precision, one pass over mnist (even or odd), logistic loss",
                          ["precision", "median error of a score", "largest", "mistakes, %"], rows)  # fmt: skip

    # ---------------------------------------------------------------- other ways to learn the same features
    def peers(self) -> None:
        """Time until the held-out error of our single pass is reached, on the same features."""
        data = mnist()
        if data is None:
            return
        torch = self.torch
        X, y, Xt, yt = data if not self.small else (data[0][:2000], data[1][:2000], data[2][:500], data[3][:500])
        D = 128 if self.small else 2048
        given = torch.from_numpy(X).to(self.device)
        est = self.model(D, "tf32", "softmax", gamma=0.02)
        est.partial_fit(given[:BLOCK], y[:BLOCK], classes=np.arange(10))
        est.fit(given, y)
        start = time.perf_counter()
        est.fit(given, y)
        self.wait()
        rows: list[list[object]] = [["kernelstream, one exact pass", time.perf_counter() - start]]
        goal = 100 * float(np.mean(est.predict(Xt) != yt))
        rows[0].append(goal)
        W = torch.from_numpy(est._mapping(est._state).W).to(self.device)

        def features(A):
            P = torch.from_numpy(A).to(self.device) @ W
            return torch.cat([P.cos(), P.sin()], 1) / np.sqrt(D)

        Z, Zt, target = features(X), features(Xt), torch.from_numpy(y.astype(np.int64)).to(self.device)
        best: tuple[float, float] = (np.inf, np.inf)
        for rate in (1.0, 10.0, 100.0):
            best = min(best, self.sgd(Z, target, Zt, yt, goal, rate))
        rows.append(["mini-batch SGD in torch (512 rows), best of 3 rates", *best])
        rows.append(["scikit-learn Ridge, array API, svd", *self.ridge(Z, y, Zt, yt)])
        title = f"Time to the held-out error of one pass, mnist, {2 * D} features (those of the others made before)"
        self.report.table(title, ["learner", "seconds", "test error, %"], rows)

    def sgd(self, Z, target, Zt, yt, goal: float, rate: float) -> tuple[float, float]:
        torch = self.torch
        w = torch.zeros(Z.shape[1], 10, device=self.device, requires_grad=True)
        optimizer, loss = torch.optim.SGD([w], lr=rate), torch.nn.CrossEntropyLoss()
        self.wait()
        spent, error = 0.0, np.inf
        for _ in range(30):
            start = time.perf_counter()
            for rows in torch.randperm(len(Z), device=self.device).split(BLOCK):
                optimizer.zero_grad()
                loss(Z[rows] @ w, target[rows]).backward()
                optimizer.step()
            self.wait()
            spent += time.perf_counter() - start
            error = 100 * float(np.mean((Zt @ w).argmax(1).cpu().numpy() != yt))
            if error <= goal:
                return spent, error
        return np.inf, error

    def ridge(self, Z, y, Zt, yt) -> tuple[float, float]:
        import sklearn
        from sklearn.linear_model import Ridge

        Y = self.torch.nn.functional.one_hot(self.torch.from_numpy(y.astype(np.int64))).to(Z)
        with sklearn.config_context(array_api_dispatch=True):
            start = time.perf_counter()
            est = Ridge(alpha=1e-3, solver="svd").fit(Z, Y)
            self.wait()
            spent = time.perf_counter() - start
            return spent, 100 * float(np.mean(est.predict(Zt).argmax(1).cpu().numpy() != yt))

    # ---------------------------------------------------------------- very wide
    def doubly(self) -> None:
        """2^20 features made on the device, all choices automatic; mnist after PCA to 50 columns, softmax."""
        data = mnist()
        if data is None:
            return
        X, y, Xt, yt = data if not self.small else (data[0][:2000], data[1][:2000], data[2][:300], data[3][:300])
        pca = PCA(50, random_state=0).fit(X)
        X, Xt = (pca.transform(A).astype(np.float32) for A in (X, Xt))
        size, steps = (64, 4) if self.small else (1024, 512)
        est = DoublyStochasticClassifier(
            loss="softmax", step=DoublyStep(theta0=300.0, precondition=0.01), batch_size=size, block_size=size,
            passes=steps * size / len(X), engine=TorchEngine(self.device), random_state=0,
        )  # fmt: skip
        start = time.perf_counter()
        est.fit(X, y)
        spent = time.perf_counter() - start
        error = 100 * float(np.mean(est.predict(Xt) != yt))
        with tempfile.TemporaryDirectory() as folder:
            kernelstream.save(est, Path(folder) / "model.ks")
            there = kernelstream.load(Path(folder) / "model.ks").set_params(engine="auto")
            gap = np.abs(there.decision_function(Xt[:200]) - est.decision_function(Xt[:200])).max()
        head = [
            "features",
            "iterations",
            "seconds of fit",
            "test error, %",
            "scores of the file with engine auto, off by",
        ]
        rows = [[2 * size * steps, int(est.state_["t"]), spent, error, float(gap)]]
        self.report.table("Doubly stochastic gradients, softmax, mnist after PCA to 50 columns", head, rows)


def mnist():
    """Rows in [0, 1] and labels of both parts, or None."""
    try:
        parts = [datasets.load("mnist", split=split, return_X_y=True) for split in ("train", "test")]
    except (ValueError, FileNotFoundError) as error:
        print(f"without mnist: {error}")
        return None
    top = max(float(parts[0][0].max()), 1.0)
    (X, y), (Xt, yt) = ((np.asarray(A, np.float32) / top, np.asarray(b).astype(int)) for A, b in parts)
    return X, y, Xt, yt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: nothing to measure (pip install kernelstream[gpu])")
        return
    if args.device.startswith("cuda") and not torch.cuda.is_available():
        print("no GPU here: nothing to measure (--device cpu --small runs the same code on the processor)")
        return
    machine = torch.cuda.get_device_name() if args.device != "cpu" else "the processor"
    bench = Bench(args.device, args.small)
    for name in args.parts or PARTS:
        getattr(bench, name)()
    if not args.small:
        bench.report.write(args.out, f"{machine}, torch {torch.__version__}")


if __name__ == "__main__":
    main()
