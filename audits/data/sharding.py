"""A folder of shards: image files packed by several processes, and going on where an earlier attempt ended."""

from __future__ import annotations

import fcntl
import hashlib
import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from audits.data.file_sets import EncodedSet, Facts, contents_digest
from audits.data.shard_manifest import BEGUN, INDEX, MANIFEST, SCHEMA, Manifest, Shard
from audits.data.shard_writer import NOTE, Part, Written, sha256_of, write_part, written_anew
from audits.errors import BadInput
from audits.plain_json import from_json
from audits.writing import TEMPORARY, make_folder, opened_to_lock

IMAGES_PER_SHARD = 2048
LOCK = "lock"
Told = Callable[[int, int], None]


def write_image_shards(
    encoded: EncodedSet,
    folder: Path,
    *,
    per_shard: int = IMAGES_PER_SHARD,
    workers: int = 1,
    told: Told = lambda done, parts: None,
) -> Manifest:
    """Write the images of ``encoded`` as they are in their files into ``folder`` and return the manifest.

    Shard k holds the images from k · ``per_shard`` on, written by ``workers`` processes; ``told`` hears how many of how
    many shards are there. After an interruption of any kind, the same call goes on: shards that are whole, and whose
    files have not changed since, are kept. The result depends on neither. BadInput when the folder holds anything else,
    or when another process is writing it.
    """
    with _alone(folder):
        if (folder / MANIFEST).is_file():
            manifest = _same(Manifest.read(folder), encoded, folder)
            _clean(folder, manifest)
            return manifest
        parts = _parts(encoded, folder, per_shard)
        _begin(encoded, folder, per_shard)
        written = []
        for shard in _written(parts, workers):
            written.append(shard)
            told(len(written), len(parts))
        manifest = _finish(encoded, folder, parts, written)
        _clean(folder, manifest)
    return manifest


def _parts(encoded: EncodedSet, folder: Path, per_shard: int) -> list[Part]:
    names, root = encoded.files.files, encoded.files.root
    starts = range(0, len(names), per_shard)
    return [
        Part(root, names[start : start + per_shard], folder, f"images-{number:05d}.tar")
        for number, start in enumerate(starts)
    ]


def _begin(encoded: EncodedSet, folder: Path, per_shard: int) -> None:
    """Note which set is being written, or check that it is the one that was begun."""
    digest = hashlib.sha256(json.dumps([*encoded.files.files]).encode())
    digest.update(encoded.labels.tobytes())
    plan = {"schema": SCHEMA, "per_shard": per_shard, "rule": encoded.rule, "names": digest.hexdigest()}
    begun = folder / BEGUN
    if begun.is_file():
        if from_json(begun.read_text()) != plan:
            raise BadInput(
                f"{folder} holds the beginning of other shards (another set, or another number of images a shard); "
                "name an empty folder, or remove this one"
            )
        return
    if found := sorted(
        entry.name for entry in folder.iterdir() if entry.name != LOCK and not entry.name.startswith(TEMPORARY)
    ):
        raise BadInput(f"{folder} already holds {found[0]}; name an empty folder")
    with written_anew(begun) as stream:
        stream.write(json.dumps(plan).encode())


def _written(parts: Sequence[Part], workers: int) -> Iterator[Written]:
    if workers < 2 or len(parts) < 2:
        yield from map(write_part, parts)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(parts)), context, end_with_parent) as pool:
        try:
            yield from pool.map(write_part, parts)
        except BrokenProcessPool:
            raise BadInput("a process that wrote shards was killed; give the same command again: it goes on") from None
        finally:
            pool.shutdown(cancel_futures=True)


def end_with_parent() -> None:
    """Let this process end when the one that started it is killed, so that none is left to wait or write for nobody."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only a process that was started by another has a parent"

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _finish(encoded: EncodedSet, folder: Path, parts: Sequence[Part], written: Sequence[Written]) -> Manifest:
    """Write the index and, last, the manifest: without it the shards are not whole."""
    names = encoded.files.files
    counts = [len(part.names) for part in parts]
    with written_anew(folder / INDEX) as stream:
        np.savez(
            stream,
            shard=np.repeat(np.arange(len(parts), dtype=np.int32), counts),
            offset=np.array([offset for shard in written for offset in shard.offsets], dtype=np.int64),
            length=np.array([length for shard in written for length in shard.lengths], dtype=np.int64),
            label=encoded.labels,
            id=np.array([os.fsencode(name) for name in names]),
        )
    facts = [Facts(*pair) for shard in written for pair in zip(shard.lengths, shard.ends, strict=True)]
    manifest = Manifest(
        points=len(names),
        shape=encoded.images.point_shape,
        classes=encoded.classes,
        rule=encoded.rule,
        fingerprint=contents_digest(names, encoded.labels, facts),
        index=sha256_of(folder / INDEX),
        shards=tuple(
            Shard(part.file, len(part.names), shard.bytes, shard.sha256)
            for part, shard in zip(parts, written, strict=True)
        ),
    )
    with written_anew(folder / MANIFEST) as stream:
        stream.write(manifest.text().encode())
    return manifest


def _clean(folder: Path, manifest: Manifest) -> None:
    """Remove what was noted until the manifest was there."""
    for shard in manifest.shards:
        (folder / shard.file).with_suffix(NOTE).unlink(missing_ok=True)
    (folder / BEGUN).unlink(missing_ok=True)
    for left in folder.glob(f"{TEMPORARY}*"):  # of a process that was killed
        left.unlink(missing_ok=True)


def _same(manifest: Manifest, encoded: EncodedSet, folder: Path) -> Manifest:
    """Return the manifest of shards that are there already; BadInput when they are of another set."""
    if (manifest.rule, manifest.classes) != (encoded.rule, encoded.classes) or (
        manifest.fingerprint != encoded.read_contents()
    ):
        raise BadInput(f"{folder} already holds the shards of another set; name an empty folder")
    return manifest


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Make ``folder`` and keep other processes from writing it; a lock of a killed process is none."""
    try:
        make_folder(folder)
        lock = open(opened_to_lock(folder / LOCK), "r+b")  # noqa: SIM115 - closed below
    except OSError as error:
        raise BadInput(f"{folder} cannot be written ({error.strerror}); name another folder") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadInput(f"another process is writing {folder}; wait for it, or name another folder") from None
        yield
        (folder / LOCK).unlink()
