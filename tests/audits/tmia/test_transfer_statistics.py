"""What students show of their teachers: whole posteriors in rank, and the oracle that bounds single confidences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import softmax

from audits.statistics.roc import auc
from audits.tmia.answers import Answers, Posteriors
from audits.tmia.attacks import ATTACKS, JudgeSettings
from audits.tmia.attacks.tmia_vector import discriminant
from tests.audits.tmia.made_up_answers import ruling, scene, synthetic_answers

CLASSES = 5


def second_class_scene(seed: int, lift: float) -> tuple[Posteriors, np.ndarray]:
    """Return posteriors in which training lifts the second class of a point alone, and who trained on what."""
    rng = np.random.default_rng(seed)
    counts, points, samples = {"target": 12, "reference": 60, "null": 10}, 80, 150
    order = np.stack([rng.permutation(CLASSES) for _ in range(points + samples)])
    level = np.array([4.0, 1.0, 0.0, -1.0, -2.0])
    member = rng.random((12, points)) < 0.5
    drawn = rng.random((60, samples)) < 0.2

    def answered(own: np.ndarray, places: np.ndarray) -> np.ndarray:
        logit = rng.normal(scale=0.5, size=(*own.shape, CLASSES)) + level
        logit += rng.normal(scale=1.0, size=(*own.shape, 1)) * (np.arange(CLASSES) == 0)
        logit[..., 1] += lift * own
        named = np.empty_like(logit)
        np.put_along_axis(named, np.broadcast_to(places, logit.shape), logit, axis=-1)
        return softmax(named, axis=-1).astype(np.float32)

    nobody = {group: np.zeros((counts[group], points), bool) for group in counts} | {"target": member}
    posterior = {group: answered(own, order[:points]) for group, own in nobody.items()}
    shadow = answered(drawn, order[points:])
    star = {group: values.argmax(-1) for group, values in posterior.items()}
    return Posteriors(posterior, star, shadow, drawn, shadow.argmax(-1)), member


def mean_auc(score: np.ndarray, member: np.ndarray) -> float:
    return float(np.mean([auc(own, flags) for own, flags in zip(score, member, strict=True)]))


def test_whole_posteriors_show_what_the_own_maximum_hides() -> None:
    seen, member = second_class_scene(1, lift=1.0)
    found = {
        name: mean_auc(-ATTACKS[name]().judge(Answers(posteriors=seen), JudgeSettings(0.05), 0).p["target"], member)
        for name in ("tmia_vector", "tmia_posterior")
    }
    assert found["tmia_vector"] > 0.75 > found["tmia_posterior"] + 0.15


def test_whole_posteriors_keep_the_promised_rate_where_members_are_exchangeable() -> None:
    rates, aucs = [], []
    for seed in range(6):
        seen, member = second_class_scene(10 + seed, lift=0.0)
        found = ATTACKS["tmia_vector"]().judge(Answers(posteriors=seen), JudgeSettings(0.1), 0)
        rates += [found.decision[group].mean() for group in ("target", "null")]
        aucs.append(mean_auc(found.statistic["target"], member))
    assert 0.08 < np.mean(rates) < 0.12
    assert abs(np.mean(aucs) - 0.5) < 0.03


def test_the_discriminant_is_that_of_a_loop_over_samples_and_models() -> None:
    rng = np.random.default_rng(3)
    z, member = rng.normal(size=(7, 9, 3)), rng.random((7, 9)) < 0.4
    member[:, 0], member[:, 1] = True, False  # samples with one side alone count for nothing
    shift, weight, rest = np.zeros(3), 0.0, []
    for sample in range(2, 9):
        inside = [z[model, sample] for model in range(7) if member[model, sample]]
        outside = [z[model, sample] for model in range(7) if not member[model, sample]]
        if inside and outside:
            own = len(inside) * len(outside) / 7
            shift += own * (np.mean(inside, axis=0) - np.mean(outside, axis=0))
            weight += own
            rest += [one - np.mean(side, axis=0) for side in (inside, outside) for one in side]
    covariance = sum(np.outer(one, one) for one in rest) / (len(rest) - 2 * (len(rest) // 7))
    covariance += 1e-3 * np.trace(covariance) / 3 * np.eye(3)
    np.testing.assert_allclose(discriminant(z, member), np.linalg.inv(covariance) @ (shift / weight), rtol=1e-9)


def test_the_oracle_finds_members_and_does_not_read_a_targets_own_truth() -> None:
    made = synthetic_answers(4, targets=12, samples=40)
    found = ruling("lira_oracle", made.answers)
    assert mean_auc(found.statistic["target"], made.membership) > 0.9
    turned = made.membership.copy()
    turned[3] = ~turned[3]
    other = ruling("lira_oracle", replace(made.answers, truth=turned))
    np.testing.assert_array_equal(other.statistic["target"][3], found.statistic["target"][3])
    assert not np.array_equal(other.statistic["target"][4], found.statistic["target"][4])


def test_the_oracle_is_at_chance_where_members_are_exchangeable() -> None:
    found = [synthetic_answers(seed, targets=20, lift=0.0, samples=40) for seed in range(8)]
    aucs = [mean_auc(ruling("lira_oracle", made.answers).statistic["target"], made.membership) for made in found]
    assert abs(np.mean(aucs) - 0.5) < 0.03
    assert ruling("lira_oracle", scene().answers).decision["null"].mean() < 0.3
