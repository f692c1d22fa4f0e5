"""Membership attacks by name, one file each."""

from audits.tmia.answers import JUDGED
from audits.tmia.attacks.base import ATTACKS, Attack, JudgeSettings, Ruling

__all__ = ["ATTACKS", "JUDGED", "Attack", "JudgeSettings", "Ruling"]
