"""Gradient inversion along training (arXiv 2003.14053, 1906.08935): does GNQ rank the points that come back best?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tune_spaces.gnq import FAMILIES, NOT_DEFENDED
from tune_spaces.registry import Settings, Sweep, sweep


def gradient_inversion(plan: Mapping[str, Any]) -> Settings:
    """Return few points a model, sought from their gradients without a defence: of a CNN with kinks and a smooth one.

    Setting ``mlp`` is the positive control: method analytic gives every point back from a first fully connected layer.
    A model that reads something else than images stands alone, and the data are then refused.
    """
    points, own = min(200, plan["split"]["train_size"]), plan["model"]
    few = {"split.train_size": points, "split.shadows": 8, "split.test": min(1000, plan["split"]["test"])}
    few |= {"recipe.epochs": 16, "recipe.batch_size": min(50, points), "audit.attacks": ["loss", "lira"]}
    few |= {"audit.checkpoints": 4, "audit.looks": "apart", "audit.in_batch": False}
    asked = plan["audit"]["gradient_inversion"] or {"points": 16, "looks": [0, 1, -1], "steps": 150}
    searches, cnn = ["dlg", "geiping"], {"channels": [8, 16], "hidden": 64}
    made: dict[str, tuple[dict[str, Any], list[str]]] = {
        "cnn": ({"name": "cnn", "settings": cnn}, searches),
        "cnn-tanh": ({"name": "cnn", "settings": {**cnn, "activation": "tanh"}}, searches),
        "mlp": ({"name": "mlp", "settings": {"hidden": [128, 128]}}, ["analytic"]),
    }
    if not any(own["name"] in family for family in FAMILIES):
        made = {own["name"]: (dict(own), searches)}
    return {
        name: {**NOT_DEFENDED, **few, "model": model, "audit.gradient_inversion": {**asked, "methods": methods}}
        for name, (model, methods) in made.items()
    }


sweep(
    Sweep(
        "gnq-gradient-inversion",
        "Points sought from their gradients along training, one by one and in batches, of a CNN with and without kinks",
        "gnq-fashion14",
        gradient_inversion,
        "Spearman of GNQ, ‖g‖² and loss with the SSIM of what comes back, beside controls",
        "whether GNQ ranks the points that gradients give back best",
    )
)
