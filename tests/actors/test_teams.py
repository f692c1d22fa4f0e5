"""Workers that do jobs together: they meet on loopback, start again together, and none waits for one that failed."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import socket
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from actors.jobs import Workers, WorkersLost
from actors.pools import do_jobs
from actors.teams import (
    INTERFACES,
    PARTING_SECONDS,
    call_together,
    fresh_file,
    interface_of,
    joined,
    leader,
    mates,
    meet_at,
)
from audits.errors import BadInput
from audits.training.team import Stranger, Team
from tests.actors.file_jobs import done, ignore, is_done
from tests.actors.team_jobs import ROUNDS, TeamJob, make_perform, starts

pytestmark = pytest.mark.timeout(900)


def carry_out(folder: Path, cluster: Workers, *jobs: TeamJob, max_losses: int = 3) -> None:
    do_jobs(
        jobs,
        make_perform,
        replace(cluster, per_model=2),
        on_progress=ignore,
        is_done=partial(is_done, folder),
        max_losses=max_losses,
    )


def sums(folder: Path) -> dict[str, float]:
    return {key: float(text.split()[0]) for key, text in done(folder).items()}


def test_nobody_else_reads_where_a_team_meets(tmp_path: Path) -> None:
    places = [Path(fresh_file(str(tmp_path / "run")).removeprefix("file://")) for _ in range(2)]
    assert len({*places}) == 2
    for place in places:
        assert place.is_relative_to(tmp_path / "run") and not place.exists()
        assert place.parent.stat().st_mode & 0o077 == 0


@pytest.mark.long
@pytest.mark.cluster
def test_two_workers_do_a_job_together_and_go_on_when_the_second_dies(cluster: Workers, tmp_path: Path) -> None:
    """In short: ``test_on_a_cluster_a_team_meets_at_a_port_of_its_first_worker``."""
    place = str(tmp_path)
    first = TeamJob("first", place)
    alone = TeamJob("alone", place, ("first",), alone=True)
    lost = TeamJob("lost", place, ("alone",), "second dies once")
    carry_out(tmp_path, cluster, first, alone, lost)
    assert sums(tmp_path) == {"first": 3 * ROUNDS, "alone": 1, "lost": 3 * ROUNDS}
    assert (starts(tmp_path, "first", 0), starts(tmp_path, "first", 1)) == (1, 1)
    assert (starts(tmp_path, "alone", 0), starts(tmp_path, "alone", 1)) == (1, 0)
    assert (starts(tmp_path, "lost", 0), starts(tmp_path, "lost", 1)) == (2, 2)
    assert {host for text in done(tmp_path).values() for host in text.split()[1:]} == {"127.0.0.1"}


@pytest.mark.long
@pytest.mark.cluster
def test_what_one_worker_or_all_raise_arrives_as_itself(cluster: Workers, tmp_path: Path) -> None:
    for action, said in (("all fail", ""), ("second fails", "1")):
        folder = tmp_path / action
        with pytest.raises(Exception, match=rf"odd 7: said worker {said}$"):
            carry_out(folder, cluster, TeamJob("bad", str(folder), action=action), TeamJob("later", str(folder)))
        assert (starts(folder, "bad", 0), starts(folder, "bad", 1)) == (1, 1)
        assert starts(folder, "later", 0) == 0


@pytest.mark.long
@pytest.mark.cluster
def test_a_hung_second_worker_is_killed_and_a_failing_first_one_ends_the_run(cluster: Workers, tmp_path: Path) -> None:
    hung = tmp_path / "hung"
    carry_out(hung, cluster, TeamJob("hung", str(hung), action="second hangs once"))
    assert sums(hung) == {"hung": 3 * ROUNDS}
    failed = tmp_path / "failed"
    with pytest.raises(Exception, match=r"odd 7: said worker 0$"):
        carry_out(failed, cluster, TeamJob("bad", str(failed), action="first fails"))
    assert PARTING_SECONDS > 0 and starts(failed, "bad", 0) == 1


@pytest.mark.long
@pytest.mark.cluster
def test_a_job_that_kills_its_workers_is_given_up_by_name(cluster: Workers, tmp_path: Path) -> None:
    """In short: ``test_a_killed_worker_costs_only_what_was_unfinished_and_a_deadly_job_is_given_up_by_name``."""
    with pytest.raises(WorkersLost, match=r"job deadly is given up: its worker died 2 time\(s\)"):
        carry_out(tmp_path, cluster, TeamJob("deadly", str(tmp_path), action="first dies"), max_losses=2)
    assert starts(tmp_path, "deadly", 0) == 2


class Group:
    """A Train group of workers that only note what they are told, in the place of those of Ray."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.told: dict[int, tuple[str, str]] = {}

    def __len__(self) -> int:
        return self.size

    def execute_single(self, rank: int, work: Any, *arguments: str) -> str:
        if work is meet_at:
            self.told[rank] = (arguments[0], arguments[1])
            return ""
        return str(work(*arguments))


def talk(rank: int, meeting: str, secret: str, place: str) -> None:
    meet_at(meeting, secret)
    with joined(2 + rank, 2, gpus=False) as team:
        said = team.from_first("the first one's word" if team.leads else None)
        Path(place, f"{team.rank} of {team.size}").write_text(f"{said} by {os.environ[INTERFACES[0]]}")


def test_on_a_cluster_a_team_meets_at_a_port_of_its_first_worker(tmp_path: Path) -> None:
    group = Group(5)
    call_together(group, 2, None)
    assert group.told.keys() == {0, 1, 2, 3}, "the fifth has no mate"
    assert group.told[0] == group.told[1] != group.told[2] == group.told[3]
    fork = multiprocessing.get_context("fork")
    pair = [fork.Process(target=talk, args=(rank, *group.told[2], str(tmp_path))) for rank in range(2)]
    for process in pair:
        process.start()
    for process in pair:
        process.join()
    assert [process.exitcode for process in pair] == [0, 0]
    said = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert said.keys() == {"0 of 2", "1 of 2"}
    interfaces = {name for _, name in socket.if_nameindex()}
    assert set(said.values()) <= {f"the first one's word by {name}" for name in interfaces}


def meet(rank: int, meeting: str, secret: str, place: str) -> None:
    meet_at(meeting, secret)
    try:
        with joined(rank, 2, gpus=False):
            Path(place, f"{rank} joined").touch()
    except Stranger:
        Path(place, f"{rank} refused").touch()


def test_who_does_not_know_the_secret_of_a_team_is_no_member_of_it(tmp_path: Path) -> None:
    """gloo takes whoever connects first for a member."""
    place, fork = fresh_file(str(tmp_path / "run")), multiprocessing.get_context("fork")
    pair = [fork.Process(target=meet, args=(rank, place, 32 * f"0{rank}", str(tmp_path))) for rank in range(2)]
    for process in pair:
        process.start()
    for process in pair:
        process.join()
    found = {path.name for path in tmp_path.iterdir()} - {"run"}
    assert found and not any("joined" in name for name in found)


def test_what_a_stranger_tells_a_team_is_not_unpickled(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    said: list[bytes] = []
    team = Team(1, 2, key=b"of the team")
    monkeypatch.setattr(Team, "_broadcast", lambda self, data, source=0: said.pop(0))
    monkeypatch.setattr(pickle, "loads", lambda data: opened.append(data) or "opened")
    data = pickle.dumps("a job")
    for signature in (b"", Team(0, 2, key=b"another")._sign(data)):
        said[:] = [signature, data]
        with pytest.raises(Stranger):
            team.from_first()
    assert not opened
    said[:] = [Team(0, 2, key=b"of the team")._sign(data), data]
    assert team.from_first() == "opened"
    said[:] = [b"", data]
    with pytest.raises(ValueError, match="share a secret"):
        Team(1, 2).from_first()


def test_interfaces_are_found_by_their_address() -> None:
    assert interface_of("127.0.0.1").startswith("lo")
    assert interface_of("203.0.113.7") == ""


def test_teams_are_consecutive_workers() -> None:
    assert [leader(rank, 3) for rank in range(7)] == [0, 0, 0, 3, 3, 3, 6]
    assert list(mates(4, 3)) == [3, 4, 5]


def test_workers_that_make_no_whole_teams_are_refused() -> None:
    with pytest.raises(BadInput, match=r"2 workers per model do not divide 3; give a multiple of them"):
        Workers(3, per_model=2)
    assert Workers(4, per_model=2).fewest == "no 2 workers with 1 CPU"
