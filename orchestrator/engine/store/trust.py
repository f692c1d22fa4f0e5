"""The user's word about stores, in the environment: no plan can say it."""

from __future__ import annotations

import hmac
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

from audits.errors import BadInput

ALLOW: Final = "ORCH_ALLOW_STORES"
"""Local stores that others own or can write into and that may be used all the same: absolute paths, or * for all."""

KEY_FILE: Final = "ORCH_STORE_KEY_FILE"
"""The file of a team's key: with it manifests are signed, and those that are not signed with it are refused."""
SHORTEST_KEY, LONGEST_KEY = 32, 4096
"""Bytes of a key."""


@dataclass(frozen=True)
class Trust:
    """What the user has said; workers get it with their work.

    ``allowed``: folders of stores that others may write into. ``key``: that of the team, empty for none.
    """

    allowed: tuple[str, ...] = ()
    key: bytes = field(default=b"", repr=False)

    @classmethod
    def of(cls, variables: Mapping[str, str] = os.environ, *, with_key: bool = True) -> Trust:
        """Return what is held (``holding``), else what the environment says; ``with_key=False``: of stores alone.

        Raises BadInput for a relative path, which would allow a store in every folder, and for a key that cannot be
        read, is too short, or that others than this user can read.
        """
        if (held := _held.get()) is not None:
            return held if with_key else cls(held.allowed)
        words = tuple(os.path.expanduser(word) for word in variables.get(ALLOW, "").split(os.pathsep) if word)
        for word in words:
            if word != "*" and not os.path.isabs(word):
                raise BadInput(
                    f"{ALLOW}: {word!r} is no absolute path; give those of stores, with : between them, or *"
                )
        return cls(words, read_key(variables[KEY_FILE]) if with_key and KEY_FILE in variables else b"")

    def allows(self, root: str) -> bool:
        """Say whether the store in the folder ``root`` may be used, whoever can write into it."""
        return any(word == "*" or os.path.realpath(word) == os.path.realpath(root) for word in self.allowed)

    def signature(self, what: str, data: bytes) -> str:
        """Return the HMAC-SHA256 (hex) of ``data`` by the team's key; ``what`` tells kinds of data apart."""
        return hmac.new(self.key, f"{what}\n".encode() + data, "sha256").hexdigest()

    def has_signed(self, what: str, data: bytes, signature: object) -> bool:
        """Say whether ``signature`` is that of ``data``; without a key everything counts as signed."""
        return not self.key or hmac.compare_digest(
            str(signature).encode(errors="replace"), self.signature(what, data).encode()
        )


_held: ContextVar[Trust | None] = ContextVar("trust", default=None)


@contextmanager
def holding(trust: Trust) -> Iterator[None]:
    """Let ``trust`` hold for the stores that are made in the block, in place of the environment: that of a worker."""
    token = _held.set(trust)
    try:
        yield
    finally:
        _held.reset(token)


def read_key(path: str) -> bytes:
    """Return the key in the file ``path``, without line breaks at its end; raises BadInput as ``Trust.of``."""
    try:
        with open(os.open(os.path.expanduser(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            key = file.read(LONGEST_KEY + 1).rstrip(b"\r\n") if stat.S_ISREG(found.st_mode) else b""
    except OSError as error:
        raise BadInput(f"{KEY_FILE}: the key {path!r} cannot be read: {error.strerror}; nothing was done") from None
    if found.st_uid not in (os.geteuid(), 0):
        raise BadInput(f"{KEY_FILE}: {path} belongs to another user, who could change it; give a file of your own")
    # a secret that a cluster mounts belongs to root, and to a group by which its user reads it
    of_group = stat.S_IRGRP if found.st_uid != os.geteuid() else 0
    if found.st_mode & 0o077 & ~of_group:
        raise BadInput(
            f"{KEY_FILE}: others can read or change {path} (mode {stat.S_IMODE(found.st_mode):o}); run chmod 600 {path}"
        )
    if not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        raise BadInput(
            f"{KEY_FILE}: {path} holds no key of {SHORTEST_KEY} to {LONGEST_KEY} bytes; make one, for instance with "
            f"openssl rand -hex 32 > {path}"
        )
    return key
