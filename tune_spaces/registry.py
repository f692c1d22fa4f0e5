"""Named experiments: each is data that says what varies over a base plan, and which figure of the paper it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from audits.registry import Registry
from tune_spaces.space import Search

SWEEPS: Registry[Sweep] = Registry("sweep", "tune_spaces")

Settings = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Sweep:
    """``base``: name of the shipped plan it starts from; ``varies``: from the plain values of the plan in hand to
    setting name → dotted plan fields to change.

    ``metric`` names the number that the settings are compared by, ``makes`` the figure or table of the paper.
    ``pooled`` marks settings that repeat one experiment (seeds): they are also summed up together. ``measures`` is
    "attacks", or "utility" when only the unlearned targets' accuracies are compared and nothing is attacked.
    ``trade`` names a risk of a setting and what it costs to lower it, of which the Pareto front is told; of Apollo
    ``METHOD.ATTACK.auc`` and ``METHOD.utility.test_accuracy``, as two metrics of a file may be. ``search`` says how the
    settings of a sweep in a file or on the command line are drawn; an adaptive one has none beforehand. ``ahead``: on
    one machine the first setting is done before the others, and its tables are printed. ``text``: the file, "" for a
    sweep that a function makes.
    """

    name: str
    title: str
    base: str
    varies: Callable[[Mapping[str, Any]], Settings]
    metric: str
    makes: str
    pooled: bool = False
    measures: Literal["attacks", "utility"] = "attacks"
    trade: tuple[str, str] | None = None
    search: Search | None = None
    ahead: bool = False
    text: str = ""

    def settings(self, plan: Mapping[str, Any]) -> Settings:
        """Return setting name → dotted plan fields to change, for a plan given by its plain values."""
        return self.varies(plan)

    def space(self, names: Sequence[str]) -> dict[str, Any]:
        """Return Ray Tune's search space: a grid over the names of settings, in their order."""
        from ray import tune

        return {"setting": tune.grid_search(list(names))}


def sweep(entry: Sweep) -> Sweep:
    """File a sweep under its name."""
    return SWEEPS.register(entry.name)(entry)


def fixed(settings: Settings) -> Callable[[Mapping[str, Any]], Settings]:
    """Return what varies when that does not depend on the plan."""
    return lambda plan: settings
