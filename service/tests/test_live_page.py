"""The page to watch, in a real browser: curves move, marks appear, it answers, nothing leaves the host."""

import threading
import time

import numpy as np
import pytest

pytest.importorskip("kernelstream_service.serve", exc_type=ImportError)

from browser import CHROMIUM, Browser
from live_client import Client

from kernelstream import FeatureClassifier, FeatureRegressor, MultiKernelClassifier
from kernelstream.columns import Columns, make_stream
from kernelstream.features import RandomFourier
from kernelstream_service import Store
from kernelstream_service.serve import Server

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

TOKEN = "a-token-to-watch"


def stream(n, flipped, seed):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    y = (X[:, 0] > 0) ^ flipped
    return {"rows": X.tolist(), "y": y.astype(int).tolist()}


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def served(tmp_path):
    store = Store(tmp_path, flush="request")
    small = RandomFourier(n_components=30)
    store.create("hills", FeatureClassifier(small, loss="logistic", random_state=0), ["east", "north"])
    store.create("pool", MultiKernelClassifier(random_state=0))
    store.create("price", FeatureRegressor(random_state=0))
    (tmp_path / "tokens").write_text(TOKEN)
    with Server(store, port=0, token_file=tmp_path / "tokens") as server:
        yield server, Client(server.port, TOKEN)


def watch(browser, server, model, rows, mark, **screen):
    """Open the page of a model with the token, and wait until it shows so many rows; ``mark`` makes the address new."""
    browser.open(f"{server.url}/?{mark}#{model}", **screen)
    browser.run(f"sessionStorage.setItem('kernelstream-token', '{TOKEN}'); token = '{TOKEN}'; start()")
    browser.wait_for(f"document.getElementById('rows')?.textContent === '{rows:,}'")


PATH = "document.querySelector('#error path').getAttribute('d')"


def test_the_page(served, browser):
    """A stream whose labels turn round in the middle: the reader sees it."""
    server, client = served
    client.post("/models/hills/learn", stream(1500, False, 0))
    with server.store.use("hills") as learner:
        learner.challenge(FeatureClassifier(random_state=1))
    browser.events.clear()
    browser.open(server.url + "/#hills")
    browser.wait_for("!document.getElementById('token-card').hidden")  # it asks for the token first
    browser.run(f"document.getElementById('token').value = '{TOKEN}'")
    browser.run("document.getElementById('token-form').requestSubmit()")
    browser.wait_for("document.getElementById('rows')?.textContent === '1,500'")
    assert browser.run("document.querySelectorAll('.mark').length") == 0
    before = browser.run(PATH)
    client.post("/models/hills/learn", stream(1500, True, 1))
    browser.wait_for("document.getElementById('rows').textContent === '3,000'")
    assert browser.run(PATH) != before
    assert browser.run("document.querySelectorAll('#error .mark').length") >= 1
    assert browser.run("document.querySelectorAll('#loss .mark').length") >= 1
    for card in ("loss", "pairs", "calibration", "rival"):
        assert not browser.run(f"document.getElementById('{card}-card').hidden"), card
    for card in ("weights", "relevance", "problems", "token"):
        assert browser.run(f"document.getElementById('{card}-card').hidden"), card
    assert browser.run("document.querySelectorAll('#rival td.best').length") >= 1
    # a prediction, and one that is refused
    browser.run("document.querySelectorAll('#fields input').forEach((field, i) => field.value = i + 0.5)")
    browser.run("document.getElementById('form').requestSubmit()")
    browser.wait_for("document.getElementById('predicted') !== null")
    told = client.post("/models/hills/predict", {"rows": [[0.5, 1.5]]})[1]["predictions"][0]
    assert browser.run("document.getElementById('predicted').textContent") == str(told)
    browser.run("document.querySelector('#fields input').value = 'west'")
    browser.run("document.getElementById('form').requestSubmit()")
    browser.wait_for("document.getElementById('answer').className === 'bad'")
    assert "'east'" in browser.run("document.getElementById('answer').textContent")
    hosts = {address.split("/")[2] for address in browser.requested() if address.startswith("http")}
    assert hosts == {f"127.0.0.1:{server.port}"}
    assert [text for text in browser.errors() if "401" not in text and "422" not in text] == []


def test_other_models_and_narrow_screens(served, browser):
    server, client = served
    client.post("/models/pool/learn", stream(300, False, 0))
    X = np.random.default_rng(0).normal(size=(300, 2))
    client.post("/models/price/learn", {"rows": X.tolist(), "y": X[:, 0].tolist()})
    for dark in (False, True):
        watch(browser, server, "pool", 300, dark, width=360, height=740, dark=dark)
        assert browser.run("document.documentElement.scrollWidth") <= 360
        assert browser.run("document.querySelectorAll('#weights path').length") == 13
        light = browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(246, 247, 249)"
        assert light != dark
    browser.run("document.getElementById('models').value = 'price'; document.getElementById('models').onchange()")
    browser.wait_for("document.getElementById('about').textContent.startsWith('FeatureRegressor')")
    assert browser.run("document.querySelectorAll('#pairs circle').length") == 200


def test_words_gaps_and_another_model_in_the_address(served, browser):
    """The form takes words and gaps and says what it makes of them; a changed address shows that model."""
    server, client = served
    model = make_stream(Columns(), FeatureClassifier(RandomFourier(n_components=30), loss="logistic", random_state=0))
    server.store.create("towns", model)
    rows = [{"town": "Rome" if i % 2 else "Oslo", "size": i / 10} for i in range(40)]
    client.post("/models/towns/learn", {"rows": rows, "y": ["warm" if i % 2 else "cold" for i in range(40)]})
    client.post("/models/hills/learn", stream(50, False, 0))
    watch(browser, server, "hills", 50, "words")
    browser.run("location.hash = 'towns'")
    browser.wait_for("document.getElementById('rows')?.textContent === '40'")
    assert browser.run("document.getElementById('models').value") == "towns"
    assert browser.run("[...document.querySelectorAll('#fields input')].map(f => f.inputMode)") == ["text", "decimal"]
    browser.run("document.querySelectorAll('#fields input')[0].value = 'Rome'")
    browser.run("document.getElementById('form').requestSubmit()")
    browser.wait_for("document.getElementById('predicted') !== null")
    answer = browser.run("document.getElementById('answer').innerText")
    assert answer.startswith("warm") and "column 'size' is missing in row 0" in answer and "cold" in answer


def test_time_ranges_and_requests(served, browser):
    """The axis in time beside rows, a range of rows, and the latest requests."""
    server, client = served
    client.post("/models/hills/learn", stream(1000, False, 0))
    client.post("/models/hills/learn", stream(1000, False, 1))
    browser.events.clear()
    watch(browser, server, "hills", 2000, "time")
    labels = "[...document.querySelectorAll('#error text')].map(t => t.textContent)"
    assert "1,000" in browser.run(labels)
    assert len(browser.run(PATH).split("L")) == 100  # a point every 20 rows
    browser.run("document.getElementById('range').value = 'rows 1000'; document.getElementById('range').onchange()")
    assert len(browser.run(PATH).split("L")) == 50
    browser.run("document.getElementById('axis').value = 'time'; document.getElementById('axis').onchange()")
    times = [text for text in browser.run(labels) if text.count(":") == 2]
    assert times and "1,500" not in browser.run(labels)
    browser.wait_for(
        "!document.getElementById('requests-card').hidden && !document.getElementById('latency-card').hidden"
    )
    assert [text for text in browser.errors() if "401" not in text] == []


def test_promote_roll_back_and_the_other_models(served, browser):
    server, client = served
    client.post("/models/hills/learn", stream(200, False, 0))
    with server.store.use("hills") as learner:
        learner.challenge(FeatureClassifier(random_state=1))
    client.post("/models/hills/learn", stream(200, False, 1))
    watch(browser, server, "hills", 400, "promote")
    browser.wait_for("!document.getElementById('promote').hidden")
    browser.run("document.getElementById('promote').click()")
    assert "again" in browser.run("document.getElementById('promote').textContent")
    assert client.get("/models/hills")[1]["version"] == 1
    browser.run("document.getElementById('promote').click()")
    browser.wait_for("document.getElementById('changed').textContent === 'the champion is version 2 now'")
    browser.wait_for("document.getElementById('rollback').textContent === 'Back to version 1'")
    browser.run("document.getElementById('rollback').click(); document.getElementById('rollback').click()")
    browser.wait_for("document.getElementById('changed').textContent === 'the champion is version 3 now'")
    rows = browser.run("[...document.querySelectorAll('#overview tr')].map(r => r.innerText.split('\\t')[0])")
    assert rows == ["model", "hills", "pool", "price"]
    browser.run("[...document.querySelectorAll('#overview a')].find(a => a.textContent === 'price').click()")
    browser.wait_for("document.getElementById('about').textContent.startsWith('FeatureRegressor')")


@pytest.mark.slow
def test_the_demonstration_in_ten_seconds(browser):
    """Within the rows of ten seconds all is there: curves, members, calibration, champion and challenger, a mark."""
    from kernelstream_service import demo

    said = []
    thread = threading.Thread(target=lambda: demo.run(seconds=60, show=False, say=said.append), daemon=True)
    thread.start()
    while not said:
        time.sleep(0.02)
    browser.open(said[0].split("learn: ")[1].split()[0] + "/?demo")
    browser.wait_for("document.querySelectorAll('#error .mark').length > 0", 60)
    shown = browser.run("document.getElementById('rows').textContent")
    assert int(shown.replace(",", "")) <= 10 * demo.ROWS_PER_SECOND
    for card in ("error", "loss", "pairs", "calibration", "weights", "rival"):
        assert not browser.run(f"document.getElementById('{card}-card')?.hidden"), card


def test_it_says_when_the_server_is_gone_and_comes_back(tmp_path, browser):
    store = Store(tmp_path, flush="request")
    store.create("m", FeatureClassifier(random_state=0))
    server = Server(store, port=0).start()
    browser.open(server.url + "/?gone")
    browser.wait_for("document.getElementById('status').className === 'ok'")
    server.stop()
    browser.wait_for("document.getElementById('status').className === 'off'")
    with Server(Store(tmp_path, flush="request"), port=server.port):
        browser.wait_for("document.getElementById('status').className === 'ok'")
