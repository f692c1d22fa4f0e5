"""Reading a store as a person does: find an artefact by a prefix, say what it is, find the one most like it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from audits.errors import BadInput
from orchestrator.engine.jobs.keys import differences
from orchestrator.engine.store.store import Artefact, Store

_HASH = re.compile(r"[0-9a-f]{12,}")


def find_artefact(store: Store, prefix: str) -> Artefact:
    """Return the one artefact whose key, or ``stage/key``, starts with ``prefix``; raises BadInput if it is not one."""
    stage, _, start = prefix.rpartition("/")
    found = [
        (name, key)
        for name in store.stages()
        if stage in ("", name)
        for key in sorted(store.keys(name))
        if key.startswith(start)
    ]
    if not found:
        raise BadInput(f"no artefact {prefix!r} in the store {store.storage.place}; see: orch cache ls")
    if len(found) > 1:
        some = ", ".join(f"{name}/{key}" for name, key in found[:3])
        raise BadInput(
            f"{prefix!r} is the start of {len(found)} artefacts ({some}{', …' * (len(found) > 3)}); give more"
        )
    return store.get(*found[0])


def find_run(store: Store, prefix: str) -> str:
    """Return the id of the one recorded run that starts with ``prefix``; raises BadInput if it is not one."""
    ids = store.run_ids()
    found = [run for run in ids if run.startswith(prefix)]
    if len(found) != 1:
        some = f"recorded: {', '.join(found or ids)}" if ids else "none is recorded"
        raise BadInput(f"{prefix!r} is the id of {len(found) or 'no'} recorded run{'s' * (len(found) > 1)}; {some}")
    return found[0]


def nearest(artefact: Artefact) -> Artefact | None:
    """Return the other artefact of the same stage whose document differs in the fewest fields, the newest of equals."""
    others = (
        other
        for other in artefact.store.artefacts(artefact.stage, on_damage=lambda *_: None)
        if other.key != artefact.key
    )
    ranked = sorted(others, key=lambda other: other.created, reverse=True)
    return min(ranked, key=lambda other: len(differences(artefact.document, other.document)), default=None)


def what_it_is(document: Mapping[str, Any], width: int = 60) -> str:
    """Return the first fields of a document in one line of at most ``width`` characters; hashes are left out."""
    text = " ".join(_words(document))
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _words(document: Mapping[str, Any]) -> Iterator[str]:
    for name, value in document.items():
        if isinstance(value, Mapping):
            yield from _words(value)
        elif isinstance(value, str):
            if not _HASH.fullmatch(value):
                yield value
        elif isinstance(value, list):
            yield f"{name}[{len(value)}]"
        elif value is not None:
            yield f"{name}={value}"


def size_text(size: int) -> str:
    """Return a number of bytes for people, in powers of 1000."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"


def age_text(seconds: float) -> str:
    """Return a time span for people: 40 s, 12 min, 5 h, 3 d."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
