"""The modules of parts and of an estimator that CONTRIBUTING.md shows, built and imported as its reader would."""

import contextlib
import importlib
import sys
from pathlib import Path

from pages import ROOT, blocks

from kernelstream import estimators
from kernelstream.budgets import _base as budgets
from kernelstream.features import _base as features
from kernelstream.kernels import _base as kernels
from kernelstream.losses import _base as losses
from kernelstream.registry import plugins as _plugins
from kernelstream.registry import twins as _twins
from kernelstream.registry.names import home
from kernelstream.updates import _base as updates
from kernelstream.zoo import _registry as zoo

PAGE = ROOT / "CONTRIBUTING.md"
NAME = "my_parts"
ESTIMATOR = "my_estimator"

_CATALOGUES = [module.CATALOGUE.parts for module in (kernels, losses, updates, budgets, features, zoo, estimators)]


def written(folder: Path, name: str = NAME) -> Path:
    """A module of the page in a folder."""
    path = folder / f"{name}.py"
    path.write_text("\n\n".join(block.code for block in blocks(PAGE) if block.mark == path.name), encoding="utf-8")
    return path


@contextlib.contextmanager
def undone():
    """Whatever is registered or imported by that name inside is forgotten afterwards."""
    before = [dict(catalogue) for catalogue in _CATALOGUES]
    told, path, asked = set(_twins._WARNED), list(sys.path), _plugins._asked
    try:
        yield
    finally:
        for catalogue, kept in zip(_CATALOGUES, before, strict=True):
            catalogue.clear()
            catalogue.update(kept)
        _twins._WARNED.clear()
        _twins._WARNED.update(told)
        sys.path[:] = path
        for name in (NAME, ESTIMATOR):
            sys.modules.pop(name, None)
        _plugins._asked = asked


@contextlib.contextmanager
def absent():
    """As if the module had never been imported."""
    module = sys.modules.get(NAME)
    with undone():
        for catalogue in _CATALOGUES:
            for name, held in list(catalogue.items()):
                if home(held)[0] == NAME:
                    del catalogue[name]
        _twins._WARNED.clear()
        sys.modules.pop(NAME, None)
        yield
    if module is not None:
        sys.modules[NAME] = module


@contextlib.contextmanager
def imported(folder: Path, name: str = NAME):
    """A module of the page, imported; gone afterwards."""
    written(folder, name)
    with undone():
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
        yield importlib.import_module(name)
