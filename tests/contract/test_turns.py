"""Threads that share an estimator take turns: a call sees the model before or after another call, never in between."""

import copy
import pickle
import threading
import time

import numpy as np
import pytest
from recipes import first_of_each_class
from waiting import in_threads, run_until
from without_core import without_core

import kernelstream as ks
from kernelstream import zoo
from kernelstream.features import RandomFourier
from kernelstream.state import turns as _turns
from kernelstream.testing.streaming import assert_same_state

pytestmark = pytest.mark.usefixtures("short_searches")

rng = np.random.default_rng(0)
X = rng.normal(size=(160, 4))
TARGETS = {
    "binary": (X[:, 0] * X[:, 1] > 0).astype(int),
    "multiclass": np.digitize(X[:, 0], [-0.7, 0.0, 0.7]),
    "regression": np.sin(2 * X[:, 0]) + X[:, 1],
    "novelty": None,
}


class Crew:
    """Threads that ask until they are told to stop; what goes wrong in them is kept."""

    def __init__(self, *works):
        self.over, self.errors = threading.Event(), []
        self.threads = [threading.Thread(target=self._run, args=(work,)) for work in works]

    def _run(self, work):
        try:
            while not self.over.is_set():
                work()
        except BaseException as error:
            self.errors.append(error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        for thread in self.threads:
            thread.join(60)
        assert not self.errors, self.errors
        assert not any(thread.is_alive() for thread in self.threads), "a thread waits for ever"


def learn(model, target, cut):
    return model.learn(X[cut]) if target is None else model.learn(X[cut], target[cut])


@pytest.mark.filterwarnings("ignore:.* has not converged")
@pytest.mark.parametrize("name", first_of_each_class(zoo.names()))
def test_predict_while_another_thread_learns(name):
    """Every family: all rows are learned, nobody gets an error, the model is that of one thread."""
    task = zoo.get(name).tasks[-1]
    sizes = {"batch_size": 8, "block_size": 8, "gamma": 0.5} if name.startswith("doubly") else {}
    if sizes and name not in ("doubly_gp", "doubly_svm"):  # those two choose, while others ask
        sizes |= {"eta": 0.5}
    est = zoo.make(name, task=task, random_state=0, **sizes)
    target = TARGETS[task]
    if not hasattr(est, "learn"):
        est.fit(X[:40], target[:40])  # nothing goes on learning; several may ask
        answers = est.predict(X)
        with Crew(*[lambda: np.testing.assert_array_equal(est.predict(X), answers)] * 2):
            time.sleep(0.02)
        return
    cuts = [slice(i, i + 5) for i in range(20, 60, 5)]
    learn(est, target, slice(0, 20))
    alone = copy.deepcopy(est)
    for cut in cuts:
        learn(alone, target, cut)
    asks = ["predict", *(name for name in ("decision_function", "score_samples") if hasattr(est, name))]
    with Crew(*[lambda ask=ask: getattr(est, ask)(X[:7]) for ask in (asks * 2)[:2]]):
        for cut in cuts:
            learn(est, target, cut)
    assert est.state_["t"] == alone.state_["t"]
    assert_same_state(est.state_, alone.state_, 0.0, name)


SHARED = [
    ks.FeatureClassifier(RandomFourier(gamma=0.5, n_components=400), random_state=0),
    ks.BudgetClassifier(gamma=0.5, budget=40, random_state=0),
    ks.OnlineRidge(RandomFourier(gamma=0.5, n_components=40), random_state=0),
    ks.MultiKernelClassifier(
        [ks.FeatureClassifier(RandomFourier(gamma=g, n_components=40)) for g in (0.1, 1.0)], random_state=0
    ),
]


@pytest.mark.parametrize("est", SHARED, ids=lambda est: type(est).__name__)
def test_answers_are_those_of_a_model_between_two_calls(est):
    est = copy.deepcopy(est)
    target = TARGETS["regression" if isinstance(est, ks.OnlineRidge) else "binary"]
    ask = "predict" if isinstance(est, ks.OnlineRidge) else "decision_function"
    rows = np.ascontiguousarray(np.tile(X, (20, 1)))
    labels = np.tile(target, 20)
    cuts = [slice(i, i + 200) for i in range(0, len(rows), 200)]
    est.learn(rows[:200], labels[:200])
    alone, known = copy.deepcopy(est), set()
    for cut in cuts:
        known.add(getattr(alone, ask)(X[:16]).tobytes())
        alone.learn(rows[cut], labels[cut])
    known.add(getattr(alone, ask)(X[:16]).tobytes())
    seen = []
    with Crew(*[lambda: seen.append(getattr(est, ask)(X[:16]).tobytes())] * 2):
        for cut in cuts:
            est.learn(rows[cut], labels[cut])
    assert seen
    assert set(seen) <= known, "somebody saw a model in the middle of a call"


def test_rows_of_several_threads_are_all_learned():
    est = ks.FeatureRegressor(RandomFourier(gamma=0.5, n_components=20), random_state=0)
    each = 40

    def teach(part):
        for i in range(each):
            est.learn(X[part : part + 3], TARGETS["regression"][part : part + 3])
            est.partial_fit(X[i : i + 1], TARGETS["regression"][i : i + 1], sample_weight=[0.0])

    in_threads(teach, range(4))
    assert est.state_["t"] == 4 * each * 3
    assert est.state_["center"][0] == 4 * each * 3


def test_who_waits_comes_next():
    """A thread that learns block after block lets another one in after the next block, not at the end."""
    est = ks.FeatureRegressor(RandomFourier(gamma=0.5, n_components=500), random_state=0)
    rows, target = np.tile(X, (20, 1)), np.tile(TARGETS["regression"], 20)
    est.learn(rows, target)
    done, asked = [], threading.Event()

    def ask():
        asked.set()
        for _ in range(5):
            est.predict(X)
            done.append(time.perf_counter())

    asker = threading.Thread(target=ask)
    blocks = 0
    asker.start()
    asked.wait(10)
    while asker.is_alive() and blocks < 400:
        est.learn(rows, target)
        blocks += 1
    asker.join(60)
    assert blocks < 40, "it had to wait for many blocks"


def test_members_take_the_turns_of_the_whole():
    whole = ks.MultiKernelClassifier([ks.BudgetClassifier(gamma=g, budget=10) for g in (0.1, 1.0)], random_state=0)
    whole.learn(X[:40], TARGETS["binary"][:40])
    member = whole.learners_[0]
    with Crew(lambda: member.predict(X[:5]), lambda: whole.predict(X[:5]), lambda: whole.weights_):
        for i in range(40, 100, 5):
            whole.learn(X[i : i + 5], TARGETS["binary"][i : i + 5])
    assert whole.state_["t"] == 100


def test_copies_and_files_made_while_it_learns(tmp_path):
    """A pickle, a deep copy and a file hold a model between two calls."""
    est = ks.FeatureClassifier(RandomFourier(gamma=0.5, n_components=300), random_state=0)
    rows, target = np.tile(X, (10, 1)), np.tile(TARGETS["binary"], 10)
    est.learn(rows, target)
    states, alone = {}, copy.deepcopy(est)
    for _ in range(12):
        states[alone.state_["t"]] = alone.state_["w"].tobytes()
        alone.learn(rows, target)
    states[alone.state_["t"]] = alone.state_["w"].tobytes()
    made = []

    def copies():
        made.append(pickle.loads(pickle.dumps(est)))
        made.append(copy.deepcopy(est))
        path = tmp_path / "model.ks"
        ks.save(est, path)
        made.append(ks.load(path))

    with Crew(copies):
        for _ in range(12):
            est.learn(rows, target)
    assert made
    for model in made:
        assert states[model.state_["t"]] == model.state_["w"].tobytes()


@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_the_lock(kind):
    make = _turns.Turns if kind == "compiled" else without_core("kernelstream.state.turns").Turns
    turns, order, inside, came = make(), [], [], []

    def work(i):
        came.append(i)
        with turns, turns:  # again by the same thread
            assert not inside
            inside.append(i)
            time.sleep(0.002)
            order.append(inside.pop())

    threads = []
    with turns:
        for i in range(6):
            threads.append(threading.Thread(target=work, args=(i,)))
            threads[-1].start()
            run_until(lambda i=i: len(came) > i)
            time.sleep(0.03)  # they stand in line in this order
    for thread in threads:
        thread.join(30)
    assert sorted(order) == list(range(6))
    if kind == "compiled":
        assert order == list(range(6))
    with pytest.raises(KeyError), turns:
        raise KeyError
    work(7)  # nobody holds it


def test_an_interrupt_reaches_who_waits():
    """Control-C ends the wait for a turn, and the line goes on without the one who left."""
    import signal

    turns, held, free = _turns.Turns(), threading.Event(), threading.Event()

    def hold():
        with turns:
            held.set()
            free.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for what runs in background
    threading.Timer(0.1, lambda: signal.raise_signal(signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt), turns:
            pass
    finally:
        signal.signal(signal.SIGINT, before)
        free.set()
    holder.join(30)
    with turns:
        pass
