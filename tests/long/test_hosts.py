"""The hosts of the long tests are apart from each other and from this machine, and leave nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.long.hosts import NEEDS_HOSTS, ROOT, Hosts, alive, missing

pytestmark = [pytest.mark.long, NEEDS_HOSTS, pytest.mark.skipif(bool(missing()), reason=missing())]
NAMES = ("laptop", "head")
SSH = "ssh -i /srv/keys/client -o StrictHostKeyChecking=no -o ConnectTimeout=2"


def surroundings() -> tuple[str, str]:
    """Return this machine's network links and mounts."""
    links = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout
    return links, Path("/proc/self/mounts").read_text()


def processes_of(folder: Path) -> list[str]:
    """Return the processes whose mounts come from ``folder``: those that run on a host."""
    found = []
    for mounts in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            if str(folder) in mounts.read_text():
                found.append(mounts.parent.name)
        except (OSError, ProcessLookupError):  # gone meanwhile
            continue
    return found


def test_hosts_are_apart_and_leave_nothing(tmp_path: Path) -> None:
    before = surroundings()
    with Hosts(tmp_path, NAMES) as hosts:
        assert surroundings() == before
        laptop = hosts["laptop"]
        there = laptop.run(
            f"{SSH} 10.77.0.2 'hostname; echo $HOME; touch /dev/shm/x /tmp/y ~/z /srv/shared/w; ls /proc'"
        )
        assert there.stdout.splitlines()[-200:].count("head") == 1, there.stdout
        assert "/srv/home" in there.stdout
        assert laptop.run("ls /dev/shm/x").returncode != 0
        assert laptop.run("ls /tmp/y").returncode != 0
        assert laptop.run("ls ~/z").returncode != 0
        assert laptop.run("ls /srv/shared/w").returncode == 0
        assert len(laptop.run("ls -d /proc/[0-9]*").stdout.split()) < 10
        assert "Read-only" in laptop.run(f"touch {ROOT}/planted /srv/checkout/planted").stdout
        assert len(laptop.run("ip -brief link").stdout.splitlines()) == 2
        assert "unreachable" in laptop.run("bash -c 'echo > /dev/tcp/192.0.2.1/80'").stdout

        hosts.down("head")
        assert laptop.run(f"{SSH} 10.77.0.2 true").returncode == 255
        hosts.up("head")
        assert laptop.run(f"{SSH} 10.77.0.2 'ls ~/z && ! ls /tmp/y'").returncode == 0
        hosts.cut("head")
        assert laptop.run(f"{SSH} 10.77.0.2 true").returncode == 255
        hosts.cut("head", connected=True)
        assert laptop.run(f"{SSH} 10.77.0.2 true").returncode == 0
    assert surroundings() == before
    assert not any(map(alive, hosts.pids))
    assert not processes_of(tmp_path)


def test_nothing_is_left_when_the_tester_is_killed(tmp_path: Path) -> None:
    before = surroundings()
    script = (
        "import os, signal; from pathlib import Path; from tests.long.hosts import Hosts\n"
        f"with Hosts(Path({str(tmp_path)!r}), {NAMES!r}) as hosts:\n"
        "    hosts['head'].start('sleep 1000', Path('/dev/null'))\n"
        "    print(*hosts.pids, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    tester = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    pids = [int(word) for word in tester.stdout.split()]
    assert len(pids) == 3, tester.stderr
    for pid in pids:
        while alive(pid):  # the limit of the test is the limit
            pass
    assert surroundings() == before
    assert not processes_of(tmp_path)
