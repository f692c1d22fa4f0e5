"""Faults of a store; every message is one line that says what happened and what to do."""

from __future__ import annotations

import errno

from audits.credentials import hide
from audits.errors import BadInput


class Missing(KeyError):
    """The artefact is not in the store."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class CorruptArtefact(RuntimeError):
    """Stored bytes are not the bytes that were put (exit code 3)."""


class StoreUnusable(BadInput):
    """The location of the store cannot be opened, read or written (exit code 2)."""


class StoreRefused(BadInput):
    """The store holds what orch never writes there, or is of somebody who could change it (exit code 2)."""


class Unsigned(StoreRefused):
    """The artefact is not signed with the key of the team, or with another one."""


class StoreFull(OSError):
    """The disk is full; what was finished before is kept (exit code 3)."""


class StoreSilent(RuntimeError):
    """The store did not answer for a minute; what was finished before is kept (exit code 3)."""


FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a disk that is full, or of which the user may have no more."""
FAULTS = (Missing, CorruptArtefact, StoreUnusable, StoreRefused, StoreFull, StoreSilent)


def damaged(stage: str, key: str, file: str, what: str) -> CorruptArtefact:
    """Return the error that says ``what`` is wrong with ``file`` of an artefact and how to have it made anew."""
    return CorruptArtefact(
        f"artefact {stage}/{key} is damaged: {file} {what}; run again with --rebuild to compute it anew"
    )


def one_line(error: BaseException, limit: int = 200) -> str:
    """Return the first line of an error's message (at most ``limit`` characters), or the name of its type."""
    strerror = getattr(error, "strerror", None)
    text = hide(str(strerror or error)).strip().splitlines()
    return text[0][:limit] if text else type(error).__name__
