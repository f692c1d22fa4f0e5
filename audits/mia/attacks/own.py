"""Membership attacks on ordinary models, of users' own."""

from __future__ import annotations

from typing import Any, get_args

from audits.mia.attacks.base import Attack
from audits.own.subclasses import must_be_one_of, subclass
from audits.queries.access import Access


def adapted(found: Any, name: str, module: str = "") -> type[Attack]:
    """Return the attack behind the object ``found``, which a plan calls ``name``; ``module`` offers it."""
    attack = subclass(found, name, Attack, "attack", module)
    must_be_one_of(attack, "attack", "access", get_args(Access))
    return attack
