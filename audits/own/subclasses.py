"""Classes of users' own that stand in for those of a table: told their name, and where their code lies."""

from __future__ import annotations

import inspect
from typing import Any

from audits.errors import BadInput
from audits.own.settings import modules_behind


def subclass(found: Any, name: str, base: type[Any], what: str, module: str = "") -> type[Any]:
    """Return ``found``, the object that a plan calls ``name``, as a component: a class derived from ``base``.

    Raises BadInput for anything else, for a class that lacks a method, and for one whose settings are no dataclass's.
    """
    home = f"{base.__module__}.{base.__qualname__}"
    if not (isinstance(found, type) and issubclass(found, base)):
        given = found.__name__ if isinstance(found, type) else f"a {type(found).__name__}"
        raise BadInput(f"{what} {name} is {given}; needed: a class derived from {home}")
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        raise BadInput(f"{what} {name} has no {', '.join(missing)}; {home} needs it")
    if "__dataclass_fields__" not in vars(found) and settings_of(found):
        raise BadInput(
            f"{what} {name} has settings ({', '.join(settings_of(found))}) but is no dataclass; put "
            "@dataclass(frozen=True) before it"
        )
    return marked(found, name, module)


def marked(found: type[Any], name: str, module: str) -> type[Any]:
    """Return a class that knows the name by which plans call it, and the modules behind it."""
    type.__setattr__(found, "name", name)
    type.__setattr__(found, "made_of", modules_behind(found, name, module))
    return found


def settings_of(found: type[Any]) -> list[str]:
    """Return the names that a class annotates for its instances."""
    own = inspect.get_annotations(found)
    return [name for name, kind in own.items() if "ClassVar" not in str(kind)]


def must_be_one_of(found: type[Any], what: str, attribute: str, allowed: tuple[str, ...]) -> None:
    """Refuse a class whose ``attribute`` is none of ``allowed``."""
    value = getattr(found, attribute, None)
    if value not in allowed:
        name = getattr(found, "name", found.__name__)
        raise BadInput(f"{what} {name} has {attribute} {value!r}; allowed: {', '.join(allowed)}")
