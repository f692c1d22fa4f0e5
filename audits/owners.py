"""Who besides this user may change a file: the bits of its mode, and the group that is the user's own."""

from __future__ import annotations

import grp
import os
import pwd
from functools import cache


def others_bits(found: os.stat_result, of_group: int, of_all: int) -> int:
    """Return which bits of a mode speak of others than this user: not those of the group that is its own."""
    return of_all if found.st_gid == own_group() else of_group | of_all


@cache
def own_group() -> int:
    """Return the group that has this user's name and no other members, as many systems make one; -1 for none."""
    try:
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(user.pw_gid)
    except KeyError:
        return -1
    return user.pw_gid if group.gr_name == user.pw_name and not {*group.gr_mem} - {user.pw_name} else -1
