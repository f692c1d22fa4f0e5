"""Defences against Apollo as a trade: what they take from the attacker beside what they cost in accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from tune_spaces.registry import Settings, Sweep, sweep

DROPOUT = (0.0, 0.5, 0.75)
SMOOTHING = (0.0, 0.3)
EPOCHS = (10, 30, 60)


def defences(plan: Mapping[str, Any]) -> Settings:
    """Return Dropout × label smoothing × epochs of training; shadows are defended as the target is."""
    settings: dict[str, dict[str, Any]] = {}
    for rate, share, epochs in product(DROPOUT, SMOOTHING, EPOCHS):
        changes: dict[str, Any] = {"recipe.epochs": epochs}
        changes |= {"model.settings.dropout": rate} if rate else {}
        changes |= {"recipe.label_smoothing": share} if share else {}
        settings[f"dropout={rate:g}, smoothing={share:g}, epochs={epochs}"] = changes
    return settings


sweep(
    Sweep(
        name="apollo-defences",
        title="Dropout × label smoothing × epochs as a trade of accuracy against Apollo",
        base="apollo-defences",
        varies=defences,
        metric="gradient_ascent.apollo.auc",
        makes="the Pareto front of docs/results/apollo-experiments.md",
        trade=("gradient_ascent.apollo.auc", "gradient_ascent.utility.test_accuracy"),
    )
)
