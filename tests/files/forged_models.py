"""Correctly signed model files with wrong content: none may crash, hang, fill the memory or be refused in odd words.

``python forged_models.py TRIALS [FIRST]`` changes models of every algorithm in TRIALS ways, the i-th by the seed
FIRST + i, and prints one JSON object: how many were refused, loaded, and so on, and every failure with its seed. A file
that loads must also predict and learn a few rows; a ValueError is a good answer there. Trials run in a child process
under limits of memory and of processor time, so that the death of the interpreter is one more result.
"""

from __future__ import annotations

import argparse
import copy
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
import zipfile

import numpy as np
import scipy.sparse as sp

import kernelstream
from kernelstream import estimators, kernels, losses, model_io, updates, zoo
from kernelstream.estimators import DoublySchedule, DoublyStep, RRFStep
from kernelstream.features import Nystroem, RandomFeatures, RandomFourier, RawFeatures, TaylorFeatures, TensorSketch
from kernelstream.solvers import Online

MEMORY = 512 << 20  # bytes that a trial may take beyond what the process had when it was forked
SECONDS = 4  # of processor time for one trial
STUCK = 120  # seconds without a word from the child
WIDEST = 2000  # columns up to which a loaded model is used
COLUMNS = 3

# ---------------------------------------------------------------------- honest models
_rng = np.random.default_rng(0)
X = _rng.random((48, COLUMNS))
TARGETS = {
    "binary": (X[:, 0] > 0.5).astype(int),
    "multiclass": np.array(["a", "bb", "c"])[(X[:, 0] * 3).astype(int)],
    "regression": np.sin(3 * X[:, 0]) + X[:, 1],
    "novelty": None,
}
SMALL = {
    "n_components": 4,
    "variance_features": 4,
    "max_iter": 5,
}


def small(est):
    """The same estimator with fewer of everything, so that a trial is quick."""
    if getattr(est, "learners", None) is not None:
        est.learners = [small(learner) for learner in est.learners[::5]]
    names = est.get_params()
    changes = {name: SMALL[name.split("__")[-1]] for name in names if name.split("__")[-1] in SMALL}
    if "schedule" in names:
        changes |= {"step": DoublyStep(eta=0.5), "schedule": DoublySchedule(5, 4)}
    if isinstance(names.get("solver"), Online):
        changes["solver__n_columns"] = 40
    return est.set_params(**changes)


def taught(est, task, rows=slice(None), how=np.asarray):
    part = how(X[rows])
    y = TARGETS[task]
    est = copy.deepcopy(est)
    if y is None:
        est.partial_fit(part)
    elif hasattr(est, "partial_fit"):
        est.partial_fit(part, y[rows])
    else:
        est.fit(part, y[rows])
    return est


def honest():
    """Name and model: every algorithm for every task, then other parts and stages."""
    for name in zoo.names():
        recipe = zoo.get(name)
        for task in recipe.tasks:
            options = {"budget": 64 if name.startswith("omkl") else 4} if "budget" in recipe.parameters else {}
            options |= {"n_components": 4} if "n_components" in recipe.parameters else {}
            options |= {"gamma": 1.0} if "gamma" in recipe.parameters else {}
            est = small(zoo.make(name, task, random_state=0, **options))
            yield f"{name} {task}", taught(est, task)
    fourier = RandomFourier(n_components=4, gamma=1.0)
    sparse = sp.csr_array
    short = slice(0, 20)

    def f32(part):
        return part.astype(np.float32)

    others = {
        "averaged": estimators.FeatureClassifier(fourier, "logistic", updates.Averaged("ogd"), random_state=0),
        "standardized": estimators.FeatureClassifier(fourier, standardize=True, class_weight="balanced"),
        "weighted": estimators.FeatureClassifier(fourier, class_weight={0: 2.0, 1: 0.5}, random_state=0),
        "orthogonal": estimators.FeatureClassifier(RandomFourier(n_components=4, gamma=1.0, sampling="orthogonal")),
        "structured": estimators.FeatureClassifier(RandomFourier(n_components=4, gamma=1.0, sampling="structured")),
        "qmc": estimators.FeatureClassifier(RandomFourier("matern", n_components=4, gamma=1.0, sampling="qmc")),
        "nystroem map": estimators.FeatureClassifier(Nystroem(n_components=4, gamma=1.0), random_state=0),
        "landmarks": estimators.FeatureClassifier(Nystroem(landmarks=X[:3], gamma=1.0), random_state=0),
        "sketch": estimators.FeatureClassifier(TensorSketch(n_components=6), random_state=0),
        "random": estimators.FeatureClassifier(RandomFeatures("arc_cosine", 6), random_state=0),
        "composed": estimators.FeatureClassifier(
            RandomFeatures(kernels.Gaussian(1.0) * kernels.Linear() + 0.5 * kernels.Laplacian("median"), 2)
        ),
        "taylor": estimators.OnlineRidgeClassifier(TaylorFeatures(degree=2, gamma=0.5), forecaster="awv"),
        "taylor, growing": estimators.OnlineRidgeClassifier(TaylorFeatures(degree="auto", gamma=0.5)),
        "raw": estimators.NewtonClassifier(RawFeatures(), diagonal=True),
        "arow": estimators.AROWClassifier(fourier, diagonal=True, intercept=True, random_state=0),
        "ridges": estimators.OnlineRidgeClassifier(fourier, lam="auto", forgetting=0.9, intercept=True),
        "moving": estimators.NystroemClassifier(budget=4, gamma=1.0, refresh=6, random_state=0),
        "unfilled": estimators.NystroemClassifier(budget=90, gamma=1.0, random_state=0),
        "unbounded": estimators.BudgetClassifier(gamma=1.0, budget=None),
        "polynomial": estimators.BudgetClassifier(kernels.Polynomial(2), budget=4, strategy="replace"),
        "generator": estimators.FeatureClassifier(fourier, random_state=np.random.default_rng(1)),
        "random state": estimators.FeatureClassifier(fourier, random_state=np.random.RandomState(1)),
        "mixture": estimators.RRFClassifier(4, 1.0, "mixture", random_state=0),
        "low rank": estimators.RRFClassifier(4, 1.0, "low_rank", step=RRFStep(batch_size=7)),
        "online binning": estimators.BinningClassifier(n_components=4, gamma=1.0, solver=Online(n_columns=40)),
        "binning": estimators.BinningClassifier(n_components=4, lam=0.1, gamma=1.0, solver="cd", random_state=0),
    }
    for name, est in others.items():
        yield name, taught(est, "binary", how=sparse if name in ("weighted", "unbounded") else np.asarray)
    for name in ("averaged", "moving", "unbounded", "polynomial", "mixture", "online binning", "taylor"):
        yield f"{name}, several classes", taught(others[name], "multiclass", how=f32)
    waiting = {
        "feature": estimators.FeatureClassifier(RandomFourier(n_components=4), random_state=0),
        "budget": estimators.BudgetClassifier(budget=4),
        "nystroem": estimators.NystroemClassifier(budget=4),
        "rrf": estimators.RRFClassifier(4, random_state=0),
        "ensemble": estimators.MultiKernelClassifier(
            [estimators.BudgetClassifier(budget=4), estimators.FeatureClassifier(fourier)], random_state=0
        ),
        "doubly": small(estimators.DoublyStochasticClassifier(gamma="median", random_state=0)),
    }
    for name, est in waiting.items():
        yield f"{name}, waiting", taught(est, "binary", short)
        if name not in ("rrf",):
            yield f"{name}, waiting sparse", taught(est, "binary", short, sparse)
    many = estimators.OnlineRidge(fourier, random_state=0)
    many.partial_fit(X, np.stack([X[:, 0], X[:, 1]], axis=1))
    yield "two targets", many
    members = [estimators.FeatureRegressor(fourier), estimators.BudgetRegressor(gamma=1.0, budget=4)]
    yield "mixed ensemble", taught(estimators.MultiKernelRegressor(members, standardize=True), "regression")
    points = small(estimators.DoublyStochasticGP(gamma=1.0, noise=0.1, points=X[:3], random_state=0))
    yield "points", taught(points, "regression")
    yield "huber", taught(estimators.FeatureRegressor(fourier, losses.Huber(2.0)), "regression", short)
    yield "unfitted", estimators.FeatureClassifier()


class Template:
    """A model file taken apart."""

    def __init__(self, name, content):
        self.name = name
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = {info.filename: archive.read(info) for info in archive.infolist()}
        self.header = json.loads(entries.pop("kernelstream.json"))
        self.arrays = [np.load(io.BytesIO(entry)) for entry in entries.values()]


def templates(only=""):
    warnings.simplefilter("ignore")
    made = []
    for name, est in honest():
        if only in name:
            made.append(Template(name, model_io.to_bytes(est, {"rows": 3, "mean": X.mean(axis=0)})))
    return made


# ---------------------------------------------------------------------- forgeries
def words(text):
    return text.split()


FLOATS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, -0.0, -1.0, 1e-300, 1e30, 0.5, 2.0**31, 2.0**63, 1e6]
INTEGERS = [0, 1, -1, 2, 3, 5, 7, 64, 100, 255, 1000, 65536, 10**6, 10**9, 10**30, 10**400, 2**31 - 1, 2**31, 2**53]
INTEGERS += [2**62, 2**63 - 1, 2**63, 2**64, -(2**31), -(2**63)]
TEXTS = words(
    """auto median scale native python torch hedge uniform shared weights stochastic hinge squared logistic softmax x
    gaussian linear polynomial adagrad ogd merge forgetron project projectron remove_redundant stop oskl float32 int8
    orthogonal structured qmc cd online cg mixture low_rank"""
)
TEXTS += ["", "é\ud800", "a" * 5000]
CLASSES = words(
    """os.system river.RiverClassifier onnx.x kernels.Gaussian cli.main estimators.StreamEstimator kernels:gaussian
    x:y solvers.Online features.spectra.Diagonal"""
)
DEEP = "as deep as no encoder goes"
DTYPES = ["f4", "f8", ">f8", "f2", "i4", "i8", "u8", "u1", "b1", "c16", "U3", "S2", "U0", "g"]


def oddity(rng):
    """Something that a number or a string in a header becomes."""
    kind = rng.integers(6)
    if kind == 0:
        return pick(rng, INTEGERS)
    if kind == 1:
        value = pick(rng, FLOATS)
        return float(value) if np.isfinite(value) else {"$float": repr(float(value))}
    if kind == 2:
        return pick(rng, TEXTS)
    if kind == 3:
        return pick(
            rng, [None, True, False, [], {}, [1, 2], {"$tuple": [1]}, {"$dict": []}, {"$array": 0}, {"$eval": 1}]
        )
    if kind == 4:
        return {
            "$number": [
                pick(rng, ["int64", "float32", "float64", "uint8", "bool", "U3", "M8[s]", "O"]),
                pick(rng, INTEGERS),
            ]
        }
    if rng.random() < 0.2:
        return DEEP
    value = pick(rng, [1, "x", []])
    for _ in range(int(pick(rng, [1, 5, 39, 41, 200]))):
        value = [value] if rng.random() < 0.5 else {"$tuple": [value]}
    return value


def near(rng, value):
    """A number close to the one that was there, or of another size."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return oddity(rng)
    return pick(rng, [value + 1, value - 1, value * 2, -value, value * 1000, value // 2, value + 0.5])


def pick(rng, options):
    return options[int(rng.integers(len(options)))]


def places(node, path=()):
    """Paths to every value of a JSON document."""
    yield path
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def get(node, path):
    for key in path:
        node = node[key]
    return node


def put(node, path, value):
    get(node, path[:-1])[path[-1]] = value


def change_numbers(rng, header, arrays, pool):
    i = int(rng.integers(len(arrays))) if arrays else None
    if i is None or arrays[i].size == 0 or arrays[i].dtype.kind not in "biuf":
        return
    array = arrays[i] = np.array(arrays[i], order="K")
    if array.dtype.kind == "f":
        values = FLOATS
    else:
        info = np.iinfo(array.dtype if array.dtype.kind != "b" else np.uint8)
        values = [v for v in [*INTEGERS, info.min, info.max] if info.min <= v <= info.max]
    flat = array.reshape(-1)
    how = rng.integers(4)
    with np.errstate(all="ignore"):
        if how == 0:
            flat[:] = pick(rng, values)
        elif how == 1:
            flat[rng.integers(flat.size, size=3)] = [pick(rng, values) for _ in range(3)]
        elif how == 2:
            flat[int(rng.integers(flat.size))] = pick(rng, values)
        else:
            rng.shuffle(flat)
    arrays[i] = flat.reshape(array.shape)


def tame_numbers(rng, header, arrays, pool):
    """Numbers that are finite, and may well pass."""
    some = [i for i, a in enumerate(arrays) if a.dtype.kind == "f" and a.size]
    if not some:
        return
    i = pick(rng, some)
    flat = np.array(arrays[i], order="C").reshape(-1)
    value = pick(rng, [1e308, -1e308, 1e30, -1e30, 5e-324, 0.0, 1.0, -1.0, 1e-30, 0.5])
    with np.errstate(all="ignore"):
        how = rng.integers(4)
        if how == 0:
            flat[:] = value
        elif how == 1:
            flat[rng.random(flat.size) < 0.3] = value
        elif how == 2:
            flat *= flat.dtype.type(value)
        else:
            flat += rng.standard_normal(flat.size).astype(flat.dtype) * 10
    arrays[i] = np.nan_to_num(flat, posinf=1e30, neginf=-1e30).reshape(arrays[i].shape)


def change_dtype(rng, header, arrays, pool):
    if arrays:
        i = int(rng.integers(len(arrays)))
        with np.errstate(all="ignore"):
            try:
                arrays[i] = arrays[i].astype(pick(rng, DTYPES))
            except (ValueError, TypeError, OverflowError):
                arrays[i] = np.zeros(arrays[i].shape, pick(rng, DTYPES[:8]))


def change_shape(rng, header, arrays, pool):
    if not arrays:
        return
    i = int(rng.integers(len(arrays)))
    a = arrays[i]
    axis = int(rng.integers(a.ndim)) if a.ndim else 0
    how = rng.integers(9)
    if how == 0 and a.ndim:
        a = np.take(a, range(a.shape[axis] - 1), axis=axis) if a.shape[axis] else a
    elif how == 1 and a.ndim:
        a = np.concatenate([a, a], axis=axis)
    elif how == 2:
        a = a.T
    elif how == 3:
        a = a.reshape(-1)
    elif how == 4:
        a = a[None]
    elif how == 5 and a.ndim:
        a = np.take(a, range(0), axis=axis)
    elif how == 6:
        a = a.reshape(-1)[:1].reshape(()) if a.size else a
    elif how == 7:
        a = np.empty((0, 10**12), a.dtype)
    else:
        a = np.asfortranarray(a)
    arrays[i] = a


def change_state(rng, header, arrays, pool):
    state = header["state"]
    if not isinstance(state, dict) or not state:
        return
    names = list(state)
    a, b = pick(rng, names), pick(rng, names)
    how = rng.integers(7)
    if how == 0:
        del state[a]
    elif how == 1:
        state[a], state[b] = state[b], state[a]
    elif how == 2:
        state[a] = state[b]
    elif how == 3:
        state[a] = near(rng, state[a])
    elif how == 4:
        state[a] = oddity(rng)
    elif how == 5:
        state[pick(rng, [*pool.names, "extra", "m0_x", "m99999_t", "map_seed", "warm_X"])] = state.pop(a)
    else:
        arrays.append(pick(rng, pool.arrays))
        state[pick(rng, [*pool.names, a])] = {"$array": len(arrays) - 1}


def change_parameters(rng, header, arrays, pool):
    parameters = header["parameters"]
    if not isinstance(parameters, dict):
        return
    paths = [path for path in places(parameters) if path]
    if not paths:
        return
    path = pick(rng, paths)
    how = rng.integers(5)
    if how <= 1:
        put(parameters, path, near(rng, get(parameters, path)))
    elif how == 2:
        put(parameters, path, oddity(rng))
    elif how == 3:
        put(parameters, path, copy.deepcopy(pick(rng, pool.components)))
    else:
        value = copy.deepcopy(pick(rng, pool.components))
        for _ in range(int(pick(rng, [1, 4, 12, 30]))):
            pair = ["kernels.Product", "kernels.Sum"][int(rng.integers(2))]
            value = {
                "$component": [
                    pair,
                    {
                        "left": value,
                        "right": copy.deepcopy(value) if rng.random() < 0.3 else pick(rng, pool.components),
                    },
                ]
            }
            if len(json.dumps(value)) > 50_000:
                break
        put(parameters, path, value)


def change_generator(rng, header, arrays, pool):
    """A random_state in some state of its own."""
    kind = pick(rng, ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"])
    bits = getattr(np.random, kind)(1)
    encode = model_io.encode
    if kind == "MT19937" and rng.random() < 0.5:
        value = encode(np.random.RandomState(bits), arrays, "x")
    else:
        value = encode(np.random.Generator(bits), arrays, "x")
    path = pick(rng, [path for path in places(value) if path and not isinstance(get(value, path), (list, dict))])
    put(value, path, oddity(rng) if rng.random() < 0.5 else pick(rng, INTEGERS))
    header["parameters"]["random_state"] = value


def change_class(rng, header, arrays, pool):
    how = rng.integers(3)
    if how == 0:
        header["class"] = pick(rng, pool.classes)
    elif how == 1:
        other = pick(rng, pool.templates)
        header["class"], header["parameters"] = other.header["class"], copy.deepcopy(other.header["parameters"])
        header["parameters"] = relocated(header["parameters"], len(arrays))
        arrays += [a.copy() for a in other.arrays]
    else:
        header["class"] = pick(rng, [*CLASSES, "", 3, None])


def relocated(node, by):
    """A document whose arrays come after ``by`` others."""
    if isinstance(node, list):
        return [relocated(child, by) for child in node]
    if isinstance(node, dict):
        if set(node) == {"$array"}:
            return {"$array": node["$array"] + by}
        return {key: relocated(child, by) for key, child in node.items()}
    return node


def change_header(rng, header, arrays, pool):
    key = pick(rng, list(header))
    how = rng.integers(4)
    if how == 0:
        del header[key]
    elif how == 1:
        header[key] = oddity(rng)
    elif how == 2:
        header["feature_names"] = pick(rng, [["a", "b", "c"], ["a"], "abc", 3, [1, 2, 3], {"a": 1}, [None] * COLUMNS])
    else:
        paths = [path for path in places(header) if path]
        put(header, pick(rng, paths), oddity(rng))


CHANGES = [
    *[tame_numbers] * 6,
    *[change_numbers] * 4,
    *[change_state] * 5,
    *[change_parameters] * 4,
    *[change_shape] * 3,
    *[change_dtype] * 2,
    change_generator,
    change_class,
    change_header,
]


class Pool:
    """What forgeries are made from: names, arrays and components of all models."""

    def __init__(self, made):
        self.templates = made
        self.names = sorted({name for t in made for name in t.header["state"] or {}})
        self.arrays = [a for t in made[:: max(1, len(made) // 40)] for a in t.arrays]
        self.classes = sorted({t.header["class"] for t in made})
        self.components = [
            part
            for template in made
            for path in places(template.header["parameters"])
            for part in [get(template.header["parameters"], path)]
            if isinstance(part, dict) and "$component" in part and "$array" not in json.dumps(part)
        ][::7]


def forge(seed, made, pool):
    """The file of one trial."""
    rng = np.random.default_rng(seed)
    template = made[seed % len(made)]
    header, arrays = copy.deepcopy(template.header), [a.copy(order="K") for a in template.arrays]
    done = []
    for _ in range(int(pick(rng, [1, 1, 1, 2, 3]))):
        change = pick(rng, CHANGES)
        done.append(change.__name__)
        try:
            change(rng, header, arrays, pool)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError):
            done[-1] += "?"  # an earlier change has left nothing for this one
    if isinstance(header, dict) and "arrays" in header and rng.random() > 0.02:
        header["arrays"] = [{"dtype": a.dtype.str, "shape": list(a.shape)} for a in arrays]
    try:
        text = json.dumps(header)
    except ValueError:  # a part was put into itself: no file can say that
        text = json.dumps(template.header)
    text = text.replace(f'"{DEEP}"', "[" * 50_000 + "]" * 50_000).encode()
    entries = {"kernelstream.json": text}
    entries |= {f"arrays/{i}.npy": model_io._npy(a) for i, a in enumerate(arrays)}
    return template.name, "+".join(done), model_io._pack(entries)


# ---------------------------------------------------------------------- trials
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
    parser.add_argument("--loud", action="store_true", help="show what the child writes to its standard error")
    args = parser.parse_args()
    made = templates(args.only)
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
