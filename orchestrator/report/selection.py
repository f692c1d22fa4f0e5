"""A setting that was chosen without asking a target: its rows in result.json, its sentences and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from audits.errors import how_many
from orchestrator.judgement.estimate import Estimate
from orchestrator.report.grid import Entry, Grid, bold, grid, left
from orchestrator.report.numbers import entry, estimate, number, percent, small_p
from orchestrator.report.rows import read_row
from orchestrator.report.sentence import Sentence


@dataclass(frozen=True, kw_only=True)
class ScoredSetting:
    """A setting that could be chosen: its score over units, or why it was ``refused`` one."""

    setting: str
    overrides: Mapping[str, Any]
    score: Estimate
    refused: str = ""


@dataclass(frozen=True, kw_only=True)
class JudgedSetting:
    """A setting with which the targets were audited: its score at selection beside that on targets.

    ``optimism``: the first minus the second.
    """

    setting: str
    at_selection: Estimate
    on_targets: Estimate
    optimism: float | None


@dataclass(frozen=True, kw_only=True)
class Gain:
    """The chosen setting minus the plan's own: at selection, paired over units, and on the targets, paired."""

    at_selection: Estimate
    on_targets: Estimate
    on_targets_p: float | None


@dataclass(frozen=True, kw_only=True)
class SelectionRow:
    """What was chosen by which ``metric``: ``winner`` and the plan's ``own`` setting, and what became of them.

    ``units``: over which scores at selection are means, such as shadow sets; ``players``: what was in the place of
    targets there; ``apart``: why its scores differ from those of targets without a choice; ``over``: what values on
    targets are of, ``targets`` in number; ``file``: of the sweep beside the result.
    """

    sweep: str
    metric: str
    mode: str
    unit: str
    units: int
    targets: int
    level: float
    own: str
    winner: str
    settings: tuple[ScoredSetting, ...]
    judged: tuple[JudgedSetting, ...]
    gain: Gain | None
    file: str = ""
    players: str = "shadows that play the target"
    apart: str = "a shadow in the place of a target is judged by fewer others"
    over: str = "target"

    @property
    def title(self) -> str:
        """The heading of its part of a page."""
        return "Setting chosen without asking a target"

    @property
    def wanted(self) -> str:
        """What must be said of a choice by the lowest score, nothing of one by the highest."""
        return "" if self.mode == "max" else "Lower was wanted: a gain is below zero. "


def sentences(found: SelectionRow) -> list[Sentence]:
    """Return what was chosen, what it gained over the plan as it is, and how much of its score was optimism."""
    chosen, own = found.judged[0], found.judged[-1]
    level = percent(found.level, 0)
    many = sum(each.score.known for each in found.settings)
    name = found.winner if found.gain else f"the plan’s own setting ({found.own})"
    what = (
        f"{name}, of {how_many(many, 'setting')} of {found.sweep} and the plan, by {found.metric} of {found.players}: "
        f"{estimate(chosen.at_selection)} over {found.units} {found.unit}s. "
        f"{found.wanted}It was fixed before any target was queried."
    )
    told = [Sentence("plain", "Chosen", what)]
    if found.gain is None:
        text = f"No setting beat the plan’s own at selection, which reaches {estimate(own.on_targets)} on the targets."
        return [*told, Sentence("plain", "No gain", text)]
    gained = found.gain
    beside = "" if gained.on_targets_p is None else f", p {small_p(gained.on_targets_p)}"
    by = f"{estimate(gained.on_targets, signed=True)} [{level}, paired over {found.targets} {found.over}s{beside}]"
    areas = f"{estimate(chosen.on_targets)} instead of {estimate(own.on_targets)} with the plan as it is"
    best = 1 if found.mode == "max" else -1
    if gained.on_targets.side == best:
        gain = Sentence("good", "A gain on the targets", f"{by}: {areas}.")
    elif gained.on_targets.side == -best:
        gain = Sentence("bad", "A loss on the targets", f"{by}: {areas}.")
    else:
        gain = Sentence("plain", "No gain is shown", f"{by}: {areas}.")
    below = (
        "" if found.mode == "max" else " Lower was wanted, so scores at selection below those on targets are too good."
    )
    optimism = (
        f"At selection the gain was {estimate(gained.at_selection, signed=True)}, on the targets "
        f"{number(gained.on_targets.value, signed=True)}. Scores at selection differ from those on targets even "
        f"without a choice, as the plan’s own setting shows: {found.apart}.{below}"
    )
    return [*told, gain, Sentence("plain", "Optimism", optimism)]


def judged_grid(found: SelectionRow) -> Grid:
    """Return the score at selection beside that on the targets, of the chosen setting and of the plan's own."""
    level = f"[{percent(found.level, 0)}]"
    names = {found.winner: "chosen", found.own: "the plan’s own"} | (
        {found.own: "chosen, the plan’s own"} if found.own == found.winner else {}
    )
    body = [
        [
            each.setting,
            names[each.setting],
            entry(each.at_selection),
            entry(each.on_targets),
            number(each.optimism, signed=True),
        ]
        for each in found.judged
    ]
    if found.gain is not None:
        gain = found.gain
        rest = None
        if gain.at_selection.value is not None and gain.on_targets.value is not None:
            rest = gain.at_selection.value - gain.on_targets.value
        differences = entry(gain.at_selection, signed=True), entry(gain.on_targets, signed=True)
        body.append(["difference", "paired", *differences, number(rest, signed=True)])
    optimism, wanted = ("optimism", "") if found.mode == "max" else ("selection\n− targets", ", lower wanted")
    columns = [left("setting"), left(""), f"at selection\n{level}", f"on the targets\n{level}", optimism]
    return grid("selection", f"{found.title}: {found.metric}{wanted}", columns, body)


def settings_grid(found: SelectionRow) -> Grid:
    """Return the scores of all settings at selection, best first; the chosen one is bold."""
    best = -1 if found.mode == "max" else 1
    ordered = sorted(found.settings, key=lambda each: (not each.score.known, best * (each.score.value or 0.0)))
    body = [
        [
            Entry(each.setting, tone=bold(each.setting == found.winner)),
            entry(each.score) if each.score.known else Entry("–", each.refused),
            ", ".join(f"{path.removeprefix('audit.search.')} = {value}" for path, value in each.overrides.items()),
        ]
        for each in ordered
    ]
    title = f"Scores at selection, over {found.units} {found.unit}s [{percent(found.level, 0)}]"
    return grid("selection-settings", title, [left("setting"), found.metric, left("changes", wrap=True)], body)


def grids(found: SelectionRow | None) -> list[Grid]:
    """Return the tables of a choice, none for a run without one."""
    return [] if found is None else [judged_grid(found), settings_grid(found)]


def lines(found: SelectionRow | None) -> list[str]:
    """Return the sentences of a choice for a terminal, none for a run without one."""
    return [] if found is None else [f"{each.head}: {each.text}" for each in sentences(found)]


def chosen_of(document: Mapping[str, Any]) -> SelectionRow | None:
    """Return what the content of result.json says of a choice, None for a run without one."""
    told = document.get("selection")
    return read_row(SelectionRow, told, "selection") if told else None
