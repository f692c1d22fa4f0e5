"""The models that a membership audit judges: its targets, or the one that it is given."""

from __future__ import annotations

from functools import partial

from orchestrator.engine.published import Published
from orchestrator.mia.design import MiaDesign


def published(design: MiaDesign) -> list[Published]:
    """Return the targets of all pools."""
    names = tuple(design.data.classes[index] for index in design.classes)
    targets = [model for model in design.models.values() if model.group == "target"]
    found = []
    for number, model in enumerate(targets):
        reference = design.trained(model)
        given = reference.stage == "given"
        found.append(
            Published(
                "given" if given else f"target-{number}",
                number,
                reference.stage,
                reference,
                design.model_of(model),
                design.data,
                names,
                partial(design.build, model, 0),
            )
        )
    return found
