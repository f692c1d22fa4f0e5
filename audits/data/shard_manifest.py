"""The manifest of image shards: what they hold, in one JSON file that is there only when all of them are whole."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from audits.data.image_files import Shape
from audits.data.images import MOST_PIXELS
from audits.data.regular import content_of
from audits.errors import BadInput
from audits.plain_json import from_json

SCHEMA = "orch.shards/1"
MANIFEST = "manifest.json"
INDEX = "index.npz"
BEGUN = "begun.json"  # until the manifest is there


@dataclass(frozen=True)
class Shard:
    """One tar file: its name, its images, its length in bytes and its sha256."""

    file: str
    points: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What image shards hold.

    ``shape``: (C, H, W) to which images are brought unless another size is asked for; ``rule``: how; ``fingerprint``:
    the digest of names, labels and encoded images (``contents_digest``), from which the data set has the fingerprint
    that it has in its files; ``index``: the sha256 of ``index.npz``.
    """

    points: int
    shape: Shape
    classes: tuple[str, ...]
    rule: str
    fingerprint: str
    index: str
    shards: tuple[Shard, ...]

    def sized(self, size: int | None) -> Shape:
        """Return the shape of an image of a given side, or the usual one."""
        channels, height, width = self.shape
        return channels, size or height, size or width

    def text(self) -> str:
        """Return the content of ``manifest.json``."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1) + "\n"

    @staticmethod
    def read(folder: Path) -> Manifest:
        """Return the manifest of a folder; BadInput when it is missing, damaged, or of another version."""
        file = folder / MANIFEST
        try:
            fields: dict[str, Any] = from_json(content_of(file))
        except FileNotFoundError:
            raise BadInput(
                f"{folder} holds no {MANIFEST}: its shards are not all written; give the 'orch data shard' of it again"
            ) from None
        except (OSError, ValueError) as error:
            raise _damaged(file, error) from error
        if not isinstance(fields, dict) or fields.pop("schema", None) != SCHEMA:
            raise BadInput(f"{file} is not of the form {SCHEMA}, the one that is read; write the shards again")
        try:
            channels, height, width = map(int, fields.pop("shape"))
            classes = tuple(map(str, fields.pop("classes")))
            shards = tuple(Shard(**shard) for shard in fields.pop("shards"))
            found = Manifest(shape=(channels, height, width), classes=classes, shards=shards, **fields)
        except (KeyError, TypeError, ValueError) as error:
            raise _damaged(file, error) from error
        if any(Path(shard.file).name != shard.file for shard in found.shards):
            raise BadInput(f"{file} names a shard outside of its folder; write the shards again")
        if channels not in (1, 3) or not 0 < height * width <= MOST_PIXELS:
            raise BadInput(f"{file}: images of {channels}×{height}×{width} are not read; write the shards again")
        if sum(shard.points for shard in found.shards) != found.points:
            raise BadInput(f"{file}: its shards do not hold its {found.points} images; write the shards again")
        return found


def is_image_shards(folder: Path) -> bool:
    """Return whether image shards were written into a folder, or begun."""
    return any((folder / name).is_file() for name in (MANIFEST, BEGUN))


def _damaged(file: Path, error: Exception) -> BadInput:
    said = next(iter(str(error).splitlines()), type(error).__name__)
    return BadInput(f"{file} cannot be read ({said}); write the shards again")
