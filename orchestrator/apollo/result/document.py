"""The content of result.json of an Apollo run (schema ``orch.result/2``; see docs/reference/result.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.statistics.discoveries import discovery_rows, exposed_points, judge_among
from audits.statistics.null import expected_misses
from audits.statistics.summary import Row, cells, holm_overview, summarise
from audits.statistics.three_way import three_way_rows
from orchestrator.apollo.result.details import budget_rows, details_of, heat_maps, paper_rule, radius_rows
from orchestrator.apollo.result.forget_requests import disclosure_rows
from orchestrator.apollo.result.front import can_be_told, front_of
from orchestrator.apollo.result.judging import judge
from orchestrator.apollo.result.one_target import of_one_target, told_of_target
from orchestrator.apollo.result.rows import (
    ApolloResult,
    AttackRow,
    DiscoveryRow,
    ExposedPoint,
    ExposureList,
    Front,
    HolmFamily,
    SettingUtilityRow,
    ThreeWayRow,
    UtilityRow,
)
from orchestrator.apollo.score_table import POOLED, REPETITION
from orchestrator.engine.plan.shadows import unlike_shadows
from orchestrator.engine.run.attempts import failed_attacks, failure_warnings
from orchestrator.engine.run.models import METRICS
from orchestrator.judgement.wording import warnings as control_warnings
from orchestrator.report.best import best_rows
from orchestrator.report.result import SettingRow, head_of, main_setting
from orchestrator.report.rows import read_row, read_rows

if TYPE_CHECKING:
    from orchestrator.apollo.plan import UnlearningMethod
    from orchestrator.engine.kind import Finished
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store

DID_NOT_MOVE = 1e-3
SAME_ACCURACY = 0.005
UTILITY_LOST = 0.10


def summed_up(finished: Finished) -> dict[str, Any]:
    """Return the content of result.json: tables, utility, controls and everything needed to run again."""
    settings, scores, store = finished.settings, finished.scores, finished.store
    plan = finished.design.plan
    columns = {column: scores[column].to_numpy() for column in scores.column_names}
    table = summarise(
        columns,
        plan.audit.fpr,
        level=plan.audit.level,
        bootstrap=plan.audit.bootstrap,
        permutations=plan.audit.permutations,
        seed=plan.seed,
        groups=finished.design.data.groups,
    )
    table = with_methods(table, settings, plan.unlearning)
    if plan.target is not None:
        table = of_one_target(table, columns, settings, store, plan.audit.level)
    lost = failure_warnings(failed_attacks(settings, store), len(settings))
    unlike = {setting.name for setting in settings if unlike_shadows(setting.plan)}
    unlike |= {POOLED} if unlike else set()
    rows = tuple(read_rows(AttackRow, table, "table"))
    changes = [SettingRow(setting=setting.name, overrides=dict(setting.overrides)) for setting in settings]
    first = rows[0].setting
    main = first if first == POOLED else finished.main or main_setting(plan.resolved(), changes)
    shown = {(row.unlearner, row.attack) for row in rows if row.setting == main}
    repeated = settings if main == POOLED else [setting for setting in settings if setting.name == main]
    details = details_of(repeated, store)
    requests, correlations = disclosure_rows(columns, settings, store, main, plan.audit.level)
    notes, misfits = told_of_target(settings, store)
    warnings = [*misfits, *plan.warnings, *shadow_warnings(settings, plan.warnings), *finished.design.warnings, *lost]
    found = ApolloResult(
        **head_of(finished),
        settings=(*([SettingRow(setting=POOLED, overrides={})] if first == POOLED else []), *changes),
        table=rows,
        discoveries=read_rows(DiscoveryRow, discovery_rows(columns, plan.audit.fdr, plan.audit.level), "discoveries"),
        exposed=exposed(columns, plan.audit.attacks, plan.audit.fdr, main),
        three_way=read_rows(ThreeWayRow, three_way_rows(columns, plan.audit.level), "three_way"),
        utility=tuple(utility_rows(repeated, store)),
        setting_utility=() if first == POOLED else tuple(setting_utility(settings, store)),
        heatmap=heat_maps(details),
        paper_rule=()
        if finished.design.data.groups is not None  # its band permutes single points
        else tuple(paper_rule(details, plan.audit.permutations, plan.audit.level, plan.seed)),
        budget=tuple(budget_rows(details, plan.audit.fpr[0], plan.audit.level)),
        radii=tuple(radius_rows(repeated, store)),
        disclosure=tuple(requests),
        disclosure_correlations=tuple(correlations),
        best=()
        if first == POOLED or finished.adaptive
        else best_rows(cells(columns), plan.audit, plan.seed, finished.design.data.groups),
        front=traded(finished, columns),
        notes=(*plan.notes, *notes),
        holm={
            setting: read_row(HolmFamily, family, "holm")
            for setting, family in holm_overview(table, plan.audit.level).items()
        },
        expected_misses=expected_misses(len(shown), plan.audit.level),
    )
    found = judge(found, unlike)
    said = dict.fromkeys([*warnings, *control_warnings(found.controls)])
    return replace(found, warnings=tuple(said)).document()


def with_methods(table: Sequence[Row], settings: Sequence[Setting], methods: Sequence[UnlearningMethod]) -> list[Row]:
    """Return rows that name the unlearning method where the plan of their setting gives it another name.

    ``methods``: those of rows that join the settings.
    """
    made = {(POOLED, entry.label): entry.method for entry in methods}
    for setting in settings:
        made |= {(setting.name, entry.label): entry.method for entry in setting.plan.unlearning}  # type: ignore[attr-defined]  # of Apollo
    other = ({"method": made[row["setting"], row["unlearner"]]} for row in table)
    return [row | name if name["method"] != row["unlearner"] else row for row, name in zip(table, other, strict=True)]


def traded(finished: Finished, columns: Mapping[str, Any]) -> Front | None:
    """Return the trade of a sweep that names one, or of a search with two metrics that are one."""
    if finished.trade is None or not can_be_told(finished.trade):
        return None
    plan = finished.design.plan
    utility = {setting.name: utility_rows([setting], finished.store) for setting in finished.settings}
    audit = plan.audit
    return front_of(finished.trade, columns, utility, level=audit.level, draws=audit.bootstrap, seed=plan.seed)


def shadow_warnings(settings: Sequence[Setting], said: Sequence[str]) -> list[str]:
    """Return the settings whose shadows are trained unlike their targets; nothing of what the plan has ``said``."""
    found: dict[str, list[str]] = {}
    for setting in settings:
        for line in unlike_shadows(setting.plan):
            found.setdefault(line, []).append(setting.name)
    return [
        f"{'setting' if len(names) == 1 else 'settings'} {', '.join(names)}: {line}"
        for line, names in found.items()
        if line not in said
    ]


def exposed(columns: Mapping[str, Any], attacks: Sequence[str], fdr: float, setting: str) -> ExposureList:
    """Return the forgotten points that are still detectable one by one, and by whom (``discoveries.judge_among``)."""
    attack = judge_among(attacks)
    points = read_rows(ExposedPoint, exposed_points(columns, attack, fdr, setting), "exposed.points")
    return ExposureList(setting=setting, attack=attack, fdr=fdr, dependence="positive", points=points)


def setting_utility(settings: Sequence[Setting], store: Store) -> list[SettingUtilityRow]:
    """Return setting × unlearning method: utility averaged over targets, where settings differ in their models."""
    models = {frozenset(job.key for job in setting.of("utility")) for setting in settings}
    if len(models) < 2:
        return []
    averaged = ("retain_accuracy", "forget_accuracy", "test_accuracy", "test_accuracy_before", "distance")
    found = []
    for setting in settings:
        rows = utility_rows([setting], store)
        for label in dict.fromkeys(row.unlearner for row in rows):
            own = [row for row in rows if row.unlearner == label]
            told = [name for name in averaged if all(getattr(row, name) is not None for row in own)]
            means = {name: float(np.mean([getattr(row, name) for row in own])) for name in told}
            found.append(SettingUtilityRow(setting=setting.name, unlearner=label, targets=len(own), **means))
    return found


def utility_rows(settings: Sequence[Setting], store: Store) -> list[UtilityRow]:
    """Return one row for each unlearning method × target, flagged when it did not move or lost its utility."""
    rows = []
    for place, setting in enumerate(settings):
        for job in setting.of("utility"):
            found = json.loads(store.get("utility", job.key).read(METRICS))
            target = REPETITION * place + int(job.member.rpartition("-")[2])
            told = {"unlearner": job.label, "target": target, "flag": flag(found, str(job.document["method"]))}
            rows.append(read_row(UtilityRow, told | found, f"utility of {job.member}"))
    return rows


def flag(found: Mapping[str, float], method: str) -> str:
    """Return "did not move", "utility lost" or an empty string (the control ``identity`` must not move).

    Not moved: ‖θ_u − θ‖ below 1/1000 of ‖θ‖ and test accuracy within half a point of the model's before unlearning
    (deep nets change their mind over short distances). Lost: test accuracy 10 points below it.
    """
    if "test_accuracy_before" not in found:
        return ""
    same = abs(found["test_accuracy"] - found["test_accuracy_before"]) <= SAME_ACCURACY
    if method != "identity" and same and "distance" in found and found["distance"] < DID_NOT_MOVE * found["norm"]:
        return "did not move"
    if found["test_accuracy"] < found["test_accuracy_before"] - UTILITY_LOST:
        return "utility lost"
    return ""
