"""The models that a GNQ audit judges: its targets, as they were trained and behind each defence."""

from __future__ import annotations

from functools import partial

from orchestrator.engine.published import Published
from orchestrator.gnq.design import GnqDesign
from orchestrator.gnq.plan import NONE


def published(design: GnqDesign) -> list[Published]:
    """Return the targets of all pools under every arm."""
    names = tuple(design.data.classes[index] for index in design.classes)
    targets = [model for model in design.models.values() if model.group == "target"]
    return [
        Published(
            f"target-{number}" if arm == NONE else f"{arm}-{number}",
            number,
            "train" if arm == NONE else arm,
            design.made(model, arm),
            design.plan.model,
            design.data,
            names,
            partial(design.build, 0),
        )
        for arm in design.plan.arms
        for number, model in enumerate(targets)
    ]
