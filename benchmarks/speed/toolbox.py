# ruff: noqa: E402 - the thread limits must be set before numpy loads its BLAS
"""Speed beside the authors' own C++ toolbox for online kernel learning (LIBOL/KOL), in one run.

    python benchmarks/speed/toolbox.py --sources PATH/TO/KOL --eigen PATH/TO/EIGEN [--only rbp,fogd] [--float 64]

The toolbox is built from its sources, with ``-O3 -march=native``. It gets a9a's training rows as a file in the format
of LIBSVM and reports the seconds of its learning by the clock on the wall, while another thread of it reads; ours are
seconds of the same clock for ``learn`` on the same rows in CSR, in calls of 1,000, on one thread. Both take turns on an
idle machine, and the best of each counts.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "KERNELSTREAM_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import math
import re
import subprocess
import tempfile
import time

import numpy as np
from sklearn.datasets import dump_svmlight_file

from kernelstream import datasets, zoo

GAMMA, BUDGET, ETA = 0.01, 1000, 0.1
# recipe: (its parameters, the program's options)
LEARNERS = {
    "perceptron": ({}, "perceptron"),
    "ogd": ({"eta": ETA}, f"ogd -eta {ETA}"),
    "rbp": ({"budget": BUDGET}, f"rbp -B {BUDGET}"),
    "forgetron": ({"budget": BUDGET}, f"forgetron -B {BUDGET}"),
    "bpas": ({"budget": BUDGET, "C": 1.0}, f"bpas -B {BUDGET} -cbpas 1"),
    "bogd": ({"budget": BUDGET, "eta": ETA, "lam": 1e-6}, f"bogd -B {BUDGET} -eta {ETA}"),
    "projectron": ({"budget": BUDGET}, f"projectron -B {BUDGET}"),
    "projectronpp": ({"budget": BUDGET}, f"projectronpp -B {BUDGET}"),
    "nogd": ({"budget": BUDGET, "rank": 200, "eta": ETA}, f"nogd -B {BUDGET} -knogd 200 -eta {ETA} -eta1 {ETA}"),
    "fogd": ({"n_components": 4000, "eta": 4000 * 5e-4}, "fogd -D 4000 -eta 0.0005"),
}


def built(sources, eigen, folder):
    """The toolbox's program, compiled here; its labels are of type char, which has no sign on ARM."""
    program, parts = f"{folder}/KOL", ("", "/data", "/loss", "/common", "/kernel")
    includes = [f"-I{path}" for path in (*(f"{sources}/src{part}" for part in parts), eigen, f"{eigen}/Eigen")]
    files = [f"{sources}/src/{name}.cpp" for name in ("main", "Params", "data/basic_io")]
    options = ["-O3", "-march=native", "-fsigned-char", "-fpermissive", "-w"]
    subprocess.run(["g++", *options, *includes, *files, "-lpthread", "-o", program], check=True)
    return program


def ours(name, X, y):
    """Seconds, and percent right."""
    model = zoo.make(name, gamma=GAMMA, random_state=0, **LEARNERS[name][0])
    start = time.perf_counter()
    scores = [model.learn(X[i : i + 1000], y[i : i + 1000]) for i in range(0, len(y), 1000)]
    return time.perf_counter() - start, 100 * np.mean((np.concatenate(scores) >= 0) == (y > 0))


def theirs(name, program, file):
    """The same, as the program reports them."""
    options = ["-i", file, "-gamma", str(GAMMA), "-opt", *f"kernel-{LEARNERS[name][1]}".split()]
    text = subprocess.run([program, *options], capture_output=True, text=True, check=True).stdout
    found = (re.search(rf"{what}: *([\d.]+)", text) for what in ("Learning time", "Learn acuracy"))
    return [float(match[1]) if match else math.nan for match in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sources", required=True, help="folder of the toolbox")
    parser.add_argument("--eigen", required=True, help="folder of Eigen 3, which the toolbox needs")
    parser.add_argument("--only", default=",".join(LEARNERS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--float", type=int, default=64, choices=(32, 64))
    arguments = parser.parse_args()
    data = datasets.load("a9a", split="train")
    X, y = data.X.astype(f"float{arguments.float}"), np.where(data.y > 0, 1, -1)
    rows = f"a9a, {X.shape[0]} rows in CSR, float{arguments.float}"
    print(f"{rows}, one thread, seconds on the wall, gamma {GAMMA}, budget {BUDGET}\n")
    print("| | seconds | toolbox | times faster | right % | toolbox % |\n|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        program, file = built(arguments.sources, arguments.eigen, folder), f"{folder}/a9a.txt"
        dump_svmlight_file(X, y, file, zero_based=False)
        for name in arguments.only.split(","):
            pairs = [(ours(name, X, y), theirs(name, program, file)) for _ in range(arguments.repeats)]
            mine, other = (min(side) for side in zip(*pairs, strict=True))
            line = f"{mine[0]:.3f} | {other[0]:.2f} | {other[0] / mine[0]:.1f} | {mine[1]:.2f} | {other[1]:.2f}"
            print(f"| {name} | {line} |", flush=True)


if __name__ == "__main__":
    main()
