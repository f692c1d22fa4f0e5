"""The index of a stage: keys that were seen to be there, so that a run that needs no others lists nothing.

It is knowledge, never data: whatever removes an artefact removes the index of its stage first, one that is damaged
counts as none, and a key whose artefact is gone all the same is found to be missing when it is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from orchestrator.engine.store.places import INDEX
from orchestrator.engine.store.storage import Storage

SCHEMA = "orch.index/1"


def read_index(storage: Storage, stage: str) -> frozenset[str]:
    """Return the keys in the index of ``stage``; none where there is no index, or no whole one."""
    try:
        head, _, body = storage.read(_path(stage)).partition(b"\n")
    except FileNotFoundError:
        return frozenset()
    if head != _head(stage, body):
        return frozenset()
    return frozenset(body.decode().split())


def write_index(storage: Storage, stage: str, keys: Collection[str]) -> None:
    """Publish ``keys`` as the index of ``stage``."""
    body = "\n".join(sorted(keys)).encode()
    storage.publish(INDEX, {stage: _head(stage, body) + b"\n" + body})


def remove_index(storage: Storage, stage: str) -> None:
    """Remove the index of ``stage``; one that is not there is no error."""
    storage.remove_file(_path(stage))


def _head(stage: str, body: bytes) -> bytes:
    return f"{SCHEMA} {stage} {hashlib.sha256(body).hexdigest()}".encode()


def _path(stage: str) -> str:
    return f"{INDEX}/{stage}"
