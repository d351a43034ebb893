"""A headless Chromium with one page, driven by the DevTools protocol over a pair of pipes."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

LAUNCH = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads commands from the descriptor 3 and writes to 4."""

KEYS = {
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "/": (191, "/"),
    "Tab": (9, ""),
    "Home": (36, ""),
    "End": (35, ""),
} | {f"Arrow{side}": (code, "") for side, code in (("Left", 37), ("Up", 38), ("Right", 39), ("Down", 40))}


class Browser:
    """Use it as a context. `events` are all that the page told, `requests` the URLs that it asked for."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        ends = [_high(end) for end in (*os.pipe(), *os.pipe())]
        theirs_in, self._out, self._in, theirs_out = ends
        flags = ["--headless", "--no-sandbox", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        flags += [
            "--no-first-run",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "about:blank",
        ]
        command = [sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out), CHROMIUM, *flags]
        self._process = subprocess.Popen(
            command, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = b""
        self._count = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._out)
        os.close(self._in)
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Give a command and wait for its result."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(
        self, page: Path, *, width: int = 1440, height: int = 1000, dark: bool = False, scripts: bool = True
    ) -> None:
        """Load a page and wait until it has loaded."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events.clear()
        self.send("Page.navigate", url=page.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())
        # The event may still be that of the page before, on a machine that is busy.
        while self.evaluate("`${document.readyState} ${location}`") != f"complete {page.as_uri()}":
            time.sleep(0.01)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        done = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def press(self, key: str) -> None:
        code, text = KEYS[key]
        told = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **told)
        self.send("Input.dispatchKeyEvent", type="keyUp", **told)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        image = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(image["data"]))

    @property
    def requests(self) -> list[str]:
        asked = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in asked]

    @property
    def complaints(self) -> list[dict[str, Any]]:
        """Exceptions, what was written to the console, and what the browser logged."""
        bad = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event for event in self.events if event["method"] in bad]

    def _read(self) -> dict[str, Any]:
        until = time.monotonic() + 60
        while b"\0" not in self._buffer:
            left = until - time.monotonic()
            assert left > 0 and select.select([self._in], [], [], left)[0], "the browser is silent"
            piece = os.read(self._in, 1 << 16)
            assert piece, "the browser is gone"
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        read: dict[str, Any] = json.loads(message)
        return read


def _high(descriptor: int) -> int:
    """The same pipe's end under a number that is neither 3 nor 4."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved
