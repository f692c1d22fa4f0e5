"""Every attack of every audit: access, repeatability, and nothing read that it must not see. One table, one body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from audits.apollo.attacks import ATTACKS as APOLLO
from audits.apollo.evidence import KINDS, Evidence
from audits.apollo.evidence.parts import SHOWN
from audits.errors import BadInput
from audits.gnq.attacks import POOL_ATTACKS
from audits.mia.answers import Case
from audits.mia.attacks import MIA_ATTACKS
from audits.tmia.answers import Answers
from audits.tmia.attacks import ATTACKS as TMIA
from audits.tmia.attacks import JUDGED, JudgeSettings
from tests.audits.gnq.random_pools import LABELS, POINTS, pool
from tests.audits.mia.made_up_cases import ASKED, made_up
from tests.audits.tmia.made_up_answers import BETA, synthetic_answers
from tests.cases.synthetic_evidence import make_evidence

Result = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Attacked:
    """One attack on made-up inputs: ``make`` returns them, ``judge`` scores them, ``shown`` leaves or changes what the
    attack must not see, ``without`` takes away what it reads; ``points`` it scores in each row."""

    cls: type[Any]
    make: Callable[[], Any]
    judge: Callable[[Any], Result]
    shown: Callable[[Any], Any]
    without: Callable[[Any], Any] | None
    points: int


def apollo(name: str) -> Attacked:
    def judge(evidence: Evidence) -> Result:
        found = APOLLO[name]().judge(evidence)
        return {"score": found.score, "null": found.null, "queries": found.queries}

    def shown(evidence: Evidence) -> Evidence:
        access = APOLLO[name].access
        parts = {kind: part for kind, part in evidence.parts.items() if part.access in SHOWN[access]}
        assert evidence.truth is not None
        return Evidence(parts, evidence.truth if access == "oracle" else ~evidence.truth)

    def without(evidence: Evidence) -> Evidence:
        return Evidence({}, evidence.truth)

    return Attacked(APOLLO[name], lambda: make_evidence(1, 22)[0], judge, shown, without, 22)


def gnq(name: str) -> Attacked:
    def judge(given: Any) -> Result:
        targets, shadows = given
        return {"score": POOL_ATTACKS[name]().scores(targets, shadows, LABELS, "contributors", 3)}

    def shown(given: Any) -> Any:
        targets, shadows = given
        features = targets.features if POOL_ATTACKS[name].access == "white_box" else None
        return replace(targets, half=targets.half[::-1], kept=targets.kept[::-1], features=features), shadows

    missing = (lambda given: (given[0], None)) if POOL_ATTACKS[name].shadowed else None
    return Attacked(
        POOL_ATTACKS[name], lambda: (pool(1, 1, gap=1.0), pool(4, 2, gap=1.0)), judge, shown, missing, POINTS
    )


def tmia(name: str) -> Attacked:
    def judge(answers: Answers) -> Result:
        found = TMIA[name]().judge(answers, JudgeSettings(BETA), seed=5)
        return {
            f"{part} {group}": values[group]
            for part, values in (("score", found.statistic), ("decision", found.decision))
            for group in JUDGED
        }

    def shown(answers: Answers) -> Answers:
        posteriors = answers.known_posteriors()
        assert answers.truth is not None
        match TMIA[name].access:
            case "posteriors":
                return replace(answers, labels=None, truth=~answers.truth, white_box=None)
            case "oracle":
                return replace(answers, labels=None, white_box=None)
            case "white_box":
                return replace(answers, truth=~answers.truth)
        turned = {group: values[..., ::-1] for group, values in posteriors.posterior.items()}
        return replace(answers, posteriors=replace(posteriors, posterior=turned))

    return Attacked(TMIA[name], lambda: synthetic_answers(1).answers, judge, shown, lambda answers: Answers(), 60)


def mia(name: str) -> Attacked:
    def judge(case: Case) -> Result:
        found = MIA_ATTACKS[name]().judge(case)
        return {"score": found.score, "p": found.p_values(), "decision": found.decide(0.1)}

    def shown(case: Case) -> Case:
        """Answers beyond the access are turned round; the truth about judged models is nowhere in a case."""
        if MIA_ATTACKS[name].access == "labels":
            posteriors = case.known_posteriors(name)
            return replace(case, posteriors=posteriors.take(slice(None, None, -1)), half=case.half[::-1])  # type: ignore[index]
        return replace(case, distances=None)

    def without(case: Case) -> Case:
        return replace(case, posteriors=None, distances=None)

    missing = None if name == "label_gap" else without
    return Attacked(
        MIA_ATTACKS[name], lambda: made_up(1).case, judge, shown, missing, ASKED if MIA_ATTACKS[name].subset else 60
    )


AUDITS = {"apollo": (APOLLO, apollo), "gnq": (POOL_ATTACKS, gnq), "mia": (MIA_ATTACKS, mia), "tmia": (TMIA, tmia)}
EVERY = [(audit, name) for audit, (table, _) in AUDITS.items() for name in table]


@pytest.fixture(params=EVERY, ids=["-".join(pair) for pair in EVERY])
def attacked(request: pytest.FixtureRequest) -> Attacked:
    audit, name = request.param
    return AUDITS[audit][1](name)


def arrays_in(given: Any) -> list[NDArray[Any]]:
    """Return copies of all arrays of dataclasses, mappings and tuples, in order."""
    if isinstance(given, np.ndarray):
        return [given.copy()]
    if is_dataclass(given):
        return [array for field in fields(given) for array in arrays_in(getattr(given, field.name))]
    if isinstance(given, Mapping):
        return [array for value in given.values() for array in arrays_in(value)]
    return [array for value in given for array in arrays_in(value)] if isinstance(given, tuple) else []


def test_access_is_declared(attacked: Attacked) -> None:
    assert attacked.cls.access in ("labels", "posteriors", "logits", "oracle", "white_box")


def test_evidence_that_an_attack_of_apollo_reads_exists_within_its_access() -> None:
    for name in APOLLO:
        assert APOLLO[name].reads
        assert all(KINDS[kind].part.access in SHOWN[APOLLO[name].access] for kind in APOLLO[name].reads)


def test_every_point_has_a_score_whatever_the_global_generators_and_inputs_stay(attacked: Attacked) -> None:
    given = attacked.make()
    before = arrays_in(given)
    found = []
    for seed in (1, 2):
        np.random.seed(seed)  # the generator that no attack may read
        torch.manual_seed(seed)
        found.append(attacked.judge(given))
    first, second = found
    for part, values in first.items():
        np.testing.assert_array_equal(values, second[part], err_msg=part)
        if part.startswith("score"):
            assert values.shape[-1] == attacked.points and values.dtype == np.float64 and np.isfinite(values).all()
    assert before
    for one, other in zip(before, arrays_in(given), strict=True):
        np.testing.assert_array_equal(one, other)


def test_neither_the_truth_nor_what_lies_beyond_its_access_moves_an_attack(attacked: Attacked) -> None:
    given = attacked.make()
    usual, again = attacked.judge(given), attacked.judge(attacked.shown(given))
    for part, values in usual.items():
        np.testing.assert_array_equal(values, again[part], err_msg=part)


def test_what_an_attack_reads_and_was_not_given_is_named_in_a_line(attacked: Attacked) -> None:
    if attacked.without is None:
        assert not getattr(attacked.cls, "shadowed", False)  # the loss of a target takes no shadows, a label nothing
        return
    with pytest.raises(BadInput) as caught:
        attacked.judge(attacked.without(attacked.make()))
    assert "\n" not in str(caught.value)
