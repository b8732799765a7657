"""One table of random streams: no two uses of a seed draw the same numbers."""

import ast
import functools
import itertools
from pathlib import Path

import numpy as np

import kernelstream
from kernelstream.random import FAMILY, SeedStream, Streams, generator, uniforms

PACKAGE = Path(kernelstream.__file__).parent
STREAM_ARGUMENT = {"generator": 1, "Streams": 1, "uniforms": 3}  # its position
TAKES_A_STREAM = {"self.stream"}  # of passes/doubly/blocks.py, where the caller names it


@functools.cache
def calls() -> list[tuple[str, str, ast.Call]]:
    """Where, the function, and the call, of everything in the library that makes random numbers from a seed."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path == PACKAGE / "random.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in STREAM_ARGUMENT:
                found.append((f"{path.relative_to(PACKAGE)}:{node.lineno}", node.func.id, node))
    return found


def test_every_call_names_its_stream():
    found = calls()
    assert len(found) > 40
    for where, function, call in found:
        stream = ast.unparse(call.args[STREAM_ARGUMENT[function]])
        kind, _, name = stream.partition(".")
        assert stream in TAKES_A_STREAM or (kind == "SeedStream" and name in SeedStream.__members__), where


def test_no_other_counters():
    found = {path.name for path in PACKAGE.rglob("*.py") if "np.random.Philox(" in path.read_text(encoding="utf-8")}
    assert found == {"random.py"}


def test_no_two_streams_coincide():
    families = {"MAP", "GP_OPERATOR"}  # of blocks of features
    for _, function, call in calls():
        if function == "Streams" or (function == "generator" and len(call.args) == 3):
            families.add(ast.unparse(call.args[1]).rpartition(".")[2])
    families.discard("stream")
    taken = sorted(
        (int(SeedStream[name]), int(SeedStream[name]) + (FAMILY if name in families else 1))
        for name in SeedStream.__members__
    )
    assert len(taken) == len(SeedStream.__members__) > 25
    for (_, end), (start, _) in itertools.pairwise(taken):
        assert end <= start
    assert taken[-1][1] <= 1 << 64


def test_families_follow_the_counter_of_philox():
    def words(stream: int) -> np.ndarray:
        return np.random.Philox(key=9, counter=np.array([0, 0, 0, stream], np.uint64)).random_raw(4)

    for stream, number in (
        (SeedStream.MAP, 0),
        (SeedStream.MAP, 7),
        (SeedStream.FIT_ORDER, 3),
        (SeedStream.MAP_SHARED, 0),
    ):
        want = words(int(stream) + number)
        assert (generator(9, stream, number).bit_generator.random_raw(4) == want).all()
        assert (Streams(9, stream)(number).bit_generator.random_raw(4) == want).all()
    assert (uniforms(9, 0, 4, SeedStream.BUDGET) == (words(1 << 62) >> np.uint64(11)) * 2.0**-53).all()
    # a family that is used up starts over, and never reaches into the next one
    assert (generator(9, SeedStream.MAP, FAMILY + 2).bit_generator.random_raw(4) == words(2)).all()
