"""What a sweep found, setting by setting: AUC with intervals, paired differences, found points, utility."""

from __future__ import annotations

from dataclasses import dataclass

from audits.evaluation.discoveries import judge
from audits.evaluation.summary import Cell, Difference, cells, paired_difference, per_target_auc
from orchestrator.report.glossary import words
from orchestrator.report.markdown_table import auc_cell, span
from orchestrator.report.reading import Row, Run
from orchestrator.report.sweeps import swept_attacks
from orchestrator.report.tables import short

CONTROL = "random_directions"
POOLED = "pooled"
Place = tuple[str, str, str]
"""Setting, unlearner, attack."""


@dataclass(frozen=True)
class Grid:
    """A table: ``title`` says what its cells are; ``head`` names the columns, ``rows`` hold words."""

    title: str
    head: list[str]
    rows: list[list[str]]


def grids(run: Run) -> list[Grid]:
    """Return the tables of a sweep whose settings differ in more than their seeds; none for other runs."""
    settings = [entry["setting"] for entry in run.result["settings"]]
    if len(settings) < 2 or settings[0] == POOLED:
        return []
    rows = {place(row): row for row in run.result["table"] if row["promised_fpr"] == run.fpr}
    unlearners = list(dict.fromkeys(name for _, name, _ in rows))
    attacks = swept_attacks(run)
    found = []
    for attack in attacks:
        body = {
            (setting, name): auc_cell(rows[setting, name, attack])
            for setting in settings
            for name in unlearners
            if (setting, name, attack) in rows
        }
        title = f"AUC of {words(attack)} by setting [95 %], * where above chance after Holm within the setting"
        found.append(crossed(title, settings, unlearners, body))
    if attacks:
        found += difference_grids(run, settings, unlearners, judge(attacks))
    return [*found, *utility_by_setting(run, settings, unlearners)]


def difference_grids(run: Run, settings: list[str], unlearners: list[str], attack: str) -> list[Grid]:
    """Return what each setting adds to the main one, and the attack to random directions, paired over targets."""
    areas = {(cell.setting, cell.unlearner, cell.attack): per_target_auc(cell) for cell in judged(run, attack)}
    changes, gains = {}, {}
    for setting in settings:
        for name in unlearners:
            own = areas.get((setting, name, attack))
            base = areas.get((run.main_setting, name, attack))
            control = areas.get((setting, name, CONTROL))
            if own and base and own.keys() == base.keys() and len(own) > 1 and setting != run.main_setting:
                changes[setting, name] = signed(paired_difference(own, base, run.level))
            if own and control and len(own) > 1:
                gains[setting, name] = signed(paired_difference(own, control, run.level))
    found = []
    if changes:
        others = [setting for setting in settings if setting != run.main_setting]
        title = f"AUC of {words(attack)} minus that at {run.main_setting}, paired over targets [95 %]"
        found.append(crossed(title, others, unlearners, changes))
    if gains and attack != CONTROL:
        title = f"AUC of {words(attack)} minus that of {words(CONTROL)}, paired over targets [95 %]"
        found.append(crossed(title, settings, unlearners, gains))
    return found


def found_points(run: Run) -> list[Grid]:
    """Return the single points found under false discovery rate control; rows without a find are left out."""
    rows = [row for row in run.result.get("discoveries") or [] if row["discoveries"]]
    if not rows:
        return []
    head = ["setting", "unlearner", "attack", "promised FDR", "points found", "found FDP [95 %]", "power [95 %]"]
    body = [
        [
            row["setting"],
            words(row["unlearner"]),
            words(row["attack"]),
            f"{row['claimed_fdr']:g}",
            str(row["discoveries"]),
            span(row, "fdp"),
            span(row, "power"),
        ]
        for row in rows
    ]
    return [Grid("Single points found at a promised false discovery rate", head, body)]


def utility_by_setting(run: Run, settings: list[str], unlearners: list[str]) -> list[Grid]:
    """Return retain / forget / test accuracy by setting, where settings differ in their models."""
    body = {
        (row["setting"], row["unlearner"]): " / ".join(
            short(row[f"{part}_accuracy"]) for part in ("retain", "forget", "test")
        )
        for row in run.result.get("setting_utility") or []
        if "retain_accuracy" in row
    }
    title = "Accuracy on retain / forget / test set, means over targets"
    return [crossed(title, settings, unlearners, body)] if body else []


def judged(run: Run, attack: str) -> list[Cell]:
    """Return the cells of all settings of ``attack`` and of its control."""
    chosen = (run.scores["attack"] == attack) | (run.scores["attack"] == CONTROL)
    return list(cells({name: column[chosen] for name, column in run.scores.items()}))


def crossed(title: str, settings: list[str], unlearners: list[str], body: dict[tuple[str, str], str]) -> Grid:
    """Return a table of settings × unlearners; a dash where a setting lacks one."""
    shown = [name for name in unlearners if any(name == column for _, column in body)]
    lines = [[setting, *(body.get((setting, name), "–") for name in shown)] for setting in settings]
    return Grid(title, ["setting", *(words(name) for name in shown)], lines)


def place(row: Row) -> Place:
    """Return where a row of the result's table belongs."""
    return row["setting"], row["unlearner"], row["attack"]


def signed(found: Difference) -> str:
    """Return ``+.012 [-.003, +.027]``."""
    mean, low, high = (f"{value:+.3f}".replace("0.", ".") for value in (found.mean, found.low, found.high))
    return f"{mean} [{low}, {high}]"
