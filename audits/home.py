"""The user's home: paths that begin with ~, and the folder in which what can be made again is kept."""

from __future__ import annotations

import os
from pathlib import Path

ORCH_CACHE = "ORCH_CACHE"


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path that somebody wrote, ~ being their home; ~NAME of nobody stays, as in a shell."""
    return Path(os.path.expanduser(path))


def user_cache() -> Path | None:
    """Return the folder that ``ORCH_CACHE`` names, else ``orch`` in the user's cache; None where there is no home.

    A relative ``XDG_CACHE_HOME`` is passed over, as its specification says: the working folder may be anybody's.
    """
    if named := os.environ.get(ORCH_CACHE):
        return expanded(named).absolute()
    for cache in (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache")):
        if os.path.isabs(cache):
            return Path(cache, "orch")
    return None
