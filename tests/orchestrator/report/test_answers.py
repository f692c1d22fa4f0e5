"""The verdict of each kind of audit, read off drawn results whose truth is known."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audits.statistics.power import detectable_auc
from orchestrator.apollo.page.page import PAGE as APOLLO
from orchestrator.apollo.result.judging import judge as apollo_judged
from orchestrator.gnq.page.page import PAGE as GNQ
from orchestrator.gnq.result.judging import judge as gnq_judged
from orchestrator.judgement.rows import FAILED, HELD, LEAK, MISSING, NONE_SEEN, UNTOLD
from orchestrator.report.page import RunPage
from orchestrator.tmia.page.page import PAGE as TMIA
from orchestrator.tmia.result.judging import judge as tmia_judged
from tests.cases.apollo_result import write_run
from tests.orchestrator.gnq.drawn_result import write_gnq_run
from tests.orchestrator.tmia.drawn_result import write_tmia_run

Document = dict[str, Any]
Row = dict[str, Any]


@pytest.fixture(scope="module")
def apollo(tmp_path_factory: pytest.TempPathFactory) -> Document:
    return write_run(tmp_path_factory.mktemp("apollo"))


@pytest.fixture(scope="module")
def tmia(tmp_path_factory: pytest.TempPathFactory) -> Document:
    modes = {"I": {"audit.mode": "I"}, "II": {"audit.mode": "II", "signal": 0.0}}
    return write_tmia_run(tmp_path_factory.mktemp("tmia"), modes)


@pytest.fixture(scope="module")
def gnq(tmp_path_factory: pytest.TempPathFactory) -> Document:
    drawn = write_gnq_run(tmp_path_factory.mktemp("gnq"))
    return drawn | {"plan": drawn["plan"] | {"split": drawn["plan"]["split"] | {"train_size": 1000}}}


def changed(document: Document, where: Callable[[Row], bool], **fields: Any) -> Document:
    """Return a result in which the rows of the table have other fields."""
    return document | {"table": [row | fields if where(row) else row for row in document["table"]]}


def answer(page: RunPage[Any], document: Document) -> Document:
    plain = json.loads(json.dumps(document))
    judge = {APOLLO: apollo_judged, TMIA: tmia_judged, GNQ: gnq_judged}[page]
    found: Document = judge(page.of(plain).result).document()["verdict"]
    return found


def levels(found: Document) -> dict[str, str]:
    return {row["subject"]: row["level"] for row in found["findings"]}


def states(found: Document) -> dict[str, str]:
    return {row["name"]: row["state"] for row in found["controls"]}


def test_apollo_names_what_leaks_by_the_weakest_access_that_suffices(apollo: Document) -> None:
    found = answer(APOLLO, apollo)
    assert found["level"] == LEAK and set(levels(found).values()) == {LEAK}
    assert {row["access"] for row in found["findings"]} == {"labels"}
    assert set(states(found).values()) == {HELD}
    blind = changed(apollo, lambda row: row["access"] == "labels", above_chance=False, auc_p_holm=1.0)
    rest = {row["access"] for row in answer(APOLLO, blind)["findings"] if row["level"] == LEAK}
    assert rest == {"posteriors"}


def test_apollo_tells_the_power_of_a_null_by_its_points_targets_and_interval(apollo: Document) -> None:
    null = changed(apollo, lambda row: row["unlearner"] == "scrub", above_chance=False, auc_p_holm=1.0)
    found = answer(APOLLO, null)
    (row,) = (each for each in found["findings"] if each["level"] == NONE_SEEN)
    assert (row["subject"], row["attack"]) == ("SCRUB", "apollo")
    own = next(each for each in apollo["table"] if (each["unlearner"], each["attack"]) == ("scrub", "apollo"))
    error = max(own["auc"] - own["auc_low"], own["auc_high"] - own["auc"]) / 2.364624  # t of 7 degrees
    expected = detectable_auc(50, 50, 8, error, 0.95, tests=len(apollo["table"]))
    assert math.isclose(row["seen_from"], expected, rel_tol=1e-6)
    assert (
        f"No leak seen: SCRUB; an AUC of {math.ceil(100 * expected) / 100:.2f} or more would".replace("0.", ".")
        in found["headline"]
    )


@pytest.mark.parametrize(
    ("unlearner", "fields", "level"),
    [
        ("retrain", {"auc_p": 0.0005, "auc": 0.4}, {UNTOLD}),
        ("identity", {"above_chance": False, "auc_p_holm": 1.0}, {LEAK}),
    ],
)
def test_apollo_counts_nothing_beside_a_control_that_failed(
    apollo: Document, unlearner: str, fields: Row, level: set[str]
) -> None:
    found = answer(APOLLO, changed(apollo, lambda row: row["unlearner"] == unlearner, **fields))
    assert FAILED in states(found).values() and set(levels(found).values()) == level
    null = changed(apollo, lambda row: row["unlearner"] == "scrub", above_chance=False, auc_p_holm=1.0)
    failed = answer(APOLLO, changed(null, lambda row: row["unlearner"] == unlearner, **fields))
    assert levels(failed)["SCRUB"] == UNTOLD
    without = {**null, "table": [row for row in null["table"] if row["unlearner"] != "identity"]}
    assert levels(answer(APOLLO, without))["SCRUB"] == UNTOLD
    assert MISSING in states(answer(APOLLO, without)).values()


def test_tmia_tells_a_leak_from_a_null_and_voids_cells_by_themselves(tmia: Document) -> None:
    found = answer(TMIA, tmia)
    leak = [row for row in found["findings"] if row["setting"] == "I"]
    assert leak and {row["level"] for row in leak} == {LEAK} and "guessing .50" in leak[0]["text"]
    assert LEAK not in {row["level"] for row in found["findings"] if row["setting"] == "II"}
    off = changed(tmia, lambda row: row["attack"] == "tmia_distance", null_fpr=0.3, null_fpr_low=0.28)
    told = {row["attack"]: row for row in answer(TMIA, off)["findings"] if row["setting"] == "I"}
    assert told["tmia_distance"]["level"] == UNTOLD and "broken" in told["tmia_distance"]["why"]
    assert told["tmia_posterior"]["level"] == LEAK


def test_settings_of_one_mode_are_told_apart(tmp_path: Path) -> None:
    modes = {
        "I": {"audit.mode": "I"},
        "III": {"audit.mode": "III"},
        "III-true": {"audit.mode": "III", "audit.star": "true"},
    }
    found = answer(TMIA, write_tmia_run(tmp_path, modes))
    subjects = [row["subject"] for row in found["findings"]]
    assert len(set(subjects)) == len(subjects)
    assert {each.partition(",")[0] for each in subjects} == {
        "Teacher",
        "Student",
        "Student (true classes known)",
    }


def test_tmia_has_no_power_where_an_estimate_stands_at_the_end_of_its_range(tmia: Document) -> None:
    none = dict.fromkeys(("precision", "precision_low"), 0.0) | {"precision_high": 0.84}
    found = answer(TMIA, changed(tmia, lambda row: row["setting"] == "II", **none))
    rows = [row for row in found["findings"] if row["setting"] == "II"]
    assert rows and {row["level"] for row in rows} == {UNTOLD} and all(row["seen_from"] > 1.0 for row in rows)


def test_gnq_speaks_of_arms_but_not_of_those_at_random_and_fails_with_its_control(gnq: Document) -> None:
    found = answer(GNQ, gnq)
    assert not any("at random" in row["subject"] for row in found["findings"])
    assert levels(found)["The model without a defence"] == LEAK
    assert found["tested"].startswith(
        "The model without a defence, 3 defences and 2 controls (the same at random or by loss; table below): "
    )
    broken = changed(gnq, lambda row: row["moment"] == "null", auc=0.6, auc_low=0.58, auc_high=0.62)
    assert set(levels(answer(GNQ, broken)).values()) == {UNTOLD}
    assert "a control failed" in answer(GNQ, broken)["headline"]


def test_a_drawn_run_of_few_points_is_a_trial(tmp_path: Path) -> None:
    assert answer(GNQ, write_gnq_run(tmp_path, arms=("none",), pools=3))["headline"].startswith("Trial run")
