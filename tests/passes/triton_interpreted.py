"""The Triton programs of the torch engine in Triton's interpreter, against the python engine and float64 products.

A program of its own, started by test_torch_engine.py: the interpreter is chosen before Triton is imported.
"""

import math
import os

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton
from triton.runtime.errors import InterpreterError
from triton_interpreted_pairs import PAIRS

from kernelstream import engine, losses
from kernelstream.core import philox
from kernelstream.engine.torch import maps, products, recursion
from kernelstream.engine.torch import philox as device_philox

EXACT = engine.get("python")


def check_recursion(name, update, m=37, d=7):
    """A block of two groups, rows of weight 0 among them, in float64."""
    loss = losses.get(name)
    C = 3 if loss.kind == "multiclass" else 1
    rng = np.random.default_rng(m)
    Z = rng.standard_normal((m, d)) / 2
    S, F = Z @ Z.T, 0.3 * rng.standard_normal((m, C))
    y = rng.standard_normal(m)
    y = y if loss.kind == "regression" else np.sign(y) if C == 1 else rng.integers(0, C, m).astype(float)
    weight = rng.uniform(0.5, 1.5, m) * (rng.random(m) < 0.9)
    memory, center = update.memory(C, d), np.zeros(2) if loss.kind == "regression" else None
    program = recursion.program(loss, update)
    got, kept, book = torch.tensor(F), torch.tensor(memory), torch.zeros(3, dtype=torch.float64)
    alpha = torch.full((m, C), np.nan, dtype=torch.float64)
    decay = torch.full((C,), np.nan, dtype=torch.float64)
    numbers = torch.tensor(program.numbers, dtype=torch.float64)
    recursion.recursion(
        got, torch.tensor(S), torch.tensor(y), torch.tensor(weight), program, numbers, kept, book, alpha, decay,
        center=center is not None, unit=False,
    )  # fmt: skip
    state = {"t": 0, "memory": memory} | ({} if center is None else {"center": center})
    _, joined, coefficients, shrink = EXACT.expansion_pass(F, S, y, weight, EXACT.spec(loss, update), state, m)
    expected = np.zeros((m, C))
    expected[joined] = coefficients
    for ours, theirs in ((got, F), (alpha, expected), (decay, shrink), (kept, memory)):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-9, atol=1e-10, err_msg=f"{name} {update}")
    assert book[0] == np.count_nonzero(weight)
    if center is not None:
        np.testing.assert_allclose(book[1:].numpy(), center, rtol=1e-9)


def check_products(m=48, d=64, D=80):
    torch.manual_seed(0)
    X, Wt, Z = torch.randn(m, d), 0.5 * torch.randn(D, d), torch.full((m, 2 * D), np.nan)
    products.FREQUENCIES = 32
    products.fourier(X, Wt, Z, torch.empty(m, 32))
    P = X.double() @ Wt.double().T
    close(Z, torch.cat([P.cos(), P.sin()], 1) / math.sqrt(D), 2e-6)
    products.fourier(1e14 * X, Wt, Z, torch.empty(m, 32))  # nothing is known of such angles, but that they have sines
    close(Z[:, :D].square() + Z[:, D:].square(), torch.full((m, D), 1 / D).double(), 1e-6)
    products.fourier(X, Wt, Z, torch.empty(m, 32))
    S = torch.full((m, m), np.nan)
    products.Gram(m, 2 * D, "cpu", {"BT": 16, "BK": 32, "num_warps": 4, "num_stages": 1}, 20)(Z, S)
    close(S, Z.double() @ Z.double().T, 1e-6)
    narrow = Z[:, : 2 * D - 7].contiguous()
    products.Gram(m, 2 * D - 7, "cpu", {"BT": 16, "BK": 32, "num_warps": 4, "num_stages": 1}, 20)(narrow, S)
    close(S, narrow.double() @ narrow.double().T, 1e-6)
    for C in (1, 3):
        w, F, alpha, decay = torch.randn(C, 2 * D), torch.full((m, C), np.nan), torch.randn(m, C), torch.rand(C)
        products.Scores(m, C, "cpu")(Z, w, F)
        close(F, Z.double() @ w.double().T, 1e-6)
        expected = decay.double()[:, None] * w.double() + alpha.double().T @ Z.double()
        products.absorb(Z, alpha, decay, w)
        close(w, expected, 1e-5)


def check_fourier_tf32(m=48, d=64, D=80):
    torch.manual_seed(0)
    X, Wt, Z = maps.round_(torch.randn(m, d)), maps.round_(0.5 * torch.randn(D, d)), torch.full((m, 2 * D), np.nan)
    P = X.double() @ Wt.double().T
    products.FOURIER |= {"BM": 16, "BN": 64}
    products.fourier_tf32(X, Wt, Z, 5)
    close(Z, torch.cat([P.cos(), P.sin()], 1) / math.sqrt(D), 2e-6)


def check_normals(D=70, d=33):
    for seed in (7, 2**63 + 2**40 + 9):
        out = torch.full((D, d), np.nan)
        device_philox.normals(seed, 3, d, D, 2, 0.37, out)
        assert (philox.normals(seed, 3, np.arange(d), D, 2, 0.37) == out.numpy().T).all()


def close(got, expected, tolerance):
    assert float((got.double() - expected).abs().max()) < tolerance


def attempt(check, *args):
    """Run a check; the reason where Triton's own interpreter cannot, since arrays of one entry are no numbers."""
    try:
        check(*args)
    except InterpreterError as error:
        if "only 0-dimensional arrays can be converted" not in str(error):
            raise
        versions = f"the interpreter of Triton {triton.__version__} fails with NumPy {np.__version__}"
        return f"{check.__name__} left out, {versions}"
    return ""


if __name__ == "__main__":
    cases = [(check_products,), (check_fourier_tf32,), (check_normals,)]
    cases += [(check_recursion, *pair) for pair in PAIRS]
    reasons = {attempt(*case) for case in cases} - {""}
    print("; ".join(sorted(reasons)) or "equal")
