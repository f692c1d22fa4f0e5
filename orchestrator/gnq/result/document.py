"""The content of result.json of a GNQ run (schema ``orch.result/2``; see docs/reference/result.md)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orchestrator.engine.run.attempts import failed_attacks, failure_warnings
from orchestrator.engine.run.models import METRICS
from orchestrator.gnq.plan import NONE
from orchestrator.gnq.result.arms import arms, at_random, comparisons, epsilons, table
from orchestrator.gnq.result.gather import Assessments, Found, mean
from orchestrator.gnq.result.gradient_inversions import (
    gradient_inversion_gains,
    gradient_inversion_pictures,
    gradient_inversion_warnings,
    gradient_inversions,
    read_recovered,
    recovery_correlations,
    recovery_gains,
)
from orchestrator.gnq.result.inversions import (
    inversion_gains,
    inversion_pictures,
    inversion_warnings,
    inversions,
    read_likeness,
)
from orchestrator.gnq.result.judging import judge
from orchestrator.gnq.result.predictions import bins, correlations, gains, levels, points, traces
from orchestrator.gnq.result.rows import GnqResult
from orchestrator.gnq.result.seeds import seed_rows
from orchestrator.gnq.stages.defending import DIVERGED
from orchestrator.gnq.stages.scoring import ASSESSMENT
from orchestrator.judgement.wording import warnings as control_warnings
from orchestrator.report.result import SettingRow, head_of

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from orchestrator.engine.kind import Finished
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store
    from orchestrator.gnq.plan import GnqPlan

WRECKED = 0.5
"""Share of the test accuracy without defence below which a model counts as wrecked."""
LISTED = ("aucs", "guesses")
"""What an assessment lists by attack, in every pool the same."""


def summed_up(finished: Finished) -> dict[str, Any]:
    """Return the content of result.json: arms, AUCs, comparisons, predictions, and everything needed to run again."""
    settings, scores, store = finished.settings, finished.scores, finished.store
    plan = finished.design.plan
    rows: dict[str, list[Any]] = {}
    assessed: dict[str, Assessments] = {}
    warnings = [*plan.warnings, *grouped_warnings(plan, finished.design.data)]
    for setting in settings:
        here, found, level = setting.name, assessments(setting, store), setting.plan.audit.level
        assessed[here] = found
        likeness, fitted = read_likeness(setting, store), fits(setting, store, found)
        recovered = read_recovered(setting, store)
        areas = table(here, found, level)
        parts: dict[str, Sequence[Any]] = {
            "arms": arms(here, setting.plan, found, fitted, areas, level),
            "epsilons": epsilons(here, found, fitted, level) if finished.design.data.groups is None else [],
            "table": areas,
            "comparisons": comparisons(here, setting.plan, found, fitted, level),
            "correlations": correlations(here, found[NONE], level),
            "gains": gains(here, found[NONE], level),
            "bins": bins(here, found[NONE], setting.plan, level),
            "levels": levels(here, scores, level),
            "points": points(here, found[NONE]),
            "traces": traces(here, found[NONE]),
            "inversions": inversions(here, likeness, level),
            "inversion_gains": inversion_gains(here, likeness, at_random(setting.plan), level),
            "inversion_pictures": inversion_pictures(setting, store, finished.design.data),
            "gradient_inversions": gradient_inversions(here, recovered, level),
            "gradient_inversion_gains": gradient_inversion_gains(here, recovered, level),
            "recovery_correlations": recovery_correlations(here, recovered, level),
            "recovery_gains": recovery_gains(here, recovered, level),
            "gradient_inversion_pictures": gradient_inversion_pictures(setting, store, finished.design.data),
        }
        for field, these in parts.items():
            rows.setdefault(field, []).extend(these)
        said = [
            *(line for line in setting.plan.warnings if line not in plan.warnings),
            *diverged_warnings(setting, store),
            *fit_warnings(fitted),
            *inversion_warnings(likeness),
            *gradient_inversion_warnings(recovered),
        ]
        warnings += [f"setting {here}: {line}" for line in said]
    warnings += failure_warnings(failed_attacks(settings, store), len(settings))
    notes = dict.fromkeys([*plan.notes, *(line for setting in settings for line in setting.plan.notes)])
    fields: dict[str, Any] = {field: tuple(these) for field, these in rows.items()}
    result = GnqResult(
        **head_of(finished),
        settings=tuple(SettingRow(setting=each.name, overrides=dict(each.overrides)) for each in settings),
        **fields,
        seeds=tuple(seed_rows(settings, assessed, plan.audit.level)),
        warnings=tuple(dict.fromkeys(warnings)),
        notes=tuple(notes),
        level=plan.audit.level,
    )
    result = judge(result)
    warned = dict.fromkeys([*result.warnings, *control_warnings(result.controls)])
    return replace(result, warnings=tuple(warned)).document()


def assessments(setting: Setting, store: Store) -> Assessments:
    """Return the assessments of the arms that could be judged in every pool, pool by pool.

    An attack that failed in one pool under an arm is left out in all of them.
    """
    failed = {(each.label, each.attack) for each in failed_attacks([setting], store)}
    return {
        arm: [without(pool, {name for label, name in failed if label == arm}) for pool in pools]
        for arm, pools in all_assessments(setting, store).items()
        if not any(DIVERGED in pool for pool in pools)
    }


def without(pool: Found, attacks: Collection[str]) -> Found:
    """Return what was found in a pool without what is about ``attacks``; bins of scores are about LiRA."""
    if not attacks:
        return pool
    bins: Found = {"bins": []} if "bins" in pool and "lira" in attacks else {}
    rows = {name: [row for row in pool[name] if row["attack"] not in attacks] for name in LISTED if name in pool}
    return {**pool, **bins, **rows}


def grouped_warnings(plan: GnqPlan, data: Dataset) -> list[str]:
    """Return the warning that no lower bound on ε is told where points come in groups; none without private arms."""
    private = any(defence is not None and defence.method == "dp_sgd" for defence in plan.arms.values())
    if data.groups is None or not private:
        return []
    return [
        "data.groups: no lower bound on ε is told, for the points of a group are in or out together, and guesses about "
        "them are no independent ones"
    ]


def all_assessments(setting: Setting, store: Store) -> Assessments:
    """Return the assessments of all arms, pool by pool: results of attacks, or that trainings diverged."""
    found: Assessments = {}
    for job in setting.of("score"):
        found.setdefault(job.label, []).append(json.loads(store.get("score", job.key).read(ASSESSMENT)))
    return found


def diverged_warnings(setting: Setting, store: Store) -> list[str]:
    """Return a line for each arm whose training diverged: for how many models, how, and what to do."""
    plan: GnqPlan = setting.plan  # type: ignore[assignment]  # plans of this kind are
    lines = []
    for arm, pools in all_assessments(setting, store).items():
        lost = {model["model"]: model["error"] for pool in pools for model in pool.get(DIVERGED, ())}
        defence = plan.arms[arm]
        if not lost or defence is None:
            continue
        place = f"defences.{list(plan.arms).index(arm) - 1}"  # the first arm is no defence
        rate = f"{place}.recipe.learning_rate" if defence.recipe else "recipe.learning_rate"
        calmer = f" or {place}.strength" if defence.method == "noise" else ""
        models = sum(job.label == arm for job in setting.of("defend"))
        name, error = next(iter(lost.items()))
        lines.append(
            f"arm {arm} is not judged: {len(lost)} of its {models} models could not be trained ({name}: {error}: "
            f"{rate}{calmer})"
        )
    return lines


def fits(setting: Setting, store: Store, judged: Collection[str]) -> dict[str, list[list[Found]]]:
    """Return arm → pool → what was measured of its targets; nothing of arms that are not ``judged``."""
    found: dict[str, list[list[Found]]] = {arm: [] for arm in setting.plan.arms}  # type: ignore[attr-defined]  # plans of this kind have arms
    for job in setting.of("train", "defend"):
        pool, group, _ = job.member.split("-")
        if group == "target" and (job.label or NONE) in judged:
            pools = found[job.label or NONE]
            if len(pools) <= int(pool):
                pools.append([])
            pools[int(pool)].append(json.loads(store.get(job.stage, job.key).read(METRICS)))
    for job in setting.of("look"):
        pool, group, index = job.member.split("-")
        if group == "target" and job.shard < 0:
            model = found[NONE][int(pool)][int(index)]
            seen = json.loads(store.get(job.stage, job.key).read(METRICS))
            model["doubts"] = model.get("doubts", 0) + seen["doubts"]
    return found


def fit_warnings(fitted: Mapping[str, list[list[Found]]]) -> list[str]:
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
