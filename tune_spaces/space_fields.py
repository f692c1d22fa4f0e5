"""The space of a sweep file, field by field: lists, primitives and constants in, dimensions out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from audits.errors import BadInput, did_you_mean
from tune_spaces.dimensions import FORMS, text_of
from tune_spaces.space import Dimension, Space


def space_of(given: Any, algorithm: str) -> Space:
    """Return the space of a file; a plain list is a grid, or a choice where settings are drawn."""
    if not isinstance(given, Mapping):
        raise BadInput(f"space is {text_of(given)}; write fields of the plan and what they are, one a line")
    for path in given:
        if not isinstance(path, str):
            raise BadInput(f"space: {text_of(path)} is not the name of a field; write it as in a plan, with points")
    return Space(tuple(dimension_of(path, value, algorithm) for path, value in given.items()))


def dimension_of(path: str, given: Any, algorithm: str) -> Dimension:
    """Return one field of a space: a list, ``{primitive: arguments, when: conditions}``, or a constant."""
    listed = "grid" if algorithm == "grid" else "choice"
    if isinstance(given, list):
        return Dimension(path, listed, tuple(given))
    if isinstance(given, str) and (called := re.fullmatch(rf"({'|'.join(FORMS)})\((.*)\)", given.strip())):
        form, arguments = called.groups()
        raise BadInput(f"{path}: {given} is written so behind --vary; in a file write {{{form}: [{arguments}]}}")
    if not isinstance(given, Mapping):
        return Dimension(path, "constant", (given,))
    forms = [key for key in given if key != "when"]
    refuse_nested(path, given, forms)
    if len(forms) != 1:
        raise BadInput(f"{path}: give one primitive, e.g. {{loguniform: [0.02, 1.0]}}; primitives: {', '.join(FORMS)}")
    (form,) = forms
    arguments = given[form]
    if form in FORMS and form != "constant" and not isinstance(arguments, list):
        raise BadInput(f"{path}: {form} takes a list, e.g. {{{form}: [1, 2]}}, not {text_of(arguments)}")
    if form == "grid" and algorithm != "grid":
        raise BadInput(f"{path}: search: {algorithm} draws its settings and walks no grid; write choice")
    values = tuple(arguments) if isinstance(arguments, list) and form != "constant" else (arguments,)
    return Dimension(path, form, values, conditions_of(path, given.get("when", {})))


def refuse_nested(path: str, given: Mapping[str, Any], forms: Sequence[str]) -> None:
    """Raise BadInput where the keys ``forms`` of a field are fields in it, as they stand in a plan."""
    if not forms or any(form in FORMS for form in forms):
        return
    first, inside = forms[0], given[forms[0]]
    if not isinstance(inside, Mapping):
        if len(forms) == 1 and did_you_mean(str(first), FORMS):
            return  # a primitive that is misspelt
        raise BadInput(
            f"{path}: {first!r} is no primitive; for the field in it write {path}.{first}: {text_of(inside)}; "
            f"primitives: {', '.join(FORMS)}"
        )
    whole = f"{path}.{first}"
    while isinstance(inside, Mapping) and inside and not any(form in inside for form in FORMS):
        name = next(iter(inside))
        whole, inside = f"{whole}.{name}", inside[name]
    raise BadInput(f"space: fields are not nested here; write the whole path: {whole}: {text_of(inside)}")


def conditions_of(path: str, given: Any) -> dict[str, tuple[Any, ...]]:
    """Return field → values of a condition, written as one value or a list of them."""
    if not isinstance(given, Mapping):
        raise BadInput(f"{path}: when is {text_of(given)}; write it as {{field: value}} or {{field: [value, value]}}")
    return {field: tuple(value) if isinstance(value, list) else (value,) for field, value in given.items()}
