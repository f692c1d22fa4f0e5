"""Scores against slow definitions, thresholds at their exact level, and no attack sees more than its access."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from synthetic_evidence import make_evidence, make_posteriors, make_walks

from audits.attacks import ATTACKS, Attack, Finding
from audits.attacks.apollo_offline import surplus
from audits.attacks.apollo_paper import THRESHOLDS, best_threshold, decisions, said
from audits.attacks.base import Threshold, fix_threshold
from audits.attacks.evidence import (
    Evidence,
    Posteriors,
    Walks,
    join_posteriors,
    join_walks,
    posteriors_from,
    to_arrays,
    walks_from,
)
from audits.attacks.gather import scaled
from audits.attacks.heat import heat_map
from audits.attacks.lira import log_likelihood_ratio
from audits.errors import BadInput

LABELS = [name for name in ATTACKS if ATTACKS[name].access == "labels"]
POSTERIORS = [name for name in ATTACKS if ATTACKS[name].access == "posteriors"]


# -------------------------------------------------------------------------------------------------------- access


def test_every_attack_declares_one_of_the_two_accesses() -> None:
    assert sorted(LABELS + POSTERIORS) == list(ATTACKS)
    assert LABELS and POSTERIORS
    assert all(ATTACKS[name].name == name for name in ATTACKS)


@pytest.mark.parametrize("name", LABELS)
def test_an_attack_on_labels_is_shown_no_posteriors_and_gives_the_same_without(name: str) -> None:
    evidence, _ = make_evidence(1)
    blind = Evidence(evidence.walks, evidence.offline, None)
    with_them, without = (ATTACKS[name]().judge(each) for each in (evidence, blind))
    np.testing.assert_array_equal(with_them.score, without.score)
    np.testing.assert_array_equal(with_them.null, without.null)


@pytest.mark.parametrize("name", POSTERIORS)
def test_an_attack_on_posteriors_refuses_evidence_without(name: str) -> None:
    evidence, _ = make_evidence(1)
    with pytest.raises(BadInput, match="labels only"):
        ATTACKS[name]().judge(Evidence(evidence.walks, evidence.offline, None))


def test_an_attack_on_labels_that_asks_for_posteriors_is_refused() -> None:
    class Greedy(Attack):
        name, access = "greedy", "labels"

        def find(self, evidence: Evidence) -> Finding:
            assert evidence.posteriors is None
            seen = evidence.posterior()
            return Finding(seen.target, seen.target, seen.queries)

    with pytest.raises(BadInput, match="labels only"):
        Greedy().judge(make_evidence(1)[0])


def test_a_view_with_posteriors_is_everything() -> None:
    evidence, _ = make_evidence(1)
    assert evidence.view("posteriors") is evidence
    assert evidence.view("labels").walks is evidence.walks


@pytest.mark.parametrize("name", LABELS)
def test_evidence_that_was_not_gathered_is_named(name: str) -> None:
    with pytest.raises(BadInput, match=r"no .*walks were gathered"):
        ATTACKS[name]().judge(Evidence({}, None, None))


@pytest.mark.parametrize("name", ATTACKS)
def test_judging_changes_no_evidence_and_depends_on_no_global_generator(name: str) -> None:
    (evidence, _), (untouched, _) = make_evidence(1), make_evidence(1)
    np.random.seed(1)
    first = ATTACKS[name]().judge(evidence)
    np.random.seed(2)
    second = ATTACKS[name]().judge(evidence)
    np.testing.assert_array_equal(first.score, second.score)
    for kind in evidence.walks:
        for part in dataclasses.fields(Walks):
            np.testing.assert_array_equal(
                getattr(evidence.walks[kind], part.name), getattr(untouched.walks[kind], part.name)
            )
    np.testing.assert_array_equal(evidence.posteriors.shadow, untouched.posteriors.shadow)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_finding_scores_every_candidate_and_says_what_it_cost(name: str) -> None:
    finding = ATTACKS[name]().judge(make_evidence(1, candidates=22, steps=3)[0])
    assert finding.score.shape == finding.queries.shape == (22,)
    assert finding.score.dtype == finding.null.dtype == np.float64
    walking = {"apollo", "apollo_offline", "apollo_paper", "random_directions"}
    assert set(finding.queries.tolist()) == {1 + 2 * 2 * 3 if name in walking else 1}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("part", ["target", "shadow"])
def test_numbers_that_are_none_are_reported(part: str, bad: float) -> None:
    evidence, _ = make_evidence(1)
    getattr(evidence.posteriors, part)[..., 3] = bad
    with pytest.raises(FloatingPointError, match="loss_threshold"):
        ATTACKS["loss_threshold"]().judge(evidence)


# ---------------------------------------------------------------------------------------------------- thresholds


def nulls() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "continuous": rng.normal(size=997),
        "tied": rng.integers(0, 6, 400).astype(float),
        "two values": (rng.random(50) < 0.97).astype(float),
        "constant": np.full(30, 2.5),
        "single": np.array([1.0]),
    }


@pytest.mark.parametrize("rate", [0.0, 0.001, 0.01, 0.05, 0.1, 1 / 3, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("kind", nulls())
def test_a_threshold_has_exactly_its_level_on_the_null(kind: str, rate: float) -> None:
    null = nulls()[kind]
    decision = fix_threshold(null, rate).decide(null)
    assert abs(decision.mean() - rate) < 1e-12
    assert decision.min() >= 0 and decision.max() <= 1


@given(
    st.lists(st.floats(-5, 5) | st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=60),
    st.floats(0, 1),
)
def test_a_threshold_has_its_level_and_is_monotone_on_any_null(values: list[float], rate: float) -> None:
    null = np.array(values)
    threshold = fix_threshold(null, rate)
    assert abs(threshold.decide(null).mean() - rate) < 1e-12
    ordered = threshold.decide(np.sort(null))
    assert (np.diff(ordered) >= 0).all()


def test_a_threshold_says_forgotten_above_it_only() -> None:
    np.testing.assert_array_equal(Threshold(1.0, 0.25).decide(np.array([0.5, 1.0, 1.5])), [0.0, 0.25, 1.0])


@pytest.mark.parametrize("name", ATTACKS)
def test_thresholds_read_no_answer_of_the_target(name: str) -> None:
    evidence, _ = make_evidence(2)
    other, _ = make_evidence(2)
    for walks in (*other.walks.values(), other.offline):
        walks.target[:] = ~walks.target
    other.posteriors.target[:] = 7.0
    one, two = (fix_threshold(ATTACKS[name]().judge(each).null, 0.05) for each in (evidence, other))
    assert one == two


# -------------------------------------------------------------------------------------------------- LiRA and loss


def test_the_likelihood_ratio_is_that_of_two_normal_distributions() -> None:
    seen = make_posteriors(np.random.default_rng(0), np.arange(15) < 7, models=8)
    found = log_likelihood_ratio(seen.target, seen.shadow, seen.inside)
    deviations: dict[bool, list[float]] = {True: [], False: []}
    for k in range(15):
        for side in (True, False):
            values = seen.shadow[seen.inside[:, k] == side, k]
            deviations[side] += (values - values.mean()).tolist()
    sigma = {side: np.sqrt(np.square(d).sum() / (len(d) - 15)) for side, d in deviations.items()}
    for k in range(15):
        density = {
            side: norm.logpdf(seen.target[k], seen.shadow[seen.inside[:, k] == side, k].mean(), sigma[side])
            for side in (True, False)
        }
        assert abs(found[k] - (density[True] - density[False])) < 1e-9


def test_the_null_of_lira_judges_each_outside_shadow_by_all_the_others() -> None:
    seen = make_posteriors(np.random.default_rng(1), np.arange(10) < 5, models=6)
    finding = ATTACKS["lira"]().judge(Evidence({}, None, seen))
    wanted = []
    for i in range(6):
        others = [j for j in range(6) if j != i]
        ratio = log_likelihood_ratio(seen.shadow[i], seen.shadow[others], seen.inside[others])
        wanted += [ratio[k] for k in range(10) if not seen.inside[i, k]]
    np.testing.assert_allclose(finding.null, wanted, rtol=0, atol=1e-12)


def test_equal_shadows_give_a_finite_ratio() -> None:
    inside = np.array([[True], [True], [False], [False]])
    ratio = log_likelihood_ratio(np.array([3.0]), np.array([[3.0], [3.0], [1.0], [1.0]]), inside)
    assert np.isfinite(ratio).all() and ratio[0] > 0


def test_scaled_is_the_logit_of_the_confidence_on_moderate_logits() -> None:
    logits = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    y = torch.arange(50) % 4
    p = logits.softmax(1)[torch.arange(50), y].numpy()
    np.testing.assert_allclose(scaled(logits.log_softmax(1), y), np.log(p / (1 - p)), rtol=0, atol=1e-9)


def test_scaled_stays_finite_and_ordered_where_confidences_round_to_0_and_1() -> None:
    logits = torch.tensor([[900.0, 0.0, 0.0], [800.0, 0.0, 0.0], [0.0, 800.0, 0.0], [0.0, 900.0, 1.0]])
    found = scaled(logits.double().log_softmax(1), torch.zeros(4, dtype=torch.int64))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, [900 - np.log(2), 800 - np.log(2), -800, -900], rtol=0, atol=1e-9)


def test_loss_threshold_is_the_targets_confidence() -> None:
    evidence, _ = make_evidence(3)
    finding = ATTACKS["loss_threshold"]().judge(evidence)
    np.testing.assert_array_equal(finding.score, evidence.posteriors.target)
    assert sorted(finding.null) == sorted(evidence.posteriors.shadow[~evidence.posteriors.inside])


def test_label_gap_by_hand() -> None:
    pseudo = np.zeros((2, 1, 3, 3), dtype=bool)
    pseudo[0, 0, :, 0] = [True, False, True]
    pseudo[1, 0, :, 0] = [False, True, True]
    inside = np.array([[[True, False, False]], [[False, True, False]]])
    target = np.zeros((2, 3, 3), dtype=bool)
    target[:, :, 0] = [True, False, True]
    blank = np.zeros((2, 3, 2, 1))
    walks = Walks(pseudo, inside, target, blank, blank, np.full(3, 5, dtype=np.int32))
    finding = ATTACKS["label_gap"]().judge(Evidence({"apollo": walks}, None, None))
    assert finding.score.tolist() == [1.0, 0.0, 1.0]
    assert finding.null.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert finding.queries.tolist() == [1, 1, 1]


def test_the_offline_score_is_the_share_of_true_labels_above_the_expected_one() -> None:
    evidence, _ = make_evidence(4, candidates=6, steps=2)
    walks = evidence.offline
    finding = ATTACKS["apollo_offline"]().judge(evidence)
    for k in range(6):
        parts = [walks.target[g, k].mean() - walks.confidence[g, k].mean() for g in range(2)]
        assert abs(finding.score[k] - np.mean(parts)) < 1e-12
    assert finding.null.shape == (2 * 4 * 6,)
    assert surplus(np.array([[True, False]]), np.array([0.2])) == pytest.approx([0.3])


# ------------------------------------------------------------------------------------------------ the paper's rule


def slow_decision(answers: np.ndarray, confidence: np.ndarray, way: str, tau: float) -> bool:
    """Return "forgotten" of one point by the definition; ``answers``: does the label at each step equal y?"""
    chosen = len(confidence) - 1
    for t, value in enumerate(confidence):
        if (value < tau) if way == "under" else (value > tau):
            chosen = t
            break
    return bool(answers[chosen]) if way == "under" else not answers[chosen]


def test_decisions_of_the_paper_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    points, steps = 25, 4
    answers = rng.random((points, 1 + 2 * steps)) < 0.5
    confidence = rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], (points, 2, steps))
    thresholds = np.array([0.0, 0.3, 0.31, 0.5, 0.9, 1.0])  # some equal to a confidence: neither below nor above
    found = decisions(answers, confidence, thresholds)
    assert found.shape == (2, 6, points)
    for way, name in enumerate(("under", "over")):
        for j, tau in enumerate(thresholds):
            for k in range(points):
                own = answers[k, 1 + way * steps : 1 + (way + 1) * steps]
                assert found[way, j, k] == slow_decision(own, confidence[k, way], name, tau)


def test_the_score_of_the_paper_is_the_share_of_rules_and_walks_that_say_forgotten() -> None:
    evidence, _ = make_evidence(5, candidates=8)
    walks = evidence.walks["apollo"]
    finding = ATTACKS["apollo_paper"]().judge(evidence)
    steps = walks.radius.shape[-1]
    for k in range(8):
        votes = [
            slow_decision(
                walks.target[g, k, 1 + way * steps : 1 + (way + 1) * steps], walks.confidence[g, k, way], name, tau
            )
            for g in range(2)
            for way, name in enumerate(("under", "over"))
            for tau in THRESHOLDS
        ]
        assert abs(finding.score[k] - np.mean(votes)) < 1e-12


def test_the_best_threshold_is_optimistic_when_membership_means_nothing() -> None:
    rng = np.random.default_rng(1)
    forgotten = np.arange(200) < 100
    found = [
        best_threshold(said(make_walks(rng, forgotten, effect=0.0, steps=5)), rng.permuted(forgotten))
        for _ in range(40)
    ]
    assert 0.52 < np.mean(found) < 0.57
    assert min(found) > 0.5


def test_the_best_threshold_is_the_best_over_both_rules() -> None:
    forgotten = np.array([True, True, False, False])
    says = np.zeros((2, 3, 4))
    says[1, 2] = [1, 0.5, 0, 0.5]
    assert best_threshold(says, forgotten) == 0.75
    assert best_threshold(np.zeros((2, 3, 4)), forgotten) == 0.5


def test_the_heat_map_counts_by_the_definition() -> None:
    forgotten = np.arange(14) < 5
    walks = make_walks(np.random.default_rng(6), forgotten, steps=3)
    found = heat_map(walks, forgotten)
    for a in range(3):
        for b in range(3):
            for name, group in (("forget", forgotten), ("unseen", ~forgotten)):
                counts = [
                    sum(bool(walks.target[g, k, 1 + a]) or not walks.target[g, k, 4 + b] for k in np.flatnonzero(group))
                    for g in range(2)
                ]
                assert found[f"heat.{name}"][a, b] == np.mean(counts)
    for way, name in enumerate(("under", "over")):
        for t in range(3):
            wanted = np.mean([walks.radius[g, k, way, t] for g in range(2) for k in range(14)])
            assert abs(found[f"heat.{name}_radius"][t] - wanted) < 1e-12


# --------------------------------------------------------------------------------------------- storing and joining


def cut(part: Walks | Posteriors, rows: slice) -> Walks | Posteriors:
    """Return a shard: the candidates ``rows`` of ``part``."""
    if isinstance(part, Posteriors):
        return Posteriors(part.shadow[:, rows], part.inside[:, rows], part.target[rows], part.queries[rows])
    return Walks(
        part.pseudo[:, :, rows],
        part.inside[..., rows],
        part.target[:, rows],
        part.confidence[:, rows],
        part.radius[:, rows],
        part.queries[rows],
    )


@pytest.mark.parametrize("kind", ["walks", "posteriors"])
def test_shards_joined_in_order_are_the_whole(kind: str) -> None:
    evidence, _ = make_evidence(7, candidates=11)
    whole = evidence.walks["apollo"] if kind == "walks" else evidence.posteriors
    parts = [cut(whole, rows) for rows in (slice(0, 4), slice(4, 5), slice(5, 11))]
    joined = join_walks(parts) if kind == "walks" else join_posteriors(parts)
    for field in dataclasses.fields(whole):
        np.testing.assert_array_equal(getattr(joined, field.name), getattr(whole, field.name))


@pytest.mark.parametrize("kind", ["walks", "posteriors"])
def test_arrays_of_evidence_are_read_back_as_they_were(kind: str) -> None:
    evidence, _ = make_evidence(8, candidates=5)
    whole = evidence.walks["apollo"] if kind == "walks" else evidence.posteriors
    arrays = to_arrays(whole, "part")
    assert all(name.startswith("part.") for name in arrays)
    back = walks_from(arrays, "part") if kind == "walks" else posteriors_from(arrays, "part")
    for field in dataclasses.fields(whole):
        assert getattr(back, field.name) is getattr(whole, field.name)
