"""What the README says is true: its tables are complete, its first lines are few and worth running."""

import ast
import re
import runpy

from pages import ROOT, blocks

README = ROOT / "README.md"


def test_the_first_block_beats_a_linear_model():
    code, printed = [block for block in blocks(README) if block.why_not is None][:2]
    linear, kernel = (float(number) for number in re.findall(r"([\d.]+)%", printed.code))
    assert kernel < 0.7 * linear
    assert len([line for line in code.code.splitlines() if line]) <= 10


def test_the_tables_are_complete():
    box = runpy.run_path(str(ROOT / "tools" / "box.py"), run_name="box")
    assert len(box["pages"]()) > 3
    for page in box["pages"]():
        text = page.read_text()
        assert box["renewed"](text) == text, f"{page.name} is stale: run python tools/box.py"


def test_rows_of_a_test_do_not_depend_on_the_tests_before():
    """No function of the tests draws from a generator that the module holds: the fixture ``rng`` is the test's own."""
    for path in sorted(path for room in ("tests", "papers/tests") for path in (ROOT / room).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"^_?rng_? = .*default_rng", text, re.MULTILINE | re.IGNORECASE):
            continue
        tree = ast.parse(text)
        held = {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign) and "default_rng" in ast.unparse(node.value)
            for target in node.targets
            if isinstance(target, ast.Name) and target.id.strip("_").lower() == "rng"
        }
        for function in (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda))):
            names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
            own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
            own |= {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
            drawn = held & {node.id for node in names} - own
            assert not drawn, f"{path.name}:{function.lineno} draws from the module's {drawn}"


def test_programs_import_modules_that_there_are():
    """Most benchmarks need more than a test has, so that none runs them: what they import of the library is there."""
    rooms = ("benchmarks", "examples", "papers", "tools")
    for path in (path for room in rooms for path in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kernelstream."):
                home = ROOT / "src" / node.module.replace(".", "/")
                assert home.is_dir() or home.with_suffix(".py").exists(), f"{path.name}:{node.lineno}: {node.module}"
