"""A module of the library as it is where there is no compiled core."""

import importlib.util
import sys


def without_core(name):
    """The module of this name, executed anew while the import of the core fails."""
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    held = sys.modules.get("kernelstream._core")
    sys.modules["kernelstream._core"] = None  # makes the import fail
    try:
        spec.loader.exec_module(module)
    finally:
        if held is None:
            del sys.modules["kernelstream._core"]
        else:
            sys.modules["kernelstream._core"] = held
    return module
