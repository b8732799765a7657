"""What a type checker sees: the marker, and the stub of the compiled core, which the build writes."""

import ast
from pathlib import Path

import pytest

import kernelstream
from kernelstream import engine

PACKAGE = Path(kernelstream.__file__).parent


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.skipif(not engine.has_native(), reason="there is no compiled core here")
def test_the_stub_names_all_of_the_core():
    from kernelstream import _core

    body = ast.parse((PACKAGE / "_core.pyi").read_text()).body
    known = {node.target.id if isinstance(node, ast.AnnAssign) else getattr(node, "name", "") for node in body}
    assert {name for name in dir(_core) if not name.startswith("_")} <= known
