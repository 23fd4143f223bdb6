"""A headless Chromium, driven over a pipe by its own protocol: pages opened, buttons clicked, screenshots taken."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_START = """
import fcntl, os, sys
given = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 20) for each in sys.argv[1:3]]
for number, descriptor in enumerate(given, 3):
    os.dup2(descriptor, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts two pipes on the descriptors 3 and 4, on which the browser speaks its protocol."""
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)


class Chromium:
    """A browser with one page. A context manager: it ends with the block."""

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        assert BROWSER is not None, f"no browser is installed: none of {', '.join(BROWSERS)} is there"
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        options += [f"--user-data-dir={self.folder.name}", f"--window-size={width},{height}"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START, str(to_read), str(to_write), BROWSER, *options, "about:blank"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self.number = 0
        self.unread = b""
        self.console: list[str] = []
        """What scripts have written as errors."""
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        self.session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime"):
            self.send(f"{domain}.enable")

    session: str | None = None

    def send(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol; its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("method") == "Runtime.exceptionThrown":
                self.console.append(str(answer["params"]["exceptionDetails"].get("exception", {}).get("description")))
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def _receive(self) -> Any:
        while b"\0" not in self.unread:
            more = os.read(self.back, 1 << 16)
            assert more, "the browser has ended"
            self.unread += more
        text, _, self.unread = self.unread.partition(b"\0")
        return json.loads(text)

    def open(self, address: str) -> None:
        """Go to a page."""
        self.send("Page.navigate", url=address)
        self.wait(f"location.href == {json.dumps(address)} && document.readyState == 'complete'", 60)

    def value(self, expression: str) -> Any:
        """What JavaScript gives for an expression."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, expression: str, seconds: float) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.value(f"Boolean({expression})"):
            assert time.monotonic() < end, f"{expression} is not true after {seconds} seconds; {self.console}"
            time.sleep(0.1)

    def click(self, selector: str) -> None:
        """Press the mouse button over an element."""
        script = """(selector => {
            const element = document.querySelector(selector);
            element.scrollIntoView({block: "center"});
            const box = element.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2];
        })"""
        place = self.value(f"{script}({json.dumps(selector)})")
        for kind in ("mousePressed", "mouseReleased"):
            where = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
            self.send("Input.dispatchMouseEvent", type=kind, **where)

    def screenshot(self, file: Path) -> None:
        """Save what the window shows."""
        file.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.to)
        self.process.terminate()
        self.process.wait(20)
        os.close(self.back)
        self.folder.cleanup()
