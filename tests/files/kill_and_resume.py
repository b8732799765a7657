"""Kills a training process at one operation on files in so many, and lets another one go on.

Arguments: a folder, the first operation, the distance to the next. The process that goes on is killed as well, and a
third one gets to its end: it must leave the same model file as one that was never disturbed. Prints how many kills
there were, and how many of them left something to go on from. Run by test_checkpoint.py in a process of its own: it
forks before any thread has been started.
"""

import contextlib
import importlib
import os
import shutil
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from kills import count_down, lived


def train(argv, steps=0):
    """How a training process ends, and the modules that it has used."""

    def task(out, real=os.write):
        from kernelstream import cli

        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        count_down(steps)
        assert cli.main(argv) == 0
        real(out, "\n".join(sys.modules).encode())

    return lived(task)


def main(folder, first, every):
    home = Path(folder)
    plain, model, kept = home / "plain.ks", home / "model.ks", home / "kept"
    options = ["--block", "256", "-a", "fogd", "--n-components", "40", "--on-error", "skip", "--quiet"]
    command = ["train", str(home / "data.svm"), *options]
    _, used = train([*command, "--model", str(plain), "--checkpoint", str(home / "first")])
    for name in used.decode().splitlines():  # so that forked processes learn from the start, and do not import
        if name.startswith(("kernelstream", "numpy", "scipy", "sklearn", "rich")):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    command += ["--model", str(model), "--checkpoint", str(kept), "--every", "512", "--keep", "2", "--resume"]
    ends, left = [-1], []
    for steps in range(first, 10**9, every):
        if ends[0] == 0:  # there are no more operations than that
            break
        shutil.rmtree(kept, ignore_errors=True)
        model.unlink(missing_ok=True)
        ends = []
        for fatal in (steps, 1 + steps % 17, 0):
            ends.append(train(command, fatal)[0])
            if ends[-1]:
                left.append(any(kept.glob("checkpoint-*.ks")))
        assert model.read_bytes() == plain.read_bytes(), "the resumed run ended with another model"
        assert not list(kept.glob("*.tmp"))
    print(len(left), sum(left))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
