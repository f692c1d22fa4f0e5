"""Tar files that say of themselves what cannot be."""

from __future__ import annotations

import tarfile


def with_size(member: tarfile.TarInfo, size: int) -> bytes:
    """Return a member of a tar file that says a size below 0 of itself, and the file's end."""
    block = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    block[124:136] = (256**12 + size).to_bytes(12, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + bytes(2 * tarfile.BLOCKSIZE)
