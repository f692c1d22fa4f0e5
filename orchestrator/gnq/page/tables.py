"""The tables of a GNQ run: arms, other comparisons, removed points, onion effect, exposed points, settings."""

from __future__ import annotations

import dataclasses

from orchestrator.gnq.page import gradient_inversion, inversion, predictions, sweeps
from orchestrator.gnq.page.glossary import GROUPS, MOMENTS, REFERENCES, SHADOWS
from orchestrator.gnq.page.numbers import change_entry, headline, onion_change
from orchestrator.gnq.page.reading import (
    BEST_SHADOWS,
    CONTRIBUTORS,
    KEPT,
    KEPT_UNFILTERED,
    NONE,
    REMOVED,
    REMOVED_UNFILTERED,
    GnqRun,
)
from orchestrator.gnq.result.rows import ArmRow, ExposedPointRow
from orchestrator.gnq.result.words import arm_words, words
from orchestrator.judgement.wording import DASH
from orchestrator.report.controls import controls_grid
from orchestrator.report.grid import Column, Entry, Grid, grid, left
from orchestrator.report.numbers import entry, number, or_dash, percent
from orchestrator.report.pictures import Images, thumbnail
from orchestrator.report.result import look_up, of_setting
from orchestrator.report.words import ranking_words

WAYS = (
    (CONTRIBUTORS, "adaptive", "after"),
    (CONTRIBUTORS, "naive", "after"),
    (KEPT_UNFILTERED, "naive", "after"),
    (KEPT, "naive", "after"),
    (KEPT, "adaptive", "after"),
    (KEPT, "naive", "before"),
    (KEPT, "adaptive", "before"),
)
"""Group, shadows, moment."""
FILTERS = {
    CONTRIBUTORS: "no filter",
    KEPT_UNFILTERED: "the paper’s implicit comparison: only the members are filtered",
    KEPT: "the same filter on both sides",
}
KNOWN = {"adaptive": "shadows know the defence", "naive": "shadows do not know the defence"}
BEFORE = "what leaving the others out does by itself"
OFF = "null models: not at .500, also after Holm’s correction"


def all_grids(run: GnqRun) -> list[Grid]:
    """Return the tables of a run: all settings, then each setting in full."""
    grids: list[Grid | None] = [sweeps.cut_grid(run) or setting_grid(run), predictions.prediction_setting_grid(run)]
    grids += [sweeps.seed_grid(run), sweeps.level_grid(run), sweeps.bin_setting_grid(run)]
    for setting in run.settings:
        grids += [arm_grid(run, setting), difference_grid(run, setting), privacy_grid(run, setting)]
        grids += [way_grid(run, setting, arm) for arm in run.arms(setting)]
        grids += [removed_grid(run, setting), onion_grid(run, setting), predictions.bin_grid(run, setting)]
        grids += [predictions.correlation_grid(run, setting), predictions.gain_grid(run, setting)]
        grids += [inversion.inversion_grid(run, setting), inversion.inversion_gain_grid(run, setting)]
        grids += gradient_inversion.gradient_grids(run, setting)
        grids.append(area_grid(run, setting))
    return [each for each in (*grids, controls_grid(run.result.controls, words)) if each]


def terminal_grids(run: GnqRun) -> list[Grid]:
    """Return the tables that a terminal shows: the arms, what they change, what scores predict, all settings."""
    caption = (
        f"Headline: all contributors, shadows that know the defence, strongest attack, * above .500. Brackets: "
        f"{percent(run.level, 0)} over pools. kept: same rule on both sides. Differences: paired. Both by "
        f"{words(run.judge)}. test: accuracy."
    )
    arms, changes = arm_grid(run, run.main_setting), difference_grid(run, run.main_setting)
    grids: list[Grid | None] = [changes, predictions.correlation_grid(run, run.main_setting)]
    if len(run.settings) > 1:
        grids += [sweeps.seed_grid(run), arm_setting_grid(run), predictions.prediction_setting_grid(run)]
    return [dataclasses.replace(arms, caption=caption), *(each for each in grids if each)]


def arm_grid(run: GnqRun, setting: str) -> Grid:
    """Return one line an arm: what it gives away, what kept points do, test accuracy, and how it was trained."""
    level = f"[{percent(run.level, 0)}]"
    columns = [left("arm", narrow="nothing"), left("name"), left("attack"), f"headline AUC\n{level}"]
    columns += [Column("kept,\nsame rule", narrow="short"), Column(f"test accuracy\n{level}", narrow="short")]
    columns += [Column(heading, narrow="nothing") for heading in ("train", "points", "steps", "last batch")]
    body = []
    for arm in run.arms(setting):
        kept = run.kept(setting, arm)
        sizes = (or_dash(size, "{:g}".format) for size in (arm.trained_on, arm.steps, arm.last_batch))
        attack = words(arm.headline.attack) if arm.headline else DASH
        line = [arm_words(arm), arm.arm, attack, headline(arm), entry(kept.auc if kept else None)]
        body.append([*line, entry(arm.test_accuracy), number(arm.train_accuracy), *sizes])
    return grid(f"arms-{setting}", f"{setting}: what each arm gives away and costs", columns, body)


def difference_grid(run: GnqRun, setting: str) -> Grid | None:
    """Return what each arm changes against no defence, and the same at random and by loss; None without comparisons."""
    body = []
    for arm in run.arms(setting):
        rows = run.against(setting, arm)
        if any(rows):
            cost = entry(rows[0].accuracy if rows[0] else None, signed=True)
            body.append([arm_words(arm), arm.arm, *(change_entry(row, run.level) for row in rows), cost])
    columns = [left("arm", narrow="nothing"), left("name")]
    columns += [
        Column(f"AUC minus\n{name}", narrow="nothing" if name == REFERENCES[-1] else "whole") for name in REFERENCES
    ]
    columns.append(Column("test accuracy\nminus no defence", narrow="short"))
    title = f"{setting}: differences by {words(run.judge)}, paired by pool; * after Holm’s correction"
    return grid(f"differences-{setting}", title, columns, body) if body else None


def privacy_grid(run: GnqRun, setting: str) -> Grid | None:
    """Return what each private arm may tell of a point, and what attacks show; None without such an arm."""
    body: list[list[object]] = []
    for arm in (arm for arm in run.arms(setting) if arm.method == "dp_sgd"):
        low = "" if arm.epsilon_low is None else f"[{arm.epsilon_low:.4g}, {or_dash(arm.epsilon, '{:.4g}'.format)}]"
        spent = Entry(or_dash(arm.epsilon, "{:.4g}".format), low)
        told = [arm_words(arm), spent, or_dash(arm.delta, "{:g}".format), (arm.accountant or DASH).upper()]
        found, null = run.epsilon_found(setting, arm), run.epsilon_found(setting, arm, "null")
        if found is not None:
            guesses = f"{found.right} of {found.guesses}, of {found.pairs}"
            told += [f"{found.at_least:.2f}", words(found.attack), guesses]
        else:
            told += [DASH, DASH, DASH]
        body.append([*told, DASH if null is None else f"{null.at_least:.2f}"])
    columns = [left("arm"), "ε spent at most\n[by the accountant]", "δ", left("accountant")]
    columns += [f"ε at least\nat {percent(run.level, 0)}", left("attack"), "right guesses,\nof pairs", "on null models"]
    title = f"{setting}: what private training may tell of a point, and what it tells at least"
    return grid(f"privacy-{setting}", title, columns, body) if body else None


def way_grid(run: GnqRun, setting: str, arm: ArmRow) -> Grid | None:
    """Return what other comparisons would have said of an arm, and what each says of models that saw no point."""
    body: list[list[object]] = []
    for group, wanted, moment in WAYS:
        row = run.cell(setting, arm.arm, group, run.judge, (wanted, "none"), moment)
        if row is None or (arm.method != "remove" and group != CONTRIBUTORS):
            continue
        null = run.cell(setting, arm.arm, group, run.judge, (row.shadows,), "null") if moment == "after" else None
        known = [KNOWN[row.shadows]] if row.shadows in KNOWN and arm.method != NONE else []
        thought = "; ".join([BEFORE if moment == "before" else FILTERS[group], *known])
        names = [GROUPS[group], SHADOWS[row.shadows], MOMENTS[moment]]
        line = [*names, entry(row.auc), entry(null.auc if null else None), thought]
        if line not in body:
            body.append(line)
    columns = [left("who is told apart"), left("shadows"), left("who answers"), "AUC", "AUC on null models"]
    title = f"{arm_words(arm)} ({words(run.judge)})"
    columns.append(left("what to think of it", wrap=True))
    return grid(f"comparisons-{setting}-{arm.arm}", title, columns, body) if body else None


def removed_grid(run: GnqRun, setting: str) -> Grid | None:
    """Return AUC and two-sided AUC of removed points against both kinds of non-members; None without a removal."""
    body = []
    for arm in (arm for arm in run.arms(setting) if arm.method == "remove"):
        for attack, shadows in ((attack, shadows) for attack in run.attacks for shadows in BEST_SHADOWS):
            groups = (REMOVED, REMOVED_UNFILTERED)
            rows = [run.cell(setting, arm.arm, group, attack, (shadows,)) for group in groups]
            if any(rows):
                areas = [entry(part) for row in rows for part in ((row.auc, row.two_sided) if row else (None, None))]
                body.append([arm_words(arm), f"{words(attack)}, {SHADOWS[shadows]}", *areas])
    columns = [left("arm"), left("attack"), "same rule: AUC", "same rule: two-sided", "against all: AUC"]
    title = f"{setting}: removed points"
    return grid(f"removed-{setting}", title, [*columns, "against all: two-sided"], body) if body else None


def onion_grid(run: GnqRun, setting: str) -> Grid | None:
    """Return shares of fully exposed kept points before and after each arm; None where nobody looked."""
    body = []
    for arm in run.arms(setting):
        if seen := arm.onion:
            shares = [number(seen.before), entry(seen.after), entry(onion_change(seen), signed=True)]
            body.append([arm_words(arm), f"{seen.points:g}", *shares, number(seen.floor)])
    columns = [left("arm"), "points", "before", f"after [{percent(run.level, 0)}]", "change", "by chance"]
    title = f"{setting}: share of fully exposed points among those kept"
    return grid(f"onion-{setting}", title, columns, body) if body else None


def setting_grid(run: GnqRun) -> Grid | None:
    """Return setting × arm: headline AUC, and test accuracy; None for a run of one setting."""
    if len(run.settings) < 2:
        return None
    arms = list({row.arm: row for row in run.result.arms}.values())
    body = []
    for setting in run.settings:
        own = {row.arm: row for row in run.arms(setting)}
        shown = (
            f"{headline(row)}; {number(row.test_accuracy.value)}" if (row := own.get(a.arm)) else DASH for a in arms
        )
        body.append([setting, *shown])
    title = f"Headline AUC [{percent(run.level, 0)}]; test accuracy, by setting"
    return grid("settings", title, [left("setting"), *map(arm_words, arms)], body)


def arm_setting_grid(run: GnqRun) -> Grid:
    """Return headline AUC and test accuracy of every arm, a line an arm of a setting: narrow enough for a terminal."""
    body = [[row.setting, row.arm, headline(row), entry(row.test_accuracy)] for row in run.result.arms]
    columns = [left("setting", merge=True), left("name"), f"headline AUC [{percent(run.level, 0)}]"]
    return grid("arms", "By setting", [*columns, Column("test", narrow="short", explanation="test accuracy")], body)


def area_grid(run: GnqRun, setting: str) -> Grid:
    """Return all cells of a setting, red where null models are off chance."""
    names = {arm.arm: arm_words(arm) for arm in run.arms(setting)}
    body = [
        [
            names[row.arm],
            GROUPS[row.group],
            words(row.attack),
            SHADOWS[row.shadows],
            MOMENTS[row.moment],
            row.targets,
            entry(row.auc, tone="miss", tooltip=OFF) if row.off else entry(row.auc),
            entry(row.two_sided),
        ]
        for row in of_setting(run.result.table, setting)
    ]
    columns = [left("arm"), left("who is told apart"), left("attack"), left("shadows"), left("who answers"), "targets"]
    columns += [f"AUC [{percent(run.level, 0)}]", "two-sided"]
    return grid(f"all-{setting}", f"{setting}: every comparison", columns, body)


def point_grid(run: GnqRun, setting: str, images: Images) -> Grid | None:
    """Return the most exposed points, with pictures where the setting asks about the plan's own data set."""
    own = run.result.value(setting, "data.name") == look_up(run.result.plan, "data.name")
    body = [point_line(point, images if own else {}) for point in of_setting(run.result.points, setting)]
    columns = [left(""), "point", left("class"), "pool", "rank in\nits target", "Σ ½·log₂\n(1 + GNQ)", "bits"]
    columns += ["final\nGNQ", "diagonal\nGNQ", "‖g‖²", "loss", "loss gap"]
    title = f"The most exposed points by {ranking_words(run.main_score)}"
    return grid(f"points-{setting}", title, columns, body) if body else None


def point_line(point: ExposedPointRow, images: Images) -> list[object]:
    """Return one exposed point, with its picture where there is one."""
    picture = Entry("")
    if point.point_id in images:
        picture = Entry(f"point {point.point_id}", image=thumbnail(images[point.point_id]))
    summed = point.pinv_log if point.gnq_log is None else point.gnq_log
    numbers = (summed, point.bits, point.gnq_final, point.diagonal, point.squared_norm, point.loss, point.loss_gap)
    rank = f"{point.rank} of {point.of}"
    told = [picture, point.point_id, point.label, point.pool, rank]
    return [*told, *(or_dash(value, "{:.3g}".format) for value in numbers)]
