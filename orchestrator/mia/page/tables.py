"""The tables of a membership run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.wording import DASH
from orchestrator.mia.page.reading import MiaRun
from orchestrator.mia.result.rows import MiaRow
from orchestrator.mia.result.words import words
from orchestrator.report.best import BEST, best_lines
from orchestrator.report.chance import STAR_RULE, starred
from orchestrator.report.controls import controls_grid
from orchestrator.report.grid import Column, Entry, Grid, bold, grid, group, left, red
from orchestrator.report.numbers import VOID, bounds, entry, number, or_dash, percent, small_p
from orchestrator.report.pictures import MOST_POINTS, Images, thumbnail
from orchestrator.report.words import WHO

OF_POOLS = (
    Column("FPR, null\nmodels", narrow="short"),
    Column("TPR,\nROC", narrow="nothing", explanation="with the threshold of the other targets’ non-members"),
)
"""Columns that take more than one pool."""


def all_grids(run: MiaRun) -> list[Grid]:
    """Return the tables of a run."""
    found = [setting_grid(run), attack_grid(run), *(second_rate_grid(run, rate) for rate in run.rates[1:])]
    found += [
        canary_grid(run),
        own_grid(run),
        blind_grid(run),
        shadow_grid(run),
        epsilon_grid(run),
        discovery_grid(run),
        exposure_grid(run, {}),
    ]
    return [each for each in (*found, fit_grid(run), controls_grid(run.result.controls, words)) if each]


def terminal_grids(run: MiaRun) -> list[Grid]:
    """Return the tables for a terminal: all settings of a sweep, else the attacks."""
    overview = setting_grid(run)
    return [overview] if overview else [attack_grid(run)]


def attack_grid(run: MiaRun) -> Grid:
    """Return the main table: attacks by access at the first promised rate."""
    return rate_grid(run, run.rates[0], "attacks")


def second_rate_grid(run: MiaRun, rate: float) -> Grid:
    """Return the table of attacks at another promised rate."""
    return rate_grid(run, rate, f"attacks-{rate:g}")


def rate_grid(run: MiaRun, rate: float, name: str) -> Grid:
    """Return the attacks at one promised rate, by access."""
    level = percent(run.level, 0)
    columns = (
        left("attack"),
        Column(f"AUC [{level}]"),
        Column("p (Holm)", narrow="nothing"),
        Column(f"TPR at {percent(rate, 0)}"),
        Column("found FPR"),
        *([] if run.given else OF_POOLS),
        Column("right calls\nat 1 % members", narrow="nothing"),
        Column("right calls\nat 10 %", narrow="nothing"),
        Column("queries", narrow="nothing"),
    )
    rows = run.rows(rate=rate)
    groups = tuple(
        group(words(access), [line(row, run.given) for row in rows if row.access == access], WHO.get(access, ""))
        for access in dict.fromkeys(row.access for row in rows)
    )
    title = run.result.headed(f"Attacks at a promised false-positive rate of {percent(rate, 0)}")
    caption = f"{STAR_RULE}; brackets are over {run.over}"
    return Grid(name, title, columns, groups, grouped_by="access", caption=caption)


def line(row: MiaRow, given: bool) -> list[Entry]:
    """Return the line of an attack at one promised rate; of a given target without what only other pools tell."""
    return [
        Entry(words(row.attack)),
        starred(row),
        Entry(small_p(row.auc_p_holm)),
        VOID if row.void else entry(row.tpr),
        rate_entry(row.found_fpr, row.found_fpr_off),
        *([] if given else [rate_entry(row.null_fpr, row.null_fpr_off), Entry(number(row.roc_tpr))]),
        VOID if row.void else percent_entry(row.worth_1),
        VOID if row.void else percent_entry(row.worth_10),
        Entry(f"{row.queries_per_point:g}"),
    ]


def rate_entry(rate: Estimate, broken: bool) -> Entry:
    """Return a false-positive rate, red where the promise is broken."""
    return Entry(number(rate.value), bounds(rate), tone=red(broken))


def percent_entry(share: Estimate) -> Entry:
    """Return a share as a percentage with its careful and bold ends; a dash for 0/0."""
    if share.value is None:
        return Entry(DASH, tooltip="nobody is called a member")
    ends = f"[{percent(share.low, 0)}, {percent(share.high, 0)}]" if share.bounded else ""
    return Entry(percent(share.value, 0), ends)


def canary_grid(run: MiaRun) -> Grid | None:
    """Return how well each attack finds canaries, beside ordinary points; None in a run without canaries."""
    if not run.canaries:
        return None
    body = []
    for row in run.canaries:
        plain = run.row(row.attack)
        seen = entry(row.auc, tone=bold(row.auc.above(0.5)))
        body.append([words(row.attack), seen, starred(plain) if plain else Entry(DASH), str(row.canaries)])
    columns = [left("attack"), "AUC, canaries", "AUC, other points", "canaries"]
    return grid("canaries", run.result.headed("Positive control: points with a wrong label"), columns, body)


def own_grid(run: MiaRun) -> Grid | None:
    """Return how attacks judge models of the plan's own recipe beside a given target; None without one."""
    if not run.own:
        return None
    body = []
    for row in run.own:
        given = run.row(row.attack)
        seen = entry(row.auc, tone=bold(row.auc.above(0.5)))
        broken = row.found_fpr.above(row.promised_fpr)
        body.append(
            [words(row.attack), seen, starred(given) if given else Entry(DASH), rate_entry(row.found_fpr, broken)]
        )
    rate = percent(run.own[0].promised_fpr, 0)
    columns = [left("attack"), "AUC, own models", "AUC, given model", f"found FPR at {rate}, own"]
    return grid("own", run.result.headed("Positive control: two models of the plan’s own recipe"), columns, body)


def blind_grid(run: MiaRun) -> Grid | None:
    """Return how members are told from non-members without a given target; None without one."""
    if run.blind is None:
        return None
    row = run.blind
    body = [[row.by, entry(row.auc, tone=red(row.differ)), small_p(row.p), str(row.points)]]
    columns = [left("classifier of inputs, labels and shadows"), "AUC", "p by permutations", "points"]
    return grid("blind", run.result.headed("Members and non-members without the model"), columns, body)


def shadow_grid(run: MiaRun) -> Grid | None:
    """Return AUC and TPR by number of shadows; None where no attack is fitted to shadows."""
    if not run.shadows:
        return None
    body = [
        [
            words(row.attack),
            str(row.shadows),
            entry(row.auc),
            VOID if row.void else entry(row.tpr),
            entry(row.found_fpr),
        ]
        for row in run.shadows
    ]
    columns = [left("attack", merge=True), "shadows", "AUC", f"TPR at {percent(run.rates[0], 0)}", "found FPR"]
    return grid("shadows", run.result.headed("Power by the number of shadows"), columns, body)


def epsilon_grid(run: MiaRun) -> Grid | None:
    """Return the lower bounds on ε; None where none is told."""
    if not run.epsilons:
        return None
    body = [
        [
            words(row.attack),
            percent(row.share, 0),
            f"{row.right} of {row.guesses}",
            Entry(f"{row.epsilon:.2f}", tone=bold(row.epsilon > 0)),
            or_dash(row.null_right, lambda right, row=row: f"{right:g} of {row.guesses}"),  # type: ignore[misc]  # a default binds the loop's value
            Entry(DASH if row.null_epsilon is None else f"{row.null_epsilon:.2f}", tone=red(bool(row.null_epsilon))),
        ]
        for row in run.epsilons
    ]
    columns = [left("attack", merge=True), "pairs guessed", "right", "ε at least", "right, null", "ε, null"]
    delta = run.epsilons[0].delta
    title = f"Training is not (ε, {delta:g})-private below this ε, at confidence {percent(run.level, 0)}"
    return grid("epsilons", run.result.headed(title), columns, body)


def discovery_grid(run: MiaRun) -> Grid | None:
    """Return how many single points each attack finds at the allowed share of false ones."""
    if not run.discoveries:
        return None
    share: Callable[[bool, Estimate], Entry] = lambda void, found: VOID if void else entry(found)  # noqa: E731  # two uses below
    body = [
        [
            words(row.attack),
            VOID if row.void else Entry(str(row.discoveries)),
            VOID if row.void else Entry(str(row.false)),
            share(row.void, row.fdp),
            share(row.void, row.power),
        ]
        for row in run.discoveries
    ]
    title = f"Single points found, with {percent(run.discoveries[0].claimed_fdr, 0)} false ones allowed"
    columns = [left("attack"), "found", "false", "share false", "of all members"]
    return grid("discoveries", run.result.headed(title), columns, body)


def exposure_grid(run: MiaRun, images: Images) -> Grid | None:
    """Return the members of which the judge is surest, with their pictures; bold q: a discovery."""
    points = run.result.exposed
    if not points:
        return None
    shown, allowed = points[:MOST_POINTS], float(run.result.value(run.main_setting, "audit.fdr"))
    pictured = any(point.point_id in images for point in shown)
    body = []
    for point in shown:
        image = thumbnail(images[point.point_id]) if point.point_id in images else ""
        body.append(
            [
                *([Entry(f"point {point.point_id}" if image else "", image=image)] if pictured else []),
                str(point.point_id),
                str(point.label),
                str(point.target),
                number(point.score),
                VOID if point.void else f"{point.p:.5f}",
                VOID if point.void else Entry(number(point.q), tone=bold(point.q <= allowed)),
                or_dash(point.recognised, lambda value: percent(value, 0)),
            ]
        )
    columns = [*([""] if pictured else []), "point", "label", "target", "score", "p", "q", "recognised\nby shadows"]
    return grid("exposed", run.result.headed(f"Members of which {words(run.judge)} is surest"), columns, body)


GROUPS = {"own": "own models"}
"""Groups of models whose plural is not that of their name."""


def fit_grid(run: MiaRun) -> Grid:
    """Return how the models fit."""
    body = [
        [
            row.setting,
            GROUPS.get(row.group, f"{row.group}s"),
            str(row.models),
            number(row.train_accuracy),
            number(row.test_accuracy),
            number(row.gap, signed=True),
        ]
        for row in run.result.fit
    ]
    columns = [left("setting", merge=True), left("models"), "number", "train accuracy", "test accuracy", "gap"]
    return grid("fit", "How the models fit", columns, body)


def setting_grid(run: MiaRun) -> Grid | None:
    """Return one line a setting and attack, the best setting of each attack marked; None for a run of one setting."""
    if len(run.settings) < 2:
        return None
    body, best = [], {(row.setting, row.attack) for row in run.result.best}
    for setting in run.settings:
        for row in run.rows(setting):
            area = starred(row)
            area = replace(area, mark=area.mark + BEST) if (setting, row.attack) in best else area
            found = [area, VOID if row.void else entry(row.tpr)]
            body.append([setting, words(row.attack), *found, rate_entry(row.found_fpr, row.found_fpr_off)])
    rate = percent(run.rates[0], 0)
    columns = [left("setting", merge=True), left("attack"), "AUC", f"TPR at {rate}", "found FPR"]
    notes = best_lines(run.result.best, lambda row: words(row.attack), run.level)
    return replace(grid("settings", "Attacks by setting", columns, body), notes=notes)
