"""Parts written elsewhere: a loss, an update, a kernel, a strategy, a feature map and a recipe in Python alone."""

import io
import math
import os
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import own_parts
import pytest
import scipy.sparse as sp
from command_line import err, out, run
from sklearn.base import is_classifier

import kernelstream as ks
from kernelstream import budgets, engine, features, kernels, losses, updates, zoo
from kernelstream.estimators import DoublySchedule, DoublyStep
from kernelstream.model_io import ModelFileError
from kernelstream.registry import twins as _twins
from kernelstream.testing import check_streaming
from kernelstream.testing.streaming import assert_same_scores, assert_same_state
from kernelstream_papers import rivals

native = pytest.mark.skipif(not engine.has_native(), reason="needs the compiled core")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(115, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
LABELS = np.digitize(Y, [-0.5, 0.5])


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    with own_parts.imported(tmp_path_factory.mktemp("elsewhere")) as module:
        yield module


@pytest.fixture(scope="module", autouse=True)
def soft(parts):
    """A binary loss with a parameter, by functions that plain numbers do not have."""

    @losses.register
    class Soft(losses.Loss):
        """T log(1 + exp(-y f / T))."""

        name, kind, bound = "soft", "binary", 1.0

        def __init__(self, T=0.5):
            self.T = T

        def _value(self, y, f, xp):
            return self.T * xp.logaddexp(0.0, -y * f / self.T)

        def _gradient(self, y, f, xp):
            return -0.5 * y * (1.0 - xp.tanh(0.5 * y * f / self.T))

    return Soft


# -------------------------------------------------------------------- every engine, every family
EXPANSIONS = [ks.BudgetClassifier(gamma=g, loss=loss, budget=9) for g in (0.1, 1.0) for loss in ("soft", "hinge")]
FEATURES = [
    ks.FeatureRegressor(features.RandomFourier(gamma=g), loss=loss)
    for g in (0.1, 1.0)
    for loss in ("log_cosh", "squared")
]
FAMILIES = {
    "feature, loss": (ks.FeatureClassifier, {"loss": "soft"}),
    "feature, update": (ks.FeatureClassifier, {"update": "normalised"}),
    "feature, both averaged": (ks.FeatureRegressor, {"loss": "log_cosh", "update": updates.Averaged("normalised")}),
    "feature, kernel": (ks.FeatureRegressor, {"features": features.RandomFourier("sech", 32)}),
    "feature, map": (ks.FeatureRegressor, {"features": "gaussian_sketch"}),
    "feature, Nyström": (ks.FeatureClassifier, {"features": features.Nystroem("sech", 20)}),
    "budget, loss": (ks.BudgetClassifier, {"loss": "soft", "budget": 15}),
    "budget, update": (ks.BudgetRegressor, {"update": "normalised", "budget": 15}),
    "budget, kernel": (ks.BudgetClassifier, {"kernel": "sech", "budget": 15}),
    "budget, strategy": (ks.BudgetClassifier, {"strategy": "remove_oldest", "budget": 15}),
    "budget, growing": (
        ks.BudgetClassifier,
        {"strategy": "oskl", "update": "normalised", "loss": "soft", "budget": 15},
    ),
    "budget, all": (
        ks.BudgetRegressor,
        {"kernel": "sech", "loss": "log_cosh", "update": "normalised", "strategy": "remove_oldest", "budget": 15},
    ),
    "nogd": (ks.NystroemClassifier, {"kernel": "sech", "loss": "soft", "update": "normalised", "budget": 15}),
    "learned": (ks.RRFClassifier, {"loss": "soft", "n_components": 20}),
    "newton": (ks.NewtonClassifier, {"loss": "soft", "features": features.RandomFourier(n_components=10)}),
    "newton, diagonal": (ks.NewtonClassifier, {"loss": "soft", "diagonal": True}),
    "ridge, map": (ks.OnlineRidge, {"features": "gaussian_sketch"}),
    "arow, map": (ks.AROWClassifier, {"features": "gaussian_sketch"}),
    "awv, kernel": (ks.KernelAWV, {"kernel": "sech"}),
    "PROS-N-KONS, kernel": (rivals.ProsNKonsClassifier, {"kernel": "sech"}),
    "doubly": (
        ks.DoublyStochasticClassifier,
        {"loss": "soft", "gamma": 1.0, "step": DoublyStep(eta=1.0), "schedule": DoublySchedule(16, 16)},
    ),
    "ensemble of expansions": (ks.MultiKernelClassifier, {"learners": EXPANSIONS}),
    "ensemble of features": (ks.MultiKernelRegressor, {"learners": FEATURES}),
}


def learned(family, name, rows):
    kind, params = FAMILIES[family]
    model = kind(**params, engine=name)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model, model.learn(rows, (LABELS if is_classifier(model) else Y)[: rows.shape[0]])


@native
@pytest.mark.filterwarnings("ignore:.*no compiled version")
@pytest.mark.parametrize("family", FAMILIES)
def test_engines_agree(family):
    """Native and auto give what the specification gives, on dense rows, and on CSR rows or on those of float32."""
    some = X[:40]
    sparse = sp.csr_array(np.where(np.abs(some) > 0.7, some, 0))
    other = ((sparse, 1e-8), (some.astype(np.float32), 2e-3))[list(FAMILIES).index(family) % 2]
    for rows, rtol in ((some, 1e-8), other):
        truth, scores = learned(family, "python", rows)
        for name in ("native", "auto") if rows is some else ("native",):
            model, found = learned(family, name, rows)
            assert_same_scores(scores, found, rtol, f"{family}, {name}")
            if rows is some:
                assert_same_state(truth.state_, model.state_, rtol, f"{family}, {name}")
        assert np.isfinite(truth.predict(rows).astype(float)).all()


@native
@pytest.mark.filterwarnings("ignore:.*no compiled version")
def test_the_streaming_contract_of_own_parts():
    check_streaming(ks.FeatureClassifier(loss="soft", update="normalised"), X[:60], LABELS[:60])


def test_a_naive_program_gives_the_same(parts):
    """w <- w - eta tanh(f - y) z / (1 + |z|^2), written out with plain numbers."""
    model = ks.FeatureRegressor("raw", loss="log_cosh", update=parts.Normalised(0.4), center=False)
    with pytest.warns(RuntimeWarning) if engine.has_native() else warnings.catch_warnings():
        _twins._WARNED.clear()
        scores = model.learn(X, Y)
    w, expected = [0.0] * 3, []
    for x, y in zip(X.tolist(), Y.tolist()):
        f = sum(a * b for a, b in zip(w, x))
        expected.append(f)
        step = -0.4 * math.tanh(f - y) / (1.0 + sum(a * a for a in x))
        w = [a + step * b for a, b in zip(w, x)]
    np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-12)


def test_the_window_keeps_the_latest_rows_that_acted():
    """Every row acts under the squared loss, so a window of 10 holds the last ten rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        model = ks.BudgetRegressor("sech", strategy="remove_oldest", update="ogd", budget=10)
        model.fit(X, Y, shuffle=False)
    kept = {tuple(row) for row in model.support_vectors_.tolist()}
    assert kept == {tuple(row) for row in X[-10:].tolist()}


@native
def test_it_is_said_once(parts, soft):
    """One warning per class, which names the parts and points at the caller."""
    _twins._WARNED.clear()
    with pytest.warns(RuntimeWarning, match=r"Soft\(T=0.3\), Normalised\(\): no compiled version") as told:
        ks.FeatureClassifier(loss=soft(T=0.3), update="normalised").fit(X, LABELS > 1)
    assert [warning.filename for warning in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ks.FeatureClassifier(loss="soft").fit(X, LABELS > 1)
        ks.FeatureClassifier(loss="soft").fit(X, LABELS)  # one against the rest: the same loss
        ks.FeatureClassifier(loss="logistic").fit(X, LABELS)
        ks.FeatureClassifier(engine="python", loss=soft(0.4)).fit(X, LABELS)


@native
def test_every_part_of_the_library_has_its_twin():
    from kernelstream import _core

    for name in losses.names():
        if losses.get(name).__module__.startswith("kernelstream."):
            assert _twins.twin(losses.get(name), _core.has_loss), name
    for name in set(updates.names()) - {"averaged", "normalised"}:
        assert _twins.twin(updates.get(name), _core.has_update), name
    for name in set(budgets.names()) - {"remove_oldest"}:
        assert _twins.twin(budgets.get(name), _core.has_budget), name
    for known in (_core.has_loss, _core.has_update, _core.has_budget):
        assert not known("log_cosh") and not known("") and not known("one_vs_rest:log_cosh")


@pytest.mark.filterwarnings("ignore:.*no compiled version")
@pytest.mark.parametrize("family", ["feature, loss", "feature, kernel", "feature, map", "nogd", "learned"])
def test_torch_on_the_processor(family):
    pytest.importorskip("torch")
    kind, params = FAMILIES[family]
    params = params if "update" in params or kind is ks.RRFClassifier else {**params, "update": "norm_adagrad"}
    y = Y if "Regressor" in kind.__name__ else LABELS
    scores = [
        kind(**params, engine=name, random_state=0).learn(X, y)
        for name in ("python", engine.TorchEngine(device="cpu", block=32))
    ]
    assert_same_scores(*scores, 1e-8, family)


# -------------------------------------------------------------------- a derived class is not its parent
@pytest.mark.filterwarnings("ignore:.*no compiled version")
def test_a_derived_class_has_no_twin_of_its_parent():
    class Still(updates.OGD):
        name = "still"

        def step(self, loss, y, f, k_xx, t, memory):
            return 1.0, 0.0 * loss.gradient(y, f)

    class Last(budgets.RemoveSmallest):
        name = "last"

        def absorb(self, S, row):
            S.place(0, row, row.tau)

    class Flat(losses.Hinge):
        name = "flat"

        def _gradient(self, y, f, xp):
            return xp.tanh(0.0 * f)

    y = LABELS > 1
    assert not ks.FeatureClassifier(update=Still()).fit(X, y).state_["w"].any()
    assert not ks.FeatureClassifier(loss=Flat()).fit(X, y).state_["w"].any()
    assert ks.BudgetClassifier(strategy=Last(), budget=5).fit(X, y).n_support_ == 1


def test_a_derived_class_has_no_program_of_its_parent(parts, soft):
    """On a GPU the recursion of such parts stays with the processor."""
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    from kernelstream.engine.torch.formulas import program

    class Still(updates.OGD):
        name = "still"

    hinge, ogd = losses.get("hinge"), updates.OGD(0.1)
    assert program(hinge, ogd).loss == "hinge"
    assert program(losses.OneVsRest("logistic"), ogd)[:2] == ("logistic", True)
    for loss, update in ((hinge, Still()), (soft(), ogd), (losses.OneVsRest(soft()), ogd), (parts.LogCosh(), ogd)):
        assert program(loss, update) is None


def test_a_name_belongs_to_one_class():
    """A class under another's name would be taken for it: by the compiled core, by solvers, by model files."""

    class Hinge(losses.Hinge):
        def _gradient(self, y, f, xp):
            return 0.0 * f

    class OGD(updates.OGD):
        pass

    class Stop(budgets.Stop):
        pass

    for make in (
        lambda: ks.FeatureClassifier(loss=Hinge()).fit(X, LABELS),
        lambda: ks.FeatureClassifier(update=OGD()).fit(X, LABELS),
        lambda: ks.BudgetClassifier(strategy=Stop()).fit(X, LABELS),
    ):
        with pytest.raises(ValueError, match=r"goes by the name .* give it a name of its own"):
            make()
    for module, cls in ((losses, Hinge), (updates, OGD), (budgets, Stop)):
        with pytest.raises(ValueError, match=r"is taken by .*: give .* another name"):
            module.register(cls)

    class Nameless(losses.Loss):
        kind = "binary"

    with pytest.raises(ValueError, match="needs a name"):
        losses.register(Nameless)
    with pytest.raises(ValueError, match="needs a name"):
        zoo.enter("", "nobody", zoo.TASKS, "", {}, lambda task: ks.FeatureClassifier())
    with pytest.raises(ValueError, match="another name"):

        @zoo.recipe("nobody")
        def fogd(task):
            return ks.FeatureClassifier()


def test_a_class_may_be_defined_again(parts):
    """As a notebook does when a cell is run twice."""
    before = losses.get("log_cosh")
    again = type("LogCosh", (losses.Loss,), dict(parts.LogCosh.__dict__))
    losses.register(again)
    assert type(losses.get("log_cosh")) is again
    assert losses.get(before) is before
    losses.register(parts.LogCosh)


# -------------------------------------------------------------------- losses
def test_formulas_of_numbers_are_those_of_arrays():
    """All of numpy, with numpy's rules: no exception where an array has infinity."""

    class Odd(losses.Loss):
        name, kind = "odd", "regression"

        def _value(self, y, f, xp):
            r = xp.abs(f - y)
            return xp.where(r < 1, xp.cosh(r) ** 2, xp.expm1(xp.clip(r, 0, 900))) + xp.hypot(r, 1 / (r + 1)) ** 2

        def _gradient(self, y, f, xp):
            return xp.arctan(f - y) + xp.where(f > y, xp.sinh(xp.minimum(f - y, 800.0)), 0.0) * (xp.pi > 3)

    f = np.array([-1e308, -800.0, -0.3, 0.0, 0.7, 2.5, 900.0, 1e308])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss = losses.get(Odd())
        for formula in (loss.value, loss.gradient):
            one = [formula(0.25, float(g)) for g in f]
            assert all(type(value) is float for value in one)
            np.testing.assert_array_equal(one, formula(np.full(8, 0.25), f))
    assert loss.value(0.0, 0.5) == pytest.approx(math.cosh(0.5) ** 2 + 0.25 + 1 / 1.5**2)


def test_an_own_multiclass_loss():
    """|f - e_y|^2 / 2, learned by gradient descent: the delta rule, written out; no step removes more than the loss."""

    class OneHot(losses.MulticlassLoss):
        name = "one_hot"

        def _value(self, y, f, xp):
            return 0.5 * xp.square(self._gradient(y, f, xp)).sum(axis=-1)

        def _gradient(self, y, f, xp):
            g = f.copy()
            g[y if f.ndim == 1 else (xp.arange(len(f)), y)] -= 1.0
            return g

    model = ks.FeatureClassifier("raw", loss=OneHot(), update=updates.OGD(0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        scores = model.learn(X, LABELS, classes=[0, 1, 2])
    W, expected = np.zeros((3, 3)), []
    for x, y in zip(X, LABELS):
        expected.append(W @ x)
        W -= min(0.1, 1 / (x @ x)) * np.outer(W @ x - np.eye(3)[y], x)
    np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-12)
    assert model.score(X, LABELS) > 0.5


# -------------------------------------------------------------------- kernels and maps
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_the_default_width_of_a_kernel(scale):
    """In one dimension sech(gamma m) = exp(-1/2) at the median distance m."""
    x = np.array([[0.0], [0.3], [1.1], [2.0], [4.2], [7.0], [7.1]]) * scale  # 21 pairs, so one of them is the median
    m = np.median(np.abs(x - x.T)[np.triu_indices(7, 1)])
    assert kernels.get("sech", "median").resolve(x).gamma == pytest.approx(math.acosh(math.exp(0.5)) / m)
    var = np.var(x)
    at = math.exp(-(m**2) / var)  # the Gaussian under the rule "scale"
    assert kernels.get("sech", "scale").resolve(x).gamma == pytest.approx(math.acosh(1 / at) / m)


def test_a_kernel_without_a_width_says_so():
    class Constant(kernels.Kernel):
        name, bandwidth = "constant", "gamma"

        def __init__(self, gamma="median"):
            self.gamma = gamma

        def _gram(self, X, Z):
            return np.ones((len(X), len(Z)))

    with pytest.raises(ValueError, match="Constant has no rule 'median'"):
        Constant().resolve(X)
    with pytest.raises(ValueError, match="gamma must be a number > 0"):
        ks.BudgetClassifier(Constant(-1.0)).fit(X, LABELS)
    with pytest.raises(ValueError, match="gamma of Constant must be a number or 'scale' or 'median'"):
        ks.BudgetClassifier(Constant("meridian")).fit(X, LABELS)
    np.testing.assert_array_equal(Constant(1.0).diag(sp.csr_array(X)), np.ones(len(X)))
    with pytest.raises(NotImplementedError, match="needs a method _gram"):
        type("Empty", (kernels.Kernel,), {})().pairwise(X, X)


def test_large_blocks_are_cut(parts, monkeypatch):
    """A formula over all pairs of rows never gets more of them than fit into memory."""
    seen = []
    gram = parts.Sech._gram
    monkeypatch.setattr(parts.Sech, "_gram", lambda self, A, B: seen.append((len(A), len(B))) or gram(self, A, B))
    monkeypatch.setattr(kernels._base, "MEMORY_ELEMENTS", 2000)
    rows = sp.csr_array(X)
    K = parts.Sech(0.5).pairwise(rows, rows)
    assert max(n * m * 3 for n, m in seen) <= 2000
    np.testing.assert_allclose(K, [[np.prod(1 / np.cosh(0.5 * (x - z))) for z in X] for x in X], rtol=1e-12)


def test_rows_may_get_wider(parts, monkeypatch):
    """Where a kernel says that its frequencies are independent."""
    monkeypatch.setattr(parts.Sech, "independent", True)
    model = ks.FeatureRegressor(features.RandomFourier("sech", 20), random_state=0).fit(X, Y)
    wide = np.hstack([X, np.zeros((len(X), 2))])
    np.testing.assert_allclose(model.predict(X), model.widen(5).predict(wide))


def test_a_mapping_is_held_to_its_word():
    class Wrong(features.Mapping):
        n_out, dtype = 4, np.dtype(np.float64)

        def __init__(self, give):
            self.give = give

        def __call__(self, X, ops=None, out=None):
            return self.give(X)

    class Map(features.FeatureMap):
        name = "wrong"

        def __init__(self, give):
            self.give = give

        def prepare(self, X, seed):
            return {}

        def build(self, entries, d, dtype):
            return Wrong(self.give)

    with pytest.raises(ValueError, match=r"Wrong made features of shape \(\d+, 3\)"):
        ks.FeatureRegressor(Map(lambda X: X)).fit(X, Y)
    # another type or layout is put right
    wide = ks.FeatureRegressor(Map(lambda X: np.asfortranarray(np.c_[X, X[:, 0]].astype(np.float32))), engine="auto")
    assert np.isfinite(wide.fit(X, Y).predict(X)).all()


# -------------------------------------------------------------------- model files
def saved(est):
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        ks.save(est.fit(X, Y), file)
    return file


def test_model_files_name_the_module(parts, tmp_path, capsys):
    by_name = ks.BudgetRegressor("sech", loss="log_cosh", update="normalised", strategy="remove_oldest", budget=9)
    as_objects = ks.FeatureRegressor(
        parts.GaussianSketch(9), loss=parts.LogCosh(), update=updates.Averaged(parts.Normalised())
    )
    files = {"by_name": saved(by_name), "as_objects": saved(as_objects)}
    for name, file in files.items():
        again = ks.load(file)
        np.testing.assert_array_equal(again.predict(X), {"by_name": by_name, "as_objects": as_objects}[name].predict(X))
        (tmp_path / f"{name}.ks").write_bytes(file.getvalue())
    with own_parts.absent():
        for file in files.values():
            with pytest.raises(ModelFileError, match=r"import my_parts \(on the command line: --import my_parts\)"):
                ks.load(file)
        assert own_parts.NAME not in sys.modules, "loading has imported a module that a file names"
        # what is in the file can be looked at all the same
        shown = out(capsys, "info", tmp_path / "as_objects.ks", "--full")
        assert (
            "gaussian_sketch, log_cosh, normalised of my_parts" in shown and "gaussian_sketch(n_components=9" in shown
        )


def test_files_without_own_parts_say_nothing_of_parts():
    file = saved(ks.FeatureRegressor(random_state=0))
    assert b'"parts"' not in file.getvalue()


def test_a_session_is_no_module():
    """What was defined in a notebook has to be defined again."""

    class Mine(losses.Loss):
        name, kind = "of_a_session", "regression"
        __module__ = "__main__"

        def _value(self, y, f, xp):
            return 0.5 * (f - y) ** 2

        def _gradient(self, y, f, xp):
            return f - y

    losses.register(Mine)
    file = saved(ks.FeatureRegressor(loss=Mine()))
    del losses._base.CATALOGUE.parts["of_a_session"]
    with pytest.raises(ModelFileError, match="defined in a script or a session"):
        ks.load(file)


# -------------------------------------------------------------------- command line and installed packages
def flats(folder):
    path = folder / "flats.csv"
    np.savetxt(path, np.c_[X, Y], delimiter=",", header="a,b,c,price", comments="")
    return path


def test_the_command_line_imports_a_module(tmp_path, monkeypatch, capsys):
    own_parts.written(tmp_path)
    monkeypatch.chdir(tmp_path)
    command = ("train", flats(tmp_path), "--target", "price", "--algorithm", "robust_window", "--model", "flats.ks")
    with own_parts.absent():
        assert "unknown algorithm 'robust_window'" in err(capsys, 2, *command)
        assert "no compiled version" in err(capsys, 0, "--import", "my_parts", *command, "--budget", "9")
        assert len(out(capsys, "predict", "flats.ks", "flats.csv", "--import=my_parts").split()) == len(X)
        assert "log_cosh" in out(capsys, "list", "losses", "--import", "my_parts")
        for wrong, said in (
            ("no_such", "cannot be imported"),
            ("my_parts.py", "--import my_parts"),
            ("a b", "not the name"),
        ):
            assert said in err(capsys, 2, *command, "--import", wrong)
        assert run("list", "--import") == 2


def test_installed_packages_bring_parts(tmp_path):
    """Entry points: by name without an import, on the command line too; a failure is a warning; load asks nobody."""
    own_parts.written(tmp_path)
    (tmp_path / "broken_parts.py").write_text("raise RuntimeError('out of order')\n")
    about = tmp_path / "bring-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bring\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[kernelstream.parts]\nfirst = broken_parts\nsecond = my_parts\n")
    code = """
        import sys, warnings
        import numpy as np
        import kernelstream as ks
        from kernelstream import losses
        from kernelstream.registry import plugins
        from kernelstream.cli import main

        assert losses.get("hinge") and "my_parts" not in sys.modules
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert type(losses.get("log_cosh")).__module__ == "my_parts"
        assert "broken_parts" in str(told[0].message) and "out of order" in str(told[0].message), told
        X = np.random.default_rng(0).normal(size=(40, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ks.save(ks.FeatureRegressor(loss="log_cosh").fit(X, X[:, 0]), "model.ks")
        np.savetxt("rows.csv", np.c_[X, X[:, 0]], delimiter=",", header="a,b,y", comments="")
        losses._base.CATALOGUE.parts.pop("log_cosh")
        del sys.modules["my_parts"]
        plugins._asked = False
        try:
            ks.load("model.ks")
        except ValueError as error:
            assert "import my_parts" in str(error)
        else:
            raise AssertionError("loaded")
        assert "my_parts" not in sys.modules
        assert main(["evaluate", "rows.csv", "--target", "y", "--model", "model.ks"]) == 0  # the command line does ask
        assert main(["list", "losses"]) == 0
    """
    command, path = [sys.executable, "-c", textwrap.dedent(code)], os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "log_cosh" in done.stdout and "kernelstream: warning: the parts of broken_parts" in done.stderr, done
