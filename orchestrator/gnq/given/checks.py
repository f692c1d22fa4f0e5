"""Checks of a GNQ plan with a target, of the target's files, and of how these fit the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from audits.errors import BadInput, did_you_mean
from audits.gradients.validate import made_auditable
from audits.models import MODELS
from audits.targets.members import read_members
from audits.targets.weights import read_weights, with_weights
from audits.uniqueness.scores import MODES, needs_gram
from orchestrator.engine.plan.base import Rules, validated
from orchestrator.engine.plan.components import completed
from orchestrator.engine.plan.errors import PlanProblems, shown, under
from orchestrator.engine.plan.fits import build_without_numbers, facts_of, points_in
from orchestrator.engine.plan.wording import repeats
from orchestrator.gnq.given.plan import Audit, GivenPlan

UNREAD = ("split", "recipe", "defences")
"""Sections of a plan without a target: what they say is trained, and with a target nothing is."""


def checked(raw: Mapping[str, Any], notes: tuple[str, ...] = ()) -> GivenPlan:
    """Return the checked plan of a plain mapping; the model's settings are completed. No file is read."""
    if problems := unread(raw):
        raise PlanProblems(problems)
    plan = validated(GivenPlan, raw)
    settings, problems = completed(MODELS, plan.model.name, plan.model.settings, "model.name", "model.settings")
    problems += contradictions(plan)
    if problems:
        raise PlanProblems(problems)
    whole = plan.model_copy(update={"model": plan.model.model_copy(update={"settings": settings})})
    return whole.made_by(RULES, notes)


def unread(raw: Mapping[str, Any]) -> list[str]:
    """Return a line for each part of a plan without a target that stands beside one."""
    lines = [
        f"{name} is given, but with a target nothing is trained and nothing defended; leave {name} out"
        for name in UNREAD
        if name in raw
    ]
    section = raw.get("audit")
    known = Audit.model_fields
    if isinstance(section, Mapping) and lines:  # of a plan that was written for trained models
        lines += [
            f"audit.{name} is given, which an audit with a target does not have ({', '.join(known)}); leave it out"
            for name in section
            if name not in known
        ]
    return lines


def contradictions(plan: GivenPlan) -> list[str]:
    """Return one line per impossible combination: what it is and what to do."""
    modes, target = plan.audit.modes, plan.target
    lines = [
        f"audit.modes.{index} is {shown(name)}{did_you_mean(name, MODES)}; allowed: {', '.join(MODES)}"
        for index, name in enumerate(modes)
        if name not in MODES
    ]
    lines += [f"audit.modes: {name!r} is listed {count} times; once is enough" for name, count in repeats(modes)]
    if modes[0] in MODES and not needs_gram(modes[:1]):
        lines.append(f"audit.modes.0 is {modes[0]}, and the first mode ranks the points; begin with ridge or pinv")
    count = len(target.checkpoints)
    lines += [
        f"target.weights: {name!r} is listed {times} times; give each checkpoint once"
        for name, times in repeats(target.checkpoints)
    ]
    if target.steps is not None and (count < 2 or len(target.steps) != count):
        lines.append(
            f"target.steps has {len(target.steps)} numbers for {count} checkpoints in target.weights; give one for "
            "each of two or more, or leave it out"
        )
    elif target.steps is not None and list(target.steps) != sorted(set(target.steps)):
        lines.append(f"target.steps is {list(target.steps)}; the steps of checkpoints rise from one to the next")
    return lines


def weaknesses(plan: GivenPlan) -> tuple[str, ...]:
    """Return what will weaken the result."""
    if len(plan.target.checkpoints) > 1 and plan.target.steps is None:
        return (
            f"target.steps is not given: each of the {len(plan.target.checkpoints)} checkpoints counts once, whatever "
            "the number of steps between them; bits are then not those of the whole training",
        )
    return ()


def check_data(plan: GivenPlan, absent: bool) -> None:
    """Refuse a plan whose data or target are not there, or do not fit the model and each other."""
    facts = facts_of(plan.data, absent)
    if facts.points:
        read_members(plan.target.members, points_in(plan.data, facts))
    if facts.shape and (facts.classes or facts.present):
        architecture = plan.model.architecture()
        for file in plan.target.checkpoints:
            try:
                shaped = build_without_numbers(plan.model, facts.shape, len(facts.classes))
            except BadInput as error:
                raise BadInput(under("model", str(error))) from None
            found = read_weights(file, shaped)
        made_auditable(with_weights(architecture.build(facts.shape, len(facts.classes), seed=0), found.state))


RULES = Rules(checked, weaknesses)
