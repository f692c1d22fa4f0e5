"""``orch tune`` of kinds that rehearse on points of their own: who trains on what, and what is asked when."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from actors.jobs import Workers
from orchestrator.cli.main import main
from orchestrator.engine.cost.estimate import estimate
from orchestrator.engine.run.choice import selection_of
from orchestrator.engine.run.selecting import NOTHING, Selecting, lacking
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named, load_plan, open_design
from orchestrator.tmia.result.document import details
from tests.cases.runs import draw_only, take_turns
from tests.orchestrator.engine.run.test_live import children
from tests.orchestrator.engine.run.tuned import METRIC, SETTINGS, begun, made, rehearsal_of, small_choice, tuning

KINDS = tuple(METRIC)


def used(design: Any) -> set[int]:
    """Return the points that a design trains on, asks about or reads."""
    if design.plan.kind != "tmia":
        return {*design.drawn.pools.ravel().tolist(), *design.drawn.test.tolist()}
    models = [point for each in design.models.values() for ids in (each.train, each.test) for point in ids.tolist()]
    parts = (design.sets.candidates, design.samples, design.fit_points)
    return {*models, *(point for ids in parts for point in ids.tolist())}


def asked_about(design: Any) -> set[int]:
    """Return the points that the attacker of an audit has not: candidates and what else targets train on."""
    if design.plan.kind != "tmia":
        return used(design)
    return {*design.sets.candidates.tolist(), *design.sets.filler.tolist()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_rehearsal_shares_no_point_with_those_that_the_audit_asks_about(kind: str, tmp_path: Path) -> None:
    plan, choice = small_choice(kind, tmp_path)
    audit = asked_about(open_design(plan))
    for changes in choice.settings.values():
        rehearsal = used(rehearsal_of(plan.changed(changes), choice.metric))
        assert rehearsal and not rehearsal & audit


@pytest.mark.parametrize("kind", KINDS)
def test_all_settings_are_rehearsed_on_the_same_targets(kind: str, tmp_path: Path) -> None:
    """Targets of GNQ are watched by each setting in its own way, which changes no bit of them."""
    plan, choice = small_choice(kind, tmp_path)
    players = []
    for changes in choice.settings.values():
        design = rehearsal_of(plan.changed(changes), choice.metric)
        targets = [model for model in design.models.values() if model.group == "target"]
        jobs = [design.train_job(model) for model in targets]
        players.append([job.document["points"] if kind == "gnq" else job.key for job in jobs])
    assert players[0] and all(each == players[0] for each in players)
    audit = open_design(plan)
    real = {audit.train_job(model).key for model in audit.models.values() if model.group == "target"}
    assert not real & set(players[0])


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_no_target_is_trained_before_the_setting_is_chosen_and_the_result_says_what_became_of_it(
    kind: str, tmp_path: Path
) -> None:
    """In short: the tests above, and ``test_live.py`` of a whole choice of the toy kind."""
    plan, choice = small_choice(kind, tmp_path / "store")
    run = tuning(plan, tmp_path / "out")
    document = run.select(choice).to_json()
    designs = [rehearsal_of(plan.changed(changes), choice.metric) for changes in choice.settings.values()]
    wanted = {(job.stage, job.key) for design in designs for job in selection_of(run.kind).jobs(design, choice.metric)}
    assert run.before.keys() == wanted
    assert not {job.key for job in open_design(plan).jobs()} & {key for _, key in wanted}

    found = document["selection"]
    scores = {row["setting"]: row["score"] for row in found["settings"]}
    assert list(scores) == ["plan", *SETTINGS[kind]] and None not in scores.values()
    assert found["winner"] == max(scores, key=lambda name: scores[name])
    assert load_plan(str(tmp_path / "out" / "tuned.yaml")) == plan.changed(choice.settings[found["winner"]])
    for row in found["judged"]:
        assert row["at_selection"] == scores[row["setting"]]
        assert row["on_targets"] == pytest.approx(quoted(plan, choice.settings[row["setting"]], row["setting"]))
    assert json.loads((tmp_path / "out" / "result.json").read_text())["selection"] == found

    kept = made(run.store)
    again = tuning(plan, tmp_path / "again").select(choice).to_json()["selection"]
    assert again == found and made(run.store) == kept


def quoted(plan: Any, changes: Any, name: str) -> float:
    """Return the number of an audited setting as the audit itself tells it."""
    kind, changed = kind_named(plan.kind), plan.changed(changes)
    store = Store(str(plan.compute.store))
    setting = Setting(name, changes, changed, tuple(open_design(changed, store).jobs()))
    if plan.kind == "tmia":
        selection = next((each for each in changed.audit.selectors if each != "none"), "none")
        place = (selection, "tmia_distance")
        cells = details(setting, store)["cells"]
        return float(next(cell["auc"] for cell in cells if (cell["selection"], cell["attack"]) == place))
    arm = list(changed.arms)[1] if plan.kind == "gnq" else ""
    return kind.comparison(setting, store)[METRIC[plan.kind].replace("defended", arm)]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_tune_goes_on_where_it_was_and_says_the_same_with_two_workers(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In short: ``test_live_page.py`` and ``toy/test_toy.py``, of an audit that is stopped, and of two workers."""
    plan, choice = small_choice(kind, tmp_path / "store")
    perform, done = WorkerContext.perform, Counter[str]()

    def killed(self: Any, job: Any) -> None:
        if sum(done.values()) == 9:
            raise KeyboardInterrupt
        done[job.stage] += 1
        perform(self, job)

    with monkeypatch.context() as patch:
        patch.setattr(WorkerContext, "perform", killed)
        with pytest.raises(KeyboardInterrupt):
            tuning(plan, tmp_path / "out").select(choice)
    before = made(Store(str(tmp_path / "store")))
    assert len(before) == 9
    run = tuning(plan, tmp_path / "out")
    found = run.select(choice).to_json()["selection"]
    after = made(run.store)
    assert {name: after[name] for name in before} == before

    take_turns(monkeypatch)
    other, choice = small_choice(kind, tmp_path / "other", **{"compute.workers": 2})
    assert tuning(other, tmp_path / "two").select(choice).to_json()["selection"] == found
    assert made(Store(str(tmp_path / "other"))).keys() == after.keys()
    tables = [(tmp_path / name / "scores.parquet").read_bytes() for name in ("out", "two")]
    assert tables[0] == tables[1]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_the_page_begins_with_the_choice_and_settings_are_nested_runs(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In short: ``test_live.py`` of the toy kind, and ``tests/orchestrator/report/test_selection.py``."""
    draw_only(monkeypatch)
    first, noted = Selecting.do_first, []

    def do_first(self: Selecting, designs: Any) -> None:
        noted.append(self.rehearsing)
        first(self, designs)

    monkeypatch.setattr(Selecting, "do_first", do_first)
    uri = f"sqlite:///{tmp_path}/runs.db"
    plan, choice = small_choice(kind, tmp_path / "store", **{"tracking.uri": uri})
    out = tmp_path / "out"
    document = begun(Selecting, plan, out).select(choice).to_json()
    found, page = document["selection"], kind_named(kind).open_page()

    assert noted == [False, False]  # a ranking that comes first is shown as one
    text = (out / "report.html").read_text()
    assert text.index('<section id="selection">') < text.index('<section id="verdict">')
    assert text.index('href="#selection"') < text.index('href="#verdict"')
    metric = METRIC[kind]
    assert f"orch tune {kind} some plan.yaml --metric {metric} --out again" in text
    (said, *_), tables = page.closing_lines(document), page.csv(out)
    players = selection_of(kind_named(kind)).players
    assert said.startswith("Chosen: ") and f"by {metric} of {players}" in said
    assert list(tables)[:2] == ["selection", "selection-settings"]
    assert page.html_tables(document)[-1].startswith("<h4>Setting chosen without asking a target")
    for name in choice.settings:
        assert name in tables["selection-settings"]

    after = children(plan)
    assert {name: each.data.metrics["value"] for name, each in after.items()} == {
        row["setting"]: row["score"] for row in found["settings"]
    }
    assert {each.data.tags["orch.state"] for each in after.values()} == {"done"}
    audited = {name for name, each in after.items() if len(each.data.metrics) > 1}
    assert audited == {found["winner"], found["own"]}


@pytest.mark.long
def test_with_mode_min_the_defence_that_leaves_least_is_chosen_and_the_same_command_again_adds_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In short: ``test_live.py``, of the toy kind."""
    from mlflow import MlflowClient

    draw_only(monkeypatch)
    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/runs.db"
    plan, _ = small_choice("gnq", tmp_path / "store", **{"tracking.uri": uri, "compute.workers": 0})
    (tmp_path / "small.yaml").write_text(plan.to_yaml())
    words = [*("tune", "gnq", "--vary", "defences.0.share=0.1,0.2,0.5", "small.yaml")]
    words += ["--metric", METRIC["gnq"], "--mode", "min", "--out", "tuned"]
    assert main(words) == 0
    found = json.loads((tmp_path / "tuned" / "result.json").read_text())["selection"]
    scores = {row["setting"]: row["score"] for row in found["settings"]}
    assert list(scores) == ["share=0.1", "share=0.2", "share=0.5"] and found["own"] == "share=0.2"
    assert len(set(scores.values())) == 3 and found["mode"] == "min"
    assert found["winner"] == min(scores, key=lambda name: scores[name])
    assert load_plan(str(tmp_path / "tuned" / "tuned.yaml")) == plan.changed(
        {"defences.0.share": float(found["winner"].removeprefix("share="))}
    )
    assert [row["setting"] for row in found["judged"]] == list(dict.fromkeys([found["winner"], found["own"]]))
    if found["gain"] is not None:  # lower is what was wanted
        assert found["gain"]["at_selection"] < 0

    client = MlflowClient(tracking_uri=uri)
    (experiment,) = client.search_experiments(filter_string="name = 'orch'")
    before = {run.info.run_id for run in client.search_runs([experiment.experiment_id])}
    assert main(words) == 0
    assert {run.info.run_id for run in client.search_runs([experiment.experiment_id])} == before


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.parametrize("kind", KINDS)
def test_a_choice_does_not_depend_on_the_number_of_workers(cluster: Workers, tmp_path: Path, kind: str) -> None:
    found = []
    for workers in (0, 2):
        plan, choice = small_choice(kind, tmp_path / str(workers), **{"compute.workers": workers})
        found.append(tuning(plan, tmp_path / f"out-{workers}").select(choice).to_json()["selection"])
    assert found[0] == found[1]
    tables = [(tmp_path / f"out-{workers}" / "scores.parquet").read_bytes() for workers in (0, 2)]
    assert tables[0] == tables[1]


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind != "mia")) for kind in KINDS])
def test_the_price_of_a_tune_is_that_of_the_rehearsals_and_of_two_audits(kind: str, tmp_path: Path) -> None:
    plan, choice = small_choice(kind, tmp_path / "store")
    cost = estimate(kind_named(kind), plan, images_per_second=1000.0, rehearsal=choice.rehearsal(kind_named(kind)))
    jobs: dict[str, set[str]] = {}
    for changes in choice.settings.values():
        for job in choice.rehearsal(kind_named(kind)).jobs(rehearsal_of(plan.changed(changes), choice.metric)):
            jobs.setdefault(job.stage, set()).add(job.key)
    for name in cost.audited:
        for job in open_design(plan.changed(choice.settings[name])).jobs():
            jobs.setdefault(job.stage, set()).add(job.key)
    assert cost.settings == len(choice.settings) and cost.audited[0] == choice.own and len(cost.audited) == 2
    assert {stage.stage: stage.needed for stage in cost.stages} == {stage: len(keys) for stage, keys in jobs.items()}


@pytest.mark.parametrize(
    ("kind", "metric"),
    [("mia", "loss.auc"), pytest.param("gnq", "none.loss.none.auc", marks=pytest.mark.long)],
)
def test_values_of_a_rehearsal_are_means_of_units_and_not_of_targets_in_them(
    kind: str, metric: str, tmp_path: Path
) -> None:
    """Twins of a pool hang on one draw, so that an interval takes them together."""
    plan, _ = small_choice(kind, tmp_path)
    selection, store = selection_of(kind_named(kind)), Store(str(plan.compute.store))
    design = open_design(plan, store)
    context = WorkerContext(kind_named(kind), design, store)
    jobs = [job for job in design.jobs() if job.stage != "score" or job.label in ("", "none")]
    for job in jobs:
        context.perform(job)
    setting = Setting("plan", {}, plan, tuple(jobs))
    found = selection.values(setting, store, metric)
    values = list(found.values())
    assert list(found) == list(range(plan.split.pools)) and len(set(values)) == len(values)
    wanted = kind_named(kind).comparison(setting, store)[metric]
    np.testing.assert_allclose(fmean(values), wanted)


def test_settings_are_compared_over_the_units_of_the_plans_own_and_left_out_where_they_lack_one() -> None:
    """Pool 0 is the easy one: without it the same values would look worse by a mean over what is left."""
    own = {0: 0.9, 1: 0.6, 2: 0.5}
    found = {"plan": own, "equal": dict(own), "partly": {1: 0.6, 2: 0.5}, "nowhere": {}, "more": {**own, 3: 0.1}}
    assert lacking(found, "plan", "pool") == {"partly": f"{NOTHING} in 1 of 3 pools", "nowhere": NOTHING}
    assert lacking({"plan": {}, "other": own}, "plan", "pool") == {"plan": NOTHING}
