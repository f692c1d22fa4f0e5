"""A table of named components: one file each in a package of their own, read when the table is first asked."""

from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from audits.errors import BadInput, did_you_mean
from audits.own.code import load
from audits.own.permission import is_own

T = TypeVar("T")


class Registry(Generic[T]):
    """Components of one kind by name; ``kind`` is the word for them in messages.

    A component files itself with ``register`` when its module is imported. The first look-up imports all modules of
    ``package``, in the order of their names, so that a new file there is a new component and no list has to name it.
    Defining a table imports nothing. ``whole``: results depend on all components, not on those alone that a plan names,
    so that the version of the code that reads the table counts all modules of ``package``. ``own``: where the function
    stands (``package.module:name``) that makes a component of the object behind ``python:module:name``, given both;
    without it the table takes no code of users'.
    """

    def __init__(self, kind: str, package: str, *, whole: bool = False, own: str = "") -> None:
        self.kind = kind
        self.package = package
        self.whole = whole
        self.own = own
        self._entries: dict[str, T] = {}
        self._adapted: dict[str, tuple[Any, T]] = {}
        self._lock = threading.RLock()
        self._loading = self._complete = False

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that files its argument under ``name``, and tells a class its ``name``.

        Raises ``RuntimeError`` for a name that is taken.
        """

        def file(entry: T) -> T:
            if name in self._entries:
                raise RuntimeError(f"{self.kind} {name!r} is registered twice")
            self._entries[name] = entry
            if isinstance(entry, type):
                type.__setattr__(entry, "name", name)
            return entry

        return file

    def __getitem__(self, name: str) -> T:
        if self.own and is_own(name):
            return self._of_user(name)
        found = self._all()
        if name not in found:
            raise BadInput(
                f"unknown {self.kind} {name!r}{did_you_mean(name, found)}; known: {', '.join(sorted(found))}"
            )
        return found[name]

    def __contains__(self, name: object) -> bool:
        """Say whether ``name`` is in the table, or that of code, which only a look-up imports."""
        return bool(self.own and is_own(name)) or name in self._all()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._all()))

    def __len__(self) -> int:
        return len(self._all())

    def is_own(self, name: str) -> bool:
        """Return whether the component ``name`` is a user's own, and not one of this project."""
        return bool(self.own) and is_own(name)

    def _of_user(self, name: str) -> T:
        """Return the component that is made of a user's object, the same one as long as the object is the same."""
        found = load(name)
        if name not in self._adapted or self._adapted[name][0] is not found:
            place, _, function = self.own.partition(":")
            made: T = getattr(importlib.import_module(place), function)(found, name)
            self._adapted[name] = found, made
        return self._adapted[name][1]

    def _all(self) -> dict[str, T]:
        """Return all entries; the first time the modules of the package are imported."""
        if self._complete:
            return self._entries
        with self._lock:  # other threads wait; a module that looks a name up while it is imported does not
            if not self._loading and not self._complete:
                self._loading = True
                try:
                    for module in modules_of(self.package):
                        importlib.import_module(module)
                    self._complete = True
                finally:
                    self._loading = False
        return self._entries


def modules_of(package: str) -> list[str]:
    """Return the names of the modules and packages that lie directly in ``package``, sorted."""
    folder = importlib.import_module(package).__path__
    return sorted(f"{package}.{found.name}" for found in pkgutil.iter_modules(folder))
