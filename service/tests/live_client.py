"""A client of the HTTP front, as small as it can be, and a server to talk to."""

import http.client
import json


def caught_up(server, name):
    """The model that readers have, once it has learned all there is."""
    with server.store.use(name) as learner:
        return learner.latest().model


class Client:
    """Requests over one connection; answers are (status, content)."""

    def __init__(self, port, token=None, host="127.0.0.1"):
        self.connection = http.client.HTTPConnection(host, port, timeout=30)
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def post(self, path, content, **headers):
        body = content if isinstance(content, (bytes, str)) else json.dumps(content)
        return self.ask("POST", path, body, {"Content-Type": "application/json", **headers})

    def get(self, path, **headers):
        return self.ask("GET", path, None, headers)

    def ask(self, method, path, body, headers):
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        self.connection.request(method, path, body, self.headers | named)
        answer = self.connection.getresponse()
        content = answer.read()
        self.answer = answer
        kind = answer.getheader("content-type", "")
        return answer.status, json.loads(content) if kind.startswith("application/json") else content.decode()

    def close(self):
        self.connection.close()
