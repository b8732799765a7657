"""What the tests of the HTTP front share."""

import pytest
from live_client import Client


@pytest.fixture
def fresh(tmp_path):
    """Start a server over new models."""
    pytest.importorskip("uvicorn")
    from kernelstream_service import Store
    from kernelstream_service.serve import Server

    made = []

    def start(models, columns=None, options=None, **limits):
        store = Store(tmp_path / f"store{len(made)}", **{"flush": "request", **(options or {})})
        for name, model in models.items():
            store.create(name, model, columns)
        token = limits.pop("token", None)  # with all rights, beside the lines of ``tokens``
        lines = [line for line in (token, *limits.pop("tokens", ())) if line is not None]
        if lines:
            limits["token_file"] = tmp_path / f"tokens{len(made)}"
            limits["token_file"].write_text("\n".join(lines))
        server = Server(store, port=0, **limits).start()
        made.append(server)
        return server, Client(server.port, token)

    yield start
    for server in made:
        server.stop()


@pytest.fixture
def short_waits(monkeypatch):
    """Outages are waited for in milliseconds."""
    monkeypatch.setattr("kernelstream_service.consume.FIRST_PAUSE", 0.001)
    monkeypatch.setattr("kernelstream_service.consume.LONGEST_PAUSE", 0.004)
