"""Tables and pages made of records: what they say, and that those of the repository are up to date."""

import shutil
import subprocess
from dataclasses import replace

import pytest
from pages import ROOT
from small_experiment import TEXT, made_up, parsed, recorded, show

import kernelstream_papers as reproduce
from kernelstream import zoo
from kernelstream_papers import _where, report

small = pytest.fixture(parsed)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("page")
    sweep = TEXT.replace("parameters = { n_components = 20 }", "sweep = { n_components = [10, 20, 40] }")
    experiments = [reproduce.parse("small", TEXT), reproduce.parse("swept", sweep)]
    for experiment in experiments:
        recorded(experiment, folder)
    with pytest.MonkeyPatch.context() as patch:
        show(patch, *experiments)
        return report.write(folder)


def test_the_page_says_what_the_records_say(small, page):
    text = page.read_text()
    cells = reproduce.table(small, reproduce.Records(page.parent, "small"))
    for cell in cells:
        assert f"{cell.mean:.2f} ± {cell.std:.2f}" in text
    assert "The figure is made up." in text and "1.00 ± 0.10" in text
    assert "1 of 2 cells" not in text and "2 of 4 cells" in text  # the perceptron in both files; 99 % is no feat
    assert "kernelstream reproduce small" in text
    assert text.count("<svg") == 6  # of each file: over rows, over seconds, and where the runs end
    assert "http://" not in text.replace("http://www.w3.org", "") and "<script" not in text
    tables = (page.parent / "tables.md").read_text()
    assert f"{cells[0].mean:.2f} ± {cells[0].std:.2f} (1.00)" in tables.replace("**", "")


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_the_page_opens_in_a_browser_without_complaints(page, tmp_path):
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
               f"--user-data-dir={tmp_path}/profile", "--enable-logging=stderr", "--window-size=390,800"]  # fmt: skip
    done = subprocess.run(
        ["chromium", *options, "--virtual-time-budget=2000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    assert done.stdout.count("<svg") == page.read_text().count("<svg") > 0


def test_the_page_escapes_what_a_machine_says_of_itself(tmp_path):
    """Records are text that may come from anywhere."""
    records = reproduce.Records(tmp_path, "small")
    names = ("processor", "machine", "cores", "python")
    where = {name: f"<script>{name}</script>" for name in names} | {"versions": {"<i>": "<b>"}}
    records.add({"key": "a", "environment": where})
    written = report._machines([(None, [], records)])
    assert written.count("&lt;script&gt;") == 4 and "&lt;i&gt; &lt;b&gt;" in written
    assert not any(tag in written for tag in ("<script", "<i>", "<b>"))


def test_every_point_of_a_sweep_has_a_line():
    experiment = reproduce.load("rrf-figure-2")
    points = [{"n_components": n} for n in (10, 400)]
    cells = [made_up("cod-rna", "RRF", [4.0 - i], settings=point) for i, point in enumerate(points)]
    lines = report.markdown_table(experiment, cells)
    assert "| RRF, n_components 10 | 4.00 |" in lines and "| RRF, n_components 400 | **3.00** |" in lines


def test_the_pages_in_the_repository_are_those_of_its_records():
    """tables.md and where.md, written again: no figure is typed, none is stale."""
    folder = ROOT / "papers" / "results"
    for name, text in report.texts(folder).items():
        assert (folder / name).read_text(encoding="utf-8") == text, f"{name} is stale: kernelstream reproduce --page"


def test_every_experiment_of_a_paper_has_its_place_on_the_page():
    told = _where.contents()
    named = {name for paper in told["paper"] for item in paper["item"] for name in item.get("experiments", [])}
    sources = {paper["source"] for paper in told["paper"]}
    assert named == {name for name in reproduce.names() if reproduce.load(name).source in sources}
    for paper in told["paper"]:
        for item in paper["item"]:
            assert set(item.get("absent", {})) <= set(told["absent"]), item["place"]
            assert set(item.get("recipes", [])) <= set(zoo.names()), item["place"]
            reasons = ("experiments", "recipes", "note")
            assert any(item.get(kind) for kind in reasons), f"{item['place']} is missing without a reason"


# What is numbered in each paper.
NUMBERED = {
    "thesis": {
        "Algorithm": [str(k) for k in range(1, 19)],
        "Figure": ["1.1", "3.1", "3.2", *(f"4.{k}" for k in range(1, 8)), "5.1", "5.2"],
        "Table": ["2.1", "3.1", "3.2", "3.3", *(f"4.{k}" for k in range(1, 9)), *(f"5.{k}" for k in range(1, 7))],
    },
    "RRF": {"Algorithm": ["1"], "Figure": ["1", "2"], "Table": ["1", "2"]},
    "random binning": {"Algorithm": ["1", "2"], "Figure": list("123456"), "Table": ["1"]},
    "Taylor-AWV": {"Algorithm": ["1"], "Figure": list("1234"), "Table": []},
    "doubly stochastic": {"Algorithm": ["1", "2"], "Figure": list("12345678"), "Table": list("1234")},
}


@pytest.mark.parametrize("paper", _where.contents()["paper"], ids=lambda paper: paper["source"])
def test_all_that_a_paper_numbers_has_its_place_on_the_page(paper):
    found = {kind: [] for kind in NUMBERED[paper["source"]]}
    for place in (part for item in paper["item"] for part in item["place"].split("; ")):
        kind, _, numbers = place.partition(" ")
        if kind.rstrip("s") in found:
            first, _, last = numbers.partition(" to ")
            new = range(int(first), int(last) + 1) if last else numbers.split(", ")
            found[kind.rstrip("s")] += map(str, new)
    assert {kind: sorted(numbers) for kind, numbers in found.items()} == {
        kind: sorted(numbers) for kind, numbers in NUMBERED[paper["source"]].items()
    }


def test_the_page_counts_cells_and_gives_causes(monkeypatch):
    """Four printed cells, by hand: level, ahead, behind with its cause, and one that was not run."""
    text = TEXT.replace(
        "RBP = [99.0, 0.5]", "RBP = [99.0, 0.5]\nFOGD = 7.0\n\n[printed.wine]\nPerceptron = [10.0, 0.5]"
    )
    small = reproduce.parse("small", text)

    found = {("iris", "Perceptron"): [3.0, 3.2], ("iris", "RBP"): [50.0, 51.0], ("wine", "Perceptron"): [10.1, 10.9]}
    cells = [made_up(data, name, values, small.printed[data][name]) for (data, name), values in found.items()]
    item = {"place": "Table 0", "what": "x", "experiments": ["small"], "absent": {"lost": 4}}
    told = {"absent": {"lost": "gone"}, "paper": [{"source": "tests", "title": "T", "item": [item]}]}
    told |= {"differs": [{"algorithm": "A", "printed": "p", "ours": "o"}], "lacks": [{"what": "W", "where": "here"}]}
    monkeypatch.setattr(_where, "contents", lambda: told)
    monkeypatch.setattr(_where, "load", lambda name: small)
    monkeypatch.setattr(_where, "names", lambda: ["small"])
    page = _where.where({"small": cells})
    assert "| tests | 8 | 3 | 1 | 0 | 1 | 1 | 1 | 4 | 0 | 1 | 0 |" in page  # RBP is ahead, and nobody says why
    assert (
        "| Perceptron | `perceptron` | 1.00 ± 0.10 | 3.10 ± 0.14 | behind | 1 (1) |  | The figure is made up. |" in page
    )
    assert "| iris | RBP | `rbp` | 99.00 ± 0.50 | 50.50 ± 0.71 | ahead |  |  | Not explained. |" in page
    assert "| iris | FOGD | `fogd` | 7.00 |  | not run |  |  |  |" in page and "lost: 4 (gone)" in page
    assert "| `small` | 5 | 2 | 0 |" in page and "- `small`, iris: FOGD\n- `small`, wine: FOGD" in page
    assert "Rows in float32." in page and "| A | p | o |" in page and "| W | here |" in page
    line = '\n[[algorithm]]\nlabel = "P, author\'s rules"\npeer = "author"\ninstead = "Perceptron"\n\n[printed.iris]'
    small = reproduce.parse("small", text.replace("\n[printed.iris]", line))
    theirs = replace(cells[0], algorithm="P, author's rules", printed=None)
    page = _where.where({"small": [*cells, replace(theirs, values=[1.1, 1.0])]})
    assert "| tests | 8 | 3 | 1 | 1 | 1 | 0 | 1 | 4 | 0 | 1 | 0 |" in page
    assert "| by the author's rules | 1 (1) |  | By the author's rules 1.05 ± 0.07. The figure is made up. |" in page
    page = _where.where({"small": [*cells, replace(theirs, values=[2.0, 2.1])]})  # no cause that explains enough
    assert "| tests | 8 | 3 | 1 | 0 | 1 | 1 | 1 | 4 | 0 | 1 | 0 |" in page
    text = text.replace("repeats = 3", 'repeats = 3\nreduced = { iris = "150 of many rows" }') + '"/RBP" = "Luck."\n'
    small = reproduce.parse("small", text)
    timed = [replace(cell, seconds=[s], size=9) for cell, s in zip(cells, (1.0, 4.0, 1.0))]
    timed[0] = replace(timed[0], printed=reproduce.Printed(1.0, 0.1, 9.0, 1000))
    page = _where.where({"small": timed})
    assert "| tests | 8 | 3 | 1 | 0 | 1 | 1 | 1 | 4 | 2 | 0 | 0 |" in page
    assert "| iris, reduced | RBP | `rbp` | 99.00 ± 0.50 | 50.50 ± 0.71 | ahead |  |  | Luck. |" in page
    assert "Reduced data: iris: 150 of many rows." in page


def test_seconds_are_multiples_of_the_mean_of_a_table():
    """Three lines, one without a printed time: 1 and 4 seconds have the geometric mean 2, 9 and 1 the mean 3."""
    cells = [replace(made_up("iris", name, [1.0]), seconds=[s]) for name, s in (("a", 1.0), ("b", 4.0), ("c", 50.0))]
    printed = [reproduce.Printed(1.0, 0.0, s) for s in (9.0, 1.0, None)]
    ratios = _where._ratios({cell.algorithm: (cell, p) for cell, p in zip(cells, printed, strict=True)})
    assert ratios == {"a": "0.5 (3)", "b": "2 (0.33)"}
