"""What the README says is true: its tables are complete, its first lines are few and worth running."""

import re
import runpy

from pages import ROOT, blocks

README = ROOT / "README.md"


def test_the_first_block_beats_a_linear_model():
    code, printed = blocks(README)[0:2]
    linear, kernel = (float(number) for number in re.findall(r"([\d.]+)%", printed.code))
    assert kernel < 0.7 * linear
    assert len([line for line in code.code.splitlines() if line]) <= 10


def test_the_tables_are_complete():
    box = runpy.run_path(str(ROOT / "tools" / "box.py"), run_name="box")
    assert len(box["pages"]()) > 3
    for page in box["pages"]():
        text = page.read_text()
        assert box["renewed"](text) == text, f"{page.name} is stale: run python tools/box.py"
