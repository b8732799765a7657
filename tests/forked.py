"""A process that forks while another thread uses a model, run by test_forks.py.

It prints the cases, and what their children found: "between" for a model between two calls, "refused", or what went
wrong.
"""

import copy
import os
import signal
import threading
import time
import warnings

import numpy as np

import kernelstream as ks
from kernelstream.state import turns
from kernelstream.state.nested import flatten
from kernelstream.trust import Calibrated

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 4))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
MIXED = [{"a": float(row[0]), "b": "xyz"[int(row[1] > 0)]} for row in X]
CASES = {  # models, rows, how many of them at once
    "features": (ks.FeatureClassifier(random_state=0), X, 200),
    "wrapped": (Calibrated(ks.FeatureClassifier(random_state=0)), X, 200),
    "default": (ks.KernelClassifier(size="small", random_state=0), X, 200),
    "few rows": (ks.KernelClassifier(size="small", random_state=0), X, 20),
    "mixed": (ks.KernelClassifier(size="small", random_state=0), MIXED, 100),
    "fit": (ks.FeatureClassifier(random_state=0), X, 200),
}


def same(a, b):
    a, b = flatten(a), flatten(b)
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def rows_of(model):
    return model.state_.get("t") or model.state_["model/t"]


def found(model, est, rows, block):
    """What a child finds; ``est`` learns again what the model has learned, and then both learn on."""
    model.predict(rows[:5])
    counted = rows_of(model)
    alone = copy.deepcopy(est)
    for start in range(0, counted, block):
        alone.learn(rows[start : start + block], y[start : start + block])
    for _ in range(2):
        if not same(alone.state_, model.state_):
            return f"another model after {counted} rows"
        for one in (alone, model):
            one.learn(rows[:50], y[:50])
    return "between"


def in_child(ask):
    """What a function says in a forked process."""
    source, target = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)  # who waits for ever is killed
        try:
            told = ask()
        except RuntimeError as error:
            told = "refused" if "forked" in str(error) else repr(error)
        except BaseException as error:
            told = repr(error)
        os.write(target, told.encode())
        os._exit(0)
    os.close(target)
    with os.fdopen(source) as answer:
        told = answer.read()
    status = os.waitpid(pid, 0)[1]
    return told if os.WIFEXITED(status) else "waits for ever"


def while_learning(est, rows, block, fits):
    """Forks at several moments of a thread that learns."""
    model, over = copy.deepcopy(est), threading.Event()
    model.learn(rows[:block], y[:block])

    def work():
        for start in range(block, len(rows), block):
            if not over.is_set():
                if fits:
                    model.fit(rows[:1000], y[:1000], shuffle=False)
                else:
                    model.learn(rows[start : start + block], y[start : start + block])

    thread = threading.Thread(target=work)
    thread.start()
    for number in range(3):
        time.sleep(0.005 * number)
        yield in_child(lambda: found(model, est, rows, 1000 if fits and rows_of(model) > block else block))
    over.set()
    thread.join()


def while_a_call_goes_on():
    """A fork does not wait for ever: one model is refused, another may be used, and in the parent both."""
    turns.PATIENCE = 0.2
    est = CASES["features"][0]
    busy, free, held, over = copy.deepcopy(est), copy.deepcopy(est), threading.Event(), threading.Event()
    busy.learn(X[:200], y[:200])
    free.learn(X[:200], y[:200])

    def hold():
        with busy._turns:
            held.set()
            over.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    yield in_child(lambda: found(busy, est, X, 200))
    yield in_child(lambda: found(free, est, X, 200))
    yield in_child(lambda: in_child(lambda: found(busy, est, X, 200)))
    over.set()
    thread.join()
    yield found(copy.deepcopy(busy), est, X, 200)
    with busy._turns:  # a thread that forks in a call of its own
        yield in_child(lambda: found(busy, est, X, 200))


if __name__ == "__main__":
    for name, case in CASES.items():
        print(name, *while_learning(*case, name == "fit"), sep=", ", flush=True)
    print("a long call", *while_a_call_goes_on(), sep=", ")
