"""The Python of the task pages in docs/ runs as it stands."""

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {"second_order": (), "big_csv": (), "resume": (), "from_svc": (), "from_river": ("river",)}


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    for needed in PAGES[page]:
        pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 2
    names: dict = {}
    for block in blocks:
        exec(compile(block, f"{page}.md", "exec"), names)
    assert capsys.readouterr().out.count("\n") >= 2


def test_the_index_names_every_page():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or f"({page.name})" in index, page.name


def test_measured_tables_are_those_of_the_scripts():
    page = (DOCS / "second_order.md").read_text(encoding="utf-8")
    names = re.findall(r"<!-- (\w+\.md) -->", page)
    assert names
    for name in names:
        assert (DOCS.parent / "benchmarks" / "results" / name).read_text(encoding="utf-8").strip() in page, name


def test_tables_go_between_their_markers_only():
    """docs/distributed.md: a place that was never closed is an error, and nothing after it is eaten."""
    insert = runpy.run_path(str(DOCS.parent / "benchmarks" / "distributed_page.py"))["insert"]
    page = "a\n<!-- one -->\nold\n<!-- -->\nb\n<!-- two -->\n<!-- -->\nc\n"
    assert insert(page, "one", "new\n") == page.replace("old", "new")
    assert insert(page, "two", "new") == page.replace("<!-- two -->\n", "<!-- two -->\nnew\n")
    for broken in (page.replace("old\n<!-- -->\n", "old\n"), page.split("<!-- -->")[0]):
        with pytest.raises(ValueError, match="'one' has no end"):
            insert(broken, "one", "new")
    with pytest.raises(ValueError, match="no place for 'three'"):
        insert(page, "three", "new")
    text = (DOCS / "distributed.md").read_text(encoding="utf-8")
    for name in ("many_machines", "parameter_mixing"):
        assert (DOCS.parent / "benchmarks" / "results" / f"{name}.md").read_text(encoding="utf-8").strip() in text
