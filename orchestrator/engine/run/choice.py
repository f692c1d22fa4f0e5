"""A choice among settings by scores for which no target was asked, and what became of it on the targets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Literal

from audits.errors import BadInput, closest_first, did_you_mean
from audits.statistics.intervals import ibragimov_mueller_t
from audits.statistics.summary import paired_difference
from orchestrator.engine.cost.bill import Rehearsal
from orchestrator.engine.kind import Kind, Selection, load
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.distinct import distinct
from orchestrator.engine.plan.wording import first_of
from orchestrator.engine.run.output_folder import SWEEP_FILE
from tune_spaces.registry import Settings, Sweep

Mode = Literal["max", "min"]
OWN = "plan"
"""Name of the plan's own setting, where the sweep has none."""


@dataclass(frozen=True)
class Choice:
    """What is chosen by: ``settings`` of ``sweep`` by name, the plan's ``own`` among them, and ``metric``.

    ``refused``: setting → why it gets no score; ``file``: where the sweep is kept beside the result, if it has a file;
    ``same``: setting of the sweep that is none of ``settings`` → the one that it is equal to in all fields.
    """

    sweep: str
    metric: str
    mode: Mode
    own: str
    settings: Settings
    refused: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    same: Mapping[str, str] = field(default_factory=dict)

    @property
    def scored(self) -> Settings:
        """The settings that get a score."""
        return {name: changes for name, changes in self.settings.items() if name not in self.refused}

    def without(self, names: Sequence[str], why: str) -> Choice:
        """Return the choice with settings of these ``names`` refused as well; BadInput where the plan's own is."""
        refused = {**self.refused, **dict.fromkeys(names, why)}
        if self.own in refused:
            raise BadInput(f"the plan's own setting gets no score: {refused[self.own]}")
        return replace(self, refused=refused)

    def rehearsal(self, kind: Kind) -> Rehearsal:
        """Return what is priced of the choice."""
        selection = selection_of(kind)
        return Rehearsal(
            self.sweep, self.scored, self.own, rehearsing(kind),
            lambda plan: selection.rehearsed(plan, self.metric),
            lambda design: selection.jobs(design, self.metric),
        )  # fmt: skip

    def winner(self, values: Mapping[str, Sequence[float]]) -> str:
        """Return the setting with the best mean of ``values``; the plan's own wins ties, then the first."""
        sign = 1 if self.mode == "max" else -1
        means = {name: sign * fmean(each) for name, each in values.items()}
        best = max(means.values())
        return self.own if means.get(self.own) == best else next(name for name in means if means[name] == best)


def choice_of(kind: Kind, sweep: Sweep, plan: BasePlan, metric: str | None, mode: Mode) -> Choice:
    """Return the choice that ``orch tune`` is asked for; raises BadInput where there is none."""
    selection = selection_of(kind)
    if sweep.search is not None and sweep.search.adaptive:
        raise BadInput(
            f"sweep {sweep.name} chooses settings by what targets answered while it goes on (optuna, asha); tune with "
            "search: grid or random, and scheduler: none"
        )
    if sweep.measures != "attacks" or sweep.pooled:
        raise BadInput(f"sweep {sweep.name} compares no settings of an attack: nothing in it can be tuned")
    check_metric(selection, plan, metric)
    assert metric is not None
    settings, same = distinct(sweep.settings(plan.resolved()), plan)
    for name, changes in settings.items():
        for path in changes:
            if not is_in(path, selection.fields):
                raise BadInput(
                    f"setting {name} of {sweep.name} changes {path}, which no attack may choose: what is in the place "
                    f"of targets would change with it; allowed: {', '.join(selection.fields)}, and what is in them"
                )
            if mode == "min" and not is_in(path, selection.defended):
                raise BadInput(
                    f"setting {name} of {sweep.name} changes {path}: --mode min would choose the attack that finds "
                    f"least; only what a defender decides may vary with it ({kind.name}: "
                    f"{', '.join(selection.defended) or 'nothing'}); leave out --mode min"
                    f"{', or vary that' if selection.defended else ''}"
                )
    plans = {name: plan.changed(changes) if changes else plan for name, changes in settings.items()}
    own = next((name for name, each in plans.items() if each == plan), "")
    if not own:
        own = OWN if OWN not in settings else f"{OWN} as it is"
        settings, plans = {own: {}, **settings}, {own: plan, **plans}
    found = Choice(sweep.name, metric, mode, own, settings, file=SWEEP_FILE if sweep.text else "", same=same)
    for name, each in plans.items():
        if why := selection.unscored(each, metric):
            found = found.without([name], why)
    return found


def check_metric(selection: Selection, plan: BasePlan, metric: str | None) -> None:
    """Raise BadInput for a number by which no setting of ``plan`` can be chosen; those are named by which one can."""
    known = selection.metrics(plan)
    refused = {name: reason for name in known if (reason := selection.refusal(plan, name))}
    allowed = [name for name in known if name not in refused]
    if metric is not None and metric in allowed:
        return
    if metric in refused:
        told = f"--metric {metric}: {refused[metric]}"
    elif not allowed and refused:
        told = f"nothing can be chosen: {next(iter(refused.values()))}"
    else:
        told = "no --metric is given" if metric is None else f"--metric is {metric!r}{did_you_mean(metric, allowed)}"
    raise BadInput(told + (f"; allowed: {first_of(closest_first(metric, allowed))}" if allowed else ""))


def is_in(path: str, fields: Sequence[str]) -> bool:
    """Return whether a dotted path is one of ``fields``, or in one."""
    return any(path == each or path.startswith(f"{each}.") for each in fields)


def selection_of(kind: Kind) -> Selection:
    """Return how ``kind`` chooses; raises BadInput where it does not."""
    if kind.selection is None:
        raise BadInput(
            f"audits of kind {kind.name} cannot be tuned: no model of theirs plays the target; use orch sweep"
        )
    return kind.selection


def rehearsing(kind: Kind) -> Kind:
    """Return the kind that lays out the rehearsals of ``kind``."""
    place = selection_of(kind).kind
    if not place:
        return kind
    found: Kind = load(place)
    return found


def choice_entry(
    choice: Choice,
    selection: Selection,
    values: Mapping[str, Sequence[float]],
    on_targets: Mapping[str, Mapping[int, float]],
    level: float,
) -> dict[str, Any]:
    """Return what result.json says of a choice: ``values`` by setting and unit, ``on_targets`` by setting and target.

    Intervals are t intervals over units at selection and over targets afterwards; differences are paired.
    """
    winner, within = choice.winner(values), selection.within(choice.metric)
    judged = []
    for name in dict.fromkeys([winner, choice.own]):
        found = list(on_targets[name].values())
        optimism = fmean(values[name]) - fmean(found) if found else None
        judged.append(
            {
                "setting": name,
                **estimate("at_selection", values[name], level, within),
                **estimate("on_targets", found, level, within),
                "optimism": optimism,
            }
        )
    return {
        "sweep": choice.sweep,
        "file": choice.file,
        "metric": choice.metric,
        "mode": choice.mode,
        "unit": selection.unit,
        "players": selection.players,
        "apart": selection.apart,
        "over": selection.over,
        "units": len(values[winner]),
        "targets": len(on_targets[winner]),
        "level": level,
        "own": choice.own,
        "winner": winner,
        "settings": [
            {
                "setting": name,
                "overrides": dict(changes),
                **estimate("score", values.get(name, ()), level, within),
                "refused": choice.refused.get(name, ""),
            }
            for name, changes in choice.settings.items()
        ],
        "judged": judged,
        "gain": None if winner == choice.own else gain(winner, choice.own, values, on_targets, level),
    }


def gain(
    winner: str,
    own: str,
    values: Mapping[str, Sequence[float]],
    on_targets: Mapping[str, Mapping[int, float]],
    level: float,
) -> dict[str, Any]:
    """Return by how much ``winner`` is above ``own``: at selection over units, and on targets, each paired."""
    before = dict(enumerate(values[winner])), dict(enumerate(values[own]))
    found: dict[str, Any] = {"on_targets_p": None}
    for name, (a, b) in {"at_selection": before, "on_targets": (on_targets[winner], on_targets[own])}.items():
        found |= estimate(name, [a[each] - b[each] for each in a if each in b], level)
    if len(on_targets[winner]) > 1 and on_targets[winner].keys() == on_targets[own].keys():
        found["on_targets_p"] = paired_difference(on_targets[winner], on_targets[own], level).p
    return found


def estimate(
    name: str, values: Sequence[float], level: float, within: tuple[float, float] = (-math.inf, math.inf)
) -> dict[str, float | None]:
    """Return mean and t interval of ``values`` as result.json has them, ends ``within`` a range; None of too few."""
    found: dict[str, float | None] = {
        name: fmean(values) if values else None,
        f"{name}_low": None,
        f"{name}_high": None,
    }
    if len(values) > 1:
        low, high = ibragimov_mueller_t(values, level)
        found |= {f"{name}_low": max(within[0], low), f"{name}_high": min(within[1], high)}
    return found
