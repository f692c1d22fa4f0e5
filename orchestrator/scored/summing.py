"""Sum up scores from elsewhere: what ``audits.statistics.summary`` says of them, rates, values and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from audits.statistics import controls, intervals, null
from audits.statistics.chance import ABOVE, standing
from audits.statistics.judged import Judged, rows_by
from audits.statistics.rank_sums import permutation_p_of
from audits.statistics.roc import auc
from audits.statistics.summary import Cell, Row, summarise_cells
from orchestrator.engine.run.result_head import versions
from orchestrator.judgement.wording import warnings as control_warnings
from orchestrator.report.result import SettingRow
from orchestrator.report.rows import read_row
from orchestrator.scored.attacks import Attack
from orchestrator.scored.epsilons import bounds, unbounded
from orchestrator.scored.judging import judge
from orchestrator.scored.options import Options
from orchestrator.scored.rates import GIVEN, HELD_OUT, counts_of, decisions_at, own_rule, rates_of, read_off, values_of
from orchestrator.scored.reading import Scores
from orchestrator.scored.rows import DecisionRow, EpsilonRow, ScoreResult, ScoreRow, ValueRow

NAME = "scores"


def summed_up(scores: Scores, options: Options, command: str) -> tuple[ScoreResult, list[Attack]]:
    """Return the result, and the attacks with the decisions that their rates rest on."""
    attacks = [_in_order(attack) for attack in scores.attacks]
    rules: list[DecisionRow] = []
    values: list[ValueRow] = []
    decided = []
    for attack in attacks:
        judged = attack.judged
        made = {rate: decisions_at(judged, rate, options.seed) for rate in rates_of(judged, options)}
        decided.append((judged, made))
        row, worth = own_rule(judged, options)
        rules += row
        values += [
            each
            for rate, (calls, _) in made.items()
            for each in values_of(judged, counts_of(judged, calls), rate, options)
        ]
        values += worth
    tables = table_rows(decided, options)
    judged_all = [attack.judged for attack in attacks]
    reason = unbounded(attacks)
    epsilons: list[EpsilonRow] = [] if reason else [row for judged in judged_all for row in bounds(judged, options)]
    settings = tuple(
        SettingRow(setting=name, overrides={}) for name in dict.fromkeys(each.setting for each in judged_all)
    )
    result = ScoreResult(
        name=NAME,
        kind=ScoreResult.KIND,
        seed=options.seed,
        settings=settings,
        warnings=tuple(warnings_of(judged_all)),
        notes=scores.notes,
        plan={"files": [dict(each) for each in scores.sources], "options": options.resolved()},
        versions=versions(),
        table=tuple(tables),
        decisions=tuple(rules),
        predictive_values=tuple(values),
        epsilons=tuple(epsilons),
        no_epsilon=reason,
        covers=covers(judged_all, options.level),
        layout=scores.layout,
        level=options.level,
        command=command,
    )
    result = judge(result)
    result = replace(result, warnings=(*result.warnings, *control_warnings(result.controls)))
    kept = [
        replace(
            attack,
            judged=replace(
                judged, decisions={**judged.decisions, **{f"{rate:g}": calls for rate, (calls, _) in made.items()}}
            ),
            held_out=frozenset(f"{rate:g}" for rate, (_, whose) in made.items() if whose == HELD_OUT),
        )
        for attack, (judged, made) in zip(attacks, decided, strict=True)
    ]
    return result, kept


def _in_order(attack: Attack) -> Attack:
    """Return an attack whose rows stand by target and point, so that the order of the file draws nothing."""
    judged = attack.judged
    points = np.arange(len(judged.scores)) if judged.point is None else judged.point
    return replace(attack, judged=judged.on(np.lexsort((points, judged.target))))


def table_rows(decided: Sequence[tuple[Judged, dict[float, tuple[Any, str]]]], options: Options) -> list[ScoreRow]:
    """Return the rows of the table, in the order of the attacks; Holm's correction is over those of a setting."""
    by_rates: dict[tuple[float, ...], list[int]] = {}
    for place, (_, made) in enumerate(decided):
        by_rates.setdefault(tuple(made), []).append(place)
    found: dict[int, list[Row]] = {}
    for rates, places in by_rates.items():
        cells = [cell_of(*decided[place]) for place in places]
        rows = summarise_cells(cells, rates, level=options.level, seed=options.seed, permute=permutation_p_of)
        for row in rows:
            place = next(p for p in places if decided[p][0].place == (row["setting"], row["attack"]))
            found.setdefault(place, []).append(row)
    listed = [
        (place, row) for place in range(len(decided)) for row in _clustered(decided[place][0], found[place], options)
    ]
    corrected = _holm([(decided[place][0].place, row) for place, row in listed], options.level)
    return [row_of(*decided[place], row, options.level) for (place, _), row in zip(listed, corrected, strict=True)]


def cell_of(judged: Judged, made: dict[float, tuple[Any, str]]) -> Cell:
    """Return an attack's scores as a cell of our own tables."""
    columns = {
        "score": judged.scores,
        "group": np.where(judged.member, "forget", "unseen"),
        "target": judged.target,
        "point_id": np.arange(len(judged.scores)),
        "access": np.array([""]),
        "queries": np.zeros(1),
        **{f"decision_{rate:g}": calls for rate, (calls, _) in made.items()},
    }
    return Cell(judged.setting, "", judged.attack, columns)


def _clustered(judged: Judged, rows: list[Row], options: Options) -> list[Row]:
    """Return rows whose AUC and its interval are over clusters of targets, where targets hang together."""
    if judged.cluster is None:
        return rows
    means = [
        float(
            np.mean([auc(judged.scores[unit][own], judged.member[unit][own]) for own in rows_by(judged.target[unit])])
        )
        for unit in rows_by(judged.cluster)
    ]
    area = float(np.mean(means))
    if len(means) < 2:
        return [{**row, "auc": area} for row in rows]
    low, high = intervals.ibragimov_mueller_t(means, options.level)
    p = controls.interval_p(area, low, high, 0.5, options.level, len(means) - 1)
    return [{**row, "auc": area, "auc_low": max(0.0, low), "auc_high": min(1.0, high), "auc_p": p} for row in rows]


def _holm(listed: Sequence[tuple[tuple[str, str], Row]], level: float) -> list[Row]:
    """Return rows with Holm's correction over the attacks of each setting."""
    raw = {place: row["auc_p"] for place, row in listed}
    adjusted: dict[tuple[str, str], float] = {}
    for setting in {place[0] for place in raw}:
        own = [place for place in raw if place[0] == setting]
        adjusted |= dict(zip(own, null.holm([raw[place] for place in own]).tolist(), strict=True))
    return [
        {
            **row,
            "auc_p_holm": adjusted[place],
            "above_chance": standing(row["auc"], row["auc_low"], adjusted[place], level) == ABOVE,
        }
        for place, row in listed
    ]


def row_of(judged: Judged, made: dict[float, tuple[Any, str]], row: Row, level: float) -> ScoreRow:
    """Return a row of the summary as a row of the result."""
    rate = row["promised_fpr"]
    counts = counts_of(judged, made[rate][0])
    told = {name: row[name] for name in ("setting", "attack", "auc_pooled", "auc_p", "auc_p_holm", "above_chance")}
    told |= {name: row[name] for name in ("auc", "auc_low", "auc_high", "promised_fpr", "targets")}
    ends = ("", "_low", "_high")
    told |= {f"{name}{end}": row[f"{name}{end}"] for name in ("tpr", "found_fpr") for end in ends}
    if judged.cluster is not None:
        for name, hits, sizes in (("tpr", *counts[:2]), ("found_fpr", *counts[2:])):
            low, high = intervals.clustered_rate(hits, sizes, level)
            told |= {f"{name}_low": low, f"{name}_high": high}
    told |= {
        "thresholds": made[rate][1],
        "other_targets_tpr": row["roc_tpr"],
        "roc_tpr": float(read_off(judged, [rate])[0]),
        "members": row["forget"],
        "non_members": row["unseen"],
        "found_fpr_p": controls.clustered_rate_p(*counts[2:], rate, level) if made[rate][1] == GIVEN else None,
    }
    return read_row(ScoreRow, told, "table")


def covers(found: Sequence[Judged], level: float) -> str:
    """Return in a sentence what the intervals let vary."""
    units = {len(rows_by(judged.unit)) for judged in found}
    share = f"{level:.0%}"
    if max(units) == 1:
        return (
            f"The {share} intervals are over the points that one target was asked about: they say nothing about other "
            "targets, other trainings, or another draw of what the attack has learned."
        )
    if min(units) == 1:
        return (
            f"The {share} intervals are over targets where an attack has several, over points where it has one; those "
            "say nothing about other targets."
        )
    count = f"{min(units)}" if min(units) == max(units) else f"{min(units)} to {max(units)}"
    if any(judged.cluster is not None for judged in found):
        count += " groups of"
    return (
        f"The {share} intervals are over {count} targets: another target trained in the same way is likely to fall in "
        "with them. What all targets share, such as the attacker’s own models, is held."
    )


def warnings_of(found: Sequence[Judged]) -> list[str]:
    """Return what weakens the result."""
    few = sorted({len(rows_by(judged.unit)) for judged in found} & {2, 3, 4})
    if not few:
        return []
    return [f"intervals over {few[0]} targets are wide: Student’s t with {few[0] - 1} degrees of freedom"]
