"""U-MIA and its oracle against scikit-learn: who teaches, who is judged, and by which folds."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import rankdata

from audits.apollo.attacks import ATTACKS
from audits.apollo.attacks.u_mia import ROWS, fit, thinned
from audits.apollo.attacks.u_mia_oracle import stratified
from audits.apollo.evidence import Evidence
from tests.audits.apollo.attacks.posteriors import TOLERANCE, K, M, seen_by
from tests.cases.simulations import fewer, sizes
from tests.cases.synthetic_evidence import make_evidence

if TYPE_CHECKING:
    from sklearn.svm import SVC


def machine(rows: np.ndarray, forgotten: np.ndarray) -> SVC:
    """Return the classifier of U-MIA, called by hand."""
    from sklearn.svm import SVC

    return SVC(C=3, kernel="rbf", gamma=1 / rows.shape[1], class_weight="balanced").fit(rows, forgotten)


def test_u_mia_on_shadows_is_an_svc_that_never_met_the_judged_model_or_point() -> None:
    evidence = seen_by("u_mia_shadow", 6, kept=True)
    seen = evidence.posterior()
    finding = ATTACKS["u_mia_shadow"]().judge(evidence)
    halves = ([0, 1, 2, 3], [4, 5, 6, 7])
    scores, nulls = np.empty((2, K)), np.empty((M, K))
    for g, (teach, judged) in enumerate((halves, halves[::-1])):
        for k in range(K):
            pairs = [
                (i, j) for i in teach for j in range(K) if j % 5 != k % 5 and (seen.inside[i, j] or seen.outside[i, j])
            ]
            svc = machine(
                np.exp(np.array([seen.shadow[pair] for pair in pairs], dtype=float)),
                np.array([seen.inside[pair] for pair in pairs]),
            )
            scores[g, k] = svc.decision_function(np.exp(seen.target[k : k + 1].astype(float)))[0]
            for i in judged:
                nulls[i, k] = svc.decision_function(np.exp(seen.shadow[i, k : k + 1].astype(float)))[0]
    np.testing.assert_allclose(finding.score, scores.mean(0), rtol=0, atol=TOLERANCE)
    wanted = [nulls[i, k] for half in halves[::-1] for i in half for k in range(K) if seen.outside[i, k]]
    np.testing.assert_allclose(finding.null, wanted, rtol=0, atol=TOLERANCE)
    for part, score in zip(finding.parts, scores, strict=True):
        np.testing.assert_allclose(part[0], score, rtol=0, atol=TOLERANCE)


def test_the_oracle_is_an_svc_on_the_truth_about_the_other_candidates() -> None:
    evidence = seen_by("u_mia_oracle", 7)
    seen, truth = evidence.posterior(), evidence.truth
    finding = ATTACKS["u_mia_oracle"]().judge(evidence)
    for own in stratified(truth):
        svc = machine(seen.target[~own].astype(float), truth[~own])
        margins = svc.decision_function(seen.target[own].astype(float))
        np.testing.assert_allclose(finding.score[own], (rankdata(margins) - 0.5) / len(margins), rtol=0, atol=TOLERANCE)
    np.testing.assert_array_equal(finding.null, finding.score[~truth])


@pytest.mark.long
@sizes(0.3)
def test_a_useless_oracle_is_at_chance(size: float) -> None:
    """Wide posteriors of few points: pooled distances of a useless fit give an AUC of .47."""
    from sklearn.metrics import roc_auc_score

    random, found = np.random.default_rng(3), []
    seen = make_evidence(9, 40, kinds=("posteriors",))[0].posterior()
    for _ in range(fewer(150, size)):
        logits = 8 * random.normal(size=(40, 10))
        target = (logits - np.log(np.exp(logits).sum(1, keepdims=True))).astype(np.float32)
        truth = random.permutation(np.arange(40) < 20)
        evidence = Evidence({"posteriors": dataclasses.replace(seen, target=target)}, truth)
        found.append(roc_auc_score(truth, ATTACKS["u_mia_oracle"]().judge(evidence).score))
    assert abs(np.mean(found) - 0.5) < 2.5 * np.std(found, ddof=1) / len(found) ** 0.5


def test_the_oracle_learns_nothing_from_retained_candidates() -> None:
    evidence = seen_by("u_mia_oracle")
    kept = np.arange(len(evidence.truth)) % 5 == 0
    truth, unseen = evidence.truth & ~kept, ~evidence.truth & ~kept
    one = ATTACKS["u_mia_oracle"]().judge(Evidence(evidence.parts, truth, unseen))
    seen = evidence.posterior()
    moved = dataclasses.replace(seen, target=np.where(kept[:, None], seen.target[::-1], seen.target))
    two = ATTACKS["u_mia_oracle"]().judge(Evidence({**evidence.parts, "posteriors": moved}, truth, unseen))
    np.testing.assert_array_equal(one.score[~kept], two.score[~kept])
    np.testing.assert_array_equal(one.null, one.score[unseen])


def test_the_oracle_finds_next_to_what_it_promises_by_construction() -> None:
    evidence = make_evidence(9, 100, kinds=ATTACKS["u_mia_oracle"].reads)[0]
    finding = ATTACKS["u_mia_oracle"]().judge(evidence)
    for rate in (0.01, 0.05, 0.3):
        found = finding.decide(rate)[~evidence.truth].mean()
        assert rate - 1 / len(finding.null) <= found <= rate  # a score counts itself among the null


def test_no_candidate_is_judged_by_its_own_truth() -> None:
    evidence = seen_by("u_mia_oracle", 8)
    one, two = (np.flatnonzero(evidence.truth == side)[0] for side in (True, False))  # first of each: the same fold
    swapped = evidence.truth.copy()
    swapped[[one, two]] = swapped[[two, one]]
    judge = ATTACKS["u_mia_oracle"]().judge
    before, after = (judge(Evidence(evidence.parts, truth)).score for truth in (evidence.truth, swapped))
    folds = [tuple(np.flatnonzero(own)) for own in stratified(evidence.truth)]
    assert {tuple(np.flatnonzero(own)) for own in stratified(swapped)} == set(folds)
    mates = next(list(own) for own in folds if one in own)
    assert two in mates
    np.testing.assert_array_equal(before[mates], after[mates])
    assert not np.array_equal(np.delete(before, mates), np.delete(after, mates))


def test_folds_hold_equal_shares_of_both_groups_and_every_candidate_once() -> None:
    truth = np.random.default_rng(0).random(53) < 0.3
    parted = stratified(truth)
    assert np.sum(parted, axis=0).tolist() == [1] * 53
    for group in (truth, ~truth):
        counts = [int(own[group].sum()) for own in parted]
        assert max(counts) - min(counts) <= 1


def test_rows_of_one_class_say_nothing() -> None:
    judge = fit(np.random.default_rng(0).normal(size=(6, 3)), np.zeros(6, dtype=bool))
    assert judge(np.ones((2, 4, 3))).tolist() == [[0.0] * 4] * 2


def test_many_rows_are_thinned_to_a_fixed_sample() -> None:
    assert thinned(ROWS).tolist() == list(range(ROWS))
    kept = thinned(ROWS + 500)
    assert len(np.unique(kept)) == ROWS and kept.max() >= ROWS
    np.testing.assert_array_equal(kept, thinned(ROWS + 500))
