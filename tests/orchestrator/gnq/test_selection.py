"""``orch tune gnq``: by what is chosen, and what a rehearsal of one arm takes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from orchestrator.engine.setting import Setting
from orchestrator.gnq.selection import SELECTION, Place, places
from orchestrator.kinds import load_plan
from tests.orchestrator.engine.run.tuned import rehearsal_of

PLAN = load_plan("gnq-smoke", values={"compute.workers": 0})
NAKED = {"defences": []}


def test_arms_with_points_in_their_names_and_the_first_defence_can_be_chosen_by():
    found = places(PLAN)
    assert found["gnq_log-0.2.lira.adaptive.auc"] == Place("gnq_log-0.2", "lira", "adaptive")
    assert found["defended.lira.adaptive.auc"] == Place("gnq_log-0.2", "lira", "adaptive")
    assert found["none.loss.none.auc"] == Place("none", "loss", "none")
    assert "none.lira.adaptive.auc" not in found and not any("defended" in name for name in places(PLAN.changed(NAKED)))


def test_a_setting_without_the_arm_gets_no_score():
    assert SELECTION.unscored(PLAN, "random-0.2.loss.none.auc") == ""
    said = SELECTION.unscored(PLAN.changed(NAKED), "defended.loss.none.auc")
    assert said == "it has no defended.loss.none.auc; its arms: none"


def test_other_arms_and_what_is_inverted_take_no_part_in_a_rehearsal(tmp_path: Path):
    plan = PLAN.changed({"compute.store": str(tmp_path), "audit.inversion": {}})
    for metric, arm in (("none.lira.naive.auc", "none"), ("defended.lira.adaptive.auc", "gnq_log-0.2")):
        jobs = SELECTION.jobs(rehearsal_of(plan, metric), metric)
        assert {job.label for job in jobs if job.stage == "score"} == {arm}
        assert {job.label for job in jobs if job.stage == "defend"} == {arm} - {"none"}
        assert "invert" not in {job.stage for job in jobs}
        keys = [job.key for job in jobs]
        assert all(need in keys[: keys.index(job.key)] for job in jobs for need in job.needs)


def test_nothing_is_said_of_an_arm_whose_models_diverged_or_whose_attack_failed():
    setting = Setting("a", {}, PLAN, ())
    nothing = pa.table({"setting": ["b"]})
    assert SELECTION.on_targets(setting, nothing, "defended.lira.adaptive.auc") == {}
    columns = {"setting": ["a"] * 4, "arm": ["none"] * 4, "pool": [0] * 4, "twin": [0, 0, 1, 1]}
    columns |= {"point_id": [0, 1, 0, 1], "member": [True, False, False, True]}
    table = pa.table({**columns, "lira_naive": [1.0, None, 0.0, 1.0], "loss": [1.0, 0.0, 0.0, 1.0]})
    assert SELECTION.on_targets(setting, table, "none.lira.naive.auc") == {}
    assert SELECTION.on_targets(setting, table, "none.loss.none.auc") == {0: 1.0}
