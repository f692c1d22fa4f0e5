"""One plan field that a sweep varies: Ray Tune's primitives by name, and what each of them can be."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from audits.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    import numpy as np

LISTED = ("choice", "grid")
FLOATS = ("uniform", "quniform", "loguniform", "qloguniform")
WHOLE = ("randint", "qrandint", "lograndint", "qlograndint")
FORMS = (*LISTED, *FLOATS, *WHOLE, "constant")
DIGITS = 4
"""Significant digits of drawn numbers, so that the name of a setting says its value."""


@dataclass(frozen=True)
class Dimension:
    """A dotted plan field and the values it takes.

    ``values`` are the arguments as Ray Tune takes them: bounds, then the step q (the upper end of randint, lograndint
    and of qrandint and qlograndint with q = 1 is exclusive, that of all other quantised ones is inclusive); of choice
    and grid the options; of constant the one value. ``when``: active only where these other fields were given one of
    these values.

    Raises BadInput for bounds that Ray Tune would refuse, or between which there is nothing to choose from.
    """

    path: str
    form: str
    values: tuple[Any, ...]
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise BadInput(
                f"{self.path}: {self.form!r} is no primitive{did_you_mean(self.form, FORMS)}; "
                f"primitives: {', '.join(FORMS)}"
            )
        if self.form in LISTED:
            check_options(self)
        elif self.form == "constant":
            if len(self.values) != 1:
                raise BadInput(f"{self.path}: constant takes one value, not {len(self.values)}")
        else:
            check_bounds(self)

    def __str__(self) -> str:
        given = ", ".join(map(text_of, self.values))
        return f"{self.form}({given})"

    @property
    def listed(self) -> bool:
        """Whether the values are options of a list."""
        return self.form in (*LISTED, "constant")

    @property
    def whole(self) -> bool:
        """Whether the values are whole numbers."""
        return self.form in WHOLE

    @property
    def log(self) -> bool:
        """Whether orders of magnitude are drawn evenly."""
        return "log" in self.form

    @property
    def step(self) -> Any:
        """The step q of a quantised primitive; None without one."""
        if not self.form.startswith("q"):
            return None
        return self.values[2] if len(self.values) > 2 else 1

    @property
    def low(self) -> Any:
        """The least value that can be drawn."""
        if self.step is None:
            return self.values[0]
        return multiple(-floor_of(-self.values[0] / self.step), self.step)

    @property
    def high(self) -> Any:
        """The greatest value; the limit of uniform and loguniform, which draw it by rounding only."""
        upper = self.values[1]
        if self.whole and (self.step is None or self.step == 1):
            return upper - 1
        return upper if self.step is None else multiple(floor_of(upper / self.step), self.step)

    def corners(self) -> tuple[Any, ...]:
        """Return the options, or the least and the greatest value."""
        return self.values if self.listed else tuple(dict.fromkeys((self.low, self.high)))

    def gives(self, value: Any) -> bool:
        """Return whether ``value`` can be drawn; between bounds any number counts as one that can."""
        if self.listed:
            return plain(value) in map(plain, self.values)
        kinds = int if self.whole else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool) and self.low <= value <= self.high

    def draw(self, generator: np.random.Generator) -> Any:
        """Return a value, distributed as Ray Tune's primitive of the same name; floats have ``DIGITS`` digits."""
        if self.listed:
            return self.values[int(generator.integers(len(self.values)))]
        unit = 1 if self.step is None else self.step
        if self.whole:
            first, last = self.low // unit, self.high // unit
            if self.log:
                return min(last, math.floor(math.exp(generator.uniform(math.log(first), math.log(last + 1))))) * unit
            return int(generator.integers(first, last + 1)) * unit
        low, high = float(self.low), float(self.high)
        if self.log:
            drawn = math.exp(generator.uniform(math.log(low), math.log(high)))
        else:
            drawn = float(generator.uniform(low, high))
        drawn = float(f"{drawn:.{DIGITS}g}") if self.step is None else multiple(round(drawn / unit), unit)
        return min(max(drawn, low), high)


def check_options(dimension: Dimension) -> None:
    """Raise BadInput for a list without options, or with one of them twice."""
    if not dimension.values:
        raise BadInput(f"{dimension.path}: {dimension.form} has no options; give at least one value")
    texts = [plain(value) for value in dimension.values]
    if twice := [text for text in dict.fromkeys(texts) if texts.count(text) > 1]:
        raise BadInput(f"{dimension.path}: {twice[0]} is given twice")


def plain(value: Any) -> str:
    """Return a value as a file keeps it, in one order: equal texts are equal values."""
    return json.dumps(value, sort_keys=True, default=str)


def check_bounds(dimension: Dimension) -> None:
    """Raise BadInput for arguments that a primitive with bounds does not take."""
    path, form, values = dimension.path, dimension.form, dimension.values
    quantised, whole = form.startswith("q"), form in WHOLE
    names = ("lower", "upper", "q") if quantised else ("lower", "upper")
    least = 2 if form == "qrandint" else len(names)
    if not least <= len(values) <= len(names):
        raise BadInput(f"{path}: {form} takes {', '.join(names)}; {len(values)} given: {dimension}")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise BadInput(f"{path}: {dimension}: {text_of(value)} is not a {'whole ' if whole else ''}number")
    lower, upper = values[:2]
    if lower >= upper:
        raise BadInput(
            f"{path}: {dimension}: lower bound {text_of(lower)} is not below upper bound {text_of(upper)}"
            + (
                f"; did you mean {form}({', '.join(map(text_of, (upper, lower, *values[2:])))})?"
                if lower > upper
                else ""
            )
        )
    if "log" in form and lower <= 0:
        raise BadInput(f"{path}: {dimension}: lower bound {text_of(lower)} has no logarithm; give one above 0")
    if quantised:
        check_step(dimension, lower, upper, dimension.step)
    if dimension.low >= dimension.high:
        raise BadInput(f"{path}: {dimension}: {text_of(dimension.low)} is the only value; write it as a constant")


def check_step(dimension: Dimension, lower: Any, upper: Any, step: Any) -> None:
    """Raise BadInput for a step that does not fit between the bounds."""
    if step <= 0:
        raise BadInput(f"{dimension.path}: {dimension}: q is {text_of(step)}; give a step above 0")
    if step > upper - lower:
        raise BadInput(
            f"{dimension.path}: {dimension}: q = {text_of(step)} is larger than the range "
            f"{text_of(lower)} to {text_of(upper)}; give a smaller q"
        )
    for bound in () if dimension.whole else (lower, upper):
        if not math.isclose(bound / step, round(bound / step)):
            raise BadInput(
                f"{dimension.path}: {dimension}: bound {text_of(bound)} is no multiple of q = {text_of(step)}"
            )


def floor_of(ratio: float) -> int:
    """Return the largest whole number up to ``ratio``, which rounding may have moved a little."""
    near = round(ratio)
    return near if math.isclose(ratio, near) else math.floor(ratio)


def multiple(count: int, step: Any) -> Any:
    """Return ``count`` steps, without the last digits that rounding leaves (3 · 0.1 is 0.3)."""
    return count * step if isinstance(step, int) else float(f"{count * step:.12g}")


def text_of(value: Any) -> str:
    """Return a value as the name of a setting writes it."""
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
