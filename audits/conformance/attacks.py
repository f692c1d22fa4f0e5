"""Checks of every attack, on made-up answers of models with a known effect of membership."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from audits.apollo.attacks.base import Attack as ApolloAttack
from audits.apollo.evidence import KINDS, Evidence
from audits.apollo.evidence.parts import SHOWN
from audits.conformance.apollo_evidence import make_evidence
from audits.conformance.gnq_answers import LABELS, POINTS, pool
from audits.conformance.mia_cases import ASKED, made_up
from audits.conformance.outcome import must
from audits.conformance.tmia_answers import synthetic_answers
from audits.errors import BadInput
from audits.gnq.attacks.base import PoolAttack
from audits.mia.answers import Case
from audits.mia.attacks.base import Attack as MiaAttack
from audits.tmia.answers import JUDGED, Answers
from audits.tmia.attacks.base import Attack as TmiaAttack
from audits.tmia.attacks.base import JudgeSettings

Result = dict[str, NDArray[Any]]
ACCESSES = ("labels", "posteriors", "logits", "oracle", "white_box")
BETA = 0.1


@dataclass(frozen=True)
class AttackCase:
    """An attack on made-up inputs: ``make`` returns them, ``judge`` scores them, ``shown`` leaves or changes what the
    attack must not see, ``without`` takes away what it reads; ``points`` it scores in each row."""

    cls: type[Any]
    make: Callable[[], Any]
    judge: Callable[[Any], Result]
    shown: Callable[[Any], Any]
    without: Callable[[Any], Any] | None
    points: int


def case_of(attack: type[Any]) -> AttackCase:
    """Return the case of an attack of any audit; raises BadInput for what is none."""
    if issubclass(attack, ApolloAttack):
        return apollo(attack)
    if issubclass(attack, PoolAttack):
        return gnq(attack)
    if issubclass(attack, TmiaAttack):
        return tmia(attack)
    if issubclass(attack, MiaAttack):
        return mia(attack)
    raise BadInput(f"{attack.__name__} is no attack of an audit; derive it from the Attack of one")


def apollo(attack: type[ApolloAttack]) -> AttackCase:
    """Return an attack of Apollo on synthetic evidence."""

    def judge(evidence: Evidence) -> Result:
        found = attack().judge(evidence)
        return {"score": found.score, "null": found.null, "queries": found.queries}

    def shown(evidence: Evidence) -> Evidence:
        parts = {kind: part for kind, part in evidence.parts.items() if part.access in SHOWN[attack.access]}
        assert evidence.truth is not None, "made-up evidence comes with the truth"
        return Evidence(parts, evidence.truth if attack.access == "oracle" else ~evidence.truth)

    def without(evidence: Evidence) -> Evidence:
        return Evidence({}, evidence.truth)

    return AttackCase(attack, lambda: make_evidence(1, 22)[0], judge, shown, without, 22)


def gnq(attack: type[PoolAttack]) -> AttackCase:
    """Return an attack of GNQ on random answers of a pool."""

    def judge(given: Any) -> Result:
        targets, shadows = given
        return {"score": attack().scores(targets, shadows, LABELS, "contributors", 3)}

    def shown(given: Any) -> Any:
        targets, shadows = given
        features = targets.features if attack.access == "white_box" else None
        return replace(targets, half=targets.half[::-1], kept=targets.kept[::-1], features=features), shadows

    missing = (lambda given: (given[0], None)) if attack.shadowed else None
    return AttackCase(attack, lambda: (pool(1, 1, gap=1.0), pool(4, 2, gap=1.0)), judge, shown, missing, POINTS)


def tmia(attack: type[TmiaAttack]) -> AttackCase:
    """Return an attack of TMIA on made-up answers."""

    def judge(answers: Answers) -> Result:
        found = attack().judge(answers, JudgeSettings(BETA), seed=5)
        return {
            f"{part} {group}": values[group]
            for part, values in (("score", found.statistic), ("decision", found.decision))
            for group in JUDGED
        }

    def shown(answers: Answers) -> Answers:
        posteriors = answers.known_posteriors()
        assert answers.truth is not None, "made-up answers come with the truth"
        match attack.access:
            case "posteriors":
                return replace(answers, labels=None, truth=~answers.truth, white_box=None)
            case "oracle":
                return replace(answers, labels=None, white_box=None)
            case "white_box":
                return replace(answers, truth=~answers.truth)
        turned = {group: values[..., ::-1] for group, values in posteriors.posterior.items()}
        return replace(answers, posteriors=replace(posteriors, posterior=turned))

    return AttackCase(attack, lambda: synthetic_answers(1).answers, judge, shown, lambda answers: Answers(), 60)


def mia(attack: type[MiaAttack]) -> AttackCase:
    """Return a membership attack on an ordinary model, on made-up answers of a pool's models."""

    def judge(case: Case) -> Result:
        found = attack().judge(case)
        return {"score": found.score, "p": found.p_values(), "decision": found.decide(0.1)}

    def shown(case: Case) -> Case:
        """Answers beyond the access are turned round; the truth about judged models is nowhere in a case."""
        if attack.access == "labels":
            posteriors = case.known_posteriors(attack.name)
            return replace(case, posteriors=posteriors.take(slice(None, None, -1)), half=case.half[::-1])  # type: ignore[index]
        return replace(case, distances=None)

    def without(case: Case) -> Case:
        return replace(case, posteriors=None, distances=None)

    labels_are_there = attack.access == "labels" and not attack.subset
    missing, points = None if labels_are_there else without, ASKED if attack.subset else 60
    return AttackCase(attack, lambda: made_up(1).case, judge, shown, missing, points)


def access_is_declared(case: AttackCase) -> None:
    """The access that it needs is declared, and what it reads lies within it."""
    must(case.cls.access in ACCESSES, f"access is {case.cls.access!r}; allowed: {', '.join(ACCESSES)}")
    if issubclass(case.cls, ApolloAttack):
        beyond = [kind for kind in case.cls.reads if KINDS[kind].part.access not in SHOWN[case.cls.access]]
        must(bool(case.cls.reads) and not beyond, f"it reads {', '.join(beyond) or 'nothing'}; declare what it takes")


def points_are_scored(case: AttackCase) -> None:
    """Every point has a finite score, the same whatever the global generators, and the inputs stay as they were."""
    given = case.make()
    before = arrays_in(given)
    found = []
    for seed in (1, 2):
        np.random.seed(seed)  # the generator that no attack may read
        torch.manual_seed(seed)
        found.append(case.judge(given))
    for part, values in found[0].items():
        must(same(values, found[1][part]), f"{part} differs between two runs; draw from generators of the given seed")
        if part.startswith("score"):
            whole = values.shape[-1] == case.points and values.dtype == np.float64 and bool(np.isfinite(values).all())
            must(whole, f"{part} is {values.dtype} of shape {values.shape}; return finite float64, one for each point")
    kept = all(same(one, other) for one, other in zip(before, arrays_in(given), strict=True))
    must(bool(before) and kept, "what it was given has changed; work on copies")


def access_is_kept(case: AttackCase) -> None:
    """Neither the truth nor what lies beyond its access moves it."""
    given = case.make()
    usual, again = case.judge(given), case.judge(case.shown(given))
    for part, values in usual.items():
        must(same(values, again[part]), f"{part} depends on what its access does not show; declare the access it takes")


def what_is_missing_is_named(case: AttackCase) -> None:
    """What it reads and was not given is named in one line."""
    if case.without is None:
        must(not getattr(case.cls, "shadowed", False), "it takes no shadows, but says that it does")
        return
    try:
        case.judge(case.without(case.make()))
    except BadInput as error:
        must("\n" not in str(error), "the message has several lines; raise BadInput with one")
    else:
        must(False, "it gives scores without what it says that it reads; read it, or take it out of reads")


CHECKS: tuple[Callable[[AttackCase], None], ...] = (
    access_is_declared,
    points_are_scored,
    access_is_kept,
    what_is_missing_is_named,
)


def same(one: NDArray[Any], two: NDArray[Any]) -> bool:
    """Return whether two arrays are equal, missing values included."""
    return one.shape == two.shape and bool(np.array_equal(one, two, equal_nan=one.dtype.kind == "f"))


def arrays_in(given: Any) -> list[NDArray[Any]]:
    """Return copies of all arrays of dataclasses, mappings and tuples, in order."""
    if isinstance(given, np.ndarray):
        return [given.copy()]
    if is_dataclass(given):
        return [array for field in fields(given) for array in arrays_in(getattr(given, field.name))]
    if isinstance(given, Mapping):
        return [array for value in given.values() for array in arrays_in(value)]
    return [array for value in given for array in arrays_in(value)] if isinstance(given, tuple) else []
