"""What a finished disclosure audit says, as written to result.json (schema ``orch.result/1``; see docs/result.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.disclosure.gathering import Place, interval, pool_means
from orchestrator.disclosure.inversion_rows import (
    inversion_gains,
    inversion_pictures,
    inversion_warnings,
    inversions,
    read_likeness,
)
from orchestrator.disclosure.plan import NONE
from orchestrator.disclosure.plan_checks import READS_MODE

if TYPE_CHECKING:
    from orchestrator.disclosure.schedule import DisclosureScheduler
    from orchestrator.setting import Setting
    from orchestrator.store import Store

Row = dict[str, Any]
Assessments = dict[str, list[Row]]
"""Arm → what stage assess found, pool by pool."""

INVERTED = ("inversions", "inversion_gains", "inversion_pictures")
"""What is there with ``audit.inversion``; else empty."""
SHOWN = 24
CONTROLS = ("loss_log", "gradient_norm_log", "final_loss", "gradient_norm")
"""Rankings without GNQ that one made of it is compared with, by the same transforms."""
WRECKED = 0.5
"""Share of the test accuracy without defence below which a model counts as wrecked."""

AGAINST = ("random", "loss_log")
"""Rankings whose removal a removal is compared with."""


def summed_up(
    name: str, settings: Sequence[Setting], store: Store, scheduler: DisclosureScheduler, counts: Mapping[str, int]
) -> Row:
    """Return the document of a run: arms, AUCs, comparisons, what scores predict, and all that is needed to repeat."""
    from orchestrator.result import SCHEMA, versions

    plan = scheduler.plan
    fields = ("arms", "table", "comparisons", "correlations", "gains", "bins", "points", "traces", *INVERTED)
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
            "points": points(found[NONE]),
            "traces": traces(found[NONE]),
        }
        likeness = read_likeness(setting, store)
        parts |= {
            "inversions": inversions(likeness, level),
            "inversion_gains": inversion_gains(likeness, level),
            "inversion_pictures": inversion_pictures(setting, store, scheduler.data),
        }
        fitted = fits(setting, store)
        parts["arms"] = arms(setting.plan, found, fitted, parts["table"], level)
        parts["comparisons"] = comparisons(setting.plan, found, fitted, level)
        for field, these in parts.items():
            rows[field] += [{"setting": setting.name, **row} for row in these]
        said = [*control_warnings(parts["table"], level), *fit_warnings(fitted), *inversion_warnings(likeness)]
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
    """Return what stage assess left, pool by pool."""
    from orchestrator.disclosure.assessing import ASSESSMENT

    found: Assessments = {}
    for job in setting.jobs.score_units:
        found.setdefault(job.label, []).append(json.loads(store.get("assess", job.key).read(ASSESSMENT)))
    return found


def fits(setting: Setting, store: Store) -> dict[str, list[list[Row]]]:
    """Return arm → pool → what was measured of its targets."""
    from orchestrator.stages import METRICS

    found: dict[str, list[list[Row]]] = {arm: [] for arm in setting.plan.arms}  # type: ignore[attr-defined]  # plans of this kind have arms
    for job in (*setting.jobs.train_jobs, *setting.jobs.unlearn_jobs):
        pool, group, _ = job.member.split("-")
        if group == "target":
            pools = found[job.label or NONE]
            if len(pools) <= int(pool):
                pools.append([])
            pools[int(pool)].append(json.loads(store.get(job.stage, job.key).read(METRICS)))
    return found


def table(found: Assessments, level: float) -> list[Row]:
    """Return the AUC of each arm × group × attack × shadows × moment, with its interval over pools."""
    from audits.disclosure.pool_attacks import POOL_ATTACKS
    from audits.disclosure.removal import two_sided_auc

    rows = []
    for arm, place, pools in cells(found):
        auc = interval(pool_means(pools), level)
        known = [[value for value in pool if value is not None] for pool in pools]
        both = len(pools) > 1 and place.group.startswith("removed") and known == pools
        side = interval([float(one.mean()) for one in two_sided_auc(known)] if both else [], level)
        rows.append(
            {
                "arm": arm,
                **place._asdict(),
                "access": POOL_ATTACKS[place.attack].access,
                "pools": len(pools),
                "targets": sum(len(pool) for pool in pools),
                **auc.row("auc"),
                **side.row("two_sided"),
            }
        )
    return rows


def cells(found: Assessments) -> list[tuple[str, Place, list[list[float | None]]]]:
    """Return arm, place in the table and the AUCs of its targets by pool."""
    gathered: dict[tuple[str, Place], list[list[float | None]]] = {}
    for arm, pools in found.items():
        for pool in pools:
            for row in pool["aucs"]:
                place = Place(row["group"], row["attack"], row["shadows"], row["moment"])
                gathered.setdefault((arm, place), []).append(row["auc"])
    return [(arm, place, pools) for (arm, place), pools in gathered.items()]


def arms(
    plan: Any, found: Assessments, fitted: Mapping[str, list[list[Row]]], rows: Sequence[Row], level: float
) -> list[Row]:
    """Return one row an arm: what it is, how well its models fit, its headline, and its onion effect."""
    lines = []
    for arm, defence in plan.arms.items():
        every = [model for pool in fitted[arm] for model in pool]
        test = interval([mean(model["test_accuracy"] for model in pool) for pool in fitted[arm]], level)
        lines.append(
            {
                "arm": arm,
                "method": NONE if defence is None else defence.method,
                "ranking": None if defence is None else defence.ranking,
                "share": None if defence is None else defence.share,
                "strength": None if defence is None else defence.strength,
                "epsilon": every[0].get("epsilon"),
                "delta": every[0].get("delta"),
                "trained_on": mean(model["points"] for model in every),
                "steps": every[0]["steps"],
                "last_batch": every[0]["last_batch"],
                "train_accuracy": mean(model["train_accuracy"] for model in every),
                **test.row("test_accuracy"),
                "headline": headline(arm, rows),
                "onion": onion(found[arm], level),
            }
        )
    return lines


def headline(arm: str, rows: Sequence[Row]) -> Row | None:
    """Return the attack of largest mean AUC on all contributors; its shadows know the arm."""
    knows = ("none", "naive") if arm == NONE else ("none", "adaptive")
    told = [
        row
        for row in rows
        if row["arm"] == arm
        and row["group"] == "contributors"
        and row["moment"] == "after"
        and row["shadows"] in knows
        and row["auc"] is not None
    ]
    if not told:
        return None
    best = max(told, key=lambda row: float(row["auc"]))
    return {"attack": best["attack"], "auc": best["auc"], "low": best["auc_low"], "high": best["auc_high"]}


def onion(pools: Sequence[Row], level: float) -> Row | None:
    """Return the shares of fully exposed kept points before and after a removal, means over pools."""
    seen = [pool["onion"] for pool in pools if pool["onion"] is not None]
    if not seen:
        return None
    after = interval([pool["after"] for pool in seen], level)
    change = interval([pool["after"] - pool["before"] for pool in seen], level)
    return {
        "points": sum(pool["points"] for pool in seen),
        "before": mean(pool["before"] for pool in seen),
        **after.row("after"),
        **change.row("change"),
        "floor": seen[0]["floor"],
    }


def comparisons(plan: Any, found: Assessments, fitted: Mapping[str, list[list[Row]]], level: float) -> list[Row]:
    """Return the differences between arms, paired by pool; Holm's correction is over the arms of one comparison."""
    from orchestrator.disclosure.gathering import corrected, paired

    areas = {(arm, place): pool_means(pools) for arm, place, pools in cells(found)}
    accuracy = {arm: [mean(model["test_accuracy"] for model in pool) for pool in fitted[arm]] for arm in plan.arms}
    rows = []
    for arm, other in opponents(plan):
        for group in ("contributors", "kept"):
            for place in dict.fromkeys(place for name, place in areas if name == arm):
                if place.group != group or place.moment != "after" or place.shadows == "naive":
                    continue
                base = place if other != NONE or place.shadows == "none" else place._replace(shadows="naive")
                if (other, base) not in areas or None in (*areas[arm, place], *areas[other, base]):
                    continue
                difference = paired(areas[arm, place], areas[other, base], level)
                cost = paired(accuracy[arm], accuracy[other], level)
                rows.append(
                    {
                        "arm": arm,
                        "against": other,
                        "group": place.group,
                        "attack": place.attack,
                        "shadows": place.shadows,
                        "difference": difference.mean,
                        "low": difference.low,
                        "high": difference.high,
                        "p": difference.p,
                        "accuracy_difference": cost.mean,
                        "accuracy_low": cost.low,
                        "accuracy_high": cost.high,
                    }
                )
    return corrected(rows, ("against", "group", "attack"))


def opponents(plan: Any) -> list[tuple[str, str]]:
    """Return which arm is compared with which: all with none, removals with the controls of their share."""
    found = []
    for arm, defence in plan.arms.items():
        if defence is None:
            continue
        found.append((arm, NONE))
        if defence.method == "remove":
            others = [f"{name}-{defence.share:g}" for name in AGAINST if name != defence.ranking]
            found += [(arm, other) for other in others if other in plan.arms]
    return found


def correlations(pools: Sequence[Row], level: float) -> list[Row]:
    """Return the Spearman correlation of each score with each outcome, means over pools."""
    return [
        {
            "score": score,
            "control": score not in READS_MODE,
            "outcome": outcome,
            "pools": len(values),
            **interval(values, level).named("spearman", "low", "high"),
        }
        for (score, outcome), values in by_outcome(pools).items()
    ]


def by_outcome(pools: Sequence[Row]) -> dict[tuple[str, str], list[float | None]]:
    """Return (score, outcome) → correlation by pool."""
    found: dict[tuple[str, str], list[list[float | None]]] = {}
    for pool in pools:
        for row in pool["correlations"]:
            found.setdefault((row["score"], row["outcome"]), []).append(row["spearman"])
    return {place: pool_means(values) for place, values in found.items()}


def gains(pools: Sequence[Row], level: float) -> list[Row]:
    """Return by how much scores made of GNQ predict better than controls, paired by pool; Holm by outcome."""
    from orchestrator.disclosure.gathering import corrected, paired

    found, rows = by_outcome(pools), []
    for score, outcome in found:
        if score in READS_MODE:
            for control in CONTROLS:
                values, others = found[score, outcome], found[control, outcome]
                if None in (*values, *others):
                    continue
                difference = paired(values, others, level)
                rows.append(
                    {
                        "score": score,
                        "control": control,
                        "outcome": outcome,
                        "difference": difference.mean,
                        "low": difference.low,
                        "high": difference.high,
                        "p": difference.p,
                    }
                )
    return corrected(rows, ("outcome",))


def bins(pools: Sequence[Row], plan: Any, level: float) -> list[Row]:
    """Return how well members of each bin of a score are told apart, means over pools."""
    rows = []
    for place, first in enumerate(pools[0]["bins"] if pools else ()):
        each = [pool["bins"][place]["auc"] for pool in pools]
        for index in range(plan.audit.bins):
            values = pool_means([[target[index] for target in targets] for targets in each])
            rows.append(
                {
                    "score": first["score"],
                    "rule": first["rule"],
                    "bin": index + 1,
                    "points": plan.split.train_size / plan.audit.bins,
                    **interval(values, level).named("auc", "low", "high"),
                }
            )
    return rows


def points(pools: Sequence[Row]) -> list[Row]:
    """Return the most exposed points of all targets."""
    every = [row for pool in pools for row in pool["points"]]
    ranked = sorted(every, key=lambda row: -(row["gnq_log"] if row["gnq_log"] is not None else row["loss_gap"]))
    return ranked[:SHOWN]


def traces(pools: Sequence[Row]) -> list[Row]:
    """Return quantiles along training, means over pools."""
    rows = []
    for place, first in enumerate(pools[0]["traces"] if pools else ()):
        each = [pool["traces"][place] for pool in pools]
        curves = {word: [mean(values) for values in zip(*(one[word] for one in each), strict=True)]
                  for word in ("low", "median", "high")}  # fmt: skip
        rows.append({"score": first["score"], "steps": first["steps"], **curves})
    return rows


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
        accuracy = mean(model["test_accuracy"] for model in models)
        if accuracy < WRECKED * base:
            lines.append(f"arm {arm} wrecks the model: test accuracy {accuracy:.3f}, without defence {base:.3f}")
    if doubts := sum(model.get("doubts", 0) for model in found[NONE]):
        lines.append(f"mode pinv was not certain of the rank of the gradients at {doubts} checkpoints of targets")
    return lines


def mean(values: Any) -> float:
    """Return the mean of a few numbers."""
    listed = [float(value) for value in values]
    return sum(listed) / len(listed)
