"""RMIA among TMIA's attacks: its statistic written out, its promise under the null hypothesis, and what it sees."""

from __future__ import annotations

import numpy as np

from audits.statistics.roc import auc
from audits.tmia.attacks.rmia import RMIA, share_as_large
from tests.audits.tmia.made_up_answers import BETA, ruling, synthetic_answers


def test_the_statistic_is_the_mean_over_z_of_the_soft_likelihood_ratio() -> None:
    made = synthetic_answers(5, targets=2, reference=4, null=2, candidates=7)
    seen = made.answers.posteriors
    assert seen is not None
    star = {group: seen.star[group] for group in seen.star}
    p = {
        group: np.array([[seen.posterior[group][m, k, star[group][m, k]] for k in range(7)] for m in range(len(rows))])
        for group, rows in star.items()
    }
    found = ruling("rmia", made.answers)

    def slow(own: np.ndarray, references: np.ndarray) -> list[float]:
        ratio = own / references.mean(0)
        return [float(np.mean([ratio[x] / ratio[z] / (ratio[x] / ratio[z] + 1) for z in range(7)])) for x in range(7)]

    for group in ("target", "null"):
        slowly = [slow(row, p["reference"]) for row in p[group].astype(np.float64)]
        np.testing.assert_allclose(found.statistic[group], slowly, atol=1e-9)
    null = np.array([slow(p["reference"][j], np.delete(p["reference"], j, axis=0)) for j in range(4)]).ravel()
    assert found.p is not None
    for group in ("target", "null"):
        above = (null[:, None, None] >= found.statistic[group] - 1e-12).sum(0)
        np.testing.assert_allclose(found.p[group], (1 + above) / 29)
    assert found.queries == 1 and RMIA.access == "posteriors"


def test_members_are_found_and_nobody_else_is_called_more_often_than_promised() -> None:
    made = synthetic_answers(6, targets=20, null=20, candidates=120)
    found = ruling("rmia", made.answers)
    areas = [auc(*each) for each in zip(found.statistic["target"], made.membership, strict=True)]
    assert np.mean(areas) > 0.7
    assert found.decision["target"][made.membership].mean() > 3 * BETA
    nothing = [synthetic_answers(seed, targets=20, null=20, candidates=120, lift=0.0) for seed in range(4)]
    for group in ("target", "null"):
        rates = [ruling("rmia", each.answers).decision[group].mean() for each in nothing]
        assert abs(np.mean(rates) - BETA) < 0.01  # 9 600 pairs


def test_a_pool_that_reference_models_share_makes_it_more_careful() -> None:
    answers = synthetic_answers(7, targets=10).answers
    raw, corrected = (ruling("rmia", answers, pool_sets=sets) for sets in (np.inf, 2.0))
    assert corrected.decision["target"].sum() < raw.decision["target"].sum()
    assert raw.p is not None and corrected.p is not None
    below = raw.p["target"] < 0.5
    assert (corrected.p["target"][below] > raw.p["target"][below]).all()


def test_equal_statistics_count_against_the_attack() -> None:
    null = np.array([1.0, 2.0, 2.0])
    np.testing.assert_allclose(share_as_large(np.array([0.0, 1.0, 2.0, 3.0]), null), [1.0, 1.0, 0.75, 0.25])
