"""Attacks of which each judges by another rule: they stand for those that judge other answers by the same one."""

from __future__ import annotations

from audits.apollo.attacks import ATTACKS

BY_ANOTHER_RULE = (
    "apollo",
    "apollo_offline",
    "apollo_under",
    "boundary_distance",
    "label_gap",
    "lira",
    "lira_offline",
    "rmia",
    "ruli",
    "u_lira",
)
assert set(BY_ANOTHER_RULE) < set(ATTACKS)
