"""What is compared: finished runs, or settings of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from audits.errors import BadInput, did_you_mean
from audits.statistics.judged import Judged
from orchestrator.report.result import read_result
from orchestrator.scored.files import read_parquet
from orchestrator.scored.layouts.own import KIND as SCORED
from orchestrator.scored.layouts.own import judged_of

BROKEN = ("void", "null_fpr_off", "fpr_off")
"""Fields of a line of a result that say so."""


@dataclass(frozen=True)
class Side:
    """A run, or one setting of it, by its label: what its attacks said, setting by setting.

    ``asked``: what must be equal for two sides to ask one question; ``data``: what must be equal for points of one id
    to be one point. ``void``: setting and attack of lines that broke a promised rate, so that no hit rate of theirs may
    be quoted.
    """

    label: str
    folder: Path
    setting: str | None
    kind: str
    seed: int
    asked: tuple[Any, ...]
    data: Any
    judged: tuple[Judged, ...] = field(repr=False)
    void: frozenset[tuple[str, str]] = frozenset()

    @property
    def settings(self) -> list[str]:
        """The settings of which there are scores."""
        return list(dict.fromkeys(each.setting for each in self.judged))


def read_side(folder: Path) -> Side:
    """Return the finished run in a folder; raises BadInput for one that is not finished or of which no scores tell."""
    document = read_result(folder)
    if document.get("aggregate_only"):
        raise BadInput(
            f"{folder} cannot be compared: it was run with --aggregate-only and kept no scores; run it again without "
            "this option, into another --out"
        )
    kind, plan = str(document["kind"]), document["plan"]
    judged = tuple(judged_of(read_parquet(folder / "scores.parquet"), kind))
    if not judged:
        raise BadInput(f"{folder} has no attack that can be compared")
    modes = {entry["setting"]: entry["mode"] for entry in document["settings"] if "mode" in entry}
    return Side(
        folder.name, folder, None, kind, int(document["seed"]), (kind, modes), data_of(kind, plan), judged,
        void_of(document),
    )  # fmt: skip


def void_of(document: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Return setting and attack, as scores name it, of every line of a result that broke a promised rate."""
    return frozenset(
        (row["setting"], ".".join(filter(None, (row.get("unlearner"), row["attack"]))))
        for row in document["table"]
        if any(row.get(name) for name in BROKEN)
    )


def data_of(kind: str, plan: dict[str, Any]) -> Any:
    """Return what decides which point an id is: the data of a plan; of scores from elsewhere their names alone."""
    return SCORED if kind == SCORED else {name: plan["data"].get(name) for name in ("name", "root")}


def sides_of(folders: Sequence[Path], settings: Sequence[str]) -> list[Side]:
    """Return the sides of a comparison; raises BadInput for fewer than two, twice the same, and other questions."""
    if settings:
        return _settings_of(folders, settings)
    if len(folders) < 2:
        raise BadInput("give two runs or more, or one with --setting A --setting B")
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise BadInput("a run is given twice; give each once")
    found = [read_side(folder) for folder in folders]
    for side in found[1:]:
        if side.kind != found[0].kind:
            raise BadInput(
                f"{found[0].folder} is of kind {found[0].kind}, {side.folder} of kind {side.kind}: they ask different "
                "questions; compare runs of one kind"
            )
        one, other = found[0].asked[1], side.asked[1]
        if unlike := [name for name in one if name in other and one[name] != other[name]]:
            raise BadInput(
                f"setting {unlike[0]!r} is of mode {one[unlike[0]]} in {found[0].folder} and of mode "
                f"{other[unlike[0]]} in {side.folder}: they ask different questions"
            )
    labels = [side.label for side in found]
    if len(set(labels)) < len(labels):
        found = [replace(side, label=str(side.folder)) for side in found]
    return found


def _settings_of(folders: Sequence[Path], settings: Sequence[str]) -> list[Side]:
    """Return settings of one run as sides, their own setting left blank."""
    if len(folders) != 1 or len(settings) < 2 or len(set(settings)) < len(settings):
        raise BadInput("--setting compares settings of one run: give one RUN and two settings or more, each once")
    side = read_side(folders[0])
    for name in settings:
        if name not in side.settings:
            raise BadInput(
                f"--setting {name!r}{did_you_mean(name, side.settings)}: {folders[0]} has {', '.join(side.settings)}"
            )
    return [
        replace(
            side,
            label=name,
            setting=name,
            judged=tuple(replace(each, setting="") for each in side.judged if each.setting == name),
            void=frozenset(("", attack) for setting, attack in side.void if setting == name),
        )
        for name in settings
    ]


def matched(first: Side, second: Side) -> list[tuple[Judged, Judged]]:
    """Return the attacks that both sides have, setting by setting; single settings match whatever they are called.

    Raises BadInput where no setting, or no attack, is in both.
    """
    one, other = first.settings, second.settings
    if len(one) == len(other) == 1:
        by_attack = {each.attack: each for each in second.judged}
        found = [(each, by_attack[each.attack]) for each in first.judged if each.attack in by_attack]
    else:
        if not set(one) & set(other):
            raise BadInput(
                f"{first.label} and {second.label} have no setting in common: {', '.join(one)}; {', '.join(other)}"
            )
        by_place = {each.place: each for each in second.judged}
        found = [(each, by_place[each.place]) for each in first.judged if each.place in by_place]
    if not found:
        attacks = [", ".join(dict.fromkeys(each.attack for each in side.judged)) for side in (first, second)]
        raise BadInput(f"{first.label} and {second.label} have no attack in common: {attacks[0]}; {attacks[1]}")
    return found


def only_in_one(first: Side, second: Side, found: Sequence[tuple[Judged, Judged]]) -> list[str]:
    """Return a note for each side of which attacks are left out."""
    notes = []
    for side, place in ((first, 0), (second, 1)):
        used = {pair[place].place for pair in found}
        if left := [each for each in side.judged if each.place not in used]:
            shown = ", ".join("/".join(filter(None, each.place)) for each in left[:6])
            notes.append(f"only in {side.label}: {shown}{f' and {len(left) - 6} more' if len(left) > 6 else ''}")
    return notes
