"""Small choices among settings, of the kinds that rehearse on points of their own, and runs of them for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from orchestrator.engine.data import data_of
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.choice import Choice, choice_of, rehearsing, selection_of
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import claim_folder
from orchestrator.engine.run.selecting import Selecting
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named
from tests.cases.runs import UnshownRun
from tests.cases.smallest_plans import smallest_plan
from tune_spaces.registry import Settings, Sweep, fixed

MADE = ("train", "look", "defend", "select", "query", "ask", "walk", "invert", "match", "score")
METRIC = {
    "tmia": "selected.tmia_distance.auc",
    "mia": "lira.auc",
    "gnq": "defended.lira.adaptive.auc",
}
FEW: dict[str, dict[str, Any]] = {
    "tmia": {"audit.attacks": ["tmia_distance", "label_gap"], "audit.alpha.quantile": 0.5},
    "mia": {"audit.attacks": ["lira", "loss"]},
    "gnq": {
        "audit.attacks": ["loss", "lira"],
        "audit.inversion": None,
        "audit.gradient_inversion": None,
        "defences": [{"method": "remove", "ranking": "gnq_log", "share": 0.2}],
    },
}
SETTINGS: dict[str, Settings] = {
    "tmia": {
        "kmeans": {"audit.selectors": ["kmeans"], "audit.alpha.quantile": 0.5},
        "nobody": {"audit.selectors": ["none"]},
        "more": {"split.reference_models": 14},
    },
    "mia": {"six": {"split.shadows": 6}, "brief": {"shadow_recipe": {"epochs": 1}}},
    "gnq": {
        "random": {"defences": [{"method": "remove", "ranking": "random", "share": 0.2}]},
        "ridge": {"audit.ridge": 0.1},
    },
}


def small_choice(kind: str, store: Path, **more: Any) -> tuple[BasePlan, Choice]:
    """Return the smallest plan of a kind and a choice among three or four settings of it."""
    plan = smallest_plan(kind, store, **FEW[kind], **more)
    sweep = Sweep("some", "", f"{kind}-smoke", fixed(SETTINGS[kind]), "", "")
    return plan, choice_of(kind_named(kind), sweep, plan, METRIC[kind], "max")


S = TypeVar("S", bound=Selecting)


class Watched(UnshownRun, Selecting):
    """A run that notes which artefacts there are when the choice has been made and the targets come next."""

    def laid_out(self, changes: Any) -> list[Setting]:
        self.before = made(self.store)
        return super().laid_out(changes)


def made(store: Store) -> dict[tuple[str, str], tuple[str, float]]:
    """Return when each artefact of a store was made, and in how many seconds."""
    found = [(stage, key, store.get(stage, key)) for stage in MADE for key in store.keys(stage)]
    return {(stage, key): (each.created, each.seconds) for stage, key, each in found}


def tuning(plan: BasePlan, out: Path) -> Watched:
    """Return a run that chooses; it draws no page and logs nothing."""
    return begun(Watched, plan, out)


def begun(of: type[S], plan: BasePlan, out: Path) -> S:
    """Return a run that chooses, which leaves its files in ``out``, whatever is there."""
    terminal = Terminal(claim_folder(out, plan, force=True))
    return of(kind_named(plan.kind), plan, out, terminal, name="tune-some", rebuild=False)


def rehearsal_of(plan: BasePlan, metric: str) -> Any:
    """Return the design of the rehearsal of a plan."""
    kind, data = kind_named(plan.kind), data_of(plan.data.name, plan.data.root, plan.data.groups)
    store = Store(str(plan.compute.store)) if plan.compute.store else None
    return rehearsing(kind).lay_out(selection_of(kind).rehearsed(plan, metric), data, "cpu", store)
