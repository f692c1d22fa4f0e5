"""What the user has said about stores, in the environment: no plan can say it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from audits.errors import BadInput

ALLOW: Final = "ORCH_ALLOW_STORES"
"""Local stores that others own or can write into and that may be used all the same: absolute paths, or * for all."""


@dataclass(frozen=True)
class Trust:
    """``allowed``: folders of stores that others may write into. Workers get it with their work."""

    allowed: tuple[str, ...] = ()

    @classmethod
    def of(cls, variables: Mapping[str, str] = os.environ) -> Trust:
        """Return what the environment says; raises BadInput for a relative path: it would allow one in each folder."""
        words = tuple(os.path.expanduser(word) for word in variables.get(ALLOW, "").split(os.pathsep) if word)
        for word in words:
            if word != "*" and not os.path.isabs(word):
                raise BadInput(
                    f"{ALLOW}: {word!r} is no absolute path; give those of stores, with : between them, or *"
                )
        return cls(words)

    def allows(self, root: str) -> bool:
        """Say whether the store in the folder ``root`` may be used, whoever can write into it."""
        return any(word == "*" or Path(word).resolve() == Path(root).resolve() for word in self.allowed)
