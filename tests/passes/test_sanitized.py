"""The compiled passes under the address and undefined-behaviour sanitizers, over the tests that call all of them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLAGS = "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all"
# without test_vecmath.py: its last digits need the fused multiply-adds that this build does not have
TESTS = ["passes/test_bindings.py", "passes/test_parity.py", "passes/test_one_row.py", "passes/test_two_threads.py",
         "passes/test_wide_rows.py", "passes/test_projectron_blocks.py",
         "families/test_few_rows.py", "parts/test_binning_solvers.py"]  # fmt: skip
# Imported by every interpreter that has it in its path: the core with sanitizers takes the place of the installed one.
SITE = """
import sys
from importlib.util import spec_from_file_location

class Sanitized:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return spec_from_file_location(name, {core!r}) if name == "kernelstream._core" else None

sys.meta_path.insert(0, Sanitized)
"""


def library(compiler, name):
    """Where the compiler has a library of its own."""
    found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
    return found.strip()


@pytest.mark.slow
def test_passes_under_the_sanitizers(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where cmake and ninja are
    compiler, cmake = shutil.which("g++"), shutil.which("cmake", path=path)
    if compiler is None or cmake is None or not Path(library(compiler, "libasan.so")).is_absolute():
        pytest.skip("needs g++ with its sanitizers, and cmake")
    options = {"CMAKE_BUILD_TYPE": "Debug", "CMAKE_CXX_FLAGS_DEBUG": "-g1", "CMAKE_CXX_FLAGS": FLAGS}
    options |= {"CMAKE_CXX_COMPILER": compiler, "Python_EXECUTABLE": sys.executable}
    defined = [f"-D{name}={value}" for name, value in options.items()]
    build = [cmake, "-S", ROOT, "-B", tmp_path, "-G", "Ninja", *defined]
    for command in (build, [cmake, "--build", tmp_path, "-j2"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PATH": path})
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (tmp_path / "sitecustomize.py").write_text(SITE.format(core=str(next(tmp_path.glob("_core*.so")))))
    environment = os.environ | {
        "LD_PRELOAD": " ".join(library(compiler, name) for name in ("libasan.so", "libstdc++.so")),
        # Leaks are the interpreter's own. Frames that outlive their function, GCC 13's default, are not aligned for
        # vectors of 64 bytes.
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
        "PYTHONMALLOC": "malloc",  # so that every object has an end that is watched
        "PYTHONPATH": str(tmp_path),
    }
    tests = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *(ROOT / "tests" / t for t in TESTS)]
    done = subprocess.run(tests, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
