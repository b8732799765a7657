"""How fast a served model answers, beside the library itself: `python service/benchmarks/live.py`, all on this machine.

The default learner with 20 columns of float64 is served by ``kernelstream serve``, and asked by a process of its own
over connections that stay open. Each figure is the best of several rounds, and each round measures the library's own
speed as well, in one process with nothing else to do: the ratio changes less with other work on the machine than the
figures.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from kernelstream import KernelClassifier, KernelRegressor, load, save

COLUMNS, TAUGHT = 20, 20_000
BATCH = 100  # rows of a call that learns


def rows(n, task):
    """Rows as arrays (n, COLUMNS), for ``mixed`` as objects of half as many numbers and a word, and targets."""
    X = np.random.default_rng(0).normal(size=(n, COLUMNS))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) if task == "classification" else np.sin(X[:, 0]) + X[:, 1]
    if task == "mixed":
        X = [{f"c{i}": x for i, x in enumerate(row)} | {"town": "Rome" if row[0] > 0 else "Oslo"}
             for row in X[:, : COLUMNS // 2].tolist()]  # fmt: skip
    return X, y


def request(port, what, content, kind="application/json"):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    head = (
        f"POST /models/m/{what} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection(asyncio.Protocol):
    """Sends requests in turn, each when the one before is answered, until the time is over; notes their times."""

    def __init__(self, requests, until, times, ended):
        self.requests, self.until, self.times, self.ended = requests, until, times, ended
        self.sent, self.rest, self.left = 0, b"", 0

    def connection_made(self, transport):
        self.transport = transport
        self.ask()

    def ask(self):
        self.started = time.perf_counter()
        if self.started >= self.until:
            self.transport.close()
            return
        self.transport.write(self.requests[self.sent % len(self.requests)])
        self.sent += 1

    def data_received(self, data):
        self.rest += data
        head, found, body = self.rest.partition(b"\r\n\r\n")
        if not found:
            return
        if len(body) < int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return
        assert head.startswith(b"HTTP/1.1 200"), (head, body[:500])
        self.times.append(time.perf_counter() - self.started)
        self.rest = b""
        self.ask()

    def connection_lost(self, error):
        if not self.ended.done():
            self.ended.set_result(None)


async def run(port, groups, seconds):
    """Groups of (connections, requests) at the same time; returns the times of each group."""
    loop = asyncio.get_running_loop()
    until, times, ends = time.perf_counter() + seconds, [[] for _ in groups], []
    for (connections, requests), noted in zip(groups, times):
        for k in range(connections):
            own, end = requests[k % len(requests) :] + requests[: k % len(requests)], loop.create_future()
            await loop.create_connection(
                lambda own=own, noted=noted, end=end: Connection(own, until, noted, end), "127.0.0.1", port
            )
            ends.append(end)
    await asyncio.gather(*ends)
    return times


def cpu(pid):
    """Seconds of processor time that a process has used (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def library(model, X, y, seconds, block):
    """Rows a second of the library: predictions in blocks of the given size, learning in calls of ``BATCH`` rows."""
    both = getattr(model, "_labels_and_proba", None) or model._predict_with_interval
    found = []
    calls = [(lambda i, n: both(X[i : i + n]), block), (lambda i, n: model.learn(X[i : i + n], y[i : i + n]), BATCH)]
    for call, n in calls:
        started, done = time.perf_counter(), 0
        while time.perf_counter() - started < seconds:
            call(done % (len(X) - n), n)
            done += n
        found.append(done / (time.perf_counter() - started))
    return found


def serve(folder, flush):
    command = [sys.executable, "-m", "kernelstream.cli", "serve", f"{folder}/m.ks", "--port", "0", "--flush", flush]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    line = next(line for line in server.stderr if " at http://" in line)
    return server, int(line.split(" at http://")[1].split(",")[0].rsplit(":", 1)[1])


def round_of(port, pid, task, seconds, connections, folder):
    """One round of all figures."""
    X, y = rows(TAUGHT, task)
    told = X if task == "mixed" else X.tolist()
    one = [request(port, "predict", {"rows": told[i : i + 1]}) for i in range(1000)]
    singly, batches = (
        [request(port, "learn", {"rows": told[i : i + n], "y": y[i : i + n].tolist()}) for i in range(0, most, n)]
        for n, most in ((1, 1000), (BATCH, TAUGHT))
    )
    health = [f"GET /health HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode()]
    asyncio.run(run(port, [(connections, one)], 0.5))  # warm
    predict_rows, learn_rows = library(load(f"{folder}/m.ks"), X, y, seconds / 2, connections)
    before, own = cpu(pid), time.process_time()
    [times] = asyncio.run(run(port, [(connections, one)], seconds))
    used, own = cpu(pid) - before, time.process_time() - own
    found = {
        "predictions/s": len(times) / seconds,
        "p50 ms": 1000 * float(np.percentile(times, 50)),
        "p99 ms": 1000 * float(np.percentile(times, 99)),
        "server µs a prediction": 1e6 * used / len(times),
        "asking µs a prediction": 1e6 * own / len(times),  # of this process, on the same processors
        "of the library's": len(times) / seconds / predict_rows,
    }
    [times] = asyncio.run(run(port, [(connections, singly)], seconds))
    found |= {"learned singly/s": len(times) / seconds}
    before = cpu(pid)
    [times] = asyncio.run(run(port, [(4, batches)], seconds))
    used = cpu(pid) - before
    found |= {
        "rows learned/s": BATCH * len(times) / seconds,
        "server µs a row": 1e6 * used / len(times) / BATCH,
        "of the library's learning": BATCH * len(times) / seconds / learn_rows,
    }
    _, well, asked = asyncio.run(run(port, [(4, batches), (1, health), (2, one)], seconds))
    found |= {"health ms, worst, while it learns": 1000 * max(well)}
    found |= {"p99 ms while it learns": 1000 * float(np.percentile(asked, 99))}
    return found | {"library: predictions/s": predict_rows, "library: rows learned/s": learn_rows}


TASKS = ("classification", "regression", "mixed")


async def paced(port, requests, a_second, until):
    """Send requests at a rate until the time is over."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for i in range(10**9):
        if time.perf_counter() > until:
            break
        writer.write(requests[i % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        await asyncio.sleep(1 / a_second)
    writer.close()


def resident(pid):
    """Megabytes of memory that a process has (Linux)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


async def memory(port, pid, task, minutes):
    """A steady load, and the memory of the server after each minute of it."""
    X, y = rows(TAUGHT, task)
    told = X if task == "mixed" else X.tolist()
    one = [request(port, "predict", {"rows": told[i : i + 1]}) for i in range(1000)]
    learn = [
        request(port, "learn", {"rows": told[i : i + 20], "y": y[i : i + 20].tolist()}) for i in range(0, 10_000, 20)
    ]
    metrics = [f"GET /metrics HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode()]
    until = time.perf_counter() + 60 * minutes
    load = [
        paced(port, one, 20, until),
        paced(port, one, 20, until),
        paced(port, learn, 10, until),
        paced(port, metrics, 0.5, until),
    ]
    running = asyncio.gather(*load)
    print(f"{task}: 40 predictions and 200 rows learned a second; MB after each minute:", flush=True)
    for minute in range(int(minutes) + 1):
        print(f"  {minute:3} {resident(pid):8.1f}", flush=True)
        await asyncio.sleep(60 if minute < int(minutes) else 0)
    await running


LESS = ("p50 ms", "p99 ms", "server µs", "asking µs", "health ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--flush", default="each")
    parser.add_argument(
        "--memory", type=float, metavar="MINUTES", help="measure the memory under a steady load instead"
    )
    parser.add_argument("--task", nargs="+", choices=TASKS, default=TASKS)
    args = parser.parse_args()
    for task in args.task:
        with tempfile.TemporaryDirectory() as folder:
            kind = KernelClassifier if task == "classification" else KernelRegressor
            save(taught(kind, task), f"{folder}/m.ks")
            server, port = serve(folder, args.flush)
            try:
                if args.memory is not None:
                    asyncio.run(memory(port, server.pid, task, args.memory))
                    continue
                rounds = [
                    round_of(port, server.pid, task, args.seconds, args.connections, folder) for _ in range(args.rounds)
                ]
            finally:
                server.terminate()
                server.wait()
        print(f"{task}, flush {args.flush}, best of {args.rounds} rounds, load {os.getloadavg()[0]:.1f}:", flush=True)
        for name in rounds[0]:
            best = min if name.startswith(LESS) else max
            print(f"  {name:36} {best(one[name] for one in rounds):,.2f}", flush=True)


def taught(kind, task):
    model = kind(random_state=0)
    model.learn(*rows(TAUGHT, task))
    return model


if __name__ == "__main__":
    main()
