"""Controls of the models that were asked: directions, points that were learnt, rates far above a promise."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from orchestrator.apollo.result.controls import far_above, judged_rows, not_learnt
from orchestrator.apollo.result.rows import AttackRow, DiscoveryRow
from orchestrator.apollo.result.void import mostly_false
from orchestrator.judgement.estimate import Estimate, Span


@pytest.mark.parametrize(
    ("kept", "test", "said"),
    [
        (0.94, 0.75, ""),
        (0.82, 0.75, ""),
        (0.75, 0.75, "75.0% of the points"),
        (0.73, 0.76, "own models 93.0% and 75.0%"),
    ],
)
def test_a_given_model_fits_what_it_was_trained_on(kept: float, test: float, said: str) -> None:
    own = [("retrain", "retrain", 0.95, 0.76), ("retrain", "fresh", 0.91, 0.74), ("identity", "identity", 0.5, 0.5)]
    found = not_learnt([*own, (None, "ascent", kept, test)])
    assert found is not None and (said in found if said else found == "")


def test_models_that_fit_all_points_alike_tell_nothing_of_members() -> None:
    assert not_learnt([("retrain", "retrain", 0.8, 0.78), (None, "ascent", 0.7, 0.78)]) is None
    assert not_learnt([(None, "ascent", 0.7, 0.78)]) is None
    assert not_learnt([("retrain", "retrain", None, 0.78)]) is None


def row(found: float, exact_low: float, **changes: object) -> AttackRow:
    """Return a row whose interval over shadows holds any promise."""
    blank = dict.fromkeys(each.name for each in fields(AttackRow))
    told = {
        "setting": "base", "unlearner": "ascent", "attack": "u_lira", "access": "posteriors", "promised_fpr": 0.1,
        "found_fpr": Estimate(found, 0.02, 0.99), "found_fpr_exact": Span(exact_low, 0.7), "found_fpr_p": 0.16,
        "found_fpr_below_p": 0.9, "auc": Estimate(0.5, 0.4, 0.6), "auc_p": 0.5, "auc_p_holm": 1.0, "targets": 1,
        "above_chance": False, "found_fpr_off": False, "found_fpr_below": False, "void": False,
    }  # fmt: skip
    return AttackRow(**{**blank, **told, **changes})


def test_a_rate_far_above_its_promise_is_void_though_the_shadows_disagree() -> None:
    kept, broken = row(0.19, 0.12), row(0.58, 0.48)
    assert [far_above(each, each.found_fpr_p) for each in (kept, broken)] == [False, True]
    assert not far_above(broken, None)  # the oracle promises nothing
    assert [each.void for each in judged_rows([kept, replace(broken, attack="rmia")], 0.95, given=["ascent"])] == [
        False,
        True,
    ]
    assert not any(each.void for each in judged_rows([kept, replace(broken, attack="rmia")], 0.95))


def test_a_list_of_points_is_void_where_most_of_it_is_false() -> None:
    told = {"setting": "base", "unlearner": "ascent", "attack": "u_lira", "access": "posteriors", "claimed_fdr": 0.1}
    fair, false = (
        DiscoveryRow(**told, discoveries=20, false=4, fdp=Estimate(0.2, low, 0.5), power=Estimate())
        for low in (0.06, 0.4)
    )
    assert not mostly_false(fair) and mostly_false(false)
    assert not mostly_false(replace(fair, fdp=Estimate(0.3, 0.19, 0.5))), "twice the claim is far, not above it"
    assert not mostly_false(replace(fair, fdp=Estimate()))
