"""Single fields of a sweep file, read as what they must be; each refusal is one line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from audits.errors import BadInput, did_you_mean
from tune_spaces.dimensions import text_of


def refuse_unknown(values: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    """Raise BadInput for a key that is not ``known``."""
    for key in values:
        if key not in known:
            raise BadInput(f"{key} is not a field{did_you_mean(key, known)}; {what} has: {', '.join(known)}")


def words(values: Mapping[str, Any], field: str) -> str:
    """Return a field that is text; "" without it."""
    value = values.get(field, "")
    if not isinstance(value, str):
        raise BadInput(f"{field} is {text_of(value)}; allowed: text")
    return value


def word(values: Mapping[str, Any], field: str, allowed: Sequence[str]) -> str:
    """Return a field that is one of ``allowed``; "" without it."""
    value = values.get(field, "")
    if value not in ("", *allowed):
        near = did_you_mean(value, allowed) if isinstance(value, str) else ""
        raise BadInput(f"{field} is {text_of(value)}{near}; allowed: {', '.join(allowed)}")
    return str(value)


def truth(values: Mapping[str, Any], field: str) -> bool:
    """Return a field that is true or false; False without it."""
    value = values.get(field, False)
    if not isinstance(value, bool):
        raise BadInput(f"{field} is {text_of(value)}; allowed: true or false")
    return value


def several(values: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """Return a field that is a word or two of them; () without it."""
    value = values.get(field, [])
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or any(not isinstance(each, str) for each in found) or len(set(found)) > 2:
        raise BadInput(f"{field} is {text_of(value)}; allowed: one name, or a list of two (a Pareto front)")
    return tuple(found)


def number(
    values: Mapping[str, Any], field: str, *, least: int, most: float = math.inf, whole: bool = True
) -> float | None:
    """Return a field that is a number; None without it."""
    value = values.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not least <= value <= most:
        up_to = f" to {most:g}" if most < math.inf else " or more"
        raise BadInput(f"{field} is {text_of(value)}; allowed: a {'whole ' if whole else ''}number, {least}{up_to}")
    return value
