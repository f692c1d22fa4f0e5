"""A table of named components, filled by decorators, that refuses duplicates and explains unknown names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from audits.errors import BadInput, did_you_mean

T = TypeVar("T")


class Registry(Generic[T]):
    """Names of one kind of component (``kind`` is the word used in messages)."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that files its argument under ``name``; a second use of a name is a bug."""

        def file(entry: T) -> T:
            if name in self._entries:
                raise RuntimeError(f"{self.kind} {name!r} is registered twice")
            self._entries[name] = entry
            return entry

        return file

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            raise BadInput(
                f"unknown {self.kind} {name!r}{did_you_mean(name, self._entries)}; "
                f"known: {', '.join(sorted(self._entries))}"
            )
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        return len(self._entries)
