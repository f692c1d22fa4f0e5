"""Checks that look at more than one field of a GNQ plan, and at its data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from audits.errors import BadInput, did_you_mean
from audits.gnq.attacks import POOL_ATTACKS
from audits.gnq.private_recipe import private_recipe
from audits.gradients.validate import made_auditable
from audits.models import MODELS
from audits.uniqueness.rankings import RANKINGS
from audits.uniqueness.scores import MODES
from orchestrator.engine.plan.base import Rules, validated
from orchestrator.engine.plan.components import completed, unusable
from orchestrator.engine.plan.errors import PlanProblems, shown
from orchestrator.engine.plan.fits import check_build, class_indices, facts_of
from orchestrator.engine.plan.teams import team_problems
from orchestrator.engine.plan.wording import repeats
from orchestrator.gnq.design import check_images
from orchestrator.gnq.inversion_checks import gradient_inversion_problems, inversion_problems, reads_first_layer
from orchestrator.gnq.plan import READS_MODE, Defence, GnqPlan, arm_labels

if TYPE_CHECKING:
    from audits.data.dataset import Description

FIELDS = {"remove": ("ranking", "share"), "noise": ("ranking", "share", "strength"), "dp_sgd": ("recipe",)}
"""The fields that each method of defence reads."""


def contradictions(plan: GnqPlan) -> list[str]:
    """Return one line per impossible combination: what it is and what to do."""
    return [
        *unknown_names(plan),
        *split_problems(plan),
        *look_problems(plan),
        *inversion_problems(plan),
        *gradient_inversion_problems(plan),
        *defence_problems(plan),
        *team_problems(
            plan,
            {"recipe": plan.recipe} | {f"defences.{at}.recipe": each.recipe for at, each in enumerate(plan.defences)},
        ),
    ]


def unknown_names(plan: GnqPlan) -> list[str]:
    """Return modes, attacks and rankings that do not exist, or stand there twice."""
    lines: list[str] = []
    tables: tuple[tuple[str, tuple[str, ...], Collection[str]], ...] = (
        ("audit.modes", plan.audit.modes, MODES),
        ("audit.attacks", plan.audit.attacks, POOL_ATTACKS),
    )
    for field, names, known in tables:
        lines += [unknown(f"{field}.{index}", name, known) for index, name in enumerate(names) if name not in known]
        lines += [f"{field}: {name!r} is listed {count} times; once is enough" for name, count in repeats(names)]
    lines += unusable(POOL_ATTACKS, plan.audit.attacks, "audit.attacks")
    for index, defence in enumerate(plan.defences):
        if defence.ranking is not None and defence.ranking not in RANKINGS:
            lines.append(unknown(f"defences.{index}.ranking", defence.ranking, list(RANKINGS)))
    return lines


def unknown(path: str, name: str, known: Collection[str]) -> str:
    """Return the line about a name that does not exist."""
    return f"{path} is {shown(name)}{did_you_mean(name, known)}; allowed: {', '.join(known)}"


def split_problems(plan: GnqPlan) -> list[str]:
    """Return what is wrong with the numbers of models and of looks at a training."""
    lines = []
    if plan.audit.in_batch and "ridge" not in plan.audit.modes:
        lines.append("audit.in_batch is true, which reads mode ridge; add it to audit.modes")
    if plan.audit.in_batch and plan.recipe.batch_size < 2:
        lines.append("recipe.batch_size is 1, where no point has others in its batch; set audit.in_batch to false")
    if plan.audit.held_out % 2:
        lines.append(f"audit.held_out is {plan.audit.held_out}; these models come in twins: give an even number")
    if plan.audit.held_out and plan.split.train_size % 2:
        lines.append(f"split.train_size is {plan.split.train_size}; audit.held_out halves it: give an even number")
    if not plan.audit.held_out and any(defence.ranking == "held_out_loss" for defence in plan.defences):
        lines.append("audit.held_out is 0, but a defence ranks by held_out_loss; give an even number, such as 8")
    if plan.split.shadows % 2:
        lines.append(f"split.shadows is {plan.split.shadows}; shadows come in twins: give an even number")
    if plan.recipe.fit is not None:
        lines.append("recipe.fit is given, but audits of kind gnq watch every step of a training; leave it out")
    if plan.recipe.private:
        lines.append("recipe is private; give it as a defence (method: dp_sgd), watched models train without noise")
    if plan.audit.bins > plan.split.train_size // 2:
        lines.append(f"audit.bins is {plan.audit.bins}; allowed: up to half of split.train_size")
    return lines


def look_problems(plan: GnqPlan) -> list[str]:
    """Return what is wrong with how looks at a training are divided into jobs."""
    audit, lines = plan.audit, []
    if audit.looks == "apart" and audit.in_batch:
        lines.append(
            "audit.looks is apart, which keeps the weights of checkpoints alone, but audit.in_batch looks at every "
            "step; set audit.looks to together or audit.in_batch to false"
        )
    if audit.looks == "together" and audit.look_shards > 1:
        lines.append(
            f"audit.look_shards is {audit.look_shards}, but looks are taken together with the training; set "
            "audit.looks to apart or audit.look_shards to 1"
        )
    if audit.look_shards > plan.split.train_size:
        lines.append(
            f"audit.look_shards is {audit.look_shards}; allowed: 1 to {plan.split.train_size}, the points that a model "
            "trains on (split.train_size)"
        )
    return lines


def defence_problems(plan: GnqPlan) -> list[str]:
    """Return what is wrong with the defences: fields that are missing or not read, and two of one name."""

    lines = []
    for index, defence in enumerate(plan.defences):
        place, wanted = f"defences.{index}", FIELDS[defence.method]
        given = [name for name in ("ranking", "share", "strength", "recipe") if getattr(defence, name) is not None]
        lines += [f"{place}.{name} is missing; {defence.method} needs it" for name in wanted if name not in given]
        lines += [
            f"{place}.{name} is given, which {defence.method} does not read; leave it out"
            for name in given
            if name not in wanted
        ]
        if defence.recipe is not None and not defence.recipe.private:
            lines.append(f"{place}.recipe has neither target_epsilon nor noise_multiplier; dp_sgd needs one of them")
        if defence.ranking == "in_batch" and not plan.audit.in_batch:
            lines.append(f"{place}.ranking is in_batch, but batches are not looked at; set audit.in_batch to true")
        mode = READS_MODE.get(defence.ranking or "")
        if mode and mode not in plan.audit.modes:
            lines.append(f"{place}.ranking is {defence.ranking}, which reads mode {mode}; add it to audit.modes")
        lines += share_problems(defence, place, plan.split.train_size)
    labels = arm_labels(plan.defences)
    lines += [f"defences: {label!r} is listed {count} times; once is enough" for label, count in repeats(labels)]
    return lines


def share_problems(defence: Defence, place: str, points: int) -> list[str]:
    """Return the line about a share that chooses none of a model's points, or all of them; see ``kept_points``."""
    if defence.share is None or defence.method == "dp_sgd":
        return []
    chosen = round(defence.share * points)
    if 1 <= chosen < points:
        return []
    return [
        f"{place}.share is {defence.share:g}, which is {chosen} of split.train_size {points} points; choose one point "
        f"or more, but not all (a share of {1 / points:.3g} to {1 - 1 / points:.3g})"
    ]


def missing_controls(plan: GnqPlan) -> list[Defence]:
    """Return removal at random of each share at which something else is removed and it is not in the plan."""
    shares = {defence.share for defence in plan.defences if defence.method == "remove"}
    present = {defence.share for defence in plan.defences if defence.method == "remove" and defence.ranking == "random"}
    return [Defence(method="remove", ranking="random", share=share) for share in sorted(shares - present, key=float)]  # type: ignore[arg-type]  # checked: removal has a share


def weaknesses(plan: GnqPlan) -> tuple[str, ...]:
    """Return what will weaken the result."""
    split, lines = plan.split, []
    if split.pools < 3:
        lines.append(f"split.pools is {split.pools}: intervals over pools say little or nothing; use 5 or more")
    if split.shadows < 8:
        lines.append(f"split.shadows is {split.shadows}: each point is in few of them; use 8 or more")
    shares = [0.0, *(defence.share for defence in plan.defences if defence.method == "remove" and defence.share)]
    for share in dict.fromkeys(shares):
        kept = split.train_size - round(share * split.train_size)
        last = kept % plan.recipe.batch_size
        if 0 < last < plan.recipe.batch_size / 4:
            lines.append(
                f"recipe.batch_size is {plan.recipe.batch_size}: of {kept} points the last batch has {last}, and so "
                "small a step alone moves attacks; choose a size that divides the numbers of points"
            )
    lines += [*onion_weakness(plan), *private_weakness(plan)]
    return tuple(lines)


def onion_weakness(plan: GnqPlan) -> list[str]:
    """Return the line about more models than shadows can give to say that a point is fully exposed."""
    each = plan.split.shadows // 2
    if plan.audit.onion <= each or not any(defence.method == "remove" for defence in plan.defences):
        return []
    return [
        f"audit.onion is {plan.audit.onion}, but of {plan.split.shadows} shadows each point is in {each}: there will "
        f"be no table of fully exposed points; lower it to {each} or less, or raise split.shadows"
    ]


def private_weakness(plan: GnqPlan) -> list[str]:
    """Return the line about the default recipe of DP-SGD on data or a model that it was not settled on."""

    settled = (plan.data.name, plan.model.name) == ("fashion14", "mlp")
    recipes = {f"defences.{index}": entry.recipe for index, entry in enumerate(plan.defences) if entry.recipe}
    default = [
        place
        for place, recipe in recipes.items()
        if recipe.target_epsilon
        and replace(private_recipe(recipe.target_epsilon), batch_size=recipe.batch_size) == recipe
    ]
    if settled or not default:
        return []
    return [
        f"{', '.join(default)}: the default recipe of DP-SGD was settled on an mlp and fashion14, not on "
        f"{plan.model.name} and {plan.data.name}; tune it for accuracy before its accuracy counts against DP-SGD"
    ]


def check_data(plan: GnqPlan, absent: bool) -> None:
    """Refuse a plan whose data are not there, are too few, or do not fit the model."""
    facts = facts_of(plan.data, absent)
    if len(class_indices(plan.split.classes, facts.classes, "split.classes")) < 2:
        raise BadInput("split.classes leaves one class; give two or more, or null for all")
    check_points(plan, facts)
    if facts.shape:
        check_images(plan, facts)
    if facts.shape and (facts.classes or facts.present):
        check_build(plan.model, plan.recipe, facts, "model")
        check_gradients(plan, facts)
        reads_first_layer(plan, facts)
        for index, defence in enumerate(plan.defences):
            if defence.recipe is not None:
                check_build(plan.model, defence.recipe, facts, f"defences.{index}")


def check_points(plan: GnqPlan, facts: Description) -> None:
    """Refuse a design that needs more points than there are, as far as that is known before reading them."""
    split = plan.split
    needed = split.pools * 2 * split.train_size + split.test
    if facts.points and needed > facts.points:
        raise BadInput(
            f"split: {split.pools} pools of 2 × {split.train_size} points and {split.test} test points are {needed}, "
            f"but {plan.data.name} has {facts.points}; lower pools, train_size or test"
        )


def check_gradients(plan: GnqPlan, facts: Description) -> None:
    """Refuse an architecture whose points have no gradient of their own even when it does not train."""
    made_auditable(plan.model.architecture().build(facts.shape, len(facts.classes), seed=0))


def checked(raw: Mapping[str, Any], notes: tuple[str, ...] = ()) -> GnqPlan:
    """Return the checked plan of a plain mapping; the model's settings are completed and missing controls noted."""
    plan = validated(GnqPlan, raw)
    settings, problems = completed(MODELS, plan.model.name, plan.model.settings, "model.name", "model.settings")
    plan = plan.model_copy(update={"model": plan.model.model_copy(update={"settings": settings})})
    problems = [*problems, *contradictions(plan)]
    if problems:
        raise PlanProblems(problems)
    added = missing_controls(plan)
    whole = plan.model_copy(update={"defences": (*plan.defences, *added)})
    return whole.made_by(
        RULES, (*notes, *(f"defences: added {defence.label}, the control of removal" for defence in added))
    )


RULES = Rules(checked, weaknesses)
