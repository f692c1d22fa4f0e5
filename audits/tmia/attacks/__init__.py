"""Membership attacks by name, one file each."""

from audits.tmia.attacks.base import ATTACKS, JUDGED, Attack, JudgeSettings, Ruling

__all__ = ["ATTACKS", "JUDGED", "Attack", "JudgeSettings", "Ruling"]
