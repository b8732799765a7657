"""What the README says is true: its code runs, its table is complete, its links lead somewhere."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?", README, re.DOTALL)


@pytest.mark.parametrize(("code", "printed"), BLOCKS, ids=range(len(BLOCKS)))
def test_code(code, printed, tmp_path, capsys):
    """Every block runs; where the output is shown, the numbers are right to a point."""
    path = tmp_path / "readme.py"
    path.write_text(code)
    runpy.run_path(str(path))
    output = capsys.readouterr().out.splitlines()
    for line, stated in zip(output, printed.splitlines(), strict=bool(printed)):
        assert re.sub(r"[\d.]+", "", line) == re.sub(r"[\d.]+", "", stated)
        assert float(re.search(r"[\d.]+", line)[0]) == pytest.approx(float(re.search(r"[\d.]+", stated)[0]), abs=1.0)


def test_the_first_block_beats_a_linear_model():
    linear, kernel = (float(number) for number in re.findall(r"([\d.]+)%", BLOCKS[0][1]))
    assert kernel < 0.7 * linear
    assert len([line for line in BLOCKS[0][0].splitlines() if line]) <= 10


def test_the_table_is_complete():
    box = runpy.run_path(str(ROOT / "tools" / "box.py"), run_name="box")
    assert box["renewed"](README) == README, "run python tools/box.py"


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))]
)
def test_links(page):
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        assert target.startswith("http") or (path.parent / target).exists(), f"{page} links to {target}"


def test_every_page_is_listed():
    index = (ROOT / "docs" / "index.md").read_text()
    for page in ROOT.glob("docs/*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, f"docs/index.md does not list {page.name}"
