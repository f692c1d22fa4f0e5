"""The manifest of an artefact: what it is, which files it has, and their sizes and checksums."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from audits.plain_json import from_json
from orchestrator.engine.store.faults import Unsigned, damaged
from orchestrator.engine.store.paths import foreign_name, is_name
from orchestrator.engine.store.trust import KEY_FILE, Trust

MANIFEST: Final = "manifest.json"
SCHEMA: Final = "orch.artefact/1"
SIGNED: Final = "orch.manifest"
NOBODY: Final = Trust()
"""Of whom no signature is asked."""


@dataclass(frozen=True)
class FileEntry:
    """One payload file: its name in the artefact's folder, its bytes, its sha256 (hex)."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What ``manifest.json`` says.

    ``seconds`` is the time the work took, ``created`` is ISO 8601 in UTC, ``machine`` the kind of machine that did it,
    "" where an older version of orch did.
    """

    stage: str
    key: str
    document: dict[str, Any]
    files: dict[str, FileEntry]
    seconds: float
    created: str
    machine: str = ""


def write_manifest(manifest: Manifest, trust: Trust = NOBODY) -> bytes:
    """Return the bytes of ``manifest.json``, with a checksum of its own, signed if ``trust`` has a key."""
    body = {"schema": SCHEMA, **asdict(manifest)}
    return sealed({**body, "hmac": trust.signature(SIGNED, _canonical(body))} if trust.key else body)


def sealed(body: Mapping[str, Any]) -> bytes:
    """Return the fields of a manifest and their checksum as the bytes of ``manifest.json``."""
    return json.dumps({**body, "sha256": _checksum(body)}, indent=1).encode() + b"\n"


def read_manifest(stage: str, key: str, data: bytes, trust: Trust = NOBODY) -> Manifest:
    """Return the manifest of artefact ``stage``/``key``.

    Raises CorruptArtefact when it is not whole or not its own, StoreRefused when it names a file that could lie
    elsewhere than in the artefact's folder, Unsigned when ``trust`` has a key with which it is not signed.
    """
    try:
        body = from_json(data)
    except ValueError:
        raise damaged(stage, key, MANIFEST, "is empty" if not data.strip() else "is not JSON") from None
    if not isinstance(body, dict) or body.pop("sha256", None) != _checksum(body):
        raise damaged(stage, key, MANIFEST, "does not have the checksum that it names")
    signature = body.pop("hmac", None)
    if not trust.has_signed(SIGNED, _canonical(body), signature):
        what = "not signed" if signature is None else "signed with another key, or changed"
        raise Unsigned(
            f"artefact {stage}/{key} is {what}, and {KEY_FILE} names the key of your team: whoever lacks it may have "
            "put it there; run again with --rebuild to compute it anew, or use another store (--store)"
        )
    if body.get("schema") != SCHEMA:
        raise damaged(stage, key, MANIFEST, f"has the schema {body.get('schema')!r} instead of {SCHEMA!r}")
    if (body.get("stage"), body.get("key")) != (stage, key):
        raise damaged(stage, key, MANIFEST, f"belongs to the artefact {body.get('stage')}/{body.get('key')}")
    try:
        found = _manifest(body)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise damaged(stage, key, MANIFEST, "lacks a field, or has one of another type") from None
    for name in [*found.files, *(entry.path for entry in found.files.values())]:
        if not is_name(name):
            raise foreign_name(f"the manifest of artefact {stage}/{key}", "the file", name)
    return found


def _manifest(body: Mapping[str, Any]) -> Manifest:
    """Return the manifest with these fields; raises the errors of whatever is not as it should be."""
    files = {name: FileEntry(**entry) for name, entry in body["files"].items()}
    datetime.fromisoformat(body["created"])
    machine = body.get("machine", "")
    named = (text for entry in files.values() for text in (entry.path, entry.sha256))
    texts = all(isinstance(text, str) for text in (machine, *named))
    numbers = all(math.isfinite(number) for number in (body["seconds"], *(entry.size for entry in files.values())))
    if not (texts and numbers and isinstance(body["document"], dict)):
        raise TypeError("a field of another type")
    return Manifest(body["stage"], body["key"], body["document"], files, body["seconds"], body["created"], machine)


def _checksum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(body)).hexdigest()


def _canonical(body: Mapping[str, Any]) -> bytes:
    """Return the bytes that are checked and signed: with stage and key, so that none passes for another artefact's."""
    return json.dumps(body, sort_keys=True).encode()
