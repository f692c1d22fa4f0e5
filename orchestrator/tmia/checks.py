"""Checks that look at more than one field of a TMIA plan, and at its data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.errors import BadInput, did_you_mean
from audits.gradients.validate import made_auditable
from audits.models import MODELS
from audits.models.base import without_numbers
from audits.tmia.attacks import ATTACKS
from audits.tmia.design import warnings_of
from audits.tmia.selectors import SELECTORS
from audits.tmia.shared_pool import check_corrected_level
from audits.training.transfer import TORCHVISION_INPUTS, fitting, student_of
from orchestrator.engine.plan.base import Rules, validated
from orchestrator.engine.plan.components import completed, unusable
from orchestrator.engine.plan.errors import PlanProblems, shown, under
from orchestrator.engine.plan.fits import build_without_numbers, check_build, class_indices, facts_of
from orchestrator.engine.plan.teams import team_problems
from orchestrator.engine.plan.wording import repeats
from orchestrator.tmia.design import check_channels
from orchestrator.tmia.given_checks import check_target, set_aside, target_problems, target_warnings
from orchestrator.tmia.plan import TmiaPlan, sizes
from orchestrator.tmia.shared_pool import pool_sets

if TYPE_CHECKING:
    from audits.data.dataset import Description

WHOLE_SECTIONS = ("audit", "split")
FORBIDDEN_CHANGES = ("audit.kind", "variants", "compute", "tracking")


def contradictions(plan: TmiaPlan) -> list[str]:
    """Return one line per impossible combination: what it is and what to do."""
    if broken := unusable(ATTACKS, plan.audit.attacks, "audit.attacks"):
        return broken  # what else is wrong cannot be told without them
    return [
        *unknown_names(plan),
        *audit_problems(plan),
        *level_problems(plan),
        *transfer_problems(plan),
        *variant_problems(plan),
        *target_problems(plan),
        *team_problems(plan, {"recipe": plan.recipe, "transfer.recipe": plan.transfer.recipe}),
    ]


def unknown_names(plan: TmiaPlan) -> list[str]:
    """Return selectors and attacks that do not exist, or stand there twice."""
    lines: list[str] = []
    for field, names, known in (
        ("audit.selectors", plan.audit.selectors, SELECTORS),
        ("audit.attacks", plan.audit.attacks, ATTACKS),
    ):
        lines += [
            f"{field}.{index} is {shown(name)}{did_you_mean(name, known)}; allowed: {', '.join(known)}"
            for index, name in enumerate(names)
            if name not in known
        ]
        lines += [f"{field}: {name!r} is listed {count} times; once is enough" for name, count in repeats(names)]
    return lines


def audit_problems(plan: TmiaPlan) -> list[str]:
    """Return what is wrong with thresholds and with numbers of points and models."""
    audit, split = plan.audit, plan.split
    lines = odd_numbers(plan)
    given = [name for name, value in audit.alpha.model_dump().items() if value is not None]
    if len(given) != 1:
        lines.append(f"audit.alpha has {', '.join(given) or 'nothing'}; give exactly one of quantile, absolute, size")
    if audit.alpha.size is not None and audit.alpha.size > split.candidates:
        lines.append(f"audit.alpha.size is {audit.alpha.size}; allowed: up to split.candidates ({split.candidates})")
    cut = [name for name in audit.selectors if name not in ("none", "neighbours")]
    if audit.alpha.absolute is not None and len(cut) > 1:
        lines.append(
            f"audit.alpha.absolute is one number for {' and '.join(cut)}, whose scores have different units; give "
            "quantile or size, or one of these selectors"
        )
    if audit.asked > split.candidates:
        lines.append(f"audit.asked is {audit.asked}; allowed: up to split.candidates ({split.candidates})")
    if audit.reference_samples + audit.reconstruction.points > split.attacker_points:
        lines.append(
            f"audit.reference_samples ({audit.reference_samples}) and audit.reconstruction.points "
            f"({audit.reconstruction.points}) are {audit.reference_samples + audit.reconstruction.points} together, "
            f"more than split.attacker_points ({split.attacker_points}); lower one of them, e.g. the first to "
            f"{max(1, split.attacker_points - audit.reconstruction.points)}"
        )
    if audit.reconstruction.models > split.reference_models:
        lines.append(
            f"audit.reconstruction.models is {audit.reconstruction.models}; allowed: up to split.reference_models "
            f"({split.reference_models})"
        )
    return lines


def odd_numbers(plan: TmiaPlan) -> list[str]:
    """Return the numbers that are not even, though halves of the candidates are trained on; those that count."""
    halved = {"candidates": "each target trains on half of them"}
    if plan.target is None:
        halved |= dict.fromkeys(("targets", "overfitted_models"), "they train on opposite halves of the candidates")
    return [
        f"split.{name} is {getattr(plan.split, name)}; allowed: even, as {why}"
        for name, why in halved.items()
        if getattr(plan.split, name) % 2
    ]


def without_vacuous(plan: TmiaPlan) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the attacks that say something under the plan's y*, and a note about each of the others.

    An attack that compares a model's label with the true class says nothing where y* is the model's own label.
    """
    names = plan.audit.attacks
    if plan.audit.y_star == "true":
        return names, ()
    vacuous = [name for name in names if name in ATTACKS and ATTACKS[name].needs_true_label]
    notes = tuple(
        f"audit.attacks: {name} was left out in mode {plan.audit.mode}: it needs the true class, and y* is each "
        "model's own label"
        for name in vacuous
    )
    return tuple(name for name in names if name not in vacuous), notes


def without_foreign(plan: TmiaPlan) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the selectors that say something in the plan's mode, and a note about each of the others.

    Gradients tell what a training set makes up; in mode II that of the models asked is not the one in question.
    """
    names = plan.audit.selectors
    if plan.audit.mode != "II" or "gnq" not in names:
        return names, ()
    note = (
        "audit.selectors: gnq was left out in mode II: the students that are asked were not trained on points of the "
        "candidates' data set"
    )
    return tuple(name for name in names if name != "gnq"), (note,)


def level_problems(plan: TmiaPlan) -> list[str]:
    """Return what is wrong with β for so many reference models."""
    if not any(ATTACKS[name].ranked for name in plan.audit.attacks if name in ATTACKS):
        return []
    try:
        check_corrected_level(plan.audit.beta, plan.split.reference_models, pool_sets(plan))
    except BadInput as error:
        text = str(error).replace("beta = ", "audit.beta = ", 1).replace("n_ref", "split.reference_models")
        return [text]
    return []


def transfer_problems(plan: TmiaPlan) -> list[str]:
    """Return what is wrong with the other side."""
    transfer, lines = plan.transfer, []
    if transfer.teacher is not None and plan.audit.mode != "III":
        lines.append(
            f"transfer.teacher is given in mode {plan.audit.mode}; only students of mode III start from a file "
            "(in modes I and II the teachers train on candidates)"
        )
    lines += teacher_input_problems(plan)
    if transfer.data is not None and transfer.data.groups is not None:
        lines.append(
            "transfer.data.groups is given, but all models draw from the other side alike, so that nothing there is "
            "kept apart; leave it out (data.groups keeps the groups of candidates out of the other side)"
        )
    if not plan.transferred and transfer.n_frozen:
        lines.append(f"transfer.n_frozen is {transfer.n_frozen} in mode I, which has no student; leave it at 0")
    return lines


def teacher_input_problems(plan: TmiaPlan) -> list[str]:
    """Return what is wrong with the values that the teacher of a file expects."""
    transfer, known = plan.transfer, ", ".join(TORCHVISION_INPUTS)
    if transfer.teacher is None:
        given = transfer.teacher_input
        return [f"transfer.teacher_input is {given!r} without transfer.teacher; leave it out"] if given else []
    if transfer.teacher_input is None:
        return [
            "transfer.teacher_input is missing; say what transfer.teacher was trained on: imagenet (weights of "
            "torchvision, which expect standardised channels) or raw (the data's own values)"
        ]
    if transfer.teacher_input == "imagenet" and plan.model.name not in TORCHVISION_INPUTS:
        return [
            f"transfer.teacher_input is 'imagenet', but torchvision has no weights for model.name {plan.model.name}; "
            f"allowed with {known}; give raw"
        ]
    return []


def variant_problems(plan: TmiaPlan) -> list[str]:
    """Return what is wrong with the names and fields of the variants."""
    lines = []
    for name, changes in plan.variants.items():
        if not name or name == plan.audit.mode:
            lines.append(f"variants: {name!r} is the name of the plan's own setting; give the variant another one")
        lines += [
            f"variants.{name}: {field} cannot differ between variants; leave it out"
            for field in changes
            if field.startswith(FORBIDDEN_CHANGES)
        ]
        lines += [
            f"variants.{name}: {field} is a whole section; write single fields, e.g. {field}.{next(iter(value))}"
            for field, value in changes.items()
            if field in WHOLE_SECTIONS and isinstance(value, dict) and value
        ]
    return lines


def weaknesses(plan: TmiaPlan) -> tuple[str, ...]:
    """Return what will weaken the result."""
    split = sizes(plan)
    lines = [*target_warnings(plan), *warnings_of(split, 10**9 if plan.split.filler is None else plan.split.filler)]
    if plan.target is None and plan.split.targets < 6:
        lines.append(f"split.targets is {plan.split.targets}: intervals over targets say little; use 10 or more")
    if plan.target is None and plan.split.overfitted_models < 4:
        lines.append(
            f"split.overfitted_models is {plan.split.overfitted_models}: too few to show that the attacks would "
            "see a leak, so that a null result says little; use 4"
        )
    for name, changes in plan.variants.items():
        lines += [f"variant {name}: {line}" for line in weaknesses(plan.changed({**changes, "variants": {}}))]
    return tuple(dict.fromkeys(lines))


def check_data(plan: TmiaPlan, absent: bool) -> None:
    """Refuse a plan whose data are not there, are too few, or do not fit the model."""
    for changes in plan.settings().values():
        one = plan.changed(changes) if plan.variants else plan
        facts = facts_of(one.data, absent)
        own = class_indices(one.split.classes, facts.classes, "split.classes")
        check_build(one.model, one.recipe, facts, "model")
        check_gradients(one, facts, len(own))
        check_points(one, facts, len(own))
        check_channels(one, facts.shape)
        if not one.transferred:
            check_target(one, facts, facts, len(own))
        else:
            other = facts_of(one.transfer.data or one.data, absent)
            theirs = class_indices(one.transfer.classes, other.classes, "transfer.classes")
            check_star(one, {facts.classes[index] for index in own}, {other.classes[index] for index in theirs})
            check_layers(one, facts, other)
            check_teacher(one, facts)
            asked = (other, len(theirs)) if one.audit.mode == "II" else (facts, len(own))
            check_target(one, facts, *asked)


def looking(plan: TmiaPlan) -> list[str]:
    """Return the attacks and selectors of a plan that read the gradients of models at single points."""
    attacks = [name for name in plan.audit.attacks if name in ATTACKS and "white_box" in ATTACKS[name].reads]
    return [*attacks, *(name for name in plan.audit.selectors if name == "gnq")]


def check_points(plan: TmiaPlan, facts: Description, classes: int) -> None:
    """Refuse a design that needs more points than there are, as far as that is known before reading them."""
    if classes < 2:
        raise BadInput("split.classes leaves one class; give two or more, or null for all")
    needed = plan.split.candidates + plan.split.attacker_points
    if plan.target is not None:
        return  # what there is to draw from says the target: ``audits.tmia.given_design``
    if facts.points and needed > facts.points:
        raise BadInput(
            f"split: candidates + attacker_points are {needed} points, but {plan.data.name} has {facts.points}; "
            "lower one of them"
        )


def check_gradients(plan: TmiaPlan, facts: Description, classes: int) -> None:
    """Refuse an architecture whose points mix, where the gradients of single ones are read."""
    if looking(plan) and facts.shape and facts.classes:
        try:
            made_auditable(plan.model.architecture().build(facts.shape, classes, seed=0))
        except BadInput as error:
            raise BadInput(f"{under('model', str(error))} (read by {', '.join(looking(plan))})") from None


def check_star(plan: TmiaPlan, candidates: set[str], students: set[str]) -> None:
    """Refuse the true class as y* of students that have none of the candidates' classes."""
    if plan.audit.mode == "II" and plan.audit.star == "true" and not candidates & students:
        raise BadInput(
            "audit.star is 'true' in mode II, but candidates' classes are not the student's; give own or null, or "
            "transfer.classes that the candidates have"
        )


def check_layers(plan: TmiaPlan, facts: Description, other: Description) -> None:
    """Refuse a transfer that the architecture does not allow: shapes of images, or too many frozen layers."""
    if not (facts.shape and facts.classes and other.shape and other.classes):
        return
    model = plan.model.architecture()
    before, after = (facts, other) if plan.audit.mode == "II" else (other, facts)
    with without_numbers():
        teacher = model.build(before.shape, len(before.classes), 0)
        student_of(
            teacher, lambda classes, seed: model.build(after.shape, classes, seed), len(after.classes),
            plan.transfer.n_frozen, 0,
        )  # fmt: skip


def check_teacher(plan: TmiaPlan, facts: Description) -> None:
    """Refuse a teacher in a file that cannot be read, or is of another architecture."""
    if plan.transfer.teacher is not None and facts.shape:
        shape = facts.shape
        fitting(Path(plan.transfer.teacher), lambda classes, _: build_without_numbers(plan.model, shape, classes))


def checked(raw: Mapping[str, Any], notes: tuple[str, ...] = ()) -> TmiaPlan:
    """Return the checked plan of a plain mapping, the model's settings completed, its variants tried out."""
    plan = validated(TmiaPlan, raw)
    settings, problems = completed(MODELS, plan.model.name, plan.model.settings, "model.name", "model.settings")
    whole = plan.model_copy(update={"model": plan.model.model_copy(update={"settings": settings})})
    problems = [*problems, *contradictions(whole)]
    if problems:
        raise PlanProblems(problems)
    attacks, left_out = without_vacuous(whole)
    if not attacks:
        raise PlanProblems([f"audit.attacks: none is left; {left_out[0].partition(': ')[2]}"])
    selectors, foreign = without_foreign(whole)
    if not selectors:
        raise PlanProblems([f"audit.selectors: none is left; {foreign[0].partition(': ')[2]}"])
    audit = whole.audit.model_copy(update={"attacks": attacks, "selectors": selectors})
    whole = whole.model_copy(update={"audit": audit})
    whole = whole.made_by(RULES, tuple(dict.fromkeys([*notes, *left_out, *foreign, *set_aside(whole)])))
    for name, changes in whole.settings().items() if whole.variants else ():
        try:
            whole.changed(changes)
        except PlanProblems as error:
            raise PlanProblems([f"variants.{name}: {line}" for line in error.problems]) from None
        except BadInput as error:
            raise BadInput(f"variants.{name}: {error}") from None
    return whole


RULES = Rules(checked, weaknesses)
