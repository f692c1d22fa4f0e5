"""Attacks on the models of a pool, of users' own."""

from __future__ import annotations

from typing import Any, get_args

from audits.gnq.attacks.base import PoolAccess, PoolAttack
from audits.own.subclasses import must_be_one_of, subclass


def adapted(found: Any, name: str, module: str = "") -> type[PoolAttack]:
    """Return the attack behind the object ``found``, which a plan calls ``name``; ``module`` offers it."""
    attack = subclass(found, name, PoolAttack, "attack", module)
    must_be_one_of(attack, "attack", "access", get_args(PoolAccess))
    return attack
