"""Tables over the settings of a sweep: attack by bin, level of uniqueness, and what larger shares gain."""

from __future__ import annotations

from typing import NamedTuple

from orchestrator.gnq.page.glossary import REFERENCES, RULES
from orchestrator.gnq.page.numbers import change_entry, headline
from orchestrator.gnq.page.reading import BEST_SHADOWS, CONTRIBUTORS, NONE, GnqRun
from orchestrator.gnq.result.rows import ArmRow, BinRow
from orchestrator.gnq.result.words import arm_words, words
from orchestrator.judgement.estimate import Estimate
from orchestrator.report.grid import Entry, Grid, grid, left
from orchestrator.report.numbers import entry, number, percent
from orchestrator.report.result import of_setting
from orchestrator.report.words import ranking_words

RULE = "same"
"""Non-members by which bins are compared across settings: those of the twin's same bin."""
LEVEL = "Σ ½·log₂(1 + GNQ), median"
LONG = 10.0
"""Numbers from here on have one decimal: sums over steps, no rates."""
LEAST_SHARES = 3
"""Shares, no removal among them, from which on a curve is drawn."""


class Cut(NamedTuple):
    """A removal: the ranking, the share, its arm and the setting that it stands in."""

    ranking: str
    share: float
    arm: ArmRow
    setting: str


def bin_setting_grid(run: GnqRun) -> Grid | None:
    """Return setting × bin of GNQ: AUC of LiRA; None where settings do not differ in it."""
    found = bins_by_setting(run)
    if not found:
        return None
    places = sorted({place for rows in found.values() for place in rows})
    body = [
        [name, *(entry(rows[place].auc if place in rows else None) for place in places)] for name, rows in found.items()
    ]
    title = f"AUC of {words('lira')} by bin of GNQ, against {RULES[RULE]}, by setting; bin 1 least exposed"
    return grid("bins", title, [left("setting"), *places], body)


def bins_by_setting(run: GnqRun) -> dict[str, dict[int, BinRow]]:
    """Return setting → bin of GNQ → its row; {} where fewer than two settings have their own."""
    found = {}
    for setting in run.settings:
        rows = [row for row in of_setting(run.result.bins, setting) if (row.score, row.rule) == (run.main_score, RULE)]
        if rows:
            found[setting] = {row.bin: row for row in rows}
    seen = {tuple(row.auc.value for row in rows.values()) for rows in found.values()}
    return found if len(seen) > 1 else {}


def level_rows(run: GnqRun) -> dict[str, list[Estimate]]:
    """Return setting → GNQ (median), the same a step, AUC by the judge and test accuracy, each with its interval.

    All without a defence; {} where fewer than two settings differ in them. Sums grow with the steps they go over.
    """
    found = {}
    for setting in run.settings:
        base = run.undefended(setting)
        cell = run.cell(setting, NONE, CONTRIBUTORS, run.judge, BEST_SHADOWS) if base else None
        levels = [row.median for row in of_setting(run.result.levels, setting) if row.score == run.main_score]
        whole = levels[0] if levels else Estimate()
        steps = base.steps if base else None
        areas = [cell.auc if cell else Estimate(), base.test_accuracy if base else Estimate()]
        found[setting] = [whole, divided(whole, steps) if steps else Estimate(), *areas]
    return found if len({tuple(parts) for parts in found.values()}) > 1 else {}


def divided(whole: Estimate, steps: int) -> Estimate:
    """Return an estimate a step."""
    parts = (whole.value, whole.low, whole.high)
    return Estimate(*(None if part is None else part / steps for part in parts))


def level_grid(run: GnqRun) -> Grid | None:
    """Return setting × GNQ, AUC and test accuracy without a defence; None where settings do not differ in them."""
    body = [[name, *map(level_entry, parts)] for name, parts in level_rows(run).items()]
    columns = [left("setting"), *(f"{title} [{percent(run.level, 0)}]" for title in level_titles(run))]
    return (
        grid("levels", "Uniqueness, attack and accuracy without a defence, by setting", columns, body) if body else None
    )


def level_titles(run: GnqRun) -> tuple[str, ...]:
    """Return what the numbers of ``level_rows`` are."""
    return (LEVEL, "the same a step", f"AUC of {words(run.judge)}", "test accuracy")


def level_entry(part: Estimate) -> Entry:
    """Return a number as others are written, but sums over steps with one decimal."""
    if part.value is None or part.value < LONG:
        return entry(part)
    return Entry(f"{part.value:.1f}", f"[{part.low:.1f}, {part.high:.1f}]" if part.bounded else "")


def cuts(run: GnqRun) -> list[Cut]:
    """Return the removals of all settings in order of ranking and share; [] where none has shares enough for a curve.

    Nothing but the defences may differ between the settings: all stand beside the same undefended models.
    """
    if any(set(entry.overrides) - {"defences"} for entry in run.result.settings):
        return []
    found: dict[tuple[str, float], Cut] = {}
    for setting in run.settings:
        for arm in run.arms(setting):
            if arm.method == "remove" and arm.ranking is not None and arm.share is not None:
                found.setdefault((arm.ranking, arm.share), Cut(arm.ranking, arm.share, arm, setting))
    shares = {name: sum(cut.ranking == name for cut in found.values()) + 1 for name, _ in found}
    order = list(dict.fromkeys(name for name, _ in found))
    kept = [cut for cut in found.values() if shares[cut.ranking] >= LEAST_SHARES]
    return sorted(kept, key=lambda cut: (order.index(cut.ranking), cut.share))


def seed_grid(run: GnqRun) -> Grid | None:
    """Return what each arm changes over the seeds of a run that varies nothing else; None for other runs."""
    arms = {arm.arm: arm_words(arm) for arm in run.result.arms}
    body = [
        [
            arms[row.arm],
            arms[row.against],
            f"{row.seeds} × {row.pools}",
            entry(row.difference, signed=True),
            number(row.spread),
        ]
        for row in run.result.seeds
        if row.attack == run.judge
    ]
    columns = [left("arm"), left("minus"), "seeds × pools", f"AUC difference\n[{percent(run.level, 0)} over seeds]"]
    title = f"Differences by {words(run.judge)} over seeds, paired by pool"
    return grid("seeds", title, [*columns, "seeds' means\nlie apart by"], body) if body else None


def cut_grid(run: GnqRun) -> Grid | None:
    """Return ranking × share: headline, differences, kept points and test accuracy; None without a curve."""
    body = []
    for cut in cuts(run):
        told = [change_entry(row, run.level) for row in run.against(cut.setting, cut.arm)]
        kept = run.kept(cut.setting, cut.arm)
        line = [ranking_words(cut.ranking), _share(cut.share), headline(cut.arm), *told]
        body.append([*line, entry(kept.auc if kept else None), entry(cut.arm.test_accuracy)])
    level = percent(run.level, 0)
    columns = [left("removed"), left("share"), f"headline AUC [{level}]", *(f"AUC minus {name}" for name in REFERENCES)]
    columns += ["kept, same rule", f"test accuracy [{level}]"]
    title = "Removal by share; * headlines above .500; differences beyond zero after Holm’s correction in the share"
    return grid("shares", title, columns, body) if body else None


def _share(share: float) -> str:
    return f"{share * 100:.3g}\N{NO-BREAK SPACE}%"
