"""The tables of a disclosure run in words: frontier, other comparisons, removed points, onion, settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.report.by_setting import Grid
from orchestrator.report.disclosure import predictions
from orchestrator.report.disclosure.checks import control
from orchestrator.report.disclosure.glossary import GROUPS, MOMENTS, SHADOWS, arm_words, words
from orchestrator.report.disclosure.numbers import DASH, change, estimate, headline, holm_mark, number, onion_change
from orchestrator.report.disclosure.reading import (
    BEST_SHADOWS,
    CONTRIBUTORS,
    KEPT,
    KEPT_UNFILTERED,
    NONE,
    REMOVED,
    REMOVED_UNFILTERED,
    DisclosureRun,
)
from orchestrator.report.disclosure.verdict import REMOVAL, published
from orchestrator.report.reading import Row, percent
from orchestrator.report.rich_grid import as_rich

if TYPE_CHECKING:
    from rich.table import Table

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
REFERENCES = ("no defence", "the same at random", "the same by loss")
"""What ``DisclosureRun.against`` compares an arm with, in its order."""


def frontier_grid(run: DisclosureRun, setting: str) -> Grid:
    """Return one line an arm: what it gives away, what kept points do, test accuracy, and how it was trained."""
    level = percent(run.level, 0)
    head = ["arm", "attack", f"headline AUC [{level}]", "kept, same rule", f"test accuracy [{level}]"]
    body = [
        [
            arm_words(arm),
            words(arm["headline"]["attack"]) if arm["headline"] else DASH,
            headline(arm),
            estimate(run.kept(setting, arm), "auc"),
            estimate(arm, "test_accuracy"),
            number(arm["train_accuracy"]),
            *(DASH if arm[name] is None else f"{arm[name]:g}" for name in ("trained_on", "steps", "last_batch")),
        ]
        for arm in run.arms(setting)
    ]
    title = f"{setting}: what each arm gives away and costs"
    return Grid(title, [*head, "train", "points", "steps", "last batch"], body)


def difference_grid(run: DisclosureRun, setting: str) -> Grid | None:
    """Return what each arm changes against no defence, and the same at random and by loss; None without comparisons."""
    body = []
    for arm in run.arms(setting):
        rows = run.against(setting, arm)
        if any(rows):
            ends = ("accuracy_low", "accuracy_high")
            cost = estimate(rows[0], "accuracy_difference", signed=True, ends=ends)
            body.append([arm_words(arm), *(f"{change(row)}{holm_mark(row, run.level)}" for row in rows), cost])
    head = ["arm", *(f"AUC minus {name}" for name in REFERENCES), "test accuracy minus no defence"]
    title = f"{setting}: differences by {words(run.judge)}, paired by pool; * after Holm’s correction"
    return Grid(title, head, body) if body else None


def ways_grid(run: DisclosureRun, setting: str, arm: Row) -> Grid | None:
    """Return what other comparisons would have said of an arm, and what each says of models that saw no point."""
    body = []
    for group, wanted, moment in WAYS:
        row = run.cell(setting, arm["arm"], group, run.judge, (wanted, "none"), moment)
        if row is None or (arm["method"] != "remove" and group != CONTRIBUTORS):
            continue
        shadows = row["shadows"]
        fresh = run.cell(setting, arm["arm"], group, run.judge, (shadows,), "fresh") if moment == "after" else None
        known = [KNOWN[shadows]] if shadows in KNOWN and arm["method"] != NONE else []
        thought = "; ".join([BEFORE if moment == "before" else FILTERS[group], *known])
        told = [GROUPS[group], SHADOWS[shadows], MOMENTS[moment], estimate(row, "auc"), estimate(fresh, "auc"), thought]
        if told not in body:
            body.append(told)
    head = ["who is told apart", "shadows", "who answers", "AUC", "AUC on fresh models", "what to think of it"]
    return Grid(f"{arm_words(arm)} ({words(run.judge)})", head, body) if body else None


def removed_grid(run: DisclosureRun, setting: str) -> Grid | None:
    """Return AUC and two-sided AUC of removed points against both kinds of non-members; None without a removal."""
    body = []
    for arm in (arm for arm in run.arms(setting) if arm["method"] == "remove"):
        for attack, shadows in ((attack, shadows) for attack in run.attacks for shadows in BEST_SHADOWS):
            groups = (REMOVED, REMOVED_UNFILTERED)
            rows = [run.cell(setting, arm["arm"], group, attack, (shadows,)) for group in groups]
            if any(rows):
                cells = [estimate(row, name) for row in rows for name in ("auc", "two_sided")]
                body.append([arm_words(arm), f"{words(attack)}, {SHADOWS[shadows]}", *cells])
    head = ["arm", "attack", "same rule: AUC", "two-sided", "against all: AUC", "two-sided"]
    return Grid(f"{setting}: removed points", head, body) if body else None


def onion_grid(run: DisclosureRun, setting: str) -> Grid | None:
    """Return shares of fully exposed kept points before and after each arm; None where nobody looked."""
    rows = [arm for arm in run.arms(setting) if arm["onion"]]
    head = ["arm", "points", "before", f"after [{percent(run.level, 0)}]", "change", "by chance"]
    body = []
    for arm in rows:
        seen = arm["onion"]
        shares = [number(seen["before"]), estimate(seen, "after"), onion_change(seen), number(seen["floor"])]
        body.append([arm_words(arm), f"{seen['points']:g}", *shares])
    return Grid(f"{setting}: share of fully exposed points among those kept", head, body) if body else None


def setting_grid(run: DisclosureRun) -> Grid | None:
    """Return setting × arm: headline AUC, and test accuracy; None for a run of one setting."""
    if len(run.settings) < 2:
        return None
    arms = list({row["arm"]: row for row in run.result["arms"]}.values())
    body = []
    for setting in run.settings:
        own = {row["arm"]: row for row in run.arms(setting)}
        cells = [
            f"{headline(row)}; {number(row['test_accuracy'])}" if (row := own.get(a["arm"])) else DASH for a in arms
        ]
        body.append([setting, *cells])
    title = f"Headline AUC [{percent(run.level, 0)}]; test accuracy, by setting"
    return Grid(title, ["setting", *map(arm_words, arms)], body)


def cell_grid(run: DisclosureRun, setting: str) -> Grid:
    """Return all cells of a setting."""
    names = {arm["arm"]: arm_words(arm) for arm in run.arms(setting)}
    body = [
        [
            names[row["arm"]],
            GROUPS[row["group"]],
            words(row["attack"]),
            SHADOWS[row["shadows"]],
            MOMENTS[row["moment"]],
            str(row["targets"]),
            estimate(row, "auc"),
            estimate(row, "two_sided"),
        ]
        for row in run.rows("table", setting)
    ]
    level = percent(run.level, 0)
    head = ["arm", "who is told apart", "attack", "shadows", "who answers", "targets", f"AUC [{level}]", "two-sided"]
    return Grid(f"{setting}: every comparison", head, body)


def disclosure_tables(document: Mapping[str, Any]) -> list[Table]:
    """Return the tables of a result for a terminal of 100 columns: the frontier, what predicts, all settings."""
    run = DisclosureRun(document)
    setting = run.main_setting
    lines = []
    for arm in run.arms(setting):
        attack = words(arm["headline"]["attack"]) if arm["headline"] else DASH
        _, random, _ = run.against(setting, arm)
        kept = number((run.kept(setting, arm) or {"auc": None})["auc"])
        lines.append([arm["arm"], attack, headline(arm), kept, change(random), number(arm["test_accuracy"])])
    head = ["arm", "attack", "headline AUC", "kept", "minus random", "test"]
    caption = (
        f"Headline: all contributors, shadows that know the defence, strongest attack. Brackets: "
        f"{percent(run.level, 0)} over pools. kept: same rule on both sides. minus random: paired. Both by "
        f"{words(run.judge)}. test: accuracy."
    )
    tables = [as_rich(Grid(f"{setting}: what each arm gives away", head, lines), texts=2, caption=caption)]
    scores = predictions.correlation_grid(run, setting)
    tables += [as_rich(scores, texts=2)] if scores else []
    if len(run.settings) > 1:
        body = [[row["setting"], row["arm"], headline(row), number(row["test_accuracy"])] for row in document["arms"]]
        tables.append(as_rich(Grid("By setting", ["setting", "arm", "headline AUC", "test"], body), texts=2))
        foretold = predictions.setting_grid(run)
        tables += [as_rich(foretold, texts=1)] if foretold else []
    return tables


def closing_lines(document: Mapping[str, Any]) -> list[str]:
    """Return what is said below the tables of a terminal: the model, the control if it fails, what removal is."""
    run = DisclosureRun(document)
    setting = run.main_setting
    said = [published(run, setting), *(sentence for sentence in [control(run, setting)] if sentence.kind == "bad")]
    lines = [f"{sentence.head}: {sentence.text}" for sentence in said]
    removes = any(arm["method"] == "remove" for arm in run.arms(setting))
    return [*lines, REMOVAL] if removes else lines
