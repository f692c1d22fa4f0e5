"""Garbage of a store: leftovers of interrupted writes, damaged artefacts, artefacts that no run refers to."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from audits.writing import TEMPORARY
from orchestrator.engine.store.checkpoints import needless
from orchestrator.engine.store.faults import CorruptArtefact, Missing, Unsigned, damaged
from orchestrator.engine.store.manifest import MANIFEST
from orchestrator.engine.store.places import CLAIMS, NO_STAGES, PROBES
from orchestrator.engine.store.storage import Entry
from orchestrator.engine.store.store import Artefact, Store

GRACE = 3600.0
"""Seconds for which an unfinished file may still be somebody's work."""

_DAY = 86400.0
_GRACE = {CLAIMS: GRACE, PROBES: 30 * _DAY}
"""A claim is renewed while its job is done; a probe lies there as long as its run, and workers may join late."""
_KEY = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Damage:
    """A damaged artefact, the bytes of its files and the line that says what is wrong."""

    stage: str
    key: str
    size: int
    problem: str


@dataclass
class Garbage:
    """What a collection removes, and how many it leaves: finished artefacts and unfinished files that are too young."""

    leftovers: list[Entry] = field(default_factory=list)
    damaged: list[Damage] = field(default_factory=list)
    unreferenced: list[Artefact] = field(default_factory=list)
    kept: int = 0
    young: int = 0


def find_garbage(
    store: Store,
    *,
    forget_runs: Collection[str] = (),
    older_than_days: float = 0.0,
    everything: bool = False,
    checksums: bool = True,
    now: float | None = None,
) -> Garbage:
    """Return what ``collect`` would remove; nothing is changed.

    ``forget_runs``: ids of recorded runs that count as gone. ``older_than_days`` spares unreferenced artefacts that
    are younger. ``everything`` takes unfinished files younger than ``GRACE`` too (only when nothing is running).
    ``checksums=False`` compares sizes instead of reading every byte. Raises CorruptArtefact when the record of a run
    cannot be read, for then nobody knows what it refers to.
    """
    now = time.time() if now is None else now
    garbage = Garbage()
    for stage in store.stages():
        folders: dict[str, list[Entry]] = defaultdict(list)
        for entry in store.storage.walk(stage):
            parts = entry.path.split("/")
            if any(part.startswith(TEMPORARY) for part in parts):
                garbage.leftovers.append(entry)
            elif len(parts) == 4 and _KEY.fullmatch(parts[2]) and parts[1] == parts[2][:2]:
                folders[parts[2]].append(entry)
        for key, entries in sorted(folders.items()):
            _sort_out(store, stage, key, entries, garbage, checksums=checksums)
    for place in NO_STAGES:
        found = store.storage.walk(place)
        garbage.leftovers += [e for e in found if place in _GRACE or e.path.split("/")[-1].startswith(TEMPORARY)]
    old = [e for e in garbage.leftovers if everything or now - e.modified >= _GRACE.get(e.path.split("/")[0], GRACE)]
    garbage.young = len(garbage.leftovers) - len(old)
    garbage.leftovers = old
    wanted = referenced(store, forget_runs)  # read last: a run may have been recorded meanwhile
    garbage.leftovers += [entry for entry in needless(store, wanted) if everything or now - entry.modified >= GRACE]
    garbage.unreferenced = [
        artefact
        for artefact in garbage.unreferenced
        if (artefact.stage, artefact.key) not in wanted and _age(artefact, now) >= older_than_days * _DAY
    ]
    garbage.kept -= len(garbage.unreferenced)
    return garbage


def collect(store: Store, garbage: Garbage) -> None:
    """Remove what ``find_garbage`` found."""
    for damage in garbage.damaged:
        store.drop(damage.stage, damage.key)
    for artefact in garbage.unreferenced:
        store.drop(artefact.stage, artefact.key)
    for entry in garbage.leftovers:
        store.storage.remove_file(entry.path)


def referenced(store: Store, forget_runs: Collection[str] = ()) -> set[tuple[str, str]]:
    """Return (stage, key) of every artefact that a recorded run refers to, runs of ``forget_runs`` excepted."""
    runs = store.runs(skip=forget_runs)
    return {(stage, key) for run in runs for stage, keys in run.keys.items() for key in keys}


def _sort_out(store: Store, stage: str, key: str, entries: list[Entry], garbage: Garbage, *, checksums: bool) -> None:
    """File one artefact's folder: its stray files, and itself as damaged or as a candidate (counted as kept)."""
    sizes = {entry.path.rpartition("/")[2]: entry.size for entry in entries}
    if MANIFEST not in sizes and not store.has(stage, key):
        garbage.leftovers += entries
        return
    try:
        artefact = store.get(stage, key)
        if checksums:
            store.verify(stage, key)
        for name, file in artefact.files.items():
            lost = file.path not in sizes and not store.storage.exists(
                f"{entries[0].path.rpartition('/')[0]}/{file.path}"
            )
            if lost or sizes.get(file.path, file.size) != file.size:
                raise damaged(stage, key, name, "is missing" if lost else f"has {sizes[file.path]} bytes")
    except Missing:  # removed by somebody else since the listing
        return
    except Unsigned:  # whoever made it may have had no key: whether it goes is not for those who have one
        garbage.kept += 1
    except CorruptArtefact as error:
        garbage.damaged.append(Damage(stage, key, sum(sizes.values()), str(error)))
    else:
        garbage.kept += 1
        garbage.unreferenced.append(artefact)
        garbage.leftovers += _strays(artefact, entries)


def _strays(artefact: Artefact, entries: list[Entry]) -> Iterator[Entry]:
    own = {MANIFEST, *(file.path for file in artefact.files.values())}
    return (entry for entry in entries if entry.path.rpartition("/")[2] not in own)


def _age(artefact: Artefact, now: float) -> float:
    return now - datetime.fromisoformat(artefact.created).timestamp()
