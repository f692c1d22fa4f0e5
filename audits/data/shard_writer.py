"""One shard: a tar file of encoded images as they are in their files, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.data.file_sets import Facts, unreadable
from audits.data.regular import content_of, opened
from audits.errors import BadInput
from audits.plain_json import from_json
from audits.writing import replacing

if TYPE_CHECKING:
    from io import BufferedRandom

BLOCK = tarfile.BLOCKSIZE
NOTE = ".json"


@dataclass(frozen=True)
class Part:
    """The images that make one shard: ``names`` below ``root``; the shard is called ``file`` in ``folder``."""

    root: Path
    names: tuple[str, ...]
    folder: Path
    file: str

    @property
    def path(self) -> Path:
        """The shard."""
        return self.folder / self.file

    @property
    def note(self) -> Path:
        """What is known of the shard until the manifest of all shards is there."""
        return self.path.with_suffix(NOTE)

    def stamp(self) -> str:
        """Return the sha256 (hex) of names, lengths and times of change of the files."""
        digest = hashlib.sha256()
        for name in self.names:
            try:
                found = (self.root / name).stat()
            except OSError as error:
                raise unreadable(self.root / name, error) from error
            digest.update(json.dumps([name, found.st_size, found.st_mtime_ns]).encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class Written:
    """A shard that is there: its length and sha256, where its images begin in it, and their lengths and ends."""

    stamp: str
    bytes: int
    sha256: str
    offsets: tuple[int, ...]
    lengths: tuple[int, ...]
    ends: tuple[str, ...]

    @staticmethod
    def read(part: Part) -> Written | None:
        """Return what was noted of a shard; None unless it is whole and its files are as they were."""
        try:
            fields: dict[str, Any] = from_json(content_of(part.note))
            for name in ("offsets", "lengths", "ends"):
                fields[name] = tuple(fields[name])
            found = Written(**fields)
            whole = part.path.stat().st_size == found.bytes
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return found if whole and len(found.offsets) == len(part.names) and found.stamp == part.stamp() else None


def write_part(part: Part) -> Written:
    """Write a shard, or return what is known of it where it is there already.

    What was written is read again before the shard gets its name, and its note is written after it. Equal images give
    equal bytes. BadInput when an image or the folder cannot be read or written.
    """
    if found := Written.read(part):
        return found
    stamp = part.stamp()
    offsets, lengths, ends = [], [], []
    digest = hashlib.sha256()
    with written_anew(part.path) as stream:
        for name in part.names:
            content = _content(part.root / name)
            head = _head(name, len(content))
            offsets.append(stream.tell() + len(head))
            lengths.append(len(content))
            ends.append(Facts.of(content).ends)
            for piece in (head, content, bytes(-len(content) % BLOCK)):
                stream.write(piece)
                digest.update(piece)
        end = bytes(2 * BLOCK + -(stream.tell() + 2 * BLOCK) % tarfile.RECORDSIZE)
        stream.write(end)
        digest.update(end)
        written = Written(stamp, stream.tell(), digest.hexdigest(), tuple(offsets), tuple(lengths), tuple(ends))
        stream.flush()
        stream.seek(0)
        if hashlib.file_digest(stream, "sha256").hexdigest() != written.sha256:
            raise BadInput(f"{part.path} does not read as it was written; the disk is damaged: name another folder")
    if part.stamp() != stamp:
        raise BadInput(f"images below {part.root} changed while {part.path} was written; write the shards again")
    with written_anew(part.note) as stream:
        stream.write(json.dumps(asdict(written)).encode())
    return written


@contextmanager
def written_anew(path: Path) -> Iterator[BufferedRandom]:
    """Open a file that takes the place of ``path`` when the block ends well, so that ``path`` is whole or not there."""
    try:
        with replacing(path) as stream:
            yield stream
    except OSError as error:
        raise BadInput(
            f"{path} cannot be written ({error.strerror}); free some disk, or name another folder"
        ) from error


def sha256_of(path: Path) -> str:
    """Return the sha256 (hex) of a file."""
    with opened(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _content(file: Path) -> bytes:
    try:
        return content_of(file)
    except OSError as error:
        raise unreadable(file, error) from error


def _head(name: str, length: int) -> bytes:
    """Return the header of a member: nothing but its name and length, so that equal images make equal shards."""
    info = tarfile.TarInfo(name)
    info.size = length
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
