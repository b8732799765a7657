"""Kills a durable learner again and again, and lets another process go on.

Arguments: a folder and what to do in it, one after the other:

- ``steps,CALLS,FIRST,EVERY``: kills at one operation on files in so many, those of SQLite among them (``kill_at.c``),
  from its creation through snapshots, a challenger, its promotion and the way back to its end, each with a second kill
  while it recovers; one after the other, four models, the default learner among them, with three rules of flushing;
- ``http,CALLS,FIRST,EVERY``: the same of a server that is asked for all that over HTTP. After each kill another server
  starts, and the client repeats what was not answered.

It prints how many kills there were of which kind.
No row that was acknowledged may be missing, none may be learned twice, and in the end the model must equal, bit for
bit, one that learned the same calls undisturbed. Run by test_live_recovery.py in a process of its own, with kill_at.c
preloaded: it forks before any thread has been started.
"""

import ctypes
import http.client
import io
import json
import os
import signal
import struct
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from kills import lived

FLUSH = ("each", "request", 3.0)


def count_down(steps):
    """Be killed after so many operations on files; what counts them was loaded before this process began."""
    ctypes.CDLL(None).kill_at(steps)


def calls(start):
    """Calls of `learn` from row ``start`` on, always cut at the same rows: (first row, X, y)."""
    first = 0
    for number in range(10**9):
        rng = np.random.default_rng(number)
        n = int(rng.integers(1, 8))
        if first >= start:
            X = rng.normal(size=(n, 4))
            yield first, X, np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
        first += n


def make(which):
    from kernelstream import BudgetClassifier, FeatureClassifier, KernelClassifier, OnlineRidgeClassifier
    from kernelstream.features import RandomFourier

    return [
        FeatureClassifier(loss="logistic", features=RandomFourier(n_components=30), random_state=1),
        BudgetClassifier(budget=20, random_state=1),
        OnlineRidgeClassifier(features=RandomFourier(n_components=20), random_state=1),
        KernelClassifier(size="medium", random_state=1),
    ][which % 4]


PHASES = ("creation", "learning", "snapshot", "challenge", "promotion", "rollback", "end")
VERSION = 10**9  # what is added to the number of a version that is acknowledged


def life(learned):
    """What a learner is asked in a life: (phase, argument), calls, snapshots, and a challenger that comes and goes."""
    for i in range(learned):
        yield "learning", i
        if i % 2 == 0:
            yield "snapshot", None
        if i == learned // 3:
            yield "challenge", None
        if i == 2 * learned // 3:
            yield "promotion", None
    yield "rollback", None
    yield "learning", learned


def short_life(folder, which, learned, steps, out, real=os.write):
    """Create a learner and do all that is asked of it. Dies at a step."""
    from kernelstream_service import DurableLearner

    def tell(value):
        real(out, struct.pack("<q", value))

    count_down(steps)
    tell(-1)
    learner = DurableLearner(folder, make(which), flush=FLUSH[which % 3], swap_ms=1)
    given = dict(enumerate(next_calls(learned)))
    for phase, i in life(learned):
        tell(-1 - PHASES.index(phase))
        if phase == "learning":
            tell(learner.learn(*given[i][1:]).total)
        elif phase == "snapshot":
            learner.snapshot()
        elif phase == "challenge":
            learner.challenge(make(which + 1))
        else:
            tell(VERSION + (learner.promote() if phase == "promotion" else learner.rollback()))
    tell(-1 - PHASES.index("end"))
    learner.close()


def next_calls(learned):
    return [call for _, call in zip(range(learned + 1), calls(0))]


def states_of(learned, which=0):
    """The champion's bytes by version and rows, from models that learn the same calls by themselves."""
    from kernelstream import model_io

    first, second, states, version, rival = make(which), None, {}, 1, make(which + 1)
    given, total = next_calls(learned), 0
    for phase, i in life(learned):
        if phase == "learning":
            _, X, y = given[i]
            first.learn(X, y)
            if second is not None:
                second.learn(X, y)
            total += len(X)
        elif phase == "challenge":
            second = rival
        elif phase == "promotion":
            retired = model_io.to_bytes(first)
            first, second, version = second, None, 2
        elif phase == "rollback":
            first, second, version = model_io.load(io.BytesIO(retired)), None, 3
        states[version, total] = model_io.to_bytes(first)
    return states


def at_steps(folder, learned, first, every):
    """A kill at operations on files; with a second one, at another operation, while the folder is recovered."""
    from kernelstream import model_io
    from kernelstream_service import DurableLearner

    states, table = [states_of(learned, which) for which in range(4)], dict.fromkeys((*PHASES, "recovery"), 0)
    for steps in range(first, 10**9, every):
        home, which = os.path.join(folder, str(steps)), steps % 4
        end, words = lived(lambda out, a=(home, which, learned, steps): short_life(*a, out))
        told = struct.unpack(f"<{len(words) // 8}q", words)
        acknowledged = max((word for word in told if 0 <= word < VERSION), default=0)
        version = max((word - VERSION for word in told if word >= VERSION), default=1)
        if end:
            table[PHASES[-1 - [word for word in told if word < 0][-1]]] += 1
            again, _ = lived(lambda out, a=(home, which, 1 + steps % 17): recover(*a))
            table["recovery"] += again != 0
        with DurableLearner(home, make(which)) as learner:
            about = (
                f"step {steps}: {acknowledged} rows, version {version} acknowledged; {learner.total}, {learner.version}"
            )
            assert learner.total >= acknowledged and learner.version >= version, about
            assert not learner.keeper.problems, f"step {steps}: {learner.keeper.problems}"
            if learner.total:
                found = model_io.to_bytes(learner.champion.model)
                assert found == states[which][learner.version, learner.total], f"{about}: another model"
        if end == 0:
            break
    show("steps", table)


def show(job, table):
    for phase, kills in table.items():
        print(f"{job:6} {phase:10} {kills:5}", flush=True)


def recover(home, which, steps):
    from kernelstream_service import DurableLearner

    count_down(steps)
    DurableLearner(home, make(which)).close()


# -------------------------------------------------------------------- over HTTP
TOKEN = "a-token-for-all"


def serve(folder, steps, out, real=os.write):
    """A server that writes its port, and dies at a step."""
    from kernelstream_service import Store
    from kernelstream_service.serve import Server

    token_file = os.path.join(folder, "tokens")
    store = Store(os.path.join(folder, "store"), snapshot_rows=6)
    server = Server(store, port=0, token_file=token_file)
    count_down(steps)
    server.run(lambda: real(out, b"%6d" % server.port))


class Asked:
    """A server in a process of its own, and a client of it."""

    def __init__(self, folder, steps):
        self.source, sink = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self.source)
                serve(folder, steps, sink)
                os._exit(0)
            finally:
                os._exit(99)
        os.close(sink)
        self.port = int(os.read(self.source, 6))

    def ask(self, method, path, content=None):
        """The answer; OSError or HTTPException where the server has died."""
        kind = "application/octet-stream" if isinstance(content, bytes) else "application/json"
        body = content if isinstance(content, bytes) else json.dumps(content or {})
        headers = {"Content-Type": kind, "Authorization": f"Bearer {TOKEN}"}
        connection = http.client.HTTPConnection("localhost", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        assert response.status < 300, (method, path, response.status, answer)
        return answer

    def end(self, stop=True):
        """How it ended."""
        if stop:
            os.kill(self.pid, signal.SIGTERM)
        os.close(self.source)
        end = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        assert end in (0, -signal.SIGKILL, -signal.SIGTERM), f"the server ended with {end}"
        return end


def ask_next(server, phase, i, given):
    """What a life asks for next, in a way that may be repeated; what is acknowledged, as (rows, version)."""
    from kernelstream import model_io

    known = server.ask("GET", "/models")["models"]
    about = server.ask("GET", "/models/m") if known else {"version": 0}
    version = about["version"]
    if phase == "creation":
        return (0, version or server.ask("PUT", "/models/m", model_io.to_bytes(make(0)))["version"])
    if phase == "learning":
        first, X, y = given[i]
        content = {"rows": X.tolist(), "y": y.tolist(), "ids": [first + k for k in range(len(y))]}
        return server.ask("POST", "/models/m/learn", content)["total"], version
    if phase == "challenge":
        if about["challenger"] is None:
            server.ask("PUT", "/models/m/challenger", model_io.to_bytes(make(1)))
    elif version < (2 if phase == "promotion" else 3):
        what = "promote" if phase == "promotion" else "rollback"
        version = server.ask("POST", f"/models/m/{what}")["version"]
    return 0, version


def over_http(folder, learned, first, every):
    """Servers that are killed at operations on files; the client goes on with the next one."""
    from kernelstream import model_io
    from kernelstream_service import DurableLearner, serve  # noqa: F401  (forked servers start quickly)

    states, table = states_of(learned), dict.fromkeys((phase for phase in PHASES if phase != "snapshot"), 0)
    given = dict(enumerate(next_calls(learned)))
    plan = [("creation", None), *((phase, i) for phase, i in life(learned) if phase != "snapshot")]
    for steps in range(first, 10**9, every):
        home = os.path.join(folder, str(steps))
        os.mkdir(home)
        with open(os.path.join(home, "tokens"), "w") as file:
            file.write(TOKEN)
        server, killed, acknowledged = Asked(home, steps), False, (0, 0)
        for phase, i in plan:
            try:
                found = ask_next(server, phase, i, given)
            except (OSError, http.client.HTTPException):
                assert not killed, "another server died by itself"
                assert server.end(stop=False) == -signal.SIGKILL
                table[phase] += 1
                killed, server = True, Asked(home, 0)
                found = ask_next(server, phase, i, given)
            assert found[1] >= acknowledged[1] and (found[0] or 10**9) > acknowledged[0], (steps, found, acknowledged)
            acknowledged = max(found[0], acknowledged[0]), found[1]
        end = server.end()
        table["end"] += end == -signal.SIGKILL  # mostly in its last snapshot
        with DurableLearner(os.path.join(home, "store", "m")) as learner:
            about = f"step {steps}: {acknowledged}; {learner.total}, {learner.version}, {learner.keeper.problems}"
            assert (learner.total, learner.version) == acknowledged and not learner.keeper.problems, about
            assert model_io.to_bytes(learner.champion.model) == states[3, learner.total], f"{about}: another model"
        if not killed and end != -signal.SIGKILL:
            break
    show("http", table)


if __name__ == "__main__":
    for job in sys.argv[2:]:
        name, *numbers = job.split(",")
        where = os.path.join(sys.argv[1], name)
        os.mkdir(where)
        {"steps": at_steps, "http": over_http}[name](where, *map(int, numbers))
