"""The folder in which this user keeps what can be made again."""

from __future__ import annotations

import os
from pathlib import Path

ORCH_CACHE = "ORCH_CACHE"


def user_cache() -> Path | None:
    """Return the folder that ``ORCH_CACHE`` names, else ``orch`` in the user's cache; None where there is no home.

    As is usual, a cache that is named by a relative path is passed over: the working folder may be anybody's.
    """
    if named := os.environ.get(ORCH_CACHE):
        return Path(os.path.abspath(os.path.expanduser(named)))
    for cache in (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache")):
        if os.path.isabs(cache):
            return Path(cache, "orch")
    return None
