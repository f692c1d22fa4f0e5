"""Checks that look at more than one field of a plan: combinations that cannot work, and those that work badly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from audits.apollo.attacks import ATTACKS
from audits.apollo.design.exposure import chosen, points_ranked
from audits.apollo.design.split import overlap_warnings
from audits.errors import BadInput
from audits.gradients.validate import made_auditable
from orchestrator.apollo.components import complete
from orchestrator.apollo.plan import CONTROLS, ApolloPlan
from orchestrator.apollo.presets import untuned_warnings
from orchestrator.apollo.split_checks import split_problems
from orchestrator.apollo.target_checks import check_points, sizes_of, target_problems, target_warnings
from orchestrator.engine.plan.base import Rules, validated
from orchestrator.engine.plan.errors import PlanProblems
from orchestrator.engine.plan.fits import build_without_numbers, check_build, facts_of
from orchestrator.engine.plan.points import points_in
from orchestrator.engine.plan.shadows import unlike_shadows
from orchestrator.engine.plan.target import unreadable
from orchestrator.engine.plan.teams import team_problems
from orchestrator.engine.plan.wording import multiple, repeats
from orchestrator.engine.run.given import check_target

if TYPE_CHECKING:
    from audits.data.dataset import Description

AT_POINTS = frozenset({"point", "posteriors", "logits", "population"})
"""Kinds of evidence for which a target is asked about points of the data set alone."""
NULLS_NEEDED = 10  # expected false positives below which a promised rate cannot be told from its neighbours


def contradictions(plan: ApolloPlan) -> list[str]:
    """Return one line per impossible combination: what it is and what to do."""
    return [
        *(target_problems(plan) if plan.target else split_problems(plan.split.design())),
        *search_problems(plan),
        *repeated_labels(plan),
        *names_of_controls(plan),
        *rate_problems(plan),
        *watching_problems(plan),
        *access_problems(plan),
        *team_problems(plan, {"recipe": plan.recipe, "shadow_recipe": plan.shadow_recipe}),
    ]


def access_problems(plan: ApolloPlan) -> list[str]:
    """Return the attacks that read more of a given model than it shows, or ask what it has no answers to."""
    if plan.target is None:
        return []
    known = {name: ATTACKS[name] for name in plan.audit.attacks if name in ATTACKS}
    asking = [name for name, attack in known.items() if not AT_POINTS.issuperset(attack.reads)]
    accesses = {name: attack.access for name, attack in known.items()}
    return unreadable(accesses, plan.target, asking)


def search_problems(plan: ApolloPlan) -> list[str]:
    """Return what is wrong with the weights of the search and the number of shadows that it uses."""
    problems, search = [], plan.audit.search
    if search.alpha == search.beta == 0:
        problems.append("audit.search.alpha and audit.search.beta are both 0; at least one must be above 0")
    shadows, step = search.shadows, 8 if plan.split.candidates.retained else 4
    if shadows is not None and shadows % step:
        near = multiple(shadows, step)
        problems.append(
            f"audit.search.shadows is {shadows}; use a multiple of {step}, e.g. {near}, or null for all of them"
        )
    elif shadows is not None and shadows > plan.split.shadows:
        problems.append(f"audit.search.shadows is {shadows}, more than split.shadows ({plan.split.shadows}); lower it")
    return problems


def repeated_labels(plan: ApolloPlan) -> list[str]:
    """Return the names that a table could not tell apart."""
    methods = [
        f"unlearning: {label!r} is listed {count} times; give each setting its own name with `as: name`"
        for label, count in repeats(entry.label for entry in plan.unlearning)
    ]
    attacks = [
        f"audit.attacks: {name!r} is listed {count} times; once is enough"
        for name, count in repeats(plan.audit.attacks)
    ]
    rates = [
        f"audit.fpr: {rate} is listed {count} times; once is enough"
        for rate, count in repeats(f"{rate:g}" for rate in plan.audit.fpr)
    ]
    return [*methods, *attacks, *rates]


def names_of_controls(plan: ApolloPlan) -> list[str]:
    """Return the methods that have the name of a control which they are not: tables could not be read."""
    return [
        f"unlearning: {entry.label!r} is the name of a control, but the method is {entry.method}; give it another name "
        "with `as: name`"
        for entry in plan.unlearning
        if entry.label in CONTROLS and entry.label != entry.method
    ]


def watched(plan: ApolloPlan) -> str:
    """Return the field of the plan for which targets, or models like them, are watched while they train, or ""."""
    if plan.split.points == "exposed":
        return "split.points is exposed"
    return "audit.disclosure is true" if plan.audit.disclosure else ""


def watching_problems(plan: ApolloPlan) -> list[str]:
    """Return why the gradients of single points cannot be watched."""
    if watched(plan) and plan.recipe.private:
        return [
            f"{watched(plan)}, but recipe is private, where a step is not made of the gradients of points; leave "
            "recipe.noise_multiplier and recipe.target_epsilon null, or choose random or memorised points and no "
            "disclosure"
        ]
    if watched(plan) and plan.recipe.fit is not None:
        return [f"{watched(plan)}, but recipe.fit is a training of one's own, whose steps cannot be watched"]
    return []


def rate_problems(plan: ApolloPlan) -> list[str]:
    """Return the promised false-positive rates that this many never-seen candidates cannot resolve."""
    problems = []
    for rate in plan.audit.fpr:
        if plan.nulls * rate < NULLS_NEEDED * (1 - 1e-9):
            needed = math.ceil(NULLS_NEEDED / rate * (1 - 1e-9))
            split = plan.split
            whose = f" ({split.targets} targets × {split.candidates.unseen})" if plan.target is None else ""
            raised = "split.targets or split.candidates.unseen" if plan.target is None else "split.candidates.unseen"
            problems.append(
                f"audit.fpr {rate:g} cannot be resolved by {plan.nulls} unseen candidates{whose}: it needs {needed}, "
                f"for {NULLS_NEEDED} expected false positives; raise {raised}, or promise a larger rate"
            )
    return problems


def weaknesses(plan: ApolloPlan) -> tuple[str, ...]:
    """Return what will weaken the result: shared training data, too few targets for an interval over targets."""
    design = sizes_of(plan)
    lines = [*unlike_shadows(plan), *(target_warnings(plan) if plan.target else overlap_warnings(design))]
    if plan.split.targets < 2 and plan.target is None:
        lines.append("split.targets is 1: nothing shows how much targets differ; use 5 or more for honest intervals")
    if min(plan.split.shadows, plan.audit.search.shadows or plan.split.shadows) < 8:
        lines.append(
            "fewer than 8 shadows: one pseudo-target per side and half is too few to promise a false-positive rate; "
            "use split.shadows of 8 or more"
        )
    if plan.split.targets_per_shadow_set > 1 and plan.target is None:
        lines.append(
            f"{plan.split.targets_per_shadow_set} targets share each set of shadows: intervals over targets hold for "
            "those shadows and do not cover the choice of shadows"
        )
    if design.audited != "random":
        ranked, asked = points_ranked(design), design.targets * design.candidates_per_target
        if asked > ranked / 2:
            lines.append(
                f"the candidates are {asked / ranked:.0%} of the {ranked} ranked points, hardly more {chosen(design)} "
                "than random ones; raise split.ranking_models (and split.target_pool) or ask about fewer points"
            )
    if all(entry.method in CONTROLS for entry in plan.unlearning):
        lines.append("unlearning: only the controls; add a method that is worth auditing")
    return tuple(lines)


def check_data(plan: ApolloPlan, absent: bool) -> None:
    """Refuse a plan that does not fit its data; ``absent``: data whose size is known need not be there."""
    check_fit(plan, facts_of(plan.data, absent))


def check_fit(plan: ApolloPlan, facts: Description) -> None:
    """Refuse a plan whose pools, classes, ids or architectures do not fit a data set with these ``facts``."""
    design = plan.split.design(facts.classes, points_in(plan.data, facts) if facts.points else None)
    if plan.target is None and facts.points and design.points > facts.points:
        ids = " and the ids to forget" if design.forget_ids else ""
        raise BadInput(
            f"split: target_pool + shadow_pool + test_pool{ids} need {design.points} points, but {plan.data.name} has "
            f"{facts.points}; make the pools smaller"
        )
    if facts.points and design.forget_ids and max(design.forget_ids) >= facts.points:
        raise BadInput(
            f"split.forget.ids has {max(design.forget_ids)}; {plan.data.name} has the points 0 to {facts.points - 1}"
        )
    if plan.target is not None and facts.points:
        check_points(plan, plan.target, points_in(plan.data, facts))
    if not (facts.shape and (facts.classes or facts.present)):
        return
    check_build(plan.model, plan.recipe, facts, "model")
    if plan.target is not None:
        check_target(
            plan, lambda: build_without_numbers(plan.model, facts.shape, len(facts.classes)), len(facts.classes)
        )
    if watched(plan):
        made_auditable(plan.model.architecture().build(facts.shape, len(facts.classes), seed=0))
    if plan.shadow_model or plan.shadow_recipe:
        check_build(plan.shadow_model or plan.model, plan.shadow_recipe or plan.recipe, facts, "shadow_model")


def checked(raw: Mapping[str, Any], notes: tuple[str, ...] = ()) -> ApolloPlan:
    """Return the checked plan of a plain mapping; settings are completed and missing controls added (and noted)."""
    found = complete(validated(ApolloPlan, raw))
    problems = [*found.problems, *contradictions(found.plan)]
    if problems:
        raise PlanProblems(problems)
    found.plan._untuned = found.untuned
    return found.plan.made_by(RULES, notes + found.notes)


def all_weaknesses(plan: ApolloPlan) -> tuple[str, ...]:
    """Return what will weaken the result: the design, and methods that were not tuned."""
    return (*weaknesses(plan), *untuned_warnings(plan, plan._untuned))


RULES = Rules(checked, all_weaknesses)
