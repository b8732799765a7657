"""The installed package: what is there, what an import costs, and that the compiled core is the one in use."""

import os
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec

import pytest

import kernelstream


def run(code, **env):
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_version():
    assert metadata.version("kernelstream") == kernelstream.__version__


def test_console_script():
    (script,) = (e for e in metadata.entry_points(group="console_scripts") if e.name == "kernelstream")
    assert script.value == "kernelstream.cli:main"
    assert callable(script.load())


def test_native_engine_is_in_use():
    # A source folder imported without its extension would quietly run every other test on the slow engine.
    if find_spec("kernelstream._core") is None and not os.environ.get("KERNELSTREAM_REQUIRE_NATIVE"):
        pytest.skip("installed without a compiler")
    assert kernelstream.engine.get("auto").NAME == "native"


def loaded_after(statement):
    names = ("numpy", "scipy", "sklearn", "rich", "matplotlib", "pandas")
    return run(f"import sys; {statement}; print(*(m for m in {names} if m in sys.modules))").split()


def test_import_is_lazy():
    assert loaded_after("import kernelstream") == []
    assert "matplotlib" not in loaded_after("from kernelstream import FeatureClassifier")


def test_public_names_resolve():
    for name in (*kernelstream.__all__, "drift", "datasets", "random", "evaluate", "estimators", "__version__"):
        assert getattr(kernelstream, name) is not None
        assert name in dir(kernelstream)


def test_star_import_brings_estimators_and_little_else():
    names = {}
    exec("from kernelstream import *\nfrom kernelstream import FeatureClassifier as F", names)
    del names["__builtins__"]
    assert names.pop("F") is names["FeatureClassifier"]
    assert {name for name in names if not name[0].isupper()} == {"load", "make_stream", "merge", "save", "zoo"}
    assert all(isinstance(names[name], type) for name in names if name[0].isupper())


def test_modules_that_need_a_package_that_is_not_there():
    """`help` goes on without them, and whoever asks for one is told what to install."""
    without = "import sys; sys.modules |= {'onnx': None, 'river': None}; import kernelstream, inspect"
    asks = ("kernelstream.river.anything", "from kernelstream import river", "import kernelstream.river")
    tried = [f"try:\n    {ask}\nexcept (AttributeError, ImportError) as error:\n    print(error)" for ask in asks]
    members = "print(*(name for name, _ in inspect.getmembers(kernelstream)))"
    told, *errors = run("\n".join([without, members, *tried])).split("\n")
    assert "KernelClassifier" in told
    assert len(errors) == 3 and all("pip install 'kernelstream[river]'" in error for error in errors)


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kernelstream.nothing
