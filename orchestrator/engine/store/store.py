"""The store: finished work under keys that name everything that decided it, whole or not there at all.

``<root>/<stage>/<key[:2]>/<key>/`` holds the payload files of an artefact and, written last, ``manifest.json`` with
their sizes and sha256. Payload files carry a part of their sha256 in their names, so two processes that put one key
at once never mix their files. ``<root>/runs/<id>.json`` says which artefacts a run refers to.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from audits.credentials import mask, remember, remembered
from orchestrator.engine.jobs.keys import canonical
from orchestrator.engine.store.claims import Claims
from orchestrator.engine.store.faults import CorruptArtefact, Missing, StoreRefused, StoreUnusable, Unsigned, damaged
from orchestrator.engine.store.index import remove_index
from orchestrator.engine.store.machine_kind import machine_kind
from orchestrator.engine.store.manifest import MANIFEST, FileEntry, Manifest, read_manifest, write_manifest
from orchestrator.engine.store.open import open_storage
from orchestrator.engine.store.paths import is_name
from orchestrator.engine.store.patience import LIMIT
from orchestrator.engine.store.payloads import wrong_format
from orchestrator.engine.store.places import NO_STAGES, RUNS
from orchestrator.engine.store.run_records import Run, read_run, run_id, write_run
from orchestrator.engine.store.storage import Storage
from orchestrator.engine.store.trust import Trust


def default_store_uri() -> str:
    """Return the store of ``ORCH_STORE``, else the folder ``.orch/store`` below the current one.

    Raises StoreRefused where the latter is, or lies in, a link: whoever made the current folder may have made it.
    """
    if named := os.environ.get("ORCH_STORE"):
        return named
    place = Path.cwd() / ".orch" / "store"
    if link := next((each for each in (place.parent, place) if each.is_symlink()), None):
        raise StoreRefused(
            f"{link} is a link to {os.readlink(link)}, and the store would be there; if that is meant, say so: "
            "--store .orch/store, or ORCH_STORE"
        )
    return str(place)


@dataclass(frozen=True)
class Artefact:
    """One finished piece of work: what it is (``document``) and its files by name.

    ``seconds`` is what it took to compute, ``created`` the time of the put (ISO 8601, UTC), ``machine`` the kind of
    machine that made it, "" where that is not known.
    """

    stage: str
    key: str
    document: dict[str, Any]
    files: dict[str, FileEntry]
    seconds: float
    created: str
    machine: str
    store: Store = field(repr=False, compare=False)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.files.values())

    def read(self, name: str) -> bytes:
        """Return the bytes of the file ``name``.

        Raises Missing when the artefact has no such file, CorruptArtefact when the bytes are not those that were put.
        """
        if name not in self.files:
            raise Missing(f"artefact {self.stage}/{self.key} has no file {name}; it has {', '.join(self.files)}")
        entry = self.files[name]
        try:
            data = self.store.storage.read(f"{_folder(self.stage, self.key)}/{entry.path}")
        except FileNotFoundError:
            raise damaged(self.stage, self.key, name, "is missing") from None
        what = None
        if len(data) != entry.size:
            what = f"has {len(data)} bytes instead of {entry.size}"
        elif (found := hashlib.sha256(data).hexdigest()) != entry.sha256:
            what = f"has the sha256 {found[:12]} instead of {entry.sha256[:12]}"
        if what := what or wrong_format(name, data):
            raise damaged(self.stage, self.key, name, what)
        return data


class Store:
    """A content-addressed store at ``uri``: a local path or a URI of a pyarrow file system (s3://, gs://, file://).

    Cheap to make and to pickle: nothing is opened before the first use. ``uri`` has credentials masked; a pickle takes
    them along. ``patience``: seconds for which a request to a silent object store is made again. ``trust``: what the
    user has said of stores, which a pickle takes along too; None: ``Trust.of()``. Every method may raise
    StoreUnusable or StoreRefused.
    """

    def __init__(self, uri: str | os.PathLike[str], patience: float = LIMIT, trust: Trust | None = None) -> None:
        text = mask(os.fspath(uri))
        self.patience = patience
        self.trust = Trust.of() if trust is None else trust
        self.uri = text if "://" in text else os.path.abspath(os.path.expanduser(text))
        self._storage: Storage | None = None
        self._claims: Claims | None = None

    def __getstate__(self) -> dict[str, Any]:
        known = {shown: real for shown, real in remembered().items() if shown == self.uri}
        state = {"uri": self.uri, "patience": self.patience, "trust": self.trust, "_storage": None, "_claims": None}
        return {**state, "credentials": known}

    def __setstate__(self, state: dict[str, Any]) -> None:
        remember(state.pop("credentials"))
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return f"Store({self.storage.place!r})"

    @property
    def storage(self) -> Storage:
        """The place behind the store, opened at the first use."""
        if self._storage is None:
            self._storage = open_storage(self.uri, self.patience, self.trust)
        return self._storage

    @property
    def claims(self) -> Claims:
        """Who does which job just now, as this process sees it."""
        if self._claims is None:
            self._claims = Claims(self.storage)
        return self._claims

    def has(self, stage: str, key: str) -> bool:
        """Is the artefact there (finished; its bytes are not read)?"""
        return self.storage.exists(f"{_folder(stage, key)}/{MANIFEST}")

    def keys(self, stage: str) -> set[str]:
        """Return the keys of all finished artefacts of a stage, from one listing."""
        return set(filter(is_name, self.storage.folders_with(_checked(stage), MANIFEST)))

    def stages(self) -> list[str]:
        """Return the stages that have artefacts or leftovers, sorted."""
        return [name for name in self.storage.folders() if is_name(name) and name not in NO_STAGES]

    def put(
        self,
        stage: str,
        key: str,
        document: Mapping[str, Any],
        files: Mapping[str, bytes],
        *,
        seconds: float = 0.0,
    ) -> None:
        """Store ``files`` (names end in .safetensors, .parquet or .json) as the artefact that ``document`` describes.

        All or nothing; an artefact that is there already is replaced. Raises ValueError when a file is not of the
        format that its name says, StoreFull when the disk is full (no half artefact is left).
        """
        entries, stored = {}, {}
        for name, data in files.items():
            if not is_name(name) or name == MANIFEST:
                raise ValueError(f"{name!r} cannot be the name of an artefact's file")
            if what := wrong_format(name, data):
                raise ValueError(f"{name} {what}")
            sha256 = hashlib.sha256(data).hexdigest()
            stem, suffix = os.path.splitext(name)
            entries[name] = FileEntry(path=f"{stem}-{sha256[:16]}{suffix}", size=len(data), sha256=sha256)
            stored[entries[name].path] = data
        created = datetime.now(UTC).isoformat(timespec="seconds")
        took = round(float(seconds), 6)
        manifest = Manifest(stage, key, canonical(document), entries, took, created, machine_kind())
        self.storage.publish(_folder(stage, key), {**stored, MANIFEST: write_manifest(manifest, self.trust)})

    def get(self, stage: str, key: str) -> Artefact:
        """Return the artefact.

        Raises Missing, CorruptArtefact when its manifest is empty or garbled, Unsigned when the user has a key and it
        is not signed with that.
        """
        try:
            data = self.storage.read(f"{_folder(stage, key)}/{MANIFEST}")
        except FileNotFoundError:
            with suppress(StoreUnusable):  # a store that takes no files
                self.unindex(stage)
            raise Missing(
                f"artefact {stage}/{key} is not in the store {self.storage.place}; run the same command again"
            ) from None
        found = read_manifest(stage, key, data, self.trust)
        return Artefact(stage, key, found.document, found.files, found.seconds, found.created, found.machine, self)

    def verify(self, stage: str, key: str) -> None:
        """Read every file of the artefact; raises Missing or CorruptArtefact."""
        artefact = self.get(stage, key)
        for name in artefact.files:
            artefact.read(name)

    def artefacts(
        self,
        stage: str | None = None,
        *,
        on_damage: Callable[[str, str, CorruptArtefact | Unsigned], None] | None = None,
    ) -> Iterator[Artefact]:
        """Yield the artefacts of one stage or of all, sorted by stage and key.

        A damaged manifest raises CorruptArtefact, one that is not signed Unsigned; or it is handed to
        ``on_damage(stage, key, error)`` and passed over.
        """
        for name in [stage] if stage else self.stages():
            for key in sorted(self.keys(name)):
                try:
                    yield self.get(name, key)
                except Missing:  # removed by somebody else since the listing
                    continue
                except (CorruptArtefact, Unsigned) as error:
                    if on_damage is None:
                        raise
                    on_damage(name, key, error)

    def drop(self, stage: str, key: str) -> None:
        """Remove an artefact; one that is not there is no error."""
        self.unindex(stage)
        self.storage.remove_folder(_folder(stage, key), MANIFEST)

    def unindex(self, stage: str) -> None:
        """Remove the index of a stage, before any of its artefacts."""
        remove_index(self.storage, _checked(stage))

    def record_run(
        self, name: str, document: Mapping[str, Any], keys: Mapping[str, Iterable[str]], gpu: str = ""
    ) -> str:
        """Write down which artefacts (stage → keys) a run refers to, so that ``cache gc`` keeps them; return its id.

        The artefacts need not exist yet: record before computing, and an interrupted run loses nothing to ``gc``.
        The id depends on ``name`` and ``document`` only: the same run recorded again replaces its record.
        """
        created = datetime.now(UTC).isoformat(timespec="seconds")
        held = {stage: sorted(set(some)) for stage, some in keys.items()}
        run = Run(run_id(name, document), name, created, canonical(document), held, gpu)
        self.storage.publish(RUNS, {f"{run.id}.json": write_run(run)})
        return run.id

    def recorded_gpu(self, name: str, document: Mapping[str, Any]) -> str:
        """Return the GPU of the recorded run of this name and plan, "" for none, or where no such run is recorded."""
        path = f"{RUNS}/{run_id(name, document)}.json"
        try:
            return read_run(path, self.storage.read(path)).gpu
        except (FileNotFoundError, CorruptArtefact):
            return ""

    def runs(self, skip: Collection[str] = ()) -> list[Run]:
        """Return the recorded runs but those with the ids ``skip``, oldest first.

        Raises CorruptArtefact when a record cannot be read.
        """
        paths = [f"{RUNS}/{run}.json" for run in self.run_ids() if run not in skip]
        return sorted(
            (read_run(path, self.storage.read(path)) for path in paths), key=lambda run: (run.created, run.id)
        )

    def run_ids(self) -> list[str]:
        """Return the ids of the recorded runs, readable or not, sorted."""
        found = (re.fullmatch(rf"{RUNS}/([A-Za-z0-9]\w*)\.json", entry.path) for entry in self.storage.walk(RUNS))
        return sorted(match.group(1) for match in found if match)

    def drop_run(self, run: str) -> None:
        """Forget the run with the id ``run``; its artefacts stay until they are collected."""
        self.storage.remove_file(f"{RUNS}/{_checked(run)}.json")


def _folder(stage: str, key: str) -> str:
    if stage in NO_STAGES:
        raise ValueError(f"{stage!r} is no stage: the store keeps files of its own there")
    return f"{_checked(stage)}/{_checked(key)[:2]}/{key}"


def _checked(name: str) -> str:
    if not is_name(name):
        raise ValueError(f"{name!r} cannot be a stage or a key (letters, digits, - and _)")
    return name
