"""A headless Chromium, driven by chromedriver's WebDriver protocol with nothing but the standard library."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cases.programs import MACHINE
from tests.cases.waiting import wait_for

BROWSER = pytest.mark.needs("chromedriver", "chromium")
PATIENCE = 400.0
"""Seconds for a command, on a busy machine."""
SHOWN = "return location.protocol === 'file:' && document.readyState === 'complete'"
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@dataclass
class Browser:
    """One window."""

    address: str

    def ask(self, path: str, **body: Any) -> Any:
        """Return what chromedriver answers to a POST."""
        request = urllib.request.Request(
            f"{self.address}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)["value"]

    def protocol(self, command: str, **values: Any) -> Any:
        """Return what a command of the DevTools protocol returns."""
        return self.ask("goog/cdp/execute", cmd=command, params=values)

    def run(self, script: str, *values: Any) -> Any:
        """Return what a script returns."""
        return self.ask("execute/sync", script=script, args=list(values))

    def wait(self, script: str, *values: Any) -> Any:
        """Return what a script hands to its last argument, a function."""
        return self.ask("execute/async", script=script, args=list(values))

    def size(self, width: int, height: int) -> None:
        """Give the window so many pixels."""
        small = width < 600
        self.protocol(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=small
        )

    def show(self, page: Path, width: int, height: int, scheme: str = "light", media: str = "screen") -> None:
        """Open a page in a window of so many pixels."""
        self.logged()
        self.size(width, height)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.protocol("Emulation.setEmulatedMedia", media=media, features=features)
        self.ask("url", url="about:blank")  # or a page that is shown already, at an anchor, is not loaded anew
        self.ask("url", url=page.as_uri())
        wait_for(lambda: self.run(SHOWN))  # on a busy machine chromedriver may answer before

    def logged(self) -> tuple[list[str], list[str]]:
        """Return errors of the console, and addresses that were asked for, since the last call."""
        console = [line["message"] for line in self.ask("se/log", type="browser") if line["level"] == "SEVERE"]
        events = [json.loads(line["message"])["message"] for line in self.ask("se/log", type="performance")]
        asked = [
            event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"
        ]
        return console, [url for url in asked if not url.startswith("data:")]

    def picture(self, file: Path, left: int = 0) -> None:
        """Write what the window shows as a PNG, without its first ``left`` pixels."""
        width, height = self.run("return [innerWidth, innerHeight]")
        clip = {"x": left, "y": 0, "width": width - left, "height": height, "scale": 1}
        values = {"clip": clip} if left else {}
        file.write_bytes(base64.b64decode(self.protocol("Page.captureScreenshot", format="png", **values)["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a browser with a profile of its own in ``folder``."""
    driver = subprocess.Popen(
        ["chromedriver", "--port=0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PATH": MACHINE.path},  # chromium may be a script, which starts programs of its own
    )
    try:
        assert driver.stdout is not None
        said = next(line for line in driver.stdout if "started successfully" in line)
        address = f"http://127.0.0.1:{said.rstrip('.' + chr(10)).rpartition(' ')[2]}"
        options = {"binary": MACHINE.find("chromium"), "args": [*FLAGS, f"--user-data-dir={folder}"]}
        limits = dict.fromkeys(("script", "pageLoad"), int(PATIENCE * 1000))
        wanted = {
            "timeouts": limits,
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        opened = Browser(address).ask("session", capabilities={"alwaysMatch": wanted})
        window = Browser(f"{address}/session/{opened['sessionId']}")
        try:
            yield window
        finally:
            urllib.request.urlopen(urllib.request.Request(window.address, method="DELETE"), timeout=30).close()
    finally:
        driver.terminate()
        driver.wait(30)
