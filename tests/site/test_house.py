"""The house has budgets: no figure may be above its number below, and numbers are only ever lowered.

The one exception is a new subject with lines of its own: forecasts, unusual rows, texts and seasons came with theirs.

Who adds lines to a room takes as many away in the same room, or lowers another in the same change. What a figure stands
for counts, not what it matches: a private name that is reached through a differently named variable is still reached.
``python tests/site/test_house.py`` prints all figures beside their budgets.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
LIBRARY, SERVICE, PAPERS = (
    ROOT / "src/kernelstream",
    ROOT / "service/kernelstream_service",
    ROOT / "papers/kernelstream_papers",
)

ROOMS = {  # lines of Python; the files beside the rooms of the library count as one
    "files": 3_212,
    "budgets": 1_106,
    "cli": 2_721,
    "columns": 3_646,
    "core": 1_789,
    "datasets": 308,
    "distributed": 859,
    "engine": 3_392,
    "estimators": 15_123,
    "evaluate": 1_178,
    "features": 2_201,
    "forecast": 1_432,
    "kernels": 2_170,
    "losses": 805,
    "model_io": 627,
    "monitor": 494,
    "passes": 4_136,
    "registry": 343,
    "second_order": 716,
    "solvers": 1_645,
    "state": 961,
    "streams": 2_965,
    "testing": 1_004,
    "trust": 1_925,
    "updates": 673,
    "zoo": 966,
    "service": 6_293,
    "papers": 7_140,
}

BUDGETS = {
    "lines of the library": 56_397,
    "lines of all packages": 69_830,
    "lines of C++": 12_955,
    "private reaches": 38,
    "__dict__ in estimators": 1,
    "methods of the learner's protocol": 25,
    "names of the second road of a row": 51,
    "functions of a block": 227,
    "files of a block": 68,
    "calls of the first row after a block": 121,
    "own ancestors of a class": 5,
    "methods of a class": 25,
    "lines of a file": 505,
    "files over 400 lines": 5,
    "code lines of a function": 126,
    "look-throughs": 1,
    "import circles": 0,
    "modules in import circles": 0,
    "class names used twice": 0,
    "private imports of another package": 0,
}


def files(*folders, ends=(".py",)):
    return [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in ends]


def texts(*folders, ends=(".py",)):
    return [path.read_text("utf8") for path in files(*folders, ends=ends)]


def lines_of(*folders, ends=(".py",)):
    return sum(text.count("\n") for text in texts(*folders, ends=ends))


def rooms():
    found = Counter()
    for path in files(LIBRARY):
        room, *inside = path.relative_to(LIBRARY).parts
        found[room if inside else "files"] += path.read_text("utf8").count("\n")
    return {**found, "service": lines_of(SERVICE), "papers": lines_of(PAPERS)}


def matches(pattern, *folders, ends=(".py",)):
    return sum(len(re.findall(pattern, text)) for text in texts(*folders, ends=ends))


# ---------------------------------------------------------------- what the syntax tells
def trees():
    return {path: ast.parse(path.read_text("utf8")) for path in files(LIBRARY)}


def classes(parsed):
    return [node for tree in parsed.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def functions_in(node):
    return [part for part in node if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))]


def code_lines(function, source):
    """Lines of a function's body that are neither empty nor a comment nor its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not body:
        return 0
    lines = source[body[0].lineno - 1 : function.end_lineno]
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in lines)


def longest_function(parsed):
    return max(
        code_lines(function, path.read_text("utf8").split("\n"))
        for path, tree in parsed.items()
        for function in functions_in(ast.walk(tree))
    )


def imported(tree, package, modules):
    """Modules that a module imports, wherever in it and whatever for; relative names made whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            base = ".".join(part for part in (start, node.module) if part)
            for name in node.names:  # a module of the package, or something in it
                yield f"{base}.{name.name}" if f"{base}.{name.name}" in modules else base


def circles(parsed):
    """Groups of modules that import each other, and the number of modules in them."""
    names = {}
    for path in parsed:
        parts = ("kernelstream", *path.relative_to(LIBRARY).with_suffix("").parts)
        names[path] = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    place = {name: i for i, name in enumerate(names.values())}
    reached = np.zeros((len(place), len(place)), dtype=bool)
    for path, tree in parsed.items():
        package = names[path] if path.name == "__init__.py" else names[path].rpartition(".")[0]
        for other in imported(tree, package, place):
            if other in place and other != names[path]:
                reached[place[names[path]], place[other]] = True
    while True:
        further = reached | (reached.astype(np.float32) @ reached.astype(np.float32) > 0)
        if (further == reached).all():
            break
        reached = further
    both = reached & reached.T
    groups = {tuple(np.flatnonzero(row)) for row in both if row.any()}
    return len(groups), sum(map(len, groups))


def ancestors(parsed):
    """Most classes of the library that a class inherits from, directly or not."""
    own = {
        node.name: [getattr(base, "id", getattr(base, "attr", None)) for base in _bases(node)]
        for node in classes(parsed)
    }

    def above(name, seen):
        for base in own.get(name, ()):
            if base in own and base not in seen:
                seen.add(base)
                above(base, seen)
        return seen

    return max(len(above(name, set())) for name in own)


def _bases(node):
    return [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]


def private_imports():
    """Names with an underscore that a package imports from the library, or reaches in its modules."""
    found = 0
    for path in files(SERVICE, PAPERS):
        for node in ast.walk(ast.parse(path.read_text("utf8"))):
            names = []
            if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("kernelstream."):
                names = [*node.module.split("."), *(name.name for name in node.names)]
            elif isinstance(node, ast.ImportFrom) and node.module == "kernelstream":
                names = [name.name for name in node.names]
            elif isinstance(node, ast.Import):
                names = [
                    part
                    for name in node.names
                    if name.name.startswith("kernelstream.")
                    for part in name.name.split(".")
                ]
            found += sum(name.startswith("_") and not name.startswith("__") for name in names)
    return found


# ---------------------------------------------------------------- what a run tells
def called(action):
    """Calls of functions of the library while ``action`` runs: how many of each."""
    found = Counter()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(LIBRARY)):
            found[frame.f_code] += 1

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return found


def default_learner():
    """Functions and files of a block of 40 rows, and calls of the first row after it."""
    from kernelstream import KernelClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = KernelClassifier(random_state=0)
    model.learn(X[:300], y[:300])
    block = called(lambda: model.learn(X[300:340], y[300:340]))
    row = called(lambda: model.learn(X[340:341], y[340:341]))
    return len(block), len({code.co_filename for code in block}), row.total()


def figures():
    parsed = trees()
    found = classes(parsed)
    learner = next(node for node in found if node.name == "Learner" and "/estimators/" in str(_path_of(parsed, node)))
    twice = Counter(node.name for node in found)
    groups, members = circles(parsed)
    done = subprocess.run([sys.executable, __file__, "calls"], capture_output=True, text=True, check=True)
    functions, parts, calls = map(int, done.stdout.split())  # of a process in which nothing else has happened
    return {
        "lines of the library": lines_of(LIBRARY),
        "lines of all packages": lines_of(LIBRARY, SERVICE, PAPERS),
        "lines of C++": lines_of(ROOT / "cpp", ends=(".hpp", ".cpp")),
        "private reaches": matches(r"\b(?:est|self\.est|member|model|whole|learner)\._[a-z]\w*", LIBRARY),
        "__dict__ in estimators": matches("__dict__", LIBRARY / "estimators"),
        "methods of the learner's protocol": len(functions_in(learner.body)),
        "names of the second road of a row": matches(
            "row_learner|RowStack|learn_few|score_few", LIBRARY, ROOT / "cpp", ends=(".py", ".hpp", ".cpp")
        ),
        "functions of a block": functions,
        "files of a block": parts,
        "calls of the first row after a block": calls,
        "own ancestors of a class": ancestors(parsed),
        "methods of a class": max(len(functions_in(node.body)) for node in found),
        "lines of a file": max(text.count("\n") for text in texts(LIBRARY)),
        "files over 400 lines": sum(text.count("\n") > 400 for text in texts(LIBRARY)),
        "code lines of a function": longest_function(parsed),
        "look-throughs": matches(r'getattr\([^)]*"(?:model_|model|columns_|_encoder)"', LIBRARY),
        "import circles": groups,
        "modules in import circles": members,
        "class names used twice": sum(count > 1 for count in twice.values()),
        "private imports of another package": private_imports(),
    }


def _path_of(parsed, node):
    return next(path for path, tree in parsed.items() if any(part is node for part in ast.walk(tree)))


def test_rooms():
    found = rooms()
    assert found.keys() <= ROOMS.keys(), "a new room needs a budget"
    over = {room: (lines, ROOMS[room]) for room, lines in found.items() if lines > ROOMS[room]}
    assert not over, "lines, and how many there may be"


@pytest.fixture(scope="module")
def measured():
    return figures()


@pytest.mark.parametrize("figure", BUDGETS)
def test_budgets(measured, figure):
    assert measured[figure] <= BUDGETS[figure]


if __name__ == "__main__" and sys.argv[1:] == ["calls"]:
    print(*default_learner())
elif __name__ == "__main__":
    for name, value in {**{f"room {room}": lines for room, lines in rooms().items()}, **figures()}.items():
        print(f"{name:40s} {value:7d} {(ROOMS | BUDGETS).get(name.removeprefix('room '), 0):7d}")
