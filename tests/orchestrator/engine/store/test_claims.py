"""Claims: of all drivers on one store one does a job, however they race, and a dead one holds nobody up."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from actors.jobs import Elsewhere
from orchestrator.engine.store import claims as claims_module
from orchestrator.engine.store.claims import Claim, Claims
from orchestrator.engine.store.garbage import GRACE, collect, find_garbage
from orchestrator.engine.store.once import do_once
from orchestrator.engine.store.owner import Owner, machine, this_process
from orchestrator.engine.store.places import CLAIMS
from orchestrator.engine.store.storage import Entry
from orchestrator.engine.store.store import Store

KEY = "a" * 32


def driver(name: str) -> Owner:
    """A driver on another machine: only its claims tell whether it lives."""
    return Owner(name, "another machine", 1, "1", name)


class Memory:
    """Files in memory with strong consistency; ``turn`` is waited for before each request."""

    place = "memory"

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def turn(self) -> None:
        """Go on at once."""

    def publish(self, folder: str, files: Mapping[str, bytes]) -> None:
        self.turn()
        self.files |= {f"{folder}/{name}": data for name, data in files.items()}

    def walk(self, folder: str) -> Iterator[Entry]:
        self.turn()
        return iter([Entry(path, len(data), 0.0) for path, data in self.files.items() if path.startswith(f"{folder}/")])

    def read(self, path: str) -> bytes:
        self.turn()
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def remove_file(self, path: str) -> None:
        self.turn()
        self.files.pop(path, None)


class InTurn(Memory):
    """Lets the threads 0, 1, … make one request each in the order of ``schedule``, then whoever is left as it comes."""

    def __init__(self, schedule: tuple[int, ...]) -> None:
        super().__init__()
        self.schedule = list(schedule)
        self.moved = threading.Condition()
        self.ended: set[int] = set()

    def turn(self) -> None:
        me = int(threading.current_thread().name)
        with self.moved:
            assert self.moved.wait_for(lambda: self.next() in (me, None), timeout=10)
            if self.schedule:
                self.schedule.pop(0)
            self.moved.notify_all()

    def next(self) -> int | None:
        while self.schedule and self.schedule[0] in self.ended:
            self.schedule.pop(0)
        return self.schedule[0] if self.schedule else None

    def end(self) -> None:
        with self.moved:
            self.ended.add(int(threading.current_thread().name))
            self.moved.notify_all()


def race(schedule: tuple[int, ...], drivers: int) -> list[Claim | Owner]:
    """Let drivers claim one job at once, their requests in the order of ``schedule``; return what each of them got."""
    storage = InTurn(schedule)
    got: dict[int, Claim | Owner] = {}

    def claim(number: int) -> None:
        try:
            got[number] = Claims(storage, sleep=lambda _: None).take("train", KEY, driver(f"driver {number}"))
        finally:
            storage.end()

    threads = [threading.Thread(target=claim, args=(n,), name=str(n), daemon=True) for n in range(drivers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    return [got[number] for number in range(drivers)]


def test_two_drivers_never_hold_one_job_in_whatever_order_their_requests_arrive() -> None:
    orders = {order for order in itertools.product((0, 1), repeat=8) if sum(order) in (3, 4, 5)}
    held = [sum(isinstance(one, Claim) for one in race(order, 2)) for order in sorted(orders)]
    assert len(held) == 182
    assert set(held) <= {0, 1}
    assert held.count(1) > 100


def test_of_three_drivers_one_at_most_holds_the_job() -> None:
    orders = sorted(set(itertools.permutations((0, 0, 0, 1, 1, 1, 2, 2, 2))))[::14]
    assert {sum(isinstance(one, Claim) for one in race(order, 3)) for order in orders} <= {0, 1}


def test_a_claim_is_held_until_it_is_given_back() -> None:
    storage = Memory()
    one, two = Claims(storage), Claims(storage)
    claim = one.take("train", KEY, driver("one"))
    assert isinstance(claim, Claim)
    assert two.take("train", KEY, driver("two")) == driver("one")
    assert isinstance(two.take("train", "b" * 32, driver("two")), Claim)
    assert isinstance(two.take("score", KEY, driver("two")), Claim)
    claim.release()
    claim.write()  # a beat that comes too late
    assert isinstance(two.take("train", KEY, driver("two")), Claim)


def test_a_driver_takes_over_what_its_own_lost_worker_held() -> None:
    storage = Memory()
    Claims(storage).take("train", KEY, driver("one"))
    again = Claims(storage).take("train", KEY, driver("one"))
    assert isinstance(again, Claim)
    assert list(storage.files) == [f"{CLAIMS}/{again.name}"]


def test_a_claim_is_stale_when_nobody_renews_it_for_a_minute_of_the_watchers_clock() -> None:
    storage, now = Memory(), [0.0]
    held = Claims(storage).take("train", KEY, driver("one"))
    assert isinstance(held, Claim)
    watcher = Claims(storage, clock=lambda: now[0])
    for now[0] in (1000.0, 1059.0):
        assert watcher.take("train", KEY, driver("two")) == driver("one")
    held.write()
    for now[0] in (1061.0, 1120.0):
        assert watcher.take("train", KEY, driver("two")) == driver("one")
    now[0] = 1121.5
    assert isinstance(watcher.take("train", KEY, driver("two")), Claim)


def test_a_driver_that_died_on_this_machine_holds_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    me = this_process()
    assert not me.gone()
    for pid, started in ((me.pid, "1"), (2**22 + 1, me.started)):  # a pid that was given anew, and one of nobody
        dead = Owner(me.host, machine(), pid, started, f"dead {pid}")
        assert dead.gone()
        Claims(store.storage).take("train", KEY, dead)
        assert isinstance(Claims(store.storage).take("train", KEY, me), Claim)
    Claims(store.storage).take("train", "b" * 32, dead)
    alive = Claims(store.storage).take("train", "c" * 32, driver("one"))
    assert isinstance(alive, Claim)
    store.claims.forget_the_dead()
    assert sorted(name.split(".")[1][0] for name in os.listdir(tmp_path / CLAIMS)) == ["a", "c"]


def test_a_claim_is_renewed_while_the_job_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims_module, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(claims_module, "_HEART", claims_module._Heart())
    store = Store(tmp_path)
    beats = set()

    def work() -> None:
        (path,) = (tmp_path / CLAIMS).glob("train*")
        until = time.monotonic() + 10
        while len(beats) < 3 and time.monotonic() < until:
            beats.add(json.loads(path.read_bytes())["beat"])

    do_once(store, "train", KEY, this_process(), work)
    assert len(beats) == 3
    assert not list(tmp_path.rglob("train*"))


def test_a_job_that_raises_gives_its_claim_back(tmp_path: Path) -> None:
    def work() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        do_once(Store(tmp_path), "train", KEY, driver("one"), work)
    assert not list(tmp_path.rglob("train*"))


def test_what_somebody_finished_meanwhile_is_not_done_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("train", KEY, {}, {"a.json": b"1"})
    do_once(store, "train", KEY, driver("one"), pytest.fail)
    Claims(store.storage).take("train", KEY, driver("two"))
    with pytest.raises(Elsewhere, match=rf"job train/{KEY} is being done for process 1 on two"):
        do_once(store, "train", KEY, driver("one"), pytest.fail)


def test_old_claims_are_leftovers(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.claims.take("train", KEY, driver("one"))
    assert find_garbage(store).young == 1
    collect(store, find_garbage(store, now=time.time() + GRACE + 60))
    assert not list(tmp_path.rglob("train*"))
    assert store.stages() == []


WORKER = """
import os, sys, time
from actors.jobs import Elsewhere
from orchestrator.engine.store.once import do_once
from orchestrator.engine.store.owner import this_process
from orchestrator.engine.store.store import Store
store, owner, log = Store(sys.argv[1]), this_process(), os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
pending = [format(number, "032x") for number in range(int(sys.argv[3]))]
print("ready", flush=True)
sys.stdin.readline()
def work(key):
    os.write(log, f"{key}\\n".encode())
    time.sleep(float(sys.argv[4]))
    store.put("train", key, {}, {"a.json": b"1"})
while pending:
    key = pending.pop(0)
    try:
        do_once(store, "train", key, owner, lambda: work(key))
    except Elsewhere:
        pending.append(key)
        time.sleep(0.01)
"""


def worker(tmp_path: Path, jobs: int, seconds: float) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).parents[4])
    arguments = [sys.executable, "-c", WORKER, str(tmp_path / "store"), str(tmp_path / "log"), str(jobs), str(seconds)]
    process = subprocess.Popen(arguments, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def begin_work(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()


def test_two_drivers_at_once_do_each_job_once(tmp_path: Path) -> None:
    both = [worker(tmp_path, 12, 0.05) for _ in range(2)]
    for process in both:
        begin_work(process)
    assert [process.wait(600) for process in both] == [0, 0]
    done = (tmp_path / "log").read_text().split()
    assert len(done) == len(set(done)) == 12
    assert len(Store(tmp_path / "store").keys("train")) == 12
    assert not list((tmp_path / "store" / CLAIMS).glob("*"))


def test_the_job_of_a_killed_driver_is_done_at_once_by_the_next(tmp_path: Path) -> None:
    first = worker(tmp_path, 1, 60.0)
    begin_work(first)
    while not (tmp_path / "log").exists() or not (tmp_path / "log").read_text():
        assert first.poll() is None
    first.send_signal(signal.SIGKILL)
    first.wait()
    ran: list[int] = []
    do_once(Store(tmp_path / "store"), "train", format(0, "032x"), this_process(), partial(ran.append, 1))
    assert ran == [1]
