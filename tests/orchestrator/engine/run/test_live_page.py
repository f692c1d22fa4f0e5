"""The page while a run goes on: what it says in the middle, and after each way in which a run can end."""

from __future__ import annotations

import errno
import itertools
import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from audits.own.libraries import working_folder_elsewhere
from audits.writing import write_whole
from orchestrator.cli.main import main
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.progress import Look
from orchestrator.engine.run import live, live_page, live_tracking
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.live_page import LivePage
from orchestrator.engine.run.output_folder import claim_folder
from orchestrator.engine.run.run import Run
from orchestrator.engine.run.standing import Standing
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.payloads import pack_table
from orchestrator.engine.store.store import Store
from orchestrator.kinds import KINDS, kind_named, load_plan
from orchestrator.report.numbers import number
from tests.cases.runs import audited
from tests.cases.waiting import wait_for
from tune_spaces.registry import Sweep, fixed

SWEEP = Sweep(
    "toy-sweep",
    "Fewer epochs.",
    "",
    fixed({"base": {}, "short": {"recipe.epochs": 1}, "shorter": {"recipe.epochs": 2}}),
    "loss.auc",
    "a table",
)
REFRESH = "location.reload()"
At = Callable[[int, Callable[[], None]], None]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the toy kind, and look at what is done all the time."""
    monkeypatch.setitem(KINDS, "toy", "tests.orchestrator.toy.kind:KIND")
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.05)


@pytest.fixture
def plan(tmp_path: Path) -> BasePlan:
    values = {"compute.workers": 0, "compute.store": str(tmp_path / "store")}
    return load_plan(kind_named("toy").default_plan, values=values)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "out" / "report.html"


class HangingTracker(Run):
    """A run whose tracker hangs from its start to its end, and logs nothing then."""

    def track(self, document: dict[str, Any]) -> None:
        """Let the tracker go, which the end of a run waits for."""
        self.live.tracking.ready.set()


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let what reaches MLflow hang as long as the test goes on."""
    over = threading.Event()

    @contextmanager
    def reached(*_: Any) -> Iterator[None]:
        over.wait()
        raise OSError("never reached")
        yield

    monkeypatch.setattr(live_tracking, "reached", reached)
    monkeypatch.setattr(live_tracking, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(live_tracking, "resolve_uri", lambda *_: "http://hangs")
    yield
    over.set()


def run_of(plan: BasePlan, out: Path, name: str = "toy-audit") -> Run:
    """Return a run with a page and with a tracker that hangs."""
    terminal = Terminal(claim_folder(out, plan))
    return HangingTracker(kind_named("toy"), plan, out, terminal, name=name, rebuild=False)


def test_the_page_says_how_far_a_sweep_is_while_its_tracker_hangs(
    plan: BasePlan, page: Path, at_job: At, hanging: None
) -> None:
    run, compared = run_of(plan, page.parent, SWEEP.name), Counter[str]()

    def counted(setting: Setting, store: Store) -> dict[str, float]:
        compared[setting.name] += 1
        return kind_named("toy").comparison(setting, store)

    run.kind = replace(run.kind, comparison=counted)
    seen: dict[str, str] = {}

    def look() -> None:
        """Seven of nine jobs of stage score are done: all of two settings, and one of the third."""
        seen["page"] = wait_for(lambda: "7 of 9" in (text := page.read_text()) and text.count(">–<") == 2 and text)

    at_job(8, look)
    result = run.sweep(SWEEP).document
    text = seen["page"]
    assert "toy-sweep: running, not finished" in text and "This is no result yet" in text
    assert f"setTimeout(() => {REFRESH}, 10000)" in text and "src=" not in text and "://" not in text
    assert "<code>orch sweep toy-sweep</code>" in text and "<dd>mlp</dd>" in text and "<dd>digits</dd>" in text
    assert "9 of 9" in text and 'aria-valuenow="7"' in text and "width:77.8%" in text and "about" in text
    (waiting,) = (line for line in text.splitlines() if "waiting" in line)
    assert "5 of 6 jobs" not in waiting and "4 of 6 jobs" in waiting
    for row in result["table"]:
        (line,) = (line for line in text.splitlines() if f">{row['setting']}<" in line)
        assert (f"<td>{number(row['auc'])}</td>" in line) == (line != waiting)
    assert compared.keys() <= {"base", "short", "shorter"} and set(compared.values()) == {1}
    whole = page.read_text()
    assert REFRESH not in whole and 'id="verdict"' in whole
    kind_named("toy").open_page().write(page.parent, None)
    assert page.read_text() == whole


@pytest.mark.parametrize(
    ("error", "cause"),
    [pytest.param(KeyboardInterrupt(), "Ctrl-C", marks=pytest.mark.long), (OSError("it <broke>"), "OSError: it ")],
)
def test_the_page_of_a_run_that_breaks_off_says_so_and_stays(
    plan: BasePlan, page: Path, at_job: At, hanging: None, error: BaseException, cause: str
) -> None:
    def break_off() -> None:
        wait_for(lambda: page.exists() and "1 of 3" in page.read_text())
        raise error

    at_job(2, break_off)
    with pytest.raises(type(error)):
        run_of(plan, page.parent).audit()
    text = page.read_text()
    assert f"<b>Stopped before its end: {cause}" in text and "<broke>" not in text
    assert "Finished models are kept: run the same command again to continue." in text
    assert REFRESH not in text and "1 of 3" in text and " s left" not in text
    run_of(plan, page.parent).audit()
    assert 'id="verdict"' in page.read_text()


def undated(page: str) -> str:
    """Return a page without the minute in which its run ended."""
    return re.sub(r"\d+ \w+ \d{4}, \d\d:\d\d UTC", "", page)


@pytest.mark.long
def test_a_report_beside_the_result_of_an_earlier_run_stays_until_the_next_one(
    plan: BasePlan, page: Path, at_job: At, hanging: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of(plan, page.parent).audit()
    before = page.read_text()
    again = load_plan(
        kind_named("toy").default_plan, values={"compute.store": f"{page.parent}/2", "compute.workers": 0}
    )
    told = threading.Event()
    real = LivePage.going_on
    monkeypatch.setattr(LivePage, "going_on", lambda self, look: (real(self, look), told.set()))

    def break_off() -> None:
        told.clear()
        told.wait()
        assert page.read_text() == before
        raise KeyboardInterrupt

    at_job(2, break_off)
    with pytest.raises(KeyboardInterrupt):
        run_of(again, page.parent).audit()
    assert page.read_text() == before
    page.write_text("to be replaced")
    run_of(again, page.parent).audit()
    after = page.read_text().replace(str(page.parent / "2"), plan.compute.store or "")
    assert undated(after) == undated(before)


@pytest.mark.long
def test_a_full_disk_costs_the_page_and_not_the_run(
    plan: BasePlan, page: Path, at_job: At, hanging: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = audited(plan.changed({"compute.store": str(page.parent.parent / "other")}), page.parent.parent / "whole")
    tried = threading.Event()

    def full(file: Path, data: bytes, **_: bool) -> None:
        tried.set()
        raise OSError(errno.ENOSPC, "No space left on device", str(file))

    monkeypatch.setattr(live_page, "write_whole", full)
    at_job(2, lambda: wait_for(tried.is_set))
    result = run_of(plan, page.parent).audit()
    assert pack_table(result.scores) == pack_table(whole.scores)
    log = (page.parent / "orch.log").read_text()
    assert log.count("the page of the unfinished run could not be written: OSError: [Errno 28] No space left") == 1
    assert 'id="verdict"' in page.read_text()


def test_what_cannot_be_written_leaves_the_file_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.html"
    write_whole(file, b"first")
    real = os.write

    def half(handle: int, data: bytes) -> int:
        real(handle, data[:1])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises(OSError, match="No space"):
            write_whole(file, b"second")
    assert file.read_bytes() == b"first" and list(tmp_path.iterdir()) == [file]


@pytest.mark.long
def test_a_store_or_a_comparison_that_fails_costs_numbers_and_not_the_page(
    plan: BasePlan, page: Path, at_job: At, hanging: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(setting: Setting, store: Store) -> Mapping[str, float]:
        raise ZeroDivisionError(setting.name)

    run = run_of(plan, page.parent, SWEEP.name)
    run.kind = replace(run.kind, comparison=broken)
    real, failed = live.Standing.look, threading.Event()

    def look(self: live.Standing) -> list[Setting]:
        if not failed.is_set():
            failed.set()
            raise OSError("500")
        return real(self)

    monkeypatch.setattr(live.Standing, "look", look)
    at_job(8, lambda: wait_for(lambda: "2 of 3 finished" in page.read_text()))
    run.sweep(SWEEP)
    log = (page.parent / "orch.log").read_text()
    assert "progress could not be read: OSError: 500" in log
    assert "base was not compared: ZeroDivisionError: base" in log


def test_a_report_that_cannot_be_drawn_leaves_a_page_that_says_how_to_get_it(
    plan: BasePlan, page: Path, hanging: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def report(self: Run, document: Mapping[str, Any]) -> None:
        assert "the report comes next" in page.read_text()
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "report", report)
    with pytest.raises(KeyboardInterrupt):
        run_of(plan, page.parent).audit()
    text = page.read_text()
    assert "The result is complete" in text and "orch report" in text and REFRESH not in text
    assert json.loads((page.parent / "result.json").read_text())["table"]


@pytest.fixture
def live_one(plan: BasePlan, page: Path) -> LivePage:
    page.parent.mkdir()
    return LivePage(kind_named("toy"), "toy-audit", plan, page.parent, print)


def test_a_look_that_comes_late_changes_nothing(live_one: LivePage, page: Path) -> None:
    late = Look(0.0, {"train": 4}, {"train": 1}, {"base": (1, 4)}, {})
    live_one.going_on(late)
    live_one.summing_up()
    text = page.read_text()
    assert "4 of 4" in text and REFRESH in text
    live_one.going_on(late)
    assert page.read_text() == text
    live_one.result_written()
    page.write_text("the report")
    live_one.report_written()
    live_one.stopped(KeyboardInterrupt())
    assert page.read_text() == "the report"


def test_time_left_is_that_of_a_stage_since_it_moved(live_one: LivePage, page: Path) -> None:
    def at(seconds: float, train: int, score: int) -> str:
        live_one.going_on(Look(1e9 + seconds, {"train": 50, "score": 9}, {"train": train, "score": score}, {}, {}))
        return page.read_text()

    assert " s left" not in at(0, 10, 0)
    assert " s left" not in at(60, 10, 0), "nothing moved: workers were started"
    assert "20 of 50, about 30 s left" in at(70, 20, 0)
    text = at(90, 40, 0)
    assert "40 of 50, about 10 s left" in text and "0 of 9<" in text
    text = at(100, 50, 3)
    assert "50 of 50<" in text and "3 of 9, about 20 s left" in text


@pytest.mark.parametrize("jump", [-1e6, 1e6])
def test_a_clock_that_is_set_changes_neither_duration_nor_what_is_left(
    plan: BasePlan, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    page.parent.mkdir()
    live_one = LivePage(kind_named("toy"), "toy-audit", plan, page.parent, print)
    standing = Standing(Store(str(tmp_path / "store")), [], [])
    for done in (1, 2):
        standing.needed, standing.waiting = Counter(train=4), {str(key): "train" for key in range(4 - done)}
        live_one.going_on(standing.seen({}))
        real = time.time
        monkeypatch.setattr(time, "time", lambda real=real: real() + jump)
    (lasted,) = re.findall(r", after ([^<]*)<", page.read_text())
    (left,) = re.findall(r"about ([^<]*) left", page.read_text())
    assert all(re.fullmatch(r"\d+\.\d s|\d\d s", each) for each in (lasted, left)), (lasted, left)


@pytest.mark.long
def test_a_run_whose_clock_jumps_has_the_same_scores(
    plan: BasePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = audited(plan, tmp_path / "first", shown=True)
    real, jumps = time.time, itertools.cycle((0.0, -4e8, 4e8))
    monkeypatch.setattr(time, "time", lambda: real() + next(jumps))
    again = audited(plan.changed({"compute.store": str(tmp_path / "another")}), tmp_path / "again", shown=True)
    assert again.scores.equals(first.scores) and not (set(again.document["warnings"]) - {*first.document["warnings"]})
    assert main(["cache", "gc", "--store", str(tmp_path / "another")]) == 0
    assert audited(plan.changed({"compute.store": str(tmp_path / "another")}), tmp_path / "third").scores.equals(
        first.scores
    )


def test_another_run_that_finishes_in_the_folder_keeps_its_report(live_one: LivePage, page: Path) -> None:
    look = Look(0.0, {"train": 4}, {"train": 1}, {"base": (1, 4)}, {})
    live_one.going_on(look)
    (page.parent / "result.json").write_text("{}")
    page.write_text("the report")
    live_one.going_on(look)
    live_one.summing_up()
    live_one.stopped(KeyboardInterrupt())
    assert page.read_text() == "the report"


def test_a_run_that_is_stopped_while_it_is_tracked_keeps_its_report(
    plan: BasePlan, page: Path, hanging: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def track(self: Run, document: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(HangingTracker, "track", track)
    with pytest.raises(KeyboardInterrupt):
        run_of(plan, page.parent).audit()
    assert 'id="verdict"' in page.read_text()


def test_a_page_stays_where_it_is_while_another_thread_has_the_working_folder_elsewhere(
    plan: BasePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here").mkdir()
    page = run_of(plan, Path("here")).live.page
    with working_folder_elsewhere():
        page.going_on(Look(0.0, {}, {}, {}, {}))
    assert (tmp_path / "here" / "report.html").is_file()
