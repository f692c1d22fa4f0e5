"""A small membership audit from plan to page: numbers of result.json against their slow forms, controls, gate, page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from audits.statistics.epsilon_bound import epsilon_bound
from audits.statistics.roc import auc
from orchestrator.cli.main import main
from orchestrator.engine.run.run import Result
from orchestrator.engine.store.store import Store
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.gate import failures, gates_of
from orchestrator.kinds import kind_named, load_plan, open_design
from orchestrator.mia.page.reading import MiaRun, read_mia_run
from orchestrator.mia.page.tables import setting_grid
from orchestrator.mia.result.document import best_of
from orchestrator.mia.result.judging import judge
from orchestrator.report.result import SettingRow
from tests.cases import kept
from tests.cases.reopened import result_of, store_of
from tests.cases.runs import audited, numbers_compared
from tests.cases.smallest_plans import smallest_plan

PLAN = "mia-smoke"
POOLS, POINTS, MODELS = 3, 40, 6
"""Of the smallest plan: pools, points of each, and models that are trained for each."""
FEW = {"audit.attacks": ["rmia", "lira", "loss"]}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mia")


@pytest.fixture(scope="module")
def finished() -> Result:
    """The smallest plan's run, of all attacks; its models have learnt little."""
    return result_of(kept.finished("mia"))


@pytest.fixture(scope="module")
def memorising(place: Path) -> Result:
    """A run of a few attacks on models that know their training points."""
    values = {"compute.workers": 0, "compute.store": str(place / "store"), **FEW}
    return audited(load_plan(PLAN, values=values), place / "out")


@pytest.fixture(scope="module")
def table(finished: Result) -> pd.DataFrame:
    return finished.scores.to_pandas()


def row_of(finished: Result, field: str, **place: Any) -> dict[str, Any]:
    (found,) = [row for row in finished.document[field] if all(row[name] == value for name, value in place.items())]
    return found


def test_truth_and_layout_of_the_scores_are_those_of_the_design(table: pd.DataFrame, tmp_path: Path) -> None:
    design: Any = open_design(smallest_plan("mia", tmp_path / "store"))
    rmia = table[table.attack == "rmia"]
    assert len(rmia) == POOLS * (2 + 2) * POINTS  # two targets and two null models
    assert not rmia[rmia.role == "null"].member.any()
    for pool in range(POOLS):
        ids = design.drawn.pools[pool]
        for index, model in enumerate(design.of(pool, "target")):
            own = rmia[(rmia.role == "target") & (rmia.target == 2 * pool + index)]
            assert own.point_id.tolist() == ids.tolist() and own.member.tolist() == model.half.tolist()
    assert (table[table.attack == "boundary_distance"].groupby(["role", "pool", "target"]).size() == 20).all()
    assert table.p_value.between(0, 1).all() and table["decision_0.2"].between(0, 1).all()


def test_areas_are_means_over_pools_of_ordinary_points_and_canaries_stand_apart(
    finished: Result, table: pd.DataFrame
) -> None:
    for attack in ("rmia", "label_gap", "boundary_distance"):
        for canary, field in ((False, "table"), (True, "canaries")):
            own = table[(table.attack == attack) & (table.role == "target") & (table.canary == canary)]
            if not len(own):
                continue
            areas = own.groupby(["pool", "target"]).apply(lambda rows: auc(rows.score, rows.member))
            pools = areas.groupby("pool").mean().to_numpy()
            row = row_of(finished, field, attack=attack)
            half = 4.3026527 * pools.std(ddof=1) / 3**0.5  # Student's t on two degrees of freedom
            assert row["auc"] == pytest.approx(pools.mean(), abs=1e-12)
            assert row["auc_low"] == pytest.approx(max(0.0, pools.mean() - half), abs=1e-6)


def test_rates_are_shares_of_calls_and_worth_follows_from_them(finished: Result, table: pd.DataFrame) -> None:
    for attack in ("lira", "qmia"):
        own, row = table[(table.attack == attack) & ~table.canary], row_of(finished, "table", attack=attack)
        calls = own["decision_0.2"]
        target, member = own.role == "target", own.member
        assert row["tpr"] == pytest.approx(calls[target & member].mean(), abs=1e-12)
        assert row["found_fpr"] == pytest.approx(calls[target & ~member].mean(), abs=1e-12)
        assert row["null_fpr"] == pytest.approx(calls[~target].mean(), abs=1e-12)
        tpr, fpr = row["tpr"], row["found_fpr"]
        assert row["worth_10"] == pytest.approx(0.1 * tpr / (0.1 * tpr + 0.9 * fpr), abs=1e-12)


def test_a_model_that_memorises_is_found_to_and_null_models_are_not(memorising: Result) -> None:
    for attack in ("lira", "rmia", "loss"):
        assert row_of(memorising, "table", attack=attack)["auc_low"] > 0.6
    assert row_of(memorising, "canaries", attack="rmia")["auc_low"] > 0.6
    told = row_of(memorising, "epsilons", attack="rmia", share=1.0)
    assert told["epsilon"] > 0 == told["null_epsilon"]
    assert told["epsilon"] == epsilon_bound(told["right"], told["guesses"], told["pairs"], told["delta"], 0.95)
    assert told["pairs"] == 4 * 60


def test_power_grows_from_row_to_row_of_shadows_and_the_last_is_the_table(finished: Result) -> None:
    row, last = row_of(finished, "table", attack="rmia"), row_of(finished, "shadows", attack="rmia", shadows=4)
    for name in ("auc", "auc_low", "tpr", "found_fpr"):
        assert last[name] == pytest.approx(row[name], abs=1e-12)


def test_the_page_says_what_the_result_says(finished: Result) -> None:
    run = kept.finished("mia")
    page = (run / "report.html").read_text("utf-8")
    row = row_of(finished, "table", attack="rmia")
    assert f"{row['auc']:.3f}".removeprefix("0") in page and "orch audit mia plan.yaml" in page
    assert finished.document["verdict"]["too_small"] == "its models were trained on 20 images each"
    assert '<h2 id="answer-said">Trial run, too small to mean anything' in page
    for part in ("answer", "verdict", "table", "promises", "canaries", "epsilon", "fit"):
        assert f'id="{part}"' in page
    assert main(["report", str(run), "--markdown"]) == 0


def test_the_best_setting_of_a_sweep_is_marked_and_its_relabelings_move_twins_together(
    memorising: Result, place: Path
) -> None:
    run = read_mia_run(place / "out")
    worse = {**run.scores, "setting": np.full(len(run.scores["score"]), "worse"), "score": np.copy(run.scores["score"])}
    worse["score"][::2] = 0.0
    columns = {name: np.concatenate([worse[name], column]) for name, column in run.scores.items()}
    best = best_of(columns, load_plan(PLAN, values=FEW), None)
    assert {row.setting for row in best} == {"base"} and {row.attack for row in best} == set(run.attacks)
    row = next(row for row in best if row.attack == "rmia")
    assert row.auc == pytest.approx(row_of(memorising, "table", attack="rmia")["auc"], abs=1e-12)
    rows = tuple(replace(each, setting="worse") for each in run.result.table)
    settings = (SettingRow(setting="worse", overrides={"seed": 1}), *run.result.settings)
    grid = setting_grid(MiaRun(replace(run.result, settings=settings, table=(*rows, *run.result.table), best=best)))
    assert {str(line[0]) for line in grid.lines if line[2].mark.endswith("†")} == {"base"}
    assert any(note.startswith("† RMIA: best of 2 settings: base, AUC ") for note in grid.notes)
    assert grid.notes[-1].endswith("quote it on other targets.")


def test_a_broken_promise_is_void_and_said_everywhere(memorising: Result, place: Path) -> None:
    run = read_mia_run(place / "out")
    off = [
        replace(row, null_fpr_p=1e-9, tpr=Estimate(0.9)) if row.attack == "lira" else row for row in run.result.table
    ]
    found = judge(replace(run.result, table=tuple(off)))
    assert {row.attack for row in found.table if row.void and row.null_fpr_off} == {"lira"}
    assert {row.attack for row in (*found.shadows, *found.discoveries) if row.void} == {"lira"}
    (control,) = [each for each in found.controls if each.name == "promised false-alarm rates"]
    assert control.state == "failed" and "LiRA" in control.why
    plan, headline = load_plan(PLAN, values=FEW), kind_named("mia").headline

    def failed(*limits: str) -> list[str]:
        return failures(gates_of(limits, headline, plan), headline, plan, found.document())

    (line,) = failed("lira.auc=0.01")
    assert "failed: auc is " in line and "control promised false-alarm rates" in line
    (line,) = failed("lira.tpr=0.5")
    assert "inconclusive: tpr is void" in line and "0.9" not in line
    for limit in ("lira.auc=0.999", "loss.auc=0.999"):  # what does not show rests on the promises of its setting
        (line,) = failed(limit)
        assert "inconclusive: control promised false-alarm rates" in line
    assert failed("auc=0.51")


def test_canaries_that_nobody_finds_leave_a_gate_inconclusive(memorising: Result, place: Path) -> None:
    result = read_mia_run(place / "out").result
    plan, headline = load_plan(PLAN, values=FEW), kind_named("mia").headline

    def gated(limit: str, *seen: str) -> tuple[list[str], str]:
        """Return how a limit fails, and the state of canaries in the verdict, if so many attacks find them."""
        rows = [replace(row, auc=replace(row.auc, low=0.6 if row.attack in seen else 0.4)) for row in result.canaries]
        found = judge(replace(result, canaries=tuple(rows)))
        assert found.verdict is not None
        (state,) = [each.state for each in found.verdict.controls if each.name == "canaries"]
        return failures(gates_of([limit], headline, plan), headline, plan, found.document()), state

    others = [row.attack for row in result.canaries if row.attack != plan.judge]
    assert others and gated("auc=0.999", *others, plan.judge) == ([], "held")
    said, state = gated("loss.auc=0.999")
    assert state == "failed" and "control canaries: They are not recognised" in said[0] and "loss" in said[0]
    said, state = gated("auc=0.999", *others)  # the judge was chosen beforehand
    assert state == "failed" and f", {plan.judge})" in said[0]
    assert gated("loss.auc=0.999", *others) == ([], "failed")


def test_a_second_analysis_asks_no_model_anything(finished: Result, place: Path) -> None:
    store = store_of("mia", place / "kept")
    again = audited(smallest_plan("mia", store, **{"audit.attacks": ["loss", "rmia"]}), place / "again")
    assert again.document["population"]["trained"] == 0
    counts = {stage: len(keys) for stage, keys in kind_named("mia").present(Store(str(store))).items()}
    assert counts == {"given": 0, "train": POOLS * MODELS, "ask": POOLS, "walk": POOLS, "score": 2 * POOLS}
    assert row_of(again, "table", attack="rmia")["auc"] == row_of(finished, "table", attack="rmia")["auc"]


def test_numbers_of_comparison_are_known_beforehand() -> None:
    plan = smallest_plan("mia", kept.finished("mia").with_name("store"))
    assert numbers_compared(plan) == set(kind_named("mia").compared(plan))
