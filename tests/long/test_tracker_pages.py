"""The pages of a real MLflow server, in a browser, after the commands of docs/how-to/tracking.md.

``--basetemp DIR`` keeps the pictures; that of a model in docs/images is from here.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import urllib3

from tests.cases.browser import BROWSER, Browser, browser
from tests.cases.ports import free_ports

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800), BROWSER]

BIN = Path(sys.executable).parent
VARIED = ("audit.search.epsilon", "audit.search.beta")
COMMANDS = {
    "mia": ("audit", "mia", "mia-smoke", "--log-models", "first"),
    "gnq": ("audit", "gnq", "gnq-smoke"),
    "tmia": ("audit", "tmia", "tmia-smoke"),
    "sweep": ("sweep", "--vary", f"{VARIED[0]}=0.02,0.05,0.1", "--vary", f"{VARIED[1]}=1,4", "apollo-smoke"),
}
MENU = 196
"""Pixels of MLflow's own menu, left out of the pictures."""
SHOWN = """
const [words, done] = arguments, end = Date.now() + 120000;
const look = () => {
  const text = document.body.innerText, absent = words.filter(each => !text.includes(each));
  absent.length && Date.now() < end ? setTimeout(look, 200) : setTimeout(() => done([absent, text]), 2000);
};
look();
"""

WITHOUT_ASSISTANT = """
const [done] = arguments, close = document.querySelector('[data-component-id="mlflow.assistant.chat_panel.close"]');
close && close.click();
setTimeout(done, close ? 1000 : 0);
"""


@contextmanager
def started(words: list[str], log: Path, health: str) -> Iterator[None]:
    """Run one of MLflow's servers until the block ends."""
    alone = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # nobody gives it jobs
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    with log.open("w") as said:
        server = subprocess.Popen(words, env=alone, stdout=said, stderr=said, cwd=log.parent, start_new_session=True)
    try:
        retries = urllib3.Retry(total=60, backoff_factor=0.2, backoff_max=5)
        assert urllib3.PoolManager().request("GET", health, retries=retries).status == 200, log.read_text()
        yield
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tracked")


@pytest.fixture(scope="module")
def address(place: Path) -> Iterator[str]:
    """Start MLflow with SQLite on loopback."""
    (port,) = free_ports(1)
    stored = ["--backend-store-uri", f"sqlite:///{place}/server.db", "--artifacts-destination", f"{place}/artifacts"]
    words = [str(BIN / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1", *stored]
    with started(words, place / "server.log", f"http://127.0.0.1:{port}/health"):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def last_lines(place: Path, address: str) -> dict[str, str]:
    """Return what each command said."""
    said = {}
    for name, words in COMMANDS.items():
        run = subprocess.run(
            [str(BIN / "orch"), *words, "--out", name, "--store", "store"],
            cwd=place, env={**os.environ, "MLFLOW_TRACKING_URI": address}, capture_output=True, text=True,
        )  # fmt: skip
        assert run.returncode == 0, run.stdout + run.stderr
        said[name] = run.stdout + run.stderr
    return said


@pytest.fixture(scope="module")
def window(place: Path) -> Iterator[Browser]:
    with browser(place / "profile") as opened:
        yield opened


def opened(window: Browser, url: str, words: list[str], picture: Path, height: int) -> str:
    """Return the text of a page once all ``words`` are in it, and keep a picture."""
    window.size(1280, height)
    window.ask("url", url="about:blank")
    window.ask("url", url=url)
    absent, text = window.wait(SHOWN, words)
    assert absent == [], (absent, text)
    window.wait(WITHOUT_ASSISTANT)
    window.picture(picture, left=MENU)
    return str(text)


def tracked(said: str) -> str:
    """Return the address that a run's last lines give."""
    (found,) = re.findall(r"^tracking: .*?(http://\S+)", said, re.MULTILINE)
    return str(found)


def test_the_list_can_be_read_without_opening_anything(
    window: Browser, place: Path, last_lines: dict[str, str]
) -> None:
    """Four runs in four lines, each with its first number, verdict, worst line and kind."""
    runs = ["mia-audit", "gnq-audit", "tmia-audit", "vary-epsilon-beta", "4 matching runs"]
    columns = ["auc", "precision_low", "orch.verdict", "orch.worst", "orch.kind"]
    text = opened(window, tracked(last_lines["mia"]), [*runs, *columns], place / "mlflow-audits.png", 640)
    assert text.count("cannot be told") == len(runs) - 1  # runs this small mean nothing


def test_settings_of_a_sweep_are_compared_in_a_list_and_in_charts(
    window: Browser, place: Path, last_lines: dict[str, str]
) -> None:
    """The address that the sweep gives opens the list; its second button, or the end of an address, the charts."""
    listed = tracked(last_lines["sweep"])
    settings = [f"epsilon={epsilon}, beta={beta}" for epsilon in (0.02, 0.05, 0.1) for beta in (1, 4)]
    columns = ["auc", "tpr", *VARIED]
    text = opened(window, listed, [*settings, *columns, "6 matching runs"], place / "mlflow-list.png", 640)
    assert "None" not in text
    charts = ["Parallel Coordinates", f"{VARIED[0]} vs. ", *settings, "6 matching runs"]
    text = opened(window, f"{listed}&compareRunsMode=CHART", charts, place / "mlflow-settings.png", 800)
    assert "None" not in text


def test_a_logged_model_has_a_page_and_answers(
    window: Browser, place: Path, address: str, last_lines: dict[str, str]
) -> None:
    """It is served by the command that the run gives, on another port, and asked as served-models.md says."""
    (command,) = re.findall(r"MLFLOW_TRACKING_URI=.*", last_lines["mia"])
    setting, *words = shlex.split(command)
    model = words[words.index("-m") + 1].removeprefix("models:/")
    page = f"{tracked(last_lines['mia']).partition('/runs')[0]}/models/{model}"
    opened(window, page, ["target-0", "model.settings.hidden", "mia-audit"], place / "mlflow-model.png", 800)
    (port,) = free_ports(1)
    words = ["env", setting, str(BIN / words[0]), *words[1 : words.index("-p")], "-p", str(port)]
    body = next((place / "artifacts").glob(f"*/models/{model}/artifacts/serving_input_example.json")).read_bytes()
    with started(words, place / "serve.log", f"http://127.0.0.1:{port}/ping"):
        asked = urllib3.PoolManager().request(
            "POST", f"http://127.0.0.1:{port}/invocations", body=body, headers={"Content-Type": "application/json"}
        )
    answer = asked.json()["predictions"]
    assert answer["labels"] == [int(np.argmax(answer["logits"][0]))]
