"""The release gate in words, and the warning beside that of a trial run."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from orchestrator.engine.ci.junit import junit
from orchestrator.engine.ci.summary import summary
from orchestrator.judgement.gate_result import GateResult, LimitResult, trial_warning
from orchestrator.mia.result import words as mia
from orchestrator.report.gate_words import Named, gate_words, limit_words
from orchestrator.report.words import shared_words
from tests.orchestrator.toy import kind


def limit(text: str, outcome: str = "passed") -> LimitResult:
    """Return how a result stands to a limit."""
    name, _, most = text.partition("=")
    return LimitResult(text, name.rpartition(".")[2], float(most), 0.612, "base, none, rmia", outcome)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("auc=0.6", "every AUC"),
        ("auc_low=0.6", "lower end of every AUC"),
        ("labels.auc=0.6", "AUC from predicted classes alone"),
        ("rmia.auc=0.6", "AUC of RMIA"),
        ("scrub.lira.found_fpr_low=0.6", "lower end of the FPR of scrub, LiRA"),
    ],
)
def test_a_limit_is_told_in_the_words_of_the_field(text: str, said: str) -> None:
    assert limit_words(limit(text), shared_words) == f"{said} at most .600, found .612 (passed)"


@pytest.mark.parametrize(
    ("text", "value", "said", "found"),
    [
        ("auc=0.7969", 0.79689, "at most .7969, found .7969 (passed)", "auc is 0.7969 (base)"),
        ("auc=0.79685", 0.79689, "at most .79685, found .797 (passed)", "auc is 0.797 (base)"),
        ("auc=0.797", 0.7970004, "at most .797, found .7970004 (passed)", "auc is 0.7970004 (base)"),
        ("auc=8e-1", 0.5, "at most .800, found .500 (passed)", "auc is 0.500 (base)"),
        ("auc=1", 1.0, "at most 1.000, found 1.000 (passed)", "auc is 1.000 (base)"),
    ],
)
def test_a_number_has_the_decimals_that_tell_it_from_its_limit(text: str, value: float, said: str, found: str) -> None:
    limit = LimitResult(text, "auc", float(text.partition("=")[2]), value, "base", "passed")
    assert limit_words(limit, shared_words) == f"every AUC {said}"
    assert limit.value_in_words() == found


@pytest.mark.parametrize(("named", "said"), [(mia.words, "QMIA"), (shared_words, "qmia")])
def test_components_have_the_names_of_their_page(named: Named, said: str) -> None:
    assert limit_words(limit("qmia.auc=0.6"), named).startswith(f"AUC of {said} at most")


def test_what_is_not_passed_comes_first_and_many_limits_are_counted() -> None:
    limits = (
        limit("auc=0.9"),
        *(limit(f"auc=0.{place}", "inconclusive") for place in (7, 8)),
        limit("auc=0.6", "failed"),
    )
    told = gate_words(GateResult("failed", limits), shared_words)
    assert told.startswith(
        "every AUC at most .600, found .612 (failed); every AUC at most .700, found .612 (inconclusive); "
    )
    assert told.endswith("; 1 more")


def document(too_small: str, *limits: LimitResult) -> dict[str, Any]:
    """Return what a result says of its verdict and its gate."""
    gate = {"gate": GateResult("passed", limits).to_json()} if limits else {}
    return {"name": "mine", "kind": "toy", "verdict": {"too_small": too_small}, **gate}


def test_the_gate_of_a_trial_run_comes_with_a_warning_in_the_files_for_ci() -> None:
    trial = document("its models were trained on 60 images each", limit("auc=0.9"))
    warning = trial_warning(trial)
    assert "trial run (its models were trained on 60 images each)" in warning
    gate = GateResult.of(trial)
    assert ET.fromstring(junit(trial, gate)).findtext("testsuite/system-out") == warning
    assert warning.removeprefix("w") in summary(trial, gate, kind.KIND.headline, [], [], "none")


def test_no_other_run_is_warned_of() -> None:
    for other in (document("", limit("auc=0.9")), document("its models were trained on 60 images each")):
        assert trial_warning(other) == ""
        assert b"system-out" not in junit(other, GateResult())
