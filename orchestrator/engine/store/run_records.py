"""Records of runs: which artefacts each refers to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from audits.plain_json import from_json
from orchestrator.engine.jobs.keys import canonical
from orchestrator.engine.store.faults import CorruptArtefact
from orchestrator.engine.store.paths import foreign_name, is_name

SCHEMA: Final = "orch.run/1"


@dataclass(frozen=True)
class Run:
    """A recorded run: its resolved plan (``document``) and the keys it refers to by stage; ``created`` in UTC.

    ``gpu``: the model of the GPU that it ran on, "" for a CPU.
    """

    id: str
    name: str
    created: str
    document: dict[str, Any]
    keys: dict[str, list[str]]
    gpu: str = ""


def run_id(name: str, document: Mapping[str, Any]) -> str:
    """Return the id (12 hex characters) of the run called ``name`` of the plan ``document``."""
    text = json.dumps({"name": name, "document": canonical(document, fold_numbers=True)}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def write_run(run: Run) -> bytes:
    """Return the bytes of a run's record."""
    return json.dumps({"schema": SCHEMA, **asdict(run)}, indent=1).encode() + b"\n"


def read_run(path: str, data: bytes) -> Run:
    """Return the run recorded in ``data``.

    Raises CorruptArtefact, because nothing may be collected on a guess, and StoreRefused where a stage or a key has a
    name that could lead elsewhere.
    """
    name = path.rpartition("/")[2].removesuffix(".json")
    try:
        body = from_json(data)
        if body.pop("schema") != SCHEMA:
            raise ValueError("another schema")
        run = Run(**body)
        datetime.fromisoformat(run.created)
        if run.id != name or not isinstance(run.name, str) or not isinstance(run.document, dict):
            raise ValueError("another run")
        if not all(isinstance(keys, list) for keys in run.keys.values()):
            raise TypeError("keys")
        named = [*run.keys, *(key for keys in run.keys.values() for key in keys)]
        if not all(isinstance(each, str) for each in named):
            raise TypeError("keys")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise CorruptArtefact(
            f"the record {path} of a run is damaged; forget the run with: orch cache gc --drop-run {name}"
        ) from None
    for each in named:
        if not is_name(each):
            raise foreign_name(f"the record {path}", "the stage or key", each)
    return run
