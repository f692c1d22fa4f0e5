"""The tables of a TMIA run: cells of a setting, all settings, seeds, fit, selections, recognised points."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from orchestrator.judgement.wording import DASH
from orchestrator.report.controls import controls_grid
from orchestrator.report.grid import Column, Entry, Grid, Group, bold, grid, group, left, red
from orchestrator.report.numbers import VOID, or_dash, percent
from orchestrator.report.pictures import MOST_POINTS, Images, thumbnail
from orchestrator.report.result import look_up
from orchestrator.tmia.page.given import own_model_grids
from orchestrator.tmia.page.glossary import GROUPS
from orchestrator.tmia.page.numbers import null_rate, over_targets, quoted, rate_entry
from orchestrator.tmia.page.seeds import seeds_grids
from orchestrator.tmia.result.given_rows import GivenCell, GivenResult
from orchestrator.tmia.result.rows import RecognisedPoint, TmiaCell
from orchestrator.tmia.result.run import TmiaRun
from orchestrator.tmia.result.words import words


def all_grids(run: TmiaRun) -> list[Grid]:
    """Return the tables of a run: settings, seeds, cells of the settings shown, selections, fit."""
    grids = [overview_grid(run), *seeds_grids(run), *(cell_grid(run, setting) for setting in run.shown)]
    grids += [*own_model_grids(run), overfitted_grid(run), selection_grid(run), fit_grid(run)]
    grids.append(controls_grid(run.result.controls, words))
    return [each for each in grids if each]


def terminal_grids(run: TmiaRun) -> list[Grid]:
    """Return the tables that a terminal shows: all settings, then each of a few, else the main one."""
    given = isinstance(run.result, GivenResult)
    over = "candidates and reference models" if given else "targets, candidates and reference models"
    whose = "the target's known non-members" if given else "the targets' non-member pairs"
    caption = (
        f"{percent(run.level, 0)} intervals over {over}. Chance: precision .500. "
        f"FPR: on {whose}; null: on models that saw no candidate. undefined: 0/0."
    )
    grids = [overview_grid(run), *(cell_grid(run, setting) for setting in run.shown)]
    *others, last = [each for each in grids if each]
    return [*others, dataclasses.replace(last, caption=caption)]


def cell_grid(run: TmiaRun, setting: str) -> Grid:
    """Return selection × attack of one setting."""
    level = f"[{percent(run.level, 0)}]"
    columns = (
        left("attack"),
        left("access", narrow="nothing"),
        Column("|Q|"),
        Column(f"precision {level}"),
        Column("coverage", narrow="short"),
        Column("FPR", narrow="short"),
        Column("null\nFPR", narrow="short", explanation="false-positive rate on models that saw no candidate"),
        Column("false positives\n(promised)", narrow="nothing"),
        Column("AUC", narrow="nothing"),
        Column("queries", narrow="short", explanation="asked of one target about one candidate"),
    )
    rows = run.rows(setting)
    where = "null models" if not any(isinstance(row, GivenCell) for row in rows) else "a control"
    key = f"; void: the level does not hold on {where}, must not be quoted" * any(row.void for row in rows)
    title = f"{setting}: attack mode {run.mode(setting)}, {level_words(rows)}{key}"
    return Grid(f"cells-{setting}", title, columns, tuple(selection_groups(run, setting)), "selection")


def selection_groups(run: TmiaRun, setting: str) -> list[Group]:
    """Return the cells of a setting by selection, each by access, weakest first; selections without cells left out."""
    rules = {row.selector: row for row in run.result.selections if row.setting == setting}
    rows = sorted(run.rows(setting), key=lambda row: run.attacks.index(row.attack))
    found = []
    for name in run.selections:
        lines = [cell_line(row) for row in rows if row.selection == name]
        rule = rules.get(name)
        note = f"{rule.rule}; {rule.chosen} chosen, {rule.asked} of them asked with labels only" if rule else ""
        if lines:
            found.append(group(words(name), lines, note))
    return found


def cell_line(row: TmiaCell) -> list[object]:
    """Return one line of the main table."""
    missed = red(row.fpr_off)
    promised = or_dash(row.expected_false_positives, lambda count: f"({count:.1f})").removeprefix(DASH)
    return [
        words(row.attack),
        row.access,
        row.candidates,
        quoted(row, row.precision, tone=bold(row.above_chance), tooltip=over_targets(row.precision_t)),
        quoted(row, row.coverage, tooltip=over_targets(row.coverage_t)),
        rate_entry(row.fpr, tone=missed, tooltip=over_targets(row.fpr_t)),
        null_rate(row),
        Entry(str(row.false_positives), promised),
        rate_entry(row.auc),
        Entry(f"{row.queries_per_point:g}", f"({row.failed} failed)" if row.failed else ""),
    ]


def level_words(rows: Sequence[TmiaCell]) -> str:
    """Return β, and the level truly tested by ranks where an attack ranks: ``β = 0.05 (ranks attain .0446)``."""
    attained = next((row.attained for row in rows if row.attained is not None), None)
    tested = "" if attained is None else f" (ranks attain {attained:.4f})".replace(" 0.", " .")
    return f"β = {rows[0].beta:g}{tested}"


def overview_grid(run: TmiaRun) -> Grid | None:
    """Return setting × attack of the verdict under the main selection; None for a run of one setting."""
    if len(run.settings) < 2:
        return None
    columns = [left("setting", merge=True), left("mode"), left("attack"), "|Q|", f"precision [{percent(run.level, 0)}]"]
    columns += [Column(heading, narrow="short") for heading in ("coverage", "FPR", "null FPR")]
    body = [
        [
            setting,
            row.mode,
            words(attack),
            row.candidates,
            quoted(row, row.precision, tone=bold(row.above_chance)),
            quoted(row, row.coverage),
            rate_entry(row.fpr),
            null_rate(row),
        ]
        for setting in run.settings
        for attack in run.judges
        if (row := run.cell(setting, run.main_selection, attack))
    ]
    return grid("settings", f"By setting, selection by {words(run.main_selection)}", columns, body)


def fit_grid(run: TmiaRun) -> Grid:
    """Return training and test accuracy of every group of models, means over models, over-fitted ones flagged."""
    columns = [left("setting"), left("side"), left("models"), "number", "train accuracy", "test accuracy"]
    body = [
        [
            row.setting,
            row.side,
            GROUPS.get(row.group, row.group),
            row.models,
            percent(row.train_accuracy),
            percent(row.test_accuracy),
            or_dash(row.gap, lambda gap: f"{100 * gap:.1f}"),
            Entry(row.flag, tone=red(bool(row.flag))),
        ]
        for row in run.result.fit
    ]
    return grid("fit", "Accuracy of the models, means over models", [*columns, "gap (points)", left("")], body)


def overfitted_grid(run: TmiaRun) -> Grid | None:
    """Return how well each attack finds members of over-fitted models; None in a run without such models."""
    if not run.result.overfitted:
        return None
    columns = [left("setting", merge=True), left("access"), left("attack"), "models", "candidates"]
    body = [
        [row.setting, row.access, words(row.attack), row.models, row.candidates, rate_entry(row.auc)]
        for row in run.result.overfitted
    ]
    title = "Positive control: members of models trained on half of the candidates alone"
    return grid("overfitted", title, [*columns, f"AUC [{percent(run.level, 0)}]"], body)


def selection_grid(run: TmiaRun) -> Grid:
    """Return by which rule each selection was made, how many it chose and how many of those were asked."""
    columns = [
        left("setting"),
        left("selection"),
        left("rule"),
        "threshold",
        "chosen",
        "of these asked with labels only",
    ]
    body = [
        [
            row.setting,
            words(row.selector),
            row.rule,
            or_dash(row.threshold, lambda threshold: f"{threshold:.4g}"),
            row.chosen,
            row.asked,
        ]
        for row in run.result.selections
    ]
    return grid("selections", "Selections", columns, body)


def recognised_grids(run: TmiaRun, images: Images) -> list[Grid]:
    """Return exposed points by setting, attack and selector, at most ``MOST_POINTS`` each, most often found first.

    A thumbnail is shown only where the setting asks about the plan's own data set, which ``images`` are taken from.
    """
    blocks: dict[tuple[str, str, str], list[RecognisedPoint]] = {}
    for point in run.result.exposed:
        blocks.setdefault((point.setting, point.attack, point.selector), []).append(point)
    found = []
    for (setting, attack, selector), points in blocks.items():
        if setting not in run.shown:
            continue
        own = run.result.value(setting, "data.name") == look_up(run.result.plan, "data.name")
        shown = sorted(points, key=lambda point: -point.hits / max(point.targets, 1))[:MOST_POINTS]
        title = f"{setting}: {words(attack)}, selection by {words(selector)} ({len(shown)} of {len(points)})"
        cells = (run.cell(setting, name, attack) for name in selector.split(" or "))
        void = any(cell.void for cell in cells if cell)
        lines = [recognised_line(point, images if own else {}, void) for point in shown]
        found.append(grid("recognised", title, [left(""), "point", "label", "recognised in"], lines))
    return found


def recognised_line(point: RecognisedPoint, images: Images, void: bool) -> list[object]:
    """Return one exposed point, with its picture where there is one; ``void``: by an attack that breaks its promise."""
    picture = Entry("")
    if point.point_id in images:
        picture = Entry(f"point {point.point_id}", image=thumbnail(images[point.point_id]))
    return [picture, point.point_id, point.label, VOID if void else f"{point.hits} of {point.targets} models"]
