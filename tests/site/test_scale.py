"""Short runs of the scripts of ``benchmarks/scale``, on the processor."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

SCRIPTS = Path(__file__).parents[2] / "benchmarks" / "scale"


@pytest.mark.slow
def test_the_sums_of_the_large_ridge_and_its_error():
    pytest.importorskip("torch")
    script = runpy.run_path(str(SCRIPTS / "billion.py"))
    rows = script["Rows"](64, 500, "cpu")
    sums, Z, Y = script["Sums"](64, rows.unit, rows.device), [], []
    for number in range(4):
        z, f = rows(number)
        y = rows.targets(number, f)
        sums.add(z, y)
        Z.append(z.T.double().numpy() * rows.unit)
        Y.append(y.double().numpy())
    Z, Y = np.concatenate(Z), np.concatenate(Y)
    W, d = sums.solve()
    eigenvalues = np.linalg.eigvalsh(Z.T @ Z)
    np.testing.assert_allclose(d, np.sum(eigenvalues / (eigenvalues + 1)), rtol=1e-5)
    np.testing.assert_allclose(W.numpy(), Ridge(alpha=1.0, fit_intercept=False).fit(Z, Y).coef_.T, atol=1e-4)

    table = script["run"](100_000, 64, 1000, 1e9, "cpu", test_blocks=4)["table"]
    ratio = [line["inside"] / line["expected"] for line in table]
    assert table[-1]["rows"] == 100_000 and 0.75 < np.median(ratio) < 1.35
    assert table[-1]["inside"] < table[0]["inside"] / 20  # a hundred times the rows, and few weights more that count


@pytest.mark.slow
def test_learners_come_near_the_best_score_there_is():
    script = runpy.run_path(str(SCRIPTS / "higgs.py"))
    pt, eta, phi = np.array([[50.0, 30.0]]), np.array([[0.3, -1.0]]), np.array([[1.0, 2.5]])
    np.testing.assert_allclose(
        script["mass"](pt, eta, phi), np.sqrt(2 * 50 * 30 * (np.cosh(1.3) - np.cos(1.5))), rtol=1e-12
    )
    text = script["run"](20_000, 5_000, 300, 256, "auto", 60.0, ["fogd", "falkon", "stream", "small"])
    found = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()[4:]]
    best, *auc = (float(cells[3]) for cells in found)
    assert len(auc) == 4 and min(auc) > 0.6 and max(auc) < best and best - 0.03 < max(auc)


def test_labels_follow_the_best_score():
    script = runpy.run_path(str(SCRIPTS / "higgs.py"))
    X, y, g = script["events"](0, 0, 20_000)
    assert X.shape == (20_000, 28) and X.dtype == np.float32
    expected = 1 / (1 + np.exp(-g))
    for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0)):  # as many of the first process as g says
        some = (low <= expected) & (expected < high)
        assert abs(y[some].mean() - expected[some].mean()) < 4 * np.sqrt(0.25 / some.sum())
