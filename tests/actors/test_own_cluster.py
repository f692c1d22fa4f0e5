"""``auto`` joins a cluster of this user alone; those of others on the machine are refused by name."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray._private.services import psutil

from actors import own_cluster as module
from actors.cluster import connect
from actors.jobs import Workers
from actors.own_cluster import listeners, own_cluster, raylets
from audits.errors import BadInput

ME = os.geteuid()
OTHER = ME + 1


class Process:
    """A process as psutil shows it."""

    def __init__(self, address: str, user: int = ME, effective: int | None = None, name: str = "/x/raylet") -> None:
        self.words = [name, f"--gcs-address={address}", "--node_id=1"]
        self.users = SimpleNamespace(real=user, effective=user if effective is None else effective)

    def cmdline(self) -> list[str]:
        return self.words

    def uids(self) -> Any:
        return self.users


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Return what lets this machine run given processes; Ray's folder is an empty one."""
    (tmp_path / "ray").mkdir()
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)

    def run(*processes: Process) -> None:
        monkeypatch.setattr(psutil, "process_iter", lambda *_: iter(processes))

    run()
    return run


@pytest.fixture
def left(tmp_path: Path) -> Callable[[str], Path]:
    """Return what leaves an address in Ray's file."""

    def leave(address: str) -> Path:
        file = tmp_path / "ray" / "ray_current_cluster"
        file.write_text(address)
        return file

    return leave


def test_the_cluster_of_another_user_is_no_cluster_of_ones_own(
    running: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    running(Process("127.0.0.1:9", OTHER))
    with (
        pytest.raises(BadInput, match=r"belongs to .*compute\.address=127\.0\.0\.1:9"),
        connect(Workers(1, address="auto", storage=str(tmp_path))),
    ):
        pass
    running(Process("10.0.0.1:6379"), Process("127.0.0.1:9", OTHER))
    assert own_cluster() == "10.0.0.1:6379"
    running(Process("127.0.0.1:9"), Process("127.0.0.1:9", OTHER))
    assert own_cluster() == "127.0.0.1:9", "another user's machine in a cluster of one's own"


def test_an_address_that_a_file_has_kept_is_no_cluster(running: Callable[..., None], left: Callable[..., Path]) -> None:
    left("127.0.0.1:8")
    with pytest.raises(BadInput, match="no Ray cluster of yours"):
        own_cluster()
    running(Process("127.0.0.1:8", OTHER))
    with pytest.raises(BadInput, match="belongs to"):
        own_cluster()


def test_an_address_at_which_another_user_listens_now_is_not_joined(
    running: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as one:
        one.bind(("0.0.0.0", 0))
        one.listen()
        address = f"127.0.0.1:{one.getsockname()[1]}"
        running(Process(address))
        assert own_cluster() == address
        monkeypatch.setattr(module, "listeners", lambda host, port: [OTHER] * (address == f"{host}:{port}"))
        with pytest.raises(BadInput, match=f"another user .*compute\\.address={address}"):
            own_cluster()


def test_sockets_that_take_what_is_sent_to_an_address_are_seen() -> None:
    outer = next((each for each in addresses_of_this_machine() if not each.startswith("127.")), "127.0.0.2")
    for at, seen_by, unseen_by in (
        ("0.0.0.0", ("127.0.0.1", outer), ("192.0.2.1",)),
        ("127.0.0.1", ("127.0.0.1", "localhost"), (outer, "192.0.2.1")),
        (outer, (outer,), ("127.0.0.1",)),
        ("::", ("127.0.0.1", "::1", outer), ("192.0.2.1",)),
        ("::1", ("::1",), ("127.0.0.1",)),
        ("::ffff:127.0.0.1", ("127.0.0.1",), ("::1",)),
    ):
        with socket.socket(socket.AF_INET6 if ":" in at else socket.AF_INET) as one:
            try:
                one.bind((at, 0))
            except OSError:
                assert ":" in at, "a machine without IPv6"
                continue
            port = one.getsockname()[1]
            assert listeners(seen_by[0], port) == [], "a socket that takes nothing yet"
            one.listen()
            assert all(listeners(each, port) == [ME] for each in seen_by), at
            assert all(listeners(each, port) == [] for each in unseen_by), at
    assert listeners("no such host", 1) == []


def addresses_of_this_machine() -> list[str]:
    """Return the IPv4 addresses of this machine's interfaces."""
    return [one.address for each in psutil.net_if_addrs().values() for one in each if one.family == socket.AF_INET]


def test_ones_own_cluster_is_found_by_name_or_process_and_of_several_by_file(
    running: Callable[..., None], left: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match="no Ray cluster of yours"):
        own_cluster()
    running(Process("10.0.0.1:1"), Process("10.0.0.1:1"), Process("10.0.0.9:9", name="/bin/other"))
    left("10.0.0.9:9")
    assert own_cluster() == "10.0.0.1:1"
    running(Process("10.0.0.1:1"), Process("10.0.0.2:2"))
    with pytest.raises(BadInput, match="several"):
        own_cluster()
    file = left("10.0.0.2:2\n")
    assert own_cluster() == "10.0.0.2:2"
    for content in ("http://author.example/x", "10.0.0.1", "", "x" * 400):
        file.write_text(content)
        with pytest.raises(BadInput, match="several"):
            own_cluster()
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(BadInput, match="several"):
        own_cluster()
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.3:3")
    assert own_cluster() == "10.0.0.3:3"


def test_a_process_that_runs_as_two_users_is_the_others(running: Callable[..., None]) -> None:
    running(Process("10.0.0.1:1", ME, OTHER), Process("10.0.0.1:1", OTHER, ME))
    assert {each.user for each in raylets()} == {OTHER}


def test_processes_of_this_machine_can_be_looked_through(running: Callable[..., None]) -> None:
    assert isinstance(list(raylets()), list)
