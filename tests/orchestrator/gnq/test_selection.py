"""``orch tune gnq``: by what is chosen, and what a rehearsal of one arm takes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from audits.errors import BadInput
from orchestrator.engine.run.choice import Choice, Mode, choice_of, selection_of
from orchestrator.engine.setting import Setting
from orchestrator.gnq.selection import SELECTION, Place, places
from orchestrator.kinds import kind_named, load_plan
from tests.orchestrator.engine.run.tuned import rehearsal_of
from tune_spaces.registry import Settings, Sweep, fixed


@cache
def plan_once() -> Any:
    return load_plan("gnq-smoke", values={"compute.workers": 0})


NAKED = {"defences": []}


def test_arms_with_points_in_their_names_and_the_first_defence_can_be_chosen_by():
    found = places(plan_once())
    assert found["gnq_log-0.2.lira.adaptive.auc"] == Place("gnq_log-0.2", "lira", "adaptive")
    assert found["defended.lira.adaptive.auc"] == Place("gnq_log-0.2", "lira", "adaptive")
    assert found["none.loss.none.auc"] == Place("none", "loss", "none")
    assert "none.lira.adaptive.auc" not in found and not any(
        "defended" in name for name in places(plan_once().changed(NAKED))
    )


def test_a_setting_without_the_arm_gets_no_score():
    assert SELECTION.unscored(plan_once(), "random-0.2.loss.none.auc") == ""
    said = SELECTION.unscored(plan_once().changed(NAKED), "defended.loss.none.auc")
    assert said == "it has no defended.loss.none.auc; its arms: none"


def test_other_arms_and_what_is_inverted_take_no_part_in_a_rehearsal(tmp_path: Path):
    plan = plan_once().changed({"compute.store": str(tmp_path), "audit.inversion": {}})
    for metric, arm in (("none.lira.naive.auc", "none"), ("defended.lira.adaptive.auc", "gnq_log-0.2")):
        jobs = SELECTION.jobs(rehearsal_of(plan, metric), metric)
        assert {job.label for job in jobs if job.stage == "score"} == {arm}
        assert {job.label for job in jobs if job.stage == "defend"} == {arm} - {"none"}
        assert "invert" not in {job.stage for job in jobs}
        keys = [job.key for job in jobs]
        assert all(need in keys[: keys.index(job.key)] for job in jobs for need in job.needs)


def test_nothing_is_said_of_an_arm_whose_models_diverged_or_whose_attack_failed():
    setting = Setting("a", {}, plan_once(), ())
    nothing = pa.table({"setting": ["b"]})
    assert SELECTION.on_targets(setting, nothing, "defended.lira.adaptive.auc") == {}
    columns = {"setting": ["a"] * 4, "arm": ["none"] * 4, "pool": [0] * 4, "twin": [0, 0, 1, 1]}
    columns |= {"point_id": [0, 1, 0, 1], "member": [True, False, False, True]}
    table = pa.table({**columns, "lira_naive": [1.0, None, 0.0, 1.0], "loss": [1.0, 0.0, 0.0, 1.0]})
    assert SELECTION.on_targets(setting, table, "none.lira.naive.auc") == {}
    assert SELECTION.on_targets(setting, table, "none.loss.none.auc") == {0: 1.0}


RANKINGS = {"final": {"defences.0.ranking": "gnq_final"}, "plain": {"defences.0.ranking": "gnq_sum"}}


def test_the_lowest_is_chosen_among_defences_only() -> None:
    metric = next(name for name in places(plan_once()) if name.startswith("defended.loss"))
    kind = kind_named("gnq")

    def chosen(settings: Settings, mode: Mode) -> Choice:
        return choice_of(kind, Sweep("some", "", "gnq-smoke", fixed(settings), "", ""), plan_once(), metric, mode)

    assert list(chosen(RANKINGS, "min").settings) == ["plan", *RANKINGS]
    for path, value in (("audit.ridge", 0.3), ("split.shadows", 6)):
        attack: Settings = {**RANKINGS, "attack": {"defences.0.ranking": "gnq_sum", path: value}}
        assert "attack" in chosen(attack, "max").settings
        with pytest.raises(BadInput) as refused:
            chosen(attack, "min")
        assert str(refused.value) == (
            f"setting attack of some changes {path}: --mode min would choose the attack that finds least; only what a "
            "defender decides may vary with it (gnq: defences); leave out --mode min, or vary that"
        )


@pytest.mark.parametrize(
    ("name", "field"),
    [("apollo", "split.shadows"), ("mia", "split.shadows"), ("tmia", "split.reference_models")],
)
def test_nothing_is_chosen_by_the_lowest_where_only_attacks_vary(name: str, field: str) -> None:
    plan = load_plan(f"{name}-smoke")
    selection = selection_of(kind_named(name))
    sweep = Sweep("some", "", f"{name}-smoke", fixed({"a": {field: 16}}), "", "")
    with pytest.raises(BadInput, match=rf"may vary with it \({name}: nothing\)") as refused:
        choice_of(kind_named(name), sweep, plan, selection.metrics(plan)[0], "min")
    assert str(refused.value).endswith("leave out --mode min")
