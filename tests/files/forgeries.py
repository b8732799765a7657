"""Changes of a model file, drawn at random, and the file signed again."""

from __future__ import annotations

import copy
import json

import numpy as np
from honest_models import COLUMNS

from kernelstream import model_io


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
    x:y solvers.NewtonCG features.spectra.Diagonal"""
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
        state[pick(rng, [*pool.names, "extra", "members/0/x", "members/99999/t", "map_seed", "warm_X"])] = state.pop(a)
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
