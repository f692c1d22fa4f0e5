"""Numbers that a setting of an unlearning method may hold, written where the setting is: ``epochs: Count = 10``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import Field, dataclass, fields
from typing import Annotated, Any, ClassVar, Protocol, get_args, get_type_hints

from audits.errors import BadInput


@dataclass(frozen=True)
class Allowed:
    """Numbers that a setting may hold: ``words`` for messages, ``test`` true for each of them (never for NaN)."""

    words: str
    test: Callable[[float], bool]


Positive = Annotated[float, Allowed("above 0", lambda value: value > 0)]
NotNegative = Annotated[float, Allowed("0 or more", lambda value: value >= 0)]
Momentum = Annotated[float, Allowed("0 up to, but not including, 1", lambda value: 0 <= value < 1)]
Fraction = Annotated[float, Allowed("above 0, up to 1", lambda value: 0 < value <= 1)]
Size = Annotated[int, Allowed("1 or more", lambda value: value >= 1)]
Count = Annotated[int, Allowed("0 or more", lambda value: value >= 0)]


class Settings(Protocol):
    """An unlearning method with its settings: a dataclass that has a name."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    name: ClassVar[str]


@functools.cache
def rules(method: type[Settings]) -> dict[str, Allowed]:
    """Return what each numeric setting of ``method`` may hold, by the annotations of its fields."""
    hints = get_type_hints(method, include_extras=True)
    written = {field.name: get_args(hints[field.name]) for field in fields(method)}
    return {name: part for name, parts in written.items() for part in parts if isinstance(part, Allowed)}


def check_settings(settings: Settings) -> None:
    """Raise ``BadInput`` for the first setting that is not finite or not allowed by its annotation."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise BadInput(f"{settings.name}.{field.name} is {value}; it must be finite")
        allowed = rules(type(settings)).get(field.name)
        if allowed and not allowed.test(value):
            raise BadInput(f"{settings.name}.{field.name} is {value}; allowed: {allowed.words}")
