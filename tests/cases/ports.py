"""The ports of this machine: which are free, and, read from /proc, on which processes listen."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Iterable
from pathlib import Path


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def listening(pids: Iterable[int]) -> set[tuple[str, int]]:
    """Return (address, port) of every TCP socket on which one of the processes listens."""
    inodes = {inode for pid in pids for inode in sockets_of(pid)}
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                where, port = fields[1].split(":")
                found.add((address_of(where), int(port, 16)))
    return found


def sockets_of(pid: int) -> set[str]:
    """Return the inodes of the sockets that a process holds."""
    found = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            target = os.readlink(entry.path)
            if target.startswith("socket:["):
                found.add(target[8:-1])
    except OSError:
        pass
    return found


def address_of(digits: str) -> str:
    """Return the address that the kernel writes as words of 8 hex digits, each in the machine's byte order."""
    words = [int(digits[place : place + 8], 16) for place in range(0, len(digits), 8)]
    packed = b"".join(struct.pack("=I", word) for word in words)
    if len(packed) == 4:
        return socket.inet_ntop(socket.AF_INET, packed)
    address = ipaddress.IPv6Address(packed)
    return str(address.ipv4_mapped or address)
