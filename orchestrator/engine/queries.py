"""Queries that an attack puts to targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Queries:
    """Queries an attack puts to a target under one unlearning method, and to all targets under all methods.

    In a sweep both are sums over the settings: answers that several settings read are asked for once.
    """

    attack: str
    access: str
    per_target: int
    total: int
