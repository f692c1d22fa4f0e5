"""The Ray cluster or job server that is meant where none is named: this user's, never another user's.

What a cluster returns is unpickled. Ray itself takes the address that any process called raylet was started with, or
the one in a file in a folder that all users of a machine can write into.
"""

from __future__ import annotations

import os
import pwd
import re
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from audits.errors import BadInput

VARIABLE = "RAY_ADDRESS"
FLAG = "--gcs-address="
ADDRESS = re.compile(r"(\[[\da-fA-F:.]+\]|[\w.-]+):\d{1,5}")
LISTENING = "0A"
"""State of a socket in the tables of the kernel."""
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
LONGEST = 300
"""Bytes of the file in which ``ray start`` leaves an address."""


class Found(NamedTuple):
    """The address that a raylet was started with, and the user (uid) whose process it is."""

    address: str
    user: int


def own_cluster() -> str:
    """Return the address of the cluster that ``auto`` stands for: RAY_ADDRESS, else one that this user has started.

    That is the cluster of this user's only raylet on this machine; where there are several, that of them which the last
    ``ray start`` has left in Ray's file. The file alone says nothing: others can keep an old one where it lies. Raises
    BadInput for none, several, those of other users, and where another user listens at the address.
    """
    named = os.environ.get(VARIABLE, "")
    if named not in ("", "auto"):
        return named
    running = list(raylets())
    own = sorted({each.address for each in running if each.user == os.geteuid()})
    strangers = [each for each in running if each.user != os.geteuid()]
    if not own and strangers:
        first = strangers[0]
        raise BadInput(
            f"auto: the Ray cluster at {first.address} belongs to {name_of(first.user)}, and what it returns is "
            f"unpickled here; if you trust it, name it: {way(first.address)}"
        )
    if not own:
        raise BadInput(
            f"auto: no Ray cluster of yours runs on this machine; start one (ray start), or {way('HOST:PORT')}"
        )
    found = own[0] if len(own) == 1 else left_by_ray_start()
    if found not in own:
        raise BadInput(f"auto: several Ray clusters of yours run here ({', '.join(own)}); name one: {way(own[0])}")
    require_own_listener(found, way(found))
    return found


def require_own_listener(address: str, way: str) -> None:
    """Raise BadInput where another user than this one and root listens at ``address``, if it is one of this machine's.

    On a machine that several people use whoever is there first has a port. ``address``: host:port, or a URL; ``way``:
    how a user names it. Where the kernel has no tables of sockets nothing is refused.
    """
    place = urlsplit(address if "://" in address else f"//{address}")
    users = listeners(place.hostname or "", place.port) if place.port else []
    strangers = [user for user in users if user not in (os.geteuid(), 0)]
    if strangers:
        raise BadInput(
            f"another user ({name_of(strangers[0])}) listens at {address}, and would get the token of Ray, your code "
            f"and your plan; if you trust them, name it: {way}"
        )


def listeners(host: str, port: int) -> list[int]:
    """Return the users (uids) whose sockets take what is sent to ``host`` at ``port``: none on another machine."""
    wanted = own_addresses(host, port)
    found = []
    for table in TABLES if wanted else ():
        with suppress(OSError, ValueError, IndexError), open(table, encoding="ascii") as file:
            for fields in map(str.split, file.readlines()[1:]):
                written, _, place = fields[1].partition(":")
                if fields[3] != LISTENING or int(place, 16) != port:
                    continue
                at = of_table(written)
                if at.is_unspecified or at in wanted:
                    found.append(int(fields[7]))
    return found


def own_addresses(host: str, port: int) -> set[IPv4Address | IPv6Address]:
    """Return those addresses of ``host`` that are this machine's own: a socket can be bound to them."""
    found = set()
    with suppress(OSError, UnicodeError):
        for family, _, _, _, place in socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM):
            with suppress(OSError, ValueError), socket.socket(family, socket.SOCK_DGRAM) as one:
                one.bind((place[0], 0, *place[2:]))
                found.add(plain(ip_address(str(place[0]).partition("%")[0])))
    return found


def of_table(written: str) -> IPv4Address | IPv6Address:
    """Return an address as the kernel's tables write it: words of 32 bits, each in the machine's order of bytes."""
    words = [int(written[each : each + 8], 16).to_bytes(4, sys.byteorder) for each in range(0, len(written), 8)]
    return plain(ip_address(b"".join(words)))


def plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address may stand for."""
    return getattr(address, "ipv4_mapped", None) or address


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


def left_by_ray_start() -> str:
    """Return the address that ``ray start`` has left in its file; "" for none."""
    from ray._common.utils import get_ray_address_file

    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with open(os.open(get_ray_address_file(None), flags), "rb") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            text = file.read(LONGEST).decode("ascii").strip() if regular else ""
    except (OSError, ValueError):
        return ""
    return text if ADDRESS.fullmatch(text) else ""
