r"""A billion rows on one GPU: exact ridge regression on Fourier features in one pass, its error beside the theory.

    python benchmarks/scale/billion.py [--rows 1000000000] [--seconds 540]     # one GPU with 8-bit tensor cores
    python benchmarks/scale/billion.py --rows 20000 --features 64 --block 1000 # the processor: the same code, to try it

Rows are drawn on the device by the library's counter-based generator, N(0, 1) in every column, used once and never
stored. With P features z the pass keeps two sums, ``A = Σ z z'`` and ``B = Σ z y``, and ``w = (A + lam I)^-1 B``.

Two functions f are learned at once, ``y = f(x) + noise`` with noise of variance 1. *Inside* the model, ``f = w0'z``
with weights w0 drawn from N(0, 1): with ``lam = 1`` no estimate is better than ridge regression, and the excess error
that it must expect is

.. math:: E\,(\hat f - f)^2 = \sigma^2 d_n / n, \qquad d_n = \mathrm{tr}\, A (A + \lambda I)^{-1}

(Hsu, Kakade, Zhang: Random design analysis of ridge regression, 2014). *Outside* it, f is a sum of kernel functions at
64 points, which P random features only approximate: the excess error has a floor. Errors are means over rows that were
not learned.

How the sums are kept: a feature is rounded to a whole number of 8 bits once, and is then what both sides mean by z.
Products of whole numbers are added up by tensor cores without any rounding, those of a block in 32 bits, blocks in
float64, on and above the diagonal (in panels) only: A has no error. (Sums of 16-bit floats have one, small and always
of the same sign: after 10^7 rows A was not even positive.) The second table says how far A, B and w are from those of
float64.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import torch

from kernelstream.core import philox
from kernelstream.engine import TorchEngine
from kernelstream.features import RandomFourier

RESULTS = Path(__file__).parents[1] / "results"
D, GAMMA, LAM, POINTS = 9, 1 / 18, 1.0, 64
LEARNED, FRESH = 0, 1  # seeds of the rows
ROWS, NOISE, TEACHER = 0, 1, 2  # streams of a seed
LEVELS = 127  # whole numbers on each side of 0 that a feature may be
PANELS = 4  # of A: with 4 the products below the diagonal that are made in vain are an eighth of all
EACH = 64  # blocks between two looks at the clock


class Rows:
    """Blocks of rows, their features in whole numbers of 8 bits, (P, block), and their functions, (block, 2) float32.

    A feature is such a number times ``unit``.
    """

    def __init__(self, features: int, block: int, device: str | None):
        self.ops = TorchEngine(device).ops()
        self.device, self.block, self.P = self.ops.device, block, features
        mapping = RandomFourier("gaussian", features // 2, gamma=GAMMA)
        self.mapping = mapping.build({"seed": 0, "gamma": GAMMA}, D, np.dtype(np.float32))
        self.map = self.ops.device_map(self.mapping)
        self.on_gpu = self.ops.rounds(torch.float32)  # by the programs of the library, else by torch alone
        self.X = torch.zeros((block, self.map.width), device=self.device)
        self.Z = torch.empty((block, features), dtype=torch.float16, device=self.device)
        self.unit = math.sqrt(2 / features) / LEVELS
        self.inside = torch.zeros((features, 8), dtype=torch.float16, device=self.device)  # as wide as tensor cores ask
        self.inside[:, 0] = self._normals(0, features, 1, TEACHER)[:, 0]
        centers = self._normals(1, POINTS, D, TEACHER)
        scale = self._normals(2, POINTS, 1, TEACHER)[:, 0]
        self.centers, self.scale = centers, scale / float(scale.norm()) * 4
        if self.on_gpu:
            self.programs = 2 * torch.cuda.get_device_properties(self.device).multi_processor_count

    def _normals(self, number: int, n: int, d: int, stream: int, seed: int = LEARNED) -> torch.Tensor:
        """N(0, 1) numbers of a block, (n, d) float32: the same on every machine."""
        out = torch.empty((n, d), device=self.device)
        self._draw(seed, number, stream, out)
        return out

    def _draw(self, seed: int, number: int, stream: int, out: torch.Tensor) -> None:
        n, d = out.shape
        if self.on_gpu:
            from kernelstream.engine.torch.philox import normals

            normals(seed, number, d, n, stream, 1.0, out)
        else:
            out.copy_(torch.from_numpy(philox.normals(seed, number, np.arange(d), n, stream).T))

    def __call__(self, number: int, seed: int = LEARNED) -> tuple[torch.Tensor, torch.Tensor]:
        """Features and values of a block; valid until the next call."""
        X = self.X
        self._draw(seed, number, ROWS, X[:, :D])
        if self.on_gpu:
            from kernelstream.engine.torch.cosines import fourier_tf32
            from kernelstream.engine.torch.maps import round_

            self.map.place(X)
            fourier_tf32(round_(X), self.map.Wt, self.Z, self.programs)
        else:
            self.Z.copy_(self.map(X[:, :D]))
        whole = self.Z.div_(self.unit).round_()
        F = torch.empty((self.block, 2), device=self.device)
        F[:, 0] = product(whole, self.inside)[:, 0] * self.unit
        with self.ops.full():
            distance = torch.cdist(X[:, :D], self.centers, compute_mode="donot_use_mm_for_euclid_dist")
        F[:, 1] = distance.square_().mul_(-GAMMA).exp_() @ self.scale
        return whole.T.to(torch.int8, memory_format=torch.contiguous_format), F

    def targets(self, number: int, F: torch.Tensor) -> torch.Tensor:
        """The functions with noise of variance 1, (block, 2)."""
        return F + self._normals(number, self.block, 1, NOISE)


def product(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """``A B`` of numbers of 16 bits, summed in float32."""
    return torch.mm(A, B, out_dtype=torch.float32) if A.is_cuda else A.float() @ B.float()


def whole_product(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """``A B'`` of whole numbers of 8 bits, in 32 bits."""
    return torch._int_mm(A, B.T) if A.is_cuda else (A.double() @ B.double().T)


class Sums:
    """``A = Σ z z'`` on and above the diagonal and ``B = Σ z y``, float64."""

    def __init__(self, P: int, unit: float, device: torch.device):
        self.unit = unit
        self.A = torch.zeros((P, P), dtype=torch.float64, device=device)
        self.B = torch.zeros((P, 2), dtype=torch.float64, device=device)
        self.n, self.width = 0, -(-P // PANELS)

    def add(self, Z: torch.Tensor, Y: torch.Tensor) -> None:
        """The rows of a block: features (P, block) in units, targets (block, 2)."""
        for start in range(0, len(self.A), self.width):
            self.A[start : start + self.width, start:] += whole_product(Z[start : start + self.width], Z[start:])
        self.B += Z.float() @ Y
        self.n += Z.shape[1]

    def full(self) -> torch.Tensor:
        """A with what is below the diagonal."""
        upper = self.A.triu() * self.unit**2
        return upper + upper.triu(1).T

    def solve(self) -> tuple[torch.Tensor, float]:
        """Weights (P, 2) and d_n."""
        eye = torch.eye(len(self.A), dtype=torch.float64, device=self.A.device)
        L = torch.linalg.cholesky(self.full() + LAM * eye)
        left = float(torch.linalg.solve_triangular(L, eye, upper=False).square_().sum())  # tr (A + lam I)^-1
        return torch.cholesky_solve(self.B * self.unit, L), len(eye) - LAM * left


def excess(rows: Rows, W: torch.Tensor, blocks: int) -> list[float]:
    """Mean squared distance from the two functions on rows that were not learned."""
    total = torch.zeros(2, dtype=torch.float64, device=rows.device)
    for number in range(blocks):
        Z, F = rows(number, FRESH)
        for part in range(0, len(F), 4096):
            total += (Z[:, part : part + 4096].T.double() * rows.unit @ W - F[part : part + 4096]).square().sum(dim=0)
    return (total / (blocks * rows.block)).tolist()


def check(rows: Rows, blocks: int) -> dict[str, float]:
    """Some blocks: the sums, and what is solved with them, beside those of float64."""
    ours, exact = (Sums(rows.P, rows.unit, rows.device) for _ in range(2))
    for number in range(blocks):
        Z, F = rows(number)
        Y = rows.targets(number, F)
        ours.add(Z, Y)
        for part in range(0, len(F), 4096):
            some = Z[:, part : part + 4096].double()
            exact.A += some @ some.T
            exact.B += some @ Y[part : part + 4096].double()
    E, e = ours.full() - exact.full(), ours.B - exact.B
    w, w_exact = ours.solve()[0], exact.solve()[0]
    made = torch.from_numpy(rows.mapping(rows.X[:1000, :D].cpu().numpy().astype(np.float64))).to(rows.device)
    off = (Z[:, :1000].T.double() * rows.unit - made).abs().max()
    return {
        "rows": ours.n,
        "largest error of A": float(E.abs().max()),
        "largest error of B, of its largest entry": float(e.abs().max() / exact.B.abs().max()),
        "relative error of w": float((w - w_exact).norm() / w_exact.norm()),
        "largest rounding of a feature, of its largest value": float(off) * math.sqrt(rows.P / 2),
    }


def checkpoints(count: int) -> list[int]:
    """1, 3, 10, 30, … up to the number itself, from what is left of it after division by 10^3."""
    first = max(1, count // 1000)
    steps = [first * k * 10**e for e in range(4) for k in (1, 3)]
    return sorted({s for s in steps if s < count} | {count})


def run(
    count: int, features: int, block: int, seconds: float, device: str | None, test_blocks: int = 16
) -> dict[str, object]:
    """The pass; what was measured at each checkpoint."""
    rows = Rows(features, block, device)
    checked = check(rows, test_blocks)
    print(json.dumps(checked, indent=0), flush=True)
    sums, spent, table = Sums(features, rows.unit, rows.device), 0.0, []
    wanted = checkpoints(-(-count // block))
    number, since = 0, time.perf_counter()
    for stop in wanted:
        while number < stop and spent + time.perf_counter() - since < seconds:
            for block_number in range(number, min(stop, number + EACH)):
                Z, F = rows(block_number)
                sums.add(Z, rows.targets(block_number, F))
            number = block_number + 1
            if rows.device.type == "cuda":
                torch.cuda.synchronize(rows.device)
        spent += time.perf_counter() - since
        W, d = sums.solve()
        inside, outside = excess(rows, W, test_blocks)
        table.append({"rows": sums.n, "seconds": spent, "d": d, "expected": d / sums.n, "inside": inside,
                      "outside": outside})  # fmt: skip
        print(json.dumps(table[-1]), flush=True)
        since = time.perf_counter()
        if number < stop:
            break
    name = torch.cuda.get_device_name() if rows.device.type == "cuda" else "processor"
    return {"machine": f"{name}, torch {torch.__version__}", "features": features, "block": block,
            "fresh": test_blocks * block, "check": checked, "table": table}  # fmt: skip


def written(found: dict) -> str:
    """The tables."""
    last = found["table"][-1]
    rate = last["rows"] / last["seconds"]
    text = [
        f"{found['machine']}; {found['features']:,} features of {D} columns, blocks of {found['block']:,} rows, excess "
        f"errors on {found['fresh']:,} fresh rows; {rate / 1e6:.3g} million rows/s, "
        f"{2e-12 * rate * found['features'] ** 2:.3g} TFLOP/s if all of z z' is counted.\n",
        "| rows | seconds | d_n | expected, d_n / n | excess error, f inside | ratio | excess error, f outside |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for line in found["table"]:
        text.append(
            f"| {line['rows']:,} | {line['seconds']:.1f} | {line['d']:.0f} | {line['expected']:.3g} | "
            f"{line['inside']:.3g} | {line['inside'] / line['expected']:.3f} | {line['outside']:.3g} |"
        )
    text += ["\n| the sums beside those of float64 | |", "| --- | ---: |"]
    text += [f"| {name} | {value:.3g} |" for name, value in found["check"].items()]
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10**9)
    parser.add_argument("--features", type=int, default=8192)
    parser.add_argument("--block", type=int, default=16_384, help="rows whose products are added up in 32 bits")
    parser.add_argument("--seconds", type=float, default=540.0, help="of the pass, checkpoints not counted")
    parser.add_argument("--device", default=None)
    parser.add_argument("--out", type=Path, default=RESULTS / "billion.md")
    given = parser.parse_args()
    found = run(given.rows, given.features, given.block, given.seconds, given.device)
    given.out.write_text("Written by `python benchmarks/scale/billion.py`.\n\n" + written(found))
    print(written(found))
