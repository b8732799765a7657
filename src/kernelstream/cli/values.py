"""Values on the command line: numbers, words, lists, and components such as ``polynomial(degree=4)``."""

from __future__ import annotations

import argparse
import ast
import math
from typing import Any

_WORDS = {"none": None, "null": None, "true": True, "false": False, "inf": math.inf}


def value(text: str) -> Any:
    """A number, True, False, None or a string.

    >>> [value(text) for text in ("3", "1e-3", "median", "none", "True")]
    [3, 0.001, 'median', None, True]
    """
    word = text.strip()
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    for kind in (int, float):
        try:
            return kind(word.replace("_", "") if kind is int else word)
        except ValueError:
            continue
    return word


def parameter(text: str) -> Any:
    """A value, or a component of the library: a name with parameters in parentheses.

    >>> parameter("polynomial(degree=4)")
    Polynomial(degree=4)
    >>> parameter("0.5")
    0.5
    """
    if not text.rstrip().endswith(")"):
        return value(text)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
            raise ValueError
        args = [_literal(node) for node in tree.args]
        params = {str(word.arg): _literal(word.value) for word in tree.keywords}
        name = tree.func.id
    except (SyntaxError, ValueError):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name(parameter=value, ...)") from None
    cls = _component(name)
    try:
        return cls(*args, **params)
    except TypeError as error:
        raise argparse.ArgumentTypeError(f"{name}: {error}") from None


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return _WORDS.get(node.id.lower(), node.id)
    if isinstance(node, ast.Call):
        return parameter(ast.unparse(node))
    return ast.literal_eval(node)


def _component(name: str) -> Any:
    """Class of a registered kernel, loss, update, feature map or budget strategy."""
    from .. import budgets, features, kernels, losses, updates

    known = []
    for module in (kernels, losses, updates, budgets, features):
        if name in module.names():
            made = module.get(name)
            return type(made)
        known += module.names()
    raise argparse.ArgumentTypeError(f"there is no component {name!r}; known are {', '.join(sorted(set(known)))}")


def mark(text: str) -> str:
    """A mark in numbers: one character, or ``space``."""
    text = " " if text == "space" else text
    if len(text) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a single mark such as '.' or ','")
    return text


def listed(text: str) -> list[str]:
    """Words separated by commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def pair(text: str, form: str = "NAME=VALUE") -> tuple[str, str]:
    """``name=value``."""
    name, sign, content = text.partition("=")
    if not sign or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form {form}")
    return name.strip(), content.strip()


def kinds(text: str) -> dict[str, str]:
    """``name=kind,name=kind``, or ``auto`` for none.

    >>> kinds("hour=category,note=ignore")
    {'hour': 'category', 'note': 'ignored'}
    """
    from ..columns.kinds import KINDS

    found = {}
    for item in listed(text):
        if item == "auto":
            continue
        name, kind = pair(item, "COLUMN=KIND")
        kind = "ignored" if kind == "ignore" else kind
        if kind not in KINDS:
            raise argparse.ArgumentTypeError(
                f"{name} cannot be {kind!r}: kinds are {', '.join(kind for kind in KINDS if kind != 'ignored')}, ignore"
            )
        found[name] = kind
    return found
