"""``orch submit`` against the job server of a real head: results, exit codes, Ctrl-C, and following once more."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ray.dashboard.utils import get_dashboard_dependency_error

from orchestrator.kinds import load_plan
from tests.cases.ports import free_ports
from tests.cases.runs import audited
from tests.long.hosts import PYTHON, ROOT

LACKING = get_dashboard_dependency_error()
pytestmark = [
    pytest.mark.long,
    pytest.mark.cluster,
    pytest.mark.skipif(LACKING is not None, reason=f"needs orch-audit[cluster]: {LACKING}"),
]
HEAD = ("--set", "compute.workers=1", "--set", "compute.head=true")
START_SECONDS = 120.0


class Head:
    """A head with a job server, a home and a token of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "PATH": f"{PYTHON.parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        gcs, dashboard, agent = free_ports(3)
        self.address = f"http://127.0.0.1:{dashboard}"
        self.call("ray", "get-auth-token", "--generate")
        start = ["ray", "start", "--head", "--block", f"--port={gcs}", "--node-ip-address=127.0.0.1", "--num-cpus=2"]
        ports = [f"--dashboard-port={dashboard}", f"--dashboard-agent-listen-port={agent}"]
        small = [f"--temp-dir={folder}/r", "--object-store-memory=100000000"]
        with (folder / "ray.log").open("wb") as log:
            self.process = subprocess.Popen(
                [*start, *ports, *small],
                env={**self.environment, "RAY_AUTH_MODE": "token"},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait(self) -> None:
        """Wait until the job server answers."""
        deadline = time.monotonic() + START_SECONDS
        while self.orch("submit", "--attach", "none", "--address", self.address).stdout.find("no job 'none'") < 0:
            assert time.monotonic() < deadline, (self.folder / "ray.log").read_text()[-2000:]
            time.sleep(1)

    def call(self, *words: str, **values: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the head's surroundings; both outputs are ``stdout``."""
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        surroundings = {**self.environment, **values}
        return subprocess.run(words, env=surroundings, cwd=self.folder, text=True, check=False, **both)  # type: ignore[call-overload, no-any-return]  # the outputs by name

    def orch(self, *words: str, **values: str) -> subprocess.CompletedProcess[str]:
        """Run ``orch`` beside the head."""
        return self.call(sys.executable, "-m", "orchestrator.cli.main", *words, **values)

    def submit(self, *words: str) -> tuple[str, ...]:
        """Return the words of ``orch submit`` for this head and its store."""
        return ("submit", "--address", self.address, *words, "--store", str(self.folder / "store"), *HEAD)

    def stop(self) -> None:
        """End every process of the head."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            os.killpg(self.process.pid, number)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                continue
            break


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    """A head; its folder has a short name, because Ray's sockets lie below."""
    folder = Path(f"/tmp/orch-{os.getpid()}")
    folder.mkdir()
    found = Head(folder)
    try:
        found.wait()
        yield found
    finally:
        found.stop()
        shutil.rmtree(folder)


def test_a_submitted_audit_has_the_bits_of_one_machine_and_can_be_fetched_again(head: Head, tmp_path: Path) -> None:
    audited(load_plan("apollo-smoke", values={"compute.workers": 0, "compute.store": str(tmp_path / "s")}), tmp_path)
    plan = head.folder / "mine.yaml"
    plan.write_text((ROOT / "orchestrator" / "plans" / "apollo-smoke.yaml").read_text())
    said = head.orch(*head.submit("audit", "apollo", str(plan), "--out", "here"))
    assert said.returncode == 0, said.stdout
    assert "training and unlearning: done" in said.stdout and "orch-result" not in said.stdout
    here = head.folder / "here"
    assert (here / "scores.parquet").read_bytes() == (tmp_path / "scores.parquet").read_bytes()
    assert {"result.json", "report.html", "plan.yaml", "figures"} <= {path.name for path in here.iterdir()}

    (name,) = (line.split()[1] for line in said.stdout.splitlines() if line.startswith("job "))
    again = head.orch("submit", "--address", head.address, "--attach", name, "--out", "again")
    assert again.returncode == 0, again.stdout
    assert (head.folder / "again" / "scores.parquet").read_bytes() == (here / "scores.parquet").read_bytes()


def test_the_exit_code_is_the_commands(head: Head) -> None:
    wide = head.orch(*head.submit("audit", "apollo", "apollo-smoke", "--out", "gate", "--fail-above", "auc=0.1"))
    assert wide.returncode == 1, wide.stdout
    bad = head.orch(*head.submit("audit", "apollo", "apollo-smoke", "--out", "bad", "--fail-above", "auk=0.1"))
    assert bad.returncode == 2, bad.stdout
    assert "auk" in bad.stdout


def test_another_token_is_refused_in_one_line(head: Head) -> None:
    said = head.orch(*head.submit("audit", "apollo", "apollo-smoke", "--out", "x"), RAY_AUTH_TOKEN="0" * 64)
    assert said.returncode == 2, said.stdout
    assert "refuses the token" in said.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("answer", "says", "ends"), [("y", "is cancelled", "STOPPED"), ("", "is still running", "SUCCEEDED")]
)
def test_ctrl_c_asks(head: Head, answer: str, says: str, ends: str) -> None:
    long = ("audit", "apollo", "apollo-smoke", "--set", "recipe.epochs=150", "--set", f"seed={len(answer) + 7}")
    words = [sys.executable, "-m", "orchestrator.cli.main", *head.submit(*long, "--out", f"c{answer}")]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        words, env=head.environment, cwd=head.folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    read_until(ours, " to do")  # all of the training is ahead
    os.kill(process.pid, signal.SIGINT)
    read_until(ours, "cancel the job")
    os.write(ours, f"{answer}\n".encode())
    text = read_until(ours, says)
    assert process.wait(60) == 130
    os.close(ours)
    name = next(word for word in text.split() if word.startswith("orch-"))
    after = head.orch("submit", "--address", head.address, "--attach", name, "--out", "after")
    assert after.returncode == (130 if ends == "STOPPED" else 0), after.stdout


def read_until(descriptor: int, text: str) -> str:
    """Return what a terminal shows until ``text`` does (the limit of the test is the limit)."""
    shown = ""
    while text not in shown:
        try:
            shown += os.read(descriptor, 4096).decode(errors="replace")
        except OSError:
            pytest.fail(f"the command ended without {text!r}: {shown}")
    return shown
