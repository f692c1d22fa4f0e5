"""Tuned settings of unlearning methods, for plans that name a method without settings (``presets.yaml``)."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Collection, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from audits.errors import BadInput
from orchestrator.engine.plan.errors import problems_of
from orchestrator.engine.plan.files import parse_yaml
from orchestrator.engine.plan.sections import Section, Share

if TYPE_CHECKING:
    from orchestrator.apollo.plan import ApolloPlan

FILE = "presets.yaml"
Name = Annotated[str, Field(min_length=1)]


class Preset(Section):
    """Settings of ``method`` that were tuned for a data set, a model's name and the fraction that is forgotten."""

    data: Name
    model: Name
    forget: Share
    method: Name
    settings: Annotated[dict[str, Any], Field(min_length=1)]
    source: Name

    @property
    def place(self) -> str:
        """What the settings were tuned for, e.g. ``fashion14/mlp/0.1``."""
        return f"{self.data}/{self.model}/{self.forget:g}"


def read_presets(text: str, source: str) -> tuple[Preset, ...]:
    """Return the presets of a YAML ``text``; ``source`` names it in the ``BadInput`` of an unusable one."""
    entries = parse_yaml(text, source)
    try:
        presets = TypeAdapter(tuple[Preset, ...]).validate_json(json.dumps(entries))
    except ValidationError as error:
        raise BadInput(f"{source}: {problems_of(error, Preset)[0]}") from None
    seen: set[tuple[str, str]] = set()
    for preset in presets:
        if (preset.place, preset.method) in seen:
            raise BadInput(f"{source}: {preset.method} has two presets for {preset.place}; keep one")
        seen.add((preset.place, preset.method))
    return presets


@functools.cache
def shipped_presets() -> tuple[Preset, ...]:
    """Return the presets that come with the package."""
    return read_presets((resources.files("orchestrator.apollo") / FILE).read_text(encoding="utf-8"), FILE)


def preset_for(plan: ApolloPlan, method: str, presets: Sequence[Preset]) -> Preset | None:
    """Return the preset of ``method`` for the plan's data, model and forgotten fraction, or None."""
    share = plan.split.forget_share
    return next(
        (
            preset
            for preset in presets
            if (preset.data, preset.model, preset.method) == (plan.data.name, plan.model.name, method)
            and share is not None
            and math.isclose(preset.forget, share)
        ),
        None,
    )


def place_of(plan: ApolloPlan) -> str:
    """Return what settings of the plan would be tuned for, e.g. ``fashion14/mlp/0.1``."""
    share = plan.split.forget_share
    forget = plan.split.forget_words() if share is None else f"{share:g}"
    return f"{plan.data.name}/{plan.model.name}/{forget}"


def untuned_warnings(plan: ApolloPlan, labels: Collection[str]) -> list[str]:
    """Return a warning for each method of ``labels`` that still has its default settings."""
    return [
        f"unlearning.{entry.label}: {entry.method} has its default settings, which were not tuned for "
        f"{place_of(plan)}; they may do nothing or wreck the model, so read its utility first"
        for entry in plan.unlearning
        if entry.label in labels and entry.unlearner() == type(entry.unlearner())()
    ]
