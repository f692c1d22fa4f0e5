"""Pointers of Git LFS: a few lines of text that stand where a file was never fetched, under the file's own name."""

from __future__ import annotations

from pathlib import Path

from audits.data.regular import NotRegular, opened
from audits.errors import BadInput

BEGINS = b"version https://git-lfs.github.com/spec/v"


def check_fetched(place: Path | bytes, what: str) -> None:
    """Raise BadInput, which calls it ``what``, for a file, or the bytes of one, that is a pointer; also for a pipe.

    A file that cannot be opened says nothing here; whoever reads it says why.
    """
    if isinstance(place, bytes):
        first = place[: len(BEGINS)]
    else:
        try:
            with opened(place) as file:
                first = file.read(len(BEGINS))
        except NotRegular:
            raise BadInput(f"{what} is a pipe or a device; give a file") from None
        except OSError:
            return
    if first == BEGINS:
        raise BadInput(f"{what} is a pointer of Git LFS, not the file itself; fetch it: git lfs pull")
