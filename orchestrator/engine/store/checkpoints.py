"""Checkpoints: where a worker keeps the training of a job that is not done, so that another one goes on with it.

``checkpoints/<stage>.<key>/<sha256>.safetensors`` holds a snapshot: its tensors, and in the file's metadata its notes
as JSON, whose it is, and the seconds of work that led there. The name is the checksum of the file, made with the key of
the team if the user has one. A newer one takes
the place of an older one after it is there; all are removed when the artefact is whole. Under one key lie snapshots of
one training only, and whichever is read leads to the same bits, so nothing is lost where two workers write.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Final

from audits.errors import BadInput
from audits.plain_json import from_json
from audits.training.keeper import Snapshot
from audits.writing import TEMPORARY
from orchestrator.engine.store.faults import CorruptArtefact, StoreSilent, one_line
from orchestrator.engine.store.payloads import pack_tensors, unpack_weights
from orchestrator.engine.store.places import CHECKPOINTS
from orchestrator.engine.store.storage import Entry
from orchestrator.engine.store.store import Store
from orchestrator.engine.store.trust import KEY_FILE, Trust

SCHEMA: Final = "orch.checkpoint/1"
SUFFIX: Final = ".safetensors"

_log = logging.getLogger(__name__)


class JobKeeper:
    """Keeps the training of the job ``stage``/``key`` in ``store`` every ``minutes`` minutes by ``clock`` (seconds).

    Writing takes two copies of the snapshot in memory. A store that cannot be written costs a line and the checkpoint,
    not the training, which tries again when the next one is due.
    """

    def __init__(
        self, store: Store, stage: str, key: str, minutes: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.store, self.stage, self.key, self.seconds, self.clock = store, stage, key, 60 * minutes, clock
        self.begun = self.since = clock()
        self.spent = 0.0
        """Seconds of work of others that this process went on from."""
        self.names: list[str] = []
        """Files of the job that this process knows of, the newest last."""

    @property
    def folder(self) -> str:
        """Where the files of the job lie."""
        return f"{CHECKPOINTS}/{self.stage}.{self.key}"

    def due(self) -> bool:
        return self.clock() - self.since >= self.seconds

    def save(self, snapshot: Snapshot) -> None:
        """Write ``snapshot`` and remove the one before; the clock begins anew."""
        try:
            seconds = self.spent + self.clock() - self.begun
            data = packed(snapshot, self.stage, self.key, seconds)
            name = name_of(data, self.store.trust)
            self.store.storage.publish(self.folder, {name: data})
            older, self.names = [each for each in self.names if each != name], [name]
            for each in older:
                self.store.storage.remove_file(f"{self.folder}/{each}")
        except (BadInput, StoreSilent, OSError) as error:
            _log.warning("no checkpoint of %s/%s, its training goes on: %s", self.stage, self.key, one_line(error))
        self.since = self.clock()

    def last(self) -> Snapshot | None:
        """Return the newest whole snapshot of the job; a line says that it goes on, or what is passed over and why."""
        entries = sorted(self.store.storage.walk(self.folder), key=lambda entry: (entry.modified, entry.path))
        found = [entry for entry in entries if entry.path.endswith(SUFFIX)]
        self.names = [entry.path.rpartition("/")[2] for entry in found]
        for entry in reversed(found):
            try:
                data = self.store.storage.read(entry.path)
                snapshot = unpacked(entry.path, data, self.stage, self.key, self.store.trust)
            except FileNotFoundError:  # replaced by another worker since the listing
                continue
            except CorruptArtefact as error:
                _log.warning("%s; it is passed over", error)
                continue
            _log.warning("%s/%s goes on from its checkpoint", self.stage, self.key)
            self.spent = float(head_of(data).get("seconds", 0.0))
            return snapshot
        return None

    def finish(self, final: Callable[[], Snapshot]) -> None:
        pass

    def remove(self) -> None:
        """Remove what this process knows of: the artefact is there."""
        names, self.names = self.names, []
        with suppress(BadInput, StoreSilent):  # the artefact counts; ``orch cache gc`` removes what is left
            for name in names:
                self.store.storage.remove_file(f"{self.folder}/{name}")


def packed(snapshot: Snapshot, stage: str, key: str, seconds: float) -> bytes:
    """Return ``snapshot`` of the training of a job, after so many ``seconds`` of work, as a file."""
    said = {"schema": SCHEMA, "stage": stage, "key": key, "notes": json.dumps(dict(snapshot.notes))}
    return pack_tensors(snapshot.tensors, {**said, "seconds": f"{seconds:.3f}"})


def head_of(data: bytes) -> dict[str, str]:
    """Return the metadata of a safetensors file."""
    said: dict[str, str] = from_json(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__", {})
    return said


def name_of(data: bytes, trust: Trust) -> str:
    """Return the name of a checkpoint's file: its checksum, which is a signature where the user has a key."""
    return f"{trust.signature(SCHEMA, data) if trust.key else hashlib.sha256(data).hexdigest()}{SUFFIX}"


def unpacked(path: str, data: bytes, stage: str, key: str, trust: Trust) -> Snapshot:
    """Return the snapshot in a file; raises CorruptArtefact for one that is damaged, not signed or of another job."""
    if not hmac.compare_digest(path.rpartition("/")[2].encode(), name_of(data, trust).encode()):
        what = f"is damaged, or not signed with the key of {KEY_FILE}" if trust.key else "is damaged"
        raise CorruptArtefact(f"checkpoint {path} {what}: it does not have the checksum that it names")
    tensors = unpack_weights(data)
    said = head_of(data)
    if (said.get("schema"), said.get("stage"), said.get("key")) != (SCHEMA, stage, key):
        raise CorruptArtefact(f"checkpoint {path} is not one of {stage}/{key}")
    return Snapshot(tensors, from_json(said["notes"]))


def unfinished(store: Store) -> set[tuple[str, str]]:
    """Return the jobs, as stage and key, of which a checkpoint lies in ``store``."""
    found = (entry.path.split("/") for entry in store.storage.walk(CHECKPOINTS) if entry.path.endswith(SUFFIX))
    whole = (parts[1].rpartition(".") for parts in found if not parts[-1].startswith(TEMPORARY))
    return {(stage, key) for stage, _, key in whole}


def needless(store: Store, wanted: Collection[tuple[str, str]]) -> Iterator[Entry]:
    """Yield the files of jobs whose artefact is there, or that no recorded run refers to (``wanted``: stage, key)."""
    whole: dict[tuple[str, str], bool] = {}
    for entry in store.storage.walk(CHECKPOINTS):
        stage, _, key = entry.path.split("/")[1].rpartition(".")
        if (stage, key) not in whole:
            whole[stage, key] = (stage, key) not in wanted or store.has(stage, key)
        if whole[stage, key]:
            yield entry
