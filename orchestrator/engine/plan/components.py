"""Settings of a registered component, completed by its defaults and checked."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from audits.errors import BadInput, did_you_mean
from orchestrator.engine.plan.errors import problems_of, shown, under

if TYPE_CHECKING:
    from audits.registry import Registry


def unusable(registry: Registry[Any], names: Iterable[str], path: str) -> list[str]:
    """Return what is wrong with the names of users' code in the list at ``path`` of a plan."""
    lines = []
    for index, name in enumerate(names):
        try:
            if registry.is_own(name):
                registry[name]
        except BadInput as error:
            lines.append(under(f"{path}.{index}", str(error)))
    return lines


def completed(
    registry: Registry[Any], name: str, settings: Mapping[str, Any], name_path: str, path: str
) -> tuple[dict[str, Any], list[str]]:
    """Return all settings of the component ``name``, defaults filled in, and what is wrong with the given ones."""
    if name not in registry:
        return dict(settings), [
            f"{name_path} is {shown(name)}{did_you_mean(name, registry)}; allowed: {', '.join(registry)}"
        ]
    try:
        kind = registry[name]
    except BadInput as error:  # code of the user's own that cannot be used
        return dict(settings), [under(name_path, str(error))]
    try:
        component = reader_of(kind).validate_json(json.dumps(dict(settings)))
    except ValidationError as error:
        return dict(settings), problems_of(error, kind, path.split("."))
    return json.loads(json.dumps(dataclasses.asdict(component))), []


@functools.lru_cache(maxsize=256)
def reader_of(kind: type) -> TypeAdapter[Any]:
    """Return what reads the settings of a class of components; to make it takes longer than to read a plan."""
    return TypeAdapter(kind)
