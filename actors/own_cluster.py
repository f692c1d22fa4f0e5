"""Which Ray cluster or job server is meant where none is named: that of this user, never of another user here.

What a cluster returns is unpickled. Ray itself takes the address that any process called raylet was started with, or
the one in a file in a folder that all users of a machine can write into.
"""

from __future__ import annotations

import os
import pwd
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from audits.errors import BadInput
from audits.owners import others_bits

VARIABLE = "RAY_ADDRESS"
FLAG = "--gcs-address="
ADDRESS = re.compile(r"(\[[\da-fA-F:.]+\]|[\w.-]+):\d{1,5}")
LISTENING = "0A"
"""State of a socket in the tables of the kernel."""
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
LONGEST = 300
"""Bytes of the file in which ``ray start`` leaves an address."""


class Found(NamedTuple):
    """An address, and the user (uid) whose process or file names it; ``doubt``: a file that others may have written."""

    address: str
    user: int
    doubt: str = ""


def own_cluster() -> str:
    """Return the address of the cluster that ``auto`` stands for: RAY_ADDRESS, else one that this user has started.

    That is the cluster of this user's only raylet on this machine; where there are several, or none, the one that the
    user's last ``ray start`` has left in Ray's file. Raises BadInput for none, several, and those of other users.
    """
    named = os.environ.get(VARIABLE, "")
    if named not in ("", "auto"):
        return named
    running, left = list(raylets()), left_by_ray_start()
    own = sorted({each.address for each in running if each.user == os.geteuid()})
    theirs = {each.address for each in running if each.user != os.geteuid()}.difference(own)
    kept = left.address if left and is_own(left) and left.address not in theirs else ""
    if len(own) == 1:
        return own[0]
    if kept and (not own or kept in own):
        return kept
    if own:
        raise BadInput(f"auto: several Ray clusters of yours run here ({', '.join(own)}); name one: {way(own[0])}")
    strangers = [each for each in (*running, left) if each is not None and not is_own(each)]
    if strangers:
        first = strangers[0]
        doubt = f"may be anybody's: others may have written {first.doubt}" if first.doubt else ""
        raise BadInput(
            f"auto: the Ray cluster at {first.address} {doubt or f'belongs to {name_of(first.user)}'}, and what it "
            f"returns is unpickled here; if you trust it, name it: {way(first.address)}"
        )
    raise BadInput(f"auto: no Ray cluster of yours runs on this machine; start one (ray start), or {way('HOST:PORT')}")


def require_own_listener(address: str, way: str) -> None:
    """Raise BadInput where another user than this one and root listens at the port of ``address`` on this machine.

    On a machine that several people use whoever is there first has a port. ``way``: how a user names the address.
    Where the kernel has no tables of sockets nothing is refused.
    """
    port = urlsplit(address).port
    strangers = [user for user in listeners(port) if user not in (os.geteuid(), 0)] if port else []
    if strangers:
        raise BadInput(
            f"another user ({name_of(strangers[0])}) listens at {address}, and would get the token of Ray, your code "
            f"and your plan; if you trust them, name it: {way}"
        )


def listeners(port: int) -> list[int]:
    """Return the users (uids) whose sockets take connections to this machine's loopback address at ``port``."""
    found = []
    for table in TABLES:
        with suppress(OSError, ValueError, IndexError), open(table, encoding="ascii") as file:
            for fields in map(str.split, file.readlines()[1:]):
                host, _, place = fields[1].partition(":")
                here = set(host) == {"0"} or host.endswith("7F") or host.strip("0") == "1"
                if fields[3] == LISTENING and int(place, 16) == port and here:
                    found.append(int(fields[7]))
    return found


def is_own(found: Found) -> bool:
    """Return whether an address is this user's word."""
    return found.user == os.geteuid() and not found.doubt


def way(address: str) -> str:
    """Return how a user names a cluster."""
    return f"--set compute.address={address}, or {VARIABLE}={address}"


def name_of(user: int) -> str:
    """Return a user's name, or the number of one without a name."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def raylets() -> Iterator[Found]:
    """Yield the address that each raylet of this machine was started with, and whose process it is.

    A process that runs as another user than its real one counts as the other's.
    """
    from ray._private.services import psutil  # which Ray brings

    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            words = process.cmdline()
            if not words or Path(words[0]).name not in ("raylet", "raylet.exe"):
                continue
            users = process.uids()
            user = users.effective if users.real == os.geteuid() else users.real
            for word in " ".join(words).split(" "):  # a title that was set later is one word
                address = word.removeprefix(FLAG)
                if word.startswith(FLAG) and ADDRESS.fullmatch(address):
                    yield Found(address, user)


def left_by_ray_start() -> Found | None:
    """Return what ``ray start`` has left in its file, with a doubt where others may have written it."""
    from ray._common.utils import get_ray_address_file

    path = get_ray_address_file(None)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            about = os.fstat(handle)
            text = file.read(LONGEST).decode("ascii").strip() if stat.S_ISREG(about.st_mode) else ""
    except (OSError, ValueError):
        return None
    doubtful = about.st_nlink != 1 or about.st_mode & others_bits(about, stat.S_IWGRP, stat.S_IWOTH)
    return Found(text, about.st_uid, str(path) if doubtful else "") if ADDRESS.fullmatch(text) else None
