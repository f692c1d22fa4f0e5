"""The queue as workers and driver see it: leases, lives, doubt, blame, silence."""

from __future__ import annotations

import pytest

from actors.lives import SILENT_SECONDS, Lives, Place
from actors.queue_server import STOP, WAIT, WORK, QueueServer
from actors.verdicts import SUSPECT_SECONDS
from tests.actors.file_jobs import FileJob

HERE, THERE = Place("here", "10.0.0.1", 1), Place("there", "10.0.0.2", 2)


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def server(*keys: str, clock: Clock | None = None, **needs: str) -> QueueServer:
    """Return a queue of jobs by key; ``b="a"``: b needs a."""
    jobs = [FileJob(key, "", (needs[key],) if key in needs else ()) for key in keys]
    return QueueServer(jobs, clock=clock or Clock())


def taken(answer: tuple[str, object]) -> tuple[str, str]:
    """Return an order with its job's key."""
    order, job = answer
    return order, getattr(job, "key", "")


def pass_time(queue: QueueServer, clock: Clock, seconds: float) -> None:
    """Let time pass while the driver goes on asking."""
    for _ in range(int(seconds)):
        clock.now += 1
        queue.state()


def test_the_name_that_ray_sends_with_every_call_does_not_grow_with_the_jobs() -> None:
    assert repr(server(*map(str, range(5000)))) == "QueueServer(5000 jobs)"


def test_a_worker_that_starts_again_returns_what_it_had_taken() -> None:
    queue = server("a", "b", "c")
    first, second = queue.begin("0", HERE, 2), queue.begin("1", HERE, 2)
    assert taken(queue.take("0", first)) == (WORK, "a")
    assert taken(queue.take("1", second)) == (WORK, "b")
    again = queue.begin("0", HERE, 1)  # the group is now one worker: rank 1 is gone, too
    assert queue.state().doubtful == ("a", "b")
    assert taken(queue.take("0", first)) == (STOP, "")
    assert taken(queue.take("1", second)) == (STOP, "")
    queue.settle({"a": True, "b": False})
    assert taken(queue.take("0", again)) == (WORK, "b")
    queue.finish("0", again, "b")
    assert taken(queue.take("0", again)) == (WORK, "c")
    queue.finish("0", again, "c")
    assert queue.state().done == 3
    assert taken(queue.take("0", again)) == (STOP, "")


def test_a_restarted_actor_disturbs_nobody_else() -> None:
    queue = server("a", "b", "c")
    first, second = queue.begin("w0", HERE), queue.begin("w1", THERE)
    queue.take("w0", first)
    assert taken(queue.take("w1", second)) == (WORK, "b")
    queue.begin("w0", HERE)
    assert queue.state().doubtful == ("a",)
    queue.finish("w1", second, "b")
    assert queue.state().done == 1


def test_the_driver_hears_of_jobs_in_hand_what_their_holders_say() -> None:
    queue = server("a", "b")
    first = queue.begin("w0", HERE)
    queue.take("w0", first)
    assert queue.state().words == {}
    queue.hear("w0", first, "a", "10%")
    queue.hear("w0", first, "b", "what it has not taken")
    assert queue.state().words == {"a": "10%"}
    queue.hear("w0", first, "a", "20%")
    assert queue.state().words == {"a": "20%"}
    again = queue.begin("w0", HERE)
    queue.settle({"a": False})
    assert queue.state().words == {}, "nobody is at it"
    assert taken(queue.take("w0", again)) == (WORK, "a")
    queue.hear("w0", first, "a", "of a process that is gone")
    assert queue.state().words == {}, "begun again, it has said nothing yet"
    queue.hear("w0", again, "a", "5%")
    assert queue.state().words == {"a": "5%"}
    queue.finish("w0", again, "a")
    assert queue.state().words == {}


def test_only_the_job_of_the_dead_worker_is_blamed_and_given_up() -> None:
    queue = server("deadly", "innocent")
    for _ in range(3):
        lives = [queue.begin(str(rank), HERE, 2) for rank in range(2)]
        queue.settle({"deadly": False, "innocent": False})
        assert [taken(queue.take(str(rank), lives[rank]))[1] for rank in range(2)] == ["deadly", "innocent"]
        assert queue.state().given_up is None
        queue.blame(["0"])
    assert queue.state().given_up == "job deadly is given up: its worker died 3 time(s)"
    assert taken(queue.take("1", lives[1])) == (STOP, "")


def test_a_job_that_kills_its_actors_on_living_machines_is_given_up() -> None:
    queue = server("deadly")
    for _ in range(3):
        life = queue.begin("w0", HERE)
        queue.settle({"deadly": False})
        assert taken(queue.take("w0", life)) == (WORK, "deadly")
    queue.begin("w0", HERE)
    assert queue.state().given_up == "job deadly is given up: its worker died 3 time(s)"
    assert queue.state().left_out == {}


def test_machines_that_go_are_no_fault_of_the_job() -> None:
    clock = Clock()
    queue = server("long", clock=clock)
    for number in range(20):
        life = queue.begin("w0", Place(f"node {number}", "", number))
        queue.settle({"long": False})
        assert taken(queue.take("w0", life)) == (WORK, "long")
        queue.lost("w0", life)
        pass_time(queue, clock, SUSPECT_SECONDS + 1)
        assert queue.state().suspects == {"long": f"node {number}"}
        queue.judge({"long": False})
    assert queue.state().given_up is None


def test_a_worker_that_died_alone_and_came_back_elsewhere_is_judged_by_its_machine() -> None:
    clock = Clock()
    queue = server("deadly", clock=clock)
    for number in range(3):
        life = queue.begin("w0", (HERE, THERE)[number % 2])
        queue.settle({"deadly": False})
        queue.take("w0", life)
        queue.lost("w0", life)
        pass_time(queue, clock, SUSPECT_SECONDS + 1)
        queue.judge({"deadly": True})
    assert queue.state().given_up == "job deadly is given up: its worker died 3 time(s)"


def test_a_machine_that_kills_the_workers_of_different_jobs_is_left_out_and_no_job_given_up() -> None:
    queue = server("a", "b", "c", "d")
    healthy = queue.begin("w1", THERE)
    for key in ("a", "b", "c"):
        life = queue.begin("w0", HERE)
        queue.settle({"a": True, "b": True, "c": True})  # somebody else did it meanwhile
        assert taken(queue.take("w0", life)) == (WORK, key)
    queue.begin("w0", HERE)
    found = queue.state()
    assert found.given_up is None
    assert found.left_out == {"here": "3 workers died there, at different jobs"}
    assert queue.beat("w1", healthy)


def test_workers_that_die_before_they_are_ready_end_the_run_or_cost_their_machine_its_place() -> None:
    queue = server("a")
    for _ in range(4):
        queue.begin("w0", HERE)
    assert queue.state().given_up == "workers die before they are ready (3 in a row)"
    queue = server("a")
    queue.take("w1", queue.begin("w1", THERE))
    for _ in range(4):
        queue.begin("w0", HERE)
    assert queue.state().given_up is None
    assert queue.state().left_out == {"here": "3 workers died there before they were ready"}


def test_the_word_of_an_old_life_is_checked() -> None:
    queue = server("a", "b")
    old = queue.begin("w0", HERE)
    queue.take("w0", old)
    queue.lost("w0", old)
    queue.settle({"a": False})
    other = queue.begin("w1", THERE)
    assert taken(queue.take("w1", other)) == (WORK, "a")
    queue.finish("w0", old, "a")  # a process that hung has woken up
    assert queue.state().done == 0
    assert queue.state().doubtful == ("a",)
    queue.settle({"a": False})  # the store has nothing: the other one goes on, and nobody else takes it
    assert taken(queue.take("w1", other)) == (WORK, "b")
    queue.finish("w0", old, "a")
    queue.settle({"a": True})
    assert queue.state().done == 1


def test_silent_workers_are_named_but_nobody_after_the_driver_slept() -> None:
    clock = Clock()
    queue = server("a", "b", clock=clock)
    lives = {name: queue.begin(name, HERE) for name in ("w0", "w1")}
    queue.state()
    for _ in range(int(SILENT_SECONDS) + 1):
        clock.now += 1
        queue.beat("w1", lives["w1"])
        found = queue.state()
    assert found.silent == ("w0",)
    queue.lost("w0", lives["w0"])
    assert not queue.beat("w0", lives["w0"])
    clock.now += 1000
    assert queue.state().silent == ()
    pass_time(queue, clock, SILENT_SECONDS + 1)
    assert queue.state().silent == ("w1",)


def test_nothing_is_handed_out_after_a_failure() -> None:
    queue = server("a", "b", "c", b="a")
    life = queue.begin("w0", HERE)
    queue.take("w0", life)
    queue.fail(b"first", "w0", life)
    queue.fail(b"second")
    assert taken(queue.take("w0", life)) == (STOP, "")
    assert (queue.state().failure, queue.state().leased) == (b"first", 0)


def test_a_worker_waits_while_others_hold_what_it_needs() -> None:
    queue = server("a", "b", b="a")
    lives = [queue.begin(name, HERE) for name in ("w0", "w1")]
    queue.take("w0", lives[0])
    assert taken(queue.take("w1", lives[1])) == (WAIT, "")
    assert (queue.state().ready, queue.state().leased, queue.state().blocked) == (0, 1, 1)
    queue.finish("w0", lives[0], "a")
    assert taken(queue.take("w1", lives[1])) == (WORK, "b")


def test_what_somebody_else_is_doing_comes_again_a_little_later() -> None:
    clock = Clock()
    queue = server("a", "b", clock=clock)
    life = queue.begin("w0", HERE)
    queue.take("w0", life)
    queue.postpone("w0", life, "a")
    assert taken(queue.take("w0", life)) == (WORK, "b")
    queue.finish("w0", life, "b")
    assert taken(queue.take("w0", life)) == (WAIT, "")
    assert queue.state().ready == 1
    clock.now += 1.1
    assert taken(queue.take("w0", life)) == (WORK, "a")


@pytest.mark.parametrize("busy", [True, False])
def test_idle_workers_are_seen(busy: bool) -> None:
    clock = Clock()
    queue = server("a", clock=clock)
    life = queue.begin("w0", HERE)
    if busy:
        queue.take("w0", life)
    clock.now += 3
    seen = queue.state().workers["w0"]
    assert (seen.busy, seen.idle) == (busy, 0.0 if busy else 3.0)


def test_a_worker_that_helps_another_is_ready_and_parts_when_its_mates_have_ended() -> None:
    queue = server("a")
    for _ in range(4):  # had it never been ready, the third time would end the run
        lives = [queue.begin(str(rank), HERE, 2) for rank in range(2)]
        queue.settle({"a": False})
        queue.ready("1", lives[1])
        assert taken(queue.take("0", lives[0])) == (WORK, "a")
    assert queue.state().given_up is None
    assert not queue.is_over()
    queue.fail(b"broken", "1", lives[1])
    assert queue.is_over()
    assert not queue.part("1", lives[1], ["0"])
    queue.part("0", lives[0] - 1, ["1"])
    assert "0" in queue.state().workers, "it was an earlier process that parted"
    assert queue.state().leased == 1
    queue.fail(b"too", "0", lives[0])
    assert queue.part("0", lives[0], ["1"])
    assert queue.part("1", lives[1], ["0"])
    state = queue.state()
    assert (state.failure, state.leased, dict(state.workers)) == (b"broken", 0, {})


def test_a_worker_that_has_never_been_ready_is_not_at_work_elsewhere() -> None:
    lives = Lives(lambda: 0.0)
    lives.begin("w0", Place("here", "10.0.0.1", 1))
    lives.begin("w1", Place("there", "10.0.0.2", 1))
    assert not lives.others_at_work("here")
    found = lives.get("w1")
    assert found is not None
    found.took = True
    assert lives.others_at_work("here") and not lives.others_at_work("there")
