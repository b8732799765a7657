"""Compile the Triton programs of the torch engine for a GPU (compute capability 9.0), which needs none.

A program of its own, started by test_torch_engine.py.
"""

import os
import re

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGET = GPUTarget("cuda", 90, 32)


def compiled(function, signature, constants, **options):
    """The machine code of a program."""
    return assembled(function, signature, constants, **options)["cubin"]


def assembled(function, signature, constants, **options):
    """All stages of a program; pointers and sizes are multiples of 16, as torch's are."""
    names = function.arg_names
    places = {(names.index(name),): value for name, value in constants.items()}
    kinds = {name: signature.get(name, "constexpr") for name in names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if kinds[name].startswith("*")}
    source = ASTSource(fn=function, signature=kinds, constexprs=places, attrs=aligned)
    return triton.compile(source, target=TARGET, options=options).asm


def walk_programs():
    from kernelstream import losses
    from kernelstream.engine.torch import formulas, walk
    from kernelstream.updates import OGD, AdaGrad

    pairs = __import__("triton_interpreted_pairs").PAIRS
    each = ((name, update, 10 if losses.get(name).kind == "multiclass" else 1, 300, False) for name, update in pairs)
    for name, update, C, width, average in (
        *each,
        ("hinge", AdaGrad(), 1, 1024, False), ("squared", AdaGrad(), 1, 131072, True),
        ("softmax", AdaGrad(), 10, 16384, False), ("softmax", OGD(0.5, lam=0.01), 100, 131072, True),
        ("hinge", AdaGrad(), 1, 131072, False), ("softmax", AdaGrad(), 10, 300, False),
        ("softmax", AdaGrad(), 3, 5000, False),
    ):  # fmt: skip
        for wide in (False, True):
            loss, number = losses.get(name), "*fp64" if wide else "*fp32"
            case = walk.WalkKind(formulas.program(loss, update), C, wide, center=C == 1, unit=C > 1, average=average)
            shape = walk.shape_of(width, C, 3, wide, 132)
            names = ("Z", "K", "y", "weight", "F", "w", "G", "mean", "parts")
            signature = dict.fromkeys(names, number) | dict.fromkeys(("numbers", "memory", "book"), "*fp64")
            signature |= {"words": "*i64", "failed": "*i32"} | dict.fromkeys(("m", "width", "stride", "waits"), "i32")
            options = {"num_warps": shape.warps, "launch_cooperative_grid": shape.programs > 1}
            stages = assembled(walk._walk, signature, case.constants(shape), **options)
            assert each_word_once(stages["ttgir"]) == (shape.programs > 1), (name, width, shape)
            yield stages["cubin"]


def each_word_once(code):
    """Whether words that others write are read, and each once by every warp or once by all of them."""
    layouts = {
        name: [
            [int(n) for n in part.split(",")] for part in re.findall(r"(?:Thread|Warp|CTA) = \[([\d, ]+)\]", text)[:3]
        ]
        for name, text in re.findall(r"^(#\w+) = #ttg\.blocked<(.*)>$", code, re.MULTILINE)
    }
    found = re.findall(r"isVolatile = true.*tensor<([\dx]+)x!tt\.ptr<i64>, (#\w+)>", code)
    for shape, name in found:
        each, lanes, warps = layouts[name]
        size = [int(n) for n in shape.split("x")]
        held = [a * b for a, b in zip(each, lanes, strict=True)]
        assert held == size or all(a * b <= n for a, b, n in zip(held, warps, size, strict=True)), (
            shape,
            layouts[name],
        )
    return bool(found)


def other_programs():
    from kernelstream.engine.torch import cosines, philox

    size = dict.fromkeys(("m", "stride", "first", "size", "D"), "i32")
    yield compiled(cosines._trig, size | {"P": "*fp32", "Z": "*fp32", "scale": "fp32"}, {"BN": 1024}, num_warps=4)
    shape = {name: cosines.FOURIER[name] for name in ("BM", "BN", "BK")}
    tensors = {name: f"tensordesc<fp32[{shape[side]},{shape['BK']}]>" for name, side in (("X", "BM"), ("Wt", "BN"))}
    yield compiled(
        cosines._fourier, size | tensors | {"Z": "*fp32", "d": "i32", "scale": "fp32"}, shape,
        **{name: cosines.FOURIER[name] for name in ("num_warps", "num_stages")},
    )  # fmt: skip
    words = dict.fromkeys(("d", "D", "groups", "block", "stream", "key0", "key1", "stride"), "i32")
    words |= {"out": "*fp32", "scale": "fp32"}
    yield compiled(philox._normals, words, {"BG": 32, "BR": 32}, num_warps=4, enable_fp_fusion=False)


if __name__ == "__main__":
    os.environ.pop("TRITON_INTERPRET", None)
    from kernelstream import engine  # noqa: F401  (before the programs, which belong to it)

    assert all(walk_programs())
    assert all(other_programs())
    print("compiled")
