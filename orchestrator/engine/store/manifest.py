"""The manifest of an artefact: what it is, which files it has, and their sizes and checksums."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Final

from orchestrator.engine.store.faults import damaged

MANIFEST: Final = "manifest.json"
SCHEMA: Final = "orch.artefact/1"


@dataclass(frozen=True)
class FileEntry:
    """One payload file: its name in the artefact's folder, its bytes, its sha256 (hex)."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What ``manifest.json`` says; ``seconds`` is the time the work took, ``created`` is ISO 8601 in UTC."""

    stage: str
    key: str
    document: dict[str, Any]
    files: dict[str, FileEntry]
    seconds: float
    created: str


def write_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of ``manifest.json``, with a checksum of its own."""
    body = {"schema": SCHEMA, **asdict(manifest)}
    return json.dumps({**body, "sha256": _checksum(body)}, indent=1).encode() + b"\n"


def read_manifest(stage: str, key: str, data: bytes) -> Manifest:
    """Return the manifest of artefact ``stage``/``key``; raises CorruptArtefact when it is not whole or not its own."""
    try:
        body = json.loads(data)
    except ValueError:
        raise damaged(stage, key, MANIFEST, "is empty" if not data.strip() else "is not JSON") from None
    if not isinstance(body, dict) or body.pop("sha256", None) != _checksum(body):
        raise damaged(stage, key, MANIFEST, "does not have the checksum that it names")
    if body.get("schema") != SCHEMA:
        raise damaged(stage, key, MANIFEST, f"has the schema {body.get('schema')!r} instead of {SCHEMA!r}")
    if (body["stage"], body["key"]) != (stage, key):
        raise damaged(stage, key, MANIFEST, f"belongs to the artefact {body['stage']}/{body['key']}")
    files = {name: FileEntry(**entry) for name, entry in body["files"].items()}
    return Manifest(stage, key, body["document"], files, body["seconds"], body["created"])


def _checksum(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
