"""What a sweep found, setting by setting, as Markdown: AUC with intervals, paired differences, utility."""

from __future__ import annotations

from audits.evaluation.discoveries import judge
from audits.evaluation.summary import Cell, Difference, cells, paired_difference, per_target_auc
from orchestrator.report.glossary import words
from orchestrator.report.markdown_table import auc_cell, table
from orchestrator.report.reading import Row, Run
from orchestrator.report.sweeps import swept_attacks
from orchestrator.report.tables import short

CONTROL = "random_directions"
Place = tuple[str, str, str]
"""Setting, unlearner, attack."""


def setting_tables(run: Run) -> list[str]:
    """Return the tables of a sweep whose settings differ in more than their seeds; none for other runs."""
    settings = [entry["setting"] for entry in run.result["settings"]]
    if len(settings) < 2 or settings[0] == "pooled":
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
        head = f"**AUC of {words(attack)} by setting [95 %]**, * where above chance after Holm within the setting"
        found.append(f"{head}\n\n{grid(settings, unlearners, body)}")
    if attacks:
        found += difference_tables(run, settings, unlearners, judge(attacks))
    return [*found, *utility_by_setting(run, settings, unlearners)]


def difference_tables(run: Run, settings: list[str], unlearners: list[str], attack: str) -> list[str]:
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
        head = f"**AUC of {words(attack)} minus that at {run.main_setting}, paired over targets [95 %]**"
        found.append(f"{head}\n\n{grid(others, unlearners, changes)}")
    if gains and attack != CONTROL:
        head = f"**AUC of {words(attack)} minus that of {words(CONTROL)}, paired over targets [95 %]**"
        found.append(f"{head}\n\n{grid(settings, unlearners, gains)}")
    return found


def utility_by_setting(run: Run, settings: list[str], unlearners: list[str]) -> list[str]:
    """Return retain / forget / test accuracy by setting, where settings differ in their models."""
    body = {
        (row["setting"], row["unlearner"]): " / ".join(
            short(row[f"{part}_accuracy"]) for part in ("retain", "forget", "test")
        )
        for row in run.result.get("setting_utility") or []
    }
    if not body:
        return []
    return [f"**Accuracy on retain / forget / test set, means over targets**\n\n{grid(settings, unlearners, body)}"]


def judged(run: Run, attack: str) -> list[Cell]:
    """Return the cells of all settings of ``attack`` and of its control."""
    chosen = (run.scores["attack"] == attack) | (run.scores["attack"] == CONTROL)
    return list(cells({name: column[chosen] for name, column in run.scores.items()}))


def grid(settings: list[str], unlearners: list[str], body: dict[tuple[str, str], str]) -> str:
    """Return a table of settings × unlearners; a dash where a setting lacks one."""
    shown = [name for name in unlearners if any(name == column for _, column in body)]
    lines = [[setting, *(body.get((setting, name), "–") for name in shown)] for setting in settings]
    return table(["setting", *(words(name) for name in shown)], lines)


def place(row: Row) -> Place:
    """Return where a row of the result's table belongs."""
    return row["setting"], row["unlearner"], row["attack"]


def signed(found: Difference) -> str:
    """Return ``+.012 [-.003, +.027]``."""
    mean, low, high = (f"{value:+.3f}".replace("0.", ".") for value in (found.mean, found.low, found.high))
    return f"{mean} [{low}, {high}]"
