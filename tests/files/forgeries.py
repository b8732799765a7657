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
TAME = [1e308, -1e308, 1e30, -1e30, 5e-324, 0.0, 1.0, -1.0, 1e-30, 0.5]  # numbers that may well pass
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
VALUES = [None, True, False, [], {}, [1, 2], {"$tuple": [1]}, {"$dict": []}, {"$array": 0}, {"$eval": 1}]
VALUES += [["a", "b", "c"], {"a": 1}, [None] * COLUMNS, DEEP]


def pick(rng, options):
    return options[int(rng.integers(len(options)))]


# ---------------------------------------------------------------------- what stands in the header
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


def odd(rng, pool):
    """Something that a value becomes, whatever it was."""
    kind = rng.integers(7)
    if kind == 0:
        return pick(rng, INTEGERS)
    if kind == 1:
        number = float(pick(rng, FLOATS))
        return number if np.isfinite(number) else {"$float": repr(number)}
    if kind == 2:
        return pick(rng, [*TEXTS, *CLASSES])
    if kind == 3:
        return copy.deepcopy(pick(rng, VALUES))
    if kind == 4:
        dtype = pick(rng, ["int64", "float32", "float64", "uint8", "bool", "U3", "M8[s]", "O"])
        return {"$number": [dtype, pick(rng, INTEGERS)]}
    value = copy.deepcopy(pick(rng, [1, "x", []] if kind == 5 else pool.components))
    for _ in range(int(pick(rng, [0, 1, 5, 12, 39, 41, 200]))):  # a tower
        if len(json.dumps(value)) > 50_000:
            break
        right = copy.deepcopy(value) if rng.random() < 0.3 else pick(rng, pool.components)
        pair = {"$component": [pick(rng, ["kernels.Product", "kernels.Sum"]), {"left": value, "right": right}]}
        value = pair if kind == 6 else [value] if rng.random() < 0.5 else {"$tuple": [value]}
    return value


def near(rng, value, pool):
    """A number close to the one that was there, or of another size."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return odd(rng, pool)
    return pick(rng, [value + 1, value - 1, value * 2, -value, value * 1000, value // 2, value + 0.5])


def change_header(rng, header, arrays, pool):
    """A value at any place: left out, elsewhere as well, under another name, or another one."""
    section = pick(rng, [*["state"] * 5, *["parameters"] * 4, *header])
    paths = [path for path in places(header[section], (section,)) if len(path) > 1] or [(section,)]
    path, other, how = pick(rng, paths), pick(rng, paths), rng.integers(8)
    parent, key = get(header, path[:-1]), path[-1]
    if how == 0:
        del parent[key]
    elif how == 1:
        parent[key] = copy.deepcopy(get(header, other))
    elif how == 2:
        within, name = get(header, other[:-1]), other[-1]
        parent[key], within[name] = within[name], parent[key]
    elif how == 3:
        names = [*pool.names, "extra", "members/0/x", "members/99999/t", "map_seed", "warm_X"]
        parent[pick(rng, names)] = parent.pop(key)
    elif how == 4:
        arrays.append(pick(rng, pool.arrays))
        parent[pick(rng, [*pool.names, key])] = {"$array": len(arrays) - 1}
    else:
        parent[key] = near(rng, parent[key], pool) if how < 7 else odd(rng, pool)


def change_class(rng, header, arrays, pool):
    """The class of another model, perhaps with its parameters; or none."""
    other, how = pick(rng, pool.templates), rng.integers(3)
    header["class"] = pick(rng, [*CLASSES, "", 3, None]) if how == 0 else other.header["class"]
    if how == 1:
        header["parameters"] = relocated(other.header["parameters"], len(arrays))
        arrays += [a.copy() for a in other.arrays]


def relocated(node, by):
    """A copy of a document whose arrays come after ``by`` others."""
    if isinstance(node, list):
        return [relocated(child, by) for child in node]
    if isinstance(node, dict):
        return {key: child + by if key == "$array" else relocated(child, by) for key, child in node.items()}
    return node


# ---------------------------------------------------------------------- arrays
def change_numbers(rng, a, pool):
    if a.size == 0 or a.dtype.kind not in "biuf":
        return a
    flat, tame = np.array(a, order="C").reshape(-1), rng.random() < 0.6  # whether all is finite in the end
    if a.dtype.kind == "f":
        values = TAME if tame else FLOATS
    else:
        info = np.iinfo(a.dtype if a.dtype.kind != "b" else np.uint8)
        values = [v for v in [*INTEGERS, info.min, info.max] if info.min <= v <= info.max]
    value, how = pick(rng, values), rng.integers(7)
    with np.errstate(all="ignore"):
        if how == 0:
            flat[:] = value
        elif how == 1:
            flat[rng.integers(flat.size, size=3)] = [pick(rng, values) for _ in range(3)]
        elif how == 2:
            flat[int(rng.integers(flat.size))] = value
        elif how == 3:
            flat[rng.random(flat.size) < 0.3] = value
        elif how == 4 or a.dtype.kind != "f":
            rng.shuffle(flat)
        elif how == 5:
            flat *= flat.dtype.type(value)
        else:
            flat += rng.standard_normal(flat.size).astype(flat.dtype) * 10
    return (np.nan_to_num(flat, posinf=1e30, neginf=-1e30) if tame else flat).reshape(a.shape)


def change_dtype(rng, a, pool):
    with np.errstate(all="ignore"):
        try:
            return a.astype(pick(rng, DTYPES))
        except (ValueError, TypeError, OverflowError):
            return np.zeros(a.shape, pick(rng, DTYPES[:8]))


def change_shape(rng, a, pool):
    axis = int(rng.integers(a.ndim)) if a.ndim else 0
    ways = [
        lambda: np.take(a, range(a.shape[axis] - 1), axis=axis) if a.shape[axis] else a,
        lambda: np.concatenate([a, a], axis=axis),
        lambda: np.take(a, range(0), axis=axis),
        lambda: a.T,
        lambda: a.reshape(-1),
        lambda: a[None],
        lambda: a.reshape(-1)[:1].reshape(()) if a.size else a,
        lambda: np.empty((0, 10**12), a.dtype),
        lambda: np.asfortranarray(a),
    ]
    return pick(rng, ways if a.ndim else ways[3:])()


CHANGES = [*[change_header] * 10, *[change_numbers] * 10, *[change_shape] * 3, *[change_dtype] * 2, change_class]


class Pool:
    """What forgeries are made from: names, arrays and components of all models."""

    def __init__(self, made):
        self.templates = made
        self.names = sorted({name for t in made for name in t.header["state"] or {}})
        self.arrays = [a for t in made[:: max(1, len(made) // 40)] for a in t.arrays]
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
            if change in (change_header, change_class):
                change(rng, header, arrays, pool)
            else:
                i = int(rng.integers(len(arrays)))
                arrays[i] = change(rng, arrays[i], pool)
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
