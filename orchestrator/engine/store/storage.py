"""The interface of the place where artefacts are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Entry:
    """One stored file: path below the root (parts joined by /), bytes, seconds since 1970 of the last change."""

    path: str
    size: int
    modified: float


class Storage(Protocol):
    """A place for files; every path is relative to its root, with / between the parts.

    Every method raises StoreRefused for a path that could lead elsewhere (``paths.require_inside``).
    """

    place: str
    """The root as shown to the user, without credentials."""

    def read(self, path: str) -> bytes:
        """Return the bytes of a file; raises FileNotFoundError."""

    def publish(self, folder: str, files: Mapping[str, bytes]) -> None:
        """Write files into ``folder``, each whole or not at all, the last one last."""

    def exists(self, path: str) -> bool:
        """Is there a file at ``path``?"""

    def folders_with(self, folder: str, name: str) -> set[str]:
        """Return the names of those folders two levels below ``folder`` that hold a file ``name``."""

    def folders(self) -> list[str]:
        """Return the names of the folders in the root, sorted."""

    def walk(self, folder: str) -> Iterator[Entry]:
        """Yield every file below ``folder``, finished or not."""

    def remove_file(self, path: str) -> None:
        """Remove a file and the folders that this leaves empty; a file that is gone already is no error."""

    def remove_folder(self, path: str, last: str) -> None:
        """Remove a folder, its file ``last`` before the others (so that nobody takes the rest for whole)."""
