"""Runs and pages that are made from drawn numbers: kept as long as the product and what draws them are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cases.kept import folder, of_code


def drawn(name: str, write: Callable[[Path], Any], *files: str) -> Path:
    """Return the kept folder ``name``, which ``write`` fills; ``files``: the code of tests that decides it.

    Nobody may change it.
    """
    decides = b"".join(Path(file).read_bytes() for file in files)
    short = hashlib.sha256(name.encode() + decides).hexdigest()[:12]
    return folder(f"drawn-{short} {of_code()}", lambda place: write(place / "out")) / "out"
