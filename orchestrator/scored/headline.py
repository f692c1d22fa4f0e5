"""The numbers of judged scores that limits of ``--fail-above`` can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.judgement.controls import DIRECTION, backwards, promise
from orchestrator.judgement.lines import Control, Headline, Line

METRICS = ("auc", "auc_low", "tpr", "tpr_low")


def names(attacks: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the attacks of the files, which stand in the place of a plan."""
    return {"attack": attacks}


def lines(document: Mapping[str, Any]) -> list[Line]:
    """Return a line for each attack, its rates at the lowest promised one; the worst is sought among all."""
    first: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in document["table"]:
        first.setdefault((row["setting"], row["attack"]), row)
    return [Line((attack,), row, f"{setting}, {attack}", True) for (setting, attack), row in first.items()]


def controls(document: Mapping[str, Any], counted: Sequence[Line]) -> list[Control]:
    """Return the controls: that promised rates are kept, and that members have no lower scores than others.

    Where they have, nothing that is not found passes a limit; what is found stands.
    """
    wrong = "; ".join(
        f"{line.where} (AUC {line.values['auc']:.3f})"
        for line in counted
        if backwards(line.values["auc"], line.values["auc_p_holm"], document["level"])
    )
    text = f"members have lower scores than others by {wrong}: --lower-is-member?" if wrong else ""
    found = [Control(DIRECTION.term, text, "power")]
    if any(line.values.get("found_fpr_p") is not None for line in counted):
        found.append(promise(line.where for line in counted if line.void))
    return found


HEADLINE = Headline(
    example="auc=0.6", summary=METRICS, metrics=METRICS, parts=("attack",), names=names, lines=lines, controls=controls
)
"""Rates are those at the lowest promised false-positive rate of an attack."""
