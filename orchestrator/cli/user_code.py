"""Whether code that a plan names may run: a plan is a file, and a file may be anybody's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from audits.own.permission import Named, is_own
from orchestrator.engine.media import visible

ALLOW = "ORCH_ALLOW_CODE"


@dataclass
class Permission:
    """What the user has allowed: ``everything`` (--allow-code), or what he wrote on the command line himself."""

    everything: bool = False
    own: set[str] = field(default_factory=set)

    def said(self, words: Iterable[str | None]) -> None:
        """Take down names of components and folders that stand on the command line."""
        self.own.update(word for word in words if word)

    def may_run(self, named: Sequence[Named]) -> bool:
        """Return whether the code of all these names may run; ask once where a person sits.

        A name on the command line is the user's word, but not for the folder that somebody's plan names beside it.
        """
        if self.everything or os.environ.get(ALLOW) == "1":
            return True
        unknown = [each for each in named if not self.is_known(*each)]
        if not unknown:
            return True
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return False
        names = list(dict.fromkeys(name for name, _ in unknown))
        folders = dict.fromkeys(str(root or Path.cwd()) for name, root in unknown if is_own(name))
        whose = f"code of {', '.join(folders)}" if folders else "as a program"
        question = f"{', '.join(names)} {'runs' if len(names) == 1 else 'run'} {whose}; run it?"
        yes = click.confirm(visible(question), err=True)
        self.own.update((*names, *(str(root) for _, root in unknown if root)) if yes else ())
        return yes

    def is_known(self, name: str, root: Path | None) -> bool:
        """Return whether the user has named this code, and its folder if there is one."""
        return name in self.own and (root is None or any(Path(word).expanduser() == root for word in self.own))
