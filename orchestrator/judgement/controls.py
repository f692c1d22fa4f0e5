"""Controls that several kinds of audit have: their names, and the rules by which they hold."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.rows import FAILED, FINDINGS, HELD, MISSING, NULLS, RATES, Control, Protects, State
from orchestrator.judgement.wording import capital, named


@dataclass(frozen=True)
class ControlName:
    """How a control is called: by its ``term`` in the field, and by a ``description``, "" where the term is plain."""

    term: str
    description: str = ""

    def row(self, protects: Protects, state: State, setting: str, why: str, **more: Any) -> Control:
        """Return the control of a setting as it came out."""
        told: dict[str, Any] = {"state": state, "setting": setting, "why": why, **more}
        return Control(name=self.term, description=self.description, protects=protects, **told)


PROMISED_RATES = ControlName("promised false-alarm rates")
DIRECTION = ControlName("direction of scores")
LEARNT = ControlName("members are learnt")
OWN_MODELS = ControlName("own models", "models trained by the plan")
AGREEMENT = ControlName("agreement with own models")
FIT = ControlName("fit of own models")
Told = tuple[str, float | None, float | None, float | None]
"""An attack, and its AUC with the ends of the interval."""


def backwards(auc: float | None, p_holm: float | None, level: float) -> bool:
    """Say whether members have lower scores than others: the AUC is below one half, also after Holm's correction."""
    return auc is not None and p_holm is not None and auc < 0.5 and p_holm <= 1.0 - level


def unlike_own(judge: str | None, given: Iterable[Told], own: Iterable[Told]) -> str | None:
    """Return why members of a given model do not stand out as those of own models do; "" if they do.

    ``given``, ``own``: what attacks see of the members of the given model, and of those of models of the plan's recipe,
    of which it is known who was trained on. It is told by the judge, or by the attack that sees most in own models
    where the judge has no result: their intervals must have a point in common. None where no attack has an AUC of both.
    """
    asked = {attack: (auc, low, high) for attack, auc, low, high in given}
    both = [
        (attack != judge, -low, high, attack, auc)
        for attack, auc, low, high in own
        if auc is not None and low is not None and high is not None and None not in asked.get(attack, (None,))
    ]
    if not both:
        return None
    _, least, most, attack, theirs = min(both)
    auc, low, high = asked[attack]
    assert auc is not None and low is not None and high is not None, "those without an interval were left out"
    if low <= most and high >= -least:
        return ""
    told = (
        f"members of the given model are told with AUC {auc:.3f} [{low:.3f}, {high:.3f}] by {attack}, those of own "
        f"models with {theirs:.3f} [{-least:.3f}, {most:.3f}]"
    )
    if low > most:
        return f"{told}: members and non-members differ by more than membership, or it was trained longer than they"
    return f"{told}: target.members does not name its training points, or its recipe is not the plan's"


def turned(rows: Iterable[tuple[str, float | None, float | None]], level: float) -> tuple[str, float] | None:
    """Return the attack, and its AUC, by which members stand out the other way round; None where they do not.

    ``rows``: attack, AUC and its corrected p-value. It is the one whose AUC is furthest from one half of those that
    differ from it, if that lies below.
    """
    differ = [(auc, attack) for attack, auc, p in rows if auc is not None and p is not None and p <= 1.0 - level]
    auc, attack = max(differ, key=lambda each: abs(each[0] - 0.5), default=(0.5, ""))
    return (attack, auc) if auc < 0.5 else None


def by_attack(
    name: ControlName,
    setting: str,
    areas: Mapping[str, Estimate],
    attacks: Collection[str],
    judges: Collection[str],
    why: Mapping[State, str],
    seen: Collection[str] | None = None,
) -> list[Control]:
    """Return a positive control of a setting, a row for each of the ``attacks`` whose null results it protects.

    ``areas``: the AUC of each attack at what must be found; ``why``: how it came out, by its state. It held for an
    attack whose interval lies above one half, or which is one of ``seen``; it is missing for one without an AUC. The
    rows of ``judges`` stand first, those without an AUC last, and of others those that see most: of some attacks the
    first is the one that decides (``rule.decisive``).
    """

    def state(attack: str) -> State:
        if attack not in areas:
            return MISSING
        held = areas[attack].above(0.5) if seen is None else attack in seen
        return HELD if held else FAILED

    def rank(attack: str) -> tuple[bool, bool, bool, float]:
        low = areas[attack].low if attack in areas else None
        return attack not in areas, attack not in judges, state(attack) != HELD, -(-math.inf if low is None else low)

    return [
        name.row(
            NULLS,
            state(attack),
            setting,
            why[state(attack)],
            attack=attack,
            lines="attack",
            evidence=areas.get(attack, Estimate()),
        )
        for attack in sorted(attacks, key=rank)
    ]


def directions(
    setting: str,
    rows: Sequence[tuple[str, Estimate, float | None]],
    level: float,
    held: str,
    failed: str,
    subject: str = "",
) -> list[Control]:
    """Return whether members stand out the other way round, by all attacks together and by each for itself.

    ``rows``: attack, AUC and its corrected p-value. Rows of attacks that differ most from one half stand first, so that
    the first of any attacks is the one by which ``turned`` tells of these.
    """

    def row(own: Sequence[tuple[str, Estimate, float | None]], lines: str) -> Control:
        odd = turned(((attack, auc.value, p) for attack, auc, p in own), level)
        areas = {attack: auc for attack, auc, _ in own}
        attack = odd[0] if odd else own[0][0] if lines == "attack" else None
        return DIRECTION.row(
            NULLS,
            FAILED if odd else HELD,
            setting,
            failed if odd else held,
            subject=subject,
            attack=attack,
            lines=lines,
            evidence=areas[odd[0]] if odd else Estimate(),
        )

    def rank(each: tuple[str, Estimate, float | None]) -> tuple[bool, float]:
        _, auc, p = each
        differs = auc.value is not None and p is not None and p <= 1.0 - level
        return not differs, -abs((0.5 if auc.value is None else auc.value) - 0.5)

    return [row(rows, "all"), *(row([each], "attack") for each in sorted(rows, key=rank))] if rows else []


def agreeing(setting: str, judge: str | None, given: Sequence[Told], own: Sequence[Told]) -> list[Control]:
    """Return whether members of a given model stand out as those of own models: by its judge, and by each attack.

    Nothing of attacks that say nothing of either.
    """
    found = []
    for attack, lines, asked in [(judge, "all", given), *((each[0], "attack", [each]) for each in given)]:
        why = unlike_own(attack, asked, [each for each in own if lines == "all" or each[0] == attack])
        if why is not None:
            whose = attack if lines == "attack" else None
            text = f"{capital(why)}." if why else "Members stand out as those of own models do."
            found.append(AGREEMENT.row(FINDINGS, FAILED if why else HELD, setting, text, attack=whose, lines=lines))
    return found


def promised(setting: str, void: Iterable[str]) -> Control:
    """Return whether attacks raise no more false alarms than they promise; ``void``: those that do, as reported."""
    if names := list(dict.fromkeys(void)):
        why = f"More false alarms than promised by {named(names)}: hit rates are void, AUCs stand."
        return PROMISED_RATES.row(RATES, FAILED, setting, why)
    return PROMISED_RATES.row(RATES, HELD, setting, "No attack raises more false alarms than it promises.")


def fitted(setting: str, unlike: Sequence[str]) -> Control:
    """Return whether models of the plan fit as the given one does; ``unlike``: how not."""
    why = f"{capital(unlike[0])}." if unlike else "Models trained by the plan fit as the given model does."
    return FIT.row(NULLS, FAILED if unlike else HELD, setting, why)
