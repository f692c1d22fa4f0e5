"""``shards:DIR``: images as they were in their files, packed into tar files by ``orch data shard``."""

from __future__ import annotations

import math
import os
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from audits.data import imagenet, images
from audits.data.bounded import arrays_within
from audits.data.dataset import IMAGE_RANGE, Dataset, Description
from audits.data.file_sets import EncodedSet, Facts, contents_digest
from audits.data.image_files import Decoder, Images, Shape, in_threads
from audits.data.orientation import turned_notes
from audits.data.regular import opened
from audits.data.shard_manifest import INDEX, MANIFEST, Manifest, Shard
from audits.data.shard_writer import sha256_of
from audits.data.source import CATALOGUE, Request, Source
from audits.data.tar_files import BadTar, members_of, reading
from audits.errors import BadInput

DECODERS: dict[str, Decoder] = {images.RULE: images.decode, imagenet.RULE: imagenet.decode}
HOW_TO_GET = "write it with 'orch data shard NAME DIR', where NAME is a data set of image files"


@dataclass(frozen=True, eq=False)
class ShardNames(Sequence[str]):
    """The names of ``points`` images in the shards of ``folder``, read when one is first asked for."""

    folder: Path
    points: int

    @cached_property
    def known(self) -> tuple[str, ...]:
        """All names; BadInput for a damaged index."""
        ids = read_index(self.folder, Manifest.read(self.folder), "id")["id"]
        return tuple(os.fsdecode(name) for name in ids.tolist())

    def __len__(self) -> int:
        return self.points

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> tuple[str, ...]: ...

    def __getitem__(self, row: int | slice) -> str | tuple[str, ...]:
        return self.known[row]

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)


@dataclass(frozen=True, eq=False)
class ImageShards(Images):
    """Images in tar files of ``folder``: image i has ``length[i]`` bytes from ``offset[i]`` of ``files[shard[i]]``."""

    folder: Path
    files: tuple[str, ...]
    shard: npt.NDArray[np.int32]
    offset: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    point_shape: Shape
    decode: Decoder

    def __len__(self) -> int:
        return len(self.shard)

    @property
    def names(self) -> ShardNames:
        """The names of the files that the shards were made of."""
        return ShardNames(self.folder, len(self))

    def encoded(self, row: int) -> tuple[Path, bytes]:
        """Return the shard of an image, with its row, and its bytes; BadInput when the shard cannot be read."""
        path = self.folder / self.files[self.shard[row]]
        try:
            with opened(path) as stream:
                content = os.pread(stream.fileno(), int(self.length[row]), int(self.offset[row]))
        except OSError as error:
            raise BadInput(f"shard {path} cannot be read ({error.strerror}); write the shards again") from error
        return Path(f"{path} (row {row})"), content


def read_index(folder: Path, manifest: Manifest, *more: str) -> dict[str, npt.NDArray[Any]]:
    """Return ``shard``, ``offset``, ``length``, ``label`` and ``more`` of all images; BadInput for a damaged file."""
    file = folder / INDEX
    try:
        if sha256_of(file) != manifest.index:
            raise ValueError("its checksum is not that of the manifest")
        found = arrays_within(file, str(file))
        return {name: found[name] for name in ("shard", "offset", "length", "label", *more)}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise BadInput(f"{file} cannot be read ({error}); write the shards again") from error


def encoded_set(folder: Path, size: int | None = None) -> EncodedSet:
    """Return the images of a folder of shards; BadInput when a shard is missing or has another length.

    Checksums of shards are compared by ``verify`` alone.
    """
    manifest = Manifest.read(folder)
    for shard in manifest.shards:
        if fault := _misfit(folder, shard):
            raise BadInput(f"shard {folder / shard.file} {fault}; write the shards again")
    index = read_index(folder, manifest)
    _check_fit(folder, manifest, index)
    found = ImageShards(
        folder,
        tuple(shard.file for shard in manifest.shards),
        index["shard"],
        index["offset"],
        index["length"],
        manifest.sized(size),
        _decoder(folder, manifest),
    )
    return EncodedSet(found, index["label"], manifest.classes, manifest.rule, _kept(manifest), manifest.fingerprint)


def _check_fit(folder: Path, manifest: Manifest, index: dict[str, npt.NDArray[Any]]) -> None:
    """Refuse an index whose images are not within the shards."""
    shard, offset, length = index["shard"], index["offset"], index["length"]
    fits = all(array.shape == (manifest.points,) for array in index.values()) and all(
        array.dtype.kind == "i" for array in (shard, offset, length)
    )
    if fits and manifest.points:
        sizes = np.array([entry.bytes for entry in manifest.shards])
        inside = (shard >= 0) & (shard < len(sizes)) & (offset >= 0) & (length >= 0)
        fits = bool(inside.all() and (length <= sizes[shard] - offset).all())
    if not fits:
        raise BadInput(f"{folder / INDEX} does not fit the shards beside it; write the shards again")


def verify(folder: Path, decode: bool = False) -> Manifest:
    """Read all shards and return their manifest; BadInput when anything is not as it was written.

    Checked are the checksums of index and shards, that a tar reader finds the images where the index says, and that
    names, labels and images have the fingerprint of the manifest. With ``decode``, every image is decoded too.
    """
    whole = encoded_set(folder)
    manifest = Manifest.read(folder)
    index = read_index(folder, manifest, "id")
    _check_fit(folder, manifest, index)
    names = ShardNames(folder, manifest.points)

    def fault(number: int) -> str:
        return _fault(folder, manifest.shards[number], np.flatnonzero(index["shard"] == number), index)

    numbers = range(len(manifest.shards))
    faults = [(number, said) for number, said in zip(numbers, in_threads(fault, numbers), strict=True) if said]
    if faults:
        first = manifest.shards[faults[0][0]].file
        raise BadInput(
            f"{folder}: {len(faults)} of {len(manifest.shards)} shards are damaged, first {first}: {faults[0][1]}; "
            "remove the folder and write the shards again"
        )
    facts = in_threads(lambda row: Facts.of(whole.images.encoded(row)[1] or b""), range(len(names)))
    if contents_digest(names, whole.labels, facts) != manifest.fingerprint:
        raise BadInput(
            f"{folder}: names, labels and images do not have the fingerprint of the manifest; write the shards again"
        )
    if decode:
        for _ in in_threads(whole.images.image, range(len(names))):
            pass
    return manifest


def _fault(folder: Path, shard: Shard, rows: npt.NDArray[np.int64], index: dict[str, npt.NDArray[Any]]) -> str:
    """Return what is wrong with a shard, "" when nothing is."""
    path = folder / shard.file
    if fault := _misfit(folder, shard):
        return fault
    if sha256_of(path) != shard.sha256:
        return "its checksum is not that of the manifest"
    try:
        with reading(), tarfile.open(path, "r:", encoding="utf-8", errors="surrogateescape") as tar:
            found = [(os.fsencode(member.name), member.offset_data, member.size) for member in members_of(tar)]
    except BadTar as error:
        return str(error)
    told = zip(*(index[name][rows].tolist() for name in ("id", "offset", "length")), strict=True)
    return "" if found == list(told) else "its images are not where the index says"


def _misfit(folder: Path, shard: Shard) -> str:
    """Return what is wrong with the length of a shard, "" when nothing is."""
    try:
        size = (folder / shard.file).stat().st_size
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return "" if size == shard.bytes else f"has {size} bytes instead of {shard.bytes}"


def _kept(manifest: Manifest) -> int:
    """Return the bytes of decoded images up to which the set is kept in memory, as its files are."""
    return images.MOST_BYTES if manifest.rule == images.RULE else 0


def _decoder(folder: Path, manifest: Manifest) -> Decoder:
    if manifest.rule not in DECODERS:
        raise BadInput(f"{folder / MANIFEST}: images are prepared by an unknown rule ({manifest.rule}); update orch")
    return DECODERS[manifest.rule]


def encoded(request: Request) -> EncodedSet:
    """Return the images that a request names."""
    size = _size(request)
    folder = request.local_path()
    if not folder.is_dir():
        raise describe(request).missing()
    found = encoded_set(folder, size)
    return replace(found, notes=turned_notes(request.name, found.images))


def describe(request: Request) -> Description:
    """Read the manifest only."""
    size = _size(request)
    folder = request.local_path()
    if not folder.is_dir():
        return Description(
            request.name, 0, (), (), IMAGE_RANGE, [str(folder)], False, "the owner's", HOW_TO_GET
        )  # fmt: skip
    found = Manifest.read(folder)
    return Description(
        request.name, found.points, found.sized(size), found.classes, IMAGE_RANGE, [str(folder)], True,
        "the owner's", HOW_TO_GET, found.points * math.prod(found.sized(size)) > _kept(found),
    )  # fmt: skip


def load(request: Request) -> Dataset:
    """Return the images, as their files would give them."""
    return encoded(request).dataset(request.name)


def _size(request: Request) -> int | None:
    request.allow("size")
    return request.whole_number("size", 0, least=1) if "size" in request.options else None


CATALOGUE.register("shards")(
    Source("shards:DIR?size=N", "images in tar files that 'orch data shard' wrote", describe, load)
)
