"""Settings of a GNQ audit, chosen on pools that the audit leaves over (``orch tune gnq``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple, cast

from audits.gnq.attacks import POOL_ATTACKS
from audits.statistics.roc import auc
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.kind import Selection
from orchestrator.engine.run.scores import joined_scores
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store
from orchestrator.gnq.jobs import GnqJobs
from orchestrator.gnq.judged import scores_of
from orchestrator.gnq.plan import NONE, GnqPlan
from orchestrator.gnq.result.metrics import taught

if TYPE_CHECKING:
    import pyarrow as pa

DEFENDED = "defended"
"""The first defence of a setting: by it settings with different defences can be compared."""


class Place(NamedTuple):
    """What is chosen by: the AUC of an attack with shadows of a kind (``none``: it has none) under an arm."""

    arm: str
    attack: str
    shadows: str


def places(plan: GnqPlan) -> dict[str, Place]:
    """Return metric → place; names of arms may have points in them."""
    arms = {arm: arm for arm in plan.arms}
    first = next((arm for arm in arms if arm != NONE), None)
    return {
        f"{called}.{attack}.{shadows}.auc": Place(arm, attack, shadows)
        for called, arm in (arms | ({DEFENDED: first} if first else {})).items()
        for attack in plan.audit.attacks
        for shadows in (taught(arm) if POOL_ATTACKS[attack].shadowed else ("none",))
    }


def metrics(plan: GnqPlan) -> Sequence[str]:
    """Return the AUC of every attack on all contributors, under each arm."""
    return tuple(places(plan))


def refusal(plan: GnqPlan, metric: str) -> str:
    """Return "": whatever a plan measures of its targets can be rehearsed."""
    return ""


def unscored(plan: GnqPlan, metric: str) -> str:
    """Return why a setting with this plan has no such number, or ""."""
    return "" if metric in places(plan) else f"it has no {metric}; its arms: {', '.join(plan.arms)}"


def rehearsed(plan: GnqPlan, metric: str) -> GnqPlan:
    """Return the plan with the one attack that is rehearsed, and nothing inverted."""
    attack = places(plan)[metric].attack
    return plan.changed(
        {"audit.attacks": [attack], "audit.inversion": None, "audit.gradient_inversion": None},
    )


def jobs(design: GnqJobs, metric: str) -> Sequence[Job]:
    """Return the jobs by which the metric's arm is judged in each pool, and those that they need."""
    arm, found = places(design.plan)[metric].arm, list(design.jobs())
    wanted = {job.key for job in found if job.stage == "score" and job.label == arm}
    for job in reversed(found):  # needs stand before those that need them
        if job.key in wanted:
            wanted.update(job.needs)
    return [job for job in found if job.key in wanted]


def values(setting: Setting, store: Store, metric: str) -> Mapping[int, float]:
    """Return pool of the rehearsal → its value; nothing where the models of an arm diverged."""
    return on_targets(setting, joined_scores([setting], store), metric)


def on_targets(setting: Setting, scores: pa.Table, metric: str) -> Mapping[int, float]:
    """Return pool → mean AUC over its two targets; nothing where they diverged, or for an attack that failed."""
    import pyarrow.compute as pc

    if "arm" not in scores.column_names:
        return {}
    arm, attack, shadows = places(cast(GnqPlan, setting.plan))[metric]
    own = scores.filter((pc.field("setting") == setting.name) & (pc.field("arm") == arm))
    wanted = f"{arm}.{attack}" if shadows == "none" else f"{arm}.{attack}_{shadows}"
    pools: dict[int, list[float]] = {}
    for each in scores_of(own):
        if each.attack == wanted:
            for target in sorted(set(each.target.tolist())):
                rows = each.target == target
                pools.setdefault(target // 2, []).append(auc(each.scores[rows], each.member[rows]))
    return {pool: fmean(areas) for pool, areas in pools.items()}


SELECTION = Selection(
    metrics=metrics,
    refusal=refusal,
    unscored=unscored,
    fields=(
        "audit.modes",
        "audit.ridge",
        "audit.checkpoints",
        "audit.in_batch",
        "audit.held_out",
        "split.shadows",
        "defences",
    ),
    defended=("defences",),
    jobs=jobs,
    values=values,
    on_targets=on_targets,
    unit="pool",
    over="pool",
    players="targets of pools that the audit leaves over",
    apart="a rehearsal has other pools",
    rehearsed=rehearsed,
    kind="orchestrator.gnq.rehearsal:REHEARSAL",
)
