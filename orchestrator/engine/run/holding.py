"""One command at a time in a folder of results: a second one would mix its files, and the journal of a search."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from audits.errors import BadInput


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold ``folder``, which is there, as this process; its end, however it comes, lets go of it.

    Raises BadInput where another command holds it. Where the file system knows no locks nothing is held.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(
                f"--out {folder} is in use by another command of orch; wait until that ends, or choose another --out"
            ) from None
        except OSError:
            pass
        yield
    finally:
        os.close(handle)
