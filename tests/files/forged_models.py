"""Correctly signed model files with wrong content: none may crash, hang, fill the memory or be refused in odd words.

``python forged_models.py TRIALS [FIRST]`` changes models of every algorithm in TRIALS ways, the i-th by the seed
FIRST + i, and prints one JSON object: how many were refused, loaded, and so on, and every failure with its seed. A file
that loads must also predict and learn a few rows; a ValueError is a good answer there. Trials run in a child process
under limits of memory and of processor time, so that the death of the interpreter is one more result.
"""

from __future__ import annotations

import argparse
import faulthandler
import io
import json
import os
import pickle
import resource
import signal
import struct
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from forgeries import Pool, forge
from honest_models import X, templates

import kernelstream
from kernelstream import model_io

MEMORY = 512 << 20  # bytes that a trial may take beyond what the process had when it was forked
SECONDS = 4  # of processor time for one trial
STUCK = 120  # seconds without a word from the child
WIDEST = 2000  # columns up to which a loaded model is used

ROWS = X[:5]


def attempt(content, engine=None):
    """What becomes of a file: one word, and details where they matter. An engine takes the place of the file's own."""
    try:
        est = kernelstream.load(io.BytesIO(content))
    except model_io.ModelFileError:
        return "refused", ""
    except Exception as error:  # what is wrong with a file must be said in one way
        return "FAILED to refuse", f"{type(error).__name__}: {error}"
    state = est.__dict__.get("_state")
    if state is None:
        return "unfitted", ""
    if est.n_features_in_ > WIDEST:
        return "wide", ""
    if engine is not None:
        est.set_params(engine=engine)
    width = est.n_features_in_
    rows = np.resize(ROWS, (len(ROWS), width)).astype(state["dtype"])
    classes = state.get("classes")
    kind = "used"
    for step in (lambda: use(est, rows), lambda: use(est, sp.csr_array(rows)), lambda: teach(est, rows, classes),
                 lambda: teach(est, sp.csr_array(rows), classes), lambda: use(est, rows)):  # fmt: skip
        try:
            step()
        except ValueError:
            kind = "complained"
        except MemoryError:
            kind = "too large to use"
        except Exception as error:
            return "FAILED in use", f"{type(error).__name__}: {error}"
    return kind, ""


def use(est, rows):
    est.predict(rows)
    if hasattr(est, "decision_function"):
        est.decision_function(rows)


def teach(est, rows, classes):
    if not hasattr(est, "partial_fit"):
        return
    n = rows.shape[0]
    if classes is not None:
        y = np.resize(classes, n) if len(classes) else np.arange(n) % 2
    else:
        outputs = est._state["n_outputs"]
        y = np.linspace(-1, 1, n) if outputs == 1 else np.linspace(-1, 1, n * outputs).reshape(n, outputs)
    est.partial_fit(rows, y)


def child(seeds, made, pool, out):
    """Run trials and write ``seed``, then the answer, to the pipe."""
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)
    with open("/proc/self/statm") as file:
        limit = int(file.read().split()[0]) * resource.getpagesize() + MEMORY
    if not os.environ.get("LD_PRELOAD"):  # an address sanitizer maps all there is
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for seed in seeds:
        name, changes, content = forge(seed, made, pool)
        send(out, (seed, name, changes, None, None, len(content)))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        started = time.process_time()
        kind, details = attempt(content, "python" if seed % 5 == 0 else None)
        signal.setitimer(signal.ITIMER_PROF, 0)
        send(out, (seed, name, changes, kind, details, time.process_time() - started))


def send(out, message):
    data = pickle.dumps(message)
    out.write(struct.pack("<I", len(data)) + data)
    out.flush()


def receive(file):
    head = file.read(4)
    return pickle.loads(file.read(struct.unpack("<I", head)[0])) if len(head) == 4 else None


def run(seeds, made, pool, quiet=True):
    """Counts of answers, failures, and the slowest trial."""
    counts, failures, slowest = {}, [], (-1.0, -1)
    seeds = list(seeds)
    while seeds:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            if quiet:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                child(seeds, made, pool, os.fdopen(writing, "wb"))
                os._exit(0)
            finally:
                os._exit(70)
        os.close(writing)
        last = None
        signal.signal(signal.SIGALRM, lambda *_, pid=pid: os.kill(pid, signal.SIGKILL))
        with os.fdopen(reading, "rb") as file:
            while True:
                signal.alarm(STUCK)
                message = receive(file)
                signal.alarm(0)
                if message is None:
                    break
                last = message
                seed, name, changes, kind, details, seconds = message
                if kind is None:
                    continue
                seeds.pop(0)
                counts[kind] = counts.get(kind, 0) + 1
                slowest = max(slowest, (seconds, seed))
                if kind.startswith("FAILED"):
                    failures.append([seed, name, changes, kind, details])
        status = os.waitpid(pid, 0)[1]
        if seeds:  # it died on the way
            code = os.waitstatus_to_exitcode(status)
            slow = {-signal.SIGPROF: "FAILED: hangs", -signal.SIGKILL: "FAILED: is stuck"}
            kind = slow.get(code, f"FAILED: dies ({code})")
            counts[kind] = counts.get(kind, 0) + 1
            failures.append([seeds.pop(0), last[1] if last else "", last[2] if last else "", kind, ""])
    return counts, failures, slowest


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trials", type=int)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--only", default="", help="models whose name has this in it")
    parser.add_argument("--every", type=int, default=1, help="leave others out: the first of so many models")
    parser.add_argument("--loud", action="store_true", help="show what the child writes to its standard error")
    args = parser.parse_args()
    made = templates(args.only, args.every)
    pool = Pool(made)
    for template in made:
        if attempt(repacked(template))[0] not in ("used", "complained", "unfitted"):
            sys.exit(f"{template.name}: an honest file is not accepted: {attempt(repacked(template))}")
    counts, failures, slowest = run(range(args.first, args.first + args.trials), made, pool, not args.loud)
    print(json.dumps({"models": len(made), "counts": counts, "slowest": slowest, "failures": failures}, indent=1))


def repacked(template):
    entries = {"kernelstream.json": json.dumps(template.header).encode()}
    entries |= {f"arrays/{i}.npy": model_io._npy(a) for i, a in enumerate(template.arrays)}
    return model_io._pack(entries)


if __name__ == "__main__":
    main()
