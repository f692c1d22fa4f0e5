"""Whether code that a plan names may run: a plan is a file, and a file may be anybody's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import click

ALLOW = "ORCH_ALLOW_CODE"


@dataclass
class Permission:
    """What the user has allowed: ``everything`` (--allow-code), or what he wrote on the command line himself."""

    everything: bool = False
    own: set[str] = field(default_factory=set)

    def said(self, words: Iterable[str | None]) -> None:
        """Take down names of data sets and folders that stand on the command line."""
        self.own.update(word for word in words if word)

    def may_run(self, name: str, root: Path | None) -> bool:
        """Return whether the code of the data set ``name``, looked for in ``root``, may run; ask where a person sits.

        A name on the command line is the user's word, but not for the folder that somebody's plan names beside it.
        """
        if self.everything or os.environ.get(ALLOW) == "1":
            return True
        if name in self.own and (root is None or any(Path(word).expanduser() == root for word in self.own)):
            return True
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        yes = click.confirm(f"{name} runs code of {root or Path.cwd()}; run it?", err=True)
        self.own.update((name, str(root)) if yes else ())
        return yes
