"""Documents of runs against their published JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from orchestrator.cli.schema import FORMS, published


@cache
def validator(kind: str) -> Any:
    """Return what checks documents of a kind."""
    from jsonschema import Draft202012Validator

    schema = json.loads(published(kind))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def misfits(document: Mapping[str, Any]) -> list[str]:
    """Return where the content of a result.json or compare.json does not fit its schema, none for other kinds' own."""
    if document["kind"] not in FORMS:
        return []
    plain = json.loads(json.dumps(document))
    return [f"{error.json_path}: {error.message[:200]}" for error in validator(document["kind"]).iter_errors(plain)]
