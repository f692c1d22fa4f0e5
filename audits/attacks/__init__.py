"""Attacks by name; importing this package fills the registry ``ATTACKS``."""

from audits.attacks import (
    apollo,
    apollo_offline,
    apollo_paper,
    label_gap,
    lira,
    loss_threshold,
    random_directions,
    single_query,
)
from audits.attacks.base import ATTACKS, Attack, Finding

__all__ = [
    "ATTACKS",
    "Attack",
    "Finding",
    "apollo",
    "apollo_offline",
    "apollo_paper",
    "label_gap",
    "lira",
    "loss_threshold",
    "random_directions",
    "single_query",
]
