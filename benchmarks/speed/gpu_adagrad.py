"""AdaGrad and averaging on a GPU, the part ``adagrad`` of gpu.py: is it the processor's model, and how fast.

Every check prints PASS or FAIL and what it found; none stops the others. A part of the checks is about programs that
share the features and wait for each other for every row, which only a GPU can run as it is.
"""

from __future__ import annotations

import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import kernelstream
from kernelstream import FeatureClassifier, FeatureRegressor
from kernelstream.engine import TorchEngine
from kernelstream.features import Nystroem, RandomFourier
from kernelstream.updates import OGD, AdaGrad, Averaged

WIDTH, CLASSES, BLOCK = 784, 10, 512
CHECKING, SECONDS = 60, 72  # after which no further check is made, and no further number of programs tried


def run(device: str, small: bool, report: Any) -> None:
    """Checks, then speeds as a table of the report."""
    begun = time.perf_counter()
    checks = Checks(device, small)
    for name, check in checks.all():
        start = time.perf_counter()
        if start - begun > CHECKING:
            print(f"LEFT OUT, no time: {name}", flush=True)
            continue
        try:
            passed, said = check()
        except Exception:
            passed, said = False, "\n      " + "\n      ".join(traceback.format_exc().splitlines()[-6:])
        print(f"{'PASS' if passed else 'FAIL'} {name}: {said} ({time.perf_counter() - start:.1f} s)", flush=True)
    rows: list[list[object]] = []
    head = ["features", "classes", "learner", "programs", "thousand rows/s", "µs a row"]
    title = f"AdaGrad row by row, float32, d = {WIDTH}; native: the same machine's processor"
    for row in Speeds(device, small, begun).all():
        rows.append(row)
        print("  " + "  ".join(f"{c:.4g}" if isinstance(c, float) else str(c) for c in row), flush=True)
    report.table("adagrad", title, head, rows)
    print(f"{time.perf_counter() - begun:.0f} s in all", flush=True)


def pixels(n: int, seed: int = 0):
    """Rows like those of mnist, four fifths of their pixels 0, and ten labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, WIDTH), dtype=np.float32)
    X *= rng.random((n, WIDTH), dtype=np.float32) < 0.2
    teacher = np.random.default_rng(1).standard_normal((WIDTH, CLASSES)).astype(np.float32)
    return X, np.argmax(X @ teacher, axis=1)


class Checks:
    """Models of the device beside those of the native engine, on the same rows."""

    def __init__(self, device: str, small: bool):
        self.device, self.gpu = device, device != "cpu"
        rng = np.random.default_rng(0)
        self.n = 400 if small else 1500
        self.X = rng.standard_normal((self.n, 20))
        self.target = np.sin(2 * self.X[:, 0]) + 0.3 * self.X[:, 1] * self.X[:, 2]
        self.weight = rng.uniform(0, 2, self.n) * (rng.random(self.n) < 0.9)
        edges = np.quantile(self.target, np.linspace(0, 1, CLASSES + 1)[1:-1])
        self.y = {"two": self.target > 0, "ten": np.digitize(self.target, edges), "number": self.target}

    def all(self) -> Iterator[tuple[str, Callable[[], tuple[bool, str]]]]:
        learners = [
            ("two", "hinge", "auto"), ("two", "logistic", AdaGrad(0.5, 0.99)), ("ten", "softmax", "auto"),
            ("ten", "hinge", "auto"), ("number", "squared", "auto"), ("two", "logistic", Averaged(OGD(0.5, lam=1e-3))),
            ("ten", "softmax", Averaged(AdaGrad())), ("number", "squared", Averaged(AdaGrad())),
        ]  # fmt: skip
        some = [learners[i] for i in (0, 2, 4, 6)]
        for programs, chosen in (
            ((1, some), (3, some[:2]), (5, learners), (10, some[:2]), (19, some[:2]), (38, some[:2]))
            if self.gpu
            else ((None, learners),)
        ):
            for task, loss, update in chosen:
                yield (
                    f"float64, {task} {loss} {update}, programs {programs}",
                    lambda p=programs, a=(task, loss, update): self.equal(*a, p),
                )
        for programs in (1, 19) if self.gpu else (None,):
            yield f"float32, ten softmax, programs {programs}", lambda p=programs: self.single(p)
        if self.gpu:
            for task, loss in (("two", "logistic"), ("ten", "softmax")):
                yield f"weights outside the registers, {loss}", lambda a=(task, loss): self.outside(*a)
            for programs in (3, 19):
                yield f"the same bits three times, programs {programs}", lambda p=programs: self.repeated(p)
            yield "a wait that is given up", self.given_up
            yield "the default number of programs", self.chosen
            yield "tf32 beside float32", self.rounded
            yield "tensors on the device", self.tensors
        yield "Nyström features", self.nystroem
        yield "any split into calls, labels that appear later", self.split
        yield "to the processor and back, and a file", self.moves

    # ---------------------------------------------------------------- models
    def model(self, task: str, loss: str, update: Any, engine: Any, features: Any = None) -> Any:
        features = RandomFourier(gamma=0.1, n_components=300, random_state=0) if features is None else features
        return (FeatureRegressor if task == "number" else FeatureClassifier)(
            features, loss, update, engine=engine, random_state=0
        )

    def engine(self, **rest: Any) -> TorchEngine:
        return TorchEngine(self.device, block=256, **rest)

    def learned(self, task: str, loss: str, update: Any, engine: Any, programs: int | None = None, **rest: Any):
        """The model, and the scores before each row."""
        features, dtype = rest.pop("features", None), rest.pop("dtype", np.float64)
        est = self.model(task, loss, update, engine, features)
        labels = {} if task == "number" else {"classes": np.unique(self.y[task])}
        with forced(programs if self.gpu else None):
            scores = est.learn(self.X.astype(dtype), self.y[task], sample_weight=self.weight, **labels)
            if self.gpu and engine != "native" and programs is not None:
                found = walk_of(est).shape.programs
                assert found == programs, f"{found} programs"
        return est, scores

    def gap(self, got: Any, want: Any) -> float:
        """Largest difference of scores and of what was learned, of the largest of each."""
        (one, F), (other, E) = got, want
        off = [relative(F, E)]
        for name in ("w", "G", "w_mean"):
            if name in other.state_:
                a, b = (est.state_[name] for est in (one, other))
                if name == "w":
                    a, b = (held * est.state_["scale"][:, None] for held, est in ((a, one), (b, other)))
                off.append(relative(a, b))
        return max(off)

    # ---------------------------------------------------------------- checks
    def equal(self, task: str, loss: str, update: Any, programs: int | None) -> tuple[bool, str]:
        want = self.learned(task, loss, update, "native")
        off = self.gap(self.learned(task, loss, update, self.engine(), programs), want)
        return off < 1e-11, f"off by {off:.1e}"

    def single(self, programs: int | None) -> tuple[bool, str]:
        want = self.learned("ten", "softmax", "auto", "native", dtype=np.float32)
        engine = self.engine(precision="float32")
        off = self.gap(self.learned("ten", "softmax", "auto", engine, programs, dtype=np.float32), want)
        return off < 2e-3, f"off by {off:.1e}"

    def outside(self, task: str, loss: str) -> tuple[bool, str]:
        from kernelstream.engine.torch import walk

        room, chunk, walk.RESIDENT, walk.CHUNK = walk.RESIDENT, walk.CHUNK, 1, 64
        try:
            got = self.learned(task, loss, "auto", self.engine(), 5)
            shape = walk_of(got[0]).shape
        finally:
            walk.RESIDENT, walk.CHUNK = room, chunk
        off = self.gap(got, self.learned(task, loss, "auto", "native"))
        return off < 1e-11 and shape.share > shape.block, f"off by {off:.1e}, {shape}"

    def repeated(self, programs: int) -> tuple[bool, str]:
        runs = [self.learned("ten", "softmax", "auto", self.engine(), programs)[0].state_["w"] for _ in range(3)]
        same = all((run == runs[0]).all() for run in runs)
        return same, "equal" if same else "they differ"

    def given_up(self) -> tuple[bool, str]:
        """A RuntimeError soon, and the model as it was."""
        est, _ = self.learned("two", "logistic", "auto", self.engine(), 19)
        before, walked = est.decision_function(self.X), walk_of(est)
        walked.waits = 0
        start = time.perf_counter()
        try:
            est.partial_fit(self.X, self.y["two"])
        except RuntimeError as error:
            said = str(error)
        else:
            return False, "no error"
        took = time.perf_counter() - start
        same = bool((est.decision_function(self.X) == before).all())
        walk_of(est).waits = 1 << 23
        est.partial_fit(self.X, self.y["two"])
        return same and took < 5, f"after {took:.2f} s: {said[:40]}…, model {'as it was' if same else 'changed'}"

    def chosen(self) -> tuple[bool, str]:
        got = self.learned("ten", "softmax", "auto", self.engine())
        off = self.gap(got, self.learned("ten", "softmax", "auto", "native"))
        return off < 1e-11, f"off by {off:.1e}, {walk_of(got[0]).shape}"

    def rounded(self) -> tuple[bool, str]:
        """Mistakes in one pass."""
        share = []
        for precision in ("float32", "tf32"):
            engine = self.engine(precision=precision)
            _, F = self.learned("ten", "softmax", "auto", engine, 5, dtype=np.float32)
            share.append(100 * float(np.mean(F.argmax(axis=1) != self.y["ten"])))
        return max(share) - min(share) < 2, "mistakes " + ", ".join(f"{s:.2f} %" for s in share)

    def tensors(self) -> tuple[bool, str]:
        import torch

        X, y = torch.from_numpy(self.X).to(self.device), self.y["ten"]
        got, want = self.model("ten", "softmax", "auto", self.engine()), self.model("ten", "softmax", "auto", "native")
        got.partial_fit(X, y)
        want.partial_fit(self.X, y)
        off = relative(got.decision_function(X), want.decision_function(self.X))
        return off < 1e-10, f"off by {off:.1e}"

    def nystroem(self) -> tuple[bool, str]:
        features = Nystroem(gamma=0.1, n_components=300, random_state=0)
        want = self.learned("ten", "softmax", "auto", "native", features=features)
        got = self.learned("ten", "softmax", "auto", self.engine(), features=features)
        off = self.gap(got, want)
        where = ", ".join(
            f"{name} {relative(got[0].state_[name], want[0].state_[name]):.1e}" for name in ("w", "G", "memory")
        )
        shape = walk_of(got[0]).shape if self.gpu else None
        said = f"off by {off:.1e}, scores {relative(got[1], want[1]):.1e}, {where}, {shape}"
        return off < 1e-9, said  # whitening by a nearly singular matrix multiplies rounding

    def split(self) -> tuple[bool, str]:
        order = np.argsort(self.y["ten"] * (np.arange(self.n) < self.n // 3), kind="stable")
        X, y, weight = self.X[order], self.y["ten"][order], self.weight[order]
        want = self.model("ten", "softmax", "auto", "native").partial_fit(X, y, sample_weight=weight)
        got = self.model("ten", "softmax", "auto", self.engine())
        for part in np.split(np.arange(self.n), [1, 2, 40, 41, self.n // 2, self.n - 100]):
            got.partial_fit(X[part], y[part], sample_weight=weight[part])
        off = max(relative(got.state_[name], want.state_[name]) for name in ("w", "G", "memory"))
        return off < 1e-11, f"off by {off:.1e}"

    def moves(self) -> tuple[bool, str]:
        third = self.n // 3
        off = []
        for task, loss, update in (("ten", "softmax", "auto"), ("number", "squared", Averaged(AdaGrad()))):
            y = self.y[task]
            want = self.model(task, loss, update, "native").partial_fit(self.X, y)
            got = self.model(task, loss, update, self.engine()).partial_fit(self.X[:third], y[:third])
            with tempfile.TemporaryDirectory() as folder:
                kernelstream.save(got, Path(folder) / "model.ks")
                got = kernelstream.load(Path(folder) / "model.ks").set_params(engine="auto")
            got.partial_fit(self.X[third : 2 * third], y[third : 2 * third])
            got.set_params(engine=self.engine()).partial_fit(self.X[2 * third :], y[2 * third :])
            off += [relative(got.state_[name], want.state_[name]) for name in ("w", "G", "memory")]
        return max(off) < 1e-11, f"off by {max(off):.1e}"


class Speeds:
    """Rows per second."""

    def __init__(self, device: str, small: bool, begun: float):
        import torch

        self.torch, self.device, self.small, self.begun = torch, device, small, begun
        self.n = 600 if small else 40 * BLOCK
        X, self.labels = pixels(self.n)
        self.arrays, self.X = X, torch.from_numpy(X).to(device)

    def all(self) -> Iterator[list[object]]:
        late: list[tuple[int, int, Any, tuple[int, ...]]] = []
        for width in (128,) if self.small else (1024, 16384, 131072):
            for classes in (2, CLASSES):
                y = self.labels % 2 if classes == 2 else self.labels
                features = RandomFourier(gamma=0.02, n_components=width // 2, random_state=0)
                loss = "hinge" if classes == 2 else "softmax"
                try:
                    est = self.model(features, loss, "auto", TorchEngine(self.device, block=BLOCK))
                    took = self.seconds(est, y)
                    held: Any = est._learner.held(est._state).there
                    shape = held.walk.shape if hasattr(held, "walk") else None
                    yield self.row(width, classes, "AdaGrad", shape and shape.programs, took, self.n)
                    tried = {1024: (1, 2, 4), 16384: (1, 4, 16, 64, 128), 131072: (32, 128)}.get(width, ())
                    late.append((width, classes, est, tried if shape else ()))
                    yield self.native(features, loss, width, classes, y)
                except Exception:
                    print("FAIL speed:", *traceback.format_exc().splitlines()[-6:], sep="\n      ", flush=True)
        late.sort(key=lambda each: [16384, 131072].index(each[0]) if each[0] > 1024 else 2)
        for width, classes, est, tried in late:  # what the choice of the number of programs rests on
            y = self.labels % 2 if classes == 2 else self.labels
            for programs in tried:
                if time.perf_counter() - self.begun > SECONDS:
                    return
                try:
                    with forced(programs):
                        est._learner.leave_device()
                        took = self.seconds(est, y)
                    shape = walk_of(est).shape
                    where = "registers" if shape.share == shape.block else "memory"
                    yield self.row(width, classes, f"AdaGrad, weights in {where}", shape.programs, took, self.n)
                except Exception:
                    print("FAIL speed:", *traceback.format_exc().splitlines()[-6:], sep="\n      ", flush=True)

    def model(self, features: Any, loss: str, update: Any, engine: Any) -> FeatureClassifier:
        return FeatureClassifier(features, loss, update, engine=engine, random_state=0)

    def native(self, features: Any, loss: str, width: int, classes: int, y: Any) -> list[object]:
        n = min(self.n, max(48, (1 << 24) // width // (1 if classes == 2 else 3)))
        est = self.model(features, loss, "auto", "native")
        est.partial_fit(self.arrays[:16], y[:16], classes=np.unique(y))
        start = time.perf_counter()
        est.partial_fit(self.arrays[:n], y[:n])
        return self.row(width, classes, "AdaGrad, native", None, time.perf_counter() - start, n)

    def row(self, width: int, classes: int, name: str, programs: int | None, took: float, n: int) -> list[object]:
        return [width, classes, name, programs, n / took / 1e3, 1e6 * took / n]

    def seconds(self, est: FeatureClassifier, y: Any) -> float:
        """The better of two passes, after one that compiles."""
        est.partial_fit(self.X, y, classes=np.unique(y))
        times = []
        for _ in range(2):
            self.wait()
            start = time.perf_counter()
            est.partial_fit(self.X, y)
            self.wait()
            times.append(time.perf_counter() - start)
        return min(times)

    def wait(self) -> None:
        if self.device != "cpu":
            self.torch.cuda.synchronize()


class forced:
    """Context in which new passes have so many programs; None leaves them the choice."""

    def __init__(self, programs: int | None):
        self.programs = programs

    def __enter__(self) -> None:
        if self.programs is not None:
            from kernelstream.engine.torch.walk_pass import WalkPass

            WalkPass.programs = self.programs

    def __exit__(self, *_: object) -> None:
        if self.programs is not None:
            from kernelstream.engine.torch.walk_pass import WalkPass

            WalkPass.programs = None


def walk_of(est: Any) -> Any:
    """The device's program of a model."""
    return est._learner.held(est._state).there.walk


def relative(a: Any, b: Any) -> float:
    """Largest difference, of the largest number; labels that have not appeared have a score of -inf in both."""
    known = np.isfinite(b)
    if not (np.isfinite(a) == known).all():
        return np.inf
    return float(np.abs(a[known] - b[known]).max() / max(np.abs(b[known]).max(), 1e-30))
