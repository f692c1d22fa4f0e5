"""Tables of a sweep, setting by setting: AUC with intervals, paired differences, single points, utility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from audits.statistics.discoveries import judge_among
from audits.statistics.summary import Cell, Difference, cells, paired_difference, per_target_auc
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.page.sweeps import swept_attacks
from orchestrator.apollo.result.rows import AttackRow
from orchestrator.apollo.result.words import words
from orchestrator.apollo.score_table import POOLED
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.wording import DASH
from orchestrator.report.best import BEST, best_lines
from orchestrator.report.chance import starred
from orchestrator.report.grid import Column, Entry, Grid, grid, left
from orchestrator.report.numbers import entry, number, percent, small_p

CONTROL = "random_directions"
Place = tuple[str, str, str]
"""Setting, unlearner, attack."""


def setting_grids(run: ApolloRun) -> list[Grid]:
    """Return the tables of a sweep whose settings differ in more than their seeds; none for other runs."""
    if len(run.settings) < 2 or run.settings[0] == POOLED:
        return []
    attacks = swept_attacks(run)
    found = [area_grid(run, attack) for attack in attacks]
    if attacks:
        found += difference_grids(run, judge_among(attacks))
    return [*found, *utility_by_setting(run)]


def area_grid(run: ApolloRun, attack: str) -> Grid:
    """Return the AUC of an attack by setting × unlearner; the best setting of each unlearner is marked."""
    best = [row for row in run.result.best if row.attack == attack]
    marked = {row.place for row in best}
    body = {
        (setting, row.unlearner): area_entry(row, best=(setting, row.unlearner, attack) in marked)
        for setting in run.settings
        for row in run.rows(setting)
        if row.attack == attack
    }
    title = f"AUC of {words(attack)} by setting, * where beyond chance by p (Holm, within the setting) and interval"
    found = crossed(run, f"auc-by-setting-{attack}", title, run.settings, body, intervals=True)
    return replace(
        found, notes=best_lines(best, lambda row: words(str(row.unlearner)), run.result.level, "orch tune apollo")
    )


def area_entry(row: AttackRow, *, best: bool = False) -> Entry:
    """Return the AUC of a row, marked where it is above chance, and where it is the ``best`` of all settings."""
    found = starred(row)
    return replace(found, mark=found.mark + BEST) if best else found


def difference_grids(run: ApolloRun, attack: str) -> list[Grid]:
    """Return what each setting adds to the main one, and the attack to random directions, paired over targets."""
    areas = {
        (cell.setting, cell.unlearner, cell.attack): per_target_auc(cell) for cell in cells_by_setting(run, attack)
    }
    changes, gains = {}, {}
    for setting in run.settings:
        for name in unlearners_of(run):
            own = areas.get((setting, name, attack))
            base = areas.get((run.main_setting, name, attack))
            control = areas.get((setting, name, CONTROL))
            if own and base and own.keys() == base.keys() and len(own) > 1 and setting != run.main_setting:
                changes[setting, name] = difference_entry(paired_difference(own, base, run.result.level))
            if own and control and len(own) > 1:
                gains[setting, name] = difference_entry(paired_difference(own, control, run.result.level))
    found = []
    if changes:
        others = [setting for setting in run.settings if setting != run.main_setting]
        title = f"AUC of {words(attack)} minus that at {run.main_setting}, paired over targets"
        found.append(crossed(run, "auc-minus-main-setting", title, others, changes, intervals=True))
    if gains and attack != CONTROL:
        title = f"AUC of {words(attack)} minus that of {words(CONTROL)}, paired over targets"
        found.append(crossed(run, "auc-minus-control", title, run.settings, gains, intervals=True))
    return found


def utility_by_setting(run: ApolloRun) -> list[Grid]:
    """Return retain / forget / test accuracy by setting, where settings differ in their models."""
    body = {
        (row.setting, row.unlearner): Entry(
            " / ".join(map(number, (row.retain_accuracy, row.forget_accuracy, row.test_accuracy)))
        )
        for row in run.result.setting_utility
        if row.retain_accuracy is not None
    }
    title = "Accuracy on retain / forget / test set, means over targets"
    return [crossed(run, "utility-by-setting", title, run.settings, body)] if body else []


def overview_grid(run: ApolloRun) -> Grid | None:
    """Return setting × unlearner: AUC of Apollo and of U-LiRA, the least p of retrain after Holm; None for an audit."""
    settings = list(dict.fromkeys(row.setting for row in run.result.table))
    if len(settings) < 2:
        return None
    rows = {(row.setting, row.unlearner, row.attack): row for row in run.result.table}
    names = unlearners_of(run)
    body = []
    for setting in settings:
        pairs = [[rows.get((setting, name, attack)) for attack in ("apollo", "u_lira")] for name in names]
        own = [row for row in run.result.table if row.setting == setting]
        retrain = [row.control_p_holm for row in own if row.control_p_holm is not None]
        shown = [" / ".join(number(row.auc.value) if row else DASH for row in pair) for pair in pairs]
        body.append([setting, *shown, small_p(min(retrain)) if retrain else DASH])
    by_method = [f"{run.called(name)}:\nApollo / U-LiRA" for name in names]
    columns = [left("setting"), *by_method, "least p of\nretrain (Holm)"]
    return grid("settings", "AUC by setting", columns, body)


def cells_by_setting(run: ApolloRun, attack: str) -> list[Cell]:
    """Return the cells of all settings of ``attack`` and of its control; none where the run kept no scores."""
    if not run.scores:
        return []
    chosen = (run.scores["attack"] == attack) | (run.scores["attack"] == CONTROL)
    return list(cells({name: column[chosen] for name, column in run.scores.items()}))


def unlearners_of(run: ApolloRun) -> list[str]:
    """Return the unlearners of all settings."""
    return list(dict.fromkeys(row.unlearner for row in run.result.table))


def crossed(
    run: ApolloRun,
    name: str,
    title: str,
    settings: Sequence[str],
    body: Mapping[tuple[str, str], Entry],
    *,
    intervals: bool = False,
) -> Grid:
    """Return a table of settings × unlearners; a dash where a setting lacks one.

    ``intervals``: entries have some, which a terminal shows where those of all columns fit.
    """
    level = f"\n[{percent(run.result.level, 0)}]" if intervals else ""
    shown = [unlearner for unlearner in unlearners_of(run) if any(unlearner == column for _, column in body)]
    lines = [[setting, *(body.get((setting, unlearner), DASH) for unlearner in shown)] for setting in settings]
    columns = [Column(run.called(unlearner).replace(" (", "\n(") + level, narrow="together") for unlearner in shown]
    return grid(name, title, [left("setting"), *columns], lines)


def difference_entry(found: Difference) -> Entry:
    """Return ``+.012 [−.003, +.027]``."""
    return entry(Estimate(found.mean, found.low, found.high), signed=True)
