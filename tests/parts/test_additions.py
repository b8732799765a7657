"""What an addition costs: the parts that CONTRIBUTING.md shows, held to the table of the same page."""

import ast
import re

import own_parts
import pytest
from pages import blocks
from sklearn.utils.estimator_checks import check_estimator

from kernelstream import budgets, estimators, features, kernels, losses, updates, zoo

KINDS = {
    "kernel": ("Sech", kernels.names),
    "loss": ("LogCosh", losses.names),
    "update": ("Normalised", updates.names),
    "strategy": ("RemoveOldest", budgets.names),
    "feature map": ("GaussianSketch", features.names),
    "recipe": ("robust_window", zoo.names),
}


def table():
    """Lines that each kind may take, by the page."""
    rows = re.findall(r"^\| ([a-z ]+) \| (\d+) \|", own_parts.PAGE.read_text(encoding="utf-8"), re.M)
    return {kind: int(lines) for kind, lines in rows}


def lines_of_code(text):
    """Lines with anything but docstrings, comments and imports."""
    tree = ast.parse(text)
    dropped = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            dropped |= set(range(body[0].lineno, body[0].end_lineno + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(1 for i, line in lines if i not in dropped and line.strip() and not line.strip().startswith("#"))


@pytest.mark.parametrize("kind", KINDS)
def test_lines(kind):
    name, _ = KINDS[kind]
    [text] = [block.code for block in blocks(own_parts.PAGE) if re.search(rf"^(class|def) {name}\b", block.code, re.M)]
    assert 3 < lines_of_code(text) <= table()[kind]


def test_every_kind_is_in_the_table():
    assert KINDS.keys() == table().keys()


def test_the_registries_know_them_and_forget_them(tmp_path):
    """By nothing but an import of one file."""
    before = {kind: set(names()) for kind, (_, names) in KINDS.items()}
    with own_parts.imported(tmp_path):
        for kind, (_, names) in KINDS.items():
            assert len(set(names()) - before[kind]) == 1, kind
    assert before == {kind: set(names()) for kind, (_, names) in KINDS.items()}


def test_the_estimator_keeps_scikit_learns_contract(tmp_path):
    """All checks but that of weights as repetition: the order of the rows matters, as it does to all learners here."""
    with own_parts.imported(tmp_path, own_parts.ESTIMATOR) as module:
        found = check_estimator(module.SmoothRegressor(), on_fail=None)
        failed = {one["check_name"] for one in found if one["status"] == "failed"}
        assert len(found) > 40
        assert failed <= {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")}
        assert lines_of_code(own_parts.written(tmp_path, own_parts.ESTIMATOR).read_text()) <= 60
    assert "SmoothRegressor" not in estimators.CATALOGUE.parts


def test_lines_are_counted():
    text = 'class A:\n    """Doc\n    string."""\n\n    x = 1  # yes\n    # no\n\n    def f(self):\n        return 1\n'
    assert lines_of_code(text) == 4
