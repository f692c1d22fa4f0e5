"""What a command tells ``main`` while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass
class Session:
    """The log file into which a traceback belongs; None until a command has one."""

    log: Path | None = None
