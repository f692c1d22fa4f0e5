"""Messages about a wrong plan, one line a problem: field, value, what is allowed, the closest match."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from audits.errors import BadInput, did_you_mean

WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list, e.g. [a, b]",
    "list_type": "a list, e.g. [a, b]",
    "dict_type": "a section of `key: value` lines",
    "model_type": "a section of `key: value` lines",
    "dataclass_type": "a section of `key: value` lines",
    "greater_than": "above {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than": "below {lt:g}",
    "less_than_equal": "{le:g} or less",
    "literal_error": "{expected}",
    "too_short": "at least {min_length} of them",
    "string_too_short": "text of at least {min_length} character",
}
MOST_PROBLEMS = 100
UNKNOWN_KEY = {"extra_forbidden", "unexpected_keyword_argument"}


class PlanProblems(BadInput):
    """A plan that cannot be used; ``problems`` holds one line each, the message the first and how many follow."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        more = f" (+{len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0]}{more}")


def problems_of(error: ValidationError, root: type, prefix: Sequence[str | int] = ()) -> list[str]:
    """Return one line for each of the first problems that pydantic found in ``root`` (a model or dataclass)."""
    lines: list[str] = []
    for detail in error.errors(include_url=False)[:MOST_PROBLEMS]:
        path = ".".join(str(part) for part in (*prefix, *detail["loc"]))
        context: dict[str, Any] = detail.get("ctx") or {}
        cause = context.get("error")
        if detail["type"] in UNKNOWN_KEY:
            lines.append(unknown_key(path, section_at(root, detail["loc"][:-1])))
        elif isinstance(cause, PlanProblems):
            lines += cause.problems
        elif isinstance(cause, BadInput):
            lines.append(under(path, str(cause), getattr(root, "name", "")))
        elif detail["type"] == "missing":
            lines.append(f"{path} is missing; {path.rpartition('.')[2]} has no default; give it")
        else:
            wanted = WANTED.get(detail["type"], detail["msg"]).format(**context)
            lines.append(f"{path or 'the plan'} is {shown(detail['input'])}; allowed: {wanted}")
            if detail["type"] == "literal_error" and isinstance(detail["input"], str):
                lines[-1] += did_you_mean(detail["input"], quoted(str(context["expected"])))
    return list(dict.fromkeys(lines))


def under(path: str, message: str, component: str = "") -> str:
    """Return ``message`` with the path in front unless it already names its field.

    A ``component`` names its settings after itself (``scrub.epochs``) and the checks of ``model`` and ``recipe`` serve
    ``shadow_model`` and ``shadow_recipe`` too: those become paths of the plan.
    """
    if component and message.startswith(f"{component}."):
        return path + message.removeprefix(component)
    if path.startswith("shadow_") and message.startswith(path.removeprefix("shadow_")):
        return f"shadow_{message}"
    return message if not path or message.startswith(path) else f"{path}: {message}"


def unknown_key(path: str, section: Any) -> str:
    """Return the line for a key that a section (model or dataclass) does not have, or has under another name now.

    A section tells the names that were changed as ``RENAMED``: old → new.
    """
    where, _, key = path.rpartition(".")
    known, renamed = names_of(section), getattr(section, "RENAMED", {})
    if key in renamed:
        return f"{path} is now called {'.'.join(filter(None, (where, renamed[key])))}; change the plan"
    return f"{path} is not a field{did_you_mean(key, known)}; {where or 'a plan'} has: {', '.join(known) or 'none'}"


def quoted(expected: str) -> list[str]:
    """Return the words of pydantic's ``'a', 'b' or 'c'``."""
    return expected.split("'")[1::2]


def shown(value: Any) -> str:
    """Return ``value`` as a plan would write it, cut to a readable length."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}…"


def section_at(root: type, location: Iterable[str | int]) -> Any:
    """Return the model or dataclass of the section at ``location`` of ``root``."""
    kind: Any = root
    for part in location:
        if isinstance(part, int):
            kind = next((item for item in get_args(kind) if item is not Ellipsis), None)
        else:
            kind = annotation_of(kind, part)
    return kind


def annotation_of(kind: Any, field: str) -> Any:
    """Return the annotation of ``field`` in a pydantic model, looked up by name or alias."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, info in kind.model_fields.items():
            if field in (name, info.alias):
                return without_null(info.annotation)
    return None


def without_null(kind: Any) -> Any:
    """Return X of the annotation ``X | None``, any other annotation as it is."""
    present = [item for item in get_args(kind) if item is not type(None)]
    return present[0] if get_origin(kind) in (Union, UnionType) and len(present) == 1 else kind


def names_of(kind: Any) -> list[str]:
    """Return the field names of a pydantic model (aliases as written in the plan) or a dataclass."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [info.alias or name for name, info in kind.model_fields.items()]
    return [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
