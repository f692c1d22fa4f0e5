"""A table of named components: one file each in a package of their own, read when the table is first asked."""

from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from audits.errors import BadInput, did_you_mean
from audits.own.code import load
from audits.own.entry_points import Offer, offers, refusals
from audits.own.permission import is_own
from audits.own.sources import is_ours, module_of

T = TypeVar("T")


class Registry(Generic[T]):
    """Components of one kind by name; ``kind`` is the word for them in messages.

    A component files itself with ``register`` when its module is imported. The first look-up imports all modules of
    ``package``, in the order of their names, so that a new file there is a new component and no list has to name it.
    Defining a table imports nothing. ``whole``: results depend on all components, not on those alone that a plan names,
    so that the version of the code that reads the table counts all modules of ``package``.

    ``own``: where the function stands (``package.module:name``) that makes a component of a user's object, given the
    object and its name; without it the table takes no code of users'. Such objects are named ``python:module:name``,
    or offered by installed packages as entry points of ``group``, whose names begin with ``prefix`` there.
    """

    def __init__(
        self, kind: str, package: str, *, whole: bool = False, own: str = "", group: str = "", prefix: str = ""
    ) -> None:
        self.kind = kind
        self.package = package
        self.whole = whole
        self.own = own
        self.group = group
        self.prefix = prefix
        self._entries: dict[str, T] = {}
        self._registered: dict[str, Any] = {}
        self._adapted: dict[str, tuple[Any, T]] = {}
        self._lock = threading.RLock()
        self._loading = self._complete = False

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that files its argument under ``name``, and tells a class its ``name``.

        Raises ``RuntimeError`` for a name that is taken. What a user registers, in a notebook for example, is made a
        component when it is looked up, and takes the place of what the same module registered as ``name`` before.
        """

        def file(entry: T) -> T:
            module = getattr(entry, "__module__", "")
            users = bool(self.own) and not is_ours(module)
            if name in (self._all() if users else self._entries):
                raise RuntimeError(f"{self.kind} {name!r} is registered twice")
            if users:
                self._file_own(name, entry, module)
                return entry
            self._entries[name] = entry
            if isinstance(entry, type):
                type.__setattr__(entry, "name", name)
            return entry

        return file

    def _file_own(self, name: str, entry: Any, module: str) -> None:
        """File what a user's ``module`` registers; raises RuntimeError for a name that another module has."""
        before = self._registered.get(name)
        if before is not None and before.__module__ != module:
            raise RuntimeError(f"{self.kind} {name!r} is registered twice, by {before.__module__} and by {module}")
        self._registered[name] = entry

    def __getitem__(self, name: str) -> T:
        if self.own and is_own(name):
            return self._of_user(load(name), name)
        found = self._all()
        if name in found:
            return found[name]
        if name in self._registered:
            entry = self._registered[name]
            return self._of_user(entry, name, module_of(entry))
        if offer := self.offered().get(name):
            return self._of_user(offer.load(), name, offer.module)
        if name in self.refused():
            raise BadInput(f"{self.kind} {self.refused()[name]}")
        raise BadInput(f"unknown {self.kind} {name!r}{did_you_mean(name, self)}; known: {', '.join(self)}")

    def __contains__(self, name: object) -> bool:
        """Say whether ``name`` is in the table, offered by a package, or that of code; these a look-up imports."""
        return bool(self.own and is_own(name)) or name in self._known()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._known()))

    def __len__(self) -> int:
        return len(self._known())

    def is_own(self, name: str) -> bool:
        """Return whether the component ``name`` is a user's own, and not one of this project."""
        return bool(self.own) and (is_own(name) or (name not in self._all() and name in self._known()))

    def _known(self) -> set[str]:
        """Return the names in the table, those that users registered, and those that packages offer."""
        return {*self._all(), *self._registered, *self.offered()}

    def offered(self) -> dict[str, Offer]:
        """Return what installed packages offer, by name; nothing of it is imported."""
        found = offers(self.group, self.prefix) if self.group else ()
        refused = self.refused()
        return {offer.name: offer for offer in found if offer.name not in refused}

    def refused(self) -> dict[str, str]:
        """Return the names that packages offer in vain, and why."""
        found = offers(self.group, self.prefix) if self.group else ()
        return refusals(found, self._all()) if found else {}

    def _of_user(self, found: Any, name: str, module: str = "") -> T:
        """Return the component that is made of a user's object, the same one as long as the object is the same."""
        if name not in self._adapted or self._adapted[name][0] is not found:
            place, _, function = self.own.partition(":")
            made: T = getattr(importlib.import_module(place), function)(found, name, module)
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
