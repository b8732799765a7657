"""The pages: their code runs as it stands, their links lead somewhere, their tables are those of the scripts.

Every page is found by itself. A Python block runs alone, as a reader pastes it, unless its first line says
``# continues the block above``; parts of one file carry its name. A block that cannot be run here has a comment in the
line before it, ``<!-- not run: WHY -->``, with a reason of :data:`WHY_NOT`.
"""

import re
import sys
import warnings

import numpy as np
import own_parts
import pytest
from pages import PAGES, ROOT, blocks, run_shell

DOCS = ROOT / "docs"

WHY_NOT = {
    "cluster": "needs a cluster; tests/distributed has small ones, of Dask and of Spark, and runs the same calls",
    "gpu": "needs a GPU, or minutes without one; tests/passes/test_torch_engine.py runs the same on the processor",
    "hours": "takes from minutes to hours, on data that are not part of the repository",
    "installs": "installs packages",
    "make": "builds and tests the package: it would start itself",
    "outline": "an interface in outline: no program",
    "server": "starts a server, or asks one; service/tests/ runs the same",
}
CONTINUES = "# continues the block above\n"
LANGUAGES = {"python", "sh", "text", "toml"}
NEEDED = {  # packages that a page is about
    "from_river.md": ["river"],
    "learned_kernels.md": ["matplotlib"],
    "multiple_kernels.md": ["matplotlib"],
    "start.md": ["river"],
}


# -------------------------------------------------------------------- files that the shell's blocks read
def flats(path, city):
    """A table of flats; ``city`` is a column of words."""
    rng = np.random.default_rng(0)
    size, rooms = rng.uniform(20, 150, 300), rng.integers(1, 6, 300)
    price = 3 * size + 20 * rooms
    lines = ["id,city,size,rooms,price" if city else "id,size,rooms,price"]
    for i in range(300):
        word = f"{['Rome', 'Oslo'][i % 2]}," if city else ""
        lines.append(f"{i},{word}{size[i]:.1f},{rooms[i]},{price[i]:.2f}")
    path.write_text("\n".join(lines) + "\n")


def rows(path):
    """LIBSVM text with two labels."""
    X = np.random.default_rng(1).normal(size=(300, 3)).round(3)
    lines = [f"{'+1' if x[0] * x[1] > 0 else '-1'} 1:{x[0]} 2:{x[1]} 3:{x[2]}" for x in X]
    path.write_text("\n".join(lines) + "\n")


def sensors(path):
    np.savetxt(path, np.random.default_rng(2).normal(size=(300, 3)), delimiter=",", header="a,b,c", comments="")


FILES = {
    "README.md": [
        (flats, "flats.csv", False), (flats, "new.csv", False), (rows, "big.svm"), (sensors, "sensors.csv"),
    ],
    "CONTRIBUTING.md": [(flats, "flats.csv", False), (flats, "new.csv", False)],
    "big_csv.md": [(flats, "flats.csv", True), (flats, "new.csv", True), (flats, "test.csv", True)],
    "columns.md": [(flats, "flats.csv", True), (flats, "new.csv", True), (flats, "test.csv", True)],
    "binning.md": [(rows, "train.svm"), (rows, "test.svm")],
    "live.md": [(flats, "flats.csv", False)],
    "novelty.md": [(sensors, "sensors.csv"), (sensors, "new.csv")],
    "resume.md": [(rows, "big.svm")],
    "start.md": [(flats, "flats.csv", False), (flats, "new.csv", False)],
}  # fmt: skip


# -------------------------------------------------------------------- code
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    """Python and shell blocks in their order, in an empty folder; a Python block has no names but its own."""
    for needed in NEEDED.get(page.name, ()):
        pytest.importorskip(needed)
    if "matplotlib" in NEEDED.get(page.name, ()):
        monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    for write, name, *options in FILES.get(page.name, ()):
        write(tmp_path / name, *options)
    names: dict = {}
    with own_parts.undone(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*no compiled version")
        sys.path.insert(0, str(tmp_path))
        found = blocks(page)
        for block, following in zip(found, [*found[1:], None]):
            if block.why_not is not None:
                continue
            if block.mark.endswith(".py"):
                part = tmp_path / block.mark
                assert block.code.startswith(f"# {block.mark}{', continued' * part.exists()}\n")
                with open(part, "a") as file:
                    file.write(block.code + "\n\n")
            elif block.language == "python":
                capsys.readouterr()
                if not block.code.startswith(CONTINUES):
                    names = {"__name__": "page"}
                exec(compile(block.code, page.name, "exec"), names)
                printed = capsys.readouterr().out
                if following is not None and following.language == "text" and not block.after.strip():
                    check_output(printed, following.code)
            elif block.language == "sh":
                run_shell(block.code)


def check_output(printed, stated):
    """Where a page shows what its code prints, the words are right, and the numbers but for one in their last digit."""
    for line, said in zip(printed.splitlines(), stated.splitlines(), strict=True):
        assert re.sub(r"[\d.]+", "", line) == re.sub(r"[\d.]+", "", said)
        for number, told in zip(*(re.findall(r"\d+\.?\d*", text) for text in (line, said)), strict=True):
            step = 10.0 ** -len(told.partition(".")[2])  # another processor may round differently
            assert float(number) == float(told) or (
                "." in told and float(number) == pytest.approx(float(told), abs=step)
            )


def test_every_block_says_what_it_is():
    """A language for all, a known reason where it is not run, and no reason that nobody needs."""
    used = set()
    for page in PAGES:
        for block in blocks(page):
            assert block.language in LANGUAGES, f"{page.name}: a block in {block.language or 'no language'}"
            assert block.mark == "" or block.why_not or block.mark.endswith(".py") or "written by" in block.mark
            if block.why_not is not None:
                assert block.why_not in WHY_NOT, f"{page.name}: not run, because {block.why_not}?"
                used.add(block.why_not)
    assert used == set(WHY_NOT)


def test_most_pages_have_code_that_runs():
    """The check of the check: blocks are found, and few are left out."""
    code = [block for page in PAGES for block in blocks(page) if block.language in ("python", "sh")]
    run = [block for block in code if block.why_not is None]
    left_out = [block for page in PAGES for block in blocks(page) if block.why_not]
    assert len(run) > 2 * len(left_out) > 0
    assert sum(page.read_text(encoding="utf-8").count("```") for page in PAGES) == 2 * sum(
        len(blocks(page)) for page in PAGES
    )


# -------------------------------------------------------------------- the rest of the pages
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("http") or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_index_names_every_page():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or f"({page.name})" in index, page.name


def _measured(name):
    """The text of a table that a benchmark or a study wrote."""
    (path,) = (path for room in ("benchmarks", "papers/studies") if (path := ROOT / room / "results" / name).exists())
    return path.read_text(encoding="utf-8").strip()


def test_measured_tables_are_those_of_the_scripts():
    for about in ("second_order.md", "columns.md", "distributed.md"):
        page = (DOCS / about).read_text(encoding="utf-8")
        names = re.findall(r"<!-- (\w+\.md) -->", page)
        assert names
        for name in names:
            assert _measured(name) in page, name
