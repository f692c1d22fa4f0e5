"""``auto`` joins a cluster of this user alone; those of others on the machine are refused by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray._private.services import psutil

from actors.cluster import connect
from actors.jobs import Workers
from actors.own_cluster import left_by_ray_start, own_cluster, raylets
from audits import owners
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
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], Path]:
    """Return what leaves an address in Ray's file, as the user with the given number does."""

    def leave(address: str, user: int = ME) -> Path:
        file = tmp_path / "ray" / "ray_current_cluster"
        file.write_text(address)
        real = os.fstat

        def fstat(handle: int) -> os.stat_result:
            found = list(real(handle))
            return os.stat_result([*found[:4], user, *found[5:]])

        monkeypatch.setattr(os, "fstat", fstat)
        return file

    return leave


def test_the_cluster_of_another_user_is_no_cluster_of_ones_own(
    running: Callable[..., None], left: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    running(Process("127.0.0.1:9", OTHER))
    with (
        pytest.raises(BadInput, match=r"compute\.address=127\.0\.0\.1:9"),
        connect(Workers(1, address="auto", storage=str(tmp_path))),
    ):
        pass
    running()
    left("127.0.0.1:8", OTHER)
    with pytest.raises(BadInput, match=r"compute\.address=127\.0\.0\.1:8"):
        own_cluster()
    running(Process("10.0.0.1:6379"), Process("127.0.0.1:9", OTHER))
    assert own_cluster() == "10.0.0.1:6379"
    left("127.0.0.1:9")
    running(Process("127.0.0.1:9", OTHER))
    with pytest.raises(BadInput, match="belongs to"):
        own_cluster()  # a file of one's own that is older than the other's cluster
    running(Process("10.0.0.1:1"), Process("127.0.0.1:9"), Process("127.0.0.1:9", OTHER))
    assert own_cluster() == "127.0.0.1:9", "another user's machine in a cluster of one's own"


def test_ones_own_cluster_is_found_by_name_process_or_file(
    running: Callable[..., None], left: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadInput, match="no Ray cluster of yours"):
        own_cluster()
    running(Process("10.0.0.1:1"), Process("10.0.0.1:1"), Process("10.0.0.9:9", name="/bin/other"))
    assert own_cluster() == "10.0.0.1:1"
    running(Process("10.0.0.1:1"), Process("10.0.0.2:2"))
    with pytest.raises(BadInput, match="several"):
        own_cluster()
    left("10.0.0.2:2\n")
    assert own_cluster() == "10.0.0.2:2"
    running()
    assert own_cluster() == "10.0.0.2:2"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.3:3")
    assert own_cluster() == "10.0.0.3:3"


def test_a_process_that_runs_as_two_users_is_the_others(running: Callable[..., None]) -> None:
    running(Process("10.0.0.1:1", ME, OTHER), Process("10.0.0.1:1", OTHER, ME))
    assert {each.user for each in raylets()} == {OTHER}


@pytest.mark.timeout(60)
def test_a_file_that_others_may_have_written_is_not_ones_own(
    running: Callable[..., None], left: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = left("10.0.0.1:1")
    assert own_cluster() == "10.0.0.1:1"
    for group, mode in ((-1, 0o666), (-1, 0o660), (file.stat().st_gid, 0o606)):
        monkeypatch.setattr(owners, "own_group", lambda group=group: group)
        file.chmod(mode)
        with pytest.raises(BadInput, match=f"others may have written {file}"):
            own_cluster()
    file.chmod(0o660)
    assert own_cluster() == "10.0.0.1:1", "a group of one's own"
    file.chmod(0o600)
    file.with_name("second").hardlink_to(file)
    with pytest.raises(BadInput, match="others may have written"):
        own_cluster()
    for content in ("http://author.example/x", "10.0.0.1", "", "x" * 400):
        file.write_text(content)
        assert left_by_ray_start() is None
    file.rename(file.with_name("third"))
    file.symlink_to("third")
    assert left_by_ray_start() is None
    file.unlink()
    os.mkfifo(file)
    assert left_by_ray_start() is None


def test_processes_of_this_machine_can_be_looked_through(running: Callable[..., None]) -> None:
    assert isinstance(list(raylets()), list)
