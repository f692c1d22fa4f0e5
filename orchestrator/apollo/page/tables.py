"""The tables of an Apollo run."""

from __future__ import annotations

import math
from collections import Counter

from orchestrator.apollo.page.attacks import main_grid, matrix_grids, unlearner
from orchestrator.apollo.page.by_setting import area_grid, difference_entry, overview_grid, setting_grids
from orchestrator.apollo.page.forget_requests import all_foretold
from orchestrator.apollo.page.front import trade_grid
from orchestrator.apollo.page.promises import void_lines, void_title
from orchestrator.apollo.page.radii import REFERENCES, counts
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.page.verdict import search_gains
from orchestrator.apollo.result.rows import DiscoveryRow
from orchestrator.apollo.result.words import words
from orchestrator.apollo.stages.radii import WAYS
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.wording import DASH
from orchestrator.report.controls import controls_grid
from orchestrator.report.grid import Entry, Grid, grid, left, red
from orchestrator.report.numbers import VOID, bounds, entry, number, percent, small_p
from orchestrator.report.words import access_level

MOST_ROWS = 60
"""Runs of more rows in the main setting stand in documents as matrices."""


def all_grids(run: ApolloRun) -> list[Grid]:
    """Return the tables of a run: main table, settings, single points, and so on to utility and controls."""
    grids = [
        *(matrix_grids(run) if len(run.rows()) * len(run.rates) > MOST_ROWS else [main_grid(run)]),
        overview_grid(run),
        trade_grid(run),
        *setting_grids(run),
        found_points_grid(run),
        *all_foretold(run),
        three_way_grid(run),
        gain_grid(run),
        paper_rule_grid(run),
        radius_grid(run),
        utility_grid(run),
        controls_grid(run.result.controls, words),
    ]
    return [each for each in grids if each]


def terminal_grids(run: ApolloRun) -> list[Grid]:
    """Return the tables that a terminal shows: AUC by setting of the plan's first attack, and the main table.

    Of a run that chose its setting without the former: the choice stands below.
    """
    first = run.result.plan["audit"]["attacks"][0]
    if run.result.selection:
        return [main_grid(run)]
    return [*([area_grid(run, first)] if len(run.settings) > 1 else []), main_grid(run)]


def discovery_grid(run: ApolloRun) -> Grid | None:
    """Return what false discovery rate control finds in the main setting, by access; None without p-values."""
    rows = [row for row in run.result.discoveries if row.setting == run.main_setting]
    rows.sort(key=lambda row: (run.unlearners.index(row.unlearner), access_level(row.access)))
    title = run.result.headed("Points found at the promised false discovery rate")
    title = void_title(title, any(row.void for row in rows))
    return grid("discoveries", title, discovery_columns(run), map(discovery_line, rows)) if rows else None


def found_points_grid(run: ApolloRun) -> Grid | None:
    """Return the single points found in any setting; rows without a find are left out. None without p-values."""
    rows = run.result.discoveries
    body = [[row.setting, *discovery_line(row)] for row in rows if row.discoveries]
    rates = ", ".join(f"{rate:g}" for rate in dict.fromkeys(row.claimed_fdr for row in rows))
    title = f"Single points found at a promised false discovery rate of {rates}"
    title = void_title(title, any(row.void for row in rows if row.discoveries))
    if not body:
        title = f"No point is found at a promised false discovery rate of {rates}, by any attack"
    return grid("found-points", title, [left("setting"), *discovery_columns(run)], body) if rows else None


def discovery_columns(run: ApolloRun) -> list[object]:
    """Return the columns of ``discovery_line``."""
    level = f"[{percent(run.result.level, 0)}]"
    columns: list[object] = [left("unlearning"), left("attack"), left("access")]
    return [*columns, "promised FDR", "points found", f"found FDP {level}", f"power {level}"]


def discovery_line(row: DiscoveryRow) -> list[object]:
    """Return one row of discoveries; a found proportion whose interval lies above the promise is red.

    By p-values that do not hold nothing is found; what proportion was false stands, as the found rate does.
    """
    missed = row.fdp.above(row.claimed_fdr)
    found = entry(row.fdp, tone=red(missed)) if row.discoveries else Entry(DASH)
    names = words(row.unlearner), words(row.attack), words(row.access)
    if row.void:
        return [*names, f"{row.claimed_fdr:g}", VOID, found, VOID]
    return [*names, f"{row.claimed_fdr:g}", row.discoveries, found, entry(row.power)]


def three_way_grid(run: ApolloRun) -> Grid | None:
    """Return balanced accuracy over forgotten, retained and unseen points and the AUC of every pair of groups."""
    rows = [row for row in run.result.three_way if row.setting == run.main_setting]
    if not rows:
        return None
    level = f"[{percent(run.result.level, 0)}]"
    pairs = [f"{' / '.join(pair.groups)}\nAUC {level}" for pair in rows[0].pairs]
    body = [
        [
            words(row.unlearner),
            words(row.attack),
            entry(row.balanced_accuracy),
            *(entry(pair.auc) for pair in row.pairs),
        ]
        for row in rows
    ]
    columns = [left("unlearning"), left("attack"), f"balanced\naccuracy {level}", *pairs]
    return grid("three-groups", run.result.headed("Forgotten, retained or never seen"), columns, body)


def gain_grid(run: ApolloRun) -> Grid | None:
    """Return the pairs of attacks that are compared: mean AUC difference over targets, t interval, p."""
    body = [
        [
            words(gain.unlearner),
            words(gain.attack),
            words(gain.reference),
            difference_entry(gain.difference),
            small_p(gain.difference.p),
        ]
        for gain in search_gains(run)
    ]
    columns = [left("unlearning", merge=True), left("attack"), left("minus")]
    head = [*columns, f"difference of AUC [{percent(run.result.level, 0)}]", "p (paired t, uncorrected)"]
    return grid("gains", run.result.headed("Attacks compared, target by target"), head, body) if body else None


def paper_rule_grid(run: ApolloRun) -> Grid | None:
    """Return the paper's best τ on the judged points beside what permutations reach by the same procedure."""
    body = [
        [
            words(row.unlearner),
            words(row.attack),
            f"{row.best_tau:g}",
            number(row.best),
            f"{number(row.null_low)} to {number(row.null_high)}",
            small_p(row.p),
        ]
        for row in run.result.paper_rule
    ]
    columns = [left("unlearning", merge=True), left("rule"), "best τ", "balanced accuracy there"]
    title = run.result.headed("The paper’s rules and what chance makes of them")
    return grid("paper-rule", title, [*columns, "95 % of permutations", "p"], body) if body else None


def utility_grid(run: ApolloRun) -> Grid:
    """Return the means over targets of accuracies, distance and seconds, and which methods were flagged."""
    body = []
    for name in run.unlearners:
        use = run.utility(name)
        if not use.targets:
            continue
        given = run.result.given
        flags = ", ".join(
            flag if given else f"{flag} ({count} of {use.targets} targets)" for flag, count in use.flags.items()
        )
        accuracies = map(number, (use.retain_accuracy, use.forget_accuracy, use.test_accuracy))
        spent = (DASH if math.isnan(each) else f"{each:.2f}" for each in (use.distance, use.seconds))
        body.append(
            [
                unlearner(run, name) if given else run.called(name),
                *accuracies,
                *spent,
                Entry(flags, tone=red(bool(flags))),
            ]
        )
    columns = [left("unlearning"), "retained\npoints", "forgotten\npoints", "test\npoints", "distance\n‖θ_u − θ‖"]
    title = run.result.headed("Accuracy after unlearning" + ("" if run.result.given else ", means over targets"))
    return grid("utility", title, [*columns, "seconds\na model", left("flags")], body)


def radius_grid(run: ApolloRun) -> Grid | None:
    """Return unlearner × reference of Δ_r × side: intervals of radii, what labels say of them, and where they flipped.

    None without ``audit.radii``.
    """
    body = []
    for row in run.result.radii:
        moved = f"{row.median_unlearned_distance:.2f} / {row.median_retrained_distance:.2f}"
        for side, found in zip(WAYS, (row.under, row.over), strict=True):
            ends = bounds(Estimate(None, found.low, found.high)) or DASH
            expected, refuted, undecided = counts(row, side)
            flips = f"{found.flips} ({found.at_x})", number(found.flip), found.early
            said = expected, Entry(str(refuted), tone=red(refuted > 0)), undecided
            place = words(row.unlearner), REFERENCES[row.reference], moved, side.upper()
            body.append([*place, row.points, found.intervals, ends, *said, *flips])
    columns = [left("unlearning", merge=True), left("Δ_r to"), "Δ_u / Δ_r\n(medians)", left("side"), "points"]
    columns += ["with an\ninterval", "median\ninterval", "borne\nout", "refuted", "open"]
    columns += ["labels of θ_u flipped\n(at the point itself)", "median\nradius", "early"]
    return grid("radii", run.result.headed("Radii that the theory expects"), columns, body) if body else None


def closing_lines(run: ApolloRun) -> list[str]:
    """Return the lines below the tables of a terminal: broken promises first, then points that are found one by one."""
    return [*void_lines(run), *exposure_lines(run)]


def exposure_lines(run: ApolloRun) -> list[str]:
    """Return how many deleted points are found one by one, by method; nothing where none is, which is no all clear."""
    exposed = run.result.exposed
    if not exposed:
        return []
    names = dict.fromkeys(row.unlearner for row in run.result.table if row.control_of is None)
    place = exposed.setting, exposed.attack
    void = {row.unlearner for row in run.result.table if row.void and (row.setting, row.attack) == place}
    rows = [row for row in run.result.discoveries if (row.setting, row.attack) == place]
    listed = Counter(point.unlearner for point in exposed.points)  # the first versions had the list alone
    found = {row.unlearner: row.discoveries - row.false for row in rows} if rows else listed
    counted = {name: "void" if name in void else str(found.get(name, 0)) for name in names}
    told = ", ".join(f"{words(name)} {count}" for name, count in counted.items())
    head = f"deleted points that are found one by one ({words(exposed.attack)}, false discovery rate {exposed.fdr:g})"
    return [f"{head}: {told}"] if any(count != "0" for count in counted.values()) else []
