"""What is released: the source archive, the version, the site's reference and gallery, the workflow."""

import ast
import importlib
import re
import runpy
import tomllib
from importlib.util import find_spec

import pytest
from pages import ROOT

import kernelstream

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GALLERY = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
MODULES = (
    "budgets", "columns", "datasets", "distributed", "evaluate", "features", "kernels", "losses", "monitor",
    "plots", "solvers", "streams", "testing", "trust", "zoo",
)  # fmt: skip


def reference():
    """Names of the API reference: ``{module: names}``."""
    found = {}
    for page in (ROOT / "docs" / "api").glob("*.rst"):
        module = None
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := re.match(r"\.\. (?:current)?module:: (\S+)$", line):
                module = match[1]
            elif module and re.match(r"   \w+$", line):
                found.setdefault(module, set()).add(line.strip())
    return found


def test_the_source_archive_is_small_and_whole(tmp_path, monkeypatch):
    build = pytest.importorskip("scikit_build_core.build")
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("KERNELSTREAM_REQUIRE_NATIVE", raising=False)
    name = build.build_sdist(str(tmp_path))
    assert name == f"kernelstream-{kernelstream.__version__}.tar.gz"
    check = runpy.run_path(str(ROOT / "tools" / "sdist_check.py"))
    assert check["problems"](tmp_path / name) == []
    check["problems"].__globals__["MOST"] = 1000
    assert len(check["problems"](tmp_path / name)) == 1


def test_the_version_has_one_source():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert "version" not in PROJECT["project"]
    assert kernelstream.__version__ not in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_every_extra_that_the_site_needs_exists():
    extras = PROJECT["project"]["optional-dependencies"]
    needs = [need for needs in extras.values() for need in needs]
    for wanted in re.findall(r"kernelstream\[([\w,]+)\]", " ".join(needs)):
        assert set(wanted.split(",")) <= set(extras)


def test_the_reference_has_every_public_name():
    found = reference()
    assert set(kernelstream._NAMES) <= found["kernelstream"]
    for name in [*(f"kernelstream.{module}" for module in MODULES), "kernelstream_service"]:
        module = importlib.import_module(name)
        public = {part for part in module.__all__ if not part.isupper() or callable(getattr(module, part))}
        missing = public - found[name] - found["kernelstream"]
        assert not missing, f"docs/api lacks {', '.join(sorted(missing))} of {name}"


def test_the_reference_has_no_name_that_is_gone():
    for name, parts in reference().items():
        if name == "kernelstream.river":
            pytest.importorskip("river")
        if name == "kernelstream_service.spark" and find_spec("pyspark") is None:
            continue
        module = importlib.import_module(name)
        for part in parts:
            assert hasattr(module, part), f"docs/api: {name} has no {part}"


@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_a_script_of_the_gallery_has_a_title_and_a_picture(script):
    text = script.read_text(encoding="utf-8")
    title, line, *rest = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    assert line == "=" * len(title)
    assert "".join(rest).strip()
    last = text.split("\n# %%\n")[-1]  # a picture is kept at the end of a part: one that goes on in the next is empty
    assert "plt.subplots(" in last
    assert last.endswith("plt.show()\n")
    assert text.count("plt.subplots(") == 1


def test_the_gallery_is_not_small():
    assert len(GALLERY) >= 20
