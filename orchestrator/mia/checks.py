"""Checks that look at more than one field of a membership plan, and at its data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from audits.errors import BadInput, did_you_mean
from audits.mia.attacks import MIA_ATTACKS
from audits.models import MODELS
from orchestrator.engine.plan.base import Rules, validated
from orchestrator.engine.plan.components import completed, unusable
from orchestrator.engine.plan.errors import PlanProblems, shown
from orchestrator.engine.plan.fits import check_build, class_indices, facts_of
from orchestrator.engine.plan.shadows import unlike_shadows
from orchestrator.engine.plan.teams import team_problems
from orchestrator.engine.plan.wording import repeats
from orchestrator.mia.given_checks import as_given, check_target, target_problems
from orchestrator.mia.plan import NULLS_NEEDED, MiaPlan

if TYPE_CHECKING:
    from audits.data.dataset import Description

FEW_SHADOWS = 8


def contradictions(plan: MiaPlan) -> list[str]:
    """Return one line per impossible combination: what it is and what to do."""
    if broken := unusable(MIA_ATTACKS, plan.audit.attacks, "audit.attacks"):
        return broken  # what else is wrong cannot be told without them
    return [
        *unknown_names(plan),
        *target_problems(plan),
        *split_problems(plan),
        *rate_problems(plan),
        *team_problems(plan, {"recipe": plan.recipe, "shadow_recipe": plan.shadow_recipe}),
    ]


def unknown_names(plan: MiaPlan) -> list[str]:
    """Return attacks that do not exist, or stand there twice."""
    audit = plan.audit
    known = ", ".join(MIA_ATTACKS)
    named = [
        *((f"audit.attacks.{index}", name) for index, name in enumerate(audit.attacks)),
        ("audit.judge", audit.judge),
    ]
    lines = [
        f"{path} is {shown(name)}{did_you_mean(name, MIA_ATTACKS)}; allowed: {known}"
        for path, name in [*named, ("audit.judge", audit.judge)]
        if name not in MIA_ATTACKS
    ]
    lines += [
        f"audit.attacks: {name!r} is listed {count} times; once is enough" for name, count in repeats(audit.attacks)
    ]
    rates = repeats(f"{rate:g}" for rate in audit.fpr)
    return [*lines, *(f"audit.fpr: {rate} is listed {count} times; once is enough" for rate, count in rates)]


def split_problems(plan: MiaPlan) -> list[str]:
    """Return what is wrong with numbers of models and points."""
    split, lines = plan.split, []
    for name in ("shadows", "strangers", "null_models"):
        if getattr(split, name) % 2:
            lines.append(f"split.{name} is {getattr(split, name)}; use an even number, since models come in twins")
    for name in plan.audit.attacks:
        needed = MIA_ATTACKS[name].shadows if name in MIA_ATTACKS else 0
        needed += 2 if plan.target is not None and needed > 2 else 0  # for intervals over shadows a pair is left out
        if split.shadows < needed:
            lines.append(
                f"split.shadows is {split.shadows}; attack {name} needs {needed} or more; raise it or leave {name} out"
            )
    for name, each, who in (("null_models", 2, "targets"), ("strangers", split.shadows, "shadows")):
        if getattr(split, name) > each * (split.pools - 1):
            lines.append(
                f"split.{name} is {getattr(split, name)}; allowed: up to {each * (split.pools - 1)}, the {who} of the "
                "other pools (split.pools)"
            )
    if split.canaries > split.train_size:
        lines.append(f"split.canaries is {split.canaries}; allowed: up to split.train_size ({split.train_size})")
    asked = plan.audit.hop_skip_jump.points
    if any(MIA_ATTACKS[name].subset for name in plan.audit.attacks if name in MIA_ATTACKS) and asked > min(
        split.test, 2 * split.train_size - split.canaries
    ):
        lines.append(
            f"audit.hop_skip_jump.points is {asked}; allowed: up to split.test ({split.test}) and the points of a pool "
            f"without canaries ({2 * split.train_size - split.canaries})"
        )
    return lines


def rate_problems(plan: MiaPlan) -> list[str]:
    """Return the promised false-positive rates that this many non-members cannot resolve."""
    known = [MIA_ATTACKS[name] for name in plan.audit.attacks if name in MIA_ATTACKS]
    asked = plan.split.pools * plan.audit.hop_skip_jump.points
    more = "split.pools or " if plan.target is None else ""
    if plan.target is not None:
        asked //= 2  # about so many of the points asked are non-members of the one target
    sizes = {plan.non_members: f"{more}split.train_size"}
    sizes |= {asked: f"{more}audit.hop_skip_jump.points"} if any(attack.subset for attack in known) else {}
    return [
        f"audit.fpr {rate:g} cannot be resolved by {size} points that targets did not train on: it needs "
        f"{math.ceil(NULLS_NEEDED / rate * (1 - 1e-9))}, for {NULLS_NEEDED} expected false positives; raise {fields}, "
        "or promise a larger rate"
        for rate in plan.audit.fpr
        for size, fields in sizes.items()
        if size * rate < NULLS_NEEDED * (1 - 1e-9)
    ]


def weaknesses(plan: MiaPlan) -> tuple[str, ...]:
    """Return what will weaken the result."""
    split, lines = plan.split, unlike_shadows(plan)
    given = plan.target is not None  # one pool, without models of others and without canaries, is then as it should be
    if split.pools < 3 and not given:
        lines.append(f"split.pools is {split.pools}: intervals are over pools and say little; use 5 or more")
    shadowed = [name for name in plan.audit.attacks if MIA_ATTACKS[name].shadows > 2]
    if shadowed and split.shadows < FEW_SHADOWS:
        lines.append(
            f"split.shadows is {split.shadows}: promised rates of {', '.join(shadowed)} rest on few models; use "
            f"{FEW_SHADOWS} or more"
        )
    if shadowed and not split.strangers and not given:
        lines.append(
            f"split.strangers is 0: promised rates of {', '.join(shadowed)} hold for models of halves of the pool, and "
            "not for models that were trained on other data; use 6 or more"
        )
    if not split.null_models and not given:
        lines.append("split.null_models is 0: nothing but the targets shows whether promised rates hold; use 2 or more")
    if not split.canaries and not given:
        lines.append("split.canaries is 0: without a positive control a null result says little; use 20 or more a pool")
    if plan.audit.judge not in plan.audit.attacks:
        lines.append(f"audit.judge {plan.audit.judge} is not among audit.attacks: {plan.judge} takes its place")
    return tuple(lines)


def check_data(plan: MiaPlan, absent: bool) -> None:
    """Refuse a plan whose data are not there, are too few, or do not fit the models."""
    facts = facts_of(plan.data, absent)
    if len(class_indices(plan.split.classes, facts.classes, "split.classes")) < 2:
        raise BadInput("split.classes leaves one class; give two or more, or null for all")
    if plan.target is not None:
        check_target(plan, facts)
    else:
        check_points(plan, facts)
    if facts.shape and (facts.classes or facts.present):
        check_build(plan.model, plan.recipe, facts, "model")
        if plan.shadow_model or plan.shadow_recipe:
            check_build(plan.shadow_model or plan.model, plan.shadow_recipe or plan.recipe, facts, "shadow_model")


def check_points(plan: MiaPlan, facts: Description) -> None:
    """Refuse a design that needs more points than there are, as far as that is known before reading them."""
    split = plan.split
    needed = split.pools * 2 * split.train_size + split.test
    if facts.points and needed > facts.points:
        raise BadInput(
            f"split: {split.pools} pools of 2 × {split.train_size} points and {split.test} test points are {needed}, "
            f"but {plan.data.name} has {facts.points}; lower pools, train_size or test"
        )


def checked(raw: Mapping[str, Any], notes: tuple[str, ...] = ()) -> MiaPlan:
    """Return the checked plan of a plain mapping; the models' settings are completed."""
    plan, problems = as_given(validated(MiaPlan, raw)), []
    for field in ("model", "shadow_model"):
        model = getattr(plan, field)
        if model is not None:
            settings, wrong = completed(MODELS, model.name, model.settings, f"{field}.name", f"{field}.settings")
            plan = plan.model_copy(update={field: model.model_copy(update={"settings": settings})})
            problems += wrong
    problems += contradictions(plan)
    if problems:
        raise PlanProblems(problems)
    return plan.made_by(RULES, notes)


RULES = Rules(checked, weaknesses)
