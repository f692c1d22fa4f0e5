"""What a page says of a choice by the lowest score: that lower was wanted."""

from __future__ import annotations

import dataclasses
import shlex
from types import SimpleNamespace
from typing import cast

from orchestrator.judgement.estimate import Estimate
from orchestrator.report.result import FinishedRun
from orchestrator.report.selection import Gain, JudgedSetting, ScoredSetting, SelectionRow, judged_grid, sentences

LOW, HIGH = Estimate(0.5, 0.48, 0.52), Estimate(0.6, 0.58, 0.62)
GAIN = Estimate(-0.1, -0.12, -0.08)
LOWEST = SelectionRow(
    sweep="some", metric="defended.lira.adaptive.auc", mode="min", unit="pool", units=5, targets=5, level=0.95,
    own="plan", winner="a",
    settings=(
        ScoredSetting(setting="plan", overrides={}, score=HIGH),
        ScoredSetting(setting="a", overrides={"defences.0.ranking": "gnq_sum"}, score=LOW),
    ),
    judged=(
        JudgedSetting(setting="a", at_selection=LOW, on_targets=LOW, optimism=0.0),
        JudgedSetting(setting="plan", at_selection=HIGH, on_targets=HIGH, optimism=0.0),
    ),
    gain=Gain(at_selection=GAIN, on_targets=GAIN, on_targets_p=0.01),
)  # fmt: skip


def test_a_choice_by_the_lowest_says_that_lower_was_wanted() -> None:
    chosen, gain, optimism = sentences(LOWEST)
    assert "Lower was wanted: a gain is below zero." in chosen.text
    assert (gain.head, "−" in gain.text) == ("A gain on the targets", True)
    assert optimism.text.endswith("Lower was wanted, so scores at selection below those on targets are too good.")
    table = judged_grid(LOWEST)
    assert table.title.endswith("defended.lira.adaptive.auc, lower wanted")
    assert "optimism" not in str(table.columns)


def test_a_choice_by_the_highest_says_nothing_of_it() -> None:
    highest = dataclasses.replace(LOWEST, mode="max")
    assert not any("ower was wanted" in each.text for each in sentences(highest))
    assert [each.head for each in sentences(highest)][1] == "A loss on the targets"
    assert judged_grid(highest).title.endswith("auc") and "optimism" in str(judged_grid(highest).columns)


def test_the_command_that_repeats_a_run_is_one_command_whatever_its_names_are() -> None:
    hostile = "x; touch stolen $(id)"
    run = SimpleNamespace(
        selection=None, is_sweep=True, file=None, name=hostile, kind="mia", plan={}, aggregate_only=None
    )
    words = shlex.split(FinishedRun.again(cast(FinishedRun, run)))
    assert words == ["orch", "sweep", hostile, "plan.yaml", "--out", "again"]
    run.selection = dataclasses.replace(LOWEST, metric=hostile)
    words = shlex.split(FinishedRun.again(cast(FinishedRun, run)))
    assert words == ["orch", "tune", "mia", "some", "plan.yaml", "--metric", hostile, "--mode", "min", "--out", "again"]


def test_no_name_of_a_result_is_an_option_of_the_command_that_repeats_it() -> None:
    option = "--allow-code"
    run = SimpleNamespace(
        selection=None, is_sweep=True, file=option, name="a", kind="mia", plan={}, aggregate_only=None
    )
    assert shlex.split(FinishedRun.again(cast(FinishedRun, run)))[2] == f"./{option}"
    run.is_sweep, run.plan = False, {"audit": {"kind": option}}
    assert shlex.split(FinishedRun.again(cast(FinishedRun, run)))[2] == f"./{option}"
    run.selection = dataclasses.replace(LOWEST, file=option)
    assert shlex.split(FinishedRun.again(cast(FinishedRun, run)))[3] == f"./{option}"
