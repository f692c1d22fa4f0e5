"""Attacks on the models of a pool by name, one file each."""

from audits.gnq.attacks.base import POOL_ATTACKS, PoolAccess, PoolAttack

__all__ = ["POOL_ATTACKS", "PoolAccess", "PoolAttack"]
