"""Findings about many files, remembered on this machine for as long as none of them changes."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from audits.data.image_files import in_threads
from audits.home import ORCH_CACHE, user_cache
from audits.plain_json import from_json
from audits.writing import make_folder, write_whole

SETTLED = 2 * 10**9  # ns: a file that changed within these may change again without another time


def remembered(question: str, root: Path, files: Sequence[str], find: Callable[[], Any]) -> Any:
    """Return ``find()``, or what an earlier call found for the same ``question`` about the same ``files``.

    The answer must be JSON. It is believed only if every file below ``root`` still has its name, length, times of
    change (of contents and of the entry itself) and inode. It lies in ``folder()``; where that cannot be written, or a
    file changed a moment ago, nothing is kept.
    """
    place = folder()
    if place is None:
        return find()
    begin = time.time_ns()
    facts = states(root, files)
    if facts is None:
        return find()
    state, newest = facts
    note = place / f"{hashlib.sha256(json.dumps([question, str(root.absolute())]).encode()).hexdigest()}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = from_json(note.read_text())
        if known["state"] == state:
            return known["found"]
    found = find()
    if newest < begin - SETTLED:
        with suppress(OSError):
            keep(note, {"state": state, "found": found})
    return found


def folder() -> Path | None:
    """Return where answers are kept: ``ORCH_CACHE`` (None if it is empty), else ``orch`` in the user's cache."""
    return None if os.environ.get(ORCH_CACHE) == "" else user_cache()


def states(root: Path, files: Sequence[str]) -> tuple[str, int] | None:
    """Return the sha256 (hex) of what tells that a file has changed, and the newest time; None if one is missing."""

    def state(file: str) -> os.stat_result:
        return (root / file).stat()

    digest, newest = hashlib.sha256(), 0
    try:
        for file, found in zip(files, in_threads(state, files), strict=True):
            times = (found.st_mtime_ns, found.st_ctime_ns)
            digest.update(json.dumps([file, found.st_size, *times, found.st_ino]).encode())
            newest = max(newest, *times)
    except OSError:
        return None
    return digest.hexdigest(), newest


def keep(note: Path, content: Any) -> None:
    """Write a note whole or not at all."""
    make_folder(note.parent)
    write_whole(note, json.dumps(content).encode(), private=True)
