"""Names of attacks and arms as a GNQ page, its verdict and its messages write them."""

from __future__ import annotations

import re

from orchestrator.gnq.result.rows import ArmRow
from orchestrator.report import words as shared
from orchestrator.report.words import ranking_words

NAMES = {
    "shadow_posterior": "shadow posteriors",
    "white_box": "white box",
    "loss": "loss threshold",
    "posteriors": "posteriors",
    "loss_gap": "loss outside − inside",
}


def words(name: str) -> str:
    """Return the name of an attack, an access level or an outcome as the report writes it."""
    return shared.words(name, NAMES)


def own_recipe(name: str) -> str:
    """Return what the name of an arm of DP-SGD says beside ε or noise, for a bracket: ``dp-8-opacus`` is (opacus)."""
    found = re.fullmatch(r"dp-(?:noise-)?[\d.]+(?:e[-+]\d+)?-(.+)", name)
    return f" ({found[1].replace('_', ' ')})" if found else ""


def arm_words(arm: ArmRow) -> str:
    """Return what an arm does, short enough to label a mark."""
    share = "" if arm.share is None else f"{arm.share * 100:.3g}\N{NO-BREAK SPACE}%"
    by = "at random" if arm.ranking == "random" else f"by {ranking_words(arm.ranking or '')}"
    match arm.method:
        case "none":
            return "no defence"
        case "remove":
            return f"{share} removed {by}"
        case "noise":
            return f"noise {arm.strength:g} on {share} {by}"
        case "dp_sgd":
            spent = arm.epsilon
            budget = "" if spent is None else f", ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{spent:.3g}"
            return f"DP-SGD{budget}{own_recipe(arm.arm)}"
    return arm.arm
