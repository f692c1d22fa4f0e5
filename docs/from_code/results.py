"""Pages of the fields of result.json and compare.json, by the JSON Schemas that the package holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from docs.from_code.text import code, page, prose, table

FOLDER = "reference/fields"


def pages() -> dict[str, str]:
    """Return the pages by their place in the documentation."""
    schemas = {
        file.name.removesuffix(".json"): json.loads(file.read_text("utf-8"))
        for file in files("orchestrator.schemas").iterdir()
        if file.name.endswith(".json")
    }
    rows = [(f"[{name}]({name}.md)", prose(schemas[name].get("description", ""))) for name in sorted(schemas)]
    index = page(
        "Fields of results",
        "What `result.json` and `compare.json` hold, by their JSON Schemas (`orch schema KIND` prints one). "
        "[Results](../result.md) says what the fields mean.",
        table(("schema", ""), rows),
    )
    return {f"{FOLDER}/index.md": index} | {
        f"{FOLDER}/{name}.md": page(f"Fields: {name}", *described(schema)) for name, schema in sorted(schemas.items())
    }


def described(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of a document and of the objects inside it."""
    yield prose(schema.get("description", ""))
    yield fields(schema)
    for name, inside in schema.get("$defs", {}).items():
        yield f"## {name}"
        yield prose(" ".join(inside.get("description", "").split()))
        yield fields(inside)


def fields(schema: Mapping[str, Any]) -> str:
    """Return the fields of an object as a table."""
    needed = set(schema.get("required", ()))
    rows = [
        (code(name), words(value), "" if name in needed else "may be missing")
        for name, value in schema.get("properties", {}).items()
    ]
    return table(("field", "type", ""), rows) if rows else ""


def words(value: Mapping[str, Any]) -> str:
    """Return the type of a field in words; an object with fields of its own is a link."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in value:
        return code(value["const"])
    if "enum" in value:
        return ", ".join(code(one) for one in value["enum"])
    if "anyOf" in value:
        return " or ".join(words(one) for one in value["anyOf"])
    kind = value.get("type", "any value")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {words(value['items'])}" if "items" in value else "list"
    if kind == "object" and isinstance(value.get("additionalProperties"), Mapping):
        return f"object of {words(value['additionalProperties'])}"
    return str(kind)
