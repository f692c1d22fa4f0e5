"""Flips of labels, ladders of budgets and summaries of radii, each against a plain form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.apollo.page.radii import method_radii
from orchestrator.apollo.result.details import budget_rows, paper_rule, radius_summary
from orchestrator.apollo.result.rows import RadiusPoints, RadiusSide
from orchestrator.apollo.stages.radii import asked_inside, first_flips
from orchestrator.apollo.stages.scoring import ladder
from tests.cases.synthetic_evidence import make_walks

NOWHERE = np.nan


def test_first_flips_equal_a_walk_step_by_step():
    forgotten = np.arange(40) % 2 == 0
    walks = make_walks(np.random.default_rng(0), forgotten, steps=4)
    found = first_flips(walks)
    assert np.isnan(found).any() and (found == 0).any() and (found > 0).any()
    for way in range(2):
        for point in range(40):
            radii = []
            for walk in range(2):
                if not walks.target[walk, point, 0]:
                    radii.append(0.0)
                for step in range(4):
                    if not walks.target[walk, point, 1 + 4 * way + step]:
                        radii.append(walks.radius[walk, point, way, step])
                        break
            assert found[way, point] == pytest.approx(min(radii, default=NOWHERE), nan_ok=True)


@pytest.mark.parametrize(
    ("most", "steps"), [(1, [1]), (2, [1, 2]), (5, [1, 2, 3, 5]), (21, [1, 2, 3, 5, 9, 17, 21]), (9, [1, 2, 3, 5, 9])]
)
def test_the_ladder_doubles_and_ends_with_all_queries(most, steps):
    assert ladder(most) == steps


def test_radii_are_counted_as_they_are_defined():
    span = np.array([[0.1, 0.4], [0.1, 0.4], [0.1, 0.4], [NOWHERE, NOWHERE], [NOWHERE, NOWHERE]])
    flip = np.array([0.2, 0.5, NOWHERE, 0.0, 0.3])
    early = np.array([0.1, 0.6, 0.1, 0.1, -1.0])
    told = np.array(["refuted", "expected", "open", "", ""])
    assert radius_summary(span, flip, early, told) == RadiusSide(
        intervals=3, low=0.1, high=0.4, flips=4, at_x=1, flip=0.25, early=2, expected=1, refuted=1, open=1
    )
    nothing = np.full(3, NOWHERE)
    empty = radius_summary(np.full((3, 2), NOWHERE), nothing, nothing, np.full(3, ""))
    assert empty.flip is None and empty.low is None and empty.flips == empty.early == empty.open == 0


def test_radii_asked_inside_are_those_of_either_walk_and_the_point_itself():
    radius = np.array([[[0.1, 0.2], [0.1, 0.2], [0.1, 0.2]], [[0.1, 0.3], [0.1, 0.3], [0.1, 0.3]]])
    span = np.array([[0.25, 0.3], [0.25, 0.31], [0.0, 0.05]])
    assert asked_inside(radius, span).tolist() == [False, True, True]
    assert not asked_inside(radius, np.full((3, 2), NOWHERE)).any()


def test_a_row_of_radii_is_drawn_from_its_nulls():
    nothing = ((None, None),) * 2
    points = RadiusPoints(
        under=((0.1, 0.4), (None, None)), over=nothing, flip_under=(0.2, None), flip_over=(None, None),
        answer_under=("refuted", None), answer_over=(None, None),
    )  # fmt: skip
    figure = method_radii(points)
    assert figure is not None and len(figure.axes) == 1
    assert method_radii(replace(points, under=nothing, flip_under=(None, None), answer_under=(None, None))) is None


def test_budget_rows_join_targets_of_all_shadow_sets():
    """AUC is the mean over targets, TPR the share of all forget points; retained points are not among the details."""
    parts = []
    for target in range(3):
        score = np.array([[2.0, 1.0, 0.0, 3.0], [2.0, 1.5, 0.0, 1.0]]) + 10 * target
        parts.append(
            {
                "forgotten": np.array([True, True, False, False]),
                "target": np.full(4, target),
                "budget.apollo.queries": np.array([1, 5]),
                "budget.apollo.score": score,
                "budget.apollo.decision": np.array([[1.0, 0.0, 0.0, 1.0], [1.0, 0.5, 0.0, 0.0]]),
            }
        )
    # 6 unseen points resolve no rate below one half of ten expected false positives
    rows = budget_rows({"scrub": parts * 4}, 0.5, 0.95)
    assert [(row.unlearner, row.attack, row.queries) for row in rows] == [
        ("scrub", "apollo", 1),
        ("scrub", "apollo", 5),
    ]
    assert [row.auc.value for row in rows] == pytest.approx([0.5, 1.0])
    assert [row.tpr.value for row in rows] == pytest.approx([0.5, 0.75])


def test_each_rule_of_the_paper_has_its_own_curve_best_threshold_and_band():
    """UNDER says "forgotten" of forgotten points alone at one τ; OVER at no τ of more of them than of others."""
    said = np.zeros((2, 49, 40))
    forgotten = np.arange(40) % 2 == 0
    said[0, 12, forgotten] = 1.0
    said[1, 20] = np.arange(40) % 4 < 2
    part = {"said": said, "forgotten": forgotten, "target": np.zeros(40)}
    under, over = paper_rule({"scrub": [part]}, 100, 0.95, 0)
    assert [(row.unlearner, row.attack) for row in (under, over)] == [
        ("scrub", "apollo_under"),
        ("scrub", "apollo_over"),
    ]
    assert under.best == 1.0 and under.best_tau == under.taus[12] == 0.26 and under.p < 0.02
    assert under.curve[11:14] == (0.5, 1.0, 0.5) and under.null_high < 1.0
    assert over.best == 0.5 and over.p == 1.0
    assert paper_rule({"scrub": [{"forgotten": forgotten}]}, 100, 0.95, 0) == []
