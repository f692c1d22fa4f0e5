"""Membership attacks of TMIA of users' own."""

from __future__ import annotations

from typing import Any, get_args

from audits.errors import BadInput
from audits.own.subclasses import must_be_one_of, subclass
from audits.queries.access import Access
from audits.tmia.attacks.base import Attack, Reading


def adapted(found: Any, name: str, module: str = "") -> type[Attack]:
    """Return the attack behind the object ``found``, which a plan calls ``name``; ``module`` offers it."""
    attack = subclass(found, name, Attack, "attack", module)
    must_be_one_of(attack, "attack", "access", (*get_args(Access), "white_box"))
    reads, known = getattr(attack, "reads", None), get_args(Reading)
    if not isinstance(reads, tuple) or not set(reads) <= set(known):
        raise BadInput(f"attack {name} has reads {reads!r}; allowed: a tuple of {', '.join(known)}, or ()")
    return attack
