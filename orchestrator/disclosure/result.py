"""What a finished disclosure audit says, as written to result.json (schema ``orch.result/1``; see docs/result.md)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.disclosure.arm_rows import arms, at_random, comparisons, table
from orchestrator.disclosure.defending import DIVERGED
from orchestrator.disclosure.gathering import Assessments, Row, mean
from orchestrator.disclosure.inversion_rows import (
    inversion_gains,
    inversion_pictures,
    inversion_warnings,
    inversions,
    read_likeness,
)
from orchestrator.disclosure.plan import NONE
from orchestrator.disclosure.prediction_rows import bins, correlations, gains, levels, points, traces

if TYPE_CHECKING:
    import pyarrow as pa

    from orchestrator.disclosure.plan import DisclosurePlan
    from orchestrator.disclosure.schedule import DisclosureScheduler
    from orchestrator.setting import Setting
    from orchestrator.store import Store

INVERTED = ("inversions", "inversion_gains", "inversion_pictures")
"""What is there with ``audit.inversion``; else empty."""
WRECKED = 0.5
"""Share of the test accuracy without defence below which a model counts as wrecked."""


def summed_up(
    name: str,
    settings: Sequence[Setting],
    scores: pa.Table,
    store: Store,
    scheduler: DisclosureScheduler,
    counts: Mapping[str, int],
) -> Row:
    """Return the document of a run: arms, AUCs, comparisons, what scores predict, and all that is needed to repeat."""
    from orchestrator.result import SCHEMA, versions

    plan = scheduler.plan
    fields = ("arms", "table", "comparisons", "correlations", "gains", "bins", "levels", "points", "traces", *INVERTED)
    rows: dict[str, list[Row]] = {field: [] for field in fields}
    warnings = list(plan.warnings)
    for setting in settings:
        found = read(setting, store)
        level = setting.plan.audit.level
        parts = {
            "table": table(found, level),
            "correlations": correlations(found[NONE], level),
            "gains": gains(found[NONE], level),
            "bins": bins(found[NONE], setting.plan, level),
            "levels": levels(scores, setting.name, level),
            "points": points(found[NONE]),
            "traces": traces(found[NONE]),
        }
        likeness = read_likeness(setting, store)
        parts |= {
            "inversions": inversions(likeness, level),
            "inversion_gains": inversion_gains(likeness, at_random(setting.plan), level),
            "inversion_pictures": inversion_pictures(setting, store, scheduler.data),
        }
        fitted = fits(setting, store, found)
        parts["arms"] = arms(setting.plan, found, fitted, parts["table"], level)
        parts["comparisons"] = comparisons(setting.plan, found, fitted, level)
        for field, these in parts.items():
            rows[field] += [{"setting": setting.name, **row} for row in these]
        own = [line for line in setting.plan.warnings if line not in plan.warnings]
        said = [
            *own,
            *diverged_warnings(setting, store),
            *control_warnings(parts["table"], level),
            *fit_warnings(fitted),
            *inversion_warnings(likeness),
        ]
        warnings += [f"setting {setting.name}: {line}" for line in said]
    notes = dict.fromkeys([*plan.notes, *(line for setting in settings for line in setting.plan.notes)])
    return {
        "schema": SCHEMA,
        "name": name,
        "kind": plan.kind,
        "seed": plan.seed,
        "settings": [{"setting": setting.name, "overrides": dict(setting.overrides)} for setting in settings],
        **rows,
        "warnings": list(dict.fromkeys(warnings)),
        "notes": list(notes),
        "population": dict(counts),
        "level": plan.audit.level,
        "plan": plan.resolved(),
        "plan_hash": plan.plan_hash,
        "versions": versions(),
    }


def read(setting: Setting, store: Store) -> Assessments:
    """Return what stage assess left of the arms that could be judged in every pool, pool by pool."""
    found = read_all(setting, store)
    return {arm: pools for arm, pools in found.items() if not any(DIVERGED in pool for pool in pools)}


def read_all(setting: Setting, store: Store) -> Assessments:
    """Return what stage assess left, pool by pool: what attacks say, or that trainings diverged."""
    from orchestrator.disclosure.assessing import ASSESSMENT

    found: Assessments = {}
    for job in setting.jobs.score_units:
        found.setdefault(job.label, []).append(json.loads(store.get("assess", job.key).read(ASSESSMENT)))
    return found


def diverged_warnings(setting: Setting, store: Store) -> list[str]:
    """Return a line for each arm whose training diverged: for how many models, how, and what to do."""
    plan: DisclosurePlan = setting.plan  # type: ignore[assignment]  # plans of this kind are
    lines = []
    for arm, pools in read_all(setting, store).items():
        lost = {model["model"]: model["error"] for pool in pools for model in pool.get(DIVERGED, ())}
        defence = plan.arms[arm]
        if not lost or defence is None:
            continue
        place = f"defences.{list(plan.arms).index(arm) - 1}"  # the first arm is no defence
        rate = f"{place}.recipe.learning_rate" if defence.recipe else "recipe.learning_rate"
        calmer = f" or {place}.strength" if defence.method == "noise" else ""
        models = sum(job.label == arm for job in setting.jobs.unlearn_jobs)
        name, error = next(iter(lost.items()))
        lines.append(
            f"arm {arm} is not judged: {len(lost)} of its {models} models could not be trained ({name}: {error}: "
            f"{rate}{calmer})"
        )
    return lines


def fits(setting: Setting, store: Store, judged: Collection[str]) -> dict[str, list[list[Row]]]:
    """Return arm → pool → what was measured of its targets; nothing of arms that are not ``judged``."""
    from orchestrator.stages import METRICS

    found: dict[str, list[list[Row]]] = {arm: [] for arm in setting.plan.arms}  # type: ignore[attr-defined]  # plans of this kind have arms
    for job in (*setting.jobs.train_jobs, *setting.jobs.unlearn_jobs):
        pool, group, _ = job.member.split("-")
        if group == "target" and (job.label or NONE) in judged:
            pools = found[job.label or NONE]
            if len(pools) <= int(pool):
                pools.append([])
            pools[int(pool)].append(json.loads(store.get(job.stage, job.key).read(METRICS)))
    for job in setting.jobs.look_units:
        pool, group, index = job.member.split("-")
        if group == "target" and job.shard < 0:
            model = found[NONE][int(pool)][int(index)]
            seen = json.loads(store.get(job.stage, job.key).read(METRICS))
            model["doubts"] = model.get("doubts", 0) + seen["doubts"]
    return found


def control_warnings(rows: Sequence[Row], level: float) -> list[str]:
    """Return a warning where attacks tell apart points that the judged models never saw."""
    tested = [row for row in rows if row["moment"] == "fresh" and row["group"] != "kept_unfiltered"]
    tested = [row for row in tested if row["auc_low"] is not None]
    off = [row for row in tested if not row["auc_low"] <= 0.5 <= row["auc_high"]]
    if not off:
        return []
    listed = ", ".join(
        f"{row['attack']} ({row['shadows']}) on {row['group']} of {row['arm']} {row['auc']:.3f}" for row in off
    )
    return [
        f"fresh models, which saw no point of the pool, are not at chance in {len(off)} of {len(tested)} cells "
        f"({listed}); by luck about {(1 - level) * len(tested):.1f}"
    ]


def fit_warnings(fitted: Mapping[str, list[list[Row]]]) -> list[str]:
    """Return a warning where a defence wrecked the model, or mode pinv was not certain of a rank."""
    found = {arm: [model for pool in pools for model in pool] for arm, pools in fitted.items()}
    base = mean(model["test_accuracy"] for model in found[NONE])
    lines = []
    for arm, models in found.items():
        if not models:
            continue  # diverged: told elsewhere
        accuracy = mean(model["test_accuracy"] for model in models)
        if accuracy < WRECKED * base:
            lines.append(f"arm {arm} wrecks the model: test accuracy {accuracy:.3f}, without defence {base:.3f}")
    if doubts := sum(model.get("doubts", 0) for model in found[NONE]):
        lines.append(
            f"mode pinv was not certain of the rank of the gradients at {doubts} checkpoints or batches of targets"
        )
    return lines
