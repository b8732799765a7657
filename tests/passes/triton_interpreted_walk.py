"""The Triton program that learns row after row, in Triton's interpreter, against the python engine.

A program of its own, started by test_torch_each_row.py: the interpreter is chosen before Triton is imported. The
interpreter runs the programs of a grid one after the other, so those that wait for each other run in one process
each, on tensors that the processes share.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import pytest
import torch
from triton.runtime import interpreter
from triton_interpreted import attempt
from triton_interpreted_pairs import PAIRS

from kernelstream import engine, losses
from kernelstream.engine.torch import formulas, walk
from kernelstream.updates import OGD, AdaGrad, Averaged, CoinBetting, NormAdaGrad, unwrap

EXACT = engine.get("python")
IN_PARTS = walk.Shape(1, 48, 16, 4)  # more features than are worked on at once
ALONE = [
    ("hinge", AdaGrad(), None),
    ("squared", AdaGrad(forgetting=0.99), None),
    ("softmax", AdaGrad(0.3), None),
    ("one_vs_rest", AdaGrad(), IN_PARTS),
    ("softmax", Averaged(AdaGrad()), None),
    ("logistic", Averaged(OGD(0.5, lam=0.01)), IN_PARTS),
    ("absolute", Averaged(NormAdaGrad()), None),
    ("crammer_singer", Averaged(CoinBetting()), IN_PARTS),
    *((loss, update, None) for loss, update in PAIRS),
]
TOGETHER = [("squared", AdaGrad(), np.float64), ("softmax", AdaGrad(), np.float64), ("softmax", AdaGrad(), np.float32)]


class Case:
    """Rows, and a state as it is after some rows; the same as tensors."""

    def __init__(self, name, update, m=9, P=37, dtype=np.float64):
        self.loss, self.update = losses.get(name), update
        self.inner, self.average = unwrap(update)
        C = 3 if self.loss.kind == "multiclass" else 1
        rng = np.random.default_rng(m)
        self.Z = (rng.standard_normal((m, P)) / 2).astype(dtype)
        y = rng.standard_normal(m)
        kinds = {"regression": y, "binary": np.sign(y), "multiclass": rng.integers(0, C, m).astype(float)}
        self.y = kinds[self.loss.kind].astype(dtype)
        self.weight = (rng.uniform(0.5, 1.5, m) * (rng.random(m) < 0.8)).astype(dtype)
        some = lambda: (0.1 * rng.standard_normal((C, P))).astype(dtype)  # noqa: E731
        self.state = {"t": 3, "memory": self.inner.memory(C, P), "w": some(), "scale": np.ones(C)}
        if self.inner.diagonal:
            self.state["G"] = np.abs(some())
        if self.average:
            self.state["w_mean"] = some()
        if self.loss.kind == "regression":
            self.state["center"] = np.array([2.0, 0.3])
        self.there = {k: torch.tensor(self.state[k]) for k in ("memory", "w", "G", "w_mean") if k in self.state}
        self.book = torch.tensor([3.0, *self.state.get("center", (0.0, 0.0))], dtype=torch.float64)
        self.F = torch.full((m, C), np.nan, dtype=self.there["w"].dtype)
        for tensor in (*self.there.values(), self.book, self.F):
            tensor.share_memory_()

    def walk(self, programs):
        kind = formulas.program(self.loss, self.inner), *self.there["w"].shape[:1], self.Z.dtype == np.float64
        case = walk.WalkKind(*kind, center="center" in self.state, unit=False, average=self.average)
        walked = walk.Walk(case, self.held(), programs, programs)
        walked.words.share_memory_()
        walked.failed.share_memory_()
        return walked

    def learn(self, walked):
        Z = torch.tensor(self.Z)
        rows = walk.WalkedRows(Z, (Z * Z).sum(1), torch.tensor(self.y), torch.tensor(self.weight), self.F)
        walked(rows, self.held())

    def held(self):
        return walk.WalkedState(*(self.there.get(name) for name in ("w", "G", "w_mean", "memory")), self.book)

    def compare(self, tolerance):
        state = self.state
        expected = EXACT.linear_pass(self.Z, self.y, self.weight, state, EXACT.spec(self.loss, self.update), False)
        state["w"] = state["w"] * state["scale"][:, None]
        found = {"scores": (self.F, expected)} | {k: (v, state[k]) for k, v in self.there.items()}
        for name, (ours, theirs) in found.items():
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=f"{self.update} {name}")
        np.testing.assert_allclose(self.book, [state["t"], *state.get("center", (0.0, 0.0))], rtol=tolerance)


def check_walk(name, update, shape):
    """One program, which has all features."""
    case = Case(name, update)
    walked = case.walk(1)
    if shape is not None:
        walked.shape = shape
    case.learn(walked)
    case.compare(1e-11)


def check_walk_together(name, update, dtype, programs=3):
    """Three programs that wait for each other."""
    case = Case(name, update, dtype=dtype)
    walked = case.walk(programs)
    assert walked.shape.programs == programs
    children = [in_child(lambda number=number: case.learn(as_program(walked, number))) for number in range(programs)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * programs
    walked.check()
    case.compare(1e-11 if dtype is np.float64 else 2e-5)


def check_walk_that_waits_in_vain():
    """One of two programs, and no other: it ends, and says so."""
    case = Case("hinge", AdaGrad(), m=4)
    walked = case.walk(2)
    walked.waits = 3
    child = in_child(lambda: case.learn(as_program(walked, 0)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(RuntimeError, match="timed out"):
        walked.check()


def in_child(work):
    """Number of a process that does some work and ends, with 0 if it was done."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def as_program(walked, number):
    """The walk, as the program of a number sees it, in a process of its own."""
    original = walk._walk

    class Alone:
        def __getitem__(self, grid):
            return original[(1,)]

    walk._walk = Alone()
    index = interpreter.TensorHandle(np.array([number], dtype=np.int32), walk.tl.int32)
    interpreter.interpreter_builder.create_get_program_id = lambda axis: index
    interpreter.GridExecutor._restore_args_dev = lambda *_: None  # it would write what others have changed meanwhile
    walked.words.zero_ = lambda: None  # they are 0 already, and the others may have begun
    return walked


if __name__ == "__main__":
    torch.set_num_threads(1)
    reasons = {attempt(check_walk, *case) for case in ALONE} - {""}
    if not reasons:
        for case in TOGETHER:
            check_walk_together(*case)
        check_walk_that_waits_in_vain()
    print("; ".join(sorted(reasons)) or "equal")
