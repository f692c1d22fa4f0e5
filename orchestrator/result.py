"""What a finished run says, as written to result.json (schema ``orch.result/1``; see docs/result.md)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.details import budget_rows, details_of, heat_maps, paper_rule, radius_rows
from orchestrator.forget_requests import disclosure_rows
from orchestrator.report.reading import main_setting
from orchestrator.score_table import POOLED, REPETITION

if TYPE_CHECKING:
    import pyarrow as pa

    from orchestrator.schedule import Scheduler
    from orchestrator.setting import Setting
    from orchestrator.store import Store

SCHEMA = "orch.result/1"
DID_NOT_MOVE = 1e-3
SAME_ACCURACY = 0.005
UTILITY_LOST = 0.10
AVERAGED = ("retain_accuracy", "forget_accuracy", "test_accuracy", "test_accuracy_before", "distance")
PACKAGES = ("orch-audit", "torch", "torchvision", "ray", "mlflow", "numpy", "scipy", "scikit-learn", "pyarrow")


def summed_up(
    name: str,
    settings: Sequence[Setting],
    scores: pa.Table,
    store: Store,
    scheduler: Scheduler,
    counts: Mapping[str, int],
) -> dict[str, Any]:
    """Return the document of a run: table, utility, controls and everything needed to run it again."""
    from audits.evaluation.discoveries import discovery_rows
    from audits.evaluation.null import expected_misses
    from audits.evaluation.summary import holm_overview, summarise
    from audits.evaluation.three_way import three_way_rows

    plan = scheduler.plan
    columns = {column: scores[column].to_numpy() for column in scores.column_names}
    table = summarise(
        columns,
        plan.audit.fpr,
        level=plan.audit.level,
        bootstrap=plan.audit.bootstrap,
        permutations=plan.audit.permutations,
        seed=plan.seed,
    )
    changes = [{"setting": setting.name, "overrides": dict(setting.overrides)} for setting in settings]
    first = table[0]["setting"]
    main = first if first == POOLED else main_setting(plan.resolved(), changes)
    shown = {(row["unlearner"], row["attack"]) for row in table if row["setting"] == main}
    repeated = settings if main == POOLED else [setting for setting in settings if setting.name == main]
    details = details_of(repeated, store)
    requests, correlations = disclosure_rows(columns, settings, store, main, plan.audit.level)
    return {
        "schema": SCHEMA,
        "name": name,
        "kind": plan.audit.kind,
        "seed": plan.seed,
        "settings": [*([{"setting": POOLED, "overrides": {}}] if first == POOLED else []), *changes],
        "table": table,
        "discoveries": discovery_rows(columns, plan.audit.fdr, plan.audit.level),
        "exposed": exposed(columns, plan.audit.attacks, plan.audit.fdr, main),
        "three_way": three_way_rows(columns, plan.audit.level),
        "utility": utility_rows(repeated, store),
        "setting_utility": [] if first == POOLED else setting_utility(settings, store),
        "heatmap": heat_maps(details),
        "paper_rule": paper_rule(details, plan.audit.permutations, plan.audit.level, plan.seed),
        "budget": budget_rows(details, plan.audit.fpr[0], plan.audit.level),
        "radii": radius_rows(repeated, store),
        "disclosure": requests,
        "disclosure_correlations": correlations,
        "warnings": list(dict.fromkeys([*plan.warnings, *scheduler.partition.warnings, *control_warnings(table)])),
        "notes": list(plan.notes),
        "population": dict(counts),
        "holm": holm_overview(table, plan.audit.level),
        "expected_misses": expected_misses(len(shown), plan.audit.level),
        "plan": plan.resolved(),
        "plan_hash": plan.plan_hash,
        "versions": versions(),
    }


def exposed(columns: Mapping[str, Any], attacks: Sequence[str], fdr: float, setting: str) -> dict[str, Any]:
    """Return the forgotten points that are still detectable one by one, and by whom (``discoveries.judge``)."""
    from audits.evaluation.discoveries import exposed_points, judge

    attack = judge(attacks)
    points = exposed_points(columns, attack, fdr, setting)
    return {"setting": setting, "attack": attack, "fdr": fdr, "dependence": "positive", "points": points}


def setting_utility(settings: Sequence[Setting], store: Store) -> list[dict[str, Any]]:
    """Return setting × unlearning method: utility averaged over targets, where settings differ in their models."""
    models = {frozenset(job.key for job in setting.jobs.utility_units) for setting in settings}
    if len(models) < 2:
        return []
    found = []
    for setting in settings:
        rows = utility_rows([setting], store)
        for label in dict.fromkeys(row["unlearner"] for row in rows):
            own = [row for row in rows if row["unlearner"] == label]
            means = {name: float(np.mean([row[name] for row in own])) for name in AVERAGED}
            found.append({"setting": setting.name, "unlearner": label, "targets": len(own), **means})
    return found


def utility_rows(settings: Sequence[Setting], store: Store) -> list[dict[str, Any]]:
    """Return one row for each unlearning method × target, flagged when it did not move or lost its utility."""
    import json

    from orchestrator.stages import METRICS

    rows = []
    for place, setting in enumerate(settings):
        for job in setting.jobs.utility_units:
            found = json.loads(store.get("utility", job.key).read(METRICS))
            found["flag"] = flag(found, str(job.document["method"]))
            target = REPETITION * place + int(job.member.rpartition("-")[2])
            rows.append({"unlearner": job.label, "target": target, **found})
    return rows


def flag(found: Mapping[str, float], method: str) -> str:
    """Return "did not move", "utility lost" or an empty string (the control ``identity`` must not move).

    Not moved: ‖θ_u − θ‖ below 1/1000 of ‖θ‖ and test accuracy within half a point of the model's before unlearning
    (deep nets change their mind over short distances). Lost: test accuracy 10 points below it.
    """
    same = abs(found["test_accuracy"] - found["test_accuracy_before"]) <= SAME_ACCURACY
    if method != "identity" and same and found["distance"] < DID_NOT_MOVE * found["norm"]:
        return "did not move"
    if found["test_accuracy"] < found["test_accuracy_before"] - UTILITY_LOST:
        return "utility lost"
    return ""


def control_warnings(table: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a warning for each attack under which the control ``retrain`` does not sit at chance (after Holm)."""
    rows = {(row["setting"], row["attack"]): row for row in table if row["unlearner"] == "retrain"}
    return [
        f"control failed: {attack} against retrain (setting {setting}) has AUC {row['auc']:.3f}, p = "
        f"{row['auc_p_holm']:.3g} after Holm; what it finds elsewhere may not come from unlearning"
        for (setting, attack), row in rows.items()
        if row["auc_p_holm"] < 0.05
    ]


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that take part."""
    found = {"python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
