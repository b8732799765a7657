"""The Triton programs of features and frequencies in Triton's interpreter, against float64 and the library.

A program of its own, started by test_torch_engine.py: the interpreter is chosen before Triton is imported.
"""

import math
import os

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton
from triton.runtime.errors import InterpreterError

from kernelstream.core import philox
from kernelstream.engine.torch import cosines, maps
from kernelstream.engine.torch import philox as device_philox


def check_fourier(m=48, d=64, D=80):
    torch.manual_seed(0)
    X, Wt, Z = torch.randn(m, d), 0.5 * torch.randn(D, d), torch.full((m, 2 * D), np.nan)
    cosines.FREQUENCIES = 32
    cosines.fourier(X, Wt, Z, torch.empty(m, 32))
    P = X.double() @ Wt.double().T
    close(Z, torch.cat([P.cos(), P.sin()], 1) / math.sqrt(D), 2e-6)
    cosines.fourier(1e14 * X, Wt, Z, torch.empty(m, 32))  # nothing is known of such angles, but that they have sines
    close(Z[:, :D].square() + Z[:, D:].square(), torch.full((m, D), 1 / D).double(), 1e-6)


def check_fourier_tf32(m=48, d=64, D=80):
    torch.manual_seed(0)
    X, Wt, Z = maps.round_(torch.randn(m, d)), maps.round_(0.5 * torch.randn(D, d)), torch.full((m, 2 * D), np.nan)
    P = X.double() @ Wt.double().T
    cosines.FOURIER |= {"BM": 16, "BN": 64}
    cosines.fourier_tf32(X, Wt, Z, 5)
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
    cases = [(check_fourier,), (check_fourier_tf32,), (check_normals,)]
    reasons = {attempt(*case) for case in cases} - {""}
    print("; ".join(sorted(reasons)) or "equal")
