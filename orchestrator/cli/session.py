"""What a command tells ``main`` while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.cli.user_code import Permission


@dataclass
class Session:
    """``log``: the file into which a traceback belongs, None until a command has one; ``code``: what code may run."""

    log: Path | None = None
    code: Permission = field(default_factory=Permission)
