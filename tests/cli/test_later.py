"""Modules that wait for their first use: a command starts without what it does not need."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest
from waiting import in_threads

from kernelstream.cli import _later, main


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of two modules, which note when their code runs."""
    home = tmp_path / "waiting_package"
    home.mkdir()
    (home / "__init__.py").write_text("import sys\nsys.ran.append('package')\nfrom . import part\nVALUE = part.VALUE\n")
    (home / "part.py").write_text(
        "import sys\nsys.ran.append('part')\nVALUE = 7\ndef __getattr__(name):\n    return name\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "ran", [], raising=False)
    monkeypatch.setattr(_later, "LATER_MODULES", ("waiting_package", "waiting_package.part"))
    yield home
    for name in ("waiting_package", "waiting_package.part"):
        sys.modules.pop(name, None)


def test_code_runs_at_the_first_look(package):
    with _later.imports_later():
        import waiting_package.part as part
    assert sys.ran == []
    assert part.VALUE == 7
    assert sys.ran == ["package", "part"]
    import waiting_package

    assert waiting_package.VALUE == 7 and part.anything == "anything" and sys.ran == ["package", "part"]
    assert type(part) is type(sys) and type(waiting_package) is type(sys)
    with pytest.raises(AttributeError, match="no_such"):
        _ = waiting_package.no_such


def test_threads_see_a_whole_module(package):
    (package / "part.py").write_text("import sys, time\nsys.ran.append('part')\ntime.sleep(0.05)\nVALUE = 7\n")
    with _later.imports_later():
        import waiting_package.part as part
    found = []
    in_threads(lambda _: found.append(part.VALUE), range(5))
    assert found == [7] * 5 and sys.ran.count("part") == 1


def test_predict_starts_without_the_heavy_modules(tmp_path):
    (tmp_path / "rows.csv").write_text("town,size,y\n" + "Rome,1.5,a\nOslo,,b\n" * 40)
    assert main(["train", str(tmp_path / "rows.csv"), "--target", "y", "--model", str(tmp_path / "m.ks"), "-q"]) == 0
    script = """
        import gc, json, sys
        from kernelstream.cli import main
        sys.argv = ["kernelstream", "predict", "m.ks", "rows.csv", "--out", "answers.txt"]
        code = main()
        heavy = ("scipy.stats._stats_py", "scipy.optimize", "scipy.spatial", "scipy.interpolate", "narwhals.expr",
                 "pandas", "rich.progress", "sklearn.linear_model", "numpy.f2py.f2py2e", "numpy.ma.core",
                 "scipy.special._ufuncs", "asyncio.base_events", "kernelstream_service")
        ends_at_once = gc.get_freeze_count() > 0
        print(json.dumps([code, ends_at_once, [name for name in heavy if name in sys.modules]]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [0, True, []]
    assert len((tmp_path / "answers.txt").read_text().splitlines()) == 80
