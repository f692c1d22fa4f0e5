"""``orch tune``: what is asked of whom before a setting is chosen, how it is chosen, and what is said of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audits.errors import BadInput
from orchestrator.apollo.kind import KIND
from orchestrator.apollo.page.page import PAGE
from orchestrator.apollo.page.reading import read_apollo_run
from orchestrator.apollo.stages.searching import EVIDENCE
from orchestrator.cli.main import main
from orchestrator.engine.jobs.job import of_stage
from orchestrator.engine.run.choice import Choice, choice_entry, choice_of
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import claim_folder
from orchestrator.engine.run.selecting import Selecting
from orchestrator.engine.store.payloads import unpack_arrays
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named, load_plan, open_design
from tests.cases.runs import UnshownRun, draw_only
from tune_spaces.registry import Sweep, fixed
from tune_spaces.space import Search, Space

METRIC = "gradient_ascent.apollo.auc"
SETTINGS: dict[str, dict[str, Any]] = {
    "epsilon=0.5": {"audit.search.epsilon": 0.5},
    "epsilon=0.01": {"audit.search.epsilon": 0.01},
    "m=4": {"audit.search.shadows": 4},
}


def around(settings: dict[str, dict[str, Any]], **more: Any) -> Sweep:
    """Return a sweep of ``settings``."""
    return Sweep("some", "", "apollo-smoke", fixed(settings), "AUC", "", **more)


class Watched(UnshownRun, Selecting):
    """A run that notes which artefacts there are when the choice has been made and the targets come next."""

    def laid_out(self, changes):
        self.before = {stage.name: set(self.store.keys(stage.name)) for stage in KIND.stages}
        return super().laid_out(changes)


@dataclass
class Finished:
    """A finished run, its plan and its folder."""

    plan: Any
    out: Path
    run: Watched
    document: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Finished:
    place = tmp_path_factory.mktemp("tune")
    changes = (
        "split.targets=2",
        "split.targets_per_shadow_set=2",
        "split.train_size=120",
        "split.target_pool=240",
        "split.candidates={forget: 12, unseen: 12}",
        "recipe.epochs=1",
        "audit.fpr=[0.5]",
        "audit.search.steps=1",
        "audit.attacks=[apollo]",
        "compute.workers=0",
        f"compute.store={place / 'store'}",
    )
    plan, out = load_plan("apollo-smoke", changes), place / "out"
    run = Watched(KIND, plan, out, Terminal(claim_folder(out, plan)), name="tune-some", rebuild=False)
    document = run.select(choice_of(KIND, around(SETTINGS), plan, METRIC, "max")).to_json()
    return Finished(plan, out, run, document)


def test_no_target_is_trained_or_asked_before_the_setting_is_chosen(finished):
    design = open_design(finished.plan)
    targets = {design.trained(member).key for member in design.targets}
    shadows = {design.trained(member).key for member in design.partition.members if member.role == "shadow"}
    before = finished.run.before
    assert before["train"] == shadows and not before["train"] & targets
    assert len(before["unlearn"]) == len(shadows)
    assert len(before["appraise"]) == 3 * design.partition.split.shadow_sets
    assert not any(before[stage] for stage in ("search", "score", "utility"))
    assert targets <= set(finished.run.store.keys("train"))


def test_the_evidence_of_a_rehearsal_is_that_of_the_audit_but_for_what_targets_answered(finished):
    store, jobs = Store(finished.plan.compute.store), open_design(finished.plan).jobs()
    searches = [job for job in of_stage(jobs, "search") if job.label == "gradient_ascent" and job.kind == "apollo"]
    rehearsals = of_stage(KIND.selection.jobs(open_design(finished.plan), METRIC), "rehearse")
    assert len(searches) == len(rehearsals) == 1
    for search, rehearsal in zip(searches, rehearsals, strict=True):
        asked, alone = (unpack_arrays(store.get(job.stage, job.key).read(EVIDENCE)) for job in (search, rehearsal))
        assert asked["target"].any()
        for name in asked:
            if name != "target":
                np.testing.assert_array_equal(asked[name], alone[name])
        assert not set(search.document["targets"]) & set(rehearsal.needs)


def test_result_json_says_what_was_chosen_and_what_became_of_it(finished):
    found = finished.document["selection"]
    scores = {row["setting"]: row["score"] for row in found["settings"]}
    assert list(scores) == ["plan", *SETTINGS]
    assert scores["m=4"] is None and "4 shadows are too few" in found["settings"][-1]["refused"]
    known = {name: score for name, score in scores.items() if score is not None}
    assert found["winner"] == max(known, key=lambda name: known[name]) and found["own"] == "plan"
    for row in found["judged"]:
        assert row["at_selection"] == known[row["setting"]]
        areas = [each["auc"] for each in finished.document["table"] if each["setting"] == row["setting"]]
        assert row["on_targets"] == pytest.approx(areas[1])  # of identity, gradient ascent, retrain
    audited = [row["setting"] for row in finished.document["settings"]]
    assert audited == list(dict.fromkeys(["plan", found["winner"]]))


def test_the_chosen_setting_is_a_plan_to_run_again(finished):
    found = finished.document["selection"]
    changes = {"plan": {}, **SETTINGS}[found["winner"]]
    assert load_plan(str(finished.out / "tuned.yaml")) == finished.plan.changed(changes)


def test_the_page_begins_with_the_choice(finished, monkeypatch):
    draw_only(monkeypatch)
    page = PAGE.write(finished.out).read_text()
    assert page.index('<section id="selection">') < page.index('<section id="verdict">')
    found = read_apollo_run(finished.out).result
    again = f"orch tune apollo some plan.yaml --metric {METRIC} --out again"
    assert found.selection is not None and found.again() == again and again in page
    assert json.loads(json.dumps(found.document()["selection"])) == finished.document["selection"]
    lines = PAGE.closing_lines(finished.document)
    chosen = found.selection.winner if found.selection.gain else "the plan’s own setting (plan)"
    assert lines[0].startswith(f"Chosen: {chosen}, of 3 settings of some and the plan, by {METRIC}")
    assert "<b>Chosen</b>" in page  # the style sets the colon behind it
    assert "selection-settings" in PAGE.csv(finished.out)


def choice(mode: Any = "max") -> Choice:
    return Choice("some", METRIC, mode, "own", {"a": {}, "own": {}, "b": {}})


def test_the_best_mean_wins_and_the_plans_own_setting_wins_ties():
    values = {"a": [0.6, 0.7], "own": [0.7, 0.6], "b": [0.5, 0.6]}
    assert choice().winner(values) == "own"
    assert choice().winner({**values, "a": [0.6, 0.8]}) == "a"
    assert choice("min").winner(values) == "b"


def test_settings_of_which_nothing_is_known_are_left_out_but_not_the_plans_own():
    found = choice().without(["a"], "diverged")
    assert found.refused == {"a": "diverged"} and list(found.scored) == ["own", "b"]
    with pytest.raises(BadInput, match="the plan's own setting gets no score: diverged"):
        choice().without(["own"], "diverged")


def test_gains_are_paired_over_units_and_over_targets():
    values = {"a": [0.6, 0.7, 0.8], "own": [0.5, 0.7, 0.6], "b": [0.1, 0.1, 0.1]}
    areas = {"a": {0: 0.5, 1: 0.6}, "own": {0: 0.6, 1: 0.4}}
    found = choice_entry(choice(), KIND.selection, values, areas, 0.95)
    assert found["winner"] == "a" and found["units"] == 3 and found["targets"] == 2
    assert found["gain"]["at_selection"] == pytest.approx(0.1)
    assert found["gain"]["on_targets"] == pytest.approx(0.05)
    half = 12.706 * np.std([-0.1, 0.2], ddof=1) / np.sqrt(2)
    assert found["gain"]["on_targets_low"] == pytest.approx(0.05 - half, abs=1e-4)
    assert found["judged"][0]["on_targets_low"] == 0.0  # an interval of AUCs ends where they do
    assert [row["optimism"] for row in found["judged"]] == pytest.approx([0.7 - 0.55, 0.6 - 0.5])
    same = choice_entry(choice(), KIND.selection, {"own": [0.5, 0.6], "a": [0.5, 0.6]}, {"own": {0: 0.6}}, 0.95)
    assert same["gain"] is None and same["judged"][0]["on_targets_low"] is None


@pytest.mark.parametrize(
    ("settings", "metric", "said"),
    [
        (SETTINGS, "gradient_ascent.apolo.auc", r"did you mean 'gradient_ascent.apollo.auc'\?"),
        (SETTINGS, None, "no --metric is given; allowed: identity.apollo.auc"),
        (SETTINGS, "identity.apollo_offline.auc", "never saw a candidate"),
        (SETTINGS, "identity.boundary_distance.auc", "walked anew for every model"),
        ({"more": {"recipe.epochs": 5}}, METRIC, "setting more of some changes recipe.epochs, which no attack may"),
        ({"more": {"shadow_recipe": {"epochs": 5}}}, METRIC, "changes shadow_recipe"),
    ],
)
def test_what_cannot_be_chosen_by_or_among_is_refused_in_one_line(settings, metric, said):
    plan = load_plan("apollo-smoke", ["audit.attacks=[apollo, apollo_offline, boundary_distance]", "audit.queries=60"])
    with pytest.raises(BadInput, match=said) as refused:
        choice_of(KIND, around(settings), plan, metric, "max")
    text = str(refused.value)
    assert "\n" not in text
    allowed = text.partition("; allowed: ")[2]
    assert not {"apollo_offline", "boundary_distance"} & set(allowed.replace(".", " ").split())


def test_a_long_list_of_metrics_begins_with_those_most_like_a_misspelt_one():
    plan = load_plan("apollo-fashion14")
    with pytest.raises(BadInput) as refused:
        choice_of(KIND, around(SETTINGS), plan, "retrain.u_lirra.auc", "max")
    assert "; allowed: retrain.u_lira.auc, " in str(refused.value) and str(refused.value).endswith(", …")


def test_sweeps_that_compare_no_settings_and_plans_of_too_few_shadows_are_refused():
    plan = load_plan("apollo-smoke")
    for sweep in (around(SETTINGS, pooled=True), around(SETTINGS, measures="utility")):
        with pytest.raises(BadInput, match="nothing in it can be tuned"):
            choice_of(KIND, sweep, plan, METRIC, "max")
    searching = Search(Space(()), "optuna", 5)
    with pytest.raises(BadInput, match="by what targets answered while it goes on"):
        choice_of(KIND, replace(around(SETTINGS), search=searching), plan, METRIC, "max")
    with pytest.raises(BadInput, match="4 shadows are too few"):
        choice_of(KIND, around(SETTINGS), load_plan("apollo-smoke", ["split.shadows=4"]), METRIC, "max")


def test_a_setting_of_the_sweep_that_is_the_plan_is_its_own():
    plan = load_plan("apollo-smoke")
    found = choice_of(KIND, around({"a": {"audit.search.beta": 1.0}, "same": {}}), plan, METRIC, "max")
    assert found.own == "same" and list(found.settings) == ["a", "same"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--vary", "recipe.epochs=1,2", "--metric", METRIC], "changes recipe.epochs"),
        (["--vary", "audit.search.beta=1,2", "--metric", METRIC, "--metric", "x"], "a setting is chosen by one"),
        (["--vary", "audit.search.beta=1,2", "--metric", METRIC, "--mode", "best"], "allowed: max, min"),
    ],
)
def test_what_the_command_line_cannot_mean_is_one_line(words, said, capsys):
    assert main(["tune", "apollo", "apollo-smoke", *words]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and said in told


def test_kinds_without_players_are_refused_on_the_command_line(capsys):
    assert kind_named("gnq-target").selection is None
    assert main(["tune", "gnq-target", "apollo-ablation", "--metric", METRIC]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "audits of kind gnq-target cannot be tuned" in said
