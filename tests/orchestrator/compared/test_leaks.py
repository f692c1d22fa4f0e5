"""Which of two runs ``orch compare`` says leaks less, whichever metric shows it and whichever run is first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from audits.statistics.null import holm
from orchestrator.compared.leaks import said_of_leaks
from orchestrator.compared.rows import CompareResult
from orchestrator.judgement.estimate import Estimate
from tests.orchestrator.compared.made_up import Columns, apollo, compared, gnq, mia, rows, run


def calls(hits: float, alarms: float, seed: int = 1) -> Columns:
    """Return a table of Apollo in which shares of members and of others are called members beyond the usual."""
    table = apollo(rows(seed, 0.0))
    draws = np.random.default_rng(5).uniform(size=len(table["score"]))
    for place, (group, draw) in enumerate(zip(table["group"], draws, strict=True)):
        if draw < (hits if group == "forget" else alarms):
            table["decision_0.1"][place] = 1.0
    return table


def headline(result: CompareResult) -> str:
    """Return the headline of the verdict."""
    assert result.verdict is not None
    return result.verdict.headline


def test_hit_rates_say_which_run_leaks_less_where_areas_do_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [
        run(tmp_path / name, "apollo", calls(hits, 0.0), contents="a") for name, hits in (("a", 0.0), ("b", 0.5))
    ]
    for order in (folders, folders[::-1]):
        result = compared(capsys, *order)
        assert {row.metric for row in result.table if row.differs} == {"tpr"}
        assert "a leaks less than b" in headline(result) and "Neither" not in headline(result)
        row = max((row for row in result.table if row.differs), key=lambda row: abs(float(row.difference)))
        for value in (row.first_value, row.second_value):
            assert f"{value:.3f}".lstrip("0") in headline(result)


def test_a_threshold_that_calls_more_of_everybody_is_no_leak(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [
        run(tmp_path / name, "apollo", calls(more, more), contents="a") for name, more in (("a", 0.0), ("b", 0.5))
    ]
    result = compared(capsys, *folders)
    assert {row.metric for row in result.table if row.differs} == {"tpr", "fpr"}
    assert "leaks less than" not in headline(result) and "Neither a nor b" in headline(result)


def test_an_area_tells_a_leak_whatever_threshold_moved_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [
        run(tmp_path / name, "apollo", calls(more, more), contents="a") for name, more in (("a", 0.0), ("b", 0.5))
    ]
    result = compared(capsys, *folders)
    table = tuple(replace(row, promised_fpr=None) for row in result.table)  # as of decisions without a promise
    assert "Neither a nor b" in said_of_leaks(replace(result, table=table))[0]
    more = Estimate(0.2, 0.1, 0.3)
    table = tuple(
        replace(row, difference=more, differs=True, identical=False) if row.metric == "auc" else row for row in table
    )
    assert "a leaks less than b" in said_of_leaks(replace(result, table=table))[0]


def test_a_stricter_threshold_is_no_leak_by_precision_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [
        run(tmp_path / name, "apollo", calls(hits, alarms), contents="a")
        for name, hits, alarms in (("a", 0.7, 0.7), ("b", 0.3, 0.02))
    ]
    result = compared(capsys, *folders, "--attack", "loss")
    assert {row.metric for row in result.table if row.differs} == {"tpr", "fpr"}
    (hits,) = (row for row in result.table if row.metric == "tpr")
    higher = replace(hits, metric="precision", difference=replace(hits.difference, value=0.2))
    (said,) = said_of_leaks(replace(result, table=[*result.table, higher]))
    assert said.startswith("Neither")
    assert said_of_leaks(replace(result, table=[higher])) == []  # of precision alone nobody knows


def test_a_hit_rate_without_its_false_positive_rate_says_nothing_of_leaks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [
        run(tmp_path / name, "apollo", calls(hits, 0.0), contents="a") for name, hits in (("a", 0.0), ("b", 0.5))
    ]
    result = compared(capsys, *folders, "--metric", "tpr")
    assert any(row.differs for row in result.table)
    assert "leaks less" not in headline(result) and "leak less" not in headline(result)


@pytest.mark.parametrize("metric", ["auc", "tpr"])
def test_runs_of_which_all_that_is_compared_is_identical_are_called_so(
    metric: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = apollo(rows(1, 0.0)), apollo(rows(1, 0.0))
    if metric == "auc":
        second["decision_0.1"] = [1.0 - each for each in second["decision_0.1"]]
    else:
        second["score"] = [2 * each + 1 for each in second["score"]]
    folders = [run(tmp_path / name, "apollo", each, contents="a") for name, each in (("a", first), ("b", second))]
    result = compared(capsys, *folders, "--metric", metric)
    assert result.identical and not result.whole
    assert (
        "identical" in headline(result) and result.verdict is not None and "More targets" not in result.verdict.advice
    )


def test_an_area_and_a_hit_rate_that_turn_against_each_other_give_no_winner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = calls(0.5, 0.0), apollo(rows(2, 1.0))
    second["decision_0.1"] = apollo(rows(1, 0.0))["decision_0.1"]
    folders = [run(tmp_path / name, "apollo", each, contents="a") for name, each in (("a", first), ("b", second))]
    result = compared(capsys, *folders, "--attack", "loss")
    assert {row.metric: float(row.difference) > 0 for row in result.table if row.differs} == {"auc": True, "tpr": False}
    assert "depends" in headline(result) and "leaks less than" not in headline(result)


def test_an_area_that_is_identical_by_construction_is_no_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = mia(rows(1, 0.0)), mia(rows(1, 0.0))
    second["decision_0.02"] = [float(each > 2.0) for each in second["score"]]  # one more rate, the same scores
    second["decision_0.1"] = [1.0 - each for each in second["decision_0.1"]]
    folders = [run(tmp_path / name, "mia", each, contents="a") for name, each in (("a", first), ("b", second))]
    result = compared(capsys, *folders)
    assert {row.metric for row in result.table if row.identical} == {"auc"} and not result.identical
    family = [row for row in result.table if row.p_holm is not None]
    assert {row.metric for row in family} == {"tpr", "fpr"}
    assert [row.p_holm for row in family] == holm(np.array([row.p for row in family])).tolist()
    second["decision_0.1"] = first["decision_0.1"]
    again = compared(capsys, folders[0], run(tmp_path / "c", "mia", second, contents="a"))
    assert again.identical and all(row.identical for row in again.table)
    assert "this is the same audit twice" not in headline(again) and "rates at 2 %" in headline(again)


def test_the_undefended_arm_of_gnq_is_no_control(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [
        run(tmp_path / name, "gnq", gnq(rows(seed, gain)), contents="a")
        for name, seed, gain in (("a", 1, 0.0), ("b", 2, 1.5))
    ]
    result = compared(capsys, *folders)
    assert all(row.differs for row in result.table) and not result.pairs[0].controls_only
    assert "a leaks less than b" in headline(result) and "controls" not in headline(result)
