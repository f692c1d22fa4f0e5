"""Membership attacks by name, one file each."""

from audits.mia.attacks.base import MIA_ATTACKS, Attack, Finding

__all__ = ["MIA_ATTACKS", "Attack", "Finding"]
