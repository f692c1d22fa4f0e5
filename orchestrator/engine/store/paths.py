"""Names and paths in a store: whatever a stored file says, nothing outside of the store is read, written or removed."""

from __future__ import annotations

import re

from orchestrator.engine.store.faults import StoreRefused

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""Stages, keys and files of an artefact; none begins with a dot or holds a separator."""
_NO_PART = ("", ".", "..")


def is_name(text: object) -> bool:
    """Say whether ``text`` can be a stage, a key or a file of an artefact."""
    return isinstance(text, str) and NAME.fullmatch(text) is not None


def require_inside(path: str) -> str:
    """Return ``path``, relative to the root of a store; raises StoreRefused for one that could lead elsewhere.

    Such are absolute paths, ``..`` and ``.`` and empty parts, backslashes and control characters. "" is the root.
    """
    if path and (any(part in _NO_PART for part in path.split("/")) or "\\" in path or not path.isprintable()):
        raise StoreRefused(f"{path!r} is no path inside of a store (parts joined by single slashes, no . or ..)")
    return path


def foreign_name(where: str, what: str, name: object) -> StoreRefused:
    """Return the refusal of a stored file ``where`` that calls ``what`` by a name that could lead elsewhere."""
    return StoreRefused(
        f"{where} names {what} {name!r}, which orch never writes: names have letters, digits, - . and _ alone; "
        "somebody has changed the store: use another one (--store), or find out who writes to it"
    )


def leads_out(place: str, path: str, what: str) -> StoreRefused:
    """Return the refusal of something at ``path`` in the store ``place`` that is neither a file nor a folder of it."""
    return StoreRefused(
        f"store {place}: {path} is {what}, and inside of a store orch follows none; remove it, or use another store "
        "(--store); the folder of the store itself may be a link"
    )
