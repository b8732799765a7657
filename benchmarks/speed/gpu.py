"""The torch engine on a GPU: rows per second, precision, peers, and 2^20 random features.

Usage::

    python benchmarks/speed/gpu.py                      # everything, a few minutes on one GPU; ends without one
    python benchmarks/speed/gpu.py speed peers          # some of the parts; the tables of the others stay
    python benchmarks/speed/gpu.py adagrad              # the default update, with checks: PASS or FAIL
    python benchmarks/speed/gpu.py --device cpu --small # the same code on the processor, to see that it runs
    python benchmarks/speed/gpu.py --write              # only write the tables again from the numbers kept

Numbers go to ``benchmarks/results/gpu.json`` and from there, as tables, into the section between the marks in
``benchmarks/RESULTS.md``. mnist is read from ``KERNELSTREAM_DATA``; without it the parts that need it are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn reads it when it is imported

import gpu_adagrad
import numpy as np
from sklearn.decomposition import PCA

import kernelstream
from kernelstream import (
    DoublyStochasticClassifier,
    FeatureClassifier,
    RRFClassifier,
    datasets,
)
from kernelstream.engine import TorchEngine
from kernelstream.estimators import DoublySchedule, DoublyStep, RRFStep
from kernelstream.features import RandomFourier

RESULTS = Path(__file__).parents[1] / "RESULTS.md"
NUMBERS = Path(__file__).parents[1] / "results" / "gpu.json"
MARKS = "<!-- benchmarks/speed/gpu.py -->", "<!-- benchmarks/speed/gpu.py ends -->"
WIDTH, BLOCK = 784, 512
PARTS = ("ceilings", "speed", "adagrad", "agreement", "precision", "peers", "doubly", "learned")


class Report:
    """Tables of the parts, collected, kept as JSON and written as Markdown."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tables: dict[str, dict] = json.loads(path.read_text()) if path.exists() else {}
        self.machine = ""

    def table(self, part: str, title: str, head: list[str], rows: list[list[object]]) -> None:
        self.tables[part] = {"machine": self.machine, "title": title, "head": head, "rows": rows}
        print("\n".join(markdown(self.tables[part])), flush=True)
        self.path.write_text(json.dumps(self.tables, indent=1, ensure_ascii=False) + "\n")

    def write(self, path: Path) -> None:
        """Into the section of a file between the marks."""
        text = path.read_text()
        start, end = (text.index(mark) for mark in MARKS)
        lines: list[str] = []
        machine = None
        for part in PARTS:
            if part in self.tables:
                table = self.tables[part]
                if table["machine"] != machine:
                    machine = table["machine"]
                    lines += [f"{machine}:", ""]
                lines += markdown(table)
        path.write_text(text[: start + len(MARKS[0])] + "\n" + "\n".join(lines) + text[end:])


def markdown(table: dict) -> list[str]:
    def cell(c: object) -> str:
        return "" if c is None else f"{c:.3g}" if isinstance(c, float) else str(c)

    columns = list(zip(*table["rows"]))
    align = ["---" if any(isinstance(c, str) for c in column) else "---:" for column in columns]
    lines = [f"### {table['title']}", "", "| " + " | ".join(table["head"]) + " |", "|" + "|".join(align) + "|"]
    return [*lines, *("| " + " | ".join(map(cell, row)) + " |" for row in table["rows"]), ""]


class Bench:
    def __init__(self, device: str, small: bool, report: Report):
        import torch

        self.torch, self.device, self.small, self.report = torch, device, small, report

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
        engine = TorchEngine(self.device, precision, rest.pop("block", BLOCK))
        return FeatureClassifier(features, loss, "norm_adagrad", engine=engine, random_state=0, **rest)

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
        self.report.table("ceilings", "Ceilings", ["what", "measured"], rows)

    # ---------------------------------------------------------------- rows per second
    def speed(self) -> None:
        n = 3000 if self.small else 131072
        X, y = self.rows(n)
        arrays = X.cpu().numpy()
        digits = np.random.default_rng(0).integers(0, 10, n)
        rows: list[list[object]] = []

        def measure(D: int, given, targets, form: str, **rest) -> None:
            est = self.model(D, **rest).partial_fit(given, targets)
            t = self.seconds(lambda: est.partial_fit(given, targets), 3)
            block = rest.get("block", BLOCK)
            rows.append([2 * D, rest["precision"], block, rest.get("loss", "hinge"), form, n / t / 1e6])

        for D in (64,) if self.small else (8192, 65536):
            for precision in ("tf32", "float32"):
                measure(D, X, y, "tensors", precision=precision)
            for block in (256, 1024):
                measure(D, X, y, "tensors", precision="tf32", block=block)
            measure(D, arrays, y, "arrays", precision="tf32")
            measure(D, X, digits, "tensors", precision="tf32", loss="softmax")
        head = ["features", "precision", "rows of a block", "loss", "rows are", "million rows/s"]
        self.report.table("speed", f"Rows learned per second, d = {WIDTH}, ten classes with softmax", head, rows)

    def adagrad(self) -> None:
        """The default update, whose rows are walked one by one: checks against the processor, and speed."""
        gpu_adagrad.run(self.device, self.small, self.report)

    # ---------------------------------------------------------------- what rounding costs
    def agreement(self) -> None:
        """Scores of one pass against the row-by-row loop in float64."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((500 if self.small else 3000, 20))
        target = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1]
        tasks = {"hinge": target > 0, "logistic": target > 0, "softmax": np.digitize(target, [-0.4, 0.3])}
        rows: list[list[object]] = []
        exact = {}
        for loss, y in tasks.items():
            features = RandomFourier(gamma=0.05, n_components=100, random_state=0)
            est = FeatureClassifier(features, loss, "norm_adagrad", engine="python", random_state=0)
            exact[loss] = est.learn(X, y.astype(int))
        for name in ("float64", "float32", "tf32"):
            row: list[object] = [name]
            for loss, y in tasks.items():
                features = RandomFourier(gamma=0.05, n_components=100, random_state=0)
                engine = TorchEngine(self.device, "float32" if name == "float64" else name, BLOCK)
                est = FeatureClassifier(features, loss, "norm_adagrad", engine=engine, random_state=0)
                F = est.learn(X if name == "float64" else X.astype(np.float32), y.astype(int))
                known = np.isfinite(exact[loss])  # a label that has not appeared has a score of -inf
                row.append(float(np.abs(F[known] - exact[loss][known]).max()))
            rows.append(row)
        title = (
            f"Largest difference of a score from the row-by-row loop in float64, {len(X)} rows, d = 20, 200 features"
        )
        self.report.table("agreement", title, ["precision", *tasks], rows)

    def precision(self) -> None:
        """Scores and mistakes in one pass over mnist, even against odd digits, against float64."""
        data = mnist()
        if data is None:
            return
        X, y = data[0][: 500 if self.small else 20000], data[1] % 2
        y = y[: len(X)]
        D = 256 if self.small else 2048
        rows: list[list[object]] = []
        exact = None
        for name in ("float64", "float32", "tf32"):
            est = self.model(D, "float32" if name == "float64" else name, "logistic", gamma=0.02)
            F = est.learn(X.astype(np.float64 if name == "float64" else np.float32), y)
            weights = est.state_["w"][0].astype(np.float64)
            if exact is None:
                exact, reference = F, weights
            gap, off = np.abs(F - exact), np.linalg.norm(weights - reference) / np.linalg.norm(reference)
            mistakes = 100 * float(np.mean((F >= 0) != (y > 0)))
            rows.append([name, float(np.median(gap)), float(gap.max()), float(off), mistakes])
        head = ["precision", "median error of a score", "largest", "relative error of the weights", "mistakes, %"]
        title = f"Precision: one pass over {len(X)} rows of mnist (even or odd), logistic loss, {2 * D} features"
        self.report.table("precision", title, head, rows)

    # ---------------------------------------------------------------- other ways to learn the same features
    def peers(self) -> None:
        """Time until the held-out error of our single pass is reached, on the same features."""
        data = mnist()
        if data is None:
            return
        rows: list[list[object]] = []
        title = "Time to the held-out error of one exact pass, mnist, softmax"
        head = ["features", "learner", "seconds", "of them for features", "passes", "test error, %"]
        for D, ridge in ((128, True),) if self.small else ((8192, False), (2048, True)):
            for row in self.peers_of(D, ridge, *(A[:2000] if self.small else A for A in data)):
                rows.append(row)
                self.report.table("peers", title, head, rows)

    def peers_of(self, D: int, ridge: bool, X, y, Xt, yt) -> Iterator[list[object]]:
        torch = self.torch
        given = torch.from_numpy(X).to(self.device)
        times = []
        for _ in range(4):
            est = self.model(D, "tf32", "softmax", gamma=0.02).partial_fit(given[:1], y[:1], classes=np.unique(y))
            est._ops.device_map(est._learner.mapping(est._state))  # drawn, and there: as the others have them
            self.wait()
            start = time.perf_counter()
            est.partial_fit(given[1:], y[1:])
            self.wait()
            times.append(time.perf_counter() - start)
        spent = statistics.median(times[1:])  # the first compiles
        goal = 100 * float(np.mean(est.predict(Xt) != yt))
        yield [2 * D, "kernelstream, one pass", spent, None, 1, goal]
        W = torch.from_numpy(est._learner.mapping(est._state).W).to(self.device)

        def features(A):
            P = torch.from_numpy(A).to(self.device) @ W
            return torch.cat([P.cos(), P.sin()], 1) / np.sqrt(D)

        made = self.seconds(lambda: features(X), 3)
        Z, Zt, target = features(X), features(Xt), torch.from_numpy(y.astype(np.int64)).to(self.device)
        self.sgd(Z[: 4 * BLOCK], target[: 4 * BLOCK], Zt, yt, goal, 1.0, 1)
        found = [(*self.sgd(Z, target, Zt, yt, goal, rate, 30), rate) for rate in (1.0, 10.0, 30.0, 100.0, 300.0)]
        for spent, epochs, error, rate in sorted(found)[:1]:
            reached = spent + made if error <= goal else None
            name = f"mini-batch SGD in torch, {BLOCK} rows, best of 5 rates ({rate:g})"
            yield [2 * D, name, reached, made, epochs, error]
        if ridge:
            spent, error = self.ridge(Z, y, Zt, yt)
            yield [2 * D, "scikit-learn Ridge, array API, solver svd", spent + made, made, None, error]

    def sgd(self, Z, target, Zt, yt, goal: float, rate: float, epochs: int) -> tuple[float, int, float]:
        """Seconds, passes and error when the goal is reached, or of all passes; infinite seconds where it is not."""
        torch = self.torch
        w = torch.zeros(Z.shape[1], 10, device=self.device, requires_grad=True)
        optimizer, loss = torch.optim.SGD([w], lr=rate), torch.nn.CrossEntropyLoss()
        self.wait()
        spent, error = 0.0, np.inf
        for epoch in range(1, epochs + 1):
            start = time.perf_counter()
            for rows in torch.randperm(len(Z), device=self.device).split(BLOCK):
                optimizer.zero_grad()
                loss(Z[rows] @ w, target[rows]).backward()
                optimizer.step()
            self.wait()
            spent += time.perf_counter() - start
            error = 100 * float(np.mean((Zt @ w).argmax(1).cpu().numpy() != yt))
            if error <= goal:
                return spent, epoch, error
        return np.inf, epochs, error

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
            loss="softmax",
            step=DoublyStep(theta0=300.0, precondition=0.01),
            schedule=DoublySchedule(size, size, passes=steps * size / len(X)),
            engine=TorchEngine(self.device),
            random_state=0,
        )
        start = time.perf_counter()
        est.fit(X, y)
        spent = time.perf_counter() - start
        start = time.perf_counter()
        error = 100 * float(np.mean(est.predict(Xt) != yt))
        predicting = time.perf_counter() - start
        few = slice(0, 1000)
        with tempfile.TemporaryDirectory() as folder:
            kernelstream.save(est, Path(folder) / "model.ks")
            there = kernelstream.load(Path(folder) / "model.ks").set_params(engine="auto")
            gap = np.abs(there.decision_function(Xt[few]) - est.decision_function(Xt[few])).max()
            same = 100 * float(np.mean(there.predict(Xt[few]) == est.predict(Xt[few])))
        head = ["features", "iterations", "seconds of fit", "seconds of 10,000 predictions", "test error, %",
                "file on the processor: scores off by", "labels the same, % of 1000"]  # fmt: skip
        rows = [[2 * size * steps, int(est.state_["t"]), spent, predicting, error, float(gap), same]]
        title = "Doubly stochastic gradients, softmax, mnist after PCA to 50 columns, frequencies made on the device"
        self.report.table("doubly", title, head, rows)

    # ---------------------------------------------------------------- learned kernels
    def learned(self) -> None:
        """Rows per second of a learned kernel, beside the native engine on one thread; mistakes on the first rows."""
        n, d, D = (1500, 16, 64) if self.small else (40000, 784, 4096)
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d)).astype(np.float32)
        y = (X[:, :8].sum(axis=1) + 0.5 * rng.standard_normal(n) > 0).astype(int)
        few = n // 16
        speeds, errors = [], []
        for engine in (TorchEngine(self.device), "native"):
            est = RRFClassifier(D, 1 / (2 * d), step=RRFStep(batch_size=BLOCK), random_state=0, engine=engine)
            est.partial_fit(X[:4096], y[:4096])
            part = slice(0, few if engine == "native" else n)
            start = time.perf_counter()
            scores = est.learn(X[part], y[part])
            speeds.append(len(scores) / (time.perf_counter() - start) / 1e3)
            errors.append(100 * float(np.mean((scores[:few] >= 0) != (y[:few] > 0))))
        head = ["learner", "thousand rows/s", "native", "mistakes, %", "native"]
        title = "Learned kernels, float32, arrays; native: one thread of this machine's processor"
        name = f"RRF, {2 * D} features, batches of {BLOCK}, d = {d}"
        self.report.table("learned", title, head, [[name, *speeds, *errors]])


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
    parser.add_argument("--out", type=Path, default=NUMBERS, help="where the numbers are kept")
    parser.add_argument("--write", action="store_true", help="only write the tables of the numbers kept")
    args = parser.parse_args()
    report = Report(args.out)
    if args.write:
        report.write(RESULTS)
        return
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: nothing to measure (pip install kernelstream[gpu])")
        return
    if args.device.startswith("cuda") and not torch.cuda.is_available():
        print("no GPU here: nothing to measure (--device cpu --small runs the same code on the processor)")
        return
    if args.small:
        report = Report(Path(tempfile.gettempdir()) / "gpu_small.json")
    report.machine = torch.cuda.get_device_name() if args.device != "cpu" else "the processor"
    report.machine += f", torch {torch.__version__}"
    bench = Bench(args.device, args.small, report)
    for name in args.parts or PARTS:
        getattr(bench, name)()
    if not args.small:
        report.write(RESULTS)


if __name__ == "__main__":
    main()
