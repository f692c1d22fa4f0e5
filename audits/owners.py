"""The users besides this one who may change a file: the bits of its mode, and the group that is the user's own."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from functools import cache
from pathlib import Path


def others_bits(found: os.stat_result, of_group: int, of_all: int) -> int:
    """Return which bits of a mode speak of others than this user: not those of the group that is its own."""
    return of_all if found.st_gid == own_group() else of_group | of_all


def is_others(found: os.stat_result) -> bool:
    """Say whether another user than this one and root owns what was ``found``, or can write into it."""
    return found.st_uid not in (os.geteuid(), 0) or bool(found.st_mode & others_bits(found, stat.S_IWGRP, stat.S_IWOTH))


def others_can_exchange(folder: Path) -> bool:
    """Say whether another user than this one and root can put something else in the place of what lies in ``folder``.

    ``folder``: absolute and without links. Whoever can write into it, or into a folder above it, can, but for folders
    such as /tmp, in which only owners rename (the sticky bit).
    """
    return exposed_at(folder) is not None


def exposed_at(folder: Path) -> Path | None:
    """Return the folder by which ``others_can_exchange`` what lies in ``folder``, None for none."""
    for place in (folder, *folder.parents):
        found = place.stat()
        if is_others(found) and not (found.st_uid in (os.geteuid(), 0) and found.st_mode & stat.S_ISVTX):
            return place
    return None


@cache
def own_group() -> int:
    """Return the group that has this user's name and no other members, as many systems make one; -1 for none."""
    try:
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(user.pw_gid)
    except KeyError:
        return -1
    return user.pw_gid if group.gr_name == user.pw_name and not {*group.gr_mem} - {user.pw_name} else -1
