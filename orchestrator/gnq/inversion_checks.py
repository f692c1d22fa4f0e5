"""Checks of what a GNQ plan seeks in models, and from gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from audits.errors import BadInput, did_you_mean
from audits.gnq.gradient_inversion.first_layer import first_layer
from audits.gnq.gradient_inversion.settings import ANALYTIC, METHODS
from orchestrator.engine.plan.errors import shown
from orchestrator.engine.plan.wording import repeats
from orchestrator.gnq.design import look_steps

if TYPE_CHECKING:
    from audits.data.dataset import Description
    from orchestrator.gnq.plan import GnqPlan


def inversion_problems(plan: GnqPlan) -> list[str]:
    """Return what is wrong with the choice of images that are sought in models."""
    asked = plan.audit.inversion
    if asked is None:
        return []
    lines = []
    if asked.images > plan.split.train_size:
        lines.append(
            f"audit.inversion.images is {asked.images}; allowed: 1 to {plan.split.train_size}, the points that a "
            "target trains on (split.train_size)"
        )
    if "ridge" not in plan.audit.modes:
        lines.append("audit.inversion seeks points by gnq_log, which reads mode ridge; add it to audit.modes")
    return lines


def gradient_inversion_problems(plan: GnqPlan) -> list[str]:
    """Return what is wrong with the choice of points, batches, methods and checkpoints of gradient inversion."""
    asked, place = plan.audit.gradient_inversion, "audit.gradient_inversion"
    if asked is None:
        return []
    lines = []
    if not 3 <= asked.points <= plan.split.train_size:
        lines.append(
            f"{place}.points is {asked.points}; allowed: 3, below which no rank correlation says anything, to "
            f"{plan.split.train_size}, the points that a target trains on (split.train_size)"
        )
    lines += [
        f"{place}.batches: {batch} does not divide {place}.points ({asked.points}); choose sizes that do"
        for batch in asked.batches
        if asked.points % batch
    ]
    for index, name in enumerate(asked.methods):
        if name not in METHODS:
            like, known = did_you_mean(name, list(METHODS)), ", ".join(METHODS)
            lines.append(f"{place}.methods.{index} is {shown(name)}{like}; allowed: {known}")
    if set(asked.methods) == {ANALYTIC} and 1 not in asked.batches:
        lines.append(f"{place}.methods is analytic alone, which reads single points; add 1 to {place}.batches")
    for field in ("batches", "methods"):
        twice = repeats([str(each) for each in getattr(asked, field)])
        lines += [f"{place}.{field}: {name!r} is listed {count} times; once is enough" for name, count in twice]
    lines += unknown_looks(plan)
    if "ridge" not in plan.audit.modes:
        lines.append(f"{place} asks what GNQ in mode ridge foretells; add ridge to audit.modes")
    return lines


def unknown_looks(plan: GnqPlan) -> list[str]:
    """Return what is wrong with the checkpoints at which gradients are inverted."""
    asked, place = plan.audit.gradient_inversion, "audit.gradient_inversion.looks"
    assert asked is not None
    count = len(look_steps(plan))
    known = [look for look in asked.looks if -count <= look < count]
    lines = [
        f"{place}: {look} is no checkpoint; there are {count} (audit.checkpoints and the beginning): allowed are "
        f"{-count} to {count - 1}"
        for look in asked.looks
        if look not in known
    ]
    twice = repeats([str(look % count) for look in known])
    lines += [f"{place}: checkpoint {name} is listed {times} times; once is enough" for name, times in twice]
    if plan.audit.looks == "together" and (between := [look for look in known if look % count not in (0, count - 1)]):
        lines.append(
            f"{place}: {between[0]} lies between the ends of training, whose weights are kept only with looks apart; "
            "set audit.looks to apart, or ask for 0 and -1 alone"
        )
    return lines


def reads_first_layer(plan: GnqPlan, facts: Description) -> None:
    """Refuse method analytic for an architecture that does not begin with a fully connected layer with a bias."""
    asked = plan.audit.gradient_inversion
    if asked is None or ANALYTIC not in asked.methods:
        return
    if first_layer(plan.model.architecture().build(facts.shape, len(facts.classes), seed=0)) is None:
        raise BadInput(
            f"audit.gradient_inversion.methods: analytic reads a first fully connected layer with a bias, which model "
            f"{plan.model.name} has not; take an mlp, or the methods dlg and geiping"
        )
