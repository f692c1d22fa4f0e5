"""Controls that several kinds of audit have: their names, and the rules by which they hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from orchestrator.judgement.rows import FAILED, HELD, RATES, Control, Protects, State


@dataclass(frozen=True)
class ControlName:
    """How a control is called: by its ``term`` in the field, and by a ``description``, "" where the term is plain."""

    term: str
    description: str = ""

    def row(self, protects: Protects, state: State, setting: str, why: str, **more: Any) -> Control:
        """Return the control of a setting as it came out."""
        told: dict[str, Any] = {"state": state, "setting": setting, "why": why, **more}
        return Control(name=self.term, description=self.description, protects=protects, **told)


def of_lines(name: str, protects: Protects, failure: str = "") -> Control:
    """Return a control of the lines of a limit; ``failure``: how it failed, "" where it held."""
    return Control(name=name, protects=protects, state=FAILED if failure else HELD, setting="", why=failure)


PROMISED_RATES = ControlName("promised false-alarm rates")
DIRECTION = ControlName("direction of scores")
LEARNT = ControlName("members are learnt")
OWN_MODELS = ControlName("own models", "models trained by the plan")
FIT = ControlName("fit of own models")
Told = tuple[str, float | None, float | None, float | None]
"""An attack, and its AUC with the ends of the interval."""


def backwards(auc: float | None, p_holm: float | None, level: float) -> bool:
    """Say whether members have lower scores than others: the AUC is below one half, also after Holm's correction."""
    return auc is not None and p_holm is not None and auc < 0.5 and p_holm <= 1.0 - level


def not_learnt(judge: str | None, given: Iterable[Told], own: Iterable[Told]) -> str | None:
    """Return why a given model cannot have learnt its members as own models did; "" if it can.

    ``given``, ``own``: what attacks see of the members of the given model, and of those of models of the plan's recipe.
    It is told by the judge, or by the attack that sees most in own models where the judge has no result: its interval
    must lie above one half, or not below that of own models. A list that does not name the training points looks like a
    model that memorised none of them. None where nothing is seen in own models.
    """
    asked = {attack: (auc, low, high) for attack, auc, low, high in given}
    seen = [
        (attack != judge, -low, attack, auc)
        for attack, auc, low, _ in own
        if auc is not None and low is not None and low > 0.5 and attack in asked
    ]
    if not seen:
        return None
    _, least, attack, theirs = min(seen)
    auc, low, high = asked[attack]
    if auc is None or low is None or high is None or low > 0.5 or high >= -least:
        return ""
    return (
        f"members of the given model are told with AUC {auc:.3f} [{low:.3f}, {high:.3f}] by {attack}, those of own "
        f"models with {theirs:.3f}, at least {-least:.3f}: either target.members does not name its training points, or "
        "its recipe is not the plan's"
    )


def turned(rows: Iterable[tuple[str, float | None, float | None]], level: float) -> tuple[str, float] | None:
    """Return the attack, and its AUC, by which members stand out the other way round; None where they do not.

    ``rows``: attack, AUC and its corrected p-value. It is the one whose AUC is furthest from one half of those that
    differ from it, if that lies below.
    """
    differ = [(auc, attack) for attack, auc, p in rows if auc is not None and p is not None and p <= 1.0 - level]
    auc, attack = max(differ, key=lambda each: abs(each[0] - 0.5), default=(0.5, ""))
    return (attack, auc) if auc < 0.5 else None


def promise(void: Iterable[str]) -> Control:
    """Return the control that promised rates were kept; ``void``: the lines that did not keep theirs.

    Their own hit rates are void, and no number then; those of other lines stand.
    """
    lines = "; ".join(dict.fromkeys(void))
    return of_lines(PROMISED_RATES.term, RATES, f"not kept by {lines}: hit rates are void" if lines else "")
