"""Components that installed packages offer: entry points, listed without importing anything, loaded by name."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from audits.errors import BadInput
from audits.own.code import first_line, without_bytecode
from audits.own.sources import note


@dataclass(frozen=True)
class Offer:
    """A component that a package offers: ``name`` as plans call it, ``package`` with its version, what to load."""

    name: str
    package: str
    entry: EntryPoint

    @property
    def module(self) -> str:
        """The module that it stands in."""
        return self.entry.module

    def load(self) -> Any:
        """Return the object; raises BadInput in one line where that fails."""
        before = set(sys.modules)
        try:
            with without_bytecode():
                return self.entry.load()
        except Exception as error:  # the package's code may raise anything; the one line says what
            raise BadInput(
                f"{self.name} of package {self.package} cannot be loaded ({self.entry.value}): "
                f"{type(error).__name__}: {first_line(error)}"
            ) from error
        finally:
            note(self.module, before)


@functools.cache
def offers(group: str, prefix: str = "") -> tuple[Offer, ...]:
    """Return what installed packages offer in ``group`` under names that begin with ``prefix``, which is left out."""
    found = [
        Offer(entry.name.removeprefix(prefix), package_of(entry), entry)
        for entry in entry_points(group=group)
        if entry.name.startswith(prefix)
    ]
    return tuple(dict.fromkeys(sorted(found, key=lambda offer: (offer.name, offer.package))))


def package_of(entry: EntryPoint) -> str:
    """Return name and version of the package that offers ``entry``."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"


def refusals(found: Iterable[Offer], taken: Iterable[str]) -> dict[str, str]:
    """Return the names that no package may offer, and why: they are ``taken``, or offered by two packages."""
    found, built_in = list(found), set(taken)
    packages: dict[str, list[str]] = {}
    for offer in found:
        packages.setdefault(offer.name, []).append(offer.package)
    lines = {}
    for name, offering in packages.items():
        if name in built_in:
            lines[name] = (
                f"{name!r} of package {' and '.join(offering)} is refused: it is the name of a built-in one, which is "
                "used; rename the entry point, or name its code as python:module:name"
            )
        elif len(offering) > 1:
            lines[name] = (
                f"{name!r} is offered by packages {' and '.join(offering)}; uninstall all but one, or name the code as "
                "python:module:name"
            )
    return lines
