"""Every public estimator is described in full: each parameter, what is learned, the formula, where it comes from."""

import inspect
import re

import pytest
from cases import LEARNERS, public
from test_parameters import class_of

SECTIONS = ("Parameters", "Attributes", "See Also", "Notes", "References", "Examples")
ELSEWHERE = re.compile(r"\b(See|see|as in|As in|like) :(class|meth|func):|\bSee Also above\b")


def sections(text):
    """Title and body of every section of a numpydoc docstring; the text before the first is under ""."""
    lines, found, title = text.split("\n"), {"": []}, ""
    for line, under in zip(lines, [*lines[1:], ""]):
        if line and not line.startswith(" ") and under == "-" * len(line):
            title = line
            found[title] = []
        elif not (line and line == "-" * len(title)):
            found[title].append(line)
    return {name: "\n".join(body).strip("\n") for name, body in found.items()}


def entries(body):
    """Names and descriptions of a section such as Parameters."""
    found, names = {}, []
    for line in body.split("\n"):
        if line and not line.startswith(" "):
            names = [name.strip().lstrip("*") for name in line.split(" : ")[0].split(",")]
            found |= {name: [line] for name in names}
        else:
            for name in names:
                found[name].append(line.strip())
    return {name: " ".join(lines).strip() for name, lines in found.items()}


def missing(cls):
    """What the docstring of a learner lacks, in words."""
    told = sections(inspect.getdoc(cls))
    lacks = [f"no section {name}" for name in SECTIONS if not told.get(name)] + undescribed(cls)
    for name, text in entries(told.get("Attributes", "")).items():
        if len(text.partition(" : ")[2].split()) < 3 or ELSEWHERE.search(text):
            lacks.append(f"attribute {name} is not described: {text!r}")
    penalty = entries(told.get("Parameters", "")).get("lam", "*sum*")
    if "*sum*" not in penalty and "*mean*" not in penalty:
        lacks.append("lam does not say whether it stands next to the sum or the mean of the losses")
    formula = "".join(told.get(name, "") for name in ("", "Notes"))
    if not (".. math::" in formula or ":math:" in formula):
        lacks.append("no formula")
    if told.get("References") and not re.search(r"\[\d+\]_", inspect.getdoc(cls)):
        lacks.append("the references are not cited")
    return lacks


def undescribed(cls):
    """Parameters that the docstring of any class leaves out, or only points elsewhere for."""
    told = sections(inspect.getdoc(cls))
    lacks = [] if told.get("Examples") else ["no example"]
    described, parameters = entries(told.get("Parameters", "")), inspect.signature(cls).parameters
    if list(described) != list(parameters):
        lacks.append(f"Parameters {list(described)} instead of {list(parameters)}")
    for name, text in described.items():
        words = text.partition(" : ")[2]
        if len(words.split()) < 5 or ELSEWHERE.search(words):
            lacks.append(f"{name} is not described: {text!r}")
    return lacks


@pytest.mark.parametrize("name", sorted({name.partition(",")[0] for name in LEARNERS}))
def test_a_learner_is_described_in_full(name):
    assert not missing(class_of(name))


@pytest.mark.parametrize("name", sorted(public() - {name.partition(",")[0] for name in LEARNERS}))
def test_parameters_are_described(name):
    assert not undescribed(class_of(name))


@pytest.mark.parametrize("name", sorted(public()))
def test_the_defaults_are_those_of_the_signature(name):
    """Descriptions are shared by classes whose defaults may differ."""
    cls = class_of(name)
    described = entries(sections(inspect.getdoc(cls)).get("Parameters", ""))
    for parameter in inspect.signature(cls).parameters.values():
        given = re.search(r"default=(\"[^\"]*\"|[^\s,]+(?:,\d{3})*)", described[parameter.name])
        if given:
            assert eval(re.sub(r"(?<=\d),", "", given[1])) == parameter.default, parameter


def test_what_is_missing_is_found():
    class Bare:
        """Learn.

        Parameters
        ----------
        eta, lam : float
            See :class:`Other` for what they do and what they mean here.
        """

        def __init__(self, eta=1.0, lam=0.1, seed=0):
            pass

    found = " ".join(missing(Bare))
    for word in ("See Also", "Attributes", "instead of ['eta', 'lam', 'seed']", "eta is not", "no formula"):
        assert word in found, word
