"""Names and settings of a plan against the registries: models, unlearning methods, attacks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

from audits.apollo.attacks import ATTACKS
from audits.apollo.attacks.base import FORMER
from audits.errors import did_you_mean
from audits.models import MODELS
from audits.unlearning import UNLEARNERS
from orchestrator.apollo.plan import CONTROLS
from orchestrator.apollo.presets import preset_for, shipped_presets
from orchestrator.engine.plan.components import completed, unusable
from orchestrator.engine.plan.errors import shown

if TYPE_CHECKING:
    from orchestrator.apollo.plan import ApolloPlan, UnlearningMethod
    from orchestrator.engine.plan.sections import Model


@dataclasses.dataclass(frozen=True)
class Completion:
    """A plan with all settings filled in, what is wrong with it, and what was added.

    ``untuned``: labels of the methods that got neither settings nor a preset, only the method's defaults.
    """

    plan: ApolloPlan
    problems: list[str]
    notes: tuple[str, ...]
    untuned: frozenset[str]


def complete(plan: ApolloPlan) -> Completion:
    """Return the plan with every component's settings filled in, presets included, and the controls added."""
    problems: list[str] = []
    models: dict[str, Model | None] = {}
    for section, model in (("model", plan.model), ("shadow_model", plan.shadow_model)):
        if model is not None:
            settings, found = completed(MODELS, model.name, model.settings, f"{section}.name", f"{section}.settings")
            models[section] = model.model_copy(update={"settings": settings})
            problems += found
    methods, notes, untuned, found = completed_methods(plan)
    problems += [*found, *attack_problems(plan.audit.attacks)]
    methods, added = with_controls(methods)
    whole = plan.model_copy(update={**models, "unlearning": tuple(methods)})
    return Completion(whole, problems, (*notes, *added), frozenset(untuned))


def completed_methods(plan: ApolloPlan) -> tuple[list[UnlearningMethod], list[str], list[str], list[str]]:
    """Return the unlearning methods with all settings, notes of presets, labels left to defaults, and problems."""
    methods: list[UnlearningMethod] = []
    notes: list[str] = []
    untuned: list[str] = []
    problems: list[str] = []
    for index, entry in enumerate(plan.unlearning):
        path = f"unlearning.{index}"
        preset = None if entry.settings else preset_for(plan, entry.method, shipped_presets())
        given = preset.settings if preset else entry.settings
        settings, found = completed(UNLEARNERS, entry.method, given, f"{path}.method", path)
        methods.append(entry.with_settings(settings))
        problems += found
        if preset:
            notes.append(f"{path}: {entry.method} takes the preset {preset.place}")
        elif settings and not given:
            untuned.append(entry.label)
    return methods, notes, untuned, problems


def attack_problems(names: Iterable[str]) -> list[str]:
    """Return the attacks that do not exist, with the closest match or, where a name was changed, the new ones.

    So are those of users' own whose code cannot be used, and why.
    """
    names = list(names)
    unknown = [
        f"audit.attacks.{index} is {shown(name)}{instead_of(name)}"
        for index, name in enumerate(names)
        if name not in ATTACKS
    ]
    return unknown + unusable(ATTACKS, names, "audit.attacks")


def instead_of(name: str) -> str:
    """Return what a plan may say in the place of ``name``, which is no attack."""
    if name in FORMER:
        return f", which is now {' and '.join(map(shown, FORMER[name]))}; change the plan"
    return f"{did_you_mean(name, ATTACKS)}; allowed: {', '.join(ATTACKS)}"


def with_controls(methods: list[UnlearningMethod]) -> tuple[list[UnlearningMethod], tuple[str, ...]]:
    """Return the methods with identity in front and retrain behind where they were missing, and a note for each.

    The method decides: an entry under another name (``as``) is a control too.
    """
    present = {entry.method for entry in methods}
    missing = [name for name in CONTROLS if name not in present]
    kind = type(methods[0])
    before = [kind(method="identity")] if "identity" in missing else []
    after = [kind(method="retrain")] if "retrain" in missing else []
    notes = tuple(f"unlearning: the control {name!r} was added; no table can be read without it" for name in missing)
    return [*before, *methods, *after], notes
