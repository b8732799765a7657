"""A call that does not come to its end leaves the model as it was, to the last bit, in every family.

Errors are injected at random lines of the library while a model learns: what an interrupt, a lack of memory or an error
in somebody's loss would do. Afterwards the state is compared with what it was, and going on with a run that was never
disturbed.
"""

import contextlib
import copy
import itertools
import os
import pickle
import sys
import zlib

import numpy as np
import pytest
import scipy.sparse as sp
from without_core import without_core

import kernelstream as ks
from kernelstream import KernelAWV, make_stream, zoo
from kernelstream.columns import Columns
from kernelstream.estimators import DoublySchedule, DoublyStep, HedgeWeights
from kernelstream.features import RandomFourier
from kernelstream.state import undo as _undo
from kernelstream.trust import Calibrated, WithIntervals
from kernelstream.updates import OGD

pytestmark = pytest.mark.usefixtures("short_searches")

ROOT = os.path.dirname(ks.__file__)
# Where a call is remembered and taken back, and what is left to do when it is complete.
SAFE = {
    "_begin_call",
    "_take_back",
    "_all_or_nothing",
    "learning",
    "_learn_any",
    "learn_plain",
    "_learn_checked",
    "learn_row",
}
# the files with `learn` itself
DOORS = ("state/turns.py", "state/undo.py", "classifier.py", "regressor.py", "outlier.py", "models.py")

rng = np.random.default_rng(0)
N = 150
X = rng.normal(size=(N, 3))
TARGETS = {
    "binary": (X[:, 0] * X[:, 1] > 0).astype(int),
    "multiclass": np.digitize(X[:, 0] + 0.5 * X[:, 1], [-1.0, 0.0, 1.0]),
    "regression": np.sin(2 * X[:, 0]) + X[:, 1],
    "novelty": None,
}
RECIPES = [(name, task) for name in zoo.names() for task in zoo.get(name).tasks]
CALLS = [slice(60, 90), slice(99, 140), slice(101, 102)]  # during the warm-up, across its end, a single row after it


class Injected(BaseException):
    """Not an Exception, as KeyboardInterrupt is none."""


@contextlib.contextmanager
def after_lines(n, everywhere=False):
    """Raise when so many lines of the library have been executed; the list has their number so far.

    With ``everywhere``, also where a call is remembered, completed and taken back.
    """
    count = [0]

    def line(frame, event, arg):
        if event == "line":
            count[0] += 1
            if count[0] == n:
                raise Injected
        return line

    def call(frame, event, arg):
        code = frame.f_code
        door = code.co_name in SAFE or (code.co_name in ("learn", "taken") and code.co_filename.endswith(DOORS))
        inside = code.co_filename.startswith(ROOT) and not code.co_filename.endswith("state/undo.py")
        return line if (code.co_filename.startswith(ROOT) if everywhere else inside and not door) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield count
    finally:
        sys.settrace(before)


def difference(a, b):
    """The first entry in which two states differ, if any."""
    if list(a) != list(b):
        return f"entries {sorted(set(a) ^ set(b))}"
    for name in a:
        x, y = np.asarray(a[name]), np.asarray(b[name])
        if x.shape != y.shape or x.dtype != y.dtype or x.tobytes() != y.tobytes():
            return name
    return None


def learn(model, rows, target, cut):
    if target is None:
        return model.learn(rows[cut])
    return model.learn(rows[cut], target[cut])


def interrupt(est, rows, target, calls, times, seed):
    """Interrupt calls of a learner at random lines."""
    lots = np.random.default_rng(seed)
    for cut in calls:
        base = copy.deepcopy(est)
        learn(base, rows, target, slice(0, cut.start))
        straight = copy.deepcopy(base)
        straight.predict(rows[:2])
        learn(copy.deepcopy(straight), rows, target, cut)  # what a process finds out once is known in all calls
        with after_lines(-1) as lines:
            learn(straight, rows, target, cut)
        for n in np.sort(lots.choice(lines[0], min(times, lines[0]), replace=False)) + 1:
            model = copy.deepcopy(base)
            model.predict(rows[:2])  # what is derived from the state is there
            before = copy.deepcopy(model.state_)
            with pytest.raises(Injected), after_lines(n):
                learn(model, rows, target, cut)
            what = f"{est!r}, rows {cut.start} to {cut.stop}, stopped at line {n} of {lines[0]}"
            assert difference(before, model.state_) is None, f"{what}: {difference(before, model.state_)} has changed"
            learn(model, rows, target, cut)
            left = difference(straight.state_, model.state_)
            assert left is None, f"{what}: {left} differs when the rows are learned again"
    assert not _undo._journals


@pytest.mark.parametrize("name", zoo.names())
def test_interrupted_anywhere(name):
    """One line, of one call; the slow test takes more of them."""
    tasks, seed = zoo.get(name).tasks, zlib.crc32(name.encode())
    task = tasks[seed % len(tasks)]
    sizes = {"batch_size": 8, "block_size": 8} if name.startswith("doubly") else {}
    if sizes and name not in ("doubly_gp", "doubly_svm", "doubly_ridge"):  # those choose, and may be interrupted there
        sizes |= {"gamma": 0.5, "eta": 0.5}
    est = zoo.make(name, task=task, random_state=0, **sizes)
    if not hasattr(est, "learn"):
        pytest.skip("learns all rows at once")
    target = TARGETS[task]
    if task == "multiclass":  # the last class appears late
        target = np.where(np.arange(N) < 25, np.minimum(target, 2), target)
    interrupt(est, X, target, [slice(18, 40)], 1, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name, task", RECIPES, ids=lambda value: value)
def test_interrupted_everywhere(name, task):
    target = TARGETS[task]
    if task == "multiclass":
        target = np.where(np.arange(N) < 95, np.minimum(target, 2), target)
    for engine, sparse in itertools.product(["python", "native"], [False, True]):
        est = zoo.make(name, task=task, random_state=0, engine=engine)
        if not hasattr(est, "learn"):
            pytest.skip("learns all rows at once")
        rows = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0)) if sparse else X
        interrupt(est, rows, target, CALLS, 12, zlib.crc32(f"{name} {task} {sparse}".encode()))


small = RandomFourier(gamma=0.5, n_components=8)


@pytest.mark.parametrize(
    "est",
    [
        ks.FeatureClassifier(small, class_weight="balanced", standardize=True, random_state=0),
        ks.NystroemClassifier(gamma=0.5, budget=10, refresh=20, random_state=0),
        ks.MultiKernelClassifier(
            [ks.BudgetClassifier(gamma=g, budget=20, strategy="remove_random") for g in (0.1, 1.0)],
            updates="stochastic", capacity="shared", random_state=0),
        ks.MultiKernelClassifier([ks.FeatureClassifier(RandomFourier(gamma=g, n_components=6)) for g in (0.1, 1.0)],
                                 combination=HedgeWeights(share=0.01), random_state=0),
    ],
    ids=lambda est: type(est).__name__,
)  # fmt: skip
@pytest.mark.parametrize("engine", ["python", "native"])
def test_parts_that_recipes_leave_out(est, engine):
    pytest.importorskip("kernelstream._core")
    est = copy.deepcopy(est).set_params(engine=engine)
    interrupt(est, X, TARGETS["multiclass"], [slice(30, 70)], 4, 1)


# at row 128 the monitors look, and grids are reviewed
WHOLES = {
    "Calibrated": (Calibrated(ks.FeatureClassifier(small, random_state=0)), "multiclass", slice(30, 60)),
    "WithIntervals": (WithIntervals(ks.FeatureRegressor(small, random_state=0)), "regression", slice(60, 61)),
    "KernelClassifier": (ks.KernelClassifier(size="small", random_state=0), "binary", slice(127, 128)),
    "both": (Calibrated(ks.KernelClassifier(size="small", random_state=0)), "binary", slice(140, 142)),
}


@pytest.mark.parametrize("name", WHOLES)
def test_what_is_learned_beside_a_model_goes_back_with_it(name):
    """Calibrators and trackers with the model inside, monitors with the learner that they watch."""
    est, task, call = WHOLES[name]
    interrupt(est, X, TARGETS[task], [call], 20, 0)


@pytest.mark.parametrize("name", WHOLES)
@pytest.mark.parametrize("times", [30, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_call_ends_for_all_it_changes_at_once(name, times):
    """At any line of the call, those that end it among them: what is inside has learned the rows, and the whole too."""
    est, task, call = WHOLES[name]
    base, target = copy.deepcopy(est), TARGETS[task]
    learn(base, X, target, slice(0, call.start))
    base.predict(X[:2])
    done = copy.deepcopy(base)
    with after_lines(-1, everywhere=True) as lines:
        learn(done, X, target, call)
    outcomes = []
    spread, last = range(1, lines[0], 1 + lines[0] // times), range(lines[0] - 80, lines[0], 1 + 80 // times)
    for n in sorted({*spread, *last}):
        model = copy.deepcopy(base)
        model.predict(X[:2])
        with contextlib.suppress(Injected), after_lines(n, everywhere=True):
            learn(model, X, target, call)
        outcomes.append([difference(state, model.state_) is None for state in (base.state_, done.state_)])
        assert any(outcomes[-1]), f"stopped at line {n} of {lines[0]}: half of it is learned"
        if outcomes[-1][0]:
            learn(model, X, target, call)
            assert difference(done.state_, model.state_) is None, n
    assert outcomes[0] == [True, False]
    assert outcomes[-1] == [False, True]


REFITTED = {
    "KernelClassifier": (ks.KernelClassifier(size="small", random_state=0), "multiclass"),
    "KernelRegressor": (ks.KernelRegressor(size="small", random_state=0), "regression"),
    "Calibrated": (Calibrated(ks.KernelClassifier(size="small", random_state=0)), "binary"),
    "MultiKernelClassifier": (
        ks.MultiKernelClassifier([ks.BudgetClassifier(gamma=1.0, budget=20)] * 2, random_state=0),
        "binary",
    ),
    "DoublyStochasticRegressor": (
        ks.DoublyStochasticRegressor(gamma=0.5, step=DoublyStep(eta=0.5), random_state=0),
        "regression",
    ),
    "MetricRegressor": (ks.MetricRegressor(size="small", random_state=0), "regression"),
}


@pytest.mark.parametrize("name", REFITTED)
@pytest.mark.parametrize("times", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_a_fit_that_is_interrupted_keeps_the_old_model(name, times):
    """It answers as before, learns as before, and can be fitted."""
    est, task = copy.deepcopy(REFITTED[name][0]), REFITTED[name][1]
    rows, target = np.tile(X, (2, 1)) + 0.01 * np.arange(2 * N)[:, None], np.tile(TARGETS[task], 2)
    (est.learn if hasattr(est, "learn") else est.fit)(X[:100], TARGETS[task][:100])
    answers, go_on, refitted = est.predict(X), copy.deepcopy(est), copy.deepcopy(est)
    if hasattr(est, "learn"):
        go_on.learn(X[100:], TARGETS[task][100:])
    with after_lines(-1, everywhere=True) as lines:
        refitted.fit(rows, target)
    lots = np.random.default_rng(0)
    for n in np.sort(lots.choice(lines[0] - 300, times, replace=False)) + 50:
        model = copy.deepcopy(est)
        model.predict(X[:2])
        with pytest.raises(Injected), after_lines(n, everywhere=True):
            model.fit(rows, target)
        what = f"stopped at line {n} of {lines[0]}"
        assert difference(est.state_, model.state_) is None, what
        np.testing.assert_array_equal(model.predict(X), answers, err_msg=what)
        if hasattr(est, "learn"):
            model.learn(X[100:], TARGETS[task][100:])
            assert difference(go_on.state_, model.state_) is None, what
        model.fit(rows, target)
        assert difference(refitted.state_, model.state_) is None, what


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # where the archive is collected
@pytest.mark.parametrize("times", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_an_interrupt_of_save_comes_out_as_one(times, tmp_path):
    """Also in the middle of an entry of the archive; the file is the old or the new one, and alone in its folder."""
    model, path = ks.FeatureRegressor(small, random_state=0), tmp_path / "model.ks"
    model.learn(X[:50], TARGETS["regression"][:50])
    ks.save(model, path)
    old = path.read_bytes()
    model.learn(X[50:], TARGETS["regression"][50:])

    def interrupted(n):
        count = [0]

        def line(frame, event, arg):
            if event == "line":
                count[0] += 1
                if count[0] == n:
                    raise KeyboardInterrupt
            return line

        sys.settrace(lambda frame, event, arg: line)
        try:
            ks.save(model, path)
        finally:
            sys.settrace(None)
        return count[0]

    interrupted(-1)
    total, new = interrupted(-1), path.read_bytes()
    for n in np.linspace(1, total - 50, times).astype(int):
        path.write_bytes(old)
        with pytest.raises(KeyboardInterrupt):
            interrupted(n)
        assert path.read_bytes() in (old, new)
        assert [file.name for file in tmp_path.iterdir()] == ["model.ks"]


def words(n):
    """Rows of a number, words and codes: more of them than have a column of their own, and new ones all the time."""
    words = [f"w{i if i % 4 == 0 else i * i % 37}" for i in range(n)]
    return [{"a": float(X[i, 0]), "b": words[i], "c": i % 7, "d": "xyz"[i % 3]} for i in range(n)]


@pytest.mark.parametrize("engine", ["python", "auto"])
@pytest.mark.parametrize("call", [slice(0, 12), slice(60, 61), slice(60, 72)], ids=str)
def test_what_is_learned_of_columns_goes_back_with_the_model(call, engine):
    """The names of a column, its counts, and the model that learns its codes."""
    rows, target = words(80), TARGETS["regression"][:80]
    est = make_stream(Columns(one_hot=4, engine=engine), ks.FeatureRegressor(small, random_state=0), room=30)
    known = call.start or 20  # with new columns, or without
    est.learn(rows[:known], target[:known])
    new = rows[call] if call.start else [row | {"e": f"v{i}"} for i, row in enumerate(rows[call])]
    new = new[0] if len(new) == 1 else new
    before, straight = copy.deepcopy(est.state_), copy.deepcopy(est)
    with after_lines(-1) as lines:
        straight.learn(new, target[call])
    first = 300  # lines among which the encoder is done, if the engine is compiled
    for n in [*range(1, first), *range(first, lines[0] + 1, lines[0] // 60)]:
        with contextlib.suppress(Injected), after_lines(n):
            est.learn(new, target[call])
            break
        left = difference(before, est.state_)
        assert left is None, f"stopped at line {n} of {lines[0]}: {left} has changed"
    else:
        est.learn(new, target[call])
    assert difference(straight.state_, est.state_) is None


@pytest.mark.parametrize("call", [slice(140, 141), slice(140, 144)], ids=str)
def test_a_learner_goes_back_with_its_encoder(call):
    """The default learner of rows with words: at any line both have learned the rows, or neither."""
    rows, target = words(N), TARGETS["binary"]
    est = ks.KernelClassifier(size="small", random_state=0)
    est.learn(rows[:140], target[:140])
    new = rows[call] if call.stop - call.start > 1 else rows[call.start]
    before, done = copy.deepcopy(est.state_), copy.deepcopy(est)
    done.predict(rows[0])  # what is derived from the state is there
    copy.deepcopy(done).learn(new, target[call])  # how its words were read is remembered: all calls have as many lines
    with after_lines(-1) as lines:
        done.learn(new, target[call])
    outcomes = []
    for n in range(1, lines[0] + 1, 1 + lines[0] // 100):
        model = copy.deepcopy(est)
        model.predict(rows[0])
        with pytest.raises(Injected), after_lines(n):
            model.learn(new, target[call])
        outcomes.append([difference(state, model.state_) is None for state in (before, done.state_)])
        assert any(outcomes[-1]), (n, lines[0])
    assert outcomes[0] == [True, False]


def test_a_row_that_is_learned_alone():
    """What the River adapter calls."""
    model = ks.FeatureClassifier(small, random_state=0)
    model.learn(X, TARGETS["binary"])
    before = copy.deepcopy(model.state_)
    with after_lines(-1) as lines:
        copy.deepcopy(model).learn_row(X[:1].copy(), 1)
    for n in range(1, lines[0] + 1, 3):
        with contextlib.suppress(Injected), after_lines(n):
            model.learn_row(X[:1].copy(), 1)
            break
        assert difference(before, model.state_) is None, n


def test_divergence():
    """Steps far too large: the error names them, and the model is what it was."""
    model = ks.DoublyStochasticRegressor(
        gamma=0.5,
        lam=0.0,
        step=DoublyStep(eta=1e200),
        schedule=DoublySchedule(batch_size=10, block_size=8),
        center=False,
        random_state=0,
    )
    model.learn(X[:5], TARGETS["regression"][:5])
    before = copy.deepcopy(model.state_)
    with pytest.raises(ValueError, match="too large"):
        model.learn(X[5:], TARGETS["regression"][5:])
    assert difference(before, model.state_) is None


def test_a_member_that_fails(monkeypatch):
    """One learner of many: those that had learned the rows before it forget them again."""
    learners = [ks.NystroemClassifier(gamma=g, budget=30) for g in (0.1, 1.0)] + [ks.FeatureClassifier(small)]
    model = ks.MultiKernelClassifier(learners, random_state=0)
    model.learn(X[:40], TARGETS["binary"][:40])
    before, member = copy.deepcopy(model.state_), model.learners_[1]
    healthy = type(member._learner).learn

    def fails(self, state, *rest):
        healthy(self, state, *rest)
        if self is member._learner:
            raise MemoryError
        return None

    monkeypatch.setattr(type(member._learner), "learn", lambda self, *args: fails(self, *args) or healthy(self, *args))
    with pytest.raises(MemoryError):
        model.learn(X[40:80], TARGETS["binary"][40:80])
    monkeypatch.undo()
    assert difference(before, model.state_) is None
    assert model.learners_[1] is member  # and who holds one still holds one of the model's
    model.learn(X[40:80], TARGETS["binary"][40:80])
    whole = ks.MultiKernelClassifier(learners, random_state=0)
    whole.learn(X[:40], TARGETS["binary"][:40])
    whole.learn(X[40:80], TARGETS["binary"][40:80])
    assert difference(whole.state_, model.state_) is None


def test_fit_that_fails_keeps_the_old_model():
    callback = pytest.importorskip("sklearn.callback")
    assert callback

    class Fails:
        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, X, y):
            raise RuntimeError("no more")

    rows = np.tile(X, (10, 1))
    for est in (ks.FeatureClassifier(small, random_state=0), ks.BinningClassifier(n_components=4, gamma=1.0, lam=1.0)):
        est.fit(X, TARGETS["binary"])
        before, attributes = copy.deepcopy(est.state_), set(est.__dict__)
        answers = est.predict(X)
        est.set_callbacks(Fails())
        with pytest.raises(RuntimeError, match="no more"):
            est.fit(rows, np.tile(TARGETS["binary"], 10))
        assert difference(before, est.state_) is None
        assert set(est.__dict__) - attributes <= {"_skl_callbacks"}
        np.testing.assert_array_equal(est.predict(X), answers)


@pytest.mark.parametrize("est", [ks.OnlineRidge(small, random_state=0), KernelAWV(gamma=0.5),
                                 ks.BudgetClassifier(gamma=0.5, budget=20, strategy="project")],
                         ids=lambda est: type(est).__name__)  # fmt: skip
def test_entries_said_to_be_replaced_are_never_written_to(est):
    """Which entries need no copy is written down; a family that writes to one of them is found out here."""
    target = TARGETS["binary"] if isinstance(est, ks.BudgetClassifier) else TARGETS["regression"]
    est.learn(X[:50], target[:50])
    for name in est._learner.writes(est._state)[0] & est.state_.keys():
        est.state_[name].setflags(write=False)
    est.learn(X[50:], target[50:])


@pytest.mark.parametrize("strategy", ["forgetron", "project", "projectron", "transfer", "remove_redundant"])
def test_large_matrices_are_made_again(strategy, rng):
    """They follow from the support vectors, up to rounding; everything else is what it was, to the last bit."""
    rows = rng.normal(size=(700, 3))
    target = (rows[:, 0] > 0.3 * np.sin(9 * rows[:, 1])).astype(int)
    model = ks.BudgetClassifier(gamma=50.0, budget=400, strategy=strategy, update=OGD(0.5), random_state=0)
    model.learn(rows[:600], target[:600])
    assert model._learner.writes(model._state)[0], "nothing is large here"
    before, other = copy.deepcopy(model.state_), copy.deepcopy(model)
    for each in (model, other):
        each.learn(rows[:1], target[:1], sample_weight=[0.0])  # what is derived from the state is there
    with after_lines(-1) as lines:
        learn(other, rows, target, slice(600, 700))
    with pytest.raises(Injected), after_lines(lines[0] - 2):
        learn(model, rows, target, slice(600, 700))
    large, n = model._learner.writes(model._state)[0], before["n_support"]
    rest = {name: value for name, value in before.items() if name not in large}
    assert difference(rest, {name: model.state_[name] for name in rest}) is None
    for name in large:
        made, kept = model.state_[name][:n], before[name][:n]
        if (
            name == "budget_basis"
        ):  # orthonormal functions are determined up to a rotation: Q'Q is the inverse Gram matrix
            made, kept = made.T @ made, kept.T @ kept
        np.testing.assert_allclose(made, kept, rtol=1e-9, atol=1e-9, err_msg=name)
    straight = copy.deepcopy(model)
    straight.state_ = before
    scores = [learn(each, rows, target, slice(600, 700)) for each in (model, straight)]
    np.testing.assert_allclose(*scores, rtol=1e-7, atol=1e-7)


def test_what_is_kept_for_going_back_is_not_saved():
    model = ks.FeatureClassifier(small, random_state=0)
    model.learn(X, TARGETS["binary"])
    fresh = len(pickle.dumps(model))
    model.learn(X[:1], TARGETS["binary"][:1])
    model.learn(X[:1], TARGETS["binary"][:1])
    assert len(pickle.dumps(model)) == fresh


@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_marks(kind):
    make = _undo.Marks if kind == "compiled" else without_core("kernelstream.state.undo").Marks
    state = {"a": np.arange(6.0).reshape(2, 3), "n": 1, "b": np.asfortranarray(np.eye(3)), "big": np.ones(4)}
    other = {"c": np.ones(2, np.float32), "s": "x"}
    arrays = [(0, "a", state["a"], np.empty_like(state["a"])), (0, "b", state["b"], np.empty_like(state["b"])),
              (0, "big", state["big"], None), (1, "c", other["c"], np.empty_like(other["c"]))]  # fmt: skip
    marks = make([state, other], arrays)
    assert not marks.restore()  # nothing was saved
    before = copy.deepcopy((state, other))
    assert marks.save()
    state["a"][:], state["b"][1], other["c"][0], state["n"], state["new"], other["s"] = 7, 7, 7, 7, 7, "y"
    state["a"] = np.zeros(1)
    del state["big"]
    assert marks.restore()
    for now, then in zip((state, other), before):
        assert difference(then, now) is None
    assert not marks.restore()  # once only
    assert marks.save()
    marks.forget()
    assert not marks.restore()
    for change in (lambda: state.update(a=state["a"].copy()), lambda: state.update(more=1)):
        assert marks.save()
        marks.forget()
        change()
        assert not marks.save()  # other arrays, or other entries, than it knows
        state.update(a=arrays[0][2])
        state.pop("more", None)
