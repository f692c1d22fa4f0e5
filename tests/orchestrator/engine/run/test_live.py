"""Tracking while a run goes on: what stands at the server meanwhile, and after each way in which a run can end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engine.kind import Selection
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run import live, live_tracking, standing, tracking_server
from orchestrator.engine.run.choice import choice_of
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import claim_folder
from orchestrator.engine.run.selecting import Selecting
from orchestrator.engine.run.standing import Standing
from orchestrator.engine.run.tracking import OpenRun, open_run
from orchestrator.engine.run.tracking_names import plan_hash
from orchestrator.engine.run.tracking_stopped import OPEN_FILE, Kept, Subject
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store
from orchestrator.kinds import KINDS, kind_named, load_plan
from tests.cases.runs import audited, draw_only, jobs_of, swept
from tests.cases.waiting import wait_for
from tests.orchestrator.toy.kind import KIND
from tune_spaces.registry import Sweep, fixed
from tune_spaces.space import Asha, Dimension, Search, Space

SETTINGS = {"base": {}, "short": {"recipe.epochs": 1}, "shorter": {"recipe.epochs": 2}}
SWEEP = Sweep("toy-sweep", "Fewer epochs.", "", fixed(SETTINGS), "loss.auc", "a table")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the toy kind, and look at what is done all the time."""
    monkeypatch.setitem(KINDS, "toy", "tests.orchestrator.toy.kind:KIND")
    draw_only(monkeypatch)
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.3)
    monkeypatch.setattr(live_tracking, "LOOK_SECONDS", 0.3)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database for all tests of this file: making one takes seconds."""
    return f"sqlite:///{tmp_path_factory.mktemp('tracked')}/mlflow.db"


@pytest.fixture
def plan(tmp_path: Path, database: str) -> BasePlan:
    return toy_plan(tmp_path, database, tmp_path.name)


def toy_plan(place: Path, uri: str, experiment: str) -> BasePlan:
    values = {"compute.workers": 0, "compute.store": str(place / "store")}
    tracked = {"tracking.uri": uri, "tracking.experiment": experiment}
    return load_plan(kind_named("toy").default_plan, values=values | tracked)


def runs_of(plan: BasePlan) -> list[Any]:
    """Return all runs of the plan's experiment, the first one first."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=plan.tracking.uri)
    found = client.get_experiment_by_name(plan.tracking.experiment)
    if found is None:
        return []
    return list(client.search_runs([found.experiment_id], order_by=["attributes.start_time ASC"]))


def parents(plan: BasePlan) -> list[Any]:
    return [run for run in runs_of(plan) if run.data.tags["orch.level"] == "parent"]


def children(plan: BasePlan) -> dict[str, Any]:
    found = [run for run in runs_of(plan) if run.data.tags["orch.level"] == "setting"]
    named = {run.info.run_name: run for run in found}
    assert len(named) == len(found), "one child a setting"
    return named


def finished_children(plan: BasePlan) -> dict[str, Any]:
    """Return the children of which all is logged."""
    return {name: run for name, run in children(plan).items() if run.info.status == "FINISHED"}


def test_a_sweep_shows_its_jobs_and_finished_settings_while_it_goes_on(
    plan: BasePlan, tmp_path: Path, at_job: Callable[..., None]
) -> None:
    seen: dict[str, Any] = {}

    def look() -> None:
        """Six jobs of stage score are done: those of two settings of three."""
        seen["children"] = wait_for(lambda: len(found := finished_children(plan)) == 2 and found)
        seen["parent"] = wait_for(
            lambda: [run for run in parents(plan) if run.data.metrics.get("jobs.score.done") == 6]
        )[0]

    at_job(7, look)
    result = swept(SWEEP, plan, tmp_path / "out", shown=True)
    parent, early = seen["parent"], seen["children"]
    assert parent.info.status == "RUNNING" and parent.info.run_name == "toy-sweep"
    assert parent.data.params["split.train_size"] == "40" and parent.data.tags["orch.kind"] == "toy"
    assert (parent.data.metrics["jobs.train.done"], parent.data.metrics["jobs.train.needed"]) == (9, 9)
    for name, run in early.items():
        auc = {f"{row['attack']}.auc": row["auc"] for row in result.document["table"] if row["setting"] == name}
        assert auc.items() <= run.data.metrics.items() and run.data.params["setting"] == name
    (whole,) = parents(plan)
    assert whole.info.run_id == parent.info.run_id and whole.info.status == "FINISHED"
    assert whole.data.metrics["jobs.score.done"] == 9 and whole.data.metrics["seconds"] > 0
    after = children(plan)
    assert set(after) == set(SETTINGS) and {run.info.status for run in after.values()} == {"FINISHED"}
    assert {name: run.info.run_id for name, run in after.items()} == result.document["tracking"]["children"]
    assert all(after[name].info.run_id == run.info.run_id for name, run in early.items())
    assert not (tmp_path / "out" / OPEN_FILE).exists()


@pytest.mark.long
def test_trials_of_a_search_are_nested_runs_with_plain_numbers_while_it_goes_on(
    plan: BasePlan, tmp_path: Path, at_job: Callable[..., None]
) -> None:
    """In short: the settings of a sweep, above, and those of a choice, below."""
    space = Space((Dimension("recipe.learning_rate", "loguniform", (0.0005, 0.05)),))
    search = Search(space, "random", 4, Asha(1, 2), ("loss.auc",), ("max",))
    seen: dict[str, Any] = {}

    def look() -> None:
        """The first trial is done, the second has judged nothing yet."""
        seen["children"] = wait_for(lambda: len(found := finished_children(plan)) == 1 and found)
        seen["parent"] = wait_for(
            lambda: [run for run in parents(plan) if run.data.metrics.get("jobs.trials.done") == 1]
        )[0]

    at_job(4, look)
    sweep = Sweep("toy-search", "Rates.", "", fixed({}), "loss.auc", "a table", search=search)
    result = swept(sweep, plan, tmp_path / "out", shown=True)
    trials = {row["setting"]: row for row in result.document["search"]["trials"]}
    assert (seen["parent"].info.status, seen["parent"].data.metrics["jobs.trials.needed"]) == ("RUNNING", 4)
    assert seen["children"].keys() == {next(iter(trials))}
    after = children(plan)
    assert after.keys() == trials.keys() and {run.info.status for run in after.values()} == {"FINISHED"}
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=plan.tracking.uri)
    for name, run in {**after, **seen["children"]}.items():
        row = trials[name]
        assert float(run.data.params["recipe.learning_rate"]) == row["changes"]["recipe.learning_rate"]
        assert (run.data.params["trial"], run.data.tags["orch.state"]) == (str(row["number"]), row["state"])
        history = [(entry.step, entry.value) for entry in client.get_metric_history(run.info.run_id, "value")]
        assert history == [(rung["parts"], rung["values"][0]) for rung in row["rungs"]]
        assert run.data.metrics["value"] == row["values"][0]
        assert ("loss.auc" in after[name].data.metrics) == (row["state"] == "done")
    assert {row["state"] for row in trials.values()} == {"done", "stopped"}
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "The best of 4 trials" in page and all(escape(name) in page for name in trials)


def test_settings_of_a_choice_are_nested_runs_with_their_scores_while_it_goes_on(
    plan: BasePlan, tmp_path: Path, at_job: Callable[..., None]
) -> None:
    """Target 0 plays the others' part: a toy, but scores at selection are other numbers than those on the targets."""

    def rehearsal(design: Any, metric: str) -> list[Any]:
        return [job for job in design.jobs() if job.unit == 0]

    def scores(setting: Setting, store: Store, metric: str) -> dict[int, float]:
        return {0: KIND.comparison(setting, store)[metric]}

    selection = Selection(
        metrics=lambda plan: ("loss.auc",),
        refusal=lambda plan, metric: "",
        unscored=lambda plan, metric: "too long" * (plan.recipe.epochs > 8),
        fields=("recipe",),
        defended=("recipe",),
        jobs=rehearsal,
        values=scores,
        on_targets=lambda setting, scores, metric: {0: 0.5, 1: 0.5},
        unit="model",
        players="target 0",
        apart="it is one of the targets",
    )
    kind, out = replace(KIND, selection=selection), tmp_path / "out"
    seen: dict[str, Any] = {}

    def look() -> None:
        """All settings have been rehearsed; a target that took no part is trained."""
        seen["children"] = wait_for(lambda: len(found := finished_children(plan)) == 3 and found)
        seen["parent"] = parents(plan)[0]

    at_job(4, look)
    sweep = Sweep("epochs", "", "toy", fixed({**SETTINGS, "longer": {"recipe.epochs": 9}}), "loss.auc", "")
    choice = choice_of(kind, sweep, plan, "loss.auc", "min")
    run = Selecting(kind, plan, out, Terminal(claim_folder(out, plan)), name="tune-epochs", rebuild=False)
    found = run.select(choice).to_json()["selection"]
    at_selection = {row["setting"]: row["score"] for row in found["settings"]}
    assert seen["parent"].info.status == "RUNNING" and seen["parent"].info.run_name == "tune-epochs"
    for name, early in seen["children"].items():
        assert early.data.metrics == {"value": at_selection[name]} and early.data.tags["orch.state"] == "done"
    (whole,), after = parents(plan), children(plan)
    assert whole.info.run_id == seen["parent"].info.run_id and whole.info.status == "FINISHED"
    assert after.keys() == {*SETTINGS, "longer"} and {each.info.status for each in after.values()} == {"FINISHED"}
    assert {name: each.data.params["recipe.epochs"] for name, each in after.items()} == {
        "base": "8", "short": "1", "shorter": "2", "longer": "9",
    }  # fmt: skip
    assert (after["longer"].data.metrics, after["longer"].data.tags["orch.state"]) == ({}, "refused")
    audited = {found["winner"], "base"}
    assert len(audited) == 2
    assert {name for name, each in after.items() if "loss.auc" in each.data.metrics} == audited
    assert {name: each.data.metrics.get("value") for name, each in after.items()} == at_selection
    assert all(after[name].info.run_id == early.info.run_id for name, early in seen["children"].items())


@pytest.mark.long
@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(KeyboardInterrupt, "KILLED", marks=pytest.mark.long),  # in short: the search that is stopped
        (ZeroDivisionError, "FAILED"),
    ],
)
def test_a_run_that_breaks_off_says_so_and_goes_on_as_the_same_run(
    plan: BasePlan, tmp_path: Path, at_job: Callable[..., None], error: type[BaseException], status: str
) -> None:
    """It goes on with another value of what decides no score, which MLflow would not take for the same parameter.

    In short: ``test_only_the_same_run_goes_on_in_a_stopped_parent``.
    """
    seen: dict[str, Any] = {}

    def break_off() -> None:
        wait_for(lambda: finished_children(plan))
        raise error

    def look() -> None:
        seen["parent"] = wait_for(lambda: [run for run in parents(plan) if run.info.status == "RUNNING"])[0]

    at_job(5, break_off)
    with pytest.raises(error):
        swept(SWEEP, plan, tmp_path / "out", shown=True)
    (parent,), before = parents(plan), children(plan)
    assert parent.info.status == status and {each.info.status for each in before.values()} == {"FINISHED"}
    at_job(2, look)
    result = swept(SWEEP, plan.changed({"compute.checkpoint_minutes": 7}), tmp_path / "out", shown=True).document
    assert "tracking" in result and not [text for text in result["warnings"] if text.startswith("not tracked")]
    (whole,), after = parents(plan), children(plan)
    assert whole.info.run_id == parent.info.run_id == seen["parent"].info.run_id and whole.info.status == "FINISHED"
    assert after.keys() == SETTINGS.keys() and {run.info.status for run in after.values()} == {"FINISHED"}
    assert all(after[name].info.run_id == run.info.run_id for name, run in before.items())
    assert not (tmp_path / "out" / OPEN_FILE).exists()
    audited(plan, tmp_path / "other", shown=True)
    assert len(parents(plan)) == 2


@pytest.mark.long
def test_a_search_that_is_stopped_goes_on_with_its_trials_and_doubles_none(
    plan: BasePlan, tmp_path: Path, at_job: Callable[..., None]
) -> None:
    """In short: the sweep above that breaks off, and ``test_searching.py`` of what the search itself does."""
    from mlflow import MlflowClient

    space = Space((Dimension("recipe.learning_rate", "loguniform", (0.0005, 0.05)),))
    search = Search(space, "optuna", 3, Asha(1, 2), ("loss.auc",), ("min",))
    sweep = Sweep("toy-search", "Rates.", "", fixed({}), "loss.auc", "a table", search=search)
    client, out = MlflowClient(tracking_uri=plan.tracking.uri), tmp_path / "out"

    def history(run: Any) -> list[tuple[int, float]]:
        return [(entry.step, entry.value) for entry in client.get_metric_history(run.info.run_id, "value")]

    def stop() -> None:
        """One trial is done, and one has judged a part and goes on."""
        wait_for(lambda: len(found := children(plan)) == 2 and all(run.data.metrics for run in found.values()))
        raise KeyboardInterrupt

    at_job(5, stop)
    with pytest.raises(KeyboardInterrupt):
        swept(sweep, plan, out, shown=True)
    (parent,), before = parents(plan), children(plan)
    assert parent.info.status == "KILLED"
    told = {int(run.data.params["trial"]): (run.info.status, run.data.tags["orch.state"]) for run in before.values()}
    assert told == {0: ("FINISHED", "done"), 1: ("KILLED", "interrupted")}
    trials = {row["setting"]: row for row in swept(sweep, plan, out, shown=True).document["search"]["trials"]}
    (whole,), after = parents(plan), children(plan)
    assert (whole.info.run_id, whole.info.status) == (parent.info.run_id, "FINISHED")
    assert after.keys() == trials.keys() and len(after) == 3
    assert {run.info.status for run in after.values()} == {"FINISHED"}
    assert all(after[name].info.run_id == run.info.run_id for name, run in before.items())
    for name, run in after.items():
        assert run.data.tags["orch.state"] == trials[name]["state"]
        assert history(run) == [(rung["parts"], rung["values"][0]) for rung in trials[name]["rungs"]]


@pytest.mark.long
def test_a_search_that_begins_anew_is_another_run(plan: BasePlan, tmp_path: Path, at_job: Callable[..., None]) -> None:
    """Its trials may have the names of those before: what stands under them was found by other code."""
    space = Space((Dimension("recipe.learning_rate", "loguniform", (0.0005, 0.05)),))
    search = Search(space, "optuna", 2, None, ("loss.auc",), ("max",))
    sweep = Sweep("toy-search", "Rates.", "", fixed({}), "loss.auc", "a table", search=search)

    def stop() -> None:
        wait_for(lambda: children(plan))
        raise KeyboardInterrupt

    at_job(2, stop)
    with pytest.raises(KeyboardInterrupt):
        swept(sweep, plan, tmp_path / "out", shown=True)
    (tmp_path / "out" / "search.jsonl").unlink()
    swept(sweep, plan, tmp_path / "out", shown=True)
    assert [run.info.status for run in parents(plan)] == ["KILLED", "FINISHED"]
    found = [run for run in runs_of(plan) if run.data.tags["orch.level"] == "setting"]
    states = [(run.info.status, run.data.tags["orch.state"]) for run in found]
    assert states == [("KILLED", "interrupted"), *[("FINISHED", "done")] * 2]


KILLED_WHILE_OPEN = """
import os, signal, sys
from pathlib import Path
import pytest
from orchestrator.engine.run import live
from orchestrator.kinds import KINDS
from tests.cases.runs import swept
from tests.orchestrator.engine.run import test_live as here
KINDS["toy"] = "tests.orchestrator.toy.kind:KIND"
live.LOOK_SECONDS = 0.1
place, uri, experiment = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
plan, real, count = here.toy_plan(place, uri, experiment), here.Store.put, [0]
def put(self, stage, *arguments, **named):
    count[0] += stage == "score"
    if count[0] == 5:
        here.wait_for(lambda: here.finished_children(plan))
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, stage, *arguments, **named)
here.Store.put = put
swept(here.SWEEP, plan, place / "out", shown=True)
"""


@pytest.mark.long
def test_the_run_after_one_that_just_vanished_goes_on_with_its_parent_and_children(
    plan: BasePlan, tmp_path: Path, at_job: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In short: ``test_only_the_same_run_goes_on_in_a_stopped_parent``."""

    def vanish() -> None:
        wait_for(lambda: finished_children(plan))
        raise KeyboardInterrupt

    at_job(5, vanish)
    with monkeypatch.context() as patch:
        patch.setattr(live.LiveTracking, "stop", lambda self, error=None: self.over.set())  # nothing more is said
        with pytest.raises(KeyboardInterrupt):
            swept(SWEEP, plan, tmp_path / "out", shown=True)
    goes_on(plan, tmp_path)


@pytest.mark.long
def test_the_run_after_a_killed_one_goes_on_with_its_parent_and_children(plan: BasePlan, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_WHILE_OPEN, str(tmp_path), plan.tracking.uri or "", tmp_path.name]
    assert subprocess.run(command, env=dict(os.environ), check=False).returncode == -signal.SIGKILL
    goes_on(plan, tmp_path)


def goes_on(plan: BasePlan, tmp_path: Path) -> None:
    """Carry out the sweep again and look whether the parent and the child that were left are the ones in use."""
    (parent,) = parents(plan)
    before = children(plan)
    assert parent.info.status == "RUNNING" and len(before) == 1
    swept(SWEEP, plan, tmp_path / "out", shown=True)
    (after,) = parents(plan)
    assert (after.info.run_id, after.info.status) == (parent.info.run_id, "FINISHED")
    (name,) = before
    assert children(plan)[name].info.run_id == before[name].info.run_id and len(children(plan)) == len(SETTINGS)


def test_a_parent_that_another_plan_left_open_is_killed(plan: BasePlan, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    first = opened(plan, tmp_path)
    first.fill_child("base", {}, {"loss.auc": 0.5})
    other = plan.changed({"seed": 5})
    second = opened(other, tmp_path)
    assert second.parent != first.parent
    assert {run.info.run_id: run.info.status for run in parents(plan)} == {
        first.parent: "KILLED", second.parent: "RUNNING",
    }  # fmt: skip
    assert children(plan)["base"].info.status == "KILLED"
    assert second.tags["orch.plan_hash"] == plan_hash(other.resolved())
    assert opened(other, tmp_path).parent == second.parent


def opened(plan: BasePlan, place: Path, settings: Any = SETTINGS, **keeps: bool) -> OpenRun:
    """Return the parent of an audit of ``plan`` in the folder ``out``, found or made as by a process that begins."""
    subject = Subject("toy", "toy-audit", plan.resolved(), plan.plan_hash, settings, Kept(**keeps))
    return open_run(subject, place / "out", plan.tracking.uri or "", plan.tracking.experiment)


@pytest.mark.parametrize(
    "status", [*(pytest.param(status, marks=pytest.mark.long) for status in ("KILLED", "FAILED")), "RUNNING"]
)
def test_only_the_same_run_goes_on_in_a_stopped_parent(plan: BasePlan, tmp_path: Path, status: str) -> None:
    """Not one that keeps aggregates only: the parent may have scores. Nor one to whose settings a child is strange."""
    tmp_path.joinpath("out").mkdir()
    more = {**SETTINGS, "longer": {"recipe.epochs": 9}}
    first = opened(plan, tmp_path)
    first.log_child("short", SETTINGS["short"], {"loss.auc": 0.5})
    if status != "RUNNING":
        first.end(status)
    again = opened(plan, tmp_path, more)
    assert (again.parent, again.children) == (first.parent, first.children)
    assert {run.info.run_id: run.info.status for run in parents(plan)} == {first.parent: "RUNNING"}
    again.end("KILLED")
    others: list[tuple[Any, dict[str, bool]]] = [
        (SETTINGS, {"aggregate_only": True, "pictures": False}),
        (SETTINGS, {"pictures": False}),
        ({"base": {}}, {}),
        ({**SETTINGS, "short": {"recipe.epochs": 3}}, {}),
    ]
    token = (tmp_path / "out" / OPEN_FILE).read_text()
    for settings, keeps in others:
        (tmp_path / "out" / OPEN_FILE).write_text(token)
        other = opened(plan, tmp_path, settings, **keeps)
        assert other.parent != first.parent and not other.children
        other.end("KILLED")
    assert {run.info.status for run in parents(plan)} == {"KILLED"} and len(parents(plan)) == 5


def test_what_a_run_left_running_ends_as_it_does(plan: BasePlan, tmp_path: Path) -> None:
    tmp_path.joinpath("out").mkdir()
    run = opened(plan, tmp_path)
    for name in ("done", "begun"):
        run.fill_child(name, {}, {"loss.auc": 0.5})
    run.end_child(run.children["done"], "FINISHED")
    run.end("KILLED")
    assert {name: each.info.status for name, each in children(plan).items()} == {"done": "FINISHED", "begun": "KILLED"}


def test_a_number_that_is_void_at_the_end_does_not_stay(plan: BasePlan, tmp_path: Path) -> None:
    tmp_path.joinpath("out").mkdir()
    run = opened(plan, tmp_path)
    run.log_child("base", {}, {"loss.auc": 0.5, "right.auc": 0.75})
    run.log_child("base", {}, {"loss.auc": 0.25})
    metrics = children(plan)["base"].data.metrics
    assert metrics["loss.auc"] == 0.25 and metrics["right.auc"] != metrics["right.auc"]


def test_a_server_that_accepts_and_never_answers_costs_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking_server, "ANSWER_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # the kernel accepts, nobody answers
        plan = toy_plan(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}", "orch")
        document = audited(plan, tmp_path / "out", shown=True).document
    (line,) = [text for text in document["warnings"] if text.startswith("not tracked: ")]
    assert "the server does not answer" in line and "\n" not in line
    assert "tracking" not in document and len(document["table"]) == 2
    page = tmp_path / "out" / "report.html"
    told = page.read_text()
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == document and escape(line) in told
    kind_named("toy").open_page().write(tmp_path / "out", None)
    assert page.read_text() == told, "orch report says so too"
    assert "TrackingFailed" in (tmp_path / "out" / "orch.log").read_text()


def test_a_warm_run_opens_no_parent_before_its_end(
    plan: BasePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited(plan, tmp_path / "out")

    def refuse(*_: Any) -> None:
        raise AssertionError("tracked while nothing goes on")

    monkeypatch.setattr(live.Live, "begin", refuse)
    audited(plan, tmp_path / "out", shown=True)
    assert [run.info.status for run in parents(plan)] == ["FINISHED"]


def test_standing_counts_what_the_store_has_whatever_the_order(plan: BasePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing, "LOOK_AHEAD", 2)
    store = Store(plan.compute.store or "")
    first, second = (
        Setting(name, {}, changed, jobs_of(changed, store=store))
        for name, changed in (("a", plan), ("b", plan.changed({"audit.attacks": ["right"]})))
    )
    told = Standing(store, [first, second], [first.jobs, second.jobs])
    assert told.look() == []
    assert told.seen({}).metrics() == {
        "jobs.train.needed": 3, "jobs.train.done": 0, "jobs.score.needed": 6, "jobs.score.done": 0,
    }  # fmt: skip
    trained = first.of("train")
    for job in (*reversed(trained), *first.of("score")):
        store.put(job.stage, job.key, job.document, {"made.json": b"{}"})
    assert told.look() == [first] and told.look() == []
    seen = told.seen({})
    assert (seen.done, seen.settings) == ({"train": 3, "score": 3}, {"a": (6, 6), "b": (3, 6)})
    assert seen.metrics(over=True)["jobs.score.done"] == 6
