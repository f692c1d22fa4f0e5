"""The search for settings of unlearning methods: as close to retraining as each method gets, in accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tune_spaces.registry import Settings, Sweep, sweep

FACTORS = (0.125, 0.1875, 0.25, 0.375, 0.5, 0.75, 1.0, 1.5)

GRIDS: Mapping[str, Mapping[str, Any]] = {
    "gradient_ascent": {"learning_rate": 0.06, "epochs": 10},
    "finetune": {"learning_rate": 0.08, "epochs": 10},
    "bad_teacher": {"learning_rate": 0.16, "epochs": 10},
    "scrub": {"learning_rate": 0.004, "epochs": 6},
    "salun": {"learning_rate": 0.16, "epochs": 10, "fraction": 0.5},
    "sfr_on": {"learning_rate": 0.04, "iterations": 300},
    "random_label": {"learning_rate": 0.16, "epochs": 10},
}
"""Method → the rate that its ladder is built around (CNNs prefer less than small MLPs), and what stays fixed."""


def ladders(plan: Mapping[str, Any]) -> Settings:
    """Return one setting for each method × learning rate, the controls beside it."""
    return {
        f"{method} lr={rate:.3g}": {"unlearning": [{"method": "identity"}, entry, {"method": "retrain"}]}
        for method, rate, entry in variants()
    }


def variants() -> Iterator[tuple[str, float, dict[str, Any]]]:
    """Yield (method, learning rate, entry of a plan) of all ladders."""
    for method, middle in GRIDS.items():
        for factor in FACTORS:
            rate = middle["learning_rate"] * factor
            yield method, rate, {"method": method, **middle, "learning_rate": rate}


sweep(
    Sweep(
        name="unlearning-presets",
        title="Learning rates of every unlearning method, by distance to retraining in accuracy",
        base="apollo-fashion14",
        varies=ladders,
        metric="distance to retrain",
        makes="the presets of the unlearning methods",
        measures="utility",
    )
)
