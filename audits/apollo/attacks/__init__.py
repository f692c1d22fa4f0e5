"""Apollo's attacks by name, one file each."""

from audits.apollo.attacks.base import ATTACKS, Attack, Finding

__all__ = ["ATTACKS", "Attack", "Finding"]
