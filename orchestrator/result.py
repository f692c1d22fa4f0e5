"""What a finished run says, as written to result.json (schema ``orch.result/1``; see docs/result.md)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.score_table import POOLED, REPETITION

if TYPE_CHECKING:
    import pyarrow as pa

    from orchestrator.pipeline import Setting
    from orchestrator.schedule import Scheduler
    from orchestrator.store import Store

SCHEMA = "orch.result/1"
DID_NOT_MOVE = 1e-3
UTILITY_LOST = 0.10
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
    from audits.evaluation.null import expected_misses
    from audits.evaluation.summary import holm_overview, summarise

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
    first = table[0]["setting"]
    shown = {(row["unlearner"], row["attack"]) for row in table if row["setting"] == first}
    changes = [{"setting": setting.name, "overrides": dict(setting.overrides)} for setting in settings]
    repeated = settings if first == POOLED else settings[:1]
    details = details_of(repeated, store)
    return {
        "schema": SCHEMA,
        "name": name,
        "kind": plan.audit.kind,
        "seed": plan.seed,
        "settings": [*([{"setting": POOLED, "overrides": {}}] if first == POOLED else []), *changes],
        "table": table,
        "utility": utility_rows(repeated, store),
        "heatmap": heat_maps(details),
        "paper_rule": paper_rule(details, plan.audit.permutations, plan.audit.level, plan.seed),
        "warnings": list(dict.fromkeys([*plan.warnings, *scheduler.partition.warnings, *control_warnings(table)])),
        "notes": list(plan.notes),
        "population": dict(counts),
        "holm": holm_overview(table, plan.audit.level),
        "expected_misses": expected_misses(len(shown), plan.audit.level),
        "plan": plan.resolved(),
        "plan_hash": plan.plan_hash,
        "versions": versions(),
    }


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

    Not moved: ‖θ_u − θ‖ below 1/1000 of ‖θ‖. Lost: test accuracy 10 points below the model's before unlearning.
    """
    if method != "identity" and found["distance"] < DID_NOT_MOVE * found["norm"]:
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


def details_of(settings: Sequence[Setting], store: Store) -> dict[str, list[dict[str, Any]]]:
    """Return the stored details of each unlearning method, one entry per setting and shadow set."""
    from orchestrator.stages import DETAILS
    from orchestrator.store import unpack_arrays

    found: dict[str, list[dict[str, Any]]] = {}
    for place, setting in enumerate(settings):
        for job in setting.jobs.score_units:
            part = unpack_arrays(store.get("score", job.key).read(DETAILS))
            found.setdefault(job.label, []).append(part | {"target": part["target"] + REPETITION * place})
    return found


def heat_maps(details: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return, for each method, TPR and FPR over pairs of UNDER and OVER radii (Apollo's Fig. 5)."""
    maps = {}
    for label, parts in details.items():
        forget = sum(int(part["forgotten"].sum()) for part in parts)
        unseen = sum(int((~part["forgotten"]).sum()) for part in parts)
        maps[label] = {
            "under_radius": np.mean([part["heat.under_radius"] for part in parts], axis=0).tolist(),
            "over_radius": np.mean([part["heat.over_radius"] for part in parts], axis=0).tolist(),
            "tpr": (np.sum([part["heat.forget"] for part in parts], axis=0) / forget).tolist(),
            "fpr": (np.sum([part["heat.unseen"] for part in parts], axis=0) / unseen).tolist(),
        }
    return maps


def paper_rule(
    details: Mapping[str, Sequence[Mapping[str, Any]]], draws: int, level: float, seed: int
) -> list[dict[str, Any]]:
    """Return, for each method, the paper's best threshold on the judged points and where chance would put it.

    ``best``: largest balanced accuracy over τ and the rules UNDER and OVER; ``null_low``, ``null_high``: where it falls
    when forget and unseen are permuted within targets; ``p``: one-sided.
    """
    from audits.attacks.apollo_paper import best_threshold
    from audits.evaluation.null import null_band

    rows = []
    for label, parts in details.items():
        said = np.concatenate([part["said"] for part in parts], axis=-1)
        forgotten = np.concatenate([part["forgotten"] for part in parts])
        target = np.concatenate([part["target"] for part in parts])
        band = null_band(
            lambda truth, said=said: best_threshold(said, truth),  # type: ignore[misc]  # a default binds the loop's value
            forgotten,
            target,
            draws=min(draws, 500),
            level=level,
            seed=seed,
        )
        found = {"unlearner": label, "best": band.value, "null_low": band.low, "null_high": band.high, "p": band.p}
        rows.append(found)
    return rows


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that take part."""
    found = {"python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
