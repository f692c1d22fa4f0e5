"""The pools: jobs run in the order of their needs, with any number of workers, and fail as themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import actors.cluster
from actors.capacity import Cluster, Node
from actors.cluster import connect, describe, size_workers
from actors.environment import environment
from actors.failures import pack_failure, unpack_failure
from actors.job_queue import JobQueue
from actors.jobs import Engine, Job, Workers, WorkersLost
from actors.pools import do_jobs
from actors.trials import expand_grid, run_trials
from actors.words import say
from audits.errors import BadInput
from audits.owners import others_can_exchange
from tests.actors.file_jobs import FileJob, OddError, chain, done, ignore, is_done, make_perform, starts
from tests.cases.waiting import wait_for

GRID = {"a": {"grid_search": [1, 2, 3]}, "b": {"grid_search": ["x", "y"]}, "c": 5}


def job(key: str, *needs: str, folder: str = "", action: str = "") -> FileJob:
    return FileJob(key, folder, needs, action)


def train(jobs: list[FileJob], folder: Path, workers: Workers, **overrides: Any) -> None:
    arguments: dict[str, Any] = {"on_progress": ignore, "is_done": partial(is_done, folder), **overrides}
    do_jobs(jobs, make_perform, workers, **arguments)


def note_trial(folder: Path, config: dict[str, Any]) -> dict[str, float]:
    (folder / f"{config['a']}{config['b']}").open("a").write(f"{config['c']};")
    return {"score": float(config["a"])}


def fail_twice(folder: Path, config: dict[str, Any]) -> dict[str, float]:
    note_trial(folder, config)
    if config["b"] == "y" and config["a"] > 1:
        raise OddError(config["a"], "in a trial")
    return {"score": 0.0}


def signal_once(folder: Path, driver: int, number: signal.Signals, config: dict[str, Any]) -> dict[str, float]:
    """Note a trial; the fourth sends the driver a signal and holds until it is stopped, once."""
    if config["a"] == 2 and config["b"] == "y" and not (folder / "sent").exists():
        (folder / "sent").touch()
        os.kill(driver, number)
        threading.Event().wait()
    return note_trial(folder, config)


# the queue itself


def test_a_job_is_released_when_the_last_of_its_needs_is_done() -> None:
    queue = JobQueue([job("c", "a", "b"), job("a"), job("b", "a")])
    assert queue.take() == "a"
    assert queue.take() is None
    queue.finish("a")
    assert queue.take() == "b"
    assert queue.take() is None
    queue.finish("b")
    assert queue.take() == "c"
    assert not queue.finished
    queue.finish("c")
    assert queue.finished


def test_needs_that_nobody_queued_are_in_the_store() -> None:
    assert JobQueue([job("a", "trained earlier")]).take() == "a"


def test_circles_and_twins_are_refused() -> None:
    with pytest.raises(ValueError, match="wait for each other: a, b"):
        JobQueue([job("a", "b"), job("b", "a"), job("c")])
    with pytest.raises(ValueError, match="'a' is queued twice"):
        JobQueue([job("a"), job("a")])


@pytest.mark.parametrize("error", [BadInput("x = 3: no"), FileNotFoundError(2, "gone", "/x"), KeyError("k")])
def test_failures_arrive_with_type_message_and_traceback(error: Exception) -> None:
    arrived = unpack_failure(pack_failure(error))
    assert type(arrived) is type(error)
    assert (str(arrived), arrived.args) == (str(error), error.args)
    assert "In the worker" in arrived.__notes__[0]


def test_a_failure_that_cannot_travel_is_named() -> None:
    arrived = unpack_failure(pack_failure(OddError(1, "why")))
    assert type(arrived) is RuntimeError
    assert str(arrived).startswith("OddError: odd 1: why")


# in the calling process


def test_without_workers_everything_runs_here(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    workers = Workers(0, storage=str(tmp_path / "ray"))
    train(chain(tmp_path), tmp_path, workers, on_progress=lambda *counts: seen.append(counts))
    assert seen == [(count, 12) for count in range(13)]
    assert done(tmp_path)["0.2"] == "0.2(0.1(0.0))"
    assert all(f"@{os.getpid()}@" in path.name for path in (tmp_path / "starts").iterdir())


def test_without_workers_ray_is_not_imported(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from actors.cluster import size_workers
from actors.trials import run_trials
from tests.actors.file_jobs import *
drive(Path({str(tmp_path)!r}), Workers(0), ignore, chain(Path({str(tmp_path)!r})))
run_trials({GRID!r}, dict, Workers(0), name="x", on_progress=ignore)
size_workers("auto", 0.0)
print([name for name in ("ray", "torch") if name in sys.modules])
"""
    root = Path(__file__).resolve().parents[2]
    paths = {**os.environ, "PYTHONPATH": str(root)}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=paths)
    assert out.stdout == "[]\n"


def test_without_workers_a_failure_is_itself(tmp_path: Path) -> None:
    with pytest.raises(OddError, match="odd 7: said the job"):
        train([job("a", folder=str(tmp_path), action="odd")], tmp_path, Workers(0))


def test_no_jobs_start_no_ray(tmp_path: Path) -> None:
    train([], tmp_path, Workers(2, storage=str(tmp_path / "ray")))
    assert not (tmp_path / "ray").exists()


def test_grids_are_expanded() -> None:
    grid = list(expand_grid({**GRID, "deep": {"d": {"grid_search": [7, 8]}, "e": 9}}))
    assert len(grid) == 12
    assert grid[0] == {"a": 1, "b": "x", "c": 5, "deep": {"d": 7, "e": 9}}
    assert grid[-1] == {"a": 3, "b": "y", "c": 5, "deep": {"d": 8, "e": 9}}


def test_without_workers_trials_run_once_each_and_the_first_failure_is_raised_last(tmp_path: Path) -> None:
    with pytest.raises(OddError, match="odd 2"):
        run_trials(GRID, partial(fail_twice, tmp_path), Workers(0), name="grid", on_progress=ignore)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
        ["1x", "1y", "2x", "2y", "3x", "3y"], "5;"
    )


# sizes


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"count": -1}, "workers = -1: give 0"),
        ({"count": 1, "cpus": 0.0}, "cpus per worker = 0.0"),
        ({"count": 1, "gpus": 1.5}, "gpus per worker = 1.5: give a fraction"),
        ({"count": 1, "threads": 0}, "threads per worker = 0"),
    ],
)
def test_impossible_workers_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Workers(**wrong)


def test_workers_are_counted_machine_by_machine() -> None:
    cluster = Cluster((Node("a", 3, 1), Node("b", 3, 2), Node("c", 8, 0)))
    assert cluster.room(2, 0) == 6
    assert cluster.room(1, 0.5) == 5
    assert cluster.room(1, 1) == 3
    assert cluster.room(1, 2) == 1
    assert cluster.room(1, 3) == 0
    assert Cluster((Node("d", 8, 1.5),)).room(1, 0.5) == 2, "a worker has one GPU, or a part of one"


def test_sizes_are_numbers_or_auto() -> None:
    assert size_workers(3, 0.0) == 3
    assert size_workers("auto", 0.0) == len(os.sched_getaffinity(0))
    with pytest.raises(BadInput, match="workers = 'all'"):
        size_workers("all", 0.0)
    for requested, gpus, cpus in ((1, 0.0, 1000.0), (2, 1000.0, 1.0), ("auto", 0.0, 1000.0)):
        with pytest.raises(BadInput, match=r"no worker with .* fits: there are 1 node"):
            size_workers(requested, gpus, cpus=cpus)
    assert size_workers(0, 0.0, cpus=1000.0) == 0


@pytest.fixture
def unconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process look as if it had no cluster; tests on the shared one may have run before."""
    monkeypatch.setattr("ray.is_initialized", lambda: False)


@pytest.mark.usefixtures("unconnected")
@pytest.mark.parametrize("address", ["127.0.0.1:9", "auto"])
def test_an_address_where_nothing_answers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    if address == "auto":
        monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with (
        pytest.raises(BadInput, match=r"no Ray cluster answers at '127.0.0.1:9'"),
        connect(Workers(1, address=address, storage=str(tmp_path))),
    ):
        pass


@pytest.mark.usefixtures("unconnected")
def test_a_machine_without_bash_by_which_ray_starts_workers_is_told_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="bash, which is not on PATH"), connect(Workers(1, storage=str(tmp_path))):
        pass


@pytest.mark.usefixtures("unconnected")
def test_storage_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(BadInput, match="cannot be used for Ray's files"),
        connect(Workers(1, storage=f"{tmp_path}/file")),
    ):
        pass


@pytest.mark.parametrize("whose", ["ours", "all's", "all's above", "as /tmp", "another's"])
def test_rays_files_lie_where_nobody_else_can_exchange_them(whose: str, tmp_path: Path) -> None:
    """In a folder of others, who could put sockets of theirs in the place of Ray's, they lie in one of their own."""
    storage = tmp_path / "project" / "ray"
    storage.mkdir(parents=True)
    if whose == "all's above":
        storage.parent.chmod(0o777)
    elif whose == "another's" and os.geteuid() == 0:
        os.chown(storage, 54321, -1)
    elif whose != "ours":
        storage.chmod(0o1777 if whose == "as /tmp" else 0o777)
    safe = whose in ("ours", "as /tmp")
    workers = Workers(1, storage=str(storage))
    with (
        actors.cluster._ray_folder(workers.storage) as folder,
        actors.cluster.run_folder(workers, "../../run") as (place, name),
    ):
        assert "/" not in name and not name.startswith(".")
        (Path(place) / name).mkdir()
        for each in (Path(folder).resolve(), Path(place)):
            assert each.is_relative_to(storage) == safe
            assert others_can_exchange(each) is False
            assert safe or each.stat().st_mode & 0o077 == 0
    assert not os.path.lexists(folder) and not (Path(place) / name).exists() and not list(storage.iterdir())


@pytest.mark.parametrize("address", [None, "10.0.0.1:6379"])
@pytest.mark.parametrize("led", ["elsewhere", "nowhere"])
def test_a_link_is_no_folder_of_rays_files(address: str | None, led: str, tmp_path: Path) -> None:
    """Its name is orch's own, so the link is not the user's word."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store.ray").symlink_to(tmp_path / led)
    workers = Workers(1, storage=str(tmp_path / "store.ray"), address=address)
    with pytest.raises(BadInput, match="it is a link"), actors.cluster.run_folder(workers, "run"):
        pass
    with pytest.raises(BadInput, match="it is a link"), actors.cluster._ray_folder(workers.storage):
        pass
    assert not list((tmp_path / "elsewhere").iterdir()) and not (tmp_path / "nowhere").exists()


def test_environment_is_restored() -> None:
    os.environ["ORCH_TEST_A"] = "old"
    with environment({"ORCH_TEST_A": None, "ORCH_TEST_B": "new"}):
        assert "ORCH_TEST_A" not in os.environ
        assert os.environ["ORCH_TEST_B"] == "new"
    assert os.environ.pop("ORCH_TEST_A") == "old"
    assert "ORCH_TEST_B" not in os.environ


def make_speaking() -> Any:
    def speak(unit: Job) -> None:
        """Note the threads and the folder; say how far the unit is, and go on when the driver has heard it."""
        import torch

        assert isinstance(unit, FileJob)
        Path(unit.folder, f"surroundings of {unit.key}").write_text(
            f"{torch.get_num_threads()} {os.environ['OMP_NUM_THREADS']} {Path.cwd()}"
        )
        for share in ("10%", "60%"):
            say(unit.key, f"work {share}")
            wait_for(Path(unit.folder, f"{unit.key} work {share}").exists)

    return speak


def heard_by_the_driver(folder: Path, workers: Workers) -> list[str]:
    """Return what the driver hears of two jobs that go on when they were heard."""
    heard: list[str] = []

    def on_words(words: Mapping[str, str]) -> None:
        for key, text in words.items():
            heard.append(f"{key} {text}")
            (folder / heard[-1]).touch()

    units = [job("a", folder=str(folder)), job("b", "a", folder=str(folder))]
    do_jobs(units, make_speaking, workers, on_progress=ignore, is_done=lambda key: False, on_words=on_words)
    return list(dict.fromkeys(heard))


SAID = ["a work 10%", "a work 60%", "b work 10%", "b work 60%"]


def test_what_jobs_say_in_this_process_is_heard_at_once(tmp_path: Path) -> None:
    assert heard_by_the_driver(tmp_path, Workers(0)) == SAID
    say("a", "nobody listens")


# with Ray


@pytest.mark.cluster
@pytest.mark.parametrize("engine", [pytest.param("train", marks=pytest.mark.long), "actors"])
def test_the_driver_hears_what_jobs_of_workers_say_whose_threads_and_working_folder_are_fixed(
    tmp_path: Path, cluster: Workers, engine: Engine
) -> None:
    workers = replace(cluster, count=1, threads=3, engine=engine)
    assert heard_by_the_driver(tmp_path, workers) == SAID
    assert (tmp_path / "surroundings of a").read_text() == f"3 3 {Path.cwd()}"


def failing(folder: Path) -> list[FileJob]:
    """Return a chain, a job that fails when the chain is done, and one that needs that."""
    units = chain(folder)
    every = [unit.key for unit in units]
    last = [job("missing", *every, folder=str(folder), action="missing"), job("never", "missing", folder=str(folder))]
    return [*reversed(last), *units]


@pytest.mark.cluster
@pytest.mark.parametrize("engine", [pytest.param("train", marks=pytest.mark.long), "actors"])
def test_two_workers_write_the_files_of_no_worker_and_a_failing_job_stops_them_as_itself(
    tmp_path: Path, cluster: Workers, engine: Engine
) -> None:
    """Runs to the end: ``test_faults.py`` and, of an audit by Ray Train, ``engine/run/test_killed_driver.py``."""
    none, two = tmp_path / "none", tmp_path / "two"
    train(chain(none), none, Workers(0))
    seen: list[tuple[int, int]] = []
    with pytest.raises(FileNotFoundError) as caught:
        train(failing(two), two, replace(cluster, engine=engine), on_progress=lambda *counts: seen.append(counts))
    assert caught.value.filename == "/data/x.png"
    assert done(none) == done(two)
    assert seen == sorted(seen)
    assert seen[-1] == (12, 14)
    assert {key: starts(two, key) for key in (*done(two), "missing", "never")} == {
        **dict.fromkeys([*done(none), "missing"], 1), "never": 0,
    }  # fmt: skip


@pytest.mark.cluster
def test_workers_that_cannot_be_placed_are_refused_at_once(tmp_path: Path, cluster: Workers) -> None:
    greedy = Workers(2, gpus=64, storage=cluster.storage)
    message = "2 workers with 1 CPUs and 64 GPUs each do not fit: this machine has 1 node"
    with pytest.raises(BadInput, match=message):
        train(chain(tmp_path), tmp_path, greedy)
    with pytest.raises(BadInput, match=message):
        run_trials(GRID, partial(note_trial, tmp_path), greedy, name="grid", on_progress=ignore)
    assert list(tmp_path.iterdir()) == []
    assert describe().room(1.0, 0.0) == 2


@pytest.mark.long
@pytest.mark.cluster
def test_tune_runs_every_configuration_once_and_again_when_asked_again(tmp_path: Path, cluster: Workers) -> None:
    """The first failing trial is raised after all others have run. An interrupt stops the trials and arrives as one."""
    seen: list[tuple[int, int]] = []

    def tried(trial: Any) -> None:
        seen.clear()
        run_trials(GRID, partial(trial, tmp_path), cluster, name="grid", on_progress=lambda *c: seen.append(c))

    def written() -> dict[str, str]:
        return {path.name: path.read_text() for path in tmp_path.iterdir()}

    every = ["1x", "1y", "2x", "2y", "3x", "3y"]
    with pytest.raises(RuntimeError, match="OddError: odd 2: in a trial"):
        tried(fail_twice)
    assert written() == dict.fromkeys(every, "5;")
    assert seen == [(count, 6) for count in range(7)]

    handler = signal.getsignal(signal.SIGINT)

    def interrupting(folder: Path, config: dict[str, Any]) -> dict[str, float]:
        return signal_once(folder, driver, signal.SIGINT, config)

    driver = os.getpid()
    with pytest.raises(KeyboardInterrupt):
        tried(interrupting)
    assert signal.getsignal(signal.SIGINT) is handler
    assert seen[-1] != (6, 6)
    before = written()
    assert before["2y"] == "5;"
    (tmp_path / "sent").unlink()
    tried(note_trial)
    assert written() == {name: before[name] + "5;" for name in every}
    assert seen == [(count, 6) for count in range(7)]
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.long
@pytest.mark.cluster
def test_trials_that_end_without_a_result_are_not_done(tmp_path: Path, cluster: Workers) -> None:
    trial = partial(signal_once, tmp_path, os.getpid(), signal.SIGUSR1)  # upon which Tune ends as if all were well
    with pytest.raises(WorkersLost, match=r"trial {.*} of grid ended without a result; run the same command again"):
        run_trials(GRID, trial, cluster, name="grid", on_progress=ignore)
