"""The models that an Apollo audit judges: its targets as they were trained, and after each unlearning."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.apollo.design import ApolloDesign
from orchestrator.engine.published import Published

if TYPE_CHECKING:
    from audits.apollo.design.partition import Member
    from orchestrator.engine.jobs.job import Reference


def published(design: ApolloDesign) -> list[Published]:
    """Return the targets before and after each method; of a given target what was given."""
    return [
        Published(
            name,
            number,
            made_by,
            reference,
            design.model_of(member),
            design.data,
            design.data.classes,
            partial(design.model_of(member).architecture().build, design.data.shape, len(design.data.classes), 0),
        )
        for number, member in enumerate(design.targets)
        for name, made_by, reference in versions(design, number, member)
    ]


def versions(design: ApolloDesign, number: int, member: Member) -> Iterator[tuple[str, str, Reference]]:
    """Yield name, method and place of each model of a target; ``identity`` is the model before unlearning itself."""
    for entry in design.plan.unlearning:
        if (before := design.before(member, entry)) is not None:
            given = before.stage == "given"
            yield "given-original" if given else f"target-{number}", before.stage, before
    for entry in design.plan.unlearning:
        if entry.method == "identity":
            continue
        if design.is_given(member, entry):
            yield "given", "given", design.unlearned(member, entry)
        else:
            yield f"{entry.label}-{number}", entry.label, design.unlearned(member, entry)
