"""Experiments on the membership of ordinary models: what an attack costs, and what makes a model leak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tune_spaces.registry import Settings, Sweep, sweep

SHADOWS = (4, 8, 16, 32, 64)
EPOCHS = (3, 10, 30, 100)


def shadows(plan: Mapping[str, Any]) -> Settings:
    """Return growing numbers of shadows; those of a smaller number are the first of a larger one, trained once."""
    return {f"shadows={count}": {"split.shadows": count} for count in SHADOWS}


def epochs(plan: Mapping[str, Any]) -> Settings:
    """Return shorter and longer trainings of targets and shadows alike."""
    return {f"epochs={count}": {"recipe.epochs": count} for count in EPOCHS}


sweep(
    Sweep(
        name="mia-shadows",
        title="Membership of an ordinary model: power of each attack against the number of shadows.",
        base="mia-fashion14",
        varies=shadows,
        metric="rmia.auc",
        makes="a figure: AUC and TPR by the number of shadows",
    )
)

sweep(
    Sweep(
        name="mia-epochs",
        title="Membership of an ordinary model: leak against the length of its training.",
        base="mia-fashion14",
        varies=epochs,
        metric="rmia.auc",
        makes="a figure: AUC and TPR by epochs, beside the gap of accuracies",
    )
)
