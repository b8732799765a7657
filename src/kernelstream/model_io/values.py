"""Values of parameters and states as JSON and arrays, and back: the part of a model file that knows about types.

JSON's own types stand for themselves; everything else is a one-key object whose key starts with "$":

========================  =====================================================================
``{"$float": "inf"}``     a float that JSON lacks
``{"$number": [t, v]}``   a numpy scalar of type t
``{"$array": i}``         array number i, stored next to the JSON; every one is used once
``{"$sparse": [...]}``    shape, a bit for each entry, and the entries that are not 0, of an array with many zeros
``{"$csr": [...]}``       data, indices, indptr and shape of a CSR matrix
``{"$tuple": [...]}``     a tuple
``{"$dict": [[k, v]]}``   a dict with any keys
``{"$component": [..]}``  class and parameters of a public component of the library
========================  =====================================================================

A numpy Generator or RandomState is stored as None: a model goes on from the seed in its state.

Decoding never evaluates anything: classes are looked up among the public components of this package, and arrays are
plain numbers, booleans and strings.
"""

from __future__ import annotations

import inspect
import math
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

PACKAGE = __name__.split(".", maxsplit=1)[0]
KINDS = "biufcUS"  # kinds of arrays that hold no Python objects
SPARSE = ("i4", "i8", "f4", "f8")  # types of arrays that may be stored without their zeros
LARGE = 1 << 14  # bytes of an array from which zeros are left out, where they are more than half of it
MAX_DEPTH = 60  # most levels of nesting in a parameter
COMPONENT_DEPTH = 6  # levels that a component inside another counts for,
CHAINS = ("kernels.Sum", "kernels.Product", "kernels.Scale")  # except these: chains of a dozen kernels are usual
MAX_PARTS = 500  # components inside one, in all
REGISTRIES = ("kernels", "losses", "updates", "budgets", "features", "solvers", "estimators")  # users may add to them


def encode(value: Any, arrays: list[np.ndarray], where: str) -> Any:
    """JSON for a value; its arrays are appended to ``arrays``. ``where`` names the value in errors."""
    if isinstance(value, np.generic):
        return {"$number": [str(value.dtype), encode(value.item(), arrays, where)]}
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in KINDS:
            raise ValueError(f"{where} is an array of {value.dtype}, which cannot be stored in a model file")
        if value.nbytes >= LARGE and value.dtype.str[1:] in SPARSE and value.flags.c_contiguous:
            bits = value.reshape(-1).view(f"u{value.itemsize}") != 0  # -0.0 is not 0
            if 2 * np.count_nonzero(bits) < value.size:
                parts = (list(value.shape), np.packbits(bits), value.reshape(-1)[bits])
                return {"$sparse": [encode(part, arrays, where) for part in parts]}
        arrays.append(value)
        return {"$array": len(arrays) - 1}
    if sp.issparse(value):
        csr = value.tocsr()
        return {"$csr": [encode(part, arrays, where) for part in (csr.data, csr.indices, csr.indptr, list(csr.shape))]}
    if isinstance(value, (list, tuple)):
        items = [encode(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, dict):
        pairs = [[encode(k, arrays, where), encode(v, arrays, f"{where}[{k!r}]")] for k, v in value.items()]
        return {"$dict": pairs}
    if isinstance(value, BaseEstimator) and not isinstance(value, type):
        params = {k: encode(v, arrays, f"{where}.{k}") for k, v in value.get_params(deep=False).items()}
        return {"$component": [component_name(type(value), where), params]}
    raise ValueError(f"{where}={value!r} is a {type(value).__name__}, which cannot be stored in a model file")


def decode(value: Any, arrays: list[np.ndarray], depth: int = 0) -> Any:
    """Inverse of :func:`encode`; ValueError for anything it does not write."""
    if depth > MAX_DEPTH:
        raise ValueError("values are nested too deeply")
    if isinstance(value, list):
        return [decode(item, arrays, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ValueError(f"an object with the keys {sorted(value)} stands for no value")
    [(tag, content)] = value.items()
    if tag not in _DECODERS:
        raise ValueError(f"{tag!r} stands for no kind of value")
    try:
        return _DECODERS[tag](content, arrays, depth + 1)
    except (TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise ValueError(f"{tag!r} has unreadable content: {error}") from None


def component_name(cls: type, where: str = "a component") -> str:
    """``module.Class`` of a public component, or ``module:name`` of one that was registered by its user.

    >>> from kernelstream.kernels import Gaussian
    >>> component_name(Gaussian)
    'kernels.Gaussian'
    """
    parts = cls.__module__.split(".")
    if parts[0] == PACKAGE and len(parts) > 1:
        for last in range(2, len(parts) + 1):
            module = ".".join(parts[1:last])
            if _public(module, cls.__name__) is cls:
                return f"{module}.{cls.__name__}"
    key = getattr(cls, "name", cls.__name__)
    for base in cls.__mro__[1:]:
        parts = base.__module__.split(".")
        if parts[0] == PACKAGE and len(parts) > 1 and _registry(parts[1]).get(key) is cls:
            return f"{parts[1]}:{key}"
    raise ValueError(
        f"{where} is a {cls.__module__}.{cls.__qualname__}, which is neither a public component of {PACKAGE} nor "
        f"registered with it, so a model file cannot name it"
    )


def component_class(name: Any) -> type[BaseEstimator]:
    """Class of a name made by :func:`component_name`."""
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is not the name of a component")
    module, colon, key = name.partition(":")
    if colon:
        cls = _registry(module).get(key)
        if cls is None:
            raise ValueError(f"{name!r} is not registered: import the module that defines it before loading")
        return cls
    module, _, key = name.rpartition(".")
    cls = _public(module, key)
    if cls is None:
        raise ValueError(f"{name!r} is not a component of this version of {PACKAGE}")
    return cls


def own_parts(encoded: Any) -> dict[str, str]:
    """Components in an encoded value that their user registered, given as objects or by name, and their modules.

    >>> own_parts(["hinge", {"$component": ["kernels.Gaussian", {"gamma": 1.0}]}])
    {}
    """
    if isinstance(encoded, str):
        found = {f"{kind}:{encoded}": _registry(kind).get(encoded) for kind in REGISTRIES}
        modules = {name: cls.__module__ for name, cls in found.items() if cls is not None}
        return {name: module for name, module in modules.items() if not module.startswith(f"{PACKAGE}.")}
    if isinstance(encoded, dict) and "$component" in encoded:
        name, params = encoded["$component"]
        return own_parts(name.partition(":")[2]) | own_parts(list(params.values()))
    items = encoded if isinstance(encoded, list) else encoded.values() if isinstance(encoded, dict) else ()
    return {name: module for item in items for name, module in own_parts(item).items()}


def missing_parts(parts: Any) -> str:
    """What to do about components of :func:`own_parts` that are not registered now; nothing if all of them are.

    Nothing here imports a module because a file names it.
    """
    if not isinstance(parts, dict):
        return ""
    for name, module in parts.items():
        kind, _, key = name.partition(":")
        if kind in REGISTRIES and key not in _registry(kind):
            how = f"import {module} (on the command line: --import {module})"
            if module == "__main__":
                how = "it was defined in a script or a session, so define and register it again"
            elif not all(part.isidentifier() for part in str(module).split(".")):
                how = "import the module that registers it"
            return f"it uses the part {key!r}, which is not one of {PACKAGE}'s own: {how} before loading"
    return ""


def outline(encoded: Any) -> str:
    """Text for an encoded value, made without building anything: for components that cannot be built here."""
    if isinstance(encoded, dict) and "$component" in encoded:
        name, params = encoded["$component"]
        text = ", ".join(f"{key}={outline(value)}" for key, value in params.items())
        return f"{name.replace(':', '.').rpartition('.')[2]}({text})"
    if isinstance(encoded, dict):
        [(_, content)] = encoded.items()
        return outline(content)
    return f"[{', '.join(map(outline, encoded))}]" if isinstance(encoded, list) else repr(encoded)


def build(cls: type[BaseEstimator], params: dict[str, Any]) -> Any:
    """An object of a component class; a parameter it does not have is a ValueError."""
    known = inspect.signature(cls.__init__).parameters
    unknown = [name for name in params if name not in known]
    if unknown:
        raise ValueError(f"{cls.__name__} has no parameter {', '.join(map(repr, unknown))}")
    return cls(**params)


def _module(name: str) -> Any:
    """A public module of the package, or None."""
    if not all(part.isidentifier() and not part.startswith("_") for part in name.split(".")):
        return None
    try:
        return import_module(f"{PACKAGE}.{name}")
    except ImportError:  # there is none, or it needs a package that is not here
        return None


def _public(module: str, name: str) -> type[BaseEstimator] | None:
    """A component class that a public module exports, or None."""
    home = _module(module)
    cls = getattr(home, name, None) if name.isidentifier() and not name.startswith("_") else None
    if not (isinstance(cls, type) and issubclass(cls, BaseEstimator) and cls.__module__.startswith(f"{PACKAGE}.")):
        return None
    return cls if name in getattr(home, "__all__", (name,)) else None


def _registry(module: str) -> dict[str, Any]:
    home = _module(module)
    for holder in (home, getattr(home, "_base", None)):
        if hasattr(holder, "CATALOGUE"):
            return holder.CATALOGUE.parts  # type: ignore[union-attr]
    return {}


def _sparse(content: Any, arrays: list[np.ndarray], depth: int) -> np.ndarray:
    """No larger than 64 times what the file holds of it: every entry has a bit there."""
    shape, bits, entries = (decode(part, arrays, depth) for part in content)
    size = math.prod(shape)
    fits = bits.dtype == np.uint8 and bits.shape == (-(-size // 8),) and entries.dtype.str[1:] in SPARSE
    there = np.unpackbits(bits, count=size).view(bool) if fits else bits
    if not fits or entries.shape != (np.count_nonzero(there),):
        raise ValueError("the parts of an array without its zeros do not fit each other")
    array = np.zeros(size, entries.dtype)
    array[there] = entries
    return array.reshape(shape)


def _csr(content: Any, arrays: list[np.ndarray], depth: int) -> Any:
    data, indices, indptr, shape = (decode(part, arrays, depth) for part in content)
    if indices.dtype.kind != "i" or indptr.dtype.kind != "i":
        raise ValueError("the indices of a sparse matrix must be integers")
    matrix = sp.csr_matrix((data, indices, indptr), shape=tuple(shape))
    matrix.check_format(full_check=True)
    return matrix


def _component(content: Any, arrays: list[np.ndarray], depth: int) -> Any:
    name, params = content
    if _count_parts(params) >= MAX_PARTS:
        raise ValueError(f"{name!r} is made of too many parts")
    inside = depth if name in CHAINS else depth + COMPONENT_DEPTH
    return build(component_class(name), {key: decode(value, arrays, inside) for key, value in params.items()})


def _count_parts(node: Any) -> int:
    """Components in an encoded value."""
    count, todo = 0, [node]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            count += "$component" in node
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
    return count


def _number(content: Any, arrays: list[np.ndarray], depth: int) -> np.generic:
    dtype = np.dtype(content[0])
    if dtype.kind not in KINDS:
        raise ValueError(f"a number of type {dtype}")
    return dtype.type(decode(content[1], arrays, depth))


def _float(content: Any, arrays: list[np.ndarray], depth: int) -> float:
    if content not in ("inf", "-inf", "nan"):
        raise ValueError(f"a float {content!r}")
    return float(content)


def _array(content: Any, arrays: list[np.ndarray], depth: int) -> np.ndarray:
    if isinstance(content, bool) or not isinstance(content, int) or not 0 <= content < len(arrays):
        raise ValueError(f"there is no array {content!r}")
    array, arrays[content] = arrays[content], None  # type: ignore[call-overload]
    if array is None:
        raise ValueError(f"array {content} stands for two values")
    return array


_DECODERS = {
    "$float": _float,
    "$number": _number,
    "$array": _array,
    "$sparse": _sparse,
    "$csr": _csr,
    "$tuple": lambda content, arrays, depth: tuple(decode(item, arrays, depth) for item in content),
    "$dict": lambda content, arrays, depth: {decode(k, arrays, depth): decode(v, arrays, depth) for k, v in content},
    "$component": _component,
}
