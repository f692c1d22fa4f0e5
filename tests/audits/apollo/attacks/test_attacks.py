"""Scores against slow definitions, thresholds at their exact level, and no attack sees more than its access."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.apollo.attacks import ATTACKS, Attack, Finding
from audits.apollo.attacks.surplus import surplus
from audits.apollo.evidence import KINDS, Evidence, Walks
from audits.apollo.evidence.parts import SHOWN
from audits.errors import BadInput
from audits.signals.confidence import scaled
from audits.statistics.conformal import decided, p_values
from tests.audits.apollo.attacks.rules import BY_ANOTHER_RULE
from tests.cases.families import as_one, thinned
from tests.cases.synthetic_evidence import evidence_for, make_evidence

LABELS = [name for name in ATTACKS if ATTACKS[name].access == "labels"]
BEYOND = [name for name in ATTACKS if ATTACKS[name].access != "labels"]
BLIND = [name for name in ATTACKS if ATTACKS[name].access != "oracle"]
ANSWERS_OF_SHADOWS = ("pseudo", "shadow", "original")


def other_answers(answers: np.ndarray) -> np.ndarray:
    """Return answers that differ from ``answers`` everywhere."""
    return ~answers if answers.dtype == bool else answers - 1


# -------------------------------------------------------------------------------------------------------- access


@as_one("name", BEYOND)
def test_an_attack_beyond_labels_refuses_evidence_of_labels(name: str) -> None:
    evidence = make_evidence(1)[0]
    labels = {kind: part for kind, part in evidence.parts.items() if part.access == "labels"}
    with pytest.raises(BadInput, match="within this attack's access"):
        ATTACKS[name]().judge(Evidence(labels, evidence.truth))


@pytest.mark.parametrize(
    ("access", "kind"),
    [("labels", "posteriors"), ("labels", "population"), ("posteriors", "logits"), ("oracle", "logits")],
)
def test_an_attack_that_reads_beyond_its_access_is_refused(access: str, kind: str) -> None:
    class Greedy(Attack):
        name, reads = "greedy", (kind,)

        def find(self, evidence: Evidence) -> Finding:
            raise AssertionError(evidence.part(kind))

    Greedy.access = access
    with pytest.raises(BadInput, match=f"no '{kind}' evidence"):
        Greedy().judge(make_evidence(1)[0])


@as_one("access", SHOWN)
def test_only_an_oracle_sees_the_truth_and_every_access_its_own_parts(access: str) -> None:
    evidence = make_evidence(1)[0]
    view = evidence.view(access)
    assert (view.truth is not None) == (access == "oracle")
    wanted = {
        "labels": {"labels"},
        "posteriors": {"labels", "posteriors"},
        "logits": {"labels", "posteriors", "logits"},
        "oracle": {"labels", "posteriors"},
    }[access]
    assert {part.access for part in view.parts.values()} == wanted
    assert all(view.parts[kind] is evidence.parts[kind] for kind in view.parts)


def test_an_oracle_without_the_truth_is_refused() -> None:
    evidence = make_evidence(1)[0]
    with pytest.raises(BadInput, match="needs the truth"):
        ATTACKS["u_mia_oracle"]().judge(Evidence(evidence.parts))


@as_one("name", ATTACKS)
def test_evidence_that_was_not_gathered_is_named(name: str) -> None:
    with pytest.raises(BadInput, match=f"no '{ATTACKS[name].reads[0]}' evidence was gathered"):
        ATTACKS[name]().judge(Evidence({}, np.ones(1, dtype=bool)))


@as_one("name", ATTACKS)
def test_a_finding_scores_every_candidate_and_says_what_it_cost(name: str) -> None:
    evidence = evidence_for(name, 1, candidates=22, steps=3)
    finding = ATTACKS[name]().judge(evidence)
    assert finding.score.shape == finding.queries.shape == (22,)
    assert finding.score.dtype == finding.null.dtype == np.float64
    wanted = sum(evidence.parts[kind].queries for kind in ATTACKS[name].reads)
    np.testing.assert_array_equal(finding.queries, wanted)


@pytest.mark.parametrize("name", thinned(ATTACKS, BY_ANOTHER_RULE))
def test_a_shadow_that_kept_a_candidate_speaks_for_neither_side(name: str) -> None:
    finding = ATTACKS[name]().judge(evidence_for(name, 3, models=8, kept=True))
    scrambled = evidence_for(name, 3, models=8, kept=True)
    moved = 0
    for part in scrambled.parts.values():
        arrays = part.arrays()
        for field in set(ANSWERS_OF_SHADOWS) & set(arrays) if "inside" in arrays else ():
            neither = ~arrays["inside"] & ~arrays["outside"]
            arrays[field][neither] = other_answers(arrays[field])[neither]
            moved += int(neither.sum())
    assert moved or all(KINDS[kind].reads == ("offline",) for kind in ATTACKS[name].reads)  # they train on no candidate
    again = ATTACKS[name]().judge(scrambled)
    np.testing.assert_array_equal(finding.score, again.score)
    np.testing.assert_array_equal(finding.null, again.null)


@pytest.mark.filterwarnings("ignore:invalid value")
@as_one("bad", [np.nan, np.inf])
@as_one("part", ["target", "shadow"])
def test_numbers_that_are_none_are_reported(part: str, bad: float) -> None:
    evidence = evidence_for("loss_threshold", 1)
    getattr(evidence.posterior(), part)[..., 3, :] = bad
    with pytest.raises(FloatingPointError, match="loss_threshold"):
        ATTACKS["loss_threshold"]().judge(evidence)


# ---------------------------------------------------------------------------------------------------- thresholds


def pools() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "continuous": rng.normal(size=499),
        "tied": rng.integers(0, 6, 400).astype(float),
        "two values": (rng.random(50) < 0.97).astype(float),
        "constant": np.full(30, 2.5),
        "two": np.array([1.0, 2.0]),
    }


def each_against_the_others(pool: np.ndarray, rate: float) -> np.ndarray:
    """The decision about every score of a pool in which all the others are the null: each is as likely the new one."""
    return np.array([decided(pool[i : i + 1], np.delete(pool, i), rate)[0] for i in range(len(pool))])


@as_one("kind", pools())
def test_exactly_the_promised_rate_of_new_scores_is_called_forgotten(kind: str) -> None:
    for rate in (0.0, 0.001, 0.05, 1 / 3, 0.999, 1.0):
        decision = each_against_the_others(pools()[kind], rate)
        assert abs(decision.mean() - rate) < 1e-12, rate
        assert decision.min() >= 0 and decision.max() <= 1


@settings(max_examples=20)
@given(
    st.lists(st.floats(-5, 5) | st.sampled_from([0.0, 1.0, 2.0]), min_size=2, max_size=60),
    st.floats(0, 1),
)
def test_the_promise_holds_and_decisions_are_monotone_on_any_scores(values: list[float], rate: float) -> None:
    pool = np.array(values)
    assert abs(each_against_the_others(pool, rate).mean() - rate) < 1e-12
    ordered = decided(np.sort(pool), pool, rate)
    assert (np.diff(ordered) >= 0).all()


def test_a_new_score_is_not_called_forgotten_as_if_it_were_one_of_the_null() -> None:
    null = np.arange(1200.0)  # .001 of 1 200 is 1.2: the largest, and the second largest one time in five
    assert decided(np.array([1200.0]), null, 0.001)[0] == 1.0
    assert abs(decided(np.array([1198.5]), null, 0.001)[0] - 0.201) < 1e-12
    assert decided(np.array([1197.5]), null, 0.001)[0] == 0.0


def test_decisions_agree_with_p_values() -> None:
    rng = np.random.default_rng(1)
    null, score = rng.integers(0, 50, 199).astype(float), rng.integers(-5, 60, 100).astype(float)
    for rate in (0.01, 0.05, 0.5):
        sure = decided(score, null, rate) == 1.0
        np.testing.assert_array_equal(sure, p_values(score, null) <= rate + 1e-12)


@pytest.mark.parametrize("name", BLIND)
def test_thresholds_read_no_answer_of_the_target(name: str) -> None:
    evidence, other = evidence_for(name, 2), evidence_for(name, 2)
    for part in other.parts.values():
        part.target[...] = other_answers(part.target)
    one, two = (ATTACKS[name]().judge(each) for each in (evidence, other))
    assert not np.array_equal(one.score, two.score)
    np.testing.assert_array_equal(one.null, two.null)


# ---------------------------------------------------------------------------------------- confidences and loss


def test_scaled_is_the_logit_of_the_confidence_on_moderate_logits() -> None:
    logits = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    y = torch.arange(50) % 4
    p = logits.softmax(1)[torch.arange(50), y].numpy()
    np.testing.assert_allclose(scaled(logits.log_softmax(1).numpy(), y.numpy()), np.log(p / (1 - p)), rtol=0, atol=1e-9)


def test_scaled_stays_finite_and_ordered_where_confidences_round_to_0_and_1() -> None:
    logits = torch.tensor([[900.0, 0.0, 0.0], [800.0, 0.0, 0.0], [0.0, 800.0, 0.0], [0.0, 900.0, 1.0]])
    found = scaled(logits.double().log_softmax(1).numpy(), np.zeros(4, dtype=np.int64))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, [900 - np.log(2), 800 - np.log(2), -800, -900], rtol=0, atol=1e-9)


def test_loss_threshold_is_the_targets_confidence() -> None:
    evidence = evidence_for("loss_threshold", 3)
    seen, finding = evidence.posterior(), ATTACKS["loss_threshold"]().judge(evidence)
    p = np.exp(seen.target.astype(float))[np.arange(40), seen.labels]
    np.testing.assert_allclose(finding.score, np.log(p / (1 - p)), rtol=0, atol=1e-4)
    assert sorted(finding.null) == sorted(scaled(seen.shadow, seen.labels)[seen.outside])


def test_label_gap_by_hand() -> None:
    pseudo = np.zeros((2, 1, 3, 3), dtype=bool)
    pseudo[0, 0, :, 0] = [True, False, True]
    pseudo[1, 0, :, 0] = [False, True, True]
    inside = np.array([[[True, False, False]], [[False, True, False]]])
    target = np.zeros((2, 3, 3), dtype=bool)
    target[:, :, 0] = [True, False, True]
    blank = np.zeros((2, 3, 2, 1))
    walks = Walks(pseudo, inside, ~inside, target, blank, blank, np.ones(3, dtype=np.int32))
    finding = ATTACKS["label_gap"]().judge(Evidence({"point": walks}))
    assert finding.score.tolist() == [1.0, 0.0, 1.0]
    assert finding.null.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert finding.queries.tolist() == [1, 1, 1]


@pytest.mark.parametrize(("name", "kind"), [("apollo_offline", "offline"), ("apollo_no_fit", "apollo")])
def test_without_a_fit_the_score_is_the_share_of_true_labels_above_the_expected_one(name: str, kind: str) -> None:
    evidence = evidence_for(name, 4, candidates=6, steps=2)
    walks = evidence.walk(kind)
    finding = ATTACKS[name]().judge(evidence)
    for k in range(6):
        parts = [walks.target[g, k].mean() - walks.confidence[g, k].mean() for g in range(2)]
        assert abs(finding.score[k] - np.mean(parts)) < 1e-12
    wanted = [
        walks.pseudo[g, i, k].mean() - walks.confidence[g, k].mean()
        for g in range(2)
        for i in range(4)
        for k in range(6)
        if walks.outside[g, i, k]
    ]
    np.testing.assert_allclose(finding.null, wanted, rtol=0, atol=1e-12)
    assert surplus(np.array([[True, False]]), np.array([0.2])) == pytest.approx([0.3])
