"""Sets of encoded images, in files or in shards: how they become data sets, and the one fingerprint of both."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from audits.data.dataset import IMAGE_RANGE, Dataset
from audits.data.image_files import ImageFiles, Images, in_threads
from audits.data.regular import opened
from audits.data.remembered import remembered
from audits.errors import BadInput

ENDS = 4096  # bytes of the beginning and of the end of an encoded image that enter the fingerprint


@dataclass(frozen=True, eq=False)
class EncodedSet:
    """Encoded images, their ``labels`` (N,) int64 and ``classes``.

    ``rule`` says in words how pixels are made of an image. Sets that take up to ``kept`` bytes decoded are kept in
    memory. ``contents``: the digest of names, labels and encoded images (``contents_digest``) where it is known; else
    it is read from the files. ``notes``: as of ``Dataset``.
    """

    images: Images
    labels: npt.NDArray[np.int64]
    classes: tuple[str, ...]
    rule: str
    kept: int = 0
    contents: str = ""
    notes: tuple[str, ...] = ()

    def dataset(self, name: str) -> Dataset:
        """Return the data set; images are decoded now if they are kept in memory."""
        inputs: npt.NDArray[np.uint8] | Images
        if self.images.nbytes <= self.kept:
            inputs, known = self.images[:], ""
        else:
            inputs, known = self.images, self.fingerprint()
        names = self.images.names
        return Dataset(name, inputs, self.labels, self.classes, IMAGE_RANGE, known, names=names, notes=self.notes)

    def fingerprint(self) -> str:
        """Return the sha256 (hex) of what decides the decoded images, without decoding them.

        That is classes, shape, rule, and the digest of the contents; the place of the images does not count.
        """
        header = {
            "classes": list(self.classes),
            "shape": self.images.shape,
            "rule": self.rule,
            "contents": self.read_contents(),
        }
        return hashlib.sha256(json.dumps(header, sort_keys=True).encode()).hexdigest()

    def read_contents(self) -> str:
        """Return the digest of the contents, read from the files unless it is known."""
        return self.contents or contents_of(self.files, self.labels)

    @property
    def files(self) -> ImageFiles:
        """The images, which must be files."""
        if not isinstance(self.images, ImageFiles):
            raise BadInput("these images are in shards already, and no files; name the folder that they were made of")
        return self.images


@dataclass(frozen=True)
class Facts:
    """What the fingerprint reads of an encoded image: its length, and the sha256 (hex) of its first and last 4 KiB."""

    length: int
    ends: str

    @staticmethod
    def of(content: bytes) -> Facts:
        """Return the facts of an image that is in memory."""
        return Facts(len(content), _ends(content[:ENDS], content[max(0, len(content) - ENDS) :]))

    @staticmethod
    def of_file(file: Path) -> Facts:
        """Return the facts of a file, of which only the ends are read."""
        try:
            with opened(file) as stream:
                size = os.fstat(stream.fileno()).st_size
                first = stream.read(ENDS)
                stream.seek(max(0, size - ENDS))
                return Facts(size, _ends(first, stream.read(ENDS)))
        except OSError as error:
            raise unreadable(file, error) from error


def unreadable(file: Path, error: OSError) -> BadInput:
    """Return the error of an image that the system does not let us read."""
    return BadInput(f"image {file} cannot be read ({error.strerror}); remove or replace it")


def contents_of(images: ImageFiles, labels: npt.NDArray[np.int64]) -> str:
    """Return the digest of the contents of files, of which only the ends are read, once per machine."""

    def digest_of_contents() -> str:
        facts = in_threads(Facts.of_file, [images.root / file for file in images.files])
        return contents_digest(images.files, labels, facts)

    question = f"contents with labels {hashlib.sha256(labels.tobytes()).hexdigest()}"
    return str(remembered(question, images.root, images.files, digest_of_contents))


def contents_digest(names: Iterable[str], labels: npt.NDArray[np.int64], facts: Iterable[Facts]) -> str:
    """Return the sha256 (hex) of the name below the root, the label and the facts of each image, in order.

    Times do not count. Images that differ only between their ends, at equal length, are not told apart: for that, all
    would have to be read.
    """
    digest = hashlib.sha256()
    for name, label, fact in zip(names, labels.tolist(), facts, strict=True):
        digest.update(json.dumps([name, label, fact.length, fact.ends]).encode())
    return digest.hexdigest()


def _ends(first: bytes, last: bytes) -> str:
    digest = hashlib.sha256(first)
    digest.update(last)
    return digest.hexdigest()
