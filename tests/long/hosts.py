"""Hosts on this machine: Linux namespaces with a network, processes, a home, /tmp and /dev/shm of their own.

All of them hang on one process that reads the tester's pipe. When the tester ends, however it ends, the kernel ends
that process and, with its namespace, every process on every host; mounts, links and the bridge go with the last of
them. The hosts reach each other (10.77.0.0/24) and nothing else. They see this machine's files read-only, so they have
its Python environment; ``/srv/home`` is the home of each, ``/srv/shared`` one folder for all of them.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import pytest

from tests.cases.programs import MACHINE
from tests.long.host_scripts import HOST, SSHD_CONFIG, SWITCH

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = Path(sys.executable).parent.resolve() / Path(sys.executable).name
NEEDS_HOSTS = pytest.mark.needs(
    "bash", "unshare", "nsenter", "ip", "mount", "hostname", "sshd", "ssh", "ssh-keygen", "rsync", "curl"
)
PATH_THERE = f"{PYTHON.parent}:/usr/sbin:/usr/bin:/sbin:/bin"
READY_SECONDS = 20.0


def missing() -> str:
    """Return what keeps this machine from making hosts, apart from programs; empty if nothing does."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "namespaces need Linux and root"
    if PYTHON.is_relative_to("/tmp"):
        return "the Python environment lies in /tmp, which hosts have of their own"
    if unshare := MACHINE.find("unshare"):
        probe = [unshare, "--net", "--pid", "--mount", "--fork", "true"]
        return "" if subprocess.run(probe, capture_output=True, check=False).returncode == 0 else "no namespaces here"
    return ""


@dataclass
class Host:
    """A host that is up: ``pid`` is that of its first process as the tester sees it."""

    name: str
    address: str
    process: subprocess.Popen[str]
    pid: int

    def command(self, line: str, environment: Mapping[str, str] | None = None) -> list[str]:
        """Return the arguments that run a line of shell on the host."""
        values = {"HOME": "/srv/home", "PATH": PATH_THERE, "LANG": "C.UTF-8"}
        given = [f"{name}={value}" for name, value in {**values, **(environment or {})}.items()]
        enter = ["nsenter", "--target", str(self.pid), "--net", "--pid", "--mount", "--uts", "--ipc"]
        return [*enter, "env", "--chdir=/srv/home", "--ignore-environment", *given, "bash", "-c", line]

    def run(
        self, line: str, *, environment: Mapping[str, str] | None = None, timeout: float = 600.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a line of shell on the host; what it prints on both outputs is ``stdout``."""
        return subprocess.run(
            self.command(line, environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )

    def start(self, line: str, log: Path, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a line of shell on the host; what it prints goes to ``log``."""
        with log.open("wb") as file:
            arguments = self.command(line, environment)
            return subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)


class Hosts:
    """Named hosts with the addresses 10.77.0.1, 10.77.0.2, …; a context, which takes all of them down at its end."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder = folder
        self.names = tuple(names)
        self.running: dict[str, Host] = {}
        self.pids: list[int] = []
        self._switch: subprocess.Popen[str] | None = None

    def __enter__(self) -> Hosts:
        try:
            self._write_files()
            self._switch = self._popen(["unshare", "--net", "--pid", "--mount", "--fork", "bash", "-c", SWITCH])
            self.pids.append(int(answer(self._switch)))
            self._switch_pid = self.pids[0]
            for name in self.names:
                self.up(name)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __getitem__(self, name: str) -> Host:
        return self.running[name]

    @property
    def shared(self) -> Path:
        """The folder that every host has as ``/srv/shared``."""
        return self.folder / "shared"

    def address(self, name: str) -> str:
        """Return the address of a host, up or down."""
        return f"10.77.0.{1 + self.names.index(name)}"

    def up(self, name: str) -> Host:
        """Start a host: the home is as it was left, /tmp and /dev/shm are empty."""
        temporary = self.folder / name / "tmp"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        temporary.chmod(0o1777)
        environment = {
            **os.environ,
            "PATH": PATH_THERE,
            "FOLDER": str(self.folder),
            "CHECKOUT": str(ROOT),
            "NAME": name,
            "ADDRESS": self.address(name),
            "SSHD": os.path.realpath(str(MACHINE.find("sshd"))),
        }
        spaces = ["unshare", "--net", "--pid", "--mount", "--uts", "--ipc", "--fork", "bash", "-c", HOST]
        process = self._popen(["nsenter", "--target", str(self._switch_pid), "--net", "--pid", *spaces], environment)
        pid = int(answer(process))
        self.pids.append(pid)
        number = self.names.index(name)
        port, card = f"port{number}", f"02:00:0a:4d:00:{1 + number:02x}"
        self.on_switch(f"ip link add {port} type veth peer name eth0 address {card} netns /proc/{pid}/ns/net")
        self.on_switch(f"ip link set {port} master switch up")
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert answer(process) == "up"
        self.running[name] = Host(name, self.address(name), process, pid)
        return self.running[name]

    def down(self, name: str) -> None:
        """Take a host down as a power cut does: no process of it ends in order."""
        host = self.running.pop(name)
        self.on_switch(f"ip link delete port{self.names.index(name)}")  # the kernel would do it, but later
        end(host.pid)
        host.process.wait(READY_SECONDS)

    def cut(self, name: str, connected: bool = False) -> None:
        """Pull the network plug of a host, or put it in again; its processes go on."""
        self.on_switch(f"ip link set port{self.names.index(name)} {'up' if connected else 'down'}")

    def on_switch(self, line: str) -> None:
        """Run a command where the bridge is."""
        subprocess.run(["nsenter", "--target", str(self._switch_pid), "--net", *line.split()], check=True)

    def close(self) -> None:
        """Take everything down and wait until it is gone."""
        if self._switch is not None and self.pids:
            end(self.pids[0])
            self._switch.wait(READY_SECONDS)
        for host in self.running.values():
            host.process.wait(READY_SECONDS)
        self.running.clear()
        self._switch = None

    def _popen(self, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start the first process of a namespace, which ends when its standard input does."""
        pipe = subprocess.PIPE
        with (self.folder / "namespaces.log").open("a") as log:
            return subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=log, text=True, env=environment)

    def _write_files(self) -> None:
        keys = self.folder / "keys"
        for folder in (keys, self.shared, *(self.folder / name / "home" for name in self.names)):
            folder.mkdir(parents=True, exist_ok=True)
        for key in ("host", "client"):
            made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", key, "-f", str(keys / key)]
            subprocess.run(made, check=True)
        (keys / "sshd_config").write_text(SSHD_CONFIG)
        lines = Path("/etc/passwd").read_text().splitlines()
        others = [line for line in lines if not line.startswith("root:")]
        (self.folder / "passwd").write_text("\n".join(["root:x:0:0:root:/srv/home:/bin/bash", *others, ""]))
        for name in self.names:
            (self.folder / name / "home" / ".bashrc").write_text(f"export PATH={PYTHON.parent}:$PATH\n")


def answer(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process prints."""
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line, f"{process.args!r} ended without an answer"
    return line


def end(pid: int) -> None:
    """Kill a process and wait until it is gone, and with it its namespace."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    deadline = time.monotonic() + READY_SECONDS
    while alive(pid):
        assert time.monotonic() < deadline, f"process {pid} does not end"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Say whether a process is there and not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
