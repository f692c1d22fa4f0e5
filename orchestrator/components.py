"""Names and settings of a plan against the registries: models, unlearning methods, attacks."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from audits.errors import did_you_mean
from orchestrator.plan_errors import problems_of, shown

if TYPE_CHECKING:
    from audits.registry import Registry
    from orchestrator.plan import Plan
    from orchestrator.plan_sections import UnlearningMethod

CONTROLS = ("identity", "retrain")
ABOVE_ZERO = frozenset({"learning_rate", "batch_size", "forget_batch_size", "clip_norm", "temperature"})
ZERO_OR_MORE = frozenset({"epochs", "ascent_epochs", "weight_decay", "gamma", "alpha"})


def complete(plan: Plan) -> tuple[Plan, list[str], tuple[str, ...]]:
    """Return the plan with every component's settings filled in and the controls added; problems; notes."""
    from audits.models import MODELS
    from audits.unlearning import UNLEARNERS

    settings, problems = completed(MODELS, plan.model.name, plan.model.settings, "model.name", "model.settings")
    model = plan.model.model_copy(update={"settings": settings})
    methods: list[UnlearningMethod] = []
    for index, entry in enumerate(plan.unlearning):
        path = f"unlearning.{index}"
        settings, found = completed(UNLEARNERS, entry.method, entry.settings, f"{path}.method", path)
        methods.append(entry.with_settings(settings))
        problems += found
    problems += attack_problems(plan.audit.attacks)
    methods, notes = with_controls(methods)
    return plan.model_copy(update={"model": model, "unlearning": tuple(methods)}), problems, notes


def completed(
    registry: Registry[Any], name: str, settings: Mapping[str, Any], name_path: str, path: str
) -> tuple[dict[str, Any], list[str]]:
    """Return all settings of the component ``name``, defaults filled in, and what is wrong with the given ones."""
    if name not in registry:
        return dict(settings), [
            f"{name_path} is {shown(name)}{did_you_mean(name, registry)}; allowed: {', '.join(registry)}"
        ]
    kind = registry[name]
    try:
        component = TypeAdapter(kind).validate_json(json.dumps(dict(settings)))
    except ValidationError as error:
        return dict(settings), problems_of(error, kind, path.split("."))
    values = json.loads(json.dumps(dataclasses.asdict(component)))
    return values, sign_problems(values, path)


def sign_problems(settings: Mapping[str, Any], path: str) -> list[str]:
    """Return the settings whose sign makes no sense, by what their names mean everywhere."""
    problems = []
    for name, value in settings.items():
        if name in ABOVE_ZERO and value is not None and not value > 0:
            problems.append(f"{path}.{name} is {value}; allowed: above 0")
        if name in ZERO_OR_MORE and value is not None and not value >= 0:
            problems.append(f"{path}.{name} is {value}; allowed: 0 or more")
    return problems


def attack_problems(names: Iterable[str]) -> list[str]:
    """Return the attacks that do not exist, with the closest match."""
    from audits.attacks import ATTACKS

    return [
        f"audit.attacks.{index} is {shown(name)}{did_you_mean(name, ATTACKS)}; allowed: {', '.join(ATTACKS)}"
        for index, name in enumerate(names)
        if name not in ATTACKS
    ]


def with_controls(methods: list[UnlearningMethod]) -> tuple[list[UnlearningMethod], tuple[str, ...]]:
    """Return the methods with identity in front and retrain behind where they were missing, and a note for each."""
    present = {entry.method for entry in methods}
    missing = [name for name in CONTROLS if name not in present]
    kind = type(methods[0])
    before = [kind(method="identity")] if "identity" in missing else []
    after = [kind(method="retrain")] if "retrain" in missing else []
    notes = tuple(f"unlearning: the control {name!r} was added; no table can be read without it" for name in missing)
    return [*before, *methods, *after], notes
