"""Points of a data set as people write them, ids or names of files, read as ids: one rule for every list and table.

A whole number in plain decimal digits is an id. Everything else is a name of the data set (``Dataset.names``), as it
stands there or written in another way that can mean no other point. What may mean two points, or none, is refused.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt

from audits.arrays import Ids
from audits.data.dataset import Dataset
from audits.data.source import parse
from audits.errors import BadInput, did_you_mean, how_many

Written = npt.NDArray[np.int64] | Sequence[str]
"""Points as they are written: whole numbers (n,), or texts."""

NUMBER = re.compile(r"(0|[1-9][0-9]*)(\.0+)?")
"""An id: no sign, no leading zero, no exponent; a whole number with a decimal point is what columns with gaps hold."""
LARGEST = 2**63 - 1
MOST_COMPARED = 2000
"""Names that a misspelt one is compared with."""


def no_names() -> None:
    """Return the names of points that have none."""


@dataclass(frozen=True)
class Points:
    """The points of a data set: their ``count``, their ``names`` (read only where a list has some) and their folder.

    ``folder``: below which their files are, "" where none is known.
    """

    count: int
    names: Callable[[], Sequence[str] | None] = no_names
    folder: str = ""

    @staticmethod
    def of(data: Dataset, root: str | None = None) -> Points:
        """Return the points of a data set; ``root``: the folder in which it was looked for, if one was named."""
        return Points(len(data), lambda: data.names, folder_of(data.name, root))

    def ids(self, written: Written, what: str) -> Ids:
        """Return the ids (n,) of ``written`` points, in their order.

        Raises BadInput, which calls their list ``what``, for what is no id and no name, may mean several points, is
        outside, or stands there twice.
        """
        found = written if isinstance(written, np.ndarray) else self.read(written, what)
        outside = found[(found < 0) | (found >= self.count)]
        if len(outside):
            raise BadInput(
                f"{what} has id {outside[0]} ({len(outside)} of {len(found)} ids are outside), but the data set has "
                f"{self.count} points; allowed: 0 to {self.count - 1}"
            )
        values, counts = np.unique(found, return_counts=True)
        if (counts > 1).any():
            twice = values[counts > 1]
            raise BadInput(f"{what} has id {twice[0]} twice ({how_many(len(twice), 'such id')}); give each once")
        return found

    def read(self, texts: Sequence[str], what: str) -> Ids:
        """Return texts as ids (n,) int64, which may be outside or stand there twice."""
        ids = [number_of(text) for text in texts]
        if any(found is None for found in ids):
            called = self.called
            ids = [called.point(text) if found is None else found for found, text in zip(ids, texts, strict=True)]
            wrong = [place for place, found in enumerate(ids) if found is None]
            if wrong:
                text = texts[wrong[0]]
                raise BadInput(
                    f"{what} has {text[:80]!r} in place {wrong[0] + 1} of {len(ids)}{called.why(text)} ({len(wrong)} "
                    "such)"
                )
        return np.array(ids, np.int64)

    @cached_property
    def called(self) -> Called:
        """The names of the points."""
        return Called(self.names() or (), self.folder)


def folder_of(name: str, root: str | None) -> str:
    """Return the folder that the name of a data set names, absolute; "" where it names none."""
    request = parse(name, root)
    return os.path.abspath(request.local_path()) if request.place and "://" not in request.place else ""


def number_of(text: str) -> int | None:
    """Return the id that a text is, None for what is none; one that no data set has is the largest int64."""
    found = NUMBER.fullmatch(text.strip(" \t"))
    return None if found is None else min(int(found[1][:20]), LARGEST)  # 20 digits are too large whatever follows


class Called:
    """Names of points below a folder, and the ways in which people write them.

    As they are; without "./", with "\\" for "/", or in another Unicode form; with (some of) the path of the folder
    before them; or the name of the file alone, where no other file is called so.
    """

    def __init__(self, names: Sequence[str], folder: str) -> None:
        self.names, self.folder = names, folder
        self._above = {PurePosixPath(each).parts for each in (folder, os.path.realpath(folder)) if folder}
        self._exact = places(names)

    @cached_property
    def _folded(self) -> dict[str, list[int]]:
        return places(map(folded, self.names))

    @cached_property
    def _bare(self) -> dict[str, list[int]]:
        return places(folded(name).rpartition("/")[2] for name in self.names)

    def point(self, text: str) -> int | None:
        """Return the one point that a text names, None where that is none or several."""
        found = self.meant(text)
        return found[0] if len(found) == 1 else None

    def meant(self, text: str) -> list[int]:
        """Return the points that a text may mean."""
        name = folded(text)
        if not self.names or not name:
            return []
        for known, written in ((self._exact, text), (self._folded, name)):
            if written in known:
                return known[written]
        parts = PurePosixPath(name).parts
        below = [
            point
            for cut in range(1, len(parts))
            if any(above[-cut:] == parts[:cut] for above in self._above)
            for point in self._folded.get("/".join(parts[cut:]), ())
        ]
        return below or ([] if "/" in name else self._bare.get(name, []))

    def why(self, text: str) -> str:
        """Return what is wrong with a text that names no point."""
        if not text.strip():
            return ", an empty id"
        if not self.names:
            return "; allowed: ids, whole numbers from 0 on (points of this data set have no names)"
        meant = [self.names[point] for point in self.meant(text)]
        if meant:
            return f", which may be {meant[0]!r} or {meant[1]!r}; write the path below the folder"
        name = folded(text)
        alike = [self.names[point] for point in self._bare.get(name.rpartition("/")[2], ())]
        alike.sort(key=lambda each: not name.endswith(each))
        close = f" (did you mean {alike[0]!r}?)" if alike else did_you_mean(name, self.names[:MOST_COMPARED])
        below = f", paths below {self.folder}" if self.folder else ""
        return f", which names no point{close}; allowed: ids, or names of the data set{below}"


def places(names: Iterable[str]) -> dict[str, list[int]]:
    """Return where each name stands."""
    found: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        found.setdefault(name, []).append(place)
    return found


def folded(text: str) -> str:
    """Return a path in the one form that many spellings of it have."""
    path = unicodedata.normalize("NFC", text.strip()).replace("\\", "/")
    return os.path.normpath(path) if path else ""
