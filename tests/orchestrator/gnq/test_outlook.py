"""What looks at a given model take is known before they begin, and how far one is while it goes on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from actors.words import listening
from audits.gradients.gram import gram
from audits.gradients.heard import counted, heard, tell_passed
from audits.uniqueness import outlook as outlooks
from audits.uniqueness.diagonal import diagonal_uniqueness
from audits.uniqueness.outlook import Outlook, outlook
from orchestrator.engine.run.within import Reported, followed
from orchestrator.gnq.given import outlook as given_outlook
from orchestrator.gnq.given.cost import GivenProbe
from orchestrator.kinds import load_plan, open_design

WIDE = {"hidden": [500]}


class Clock:
    """A clock that goes on by a second each time it is read, so that what is counted shows and no machine does."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def taken(points: int, memory: int, modes: tuple[str, ...] = ("ridge",)) -> Outlook:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 3)).eval()
    x, y = torch.rand(8, 12), torch.arange(8) % 3
    return outlook(net, x, y, points, modes, chunk=8, memory=memory, clock=Clock())


def test_more_points_and_less_memory_take_longer() -> None:
    few, many = taken(80, 2**20), taken(800, 2**20)
    assert many.seconds > 10 * few.seconds, "pairs grow with the square of the points"
    assert many.bytes - few.bytes == 2 * 8 * (800**2 - 80**2), "K and its factor"
    assert taken(800, 2**18).seconds > many.seconds, "more parts, each a pass over all points"
    assert taken(800, 2**20, ("ridge", "diagonal")).seconds > many.seconds


@pytest.mark.parametrize("more", ["diagonal", "pinv"])
def test_what_the_first_mode_takes_alone_is_what_it_takes_without_the_others(more: str) -> None:
    alone, both = taken(800, 2**20), taken(800, 2**20, ("ridge", more))
    assert both.first == pytest.approx(alone.seconds) == alone.first
    assert both.seconds > both.first


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(196, 500), nn.ReLU(), nn.Linear(500, 10))
    torch.save(net.state_dict(), "weights.pt")
    (tmp_path / "plan.yaml").write_text(
        "audit: {kind: gnq}\nmodel: {name: mlp, settings: {hidden: [500]}}\n"
        "target: {weights: weights.pt, members: '0:2000'}\n"
    )
    return load_plan("plan.yaml", values={"compute.workers": 0, "compute.store": str(tmp_path / "store")})


def test_a_long_run_says_beforehand_what_it_takes_and_what_is_cheaper(
    plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = open_design(plan).jobs()
    asked: list[int] = []

    def slow(model: nn.Module, x: torch.Tensor, y: torch.Tensor, points: int, *rest: Any, **more: Any) -> Outlook:
        asked.append(points)
        return Outlook(600.0, 2**31, 400.0)

    given_outlook.tried.cache_clear()
    monkeypatch.setattr(given_outlook, "outlook", slow)
    lines = given_outlook.before(plan, jobs, "cpu")
    assert asked == [2000], "looks at as many points are tried once"
    assert "20 min" in lines[0] and "2.0 GiB" in lines[0]
    for field in ("audit.points", "audit.controls", "audit.modes", "last layers"):
        assert field in lines[1]
    probe = GivenProbe(plan, "cpu")
    assert [probe.seconds(job) for job in jobs if job.stage == "look"] == [600.0, 600.0]
    given_outlook.tried.cache_clear()
    monkeypatch.setattr(given_outlook, "outlook", lambda *rest, **more: Outlook(1.0, 2**31, 1.0))
    assert not given_outlook.before(plan, jobs, "cpu")
    given_outlook.tried.cache_clear()


@pytest.mark.parametrize(("threads", "clock"), [(1, time.process_time), (2, time.perf_counter)])
def test_work_is_measured_by_the_processor_that_does_it(
    threads: int, clock: Any, plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = []
    given_outlook.tried.cache_clear()
    monkeypatch.setattr(
        given_outlook, "outlook", lambda *rest, clock, **more: clocks.append(clock) or Outlook(1.0, 2**31, 1.0)
    )
    changed = plan.changed({"compute.threads": threads})
    given_outlook.before(changed, open_design(changed).jobs(), "cpu")
    given_outlook.tried.cache_clear()
    assert clocks == [clock]  # what other programs do to a clock on the wall is no work of the look


def test_a_small_model_is_not_tried(plan: Any) -> None:
    small = plan.changed({"model.settings.hidden": [8]})
    job = next(job for job in open_design(plan).jobs() if job.stage == "look")
    assert given_outlook.of_look(small, "cpu", job) is None


def test_parts_that_are_timed_are_the_last_and_the_middle_one() -> None:
    assert outlooks.sampled([["a"]]) == [["a"]]
    assert outlooks.sampled([["a"], ["b"], ["c"]]) == [["c"], ["b"]]


@pytest.mark.parametrize("memory", [2**30, 20_000, 3_000])
def test_a_look_says_how_far_it_is_up_to_its_end(memory: int) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 3)).eval()
    x, y = torch.rand(30, 12), torch.arange(30) % 3
    said: dict[str, list[float]] = {}
    with heard(lambda what, share: said.setdefault(what, []).append(share)):
        gram(net, x, y, chunk=8, memory=memory)
        diagonal_uniqueness(net, x, y, chunk=8, memory=memory)
    for shares in said.values():
        assert shares == sorted(shares) and shares[0] < 0.3
        assert 0.9 < shares[-1] <= 1 and shares.count(1.0) <= 2, "what is counted is what is passed"
    assert set(said) == {"Gram matrix", "mode diagonal"}


def test_a_job_says_how_far_it_is_at_once_and_then_now_and_then() -> None:
    now = iter([0.0, 10.0, 10.5, 20.0])
    said: list[tuple[str, str]] = []
    with listening(lambda *words: said.append(words)), followed("k1", lambda: next(now)), counted("Gram matrix", 100):
        tell_passed(10)
        tell_passed(10)  # too soon after the first
        tell_passed(30)
    assert said == [
        ("k1", "Gram matrix 10%, about 1 min 30 s of that left, 10 s gone"),
        ("k1", "Gram matrix 50%, about 20 s of that left, 20 s gone"),
    ]


def test_a_share_near_0_says_nothing_of_the_time_left() -> None:
    now = iter([0.0, 4.0, 8.0, 12.0])
    said: list[str] = []
    with listening(lambda _, text: said.append(text)), followed("k", lambda: next(now)), counted("Gram matrix", 10_000):
        tell_passed(4)
        tell_passed(190)
        tell_passed(6)
    assert said == [
        "Gram matrix 0%, 4.0 s gone",
        "Gram matrix 2%, 8.0 s gone",
        "Gram matrix 2%, about 9 min 48 s of that left, 12 s gone",
    ]


@pytest.mark.parametrize(
    ("layers", "diagonal", "order"),
    [
        (True, 0.97, ["audit.modes", "last layers", "audit.controls", "audit.points"]),
        (True, 0.4, ["last layers", "audit.controls", "audit.modes", "audit.points"]),
        (True, 0.1, ["last layers", "audit.controls", "audit.points", "audit.modes"]),
        (False, 0.1, ["audit.controls", "audit.points", "audit.modes"]),  # there is no other layer to leave out
    ],
)
def test_what_saves_most_is_named_first(
    layers: bool, diagonal: float, order: list[str], plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given_outlook, "WIDE", 0.0)
    monkeypatch.setattr(given_outlook, "outlook", lambda *rest, **more: Outlook(600.0, 2**31, 600.0 * (1 - diagonal)))
    given_outlook.tried.cache_clear()
    if not layers:
        monkeypatch.setattr(given_outlook, "last_layer", lambda _: 1.0)
    wide = plan.changed({"audit.controls": 1000})
    line = given_outlook.before(wide, open_design(wide).jobs(), "cpu")[1]
    given_outlook.tried.cache_clear()
    assert sorted(order, key=line.index) == order and ("last layers" in line) == layers


def test_a_line_is_printed_now_and_then_about_each_job_and_none_twice() -> None:
    clock, lines = Clock(), list[str]()
    reported = Reported({"k1": "look members", "k2": "look controls"}, lines.append, every=3, clock=clock)
    for share in range(7):
        reported({"k1": f"{share} of 7", "k2": "as before"})
    assert lines == ["look members: 3 of 7", "look controls: as before", "look members: 6 of 7"]
