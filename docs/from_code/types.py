"""Types of fields in words, with the values that they allow."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import PlainValidator
from pydantic.fields import FieldInfo

from audits.errors import BadInput
from audits.unlearning.settings import Allowed

WORDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    type(None): "`null`",
    dict: "mapping",
    Any: "any value",
}
BOUNDS = (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<"))


def words(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """Return a type in words: "whole number ≥ 1", "list of text", or the values of a choice."""
    notes = list(metadata)
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return words(inner, [*unpacked(more), *notes])
    for note in notes:
        if isinstance(note, PlainValidator):
            return refused(note)
    bounds = [text for note in notes if (text := bound(note))]
    return " ".join([plain(annotation), ", ".join(bounds)]).strip()


def plain(annotation: Any) -> str:
    """Return a type without bounds of its own in words."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in inside)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(words(one) for one in inside))
    if origin in (tuple, list):
        if len(inside) == 2 and inside[1] is Ellipsis:
            return f"list of {words(inside[0])}"
        return f"list of {len(inside)}: {', '.join(words(one) for one in inside)}"
    if origin is dict:
        return f"mapping of text to {words(inside[1])}"
    return WORDS.get(annotation) or "section"


def unpacked(notes: Iterable[Any]) -> list[Any]:
    """Return the notes of an annotation, those of a ``Field`` among them one by one."""
    return [one for note in notes for one in (note.metadata if isinstance(note, FieldInfo) else [note])]


def bound(note: Any) -> str:
    """Return one bound in words; "" for what bounds nothing."""
    if isinstance(note, Allowed):
        return f"({note.words})"
    if isinstance(note, annotated_types.MinLen):
        return "(not empty)"
    found = [f"{sign} {getattr(note, name):g}" for name, sign in BOUNDS if hasattr(note, name)]
    if not found and getattr(note, "pattern", None):
        return f"(pattern `{note.pattern}`)"
    return found[0] if found else ""


def refused(check: PlainValidator) -> str:
    """Return what a check of ours allows, in the words of its own refusal."""
    try:
        check.func(object())  # type: ignore[call-arg]  # our checks take the value alone
    except BadInput as error:
        return str(error).partition("allowed: ")[2].partition("; from elsewhere")[0]
    raise RuntimeError(f"{check.func} allows anything; then it needs no check")
