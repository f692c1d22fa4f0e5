"""Members of a tar file of somebody else, read to the end of the file and no further back."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager


class BadTar(ValueError):
    """A file that is no tar file, or not to its end; one line."""


def members_of(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the members of an archive; raises BadTar for a negative size, from which tarfile reads on backwards."""
    with reading():
        for member in archive:
            if member.size < 0:
                raise BadTar(f"{member.name!r} has a negative size")
            yield member


@contextmanager
def reading() -> Iterator[None]:
    """Turn what tarfile raises for a damaged file into BadTar: it does not raise errors of its own for all of them."""
    try:
        yield
    except BadTar:
        raise
    except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError) as error:
        raise BadTar(f"it is no whole tar file ({type(error).__name__}: {error})") from None
