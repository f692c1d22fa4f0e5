"""The way to the answers in a JSON document, in a clear part of JSONPath: ``$.a.b[*].c``, ``$['a b'][0]``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from audits.errors import BadInput

STEP = re.compile(r"\.(?P<name>\w[\w-]*)|\[(?P<quote>['\"])(?P<quoted>.*?)(?P=quote)\]|\[(?P<place>-?\d+)\]|\[\*\]")


class Unreadable(ValueError):
    """An answer cannot be read: the text says what is wrong with it, without saying who gave it."""


@dataclass(frozen=True)
class Every:
    """The step ``[*]``: all items of a list."""


def parsed(path: str) -> tuple[str | int | Every, ...]:
    """Return the steps of ``path``: names, places in a list, ``[*]``. Raises BadInput for any other JSONPath."""
    steps: list[str | int | Every] = []
    end = 1
    while path.startswith("$") and (found := STEP.match(path, end)):
        name = found["name"] if found["quoted"] is None else found["quoted"]
        steps.append(name if name is not None else Every() if found["place"] is None else int(found["place"]))
        end = found.end()
    if end < len(path) or not path.startswith("$"):
        raise BadInput(f"{path!r} is no path to answers; write $ and then .name, ['name'], [0] or [*], as in $.a[*].b")
    return tuple(steps)


def look_up(document: Any, steps: tuple[str | int | Every, ...], at: str = "$") -> Any:
    """Return what lies at ``steps``; each ``[*]`` makes a list, one inside the other. Raises Unreadable."""
    if not steps:
        return document
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        if not isinstance(document, dict):
            raise Unreadable(f"{kind(document)} at {at}, not an object with {step!r}")
        if step not in document:
            raise Unreadable(f"no {step!r} at {at}; there is {', '.join(map(repr, list(document)[:5])) or 'nothing'}")
        return look_up(document[step], rest, f"{at}.{step}")
    if not isinstance(document, list):
        raise Unreadable(f"{kind(document)} at {at}, not a list")
    if isinstance(step, int):
        if not -len(document) <= step < len(document):
            raise Unreadable(f"a list of {len(document)} at {at}, which has no item {step}")
        return look_up(document[step], rest, f"{at}[{step}]")
    return [look_up(item, rest, f"{at}[{place}]") for place, item in enumerate(document)]


def kind(value: Any) -> str:
    """Return what a JSON value is, in words."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
