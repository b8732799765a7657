"""Changes that are there are found, soon, and none where there is none: simulated streams whose answer is known."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from scipy.stats import f as f_law

from kernelstream import FeatureClassifier, OnlineRidge, drift
from kernelstream.evaluate import prequential
from kernelstream.monitor import Adwin, KernelTwoSample, Mark, Monitor

STEADY = {
    "mistakes": lambda rng, n: rng.random(n) < 0.2,
    "rare mistakes": lambda rng, n: rng.random(n) < 0.005,
    "squares": lambda rng, n: rng.normal(size=n) ** 2,
    "heavy tails": lambda rng, n: rng.standard_t(3, n) ** 2,
    "nothing": lambda rng, n: np.zeros(n),
    "falling": lambda rng, n: rng.random(n) < 0.1 + 0.4 * np.exp(-np.arange(n) / 2000),
}


@pytest.mark.parametrize("kind", STEADY)
def test_no_false_alarm_in_steady_losses(kind):
    loss = STEADY[kind](np.random.default_rng(7), 20_000).astype(float)
    assert Adwin().learn(loss) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", STEADY)
def test_no_false_alarm_in_half_a_million_rows(kind):
    rng = np.random.default_rng(8)
    loss = STEADY[kind](rng, 500_000).astype(float)
    assert Monitor(inputs=False).learn(loss) == []


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_a_rise_is_found_within_500_rows(unit):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n = 6000
        late = np.arange(n) >= 4000
        for loss in (rng.random(n) < np.where(late, 0.35, 0.1), np.where(late, 3.0, 1.0) * rng.normal(size=n) ** 2):
            found = Adwin().learn(unit * loss.astype(float))
            assert len(found) == 1
            row, since = found[0]
            assert 4000 < row <= 4500
            assert abs(since - 4000) < 300


def test_changes_again_and_again():
    rng = np.random.default_rng(0)
    rate = 0.1 + 0.35 * (np.arange(20_000) // 2500 % 2)
    marks = Monitor(inputs=False).learn((rng.random(20_000) < rate).astype(float))
    assert [round(mark.since / 2500) for mark in marks] == [1, 3, 5, 7]  # rises only: better is no alarm


@pytest.mark.parametrize("kind", ["normal", "skewed", "few values", "constant column", "wide"])
def test_no_false_alarm_in_steady_rows(kind):
    rng = np.random.default_rng(3)
    X = {
        "normal": lambda: rng.normal(size=(12_000, 4)),
        "skewed": lambda: rng.exponential(size=(12_000, 3)) ** 2,
        "few values": lambda: rng.integers(0, 3, (12_000, 5)),
        "constant column": lambda: rng.normal(size=(12_000, 3)) * [1.0, 0.0, 5.0],
        "wide": lambda: rng.normal(size=(12_000, 60)),
    }[kind]()
    assert KernelTwoSample().learn(X) == []


@pytest.mark.slow
def test_no_false_alarm_in_many_steady_rows():
    rng = np.random.default_rng(4)
    for d in (2, 3, 10):
        for X in (rng.normal(size=(200_000, d)), rng.exponential(size=(200_000, d)), rng.random((200_000, d)) < 0.05):
            assert KernelTwoSample().learn(X) == []


@pytest.mark.parametrize("kind", ["mean", "scale", "dependence", "one of many"])
def test_changed_rows_are_found_within_500(kind):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(6000, 30 if kind == "one of many" else 5))
    late = X[4000:]
    if kind == "mean":
        late += 0.7
    elif kind == "scale":
        late[:, 1] *= 2.5
    elif kind == "dependence":  # every column looks as before
        late[:, 0] = 0.8 * late[:, 1] + 0.6 * late[:, 0]
    else:
        late[:, 3] += 3
    found = KernelTwoSample().learn(X)
    assert len(found) == 1
    assert 4000 < found[0][0] <= 4500


def test_the_statistic_is_hotellings():
    """At the block where the alarm comes, the naive statistic is beyond the law's quantile, and not before."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(3000, 3))
    X[2000:] += 0.8
    detector = KernelTwoSample()
    [(row, _)] = detector.learn(X)
    angles = X @ detector.state["W"]
    Z = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    chances = []
    for end in range(row - 96, row + 1, 32):
        old, new = Z[: end - 256], Z[end - 256 : end]
        n, m, k = len(old), 256, 32
        S = ((n - 1) * np.cov(old.T) + (m - 1) * np.cov(new.T)) / (n + m - 2) + 0.02 * np.eye(k)
        apart = old.mean(axis=0) - new.mean(axis=0)
        T2 = n * m / (n + m) * apart @ np.linalg.inv(S) @ apart
        chances.append(f_law.sf(T2 * (n + m - k - 1) / (k * (n + m - 2)), k, n + m - k - 1))
    assert chances[-1] < 32e-9 < min(chances[:-1])


def test_any_split_marks_the_same_rows():
    rng = np.random.default_rng(1)
    late = np.arange(5000) >= 3000
    loss, X = (rng.random(5000) < np.where(late, 0.5, 0.1)).astype(float), rng.normal(size=(5000, 3))
    X[2500:] += 1.0
    whole, parts = Monitor(), Monitor()
    whole.learn(loss, X)
    cuts = [0, 1, 2, 33, 64, 300, 3001, 3100, 4999, 5000]
    for a, b in itertools.pairwise(cuts):
        parts.learn(loss[a:b])
        parts.learn(X=X[a:b])
        other = Monitor()
        other.state = parts.state  # and it goes on from its state
        parts = other
    assert sorted(whole.marks, key=str) == sorted(parts.marks, key=str)
    assert {mark.what for mark in whole.marks} == {"loss", "inputs"}
    assert all(np.array_equal(whole.state[name], parts.state[name]) for name in whole.state if name != "marks")


@pytest.mark.parametrize("loss", [0.1, 7.7, 1e10 / 3, 1e150])
def test_a_loss_that_is_always_the_same_is_no_change(loss):
    assert Adwin().learn(np.full(5000, loss)) == []


@pytest.mark.parametrize("delay", [0, 300])
def test_the_demonstration_streams_jumps(delay):
    blocks = drift.generate(32_000, block=500, random_state=0)
    model = FeatureClassifier(random_state=0)
    options = {"delay": delay, "block_size": 100} if delay else {}
    result = prequential(model, blocks, classes=[-1, 1], monitor=Monitor(), **options)
    jumps = [8000, 16_000, 24_000]
    assert len(result.marks) == 3
    for mark, jump in zip(result.marks, jumps, strict=True):
        assert mark.what == "loss"
        assert jump + delay < mark.row <= jump + delay + 500  # not before the labels can tell
    assert result.to_dict()["marks"][0]["row"] == result.marks[0].row


def test_a_steady_run_has_no_marks_and_reactions_are_called():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 3))
    y = np.where(np.arange(8000) < 5000, X[:, 0], -X[:, 0]) + 0.1 * rng.normal(size=8000)
    told = []
    model = OnlineRidge(random_state=0)
    result = prequential(model, X, y, monitor=Monitor(react=lambda est, mark: told.append((est, mark))))
    assert result.marks
    assert all(5000 < mark.row < 5500 for mark in result.marks)
    assert told == [(model, mark) for mark in result.marks]
    assert prequential(OnlineRidge(random_state=0), X[:5000], y[:5000], monitor=Monitor()).marks == ()


def test_bad_values_are_refused():
    for bad in ([np.nan], [-1.0], [[1.0]]):
        with pytest.raises(ValueError, match="losses must be"):
            Monitor().learn(bad)
    with pytest.raises(ValueError, match="rows must be"):
        KernelTwoSample().learn([1.0])
    detector = KernelTwoSample()
    detector.learn(np.zeros((5, 3)))
    with pytest.raises(ValueError, match="columns"):
        detector.learn(np.zeros((5, 2)))
    assert detector.learn(np.random.default_rng(0).normal(size=(2000, 4))) == []  # more columns: it begins anew
    with pytest.raises(ValueError, match="multiple"):
        KernelTwoSample(window=100)
    with pytest.raises(ValueError, match="delta"):
        Adwin(0)


def test_marks_in_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    from kernelstream import plots

    blocks = drift.generate(6000, block=500, random_state=0, n_concepts=2)
    result = prequential(FeatureClassifier(random_state=0), blocks, classes=[-1, 1], monitor=Monitor())
    drawn = plots.curves(result, tmp_path / "run.png", windows=20)
    at = [line.get_xdata()[0] for line in drawn.axes[0].lines if line.get_linestyle() == ":"]
    assert at == [mark.row for mark in result.marks]
    assert isinstance(result.marks[0], Mark)


def test_the_command_line_shows_the_changes(tmp_path, capsys):
    import json

    from kernelstream.cli import main

    [(X, y)] = drift.generate(8000, block=8000, random_state=0, n_concepts=2)
    path = tmp_path / "stream.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,c,d,y", comments="", fmt="%.5f")
    call = ["evaluate", str(path), "--target", "y", "--task", "binary", "-a", "fogd", "--monitor", "-q"]
    main([*call, "--json"])
    [mark] = json.loads(capsys.readouterr().out)["changes"]
    assert 4000 < mark["row"] <= 4500
    main(call)
    assert f"loss at row {mark['row']:,}" in capsys.readouterr().out


def test_reactions_change_what_was_learned():
    """After `forget` least squares count a tenth of the rows; after `restart` nothing is known but the labels."""
    from kernelstream import KernelClassifier, OnlineRidgeClassifier
    from kernelstream.monitor import forget, restart

    X = np.random.default_rng(0).normal(size=(400, 3))
    y = (X[:, 0] > 0).astype(int)
    ridge = OnlineRidgeClassifier("raw", random_state=0).partial_fit(X, y)
    forget(0.5)(ridge, None)  # the last rows have joined the sums now
    before, scores = ridge.state_["mass"], ridge.decision_function(X)
    forget(0.1)(ridge, None)
    assert ridge.state_["mass"] == pytest.approx(0.1 * before)
    assert np.corrcoef(scores, ridge.decision_function(X))[0, 1] > 0.99  # it still says the same, with less weight
    restart()(ridge, None)
    assert not ridge.decision_function(X).any() and ridge.classes_.tolist() == [0, 1]
    one = KernelClassifier(size="small", random_state=0).partial_fit(X, y)
    restart()(one, None)
    assert all(member["restarts"] == 1 for member in one.members_)
    one.learn(X, y)
    with pytest.raises(ValueError, match="keep"):
        forget(2)
    with pytest.raises(ValueError, match="a learner of this library"):
        forget()(object(), None)


def changing(seed, n=6000):
    """Losses that rise and fall, rows that change: all that the detectors can see."""
    rng = np.random.default_rng(seed)
    at = np.arange(n)
    loss = rng.exponential(np.where((at > 2000) & (at < 4000), 3.0, 1.0))
    X = rng.normal(size=(n, 5))
    X[3000:, seed % 5] *= 2.0
    return loss, X


@pytest.mark.parametrize("seed", range(3))
def test_adwin_is_the_naive_program(seed):
    """Which keeps the losses themselves, in lists, and takes means and variances of them."""
    loss, _ = changing(seed)
    first, parts, expected, falls = [], [], [], 0
    for end in range(32, len(loss) + 1, 32):
        block = loss[end - 32 : end]
        if len(first) < 128:
            first += block.tolist()
            continue
        parts.append(block / (block + np.mean(first)))
        for size in 32 * 2 ** np.arange(10):
            same = [i for i, part in enumerate(parts) if len(part) == size]
            if len(same) > 5:
                parts[same[0] : same[0] + 2] = [np.concatenate(parts[same[0] : same[0] + 2])]
        whole, best = np.concatenate(parts), (0.0, 0, 0, 0.0)
        log = np.log(2 * np.log(len(whole)) / 1e-6)
        for i in range(1, len(parts)):
            old, new = np.concatenate(parts[:i]), np.concatenate(parts[i:])
            m, rise = 1 / (1 / len(old) + 1 / len(new)), new.mean() - old.mean()
            best = max(best, (abs(rise) - np.sqrt(2 / m * whole.var() * log) - 2 / (3 * m) * log, i, len(new), rise))
        _, cut, rows, rise = best
        if rise > 0:
            expected.append((end, end - rows))
            first, parts = [], []
        falls += rise < 0
        parts = parts[cut:]
    assert Adwin().learn(loss) == expected
    assert expected and falls


def test_a_monitor_can_be_copied_and_pickled():
    loss, X = changing(2)
    one = Monitor()
    one.learn(loss[:1500], X[:1500])
    others = pickle.loads(pickle.dumps(one)), copy.deepcopy(one)
    found = one.learn(loss[1500:], X[1500:])
    assert found and all(two.learn(loss[1500:], X[1500:]) == found for two in others)


def test_a_change_reaches_the_learner_inside_wrappers():
    from kernelstream.columns import Columns, make_stream
    from kernelstream.innermost import innermost
    from kernelstream.monitor import forget, restart
    from kernelstream.trust import Delayed, WithIntervals

    X = np.random.default_rng(0).normal(size=(500, 3))
    plain = OnlineRidge(standardize=False)
    wrapped = Delayed(WithIntervals(make_stream(Columns(scale=False), plain)))
    assert innermost(wrapped) is plain  # before the first row, that whose copy will learn
    forget()(wrapped, None)
    assert not hasattr(plain, "state_")
    wrapped.learn(X, X[:, 0])
    learner = innermost(wrapped)
    assert learner is wrapped.model_.model_.model_ and innermost(learner) is learner
    forget(0.5)(wrapped, None)  # the last rows have joined the sums now
    before = learner.state_["mass"]
    forget(0.1)(wrapped, None)
    assert learner.state_["mass"] == pytest.approx(0.1 * before)
    restart()(wrapped, None)
    assert not learner.coef_.any() and learner is innermost(wrapped)
