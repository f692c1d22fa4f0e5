"""Messages of a command to ``main`` while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.cli.permission import Permission


@dataclass
class Session:
    """``log``: the file into which a traceback belongs, None until a command has one; ``permission``: what may run."""

    log: Path | None = None
    permission: Permission = field(default_factory=Permission)
