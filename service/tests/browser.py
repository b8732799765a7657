"""A real browser, driven over its debugging pipe: pages are looked at as a reader sees them."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium")


class Browser:
    """One page of a headless Chromium."""

    def __init__(self):
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        from_us, to_us = os.pipe(), os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--remote-debugging-pipe", f"--user-data-dir={self.home.name}"]  # fmt: skip
        script = f"exec {CHROMIUM} {' '.join(options)} 3<&{from_us[0]} 4>&{to_us[1]}"
        self.process = subprocess.Popen(
            ["bash", "-c", script],
            pass_fds=(from_us[0], to_us[1]),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(from_us[0])
        os.close(to_us[1])
        self.out, self.source = from_us[1], os.fdopen(to_us[0], "rb", buffering=0)
        self.rest, self.number, self.events = b"", 0, []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        """A command of the DevTools protocol and its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._message()
            if found.get("id") == self.number:
                assert "error" not in found, found
                return found["result"]
            self.events.append(found)

    def _message(self):
        while b"\0" not in self.rest:
            part = self.source.read(1 << 16)
            assert part, "the browser has ended"
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def open(self, url, width=1100, height=900, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=url)
        self.wait_for(f"document.readyState === 'complete' && location.href === {json.dumps(url)}")

    def run(self, expression):
        """Value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_for(self, expression, seconds=20):
        """Wait until an expression is true."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.run(expression):
                return
            time.sleep(0.05)
        raise AssertionError(f"{expression} did not come true; the page says: {self.run('document.body.innerText')}")

    def screenshot(self, path, whole=True):
        content = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(content))

    def requested(self):
        """Addresses that the page has asked for."""
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def errors(self):
        """What the browser complained about."""
        logged = [e["params"]["entry"]["text"] for e in self.events if e.get("method") == "Log.entryAdded"]
        return logged + [str(e["params"]) for e in self.events if e.get("method") == "Runtime.exceptionThrown"]

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        self.source.close()
        self.home.cleanup()
