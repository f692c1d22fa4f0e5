"""Rows of a result, read from JSON and written to it by the one schema that their fields are.

Rows are frozen dataclasses; those of ``orchestrator.judgement.rows`` are pydantic models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from audits.errors import BadInput
from orchestrator.judgement.estimate import Estimate, Span

R = TypeVar("R")
Reader = Callable[[Any, str], Any]
"""From a JSON value and its place, for messages, to the value of a field."""

SPARSE: Mapping[str, Any] = {"sparse": True}
"""Metadata of a field that is left out of JSON while it is None."""
OF_POINTS: Mapping[str, Any] = {"of_points": True}
"""Metadata of a field about single points: ``without_points`` empties it."""
FEWEST = 10
"""Points below which a number about them says too much about each: a usual threshold of disclosure control."""


def counted(name: str) -> Mapping[str, Any]:
    """Return the metadata of a field that ``without_points`` empties of what rests on fewer than ``FEWEST`` points.

    ``name``: the count, of each row where the field is a list of rows, else beside the field.
    """
    return {"counted": name}


@dataclass(frozen=True)
class Slot:
    """A field of a row: its type, the ``keys`` under which it stands, how it is read, and whether it must be there."""

    name: str
    hint: Any
    keys: tuple[str, ...]
    read: Reader
    part: type[Estimate] | type[Span] | None
    required: bool
    sparse: bool


def slots(form: Any) -> tuple[Slot, ...]:
    """Return the schema of a row."""
    if form not in _SLOTS:
        _SLOTS[form] = tuple(_slot(*each) for each in _fields(form))
    return _SLOTS[form]


_SLOTS: dict[Any, tuple[Slot, ...]] = {}


def is_row(form: Any) -> bool:
    """Say whether a type, or a value, is that of a row."""
    return is_dataclass(form) or isinstance(form, BaseModel) or (isinstance(form, type) and issubclass(form, BaseModel))


def _fields(form: Any) -> Iterator[tuple[str, Any, Mapping[str, Any], bool]]:
    """Yield name, type and metadata of each field of a row, and whether it must be given."""
    if is_dataclass(form):
        hints = get_type_hints(form)
        for each in fields(form):
            required = each.default is MISSING and each.default_factory is MISSING
            yield each.name, hints[each.name], each.metadata, required
    else:
        for name, info in form.model_fields.items():
            metadata = next((each for each in info.metadata if isinstance(each, Mapping)), {})
            yield name, info.annotation, metadata, info.is_required()


def _slot(name: str, hint: Any, metadata: Mapping[str, Any], required: bool) -> Slot:
    part = hint if hint in (Estimate, Span) else None
    keys = metadata.get("keys") or tuple(f"{name}{end}" for end in (part.SUFFIXES if part else ("",)))
    read = _reader(float | None) if part else _reader(hint)
    return Slot(name, hint, keys, read, part, required, bool(metadata.get("sparse")))


def read_row(form: type[R], raw: Any, where: str, *, additions: bool = False) -> R:
    """Return ``raw``, a JSON object, as a row; ``where``: its place, for messages.

    Raises BadInput for an object that lacks a field, has one of another type, or one that is not known (``additions``:
    those are ignored).
    """
    if not isinstance(raw, Mapping):
        raise BadInput(f"{where} is {type(raw).__name__}, not an object")
    schema = slots(form)
    if not additions:
        _refuse_unknown(raw, (key for slot in schema for key in slot.keys), where)
    values: dict[str, Any] = {}
    for slot in schema:
        if not slot.required and not any(key in raw for key in slot.keys):
            continue
        if missing := [key for key in slot.keys if key not in raw]:
            raise BadInput(f"{where} lacks {missing[0]!r}")
        found = [slot.read(raw[key], f"{where}.{key}") for key in slot.keys]
        values[slot.name] = slot.part(*found) if slot.part else found[0]
    return form(**values)


def read_rows(form: type[R], raw: Iterable[Any], where: str) -> tuple[R, ...]:
    """Return a list of JSON objects as rows."""
    return tuple(read_row(form, each, f"{where}[{place}]") for place, each in enumerate(raw))


def _refuse_unknown(raw: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    if unknown := sorted(raw.keys() - set(known)):
        raise BadInput(f"{where} has a field that this version does not know: {unknown[0]!r}")


def write_row(row: Any) -> dict[str, Any]:
    """Return a row as the JSON object that ``read_row`` reads."""
    found: dict[str, Any] = {}
    for slot in slots(type(row)):
        value = getattr(row, slot.name)
        if slot.part:
            found |= zip(slot.keys, (getattr(value, each.name) for each in fields(slot.part)), strict=True)
        elif value is not None or not slot.sparse:
            found[slot.keys[0]] = _plain(value)
    return found


def without_points(form: Any, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``raw``, the JSON object of a row, without what it and the rows within it say about single points.

    Lists are empty then and numbers null; fields that the row does not know stay.
    """
    hints, found = get_type_hints(form), dict(raw)
    for each in fields(form):
        if each.name not in raw:
            continue
        value, count = raw[each.name], each.metadata.get("counted")
        if each.metadata.get("of_points"):
            value = _emptied(value)
        elif count and isinstance(value, list | tuple):
            value = [row for row in value if row[count] >= FEWEST]
        elif count and raw[count] < FEWEST:
            value = _emptied(value)
        found[each.name] = _within(hints[each.name], value)
    return found


def _emptied(value: Any) -> Any:
    """Return what is left of a value: objects with their fields emptied, empty lists, null."""
    if isinstance(value, Mapping):
        return {name: _emptied(each) for name, each in value.items()}
    return [] if isinstance(value, list | tuple) else None


def _within(hint: Any, value: Any) -> Any:
    """Return a value of a type, with the rows in it ``without_points``."""
    origin, inner = get_origin(hint), get_args(hint)
    if value is None or hint in (Estimate, Span) or origin is Literal:
        return value
    if origin in (Union, UnionType):
        (one,) = (each for each in inner if each is not NoneType)
        return _within(one, value)
    if origin is tuple and inner[-1] is Ellipsis:
        return [_within(inner[0], each) for each in value]
    if origin is not None and origin is not tuple and issubclass(origin, Mapping):
        return {name: _within(inner[1], each) for name, each in value.items()}
    return without_points(hint, value) if isinstance(hint, type) and is_dataclass(hint) else value


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if is_row(value):
        return write_row(value)
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _reader(hint: Any) -> Reader:
    """Return what reads values of a type: numbers, texts, rows, and tuples, mappings and unions of these."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value, where: value
    if origin is Literal:
        return _choice_reader(inner)
    if origin in (Union, UnionType):
        (one,) = (each for each in inner if each is not NoneType)
        read = _reader(one)
        return lambda value, where: None if value is None else read(value, where)
    if origin is tuple and inner[-1] is Ellipsis:
        return _list_reader(_reader(inner[0]))
    if origin is tuple:
        return _tuple_reader([_reader(each) for each in inner])
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_reader(_reader(inner[1]))
    if is_row(hint):
        return lambda value, where: read_row(hint, value, where)
    return _plain_reader(hint)


def _plain_reader(kind: type) -> Reader:
    allowed = (int, float) if kind is float else (kind,)

    def read(value: Any, where: str) -> Any:
        if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
            raise BadInput(f"{where} is {value!r}, not of type {kind.__name__}")
        return value

    return read


def _choice_reader(allowed: tuple[str, ...]) -> Reader:
    def read(value: Any, where: str) -> Any:
        if value not in allowed:
            raise BadInput(f"{where} is {value!r}; allowed: {', '.join(map(repr, allowed))}")
        return value

    return read


def _list_reader(read: Reader) -> Reader:
    def read_all(value: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise BadInput(f"{where} is {type(value).__name__}, not a list")
        return tuple(read(each, f"{where}[{place}]") for place, each in enumerate(value))

    return read_all


def _tuple_reader(readers: list[Reader]) -> Reader:
    def read_each(value: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or len(value) != len(readers):
            raise BadInput(f"{where} is not a list of {len(readers)}")
        each = enumerate(zip(readers, value, strict=True))
        return tuple(read(part, f"{where}[{place}]") for place, (read, part) in each)

    return read_each


def _mapping_reader(read: Reader) -> Reader:
    def read_values(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise BadInput(f"{where} is {type(value).__name__}, not an object")
        return {name: read(each, f"{where}.{name}") for name, each in value.items()}

    return read_values
