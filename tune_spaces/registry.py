"""Named experiments: each is data that says what varies over a base plan, and which figure of the paper it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audits.registry import Registry

SWEEPS: Registry[Sweep] = Registry("sweep")


@dataclass(frozen=True)
class Sweep:
    """``base``: name of the shipped plan it starts from; ``settings``: setting name → dotted plan fields to change.

    ``metric`` names the number that the settings are compared by, ``makes`` the figure or table of the paper.
    ``pooled`` marks settings that repeat one experiment (seeds): they are also summed up together.
    """

    name: str
    title: str
    base: str
    settings: Mapping[str, Mapping[str, Any]]
    metric: str
    makes: str
    pooled: bool = False

    def space(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """Return Ray Tune's search space: a grid over the names of the settings (all, or ``names`` in their order)."""
        from ray import tune

        return {"setting": tune.grid_search(list(self.settings if names is None else names))}


def sweep(entry: Sweep) -> Sweep:
    """File a sweep under its name."""
    return SWEEPS.register(entry.name)(entry)
