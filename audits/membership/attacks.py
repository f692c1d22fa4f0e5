"""Membership attacks by name; importing this module fills the registry ``ATTACKS``."""

from audits.membership import learned_attacks, rank_attacks
from audits.membership.attack_base import ATTACKS, JUDGED, Attack, JudgeSettings, Ruling

__all__ = ["ATTACKS", "JUDGED", "Attack", "JudgeSettings", "Ruling", "learned_attacks", "rank_attacks"]
