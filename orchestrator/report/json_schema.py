"""JSON Schema of what runs write, made of the rows that read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from orchestrator.report.result import FinishedRun
from orchestrator.report.rows import is_row, slots

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NUMBER: dict[str, Any] = {"type": ["number", "null"]}
PLAIN: Mapping[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema_of(title: str, forms: tuple[type[FinishedRun], ...]) -> dict[str, Any]:
    """Return the schema of a document that is of one of ``forms``.

    The head may hold more than it says, since later versions add to it; rows may not, as their reader holds them.
    """
    writer = Writer()
    found = [writer.head(form) for form in forms]
    whole = found[0] if len(found) == 1 else {"anyOf": found}
    return {"$schema": DIALECT, "title": title, **whole, "$defs": dict(sorted(writer.rows.items()))}


@dataclass
class Writer:
    """Collects the schemas of ``rows`` by name while that of a document is written; ``names``: form → name."""

    rows: dict[str, Any] = field(default_factory=dict)
    names: dict[Any, str] = field(default_factory=dict)

    def head(self, form: type[FinishedRun]) -> dict[str, Any]:
        """Return the schema of a document."""
        found = self.members(form)
        version = next(each.default for each in fields(form) if each.name == "schema")
        found["properties"] |= {"schema": {"const": version}, "kind": {"const": form.KIND}}
        found["required"] = sorted({*found["required"], "schema"})
        return found

    def members(self, form: Any) -> dict[str, Any]:
        """Return the schema of the object that a row is written as."""
        properties: dict[str, Any] = {}
        required: list[str] = []
        for slot in slots(form):
            own = NUMBER if slot.part else self.value(slot.hint)
            properties |= dict.fromkeys(slot.keys, own)
            required += slot.keys if slot.required else ()
        told = (form.__doc__ or "").strip().partition("\n\n")[0]
        return {
            "type": "object",
            "description": " ".join(told.split()),
            "properties": properties,
            "required": sorted(required),
        }

    def row(self, form: Any) -> dict[str, Any]:
        """Return a reference to the schema of a row, which is written down once."""
        if form not in self.names:
            same = sum(each.__name__ == form.__name__ for each in self.names)
            self.names[form] = f"{form.__name__}{same + 1 if same else ''}"
            self.rows[self.names[form]] = {**self.members(form), "additionalProperties": False}
        return {"$ref": f"#/$defs/{self.names[form]}"}

    def value(self, hint: Any) -> dict[str, Any]:
        """Return the schema of a value of a type: what ``rows.read_row`` reads as such."""
        origin, inner = get_origin(hint), get_args(hint)
        if hint is Any:
            return {}
        if origin is Literal:
            return {"enum": list(inner)}
        if origin in (Union, UnionType):
            (one,) = (self.value(each) for each in inner if each is not NoneType)
            return {"type": [one["type"], "null"]} if one.keys() == {"type"} else {"anyOf": [one, {"type": "null"}]}
        if origin is tuple and inner[-1] is Ellipsis:
            return {"type": "array", "items": self.value(inner[0])}
        if origin is tuple:
            parts = [self.value(each) for each in inner]
            return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
        if origin is not None and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.value(inner[1])}
        return self.row(hint) if is_row(hint) else {"type": PLAIN[hint]}
