"""How fast a served model answers: `python benchmarks/speed/live.py`, client and server on this machine.

Three figures: requests a second with one row each, predict and learn in turn, over keep-alive connections; rows a
second in batches of 100; and the times of predictions while other connections learn. The clients are in a process of
their own and send bodies that were made beforehand. The server's processor time is what other work on the machine
changes least.
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

from kernelstream import FeatureClassifier, save

COLUMNS = 10


def rows(n):
    X = np.random.default_rng(0).normal(size=(n, COLUMNS))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def request(port, what, content):
    body = json.dumps(content).encode()
    head = (
        f"POST /models/m/{what} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def answered(reader):
    """Read one answer; returns its status."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    await reader.readexactly(length)
    return int(head[9:12])


async def client(port, requests, until, times):
    """Send requests in turn over one connection until the time is over; times are noted."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    i = 0
    while time.perf_counter() < until:
        started = time.perf_counter()
        writer.write(requests[i % len(requests)])
        assert await answered(reader) == 200
        times.append(time.perf_counter() - started)
        i += 1
    writer.close()


async def run(port, groups, seconds):
    """Groups of (connections, requests) at the same time; returns the times of each group."""
    until = time.perf_counter() + seconds
    times = [[] for _ in groups]
    jobs = [
        client(port, requests[k % len(requests) :] + requests[: k % len(requests)], until, noted)
        for (connections, requests), noted in zip(groups, times)
        for k in range(connections)
    ]
    await asyncio.gather(*jobs)
    return times


def cpu(pid):
    """Seconds of processor time that a process has used (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(port, seconds, connections, pid):
    X, y = rows(2000)
    one = [{"rows": X[i : i + 1].tolist()} for i in range(1000)]
    learn = [request(port, "learn", body | {"y": y[i : i + 1].tolist()}) for i, body in enumerate(one)]
    predict = [request(port, "predict", body) for body in one]
    batches = [
        request(port, "learn", {"rows": X[i : i + 100].tolist(), "y": y[i : i + 100].tolist()})
        for i in range(0, 2000, 100)
    ]
    both = [r for pair in zip(predict, learn) for r in pair]
    asyncio.run(run(port, [(connections, both)], 1.0))  # warm
    before = cpu(pid)
    [times] = asyncio.run(run(port, [(connections, both)], seconds))
    used, before = cpu(pid) - before, cpu(pid)
    found = {"requests_per_second": len(times) / seconds, "server_cpu_us_per_request": 1e6 * used / len(times)}
    [times] = asyncio.run(run(port, [(4, batches)], seconds))
    used = cpu(pid) - before
    found |= {"rows_per_second": 100 * len(times) / seconds, "server_cpu_us_per_row": 1e4 * used / len(times)}
    asked, told = asyncio.run(run(port, [(2, predict), (2, learn)], seconds))
    found |= {f"predict_ms_p{q}": 1000 * float(np.percentile(asked, q)) for q in (50, 99)}
    return found | {"learned_beside_per_second": len(told) / seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--flush", nargs="+", default=["each", "10", "request"])
    args = parser.parse_args()
    for flush in args.flush:
        with tempfile.TemporaryDirectory() as folder:
            X, y = rows(200)
            save(FeatureClassifier(loss="logistic", random_state=0).fit(X, y), Path(folder) / "m.ks")
            command = [sys.executable, "-m", "kernelstream.cli", "serve", f"{folder}/m.ks", "--port", "0"]
            environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
            server = subprocess.Popen([*command, "--flush", flush], stderr=subprocess.PIPE, text=True, env=environment)
            try:
                line = next(line for line in server.stderr if " at http://" in line)
                port = int(line.split(" at http://")[1].split(",")[0].rsplit(":", 1)[1])
                found = measure(port, args.seconds, args.connections, server.pid)
            finally:
                server.terminate()
                server.wait()
        print(f"flush {flush}, load {os.getloadavg()[0]:.1f}:", flush=True)
        for name, value in found.items():
            print(f"  {name:26} {value:,.1f}", flush=True)


if __name__ == "__main__":
    main()
